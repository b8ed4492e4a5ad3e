//! The attributes (`perf_event_attr`) that each kind of counter is opened with.

use perf_event_open::config::{
    BranchType, CallChain, Clock, Inherit, Lbr, OnExecve, Opts, RecordIdFormat, RegsMask, SampleOn, SampleSkid, Size,
    TargetPriv, UseBuildId, WakeUpOn,
};

use super::sampling::{CallGraph, Rate, SampledEvent, Sampling};
use crate::perf::unwind;
use crate::record::events::spec::Excluded;
use crate::record::target::Target;

/// Returns the attributes of a counter that takes samples, with copies of `stack_copy` bytes if stacks are copied.
pub fn sample_options(
    target: &Target,
    sampling: &Sampling,
    event: &SampledEvent,
    exclude_kernel: bool,
    stack_copy: Option<u32>,
) -> Opts {
    let Excluded { user, kernel } = event.spec.excluded;
    let exclude_kernel = exclude_kernel || kernel;
    let mut options = common_options(exclude_kernel, sampling.records_counter_id(target));
    if !sampling.counts_on_cpus(target, event) {
        count_in_threads(&mut options, target);
    }
    if event.spec.is_uprobe() {
        // The kernel would read the path again, in the process that creates a thread, and the creation would fail.
        options.inherit = None;
    }
    options.exclude.user = user;
    options.sample_skid = match event.spec.precise {
        0 => SampleSkid::Arbitrary,
        1 => SampleSkid::Const,
        2 => SampleSkid::ReqZero,
        _ => SampleSkid::Zero,
    };
    options.sample_on = match event.rate {
        Rate::Frequency(hertz) => SampleOn::Freq(hertz),
        Rate::Period(events) => SampleOn::Count(events),
    };
    options.stat_format.lost_records = true;
    options.sample_format.code_addr = sampling.records_address();
    options.sample_format.period = sampling.records_period();
    options.sample_format.raw = sampling.records_raw();
    // The limit counts frames of the kernel too. Where user stacks are unwound, the kernel's part must not be cut.
    let uses_frame_pointers = sampling.call_graph == CallGraph::FramePointers;
    let max_stack_frames = sampling.max_stack.filter(|_| uses_frame_pointers).unwrap_or(0);
    let mut call_chain = CallChain { exclude_user: false, exclude_kernel, defer_user: false, max_stack_frames };
    match sampling.call_graph {
        CallGraph::FramePointers => {}
        CallGraph::BranchRecords => {
            call_chain.exclude_user = true;
            options.sample_format.lbr = Some(user_call_stack());
        }
        CallGraph::Dwarf(_) => {
            call_chain.exclude_user = true;
            options.sample_format.user_regs = Some(RegsMask(unwind::REGISTERS));
            options.sample_format.user_stack = stack_copy.map(Size);
        }
    }
    // The kernel rejects a callchain that excludes both parts. If user space is excluded and the event excludes the
    // kernel, the kernel's part is empty anyway.
    call_chain.exclude_kernel &= !call_chain.exclude_user;
    options.sample_format.call_chain = Some(call_chain);
    options
}

/// Returns the attributes of branch records that contain the calls in user space which have not returned. Must match
/// `CallGraph::layout`.
fn user_call_stack() -> Lbr {
    let branch_type = BranchType { call_stack: true, ..BranchType::default() };
    Lbr { target_priv: Some(TargetPriv { user: true, kernel: false, hv: false }), branch_type, ..Lbr::default() }
}

/// Returns the attributes of a counter of side-band records: mappings, thread names, forks and exits.
pub fn sideband_options(target: &Target, sampling: &Sampling, exclude_kernel: bool) -> Opts {
    let mut options = common_options(exclude_kernel, sampling.is_per_thread(target));
    if sampling.has_sideband_of_threads(target) {
        count_in_threads(&mut options, target);
    }
    options.stat_format.lost_records = true;
    options.extra_record.task = true;
    options.extra_record.comm = true;
    options.extra_record.mmap.code = true;
    options.extra_record.mmap.ext = Some(UseBuildId(false));
    options.wake_up.on = WakeUpOn::Bytes(1);
    options
}

/// Returns the attributes of a counter into whose ring the BPF program writes. `wakes` says if each record wakes the recorder.
/// Up to the counter's ID, its samples have the same fields as those of other counters.
pub fn stack_options(sampling: &Sampling, wakes: bool) -> Opts {
    let mut options = common_options(false, true);
    options.sample_on = SampleOn::Count(1);
    options.sample_format.code_addr = sampling.records_address();
    options.sample_format.raw = true;
    options.stat_format.lost_records = true;
    if wakes {
        options.wake_up.on = WakeUpOn::Samples(1);
    }
    options
}

/// Returns the attributes of a counter that only records context switches.
pub fn switch_options(target: &Target, sampling: &Sampling) -> Opts {
    let mut options = common_options(false, sampling.is_per_thread(target));
    if !matches!(target, Target::System | Target::Cgroup(_)) {
        count_in_threads(&mut options, target);
    }
    options.extra_record.ctx_switch = true;
    options
}

/// Returns the attributes that all counters share. Each ring belongs to one CPU, so records need not name theirs.
fn common_options(exclude_kernel: bool, records_counter_id: bool) -> Opts {
    let mut options = Opts::default();
    options.exclude.hv = true;
    options.exclude.idle = true;
    options.exclude.kernel = exclude_kernel;
    options.sample_format.code_addr = true;
    options.record_id_all = true;
    options.record_id_format =
        RecordIdFormat { id: records_counter_id, task: true, time: true, ..RecordIdFormat::default() };
    options.timer = Some(Clock::Monotonic);
    options
}

/// Makes a counter of a thread also count the threads and processes that it creates. A command is counted from the
/// start of its program.
fn count_in_threads(options: &mut Opts, target: &Target) {
    if target.includes_children() {
        options.inherit = Some(Inherit::NewChild);
    }
    if matches!(target, Target::Command(_)) {
        options.on_execve = Some(OnExecve::Enable);
    }
}
