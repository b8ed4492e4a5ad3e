//! What is asked of the kernel for each kind of counter.

use perf_event_open::config::{
    BranchType, CallChain, Clock, Inherit, Lbr, OnExecve, Opts, RecordIdFormat, RegsMask, SampleOn, SampleSkid, Size,
    TargetPriv, UseBuildId, WakeUpOn,
};

use crate::perf::unwind;
use crate::record::counters::sampling::{CallGraph, Rate, Sampling};
use crate::record::events::spec::{EventSpec, Excluded};
use crate::record::target::Target;
/// The options of a counter that takes samples.
pub fn of_samples(target: &Target, sampling: &Sampling, metric: &EventSpec, rate: Rate, without_kernel: bool) -> Opts {
    let Excluded { user, kernel } = metric.excluded;
    let without_kernel = without_kernel || kernel;
    let mut options = common(target, without_kernel, sampling.names_counters(target));
    options.exclude.user = user;
    options.sample_skid = match metric.precise {
        0 => SampleSkid::Arbitrary,
        1 => SampleSkid::Const,
        2 => SampleSkid::ReqZero,
        _ => SampleSkid::Zero,
    };
    options.sample_on = match rate {
        Rate::Frequency(hertz) => SampleOn::Freq(hertz),
        Rate::Period(events) => SampleOn::Count(events),
    };
    options.stat_format.lost_records = true;
    options.sample_format.code_addr = sampling.tells_address();
    options.sample_format.period = sampling.tells_period();
    options.sample_format.raw = sampling.brings_fields();
    // Where stacks are unwound, the kernel finds its own part of them alone.
    let by_kernel = sampling.call_graph == CallGraph::FramePointers;
    let max_stack_frames = sampling.max_stack.filter(|_| by_kernel).unwrap_or(0);
    let mut call_chain =
        CallChain { exclude_user: false, exclude_kernel: without_kernel, defer_user: false, max_stack_frames };
    match sampling.call_graph {
        CallGraph::FramePointers => {}
        CallGraph::BranchRecords => {
            call_chain.exclude_user = true;
            options.sample_format.lbr = Some(calls_in_user_space());
        }
        CallGraph::Dwarf(bytes) => {
            call_chain.exclude_user = true;
            options.sample_format.user_regs = Some(RegsMask(unwind::REGISTERS));
            options.sample_format.user_stack = Some(Size(bytes));
        }
    }
    // The kernel refuses a callchain that leaves both parts out; an empty one does the same.
    call_chain.exclude_kernel &= !call_chain.exclude_user;
    options.sample_format.call_chain = Some(call_chain);
    options
}

/// The calls that have not returned, without what else is known of them: as `CallGraph::layout` has it.
fn calls_in_user_space() -> Lbr {
    let branch_type = BranchType { call_stack: true, ..BranchType::default() };
    Lbr { target_priv: Some(TargetPriv { user: true, kernel: false, hv: false }), branch_type, ..Lbr::default() }
}

/// The options of a counter that only tells what samples refer to.
pub fn of_the_side(target: &Target, without_kernel: bool) -> Opts {
    let mut options = common(target, without_kernel, target.is_per_thread());
    options.stat_format.lost_records = true;
    options.extra_record.task = true;
    options.extra_record.comm = true;
    options.extra_record.mmap.code = true;
    options.extra_record.mmap.ext = Some(UseBuildId(false));
    options.wake_up.on = WakeUpOn::Bytes(1);
    options
}

/// The options of a counter that only tells of switches.
pub fn of_switches(target: &Target) -> Opts {
    let mut options = common(target, false, target.is_per_thread());
    options.extra_record.ctx_switch = true;
    options
}

/// What all counters share. A ring is one CPU's, so that no record need say which.
fn common(target: &Target, without_kernel: bool, names_counter: bool) -> Opts {
    let mut options = Opts::default();
    options.exclude.hv = true;
    options.exclude.idle = true;
    options.exclude.kernel = without_kernel;
    if matches!(target, Target::Command(_) | Target::Processes(_)) {
        options.inherit = Some(Inherit::NewChild);
    }
    if matches!(target, Target::Command(_)) {
        options.on_execve = Some(OnExecve::Enable);
    }
    options.sample_format.code_addr = true;
    options.record_id_all = true;
    options.record_id_format =
        RecordIdFormat { id: names_counter, task: true, time: true, ..RecordIdFormat::default() };
    options.timer = Some(Clock::Monotonic);
    options
}
