//! Time on CPUs alone, shared among the threads that run at the same moment.

use super::{Block, CpuState, SwitchEvent, SwitchEventKind, SwitchPairing, Thread};
use crate::perf::thread_state::ThreadState;
use crate::record::off_cpu::parallelism::TimeShare;
use crate::record::off_cpu::totals::Amount;

impl SwitchPairing {
    /// Accounts the time of a thread on CPUs alone.
    pub(super) fn update_shared_time(&mut self, thread: &mut Thread, event: SwitchEvent) {
        thread.state = match event.kind {
            SwitchEventKind::Out { preempted, selected } => {
                let state = if preempted { ThreadState::Runnable } else { ThreadState::Blocked };
                CpuState::OffCpu(Block { state, selected, stack: None, is_reported: false })
            }
            SwitchEventKind::In | SwitchEventKind::Exec => CpuState::OnCpu,
            SwitchEventKind::RunSample(_) if thread.state == CpuState::Unknown => CpuState::OnCpu,
            _ => thread.state,
        };
        self.clock.set_running(&mut thread.shared_time, thread.state == CpuState::OnCpu);
        if let SwitchEventKind::RunSample(stack) = event.kind {
            self.clock.add_sample(&mut thread.shared_time, stack);
        }
    }

    /// Charges the time of a thread at its end, or at that of the recording.
    pub(super) fn finish_shared_time(&mut self, mut thread: Thread, event: SwitchEvent) {
        self.clock.advance(event.time);
        self.clock.set_running(&mut thread.shared_time, false);
        for TimeShare { stack, samples, nanoseconds } in thread.shared_time.shares() {
            let state = if stack.is_some() { ThreadState::Running } else { ThreadState::Unsampled };
            self.charge(event, stack, state, Amount { count: samples, nanoseconds });
        }
    }
}
