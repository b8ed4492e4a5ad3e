//! Records what a request asks for: opens the target and its counters, records until the end, and returns the result.

use rustix::process::Signal;

use super::bpf::{StackSampler, StackUses};
use super::command::SuspendedCommand;
use super::counters::Counters;
use super::counters::sampling::{CallGraph, Rate, SampledEvent, Sampling};
use super::events::spec::EventSpec;
use super::observer::{FinishedRecording, Observer};
use super::off_cpu::bpf::Aggregation;
use super::off_cpu::critical_path::{PathThread, PathTracker};
use super::off_cpu::switches::SwitchTracker;
use super::off_cpu::{OffCpuOptions, interrupt_entries};
use super::overhead::Overhead;
use super::program_file::find_program;
use super::request::{Request, RequestTarget};
use super::session::RecordingSession;
use super::target::{self, Target};
use super::unrecorded_children::UnrecordedChildren;
use super::{errors, flight_recorder, hotspot, java_attach, procfs, sys};
use crate::Error;
use crate::perf::recording::{Options, Recording, RootLabel, SchedulerCode};
use crate::perf::unwind::RunningProcesses;

/// Samples a second of a command.
const COMMAND_FREQUENCY: u64 = 997;
/// Samples a second of processes that already run.
const RUNNING_FREQUENCY: u64 = 99;

/// Records until the target or the command beside it exits, the duration is over, a signal arrives, or what `--ring` keeps
/// is to be written to a single output.
///
/// # Errors
/// [`Error::Invalid`] if the target does not exist, [`Error::System`] if the kernel refuses to record it,
/// [`Error::Command`] if the command cannot be started, and errors of the observer.
pub fn record(request: &Request, observer: &mut dyn Observer) -> Result<FinishedRecording, Error> {
    let requests = request.ring.as_ref().map(|_| flight_recorder::listen()).transpose()?;
    let (suspended, target) = open_target(request)?;
    errors::check_cpus_online(request.cpus.as_deref())?;
    sys::raise_file_limit();
    let bpf_options = request.off_cpu.filter(|options| options.in_kernel);
    let aggregation = bpf_options.map(|options| Aggregation::open(&target, &options)).transpose()?;
    let mut sampling = sampling(request, matches!(target, Target::Command(_)));
    let kinds = sampling.events.iter().map(|event| event.spec.program_kind()).collect();
    let with_wakers = request.off_cpu.is_some_and(|options| options.waker_depth.is_some());
    let read_label = request.roots.read_label();
    let (with_context, with_task) = (request.roots.context_label().is_some(), request.roots.has_task());
    let (switch_period, pair) = (sampling.period_of_program().unwrap_or(0), request.pair.as_ref());
    let with_sleepers = request.off_cpu.is_some_and(|options| options.includes_sleepers(&target));
    let interrupts = with_wakers.then(interrupt_entries).flatten().unwrap_or_default();
    let leaves_out = sampling.events.iter().filter(|event| event.spec.is_clock()).count() == 1;
    let uses = StackUses {
        kinds,
        switch_period,
        with_wakers,
        interrupts,
        with_sleepers,
        leaves_out,
        with_context,
        with_task,
        pair,
    };
    let switches = switch_tracker(request, &target);
    if let (Some(switches), Some(options), true) = (&switches, &request.off_cpu, sampling.can_take_stacks(&target)) {
        switches.prepare_kernel(options);
    }
    let sampler = sampling.can_take_stacks(&target).then(|| StackSampler::open(&target, &uses));
    let (sampler, copy_reason) = match sampler {
        Some(Ok(sampler)) => (Some(sampler), None),
        Some(Err(reason)) => match (option_with_bpf(request), read_label) {
            (Some(option), _) => return Err(Error::System(format!("{option}: {reason}"))),
            (None, Some(label)) => return Err(Error::System(format!("--split-by {label}: {reason}"))),
            (None, None) => (None, Some(reason)),
        },
        None => match read_label {
            Some(label) => return Err(no_context(label)),
            None => (None, None),
        },
    };
    if sampler.is_some() {
        errors::check_rates(&sampling)?;
        sampling.take_stacks();
    }
    let counters = Counters::open(&target, &sampling, sampler.as_ref())?;
    let mut session =
        RecordingSession::new(counters, sampler, new_recording(request, with_sleepers), &target, sampling.events)?;
    session.copy_reason = copy_reason;
    session.overhead = request.max_overhead.map(Overhead::new);
    if let (Some(workload), Some(_)) = (&suspended, &request.workload) {
        session.end_with_process(workload.pid())?;
    }
    session.start(&target, aggregation, switches, request.pair.as_ref())?;
    if let Some((ring, requests)) = request.ring.as_ref().zip(requests) {
        session.keep_last_part(ring.clone(), requests)?;
    }
    // Beside time off the CPU, the CPU time of others says nothing.
    let children =
        (request.off_cpu.is_none() && request.pair.is_none()).then(|| UnrecordedChildren::watch(&target)).flatten();
    if let RequestTarget::Command(line) = &request.target
        && let Some(program) = find_program(&line.words)
    {
        session.prepare_program(&program);
    }
    let command = suspended.map(SuspendedCommand::resume).transpose()?;
    let result = session.run(request.duration, request.interval, observer);
    let hint = children.and_then(|children| children.hint());
    let needs_maps = !sampling.takes_stacks && !matches!(target, Target::Cgroup(_) | Target::System);
    let mut finished = session.finish();
    if request.attaches && needs_maps {
        finished.notes.extend(java_attach::ask_processes(&finished.recording));
    }
    finished.notes.extend(hint);
    finished.command = command;
    let signal = match &result {
        Ok(reason) if request.workload.is_some() => reason.workload_signal(),
        Ok(reason) => reason.command_signal(),
        // A command whose recording failed must not keep running on its own.
        Err(_) => Some(Signal::TERM),
    };
    if let (Some(command), Some(signal)) = (&mut finished.command, signal) {
        command.signal(signal);
    }
    result.map(|_| finished)
}

/// Returns the option for whose recording the BPF program is needed, if there is one.
fn option_with_bpf(request: &Request) -> Option<&'static str> {
    if request.critical_path.is_some() {
        return Some("--critical-path");
    }
    match (&request.pair, &request.off_cpu) {
        (Some(pair), _) => Some(pair.option),
        (None, Some(OffCpuOptions { run_queue_only: true, .. })) => Some("--run-queue"),
        (None, Some(OffCpuOptions { waker_depth: Some(_), .. })) => Some("--wakers"),
        _ => None,
    }
}

/// Returns the error for a label that only the BPF program can find, where it takes no stacks.
fn no_context(label: &RootLabel) -> Error {
    let reason =
        "the BPF program takes no stacks of these events (tracepoints and function calls with -c, -F or --cgroup)";
    Error::System(format!("--split-by {label}: {reason}"))
}

/// Checks that the target exists, and starts the command, suspended, if there is one.
fn open_target(request: &Request) -> Result<(Option<SuspendedCommand>, Target), Error> {
    let target = match &request.target {
        RequestTarget::Command(line) => {
            let command = SuspendedCommand::start(line)?;
            let pid = command.pid();
            return Ok((Some(command), Target::Command(pid)));
        }
        RequestTarget::Processes { pids, subprocesses } => {
            pids.iter().try_for_each(|pid| target::check_process(*pid))?;
            Target::Processes { pids: pids.clone(), subprocesses: *subprocesses }
        }
        RequestTarget::Threads(tids) => {
            for tid in tids {
                let pid = target::check_thread(*tid)?;
                if request.critical_path == Some(PathThread::Main) && pid != *tid {
                    return Err(Error::Usage(format!(
                        "--critical-path main: thread {tid} is not the main thread of its process; use -p {pid}, or --critical-path \
                         {tid}"
                    )));
                }
            }
            Target::Threads(tids.clone())
        }
        RequestTarget::Cgroup(path) => Target::Cgroup(target::open_cgroup(path)?),
        RequestTarget::System => Target::System,
    };
    let workload = request.workload.as_ref().map(SuspendedCommand::start).transpose()?;
    Ok((workload, target))
}

fn sampling(request: &Request, is_command: bool) -> Sampling {
    let in_kernel = request.off_cpu.is_some_and(|options| options.in_kernel);
    Sampling {
        events: match &request.off_cpu {
            Some(options) => options.events(request.rate.unwrap_or(default_frequency(is_command))),
            None if request.pair.is_some() => vec![SampledEvent { spec: EventSpec::dummy(), rate: Rate::Period(1) }],
            None => sampled_events(request, is_command),
        },
        call_graph: request.call_graph,
        ring_order: if in_kernel { Some(0) } else { request.ring_order },
        max_stack: request.max_stack,
        // A block that begins on one CPU may end on another.
        cpus: request.cpus.clone().filter(|_| request.off_cpu.is_none()),
        record_switches: request.off_cpu.is_some() && !in_kernel,
        takes_stacks: false,
    }
}

/// Returns the requested events, or the best one that the machine has, each with its rate.
fn sampled_events(request: &Request, is_command: bool) -> Vec<SampledEvent> {
    let mut specs = request.events.clone();
    if specs.is_empty() {
        specs.push(if can_count_cycles() { EventSpec::cycles() } else { EventSpec::cpu_clock() });
    }
    let mut events = Vec::new();
    for spec in specs {
        let default_rate = if spec.is_discrete() { Rate::Period(1) } else { default_frequency(is_command) };
        events.push(SampledEvent { rate: request.rate.unwrap_or(default_rate), spec });
    }
    events
}

fn default_frequency(is_command: bool) -> Rate {
    Rate::Frequency(if is_command { COMMAND_FREQUENCY } else { RUNNING_FREQUENCY })
}

/// True if this machine counts cycles. Most virtual machines do not.
fn can_count_cycles() -> bool {
    use perf_event_open::config::{Cpu, Opts, Proc};
    let mut options = Opts::default();
    options.exclude.kernel = true;
    options.exclude.hv = true;
    perf_event_open::count::Counter::new(&EventSpec::cycles(), (Proc::CURRENT, Cpu::ALL), options).is_ok()
}

fn new_recording(request: &Request, with_sleepers: bool) -> Recording {
    let options = Options {
        weight: request.weight,
        keep_samples: request.each_sample,
        max_stack: match (request.max_stack, request.call_graph) {
            (Some(frames), CallGraph::FramePointers) => frames.into(),
            _ => errors::max_stack(),
        },
        max_branches: errors::max_branches(),
        keep_addresses: request.each_sample,
        running: Some(RunningProcesses {
            read: sys::read_process_memory,
            keeps_frame_pointers: hotspot::keeps_frame_pointers,
            cgroup: procfs::cgroup,
            process_contexts: procfs::process_contexts,
        }),
        roots: request.roots.clone(),
        scripts: request.scripts,
        script_lines: request.script_lines,
        scheduler: if with_sleepers { SchedulerCode::of_running_kernel() } else { None },
        ..Options::default()
    };
    let mut recording = Recording::new(options);
    if let Some(frames) = request.max_stack {
        recording.set_max_frames(frames.into());
    }
    recording
}

/// Returns the tracker of context switches, if they are recorded.
fn switch_tracker(request: &Request, target: &Target) -> Option<SwitchTracker> {
    let options: OffCpuOptions = request.off_cpu.filter(|options| !options.in_kernel)?;
    let mut switches = SwitchTracker::new(&options, request.cpus.clone().unwrap_or_default(), target);
    if let Some(thread) = &request.critical_path {
        let main = match target {
            Target::Command(pid) => Some(*pid),
            Target::Processes { pids, .. } | Target::Threads(pids) => pids.first().copied(),
            Target::Cgroup(_) | Target::System => None,
        };
        switches.follow_path(PathTracker::new(thread.clone(), main));
    }
    Some(switches)
}
