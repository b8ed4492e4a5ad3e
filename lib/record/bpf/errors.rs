//! The reasons why the kernel refuses a BPF program.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::record::errors::open_file_limit;

/// The error of a step of loading a program.
pub(in crate::record) type BoxError = Box<dyn StdError>;

/// The reason why a program could not be loaded or attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::record) enum Refusal {
    /// The kernel does not describe its types, by which programs find fields.
    NoTypeInformation,
    /// We lack the capabilities.
    NoPermission,
    /// The recorder is in a PID namespace: process IDs are others for BPF programs.
    InPidNamespace,
    /// The limit of open files is too low.
    TooManyFiles,
    /// The kernel rejects the program, with this message.
    Rejected(String),
}

/// The inode of the initial PID namespace (`PROC_PID_INIT_INO` of the kernel).
const INITIAL_PID_NAMESPACE: u64 = 0xefff_fffc;

impl Refusal {
    /// Checks that processes have the same IDs for us as for BPF programs.
    pub(in crate::record) fn check_pid_namespace() -> Result<(), Self> {
        let namespace = std::fs::metadata("/proc/self/ns/pid").map(|file| file.ino());
        // Unknown is that of a system without /proc, where nothing can be recorded.
        namespace
            .map_or(Ok(()), |inode| if inode == INITIAL_PID_NAMESPACE { Ok(()) } else { Err(Self::InPidNamespace) })
    }

    /// Finds the reason among the causes of an error.
    pub(in crate::record) fn from_error<'a>(error: &'a (dyn StdError + 'static)) -> Self {
        let message = causes(error).map(ToString::to_string).collect::<Vec<String>>().join(": ");
        match system_code(error) {
            _ if !Path::new("/sys/kernel/btf/vmlinux").exists() => Self::NoTypeInformation,
            // The verifier refuses programs with EACCES, too.
            Some(libc::EPERM | libc::EACCES) if !message.contains("Verifier output: ") => Self::NoPermission,
            Some(libc::EMFILE) => Self::TooManyFiles,
            _ => Self::Rejected(summarize(&message)),
        }
    }
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

fn system_code(error: &(dyn StdError + 'static)) -> Option<i32> {
    causes(error).find_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error())
}

/// The number of times that a program is loaded, as in libbpf.
const LOAD_ATTEMPTS: usize = 5;

/// Loads a program again if a signal, such as that of a shell that continues us, ended the kernel's check of it.
pub(in crate::record) fn repeat_if_interrupted<T>(load: impl Fn() -> Result<T, BoxError>) -> Result<T, BoxError> {
    for _ in 1..LOAD_ATTEMPTS {
        match load() {
            Err(error) if system_code(&*error) == Some(libc::EAGAIN) => {}
            result => return result,
        }
    }
    load()
}

/// The starts of lines that follow the reason in the verifier's output.
const STATISTICS: [&str; 4] = ["processed ", "verification time ", "stack depth ", ": "];

/// Returns the first line of a message. If the verifier's output follows: the function, the instruction, and the reason.
fn summarize(message: &str) -> String {
    let (first, log) = message.split_once("Verifier output: ").unwrap_or((message, ""));
    let first = first.lines().next().unwrap_or_default().trim_end().to_owned();
    // Statistics follow the reason.
    let lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.filter(|line| !STATISTICS.iter().any(|start| line.starts_with(start))).collect();
    let function = lines.iter().rfind(|line| line.starts_with("Validating ")).copied();
    let end = lines.iter().rev().take(2).rev().copied();
    function.into_iter().chain(end).fold(first, |message, line| format!("{message}; {line}"))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTypeInformation => f.write_str("this kernel has no type information (CONFIG_DEBUG_INFO_BTF)"),
            Self::NoPermission => f.write_str("BPF needs root, or CAP_BPF and CAP_PERFMON"),
            Self::InPidNamespace => {
                f.write_str("BPF needs the PID namespace of the host, as docker --pid=host gives it")
            }
            Self::TooManyFiles => {
                write!(f, "the limit of open files is {}, too low for BPF; raise it (ulimit -n)", open_file_limit())
            }
            Self::Rejected(message) => write!(f, "this kernel rejects the BPF program: {message}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io;

    use super::{LOAD_ATTEMPTS, repeat_if_interrupted, summarize};

    #[test]
    fn loads_again_what_a_signal_interrupted() {
        let (left, calls) = (Cell::new(0), Cell::new(0));
        let load = |code: i32| {
            calls.set(calls.get() + 1);
            left.set(left.get() - 1);
            if left.get() < 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code).into()) }
        };
        for (failures, code, expected) in
            [(2, libc::EAGAIN, (true, 3)), (1, libc::EPERM, (false, 1)), (9, libc::EAGAIN, (false, LOAD_ATTEMPTS))]
        {
            left.set(failures);
            calls.set(0);
            let result = repeat_if_interrupted(|| load(code));
            assert_eq!((result.is_ok(), calls.get()), expected);
        }
    }

    #[test]
    fn a_rejection_names_the_function_and_the_reason() {
        let log = "the syscall returned EACCES. Verifier output: Func#1 is safe\nValidating step() func#2...\n0: r1 = 0\n\
                   7: r1 = *(u8 *)(r2 +9)\nR2 invalid mem access 'scalar'\n\
                   processed 156151 insns (limit 1000000) max_states_per_insn 4\n: Permission denied (os error 13)\n";
        assert_eq!(
            summarize(log),
            "the syscall returned EACCES.; Validating step() func#2...; 7: r1 = *(u8 *)(r2 +9); \
             R2 invalid mem access 'scalar'"
        );
        assert_eq!(summarize("no such map\nmore"), "no such map");
    }
}
