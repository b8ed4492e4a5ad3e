//! The threads that a counter counts, and the system call that opens it.

use std::fs::File;
use std::io;

use perf_event_open::config::{Cgroup, Cpu, Opts, Proc};
use perf_event_open::count::Counter;

/// The threads that a counter counts.
#[derive(Clone, Copy)]
pub(super) enum Scope<'a> {
    System,
    Cgroup(&'a File),
    /// A thread, and all threads and processes that it creates.
    TaskAndChildren(u32),
    /// A thread whose siblings have counters of their own.
    Thread(u32),
}

impl Scope<'_> {
    /// Returns the thread that has counters of its own.
    pub(super) fn owner(self) -> Option<u32> {
        if let Self::Thread(tid) = self { Some(tid) } else { None }
    }

    /// True if it selects threads, false if it selects what runs on a CPU.
    pub(super) fn is_of_threads(self) -> bool {
        matches!(self, Self::TaskAndChildren(_) | Self::Thread(_))
    }
}

/// Opens a counter of an event on a CPU.
pub(super) fn open_counter(
    event: impl TryInto<perf_event_open::event::Event, Error = io::Error> + Clone,
    scope: Scope<'_>,
    cpu: u32,
    options: &mut Opts,
) -> io::Result<Counter> {
    match open_with(event.clone(), scope, cpu, options) {
        // Before Linux 6.0 a counter cannot report the records that it lost.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) && options.stat_format.lost_records => {
            options.stat_format.lost_records = false;
            open_with(event, scope, cpu, options)
        }
        result => result,
    }
}

fn open_with(
    event: impl TryInto<perf_event_open::event::Event, Error = io::Error>,
    scope: Scope<'_>,
    cpu: u32,
    options: &Opts,
) -> io::Result<Counter> {
    match scope {
        Scope::System => Counter::new(event, (Proc::ALL, Cpu(cpu)), options),
        Scope::Cgroup(directory) => Counter::new(event, (Cgroup(directory), Cpu(cpu)), options),
        Scope::TaskAndChildren(task) | Scope::Thread(task) => Counter::new(event, (Proc(task), Cpu(cpu)), options),
    }
}
