//! The kinds of work that libraries and the kernel do for a function: sleep, lock, allocation, sorting, …

use std::sync::LazyLock;

use regex::bytes::RegexSet;

use crate::markers;
use crate::pattern_list::compile;
use crate::profile::{FrameId, Frames};
use crate::symbol_name::inherent::without_type_brackets;
use crate::symbol_name::module::split_module;

/// The list of kinds.
const LIST: &str = include_str!("work.txt");

/// The kinds of the list.
static KINDS: LazyLock<Kinds> = LazyLock::new(Kinds::parse);

struct Kinds {
    names: Vec<&'static str>,
    /// The number of kinds at the start of the list that are system calls and waits.
    kernel: usize,
    /// The number of kinds at the start of the list that count wherever they are.
    anywhere: usize,
    patterns: RegexSet,
}

impl Kinds {
    fn parse() -> Self {
        let (mut names, mut patterns, mut kernel, mut anywhere) = (Vec::new(), Vec::new(), 0, 0);
        for line in LIST.lines() {
            match line {
                "= runtime" => kernel = names.len(),
                "= library" => anywhere = names.len(),
                _ => {}
            }
            if let Some((name, pattern)) = line.split_once("  ").filter(|_| !line.starts_with(['#', '='])) {
                names.push(name);
                patterns.push(pattern);
            }
        }
        Self { names, kernel, anywhere, patterns: compile(patterns) }
    }
}

/// Functions of Python, and the interpreter.
static PYTHON: LazyLock<RegexSet> = LazyLock::new(|| compile([r"\.py\)$|^py::", r"^\[(lib)?python3|^_?PyEval_"]));

/// The kind of waits for a condition.
const CONDITION: &str = "condition";

/// The kind of waits for the lock of an interpreter.
const INTERPRETER_LOCK: &str = "interpreter lock";

/// The kinds of work that libraries do on the way to another.
const INNER_KINDS: [&str; 2] = [ALLOCATION, "copying"];

/// The kind of the work of allocators.
const ALLOCATION: &str = "allocation";

/// Kinds of work that the kernel does for allocators.
const MEMORY_KINDS: [&str; 2] = ["page faults", "mapping memory"];

/// The kinds of all frames of a profile.
pub(super) struct Work {
    /// The index of the kind of each frame.
    kinds: Vec<Option<u16>>,
    /// True for each function of Python.
    is_python: Vec<bool>,
    /// True for each frame of Python's interpreter.
    is_interpreter: Vec<bool>,
}

impl Work {
    /// Finds the kind of each frame by its name.
    pub(super) fn new(frames: &Frames) -> Self {
        let names: Vec<&[u8]> = frames.iter().map(|(_, name)| name).collect();
        let kinds = names.iter().map(|name| {
            let function = without_type_brackets(split_module(markers::strip_suffix(name)).1);
            let kind = KINDS.patterns.matches(&function).iter().next();
            kind.and_then(|kind| u16::try_from(kind).ok())
        });
        Self {
            kinds: kinds.collect(),
            is_python: names.iter().map(|name| PYTHON.matches(name).matched(0)).collect(),
            is_interpreter: names.iter().map(|name| PYTHON.matches(name).matched(1)).collect(),
        }
    }

    /// True for a kind that is a wait or a system call.
    pub(super) fn is_kernel(kind: &str) -> bool {
        KINDS.names[..KINDS.kernel].contains(&kind)
    }

    /// Returns the kind of work of the functions below an own one: that of a system call or wait if there is one, else that of
    /// a runtime's work such as exceptions, else that of the outermost function that has a kind.
    pub(super) fn kind(&self, own: FrameId, below: &[FrameId]) -> Option<&'static str> {
        let mut kinds = below.iter().filter_map(|frame| self.kinds[frame.index()].map(usize::from));
        let anywhere = kinds.clone().filter(|kind| *kind < KINDS.anywhere).min();
        let kind = anywhere.or_else(|| kinds.next()).map(|kind| KINDS.names[kind])?;
        Some(if kind == CONDITION && self.waits_for_interpreter(own, below) { INTERPRETER_LOCK } else { kind })
    }

    /// Returns the kind of the work that these functions do on the way to work of another kind: allocation, or copying. What the
    /// kernel copies is part of its work.
    pub(super) fn inner_kind(&self, kind: &str, below: &[FrameId]) -> Option<&'static str> {
        let kinds = below.iter().rev().filter_map(|frame| self.kinds[frame.index()]);
        let mut kinds = kinds.map(|kind| KINDS.names[usize::from(kind)]);
        let inner = kinds.find(|inner| INNER_KINDS.contains(inner)).filter(|inner| *inner != kind)?;
        (!Self::is_kernel(kind) || (inner == ALLOCATION && MEMORY_KINDS.contains(&kind))).then_some(inner)
    }

    /// True for a wait of Python's interpreter itself. The only condition that it waits for is that of its lock: locks of
    /// programs are semaphores.
    fn waits_for_interpreter(&self, own: FrameId, below: &[FrameId]) -> bool {
        let is_wait =
            |frame: &FrameId| self.kinds[frame.index()].is_some_and(|kind| KINDS.names[usize::from(kind)] == CONDITION);
        let mut before = below.iter().take_while(|frame| !is_wait(frame));
        self.is_python[own.index()] && before.all(|frame| self.is_interpreter[frame.index()])
    }
}

#[cfg(test)]
mod tests {
    use super::{KINDS, Work};
    use crate::profile::{FrameId, Frames};

    fn kind(stack: &str) -> &'static str {
        kind_below("main", stack)
    }

    fn kind_below(own: &str, stack: &str) -> &'static str {
        let mut frames = Frames::new();
        let own = frames.intern(own.as_bytes());
        let stack: Vec<FrameId> = stack.split(';').map(|name| frames.intern(name.as_bytes())).collect();
        Work::new(&frames).kind(own, &stack).unwrap_or("-")
    }

    #[test]
    fn kinds_are_told_by_the_functions_below() {
        for (stack, expected) in [
            ("__nanosleep;clock_nanosleep;entry_SYSCALL_64_after_hwframe;__x64_sys_clock_nanosleep", "sleep"),
            ("pthread_mutex_lock;__GI___lll_lock_wait;futex_wait;__x64_sys_futex", "lock"),
            ("__GI___pthread_mutex_unlock_usercnt;__GI___lll_lock_wake;__x64_sys_futex", "futex"),
            ("__pthread_cond_wait_common;__futex_abstimed_wait_common;do_futex", "condition"),
            ("fdatasync;__x64_sys_fdatasync;do_fsync", "file sync"),
            ("read;entry_SYSCALL_64_after_hwframe;ksys_read;vfs_read;anon_pipe_read", "pipe read"),
            (
                "__nanosleep;clock_nanosleep;exit_to_user_mode_loop;get_signal;do_signal_stop",
                "stopped (signal or debugger)",
            ),
            ("read;ksys_read;vfs_read;filemap_read;exc_page_fault", "read calls"),
            ("asm_exc_page_fault;exc_page_fault;handle_mm_fault", "page faults"),
            ("__memmove_avx512_unaligned_erms", "copying"),
            ("malloc;_int_malloc;sysmalloc;__x64_sys_brk", "mapping memory"),
            ("operator new;malloc", "allocation"),
            ("java.lang.String.format;java.util.Formatter.format;_new_array_Java", "string formatting"),
            ("regexp.MustCompile;regexp.compile;runtime.newobject", "regex compilation"),
            ("Builtins_RegExpPrototypeTestFast;v8::internal::Runtime_RegExpExec", "regex matching"),
            ("__cxa_throw;_Unwind_RaiseException;[libgcc_s.so.1]", "exceptions"),
            ("[python3.11];deflate;[libz.so.1.2.13]", "compression"),
            ("[_sqlite3.cpython-311-x86_64-linux-gnu.so];sqlite3_step", "database"),
            ("java.lang.Integer.parseInt;java.lang.Throwable.fillInStackTrace", "exceptions"),
            ("usort (php)", "sorting"),
            ("_strptime_datetime (_strptime.py)", "dates and times"),
            ("runtime.newobject;runtime.mallocgc", "allocation"),
            ("std::map::operator[];std::_Rb_tree::find", "maps and sets"),
            ("ring::digest::digest", "hashing or encryption"),
            ("golang.org/x/crypto/blake2b.hashBlocks", "hashing or encryption"),
            ("v8::internal::Builtin_JsonParse;v8::internal::JsonParser::Parse", "JSON parsing"),
            ("loads (json/__init__.py);raw_decode (json/decoder.py)", "JSON parsing"),
            ("dumps (json/__init__.py)", "JSON writing"),
            ("serde_json::to_string;serde_json::ser::write", "JSON writing"),
            (
                "alloc::fmt::format;core::fmt::write;<core::fmt::builders::DebugStruct>::field",
                "formatting for debugging",
            ),
            ("alloc::fmt::format;core::fmt::write", "string formatting"),
            ("RegExp (v8);v8::internal::JSRegExp::Initialize", "regex compilation"),
            ("std::__atomic_base::load", "atomic operations"),
            ("<regex::regex::string::Regex>::new", "regex compilation"),
            ("<alloc::collections::btree::map::BTreeMap<u64, u64>>::insert", "maps and sets"),
            ("java.lang.Class.getMethods;java.lang.Class.copyMethods", "reflection"),
            ("__isoc99_sscanf;__vfscanf_internal", "number conversion"),
            ("pysqlite_connection_execute", "database"),
            ("join (threading.py);lock_PyThread_acquire_lock;PyThread_acquire_lock_timed", "thread join"),
            ("bstring::find", "-"),
            ("_GLOBAL__sub_I_main", "-"),
        ] {
            assert_eq!(kind(stack), expected, "{stack}");
        }
    }

    #[test]
    fn waits_of_pythons_interpreter_are_for_its_lock() {
        let wait = "[python3.11];pthread_cond_timedwait;__pthread_cond_wait_common";
        assert_eq!(kind_below("crunch (/srv/a.py)", wait), "interpreter lock");
        assert_eq!(kind_below("crunch", wait), "condition");
        assert_eq!(kind_below("crunch (/srv/a.py)", &format!("[libblas.so.3];{wait}")), "condition");
    }

    fn inner(kind: &str, stack: &str) -> &'static str {
        let mut frames = Frames::new();
        let stack: Vec<FrameId> = stack.split(';').map(|name| frames.intern(name.as_bytes())).collect();
        Work::new(&frames).inner_kind(kind, &stack).unwrap_or("-")
    }

    #[test]
    fn allocation_and_copying_count_for_the_work_that_they_are_part_of() {
        assert_eq!(inner("maps and sets", "std::map::clear;cfree;_int_free"), "allocation");
        assert_eq!(inner("page faults", "malloc;sysmalloc;asm_exc_page_fault"), "allocation");
        assert_eq!(inner("string building", "std::string::append;memcpy"), "copying");
        assert_eq!(inner("copying", "memcpy"), "-");
        assert_eq!(inner("events", "poll;__x64_sys_poll;_copy_from_user"), "-");
    }

    #[test]
    fn the_list_has_both_parts() {
        assert!(KINDS.kernel > 10 && KINDS.names.len() > KINDS.kernel + 20);
    }
}
