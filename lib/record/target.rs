//! The command, processes, threads, cgroup or system that a recording samples.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::process_table::{ProcessTable, TreeScan};
use super::procfs;
use crate::bytes::read_lossy;
use crate::{Error, io_error_text};

/// The processes whose events are counted.
#[derive(Debug)]
pub enum Target {
    /// A process that is about to run a program, and its children.
    Command(u32),
    /// Running processes, their threads, and the children that they create from now on.
    Processes {
        /// The IDs of the processes that are named.
        pids: Vec<u32>,
        /// True if the descendants that they have already are recorded too.
        subprocesses: bool,
    },
    /// Running threads, without the threads and processes that they create.
    Threads(Vec<u32>),
    /// The processes of a cgroup, given by its open directory.
    Cgroup(File),
    /// All processes, on all CPUs.
    System,
}

impl Target {
    /// True if threads and processes that the target creates are recorded too.
    pub fn includes_children(&self) -> bool {
        !matches!(self, Self::Threads(_))
    }

    /// True if each thread that already runs gets counters of its own, beside the counters of other threads.
    pub(super) fn is_per_thread(&self) -> bool {
        matches!(self, Self::Threads(_) | Self::Processes { .. })
    }

    /// True if it consists of processes or threads that are named, and what they create.
    pub(super) fn is_followed(&self) -> bool {
        !matches!(self, Self::Cgroup(_) | Self::System)
    }

    /// True if samples refer to the mappings and threads of some processes only, which have to be followed: those of
    /// [`Target::running_processes`], and their children. Of a command only its own processes are reported.
    pub(super) fn has_followed_processes(&self) -> bool {
        self.is_per_thread()
    }

    /// Returns the target's processes that run now, as far as they exist: all for a cgroup, whose processes are not
    /// listed. A command has none yet.
    pub(super) fn running_processes(&self) -> Vec<u32> {
        match self {
            Self::Command(_) => Vec::new(),
            Self::Processes { pids, subprocesses: false } => pids.clone(),
            Self::Processes { pids, subprocesses: true } => ProcessTable::read().descendants_and_self(pids),
            Self::Threads(tids) => tids.iter().filter_map(|tid| find_process(*tid).ok()).collect(),
            Self::Cgroup(_) | Self::System => procfs::list_processes(),
        }
    }

    /// Calls `attach` with the ID of each process that the target names, and of their descendants if those are recorded.
    ///
    /// `attach` must make the later children of a process part of the recording. Other children are found by listing processes
    /// again, until none is new.
    ///
    /// # Errors
    /// The first error of `attach`.
    pub(super) fn attach_to_processes<E>(&self, mut attach: impl FnMut(u32) -> Result<(), E>) -> Result<(), E> {
        let Self::Processes { pids, subprocesses } = self else { return Ok(()) };
        if !subprocesses {
            return pids.iter().try_for_each(|pid| attach(*pid));
        }
        let mut scan = TreeScan::new(pids);
        loop {
            let missing = scan.find_missing(&ProcessTable::read());
            if missing.is_empty() {
                return Ok(());
            }
            for pid in missing {
                attach(pid)?;
                scan.note_attached(pid);
            }
        }
    }

    /// Returns the target's threads that already run. A command has none yet, and those of a cgroup are not listed.
    pub fn running_threads(&self) -> Vec<u32> {
        match self {
            Self::Command(_) | Self::Cgroup(_) => Vec::new(),
            Self::Processes { .. } | Self::System => list_all_threads(&self.running_processes()),
            Self::Threads(tids) => tids.clone(),
        }
    }
}

fn list_all_threads(pids: &[u32]) -> Vec<u32> {
    pids.iter().flat_map(|pid| procfs::list_threads(*pid).unwrap_or_default()).collect()
}

/// Returns the process that a thread belongs to.
///
/// # Errors
/// [`Error::Invalid`] if the thread does not exist, [`Error::System`] if `/proc` cannot be read.
pub fn find_process(tid: u32) -> Result<u32, Error> {
    let process = procfs::thread_group(tid).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => no_such_thread(tid),
        _ => Error::System(format!("-t {tid}: {}", io_error_text(&error))),
    })?;
    process.ok_or_else(|| no_such_thread(tid))
}

/// Checks that a thread exists and has not exited, and returns the process that it belongs to.
///
/// # Errors
/// [`Error::Invalid`] if there is no such thread, or if it has exited, [`Error::System`] if `/proc` cannot be read.
pub fn check_thread(tid: u32) -> Result<u32, Error> {
    let process = find_process(tid)?;
    match procfs::is_exiting(tid) {
        true => Err(Error::Invalid(format!("-t {tid}: the thread has exited"))),
        false => Ok(process),
    }
}

fn no_such_thread(tid: u32) -> Error {
    Error::Invalid(format!("-t {tid}: no such thread"))
}

/// Checks that a process exists, and that the number is not the ID of another of its threads. A counter of such a
/// thread would count that thread alone, while its samples would name the process.
///
/// # Errors
/// [`Error::Invalid`] if there is no such process, or if it has exited, [`Error::System`] if `/proc` cannot be read.
pub fn check_process(pid: u32) -> Result<(), Error> {
    let process = procfs::thread_group(pid).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Invalid(format!("-p {pid}: no such process")),
        _ => Error::System(format!("-p {pid}: {}", io_error_text(&error))),
    })?;
    match process {
        Some(process) if process != pid => Err(Error::Invalid(format!(
            "-p {pid} is a thread of process {}; use -p {process}, or -t {pid}",
            describe_process(process)
        ))),
        _ if has_exited(pid) => {
            Err(Error::Invalid(format!("-p {pid}: the process has exited, and its parent has not waited for it")))
        }
        _ => Ok(()),
    }
}

/// True for a zombie: a process whose threads have all exited.
fn has_exited(pid: u32) -> bool {
    procfs::list_threads(pid).is_ok_and(|threads| threads.into_iter().all(procfs::is_exiting))
}

/// Opens the directory of a cgroup, which is named by its path below the root of its hierarchy or by its full path.
///
/// # Errors
/// [`Error::Invalid`] if there is no such cgroup, [`Error::System`] if it cannot be opened.
pub fn open_cgroup(path: &Path) -> Result<File, Error> {
    let Some(directory) = find_cgroup(path) else {
        return Err(Error::Invalid(format!(
            "--cgroup {}: no such cgroup; name a directory below /sys/fs/cgroup",
            path.display()
        )));
    };
    File::open(&directory).map_err(|error| Error::System(format!("{}: {}", directory.display(), io_error_text(&error))))
}

fn find_cgroup(path: &Path) -> Option<PathBuf> {
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified"];
    let relative = path.strip_prefix("/").unwrap_or(path);
    let candidates = roots.iter().map(|root| Path::new(root).join(relative)).chain([path.to_owned()]);
    candidates.into_iter().find(|directory| directory.join("cgroup.procs").exists())
}

/// Describes a process in a message: its ID, program and owner.
pub fn describe_process(pid: u32) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let comm = read_lossy(format!("/proc/{pid}/comm")).unwrap_or_default();
    let owner = fs::metadata(format!("/proc/{pid}")).map_or(0, |metadata| metadata.uid());
    format!("{pid} ({}, owned by uid {owner})", comm.trim_end())
}
