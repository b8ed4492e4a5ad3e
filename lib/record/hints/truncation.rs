//! Hints about stacks that are cut before their root.

use super::Hints;
use crate::record::counters::ring_size::MAX_STACK_COPY;
use crate::record::counters::sampling::CallGraph;

impl Hints<'_> {
    /// Returns a hint if copies of stacks are too small.
    pub(super) fn small_copies(&self) -> Option<String> {
        let copies = self.finished.stack_copies?;
        let share = self.frequent_share(self.counts().truncated.dump_too_small)?;
        let help = match (copies.copy.saturating_mul(2).min(MAX_STACK_COPY), &self.finished.copy_reason) {
            (larger, _) if larger > copies.copy => format!("use --call-graph dwarf,{larger}"),
            (_, Some(reason)) => format!("a BPF program captures whole stacks, but {reason}"),
            (_, None) => "as root, --call-graph dwarf without a size captures whole stacks".to_owned(),
        };
        Some(format!("{share} of stacks are truncated where their copy of {} bytes ends; {help}", copies.copy))
    }

    pub(super) fn large_stacks(&self) -> Option<String> {
        let share = self.frequent_share(self.counts().truncated.stack_too_large)?;
        Some(format!("{share} of stacks are truncated: they have more than 4096 frames, or are larger than a megabyte"))
    }

    pub(super) fn other_stack(&self) -> Option<String> {
        let share = self.frequent_share(self.counts().truncated.other_stack)?;
        let help = match &self.finished.copy_reason {
            Some(reason) => format!("a BPF program captures both, but {reason}"),
            None if self.shows_sleepers() => "it never is for threads that slept before the recording".to_owned(),
            None => "as root, --call-graph dwarf without a size captures both".to_owned(),
        };
        Some(format!(
            "{share} of stacks are of handlers on an alternate signal stack: the interrupted stack is not copied; {help}"
        ))
    }

    pub(super) fn other_greenlet(&self) -> Option<String> {
        let share = self.frequent_share(self.counts().truncated.other_greenlet)?;
        Some(format!(
            "{share} of stacks are of greenlets, of coroutines in C or of other interpreters of a process: they end where these \
             began, whose callers are not known"
        ))
    }

    pub(super) fn overwritten(&self) -> Option<String> {
        let share = self.frequent_share(self.counts().truncated.overwritten)?;
        Some(format!(
            "{share} of stacks are truncated in functions that unwind for exceptions: they write over their saved registers"
        ))
    }

    pub(super) fn not_resident(&self) -> Option<String> {
        let share = self.frequent_share(self.counts().truncated.not_resident)?;
        let help = match &self.finished.copy_reason {
            Some(reason) => format!("; a BPF program continues after most of them, but {reason}"),
            None if self.finished.stack_copies.is_some() => {
                "; as root, --call-graph dwarf without a size continues after most of them".to_owned()
            }
            None => String::new(),
        };
        Some(format!(
            "{share} of stacks are truncated at pages that are not in memory: swapped out, or never written{help}"
        ))
    }

    pub(super) fn changed_mappings(&self) -> Option<String> {
        let share = self.frequent_share(self.counts().truncated.stale_mapping)?;
        Some(format!(
            "{share} of stacks are truncated in code that is not known to be what was mapped at the sample: it was mapped, \
             unmapped or protected then"
        ))
    }

    pub(super) fn programs_of_32_bits(&self) -> Option<String> {
        let share = self.frequent_share(self.counts().truncated.abi_32)?;
        let help = match self.call_graph {
            CallGraph::FramePointers => "",
            _ => "; --call-graph fp shows callers if they keep frame pointers",
        };
        Some(format!("{share} of stacks are of 32-bit programs, whose callers are not known{help}"))
    }
}
