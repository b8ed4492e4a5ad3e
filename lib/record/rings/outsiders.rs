//! Threads that are not recorded, but wake those that are. No side-band records tell their names and mappings: the BPF program
//! sends the name with each wake-up, and the mappings are read again when the process runs another program.

use rustc_hash::FxHashMap;

use crate::perf::event::{Event, Stamp};
use crate::perf::recording::Recording;
use crate::record::bpf::StackSampler;
use crate::record::event_record::EventRecord;
use crate::record::procfs;

/// At most this many processes are remembered.
const MAX_PROCESSES: usize = 1 << 16;

/// The programs of processes whose side-band records are not read.
#[derive(Debug, Default)]
pub(super) struct Outsiders {
    programs: FxHashMap<u32, u64>,
}

impl Outsiders {
    /// Updates what is known of the thread in which an event happened, and what this BPF program knows of its process.
    pub(super) fn update(
        &mut self,
        stamp: Stamp,
        event: &EventRecord,
        recording: &mut Recording,
        sampler: Option<&mut StackSampler>,
    ) {
        let Stamp { pid, tid, time, .. } = stamp;
        if tid == 0 || event.comm().is_empty() {
            return;
        }
        let is_new = !recording.knows_thread(tid);
        let is_replaced = self.programs.get(&pid).is_some_and(|program| *program != event.program);
        if is_replaced {
            let exec = Event::Comm { pid, tid, exec: true, comm: event.comm() };
            if let Some(sampler) = sampler {
                sampler.tables.note_event(time, &exec);
                sampler.tables.note_process(pid);
            }
            recording.handle_event(stamp, exec);
            procfs::load_mappings(pid, time, recording);
        } else if is_new {
            procfs::load_process(pid, recording);
            if let Some(sampler) = sampler {
                sampler.tables.note_process(pid);
            }
        }
        if is_new || is_replaced {
            if self.programs.len() >= MAX_PROCESSES {
                self.programs.clear();
            }
            self.programs.insert(pid, event.program);
        }
        recording.update_comm(tid, event.comm(), time);
    }
}
