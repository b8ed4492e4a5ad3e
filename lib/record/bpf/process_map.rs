//! Maps of the BPF program with what is only there for some processes.

use aya::Ebpf;
use aya::maps::{HashMap, MapData};
use rustc_hash::FxHashSet;

use super::maps::take_map;

/// A map with an entry for some processes. The program copies it for new processes, and removes it at execve.
pub(super) struct ProcessMap<T: aya::Pod> {
    map: HashMap<MapData, u32, T>,
    /// The processes that may be in the map.
    processes: FxHashSet<u32>,
}

impl<T: aya::Pod> ProcessMap<T> {
    /// Takes the map out of a loaded program.
    pub(super) fn take(program: &mut Ebpf, name: &str) -> Result<Self, Box<dyn std::error::Error>> {
        Ok(Self { map: take_map(program, name)?.try_into()?, processes: FxHashSet::default() })
    }

    /// Notes a new process, which has what its parent has.
    pub(super) fn note_fork(&mut self, pid: u32, parent: u32) {
        if self.processes.contains(&parent) {
            self.processes.insert(pid);
        }
    }

    /// Sets or removes the entry of a process.
    pub(super) fn set(&mut self, pid: u32, value: Option<T>) {
        match value {
            Some(value) if self.map.insert(pid, value, 0).is_ok() => drop(self.processes.insert(pid)),
            // The program may have removed it.
            _ if self.processes.remove(&pid) => drop(self.map.remove(&pid)),
            _ => {}
        }
    }
}
