//! Tells the program's own functions from those of libraries, run times and the kernel: by their names, and by where
//! they are in a stack.
//!
//! A name alone does not tell the inside of the kernel or of the C library from the program: `hack_digit` may be
//! anything. Hence the code below a system call, an interrupt, or a function such as `printf` is never the program's
//! own, whatever its name. Below the entry of an interpreter or of a virtual machine, only functions of the interpreted
//! language are.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::bytes::RegexSet;

use super::measure::is_at_least;
use super::pattern_list::compile_list as patterns;
use crate::csv::Categories;
use crate::filter::FrameMatcher;
use crate::profile::{FrameId, Frames, Profile};
use crate::script_source::{SourceOrigin, find_origin, is_inline_code, source_of};
use crate::{java, markers};

/// Patterns of libraries that are no category of their own.
static LIBRARIES: LazyLock<RegexSet> = LazyLock::new(|| patterns(include_str!("libraries.txt")));

/// The modules of Python's standard library.
static PYTHON_LIBRARY: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("python_library.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
});

/// Patterns of functions that only prepare the call of the next one: the start of a process or a thread.
static START: LazyLock<RegexSet> = LazyLock::new(|| patterns(include_str!("start.txt")));

/// Patterns of those of a thread.
static THREAD_START: LazyLock<RegexSet> = LazyLock::new(|| {
    patterns(r"^(_?_?clone3?|start_thread|thread_start|thread_native_entry|runtime\.(goexit|mstart[01]?)(\.abi0)?)$")
});

/// Patterns of functions that call no function of the program.
static CLOSED: LazyLock<RegexSet> = LazyLock::new(|| patterns(include_str!("closed.txt")));

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
    LazyLock::new(|| patterns(r"\.(py|m?js|cjs|tsx?|jsx|rb|php|pl|pm|lua)\b|^(py::|JS:)| \(<|<frozen "));

/// The suffixes that C compilers append to copies of a function; its name is none of a script then.
static CLONES: LazyLock<RegexSet> =
    LazyLock::new(|| patterns(r"\.(constprop|isra|part|cold|llvm|lto_priv|clone)\b|\.[0-9]+$"));

/// Roots are functions if stacks of a single frame have this part of the weight.
const MIN_SINGLE: (u128, u128) = (1, 20);

/// The category of functions that no rule of [`Categories`] matches.
const OTHER: &str = "other";

/// The kind of the program's own code.
const OWN_CODE: &str = "own code";

/// The kind of library code that has no category.
const LIBRARY_CODE: &str = "libraries";

/// The category of kernel functions that have no other.
const KERNEL: &str = "kernel";

/// The category of interpreters.
const INTERPRETER: &str = "interpreter";

/// The origin of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
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
enum Calls {
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
struct Known<'a> {
    origin: Origin,
    /// The kind of code by which self weight is summed up.
    kind: &'a str,
    calls: Calls,
    /// True for a function of an interpreted or managed language.
    is_script: bool,
    /// True for such a function that is named with its file: native functions below it belong to the interpreter.
    has_script_file: bool,
    /// True for a function that only passes calls on.
    is_glue: bool,
    /// True for a function that starts a thread.
    starts_thread: bool,
    /// True for a library without symbols that is not an interpreter.
    is_library_file: bool,
}

impl<'a> Known<'a> {
    /// True for a function with a name that does more than pass the call on.
    fn is_function(&self) -> bool {
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
        }
    }
}

/// The parts of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place<'a> {
    /// The index of the program's own function nearest to the leaf.
    pub(super) own: Option<usize>,
    /// The number of frames from the root on that may be the program's own.
    pub(super) open: usize,
    /// The kind of the code from there on that has no kind of its own.
    inside: Option<&'a str>,
    /// True if the stack is in an interpreter, but no function of a script has a frame in the profile.
    pub(super) is_without_scripts: bool,
}

/// The origins of all frames.
pub(super) struct Origins<'a> {
    categories: &'a Categories,
    own: Option<FrameMatcher>,
    known: Vec<Known<'a>>,
    /// True if functions of scripts have frames.
    has_scripts: bool,
    /// True if some of them are named with the whole path of their file. Python's own modules are named without one then.
    has_script_paths: bool,
    /// True if the roots of stacks are names of threads.
    has_thread_names: bool,
    /// True if the roots of stacks are functions. If neither is known, roots may be both.
    has_function_roots: bool,
    /// True if some of them are in no package. Packages are libraries then; else they are all that there is.
    has_own_scripts: bool,
}

impl<'a> Origins<'a> {
    /// Creates the origins for the frames of a profile. If `own` is given, it alone decides which functions are the
    /// program's own.
    pub(super) fn new(frames: &Frames, categories: &'a Categories, own: Option<FrameMatcher>) -> Self {
        let has_own_scripts = frames.iter().any(|(_, name)| matches!(find_origin(name), Some(SourceOrigin::Own(_))));
        let known = Vec::with_capacity(frames.len());
        let has_script_paths = frames.iter().any(|(_, name)| source(name).is_some_and(|file| file.starts_with('/')));
        let mut origins = Self {
            categories,
            own,
            known,
            has_scripts: false,
            has_script_paths,
            has_thread_names: false,
            has_function_roots: false,
            has_own_scripts,
        };
        for (frame, name) in frames.iter() {
            let known = origins.classify(frames, frame, name);
            origins.known.push(known);
        }
        origins.has_scripts = origins.known.iter().any(|known| known.is_script && known.origin == Origin::Own);
        origins
    }

    /// Finds out whether the roots of stacks are names of threads or functions.
    ///
    /// They are names of threads if the start of a thread comes below one, and then no functions of the program, whatever
    /// they are called. They are functions if one is `main`, the start of a process or a function of a script, or if stacks of a
    /// single frame have much of the weight: threads have frames.
    pub(super) fn find_roots(&mut self, profile: &Profile) {
        let (mut single, mut total) = (0_u128, 0_u128);
        let (mut has_start, mut has_function) = (false, false);
        let _ = profile.for_each(|stack, weights| {
            let weight = weights.before.millionths().saturating_add(weights.after.millionths());
            total = total.saturating_add(weight);
            has_start |= stack.len() > 2 && (1..3).any(|index| self.is_start(stack[index]));
            let Some(root) = stack.first() else { return Ok::<(), ()>(()) };
            let known = &self.known[root.index()];
            has_function |=
                profile.frames.name(*root) == b"main" || known.calls == Calls::Start || known.has_script_file;
            let is_single = stack[1..].iter().all(|frame| self.origin(*frame) == Origin::Marker);
            if is_single && known.origin == Origin::Own {
                single = single.saturating_add(weight);
            }
            Ok(())
        });
        self.has_thread_names = has_start;
        let has_single = single > 0 && is_at_least(single, MIN_SINGLE, total);
        self.has_function_roots = !has_start && (has_function || has_single);
    }

    /// True if the roots of stacks are functions.
    pub(super) fn has_function_roots(&self) -> bool {
        self.has_function_roots
    }

    /// Returns the index of the first frame that may be a function.
    fn first_function(&self) -> usize {
        usize::from(self.has_thread_names)
    }

    /// Returns the origin of a frame by its name.
    pub(super) fn origin(&self, frame: FrameId) -> Origin {
        self.known[frame.index()].origin
    }

    /// True for functions that start a process or a thread.
    pub(super) fn is_start(&self, frame: FrameId) -> bool {
        self.known[frame.index()].calls == Calls::Start
    }

    /// True if a stack is that of a thread that was started, not of a process.
    pub(super) fn is_in_thread(&self, stack: &[FrameId]) -> bool {
        stack.iter().take(4).any(|frame| self.known[frame.index()].starts_thread)
    }

    /// Returns the index of the function among those below an own one that says most about the call. That is a function
    /// of a script; else the first that has a name and does more than pass the call on; else a library without symbols;
    /// else the first function of the C library or of the kernel.
    pub(super) fn callee(&self, below: &[FrameId]) -> Option<usize> {
        let known = below.iter().map(|frame| &self.known[frame.index()]);
        let open = known.clone().take_while(|known| known.calls != Calls::Closed).count();
        let script = known.clone().position(|known| self.has_scripts && known.has_script_file && !known.is_glue);
        script
            .or_else(|| known.clone().take(open).position(Known::is_function))
            .or_else(|| known.clone().take(open).position(|known| known.is_library_file))
            .or_else(|| self.system_call(below))
            .or_else(|| known.clone().position(|known| known.calls == Calls::Closed))
            .or_else(|| known.clone().position(|known| known.origin == Origin::Unknown))
            .or(below.len().checked_sub(1))
    }

    /// Returns the index of the function of a system call, if nothing but the kernel's entry comes before it.
    fn system_call(&self, below: &[FrameId]) -> Option<usize> {
        let entry = below.iter().position(|frame| self.known[frame.index()].calls == Calls::Closed)?;
        let known = |index: usize| &self.known[below[index].index()];
        let call = (entry..below.len()).find(|index| !known(*index).is_glue)?;
        (known(entry).is_glue && known(call).kind.starts_with(KERNEL)).then_some(call)
    }

    /// True for a function that has a name and does more than pass the call on.
    pub(super) fn says_something(&self, frame: FrameId) -> bool {
        self.known[frame.index()].is_function()
    }

    /// True for a function that calls nothing of the program.
    pub(super) fn is_closed(&self, frame: FrameId) -> bool {
        self.known[frame.index()].calls == Calls::Closed
    }

    /// True unless the function only runs others: it is part of an interpreter, or of the start of a thread.
    pub(super) fn is_function(&self, frame: FrameId) -> bool {
        let known = &self.known[frame.index()];
        known.has_script_file || (known.kind != INTERPRETER && matches!(known.calls, Calls::Any | Calls::Closed))
    }

    /// True for a function that runs those of an interpreted or managed language.
    pub(super) fn is_run_time(&self, frame: FrameId) -> bool {
        self.known[frame.index()].calls == Calls::Scripts
    }

    /// Finds the program's own code in a stack, root first.
    pub(super) fn place(&self, stack: &[FrameId]) -> Place<'a> {
        let mut place = Place { open: stack.len(), ..Place::default() };
        if self.own.is_some() {
            let own = stack.iter().rposition(|frame| self.origin(*frame) == Origin::Own);
            place.own = own.filter(|own| *own >= self.first_function());
            return place;
        }
        let mut is_managed = false;
        for (index, frame) in stack.iter().enumerate() {
            let known = &self.known[frame.index()];
            if index >= self.first_function() && is_own(known, is_managed) {
                place.own = Some(index);
            }
            match known.calls {
                Calls::Closed => {
                    place.open = index;
                    place.inside = Some(if known.kind.starts_with(KERNEL) { KERNEL } else { known.kind });
                    break;
                }
                Calls::Scripts if self.has_scripts => {
                    is_managed = true;
                    place.inside = Some(known.kind);
                }
                Calls::Scripts => place.is_without_scripts = true,
                Calls::Any if known.has_script_file => {
                    is_managed = true;
                    place.inside = Some(INTERPRETER);
                }
                Calls::Any | Calls::Start => {}
            }
        }
        place
    }

    /// Returns for each function of a stack, outside of closed code, true if it is the program's own.
    pub(super) fn find_own(&self, stack: &[FrameId]) -> Vec<bool> {
        let may_be_managed = self.own.is_none() && self.has_scripts;
        let mut is_managed = false;
        let own = stack.iter().enumerate().map(|(index, frame)| {
            let known = &self.known[frame.index()];
            let is_own = index >= self.first_function() && is_own(known, is_managed);
            is_managed |= may_be_managed && (known.calls == Calls::Scripts || known.has_script_file);
            is_own
        });
        own.collect()
    }

    /// Returns the kind of code of a stack's leaf: `own code`, `libraries`, or a category.
    pub(super) fn kind(&self, leaf: FrameId, place: &Place<'a>, is_own: bool) -> &'a str {
        let Known { kind, origin, .. } = self.known[leaf.index()];
        match place.inside {
            // A thread state says more than where the thread waits.
            _ if origin == Origin::Marker && kind != OTHER => kind,
            Some(KERNEL) if !kind.starts_with(KERNEL) => KERNEL,
            Some(inside) if kind == OWN_CODE && !is_own => inside,
            _ => kind,
        }
    }

    fn classify(&mut self, frames: &Frames, frame: FrameId, name: &[u8]) -> Known<'a> {
        let is_kernel = name.ends_with(markers::KERNEL);
        // Code that was compiled just in time or inlined is the program's own or a library's like any other.
        let plain = if is_kernel { name } else { markers::strip_suffix(name) };
        let category = self.categories.categorize(if markers::is_marker(name) { name } else { plain });
        if markers::is_thread_state(name) || name == markers::LOST || name == markers::TRUNCATED {
            return Known::native(Origin::Marker, category);
        }
        if markers::is_without_symbol(name) {
            let is_library_file = LIBRARY_FILES.is_match(plain) && !COMMON_FILES.is_match(plain);
            return Known { is_library_file, ..Known::native(Origin::Unknown, "unknown") };
        }
        let is_library = match find_origin(plain) {
            Some(SourceOrigin::StandardLibrary) => true,
            Some(SourceOrigin::Package(_)) => self.has_own_scripts || LIBRARIES.is_match(plain),
            // The name of a script's function may begin like those of a library in C: `git_version (app.py)`.
            Some(SourceOrigin::Own(_)) => self.has_script_paths && source(plain).is_some_and(is_python_module),
            None => LIBRARIES.is_match(plain),
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
            () if is_kernel || category == "allocator" || CLOSED.is_match(plain) => Calls::Closed,
            () if START.is_match(plain) => Calls::Start,
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
        Known { origin, kind, calls, is_script, has_script_file, is_glue, starts_thread, is_library_file: false }
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

/// True if a function is the program's own. Below the entry of an interpreter, only functions of scripts are.
fn is_own(known: &Known<'_>, is_managed: bool) -> bool {
    known.origin == Origin::Own && (known.is_script || !is_managed)
}

#[cfg(test)]
mod tests;
