//! Counts of a recording: samples, losses, truncated stacks and other problems.

use crate::perf::stop_reason::StopReason;

/// Counts of samples, losses and other problems of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Number of samples in the recording.
    pub samples: u64,
    /// Number of samples that the kernel dropped.
    pub lost: u64,
    /// Number of samples that were skipped to reduce overhead. Other samples weigh more for them.
    pub skipped: u64,
    /// Number of samples whose stack was cut before its root.
    pub truncated: Truncated,
    /// Number of threads that were created.
    pub new_threads: u64,
    /// Number of samples within execve, where the thread had no user stack.
    pub execve: u64,
    /// Number of user stacks that the kernel walked.
    pub user_stacks: u64,
    /// Number of frames of the user stacks that the kernel walked.
    pub user_frames: u64,
    /// Number of times that the kernel throttled sampling.
    pub throttled: u64,
    /// Number of side-band records that the kernel dropped. Mappings or thread names may be missing.
    pub lost_sideband: u64,
    /// Number of context switches that the kernel dropped.
    pub lost_switches: u64,
    /// Number of stacks whose script frames do not match the native ones.
    pub unmatched_scripts: u64,
    /// Number of records that could not be parsed.
    pub malformed: u64,
    /// Number of attempts to read the mappings of a process that was denied: it belongs to another user.
    pub denied_mappings: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        let Self {
            samples,
            lost,
            skipped,
            truncated,
            new_threads,
            execve,
            user_stacks,
            user_frames,
            throttled,
            lost_sideband,
            lost_switches,
            unmatched_scripts,
            malformed,
            denied_mappings,
        } = other;
        self.samples += samples;
        self.lost += lost;
        self.skipped += skipped;
        self.truncated += truncated;
        self.new_threads += new_threads;
        self.execve += execve;
        self.user_stacks += user_stacks;
        self.user_frames += user_frames;
        self.throttled += throttled;
        self.lost_sideband += lost_sideband;
        self.lost_switches += lost_switches;
        self.unmatched_scripts += unmatched_scripts;
        self.malformed += malformed;
        self.denied_mappings += denied_mappings;
    }
}

/// Number of stacks that were cut before their root, by the reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct Truncated {
    /// The copy of the stack was too small.
    pub dump_too_small: u64,
    /// The stack was larger than what the BPF program scans or can send.
    pub stack_too_large: u64,
    /// The stack of the function that a signal interrupted was not copied.
    pub other_stack: u64,
    /// The callers were of another greenlet or interpreter.
    pub other_greenlet: u64,
    /// The registers that a function had saved were overwritten for an exception.
    pub overwritten: u64,
    /// A page of the stack was not in memory.
    pub not_resident: u64,
    /// The code of a frame was mapped or unmapped around the time of the sample.
    pub stale_mapping: u64,
    /// The stack was missing: its record was lost, or the thread's memory was gone because it was exiting.
    pub missing: u64,
    /// The program was a 32-bit one.
    pub abi_32: u64,
    /// The code had no unwind information.
    pub no_unwind_information: u64,
    /// The stack was deeper than the kernel's limit or ours.
    pub too_deep: u64,
}

impl Truncated {
    /// Returns the sum over all reasons.
    pub fn total(&self) -> u64 {
        self.dump_too_small
            + self.stack_too_large
            + self.other_stack
            + self.other_greenlet
            + self.overwritten
            + self.not_resident
            + self.stale_mapping
            + self.missing
            + self.abi_32
            + self.no_unwind_information
            + self.too_deep
    }

    pub(super) fn count(&mut self, reason: StopReason) {
        match reason {
            StopReason::Root | StopReason::Execve => {}
            StopReason::DumpTooSmall => self.dump_too_small += 1,
            StopReason::StackTooLarge => self.stack_too_large += 1,
            StopReason::OtherStack => self.other_stack += 1,
            StopReason::OtherGreenlet => self.other_greenlet += 1,
            StopReason::Overwritten => self.overwritten += 1,
            StopReason::NotResident => self.not_resident += 1,
            StopReason::StaleMapping => self.stale_mapping += 1,
            StopReason::Missing => self.missing += 1,
            StopReason::Abi32 => self.abi_32 += 1,
            StopReason::NoUnwindInformation => self.no_unwind_information += 1,
            StopReason::TooDeep => self.too_deep += 1,
        }
    }
}

impl std::ops::AddAssign for Truncated {
    fn add_assign(&mut self, other: Self) {
        let Self {
            dump_too_small,
            stack_too_large,
            other_stack,
            other_greenlet,
            overwritten,
            not_resident,
            stale_mapping,
            missing,
            abi_32,
            no_unwind_information,
            too_deep,
        } = other;
        self.dump_too_small += dump_too_small;
        self.stack_too_large += stack_too_large;
        self.other_stack += other_stack;
        self.other_greenlet += other_greenlet;
        self.overwritten += overwritten;
        self.not_resident += not_resident;
        self.stale_mapping += stale_mapping;
        self.missing += missing;
        self.abi_32 += abi_32;
        self.no_unwind_information += no_unwind_information;
        self.too_deep += too_deep;
    }
}

/// The sum of the samples of a stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Number of samples.
    pub samples: u64,
    /// Sum of their periods.
    pub period: u128,
}
