//! Checks the options and turns them into a recording request.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fgkit::Error;
use fgkit::cli::Session;
use fgkit::perf::recording::{RootLabels, ScriptFrameOptions};
use fgkit::perf::symbols::frame::SymbolizeOptions;
use fgkit::profile::SampleWeight;
use fgkit::record::counters::sampling::{CallGraph, Rate};
use fgkit::record::events::spec::EventSpec;
use fgkit::record::events::value::SampleValue;
use fgkit::record::flight_recorder::RingOptions;
use fgkit::record::flight_recorder::condition::Condition;
use fgkit::record::off_cpu::OffCpuOptions;
use fgkit::record::off_cpu::critical_path::PathThread;
use fgkit::record::output_pattern;
use fgkit::record::pairs::spec::PairSpec;
use fgkit::record::report::Report;
use fgkit::record::request::{CommandLine, Request, RequestTarget};
use fgkit::record::run::{self, Destination};

use super::options::{Args, SamplingArgs, StackArgs, TargetArgs};
use super::ring_options::RingArgs;
use super::time_options::{OffCpuArgs, PairArgs};
use fgkit::perf::export::perf_script::Clock;

/// The options that record pairs of events.
const PAIR_OPTIONS: &str = "--pair, --io-latency, --syscall-latency or --lock-wait";

/// Records and writes the profile. Returns the command's exit status, or 0 if there is no command.
pub fn run(args: &Args, session: &mut Session) -> Result<u8, Error> {
    let to_stdout = session.output.is_stdout() && !args.has_output_pattern();
    let request = args.request(to_stdout)?;
    let report = args.report(request.weight);
    let destination = match args.output_pattern() {
        Some(pattern) => Destination::Pattern(pattern),
        None => Destination::Output(&mut session.output),
    };
    run::run(&request, &report, destination, &mut session.diagnostics)
}

impl Args {
    fn request(&self, to_stdout: bool) -> Result<Request, Error> {
        self.check_combinations()?;
        let events = self.events()?;
        let weight = self.weight(&events);
        self.check_periods(weight, &events)?;
        let Self { target, sampling, stacks, format, .. } = self;
        let (target_to_record, workload) = target.request(to_stdout)?;
        let pair = self.pairs.request()?;
        if let Some(PairSpec { option, takes_first_stack: true, .. }) = pair
            && target.cpu.is_some()
        {
            return usage(&format!(
                "-C cannot be used with {option} and the stack of its first event, after which a thread may change its CPU; \
                 use --pair-stack last"
            ));
        }
        Ok(Request {
            target: target_to_record,
            workload,
            events,
            rate: sampling.frequency.map(Rate::Frequency).or(sampling.count.map(Rate::Period)),
            off_cpu: self.off_cpu.request(self.ring.ring.is_some()),
            critical_path: self.off_cpu.critical_path.first().cloned(),
            pair,
            call_graph: self.call_graph(),
            ring_order: sampling.mmap_pages,
            max_stack: stacks.max_stack,
            cpus: target.cpu.as_ref().map(|cpus| cpus.0.clone()),
            duration: target.duration,
            interval: format.interval,
            ring: self.ring.ring.map(|length| RingOptions {
                length,
                condition: self.ring.when.clone(),
                goes_on: self.output().is_some_and(output_pattern::has_time),
            }),
            max_overhead: sampling.max_overhead,
            weight,
            each_sample: format.script,
            roots: format.split_by.clone().unwrap_or_default(),
            scripts: match stacks {
                StackArgs { native_only: true, .. } => ScriptFrameOptions::NativeOnly,
                StackArgs { interpreter_frames: true, .. } => ScriptFrameOptions::WithInterpreter,
                _ => ScriptFrameOptions::Script,
            },
            script_lines: stacks.lines,
            attaches: !(stacks.no_attach || stacks.native_only),
        })
    }

    /// Rejects combinations of options that clap cannot check.
    fn check_combinations(&self) -> Result<(), Error> {
        let Self { sampling, format, .. } = self;
        let (is_off_cpu, is_pair) = (self.off_cpu.is_requested(), self.pairs.is_requested());
        self.check_requirements()?;
        self.check_critical_path()?;
        if let (Some(option), Some(_)) = (self.pairs.option(), &self.target.cgroup) {
            return usage(&format!(
                "{option} cannot be used with --cgroup: it would record other processes too; use -p PID --subprocesses"
            ));
        }
        let needs_whole_stacks =
            self.off_cpu.wakers || self.off_cpu.run_queue || !self.off_cpu.critical_path.is_empty() || is_pair;
        if needs_whole_stacks && self.call_graph() != CallGraph::Dwarf(None) {
            return usage(
                "--wakers, --run-queue, --critical-path and --pair need whole stacks; leave out --call-graph",
            );
        }
        if let Some(label) = format.split_by.as_ref().and_then(RootLabels::read_label)
            && self.call_graph() != CallGraph::Dwarf(None)
        {
            return usage(&format!("--split-by {label} needs the BPF program; leave out --call-graph"));
        }
        if self.off_cpu.wall && self.target.cpu.is_some() {
            return usage("-C cannot be used with --wall: a thread may also run on other CPUs");
        }
        if self.off_cpu.bpf && self.call_graph() != CallGraph::FramePointers {
            return usage("--bpf unwinds by frame pointers only; leave out --call-graph, or use --call-graph fp");
        }
        if self.off_cpu.min_block.zip(self.off_cpu.max_block).is_some_and(|(min, max)| min > max) {
            return usage("--min-block must not be longer than --max-block");
        }
        let whole_only =
            [("--interval", format.interval.is_some()), ("--max-overhead", sampling.max_overhead.is_some())];
        if let Some((option, _)) = whole_only.into_iter().find(|(_, is_given)| *is_given && (is_off_cpu || is_pair)) {
            return usage(&format!(
                "{option} cannot be used with options that record time: every switch or pair of events counts, to the end of a wait"
            ));
        }
        self.check_ring()?;
        if format.interval.is_some_and(|interval| interval < Duration::from_secs(1)) {
            return usage("--interval must be at least 1s, because files are named by the second");
        }
        let extension = self.output().and_then(Path::extension);
        let is_picture = |kind| extension.is_some_and(|extension| extension.eq_ignore_ascii_case(kind));
        if ["svg", "svgz", "png", "html"].into_iter().any(is_picture) {
            return usage(
                "-o gets stacks as text, not a picture: leave it out, and draw them with `| fg-svg > FILE.svg`",
            );
        }
        if format.interval.is_some() && !self.output().is_some_and(output_pattern::has_time) {
            return usage("--interval writes several files: name them by their time, as in -o 'app-%t.folded'");
        }
        Ok(())
    }

    /// Rejects options without those that they require. clap does not if another option excludes the required one.
    fn check_requirements(&self) -> Result<(), Error> {
        let OffCpuArgs { off_cpu, wall, wakers, waker_depth, off_cpu_period, min_block, max_block, bpf, .. } =
            self.off_cpu;
        let is_pair = self.pairs.is_requested();
        for (option, is_given, is_allowed, required) in [
            ("--min-block", min_block.is_some() && is_pair, false, "--off-cpu; use --over for pairs of events"),
            ("--min-block", min_block.is_some(), off_cpu, "--off-cpu"),
            ("--max-block", max_block.is_some(), off_cpu, "--off-cpu"),
            ("--bpf", bpf, off_cpu, "--off-cpu"),
            ("--off-cpu-period", off_cpu_period.is_some(), self.off_cpu.is_requested(), "--off-cpu or --wall"),
            ("--wakers", wakers, off_cpu || wall, "--off-cpu or --wall"),
            ("--waker-depth", waker_depth.is_some(), wakers, "--wakers"),
            ("--clock", self.format.clock != Clock::default(), self.format.script, "--script"),
            ("--over", self.pairs.over.is_some(), is_pair, PAIR_OPTIONS),
            ("--pair-stack", self.pairs.pair_stack.is_some(), is_pair, PAIR_OPTIONS),
        ] {
            if is_given && !is_allowed {
                return usage(&format!("{option} requires {required}"));
            }
        }
        Ok(())
    }

    /// Rejects a critical path whose thread is not clear.
    fn check_critical_path(&self) -> Result<(), Error> {
        let TargetArgs { pid, tid, all_cpus, cgroup, .. } = &self.target;
        match &self.off_cpu.critical_path[..] {
            [] => return Ok(()),
            [PathThread::Main] => {}
            [_] => return Ok(()),
            [..] => return usage("--critical-path is given twice; one recording has the path of one thread"),
        }
        if *all_cpus || cgroup.is_some() || pid.len() + tid.len() > 1 {
            return usage("--critical-path main needs a command or one process; name a thread or its TID");
        }
        Ok(())
    }

    /// Rejects options that cannot be used with --ring.
    fn check_ring(&self) -> Result<(), Error> {
        let RingArgs { ring, when } = &self.ring;
        if ring.is_some_and(|ring| ring < Duration::from_secs(1)) {
            return usage("--ring must be at least 1s");
        }
        if ring.is_some() && self.off_cpu.off_cpu_period.is_some_and(|period| period > 1) {
            return usage("--ring captures the stack of every switch; leave out --off-cpu-period");
        }
        let is_off_cpu = self.off_cpu.off_cpu || self.off_cpu.wall;
        match when {
            Some(Condition::Block { .. }) if !is_off_cpu => usage("--when 'block > TIME' requires --off-cpu or --wall"),
            Some(Condition::Block { limit, .. }) if self.off_cpu.min_block.is_some_and(|min| min > *limit) => {
                usage("--min-block leaves out blocks that --when waits for")
            }
            Some(Condition::Block { limit, .. }) if self.off_cpu.max_block.is_some_and(|max| max <= *limit) => {
                usage("--max-block leaves out the blocks that --when waits for")
            }
            _ => Ok(()),
        }
    }

    /// Returns the unwinding method.
    fn call_graph(&self) -> CallGraph {
        let default = if self.off_cpu.bpf { CallGraph::FramePointers } else { CallGraph::Dwarf(None) };
        self.stacks.call_graph.unwrap_or(default)
    }

    fn events(&self) -> Result<Vec<EventSpec>, Error> {
        let events = {
            let SamplingArgs { event, weight_field, filter, .. } = &self.sampling;
            EventSpec::parse_lists(event, weight_field.as_deref(), filter.as_deref())?
        };
        if events.len() > 1 && !self.format.script && !self.output().is_some_and(output_pattern::has_event) {
            return usage(
                "several events need several files: name them by their event, as in -o 'app-%e.folded', \
                 or print all samples with --script",
            );
        }
        if self.sampling.frequency.is_some() && events.iter().any(|event| event.value.is_some()) {
            return usage(
                "-F cannot be used with --weight-field or a uprobe's argument: a sum needs every event, or -c N",
            );
        }
        let has_argument = events.iter().any(|event| matches!(event.value, Some(SampleValue::Argument(_))));
        if has_argument && !matches!(self.call_graph(), CallGraph::Dwarf(_)) {
            return usage("a uprobe's argument can only be read with --call-graph dwarf");
        }
        Ok(events)
    }

    fn weight(&self, events: &[EventSpec]) -> SampleWeight {
        match self.sampling.max_overhead {
            _ if events.iter().any(|event| event.value.is_some()) => SampleWeight::Period,
            _ if self.off_cpu.is_requested() || self.pairs.is_requested() => SampleWeight::Microseconds,
            // While the rate changes, samples represent different numbers of events.
            Some(_) => SampleWeight::Period,
            None => self.sampling.weight,
        }
    }

    /// Rejects periods of events that the kernel counts in software: at a frequency, a sample has the period up to the next one,
    /// and one of the first may have millions (`perf_swevent_event` in its `core.c`).
    fn check_periods(&self, weight: SampleWeight, events: &[EventSpec]) -> Result<(), Error> {
        let Self { sampling, .. } = self;
        match events.iter().find(|event| event.is_discrete()) {
            Some(event) if weight == SampleWeight::Period && sampling.frequency.is_some() => {
                let option = if sampling.max_overhead.is_some() { "--max-overhead" } else { "--weight period" };
                usage(&format!(
                    "{option} cannot be used with -F and {}: at a frequency its periods do not add up to the number of \
                     events; use -c N",
                    event.name()
                ))
            }
            _ => Ok(()),
        }
    }

    fn report(&self, weight: SampleWeight) -> Report {
        let Self { stacks, format, .. } = self;
        let names = SymbolizeOptions { inline: !stacks.no_inline, lines: stacks.lines, debuginfod: stacks.debuginfod };
        Report {
            script: format.script,
            clock: format.clock,
            names,
            weight,
            call_graph: self.call_graph(),
            summary_file: format.summary_to.clone(),
        }
    }

    fn output(&self) -> Option<&Path> {
        self.common.output.as_deref()
    }

    fn output_pattern(&self) -> Option<PathBuf> {
        self.output().filter(|_| self.has_output_pattern()).map(Path::to_owned)
    }
}

impl TargetArgs {
    /// Returns the target, and the command that runs beside it if it is not the target itself.
    fn request(&self, to_stdout: bool) -> Result<(RequestTarget, Option<CommandLine>), Error> {
        let command = (!self.command.is_empty()).then(|| CommandLine {
            words: self.command.clone(),
            quiet_stdout: to_stdout,
            user: self.user.clone(),
        });
        let mut targets = Vec::new();
        if !self.pid.is_empty() {
            targets.push(RequestTarget::Processes { pids: self.pid.clone(), subprocesses: self.subprocesses });
        }
        if !self.tid.is_empty() {
            targets.push(RequestTarget::Threads(self.tid.clone()));
        }
        targets.extend(self.cgroup.clone().map(RequestTarget::Cgroup));
        if self.all_cpus {
            targets.push(RequestTarget::System);
        }
        match (targets.pop(), targets.is_empty(), command) {
            (Some(target), true, workload) => Ok((target, workload)),
            (Some(_), false, _) => usage("only one target can be recorded: -p, -t, --cgroup or -a"),
            (None, _, Some(command)) => Ok((RequestTarget::Command(command), None)),
            (None, ..) => {
                usage("nothing to record: name a command (fg-record -- CMD) or a process (-p PID), or use -a")
            }
        }
    }
}

impl PairArgs {
    fn is_requested(&self) -> bool {
        self.option().is_some()
    }

    /// Returns the option that selects the pair, if there is one.
    fn option(&self) -> Option<&'static str> {
        match self {
            Self { pair: Some(_), .. } => Some("--pair"),
            Self { io_latency: true, .. } => Some("--io-latency"),
            Self { syscall_latency: true, .. } => Some("--syscall-latency"),
            Self { lock_wait: true, .. } => Some("--lock-wait"),
            _ => None,
        }
    }

    fn request(&self) -> Result<Option<PairSpec>, Error> {
        let Some(option) = self.option() else { return Ok(None) };
        let text = match self {
            Self { pair: Some(pair), .. } => pair,
            Self { io_latency: true, .. } => PairSpec::io_requests(),
            Self { syscall_latency: true, .. } => "raw_syscalls:sys_enter,raw_syscalls:sys_exit",
            _ => "lock:contention_begin,lock:contention_end:tid+lock_addr",
        };
        let first_stack = self.pair_stack.as_ref().map(|which| which == "first");
        PairSpec::parse(option, text, first_stack, self.over.unwrap_or_default()).map(Some)
    }
}

impl OffCpuArgs {
    fn is_requested(&self) -> bool {
        self.off_cpu || self.wall || self.run_queue || self.latency || !self.critical_path.is_empty()
    }

    fn request(&self, is_ring: bool) -> Option<OffCpuOptions> {
        self.is_requested().then_some(OffCpuOptions {
            wall: self.wall || !self.critical_path.is_empty(),
            // A block without a stack of its own may have begun before what is kept. A path ends at a block without one.
            period: self.off_cpu_period.or((is_ring || !self.critical_path.is_empty()).then_some(1)),
            min_block: self.min_block,
            max_block: self.max_block,
            waker_depth: (self.wakers || self.run_queue || !self.critical_path.is_empty())
                .then_some(self.waker_depth.map_or(1, usize::from)),
            run_queue_only: self.run_queue,
            latency: self.latency,
            in_kernel: self.bpf,
        })
    }
}

fn usage<T>(message: &str) -> Result<T, Error> {
    Err(Error::Usage(message.to_owned()))
}
