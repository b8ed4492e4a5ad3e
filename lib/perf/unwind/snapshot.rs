//! A process at a point in time.

use super::code::RunningProcesses;
use crate::perf::cfi::CfiTable;
use crate::perf::event::Address;
use crate::perf::mappings::Mapping;
use crate::perf::objects::registry::Objects;
use crate::perf::process::Processes;

/// A process at the time of a sample, and what is known about it then.
#[derive(Clone, Copy, Debug)]
pub struct ProcessSnapshot<'a> {
    /// The process ID.
    pub pid: u32,
    /// The time of the sample.
    pub time: u64,
    /// The mappings of all processes.
    pub processes: &'a Processes,
    /// The objects that are mapped.
    pub objects: &'a Objects,
    /// Reads from the process; `None` if it does not run.
    pub running: Option<RunningProcesses>,
}

impl<'a> ProcessSnapshot<'a> {
    /// Returns what is mapped at an address.
    pub(super) fn find_mapping(&self, address: Address) -> Option<Mapping> {
        self.processes.find(self.pid, address.lookup(), self.time)
    }

    /// Returns the unwind information of JIT code at an address, if the compiler wrote it to its jitdump.
    pub(super) fn find_jit_cfi(&self, address: u64) -> Option<&'a CfiTable> {
        self.objects.jit_code.jitdump(self.pid)?.find(address, self.time)?.cfi()
    }
}
