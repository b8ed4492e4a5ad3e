//! Side-band counters of the target's threads, beside counters that count on CPUs.
//!
//! The kernel writes no records of other processes then, which would wake the recorder. The threads that run have counters of
//! their own, those that they create inherit them, as with `perf record -p`. The counters of CPUs that own the rings stay
//! disabled. If there are too many threads, these count instead, and report the records of all processes.
//!
//! A thread may be missed in two ways, for which it is attached to later ([`Counters::attach_sideband`]): it was being created
//! while its creator was attached to, or the kernel has taken its counters away at the execve of a set-user-ID program.

use std::io;

use perf_event_open::config::{Inherit, OnExecve, Opts};
use perf_event_open::count::Counter;
use perf_event_open::event::sw::Software;
use rustc_hash::FxHashSet;
use rustix::process::{Resource, getrlimit};

use super::scope::{Scope, open_counter};
use super::{Counters, CpuRings};
use crate::record::target::Target;
use crate::record::{procfs, sys};

/// The largest number of counters of threads. Each is a file, and is inherited by each new thread.
///
/// With 8,000 of them (4,000 threads that sleep, two CPUs), `fg-record -q -d 0.1 -p` takes .85 to 1.15 s instead of .42 to .63, and
/// .45 s of CPU instead of .19. Without them (`ulimit -n 1000`), the records of all processes are read.
const MAX_COUNTERS: usize = 16_384;

/// The side-band counters of threads.
pub(super) struct ThreadSideband {
    options: Opts,
    /// The threads that have counters of their own.
    threads: FxHashSet<u32>,
    /// Their counters, which write into the rings of their CPUs.
    counters: Vec<Counter>,
    /// The largest number of these counters: other files need to be opened too.
    max_counters: usize,
    /// True if the counters that own the rings are not used.
    replaces_cpus: bool,
}

impl ThreadSideband {
    /// Creates a set without counters. `options` are those of the counters that own the rings.
    pub(super) fn new(target: &Target, mut options: Opts, replaces_cpus: bool) -> Self {
        // Any thread of a process changes the mappings that samples of the others refer to.
        options.inherit = Some(if target.includes_children() { Inherit::NewChild } else { Inherit::NewThread });
        options.on_execve = None::<OnExecve>;
        let files = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize);
        let max_counters = MAX_COUNTERS.min(files / 2);
        Self { options, threads: FxHashSet::default(), counters: Vec::new(), max_counters, replaces_cpus }
    }

    pub(super) fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Opens and enables counters of a thread, on each CPU.
    fn attach(&mut self, tid: u32, rings: &[CpuRings]) -> io::Result<()> {
        // Where the counters that own the rings count the CPU time of threads, these take their place.
        let event = if self.replaces_cpus { Software::Dummy } else { Software::TaskClock };
        for rings in rings {
            let ring = &rings.sideband;
            let counter = match open_counter(event, Scope::Thread(tid), ring.cpu, &mut self.options) {
                // The thread has exited in the meantime.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
                result => result?,
            };
            sys::share_ring(counter.file(), ring.file())?;
            counter.enable()?;
            self.counters.push(counter);
            if self.counters.len() > self.max_counters {
                return Err(io::Error::from_raw_os_error(libc::EMFILE));
            }
        }
        Ok(())
    }
}

impl Counters {
    /// Enables the counters of side-band records, unless the command's exec does. Returns the threads that have counters of
    /// their own for these records alone.
    ///
    /// # Errors
    /// Errors of the system call.
    pub fn enable_sideband(&mut self, target: &Target) -> io::Result<Vec<u32>> {
        if self.replaces_cpu_sideband() {
            let mut threads = Vec::new();
            let attached = match target {
                Target::Threads(tids) => {
                    let pids: FxHashSet<u32> = tids.iter().filter_map(|tid| procfs::thread_group(*tid).ok()?).collect();
                    pids.into_iter().try_for_each(|pid| self.attach_sideband(pid).map(|new| threads.extend(new)))
                }
                _ => target.attach_to_processes(|pid| self.attach_sideband(pid).map(|new| threads.extend(new))),
            };
            match attached {
                Ok(()) => return Ok(threads),
                Err(_) => self.thread_sideband = None,
            }
        }
        self.enable_sideband_of_rings()?;
        Ok(Vec::new())
    }

    /// True if side-band records come from counters of threads, and not from those that own the rings.
    pub(super) fn replaces_cpu_sideband(&self) -> bool {
        self.thread_sideband.as_ref().is_some_and(|sideband| sideband.replaces_cpus)
    }

    fn enable_sideband_of_rings(&self) -> io::Result<()> {
        self.all().filter(|counter| self.is_sideband(counter)).try_for_each(|counter| self.enable_counter(counter))
    }

    /// Opens side-band counters of the threads of a process that have none of their own, and enables them. Returns the IDs of these
    /// threads.
    ///
    /// # Errors
    /// Errors of the system calls.
    pub fn attach_sideband(&mut self, pid: u32) -> io::Result<Vec<u32>> {
        let Some(sideband) = &mut self.thread_sideband else { return Ok(Vec::new()) };
        let mut attached = Vec::new();
        loop {
            let threads = procfs::list_threads(pid).unwrap_or_default();
            let new: Vec<u32> = threads.into_iter().filter(|tid| sideband.threads.insert(*tid)).collect();
            if new.is_empty() {
                return Ok(attached);
            }
            for tid in new {
                sideband.attach(tid, &self.rings)?;
                attached.push(tid);
            }
        }
    }

    /// Opens side-band counters of a process again, one of whose threads has none, or has lost those that it had. If that fails,
    /// the counters of CPUs report the records of all processes from now on.
    ///
    /// # Errors
    /// Errors of the system calls.
    pub fn attach_sideband_again(&mut self, pid: u32, tid: u32) -> io::Result<Vec<u32>> {
        if let Some(sideband) = &mut self.thread_sideband {
            sideband.threads.remove(&tid);
        }
        let attached = self.attach_sideband(pid);
        if attached.is_err() && self.replaces_cpu_sideband() {
            self.thread_sideband = None;
            self.enable_sideband_of_rings()?;
            return Ok(Vec::new());
        }
        attached
    }
}
