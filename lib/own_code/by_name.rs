//! What the names of frames tell: whose code they are, and what it calls.

use std::collections::HashSet;
use std::sync::LazyLock;

use bstr::ByteSlice as _;
use regex::bytes::RegexSet;

use super::run_time_names::AbsentRunTimes;
use crate::categories::Categories;
use crate::filter::FrameMatcher;
use crate::pattern_list::compile_list as patterns;
use crate::profile::{FrameId, Frames};
use crate::script_source::{SourceOrigin, find_origin, is_inline_code, source_of, without_line};
use crate::symbol_name::inherent::without_type_brackets;
use crate::symbol_name::library::{calls_no_program, has_library_prefix, is_library};
use crate::symbol_name::module::{SystemModule, split_module, system_module};
use crate::symbol_name::return_type::without_return_type;
use crate::{java, markers};

/// The modules of Python's standard library.
static PYTHON_LIBRARY: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("python_library.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
});

/// Packages of Python that are no program's own.
static PYTHON_PACKAGES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("python_packages.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
});

/// True for a package of Python that is no program's own.
pub(crate) fn is_known_package(package: &str) -> bool {
    PYTHON_PACKAGES.contains(package)
}

/// Patterns of functions that only prepare the call of the next one: the start of a process or a thread.
static START: LazyLock<RegexSet> = LazyLock::new(|| patterns(include_str!("start.txt")));

/// Patterns of those of a thread.
static THREAD_START: LazyLock<RegexSet> = LazyLock::new(|| {
    patterns(r"^(_?_?clone3?|start_thread|thread_start|thread_native_entry|runtime\.(goexit|mstart[01]?)(\.abi0)?)$")
});

/// Patterns of functions that run code of an interpreted or managed language.
static RUN_TIMES: LazyLock<RegexSet> =
    LazyLock::new(|| patterns(&[include_str!("run_times.txt"), java::ENTRIES].concat()));

/// Patterns of functions of these languages.
static SCRIPTS: LazyLock<RegexSet> = LazyLock::new(|| patterns(include_str!("scripts.txt")));

/// Patterns of functions that only pass calls on.
static GLUE: LazyLock<RegexSet> = LazyLock::new(|| patterns(include_str!("glue.txt")));

/// Patterns of shared libraries, as code without a symbol is named.
static LIBRARY_FILES: LazyLock<RegexSet> = LazyLock::new(|| patterns(r"^\[.*\.so[.\d]*( \(deleted\))?\]$"));

/// Patterns of those that say nothing: interpreters and the C library.
static COMMON_FILES: LazyLock<RegexSet> = LazyLock::new(|| {
    patterns(
        r"^\[(libpython|libruby|libphp|libjvm|libnode|libperl|liblua|libmono|libcoreclr|libc[.-]|ld-|libpthread|libm[.-]|libdl[.-])",
    )
});

/// Patterns of functions of these languages that are named with their file.
static SCRIPT_FILES: LazyLock<RegexSet> =
    LazyLock::new(|| patterns(r"[^.]\.(py|m?js|cjs|tsx?|jsx|rb|php|pl|pm|lua)\b|^(py::|JS:)| \(<|<frozen "));

/// The suffixes that C compilers append to copies of a function; its name is none of a script then.
static CLONES: LazyLock<RegexSet> =
    LazyLock::new(|| patterns(r"\.(constprop|isra|part|cold|llvm|lto_priv|clone)\b|\.[0-9]+$"));

/// The category of functions that no rule of [`Categories`] matches.
pub(super) const OTHER: &str = "other";

/// The kind of the program's own code.
pub(super) const OWN_CODE: &str = "own code";

/// The kind of library code that has no category.
const LIBRARY_CODE: &str = "libraries";

/// The category of kernel functions that have no other.
pub(super) const KERNEL: &str = "kernel";

/// The category of interpreters.
pub(super) const INTERPRETER: &str = "interpreter";

/// The origin of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A function of the program.
    Own,
    /// A function of a library, of a run time or of the kernel.
    Library,
    /// Code without a symbol.
    Unknown,
    /// A thread state, `[lost]` or `[truncated]`.
    Marker,
}

/// The code that a function calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// It may call any code, also the program's own.
    Any,
    /// The next function of a start of a process or thread.
    Start,
    /// No function of the program.
    Closed,
    /// Functions of an interpreted or managed language.
    Scripts,
}

/// The properties of a frame that follow from its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) origin: Origin,
    /// The kind of code by which self weight is summed up.
    pub(super) kind: &'a str,
    pub(super) calls: Calls,
    /// True for a function of an interpreted or managed language.
    pub(super) is_script: bool,
    /// True for such a function that is named with its file: native functions below it belong to the interpreter.
    pub(super) has_script_file: bool,
    /// True for a function that only passes calls on.
    pub(super) is_glue: bool,
    /// True for a function that starts a thread.
    pub(super) starts_thread: bool,
    /// True for a library without symbols that is not an interpreter.
    pub(super) is_library_file: bool,
    /// True for a name like those of functions of the kernel, which a program may have, too.
    pub(super) may_be_kernel: bool,
}

impl<'a> Known<'a> {
    /// True for a function with a name that does more than pass the call on.
    pub(super) fn is_function(&self) -> bool {
        self.calls != Calls::Start && !self.is_glue && matches!(self.origin, Origin::Own | Origin::Library)
    }

    /// Creates the properties of a frame that is no function of a script.
    fn native(origin: Origin, kind: &'a str) -> Self {
        Self {
            origin,
            kind,
            calls: Calls::Any,
            is_script: false,
            has_script_file: false,
            is_glue: false,
            starts_thread: false,
            is_library_file: false,
            may_be_kernel: false,
        }
    }

    /// Makes it a native function of an interpreter, or of an extension.
    pub(super) fn set_inside_interpreter(&mut self) {
        self.origin = Origin::Library;
    }

    /// Makes it a function of the program.
    pub(super) fn set_own(&mut self) {
        (self.origin, self.kind) = (Origin::Own, OWN_CODE);
    }
}

/// Classifies frames by their names.
pub(super) struct Classifier<'a> {
    categories: &'a Categories,
    own: Option<FrameMatcher>,
    /// True if some functions of scripts are named with the whole path of their file. Python's own modules are named without one
    /// then.
    has_script_paths: bool,
    /// True if some functions of scripts are in no package. Packages are libraries then; else they are all that there is.
    has_own_scripts: bool,
    absent: AbsentRunTimes,
}

impl<'a> Classifier<'a> {
    /// Creates the classifier for the frames of a profile. If `own` is given, it alone decides which functions are the
    /// program's own.
    pub(super) fn new(frames: &Frames, categories: &'a Categories, own: Option<FrameMatcher>) -> Self {
        let has_script_paths = frames.iter().any(|(_, name)| source(name).is_some_and(|file| file.starts_with('/')));
        let absent = AbsentRunTimes::find(frames);
        let mut classifier = Self { categories, own, has_script_paths, has_own_scripts: false, absent };
        classifier.has_own_scripts = frames.iter().any(|(_, name)| match find_origin(name) {
            Some(SourceOrigin::Own(_)) => true,
            Some(SourceOrigin::Package(package)) => classifier.may_be_own_package(name) && !is_known_package(package),
            _ => false,
        });
        classifier
    }

    /// True for a name that begins with a namespace of a library, and none that is one only in a run time: `std::thread::Thread::park`
    /// is no method of HotSpot's `Thread`.
    fn has_library_namespace(&self, name: &[u8]) -> bool {
        let path = name.trim_start_with(|letter| !letter.is_ascii_alphanumeric());
        path.split_once_str("::").is_some_and(|(namespace, _)| {
            let function = [namespace, b"::f"].concat();
            has_library_prefix(&function) && !self.absent.have(&function)
        })
    }

    /// True for a function of Python whose file has a relative path, if all have: py-spy writes them from the folder of the module on,
    /// be that of the program or of packages.
    fn may_be_own_package(&self, name: &[u8]) -> bool {
        let is_relative =
            source(name).is_some_and(|file| without_line(file).ends_with(".py") && !file.contains("-packages/"));
        is_relative && !self.has_script_paths
    }

    /// Returns what the name of a frame tells.
    pub(super) fn classify(&mut self, frames: &Frames, frame: FrameId, name: &[u8]) -> Known<'a> {
        // Code that was compiled just in time or inlined is the program's own or a library's like any other.
        let (module, function) = split_module(markers::strip_suffix(name));
        let system = module.and_then(system_module);
        let is_kernel = name.ends_with(markers::KERNEL) || system == Some(SystemModule::Kernel);
        let plain = if name.ends_with(markers::KERNEL) { name } else { without_return_type(function) };
        let plain = &without_type_brackets(plain);
        let is_of_absent =
            system.is_none() && !is_kernel && self.absent.have(plain) && !self.has_library_namespace(plain);
        let category = match self.categories.categorize(if markers::is_marker(name) { name } else { plain }) {
            category if system == Some(SystemModule::Kernel) && !category.starts_with(KERNEL) => KERNEL,
            _ if is_of_absent => OTHER,
            category => category,
        };
        if markers::is_thread_state(name) || name == markers::LOST || name == markers::TRUNCATED {
            return Known::native(Origin::Marker, category);
        }
        if markers::is_without_symbol(name) {
            let is_library_file = LIBRARY_FILES.is_match(plain) && !COMMON_FILES.is_match(plain);
            return Known { is_library_file, ..Known::native(Origin::Unknown, "unknown") };
        }
        let is_library = match find_origin(plain) {
            Some(SourceOrigin::StandardLibrary) => true,
            Some(SourceOrigin::Package(package)) => match self.may_be_own_package(plain) {
                true => self.has_own_scripts && is_known_package(package),
                false => self.has_own_scripts || has_library_prefix(plain),
            },
            // The name of a script's function may begin like those of a library in C: `git_version (app.py)`.
            Some(SourceOrigin::Own(_)) => self.has_script_paths && source(plain).is_some_and(is_python_module),
            None => system.is_some() || !is_of_absent && is_library(plain),
        };
        let is_inline = is_inline_code(plain);
        let is_script = !is_kernel && (is_inline || SCRIPTS.is_match(plain) && !CLONES.is_match(plain));
        let has_script_file = is_script && (is_inline || SCRIPT_FILES.is_match(plain));
        let is_own = match &mut self.own {
            Some(own) => own.matches(frames, frame),
            None => !is_library && (is_script || category == OTHER),
        };
        let calls = match () {
            () if is_own && (has_script_file || self.own.is_some()) => Calls::Any,
            () if is_kernel => Calls::Closed,
            () if START.is_match(plain) => Calls::Start,
            () if category == "allocator" || calls_no_program(plain) => Calls::Closed,
            () if RUN_TIMES.is_match(plain) => Calls::Scripts,
            () => Calls::Any,
        };
        let (origin, kind) = match is_own && matches!(calls, Calls::Any) {
            true => (Origin::Own, OWN_CODE),
            false if category == OTHER => (Origin::Library, LIBRARY_CODE),
            false => (Origin::Library, category),
        };
        let starts_thread = THREAD_START.is_match(plain);
        let is_glue = GLUE.is_match(plain);
        // Who woke a thread did so in the kernel.
        let is_in_kernel = is_kernel || name.ends_with(markers::WAKER);
        let may_be_kernel =
            category.starts_with(KERNEL) && !is_in_kernel && !is_library && calls == Calls::Any && !is_glue;
        Known {
            origin,
            kind,
            calls,
            is_script,
            has_script_file,
            is_glue,
            starts_thread,
            is_library_file: false,
            may_be_kernel,
        }
    }
}

/// Returns the source file that the name of a script function contains.
fn source(name: &[u8]) -> Option<&str> {
    source_of(std::str::from_utf8(markers::strip_suffix(name)).ok()?)
}

/// True for a file of a module of Python's standard library, without the folders before the module.
fn is_python_module(file: &str) -> bool {
    let module = file.split(['/', ':']).next().unwrap_or_default();
    module.len() < file.len() && PYTHON_LIBRARY.contains(module)
        || module.strip_suffix(".py").is_some_and(|module| PYTHON_LIBRARY.contains(module))
}
