//! Colours by module: muted hues of equal lightness for the modules that take most of the picture, and a colour for each
//! other kind of code. The viewer has the same colours for its light and its dark theme (`viewer/viewer.css`).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bstr::ByteSlice as _;

use super::layout::Layout;
use super::module::{Kind, origin};
use super::places::Places;
use super::rgb::Colour;
use crate::markers;
use crate::script_source::{SourceOrigin, find_origin, split_source_line};

/// A class of frames that have the same colour: its index in [`LIGHT`] and [`DARK`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class(pub u8);

const OWN: Class = Class(0);
const HUES: u8 = 7;
const OTHER: Class = Class(8);
const THREAD: Class = Class(14);

/// The label of functions whose names tell no module where the program's own code has modules: a program of scripts, of Java or of
/// Rust.
const NATIVE_CODE: &str = "native code";

/// The classes that several modules share, with their labels.
const SHARED: [(Class, &str); 6] = [
    (OTHER, "other modules"),
    (Class(9), "std, libc"),
    (Class(10), "kernel"),
    (Class(11), "interpreter, VM"),
    (Class(12), "generated code"),
    (Class(18), "wakers"),
];

/// The colours of the light theme, in the order of the classes: own code, seven modules, other modules, runtime, kernel,
/// interpreter, generated code, unknown, thread, off-CPU, runnable, unsampled, wakers.
pub const LIGHT: [Colour; 19] = [
    Colour(0xff, 0xc4, 0x84),
    Colour(0xb3, 0xde, 0xbb),
    Colour(0xa0, 0xdc, 0xef),
    Colour(0xde, 0xc6, 0xf2),
    Colour(0xd1, 0xd6, 0xa4),
    Colour(0x9e, 0xdf, 0xda),
    Colour(0xef, 0xc1, 0xe0),
    Colour(0xbc, 0xd1, 0xfd),
    Colour(0xf8, 0xc0, 0xc9),
    Colour(0xdf, 0xe3, 0xea),
    Colour(0xcc, 0xce, 0xeb),
    Colour(0xda, 0xd1, 0xb0),
    Colour(0xb1, 0xdc, 0xcd),
    Colour(0xde, 0xde, 0xde),
    Colour(0xe8, 0xeb, 0xef),
    Colour(0xa0, 0xc8, 0xf4),
    Colour(0xf4, 0xd5, 0x76),
    Colour(0xe8, 0xe8, 0xe8),
    Colour(0x7d, 0xd6, 0xd9),
];

/// The colours of the dark theme.
pub const DARK: [Colour; 19] = [
    Colour(0x6e, 0x46, 0x11),
    Colour(0x36, 0x59, 0x3d),
    Colour(0x21, 0x58, 0x67),
    Colour(0x5a, 0x46, 0x69),
    Colour(0x51, 0x53, 0x29),
    Colour(0x1d, 0x5b, 0x57),
    Colour(0x66, 0x42, 0x5c),
    Colour(0x3f, 0x4f, 0x72),
    Colour(0x6d, 0x41, 0x49),
    Colour(0x39, 0x3e, 0x43),
    Colour(0x4c, 0x4d, 0x68),
    Colour(0x57, 0x50, 0x36),
    Colour(0x31, 0x59, 0x4d),
    Colour(0x35, 0x35, 0x35),
    Colour(0x2c, 0x2e, 0x31),
    Colour(0x28, 0x4a, 0x6c),
    Colour(0x6c, 0x59, 0x18),
    Colour(0x2e, 0x2e, 0x2e),
    Colour(0x0b, 0x5f, 0x66),
];

impl Class {
    /// Returns the colour in the light theme.
    pub fn colour(self) -> Colour {
        LIGHT[usize::from(self.0)]
    }
}

/// The classes of the modules of a drawing.
#[derive(Debug, Default)]
pub struct ModuleColours {
    classes: BTreeMap<String, Class>,
    pub(super) places: Places,
    /// The classes of the drawn frames.
    used: BTreeSet<Class>,
    /// The name of the program or [`NATIVE_CODE`], for functions whose names tell no module. Empty if they have no class.
    program: String,
}

impl ModuleColours {
    /// Assigns hues to the modules of a layout by the area of their frames.
    pub fn assign(layout: &Layout) -> Self {
        let places = Places::find(layout);
        let own = own_modules(layout, &places);
        let mut areas = HashMap::<String, f64>::new();
        for frame in &layout.frames {
            let name = layout.names.name(frame.name);
            if let (Kind::Module, module) = origin_in(name, &places)
                && !places.is_root(name)
                && !own.contains(&*module)
            {
                *areas.entry(module.into_owned()).or_default() +=
                    frame.total.after.as_f64() + frame.total.before.as_f64();
            }
        }
        let mut names: Vec<_> = places.threads.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        names.sort_by_key(|name| (Reverse(name.len()), name.clone()));
        let mut program = if names.len() == 1 { names.remove(0) } else { "program".to_owned() };
        if own.is_empty() {
            areas.remove("");
            program.clear();
        } else if !own.contains("") {
            NATIVE_CODE.clone_into(&mut program);
        }
        let mut modules: Vec<_> = areas.into_iter().collect();
        modules.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let hues = (1..=HUES).map(Class).chain(std::iter::repeat(OTHER));
        let mut classes: BTreeMap<_, _> = modules.into_iter().map(|(module, _)| module).zip(hues).collect();
        classes.extend(own.into_iter().map(|module| (module, OWN)));
        let mut colours = Self { classes, places, program, used: BTreeSet::new() };
        colours.used = layout.frames.iter().map(|frame| colours.class(layout.names.name(frame.name))).collect();
        colours
    }

    /// Returns the class of a frame.
    pub fn class(&self, name: &[u8]) -> Class {
        if self.places.is_root(name) {
            return THREAD;
        }
        let (kind, module) = origin_in(name, &self.places);
        match kind {
            Kind::Module => self.classes.get(&*module).copied().unwrap_or(OTHER),
            Kind::Runtime => Class(9),
            Kind::Kernel => Class(10),
            Kind::Interpreter => Class(11),
            Kind::Generated => Class(12),
            Kind::Unknown => Class(13),
            Kind::OffCpu => Class(15),
            Kind::Runnable => Class(16),
            Kind::Unsampled => Class(17),
            Kind::Waker => Class(18),
        }
    }

    /// Returns the name of the module of a frame, or an empty text.
    pub fn module(&self, name: &[u8]) -> String {
        if self.places.is_root(name) {
            return String::new();
        }
        match origin_in(name, &self.places) {
            (Kind::Module, module) if module.is_empty() => self.program.clone(),
            (_, module) => module.into_owned(),
        }
    }

    /// Returns the modules that have a colour of their own, in the order of their colours, then the colours that several
    /// share.
    pub fn legend(&self) -> Vec<(Colour, String)> {
        let mut modules: Vec<_> = self.classes.iter().filter(|(_, class)| **class < OTHER).collect();
        modules.sort_by_key(|(module, class)| (**class, module.as_str()));
        let shared = SHARED.iter().filter(|(class, _)| self.used.contains(class));
        let modules = modules.into_iter().map(|(module, class)| {
            let label = if module.is_empty() { &self.program } else { module };
            (class.colour(), label.clone())
        });
        modules.chain(shared.map(|(class, label)| (class.colour(), (*label).to_owned()))).collect()
    }
}

/// Returns the kind and the module of a frame, by its place if that tells them, else by its name.
fn origin_in<'n>(name: &'n [u8], places: &Places) -> (Kind, Cow<'n, str>) {
    if places.kernel.contains(name) {
        (Kind::Kernel, "kernel".into())
    } else if places.java.contains(name) {
        (Kind::Interpreter, "JVM".into())
    } else {
        origin(name)
    }
}

/// Returns the modules of the program itself: those with a function `main`, or named as the program, and its scripts; if
/// there is none, that of functions without a module. In Rust, a function without a module is not of the program: of
/// workers, whose stacks do not tell the program's crate, nothing is returned.
fn own_modules(layout: &Layout, places: &Places) -> HashSet<String> {
    let programs: HashSet<String> =
        places.threads.iter().map(|name| String::from_utf8_lossy(name).replace('-', "_")).collect();
    let mut own = HashSet::new();
    for (_, name) in layout.names.iter() {
        let (kind, module) = origin_in(name, places);
        if kind != Kind::Module || module.is_empty() {
            continue;
        }
        let plain = String::from_utf8_lossy(markers::strip_suffix(name));
        let plain = split_source_line(&plain).map_or(&*plain, |(plain, _)| plain);
        let rest = plain.strip_prefix(&*module).unwrap_or_default();
        let is_main = rest == "::main" || rest.starts_with("::main::{") || rest == ".main" || plain.ends_with(".main");
        if is_main
            || matches!(find_origin(name), Some(SourceOrigin::Own(_)))
            || programs.contains(&module.replace('-', "_"))
        {
            own.insert(module.into_owned());
        }
    }
    let is_rust = layout.names.iter().any(|(_, name)| name.contains_str("::__rust_begin_short_backtrace"));
    if own.is_empty() && !is_rust {
        own.insert(String::new());
    }
    own
}

#[cfg(test)]
mod tests {
    use super::{Class, DARK, LIGHT, ModuleColours, OTHER, OWN, THREAD};
    use crate::profile::{Weight, Weights};
    use crate::svg::layout::LayoutBuilder;

    fn assign(stacks: &[(&[&str], u64)]) -> ModuleColours {
        let mut builder = LayoutBuilder::new(0.0, Weight::ZERO);
        for (stack, weight) in stacks {
            let names = stack.iter().map(|name| name.as_bytes());
            builder.add(0, names, Weights::plain(Weight::new(*weight))).unwrap();
        }
        ModuleColours::assign(&builder.finish())
    }

    fn classes<const N: usize>(colours: &ModuleColours, names: [&str; N]) -> [Class; N] {
        names.map(|name| colours.class(name.as_bytes()))
    }

    #[test]
    fn own_code_and_the_largest_modules_have_hues() {
        let colours = assign(&[
            (&["app-1", "std::rt::start", "app_1::main", "regex::find"], 3),
            (&["app-1", "std::rt::start", "app_1::main", "serde::parse", "malloc"], 9),
        ]);
        let names = ["app_1::other", "serde::x", "regex::y", "app-1", "std::rt::start", "new::z"];
        assert_eq!(classes(&colours, names), [OWN, Class(1), Class(2), THREAD, Class(9), OTHER]);
        assert_eq!(
            colours.legend().iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(),
            ["app_1", "serde", "regex", "std, libc"]
        );
    }

    #[test]
    fn functions_without_a_module_are_native_code_beside_own_modules() {
        let colours =
            assign(&[(&["gunicorn", "run (gunicorn/arbiter.py)", "page (/srv/app.py)", "pymalloc_alloc"], 1)]);
        assert_eq!(colours.module(b"pymalloc_alloc"), "native code");
        assert!(colours.legend().iter().any(|(colour, name)| name == "gunicorn" && *colour == OWN.colour()));
        assert!(colours.legend().iter().any(|(colour, name)| name == "native code" && *colour == Class(1).colour()));
    }

    #[test]
    fn functions_without_a_module_are_own_code_if_nothing_else_is() {
        let colours = assign(&[(&["postgres", "main", "ExecProcNode"], 1)]);
        assert_eq!(colours.class(b"ExecProcNode"), OWN);
        assert_eq!(colours.module(b"ExecProcNode"), "postgres");
    }

    #[test]
    fn functions_without_a_module_are_not_own_code_of_rust_programs() {
        let start = "std::sys::backtrace::__rust_begin_short_backtrace";
        let colours = assign(&[
            (&["tokio-rt-worker", start, "hyper::poll", "orders::report"], 9),
            (&["tokio-rt-worker", start, "multiply_avx"], 3),
        ]);
        assert_eq!(colours.class(b"multiply_avx"), OTHER);
        assert_eq!([colours.module(b"multiply_avx"), colours.module(b"hyper::poll")], ["", "hyper"]);
    }

    #[test]
    fn callees_of_the_kernels_entries_are_of_the_kernel() {
        let colours = assign(&[
            (&["app", "main", "write", "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "vfs_write", "memcpy"], 3),
            (&["app", "main", "work", "memcpy"], 9),
            (&["app", "start_secondary", "do_idle"], 9),
        ]);
        for (name, is_kernel) in [("vfs_write", true), ("do_idle", true), ("do_syscall_64", true), ("write", false)] {
            assert_eq!(colours.class(name.as_bytes()) == colours.class(b"any_[k]"), is_kernel, "{name}");
            assert_eq!(colours.module(name.as_bytes()) == "kernel", is_kernel, "{name}");
        }
        assert_eq!(colours.class(b"memcpy"), colours.class(b"memset"));
    }

    #[test]
    fn script_functions_differ_from_native_ones() {
        let colours = assign(&[
            (&["python3", "<module> (/app/run.py:1)", "load (/app/cart.py:3)", "_PyEval_Vector", "parse_float"], 3),
            (&["python3", "<module> (/app/run.py:1)", "get (/x/site-packages/requests/api.py:1)", "memcpy"], 2),
        ]);
        assert_eq!(classes(&colours, ["<module> (/app/run.py:1)", "load (/app/cart.py:9)"]), [OWN, OWN]);
        let others = classes(&colours, ["get (/x/site-packages/requests/api.py:1)", "parse_float", "memcpy"]);
        assert!(!others.contains(&OWN) && others[0] != others[1], "{others:?}");
        assert_eq!(colours.class(b"_PyEval_Vector"), colours.class(b"[python]"));
    }

    #[test]
    fn the_viewer_has_the_same_colours() {
        let style = include_str!("viewer/viewer.css");
        for (index, (light, dark)) in LIGHT.iter().zip(DARK).enumerate() {
            let rule = format!("--c{index}: light-dark({light}, {dark});");
            assert!(style.contains(&rule), "{rule}");
        }
    }
}
