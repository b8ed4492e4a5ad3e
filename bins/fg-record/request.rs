//! What the options ask for.

use std::path::PathBuf;
use std::time::Duration;

use fgkit::Error;
use fgkit::cli::Session;
use fgkit::perf::symbols::frame::SymbolizeOptions;
use fgkit::profile::SampleWeight;
use fgkit::record::counters::sampling::{CallGraph, Rate};
use fgkit::record::events::spec::EventSpec;
use fgkit::record::events::value::SampleValue;
use fgkit::record::off_cpu::OffCpuOptions;
use fgkit::record::output_pattern;
use fgkit::record::report::Report;
use fgkit::record::request::{Request, RequestTarget};
use fgkit::record::run::{self, Destination};

use super::Args;

/// Records, prints, and passes on how the command ended.
pub fn run(args: &Args, session: &mut Session) -> Result<u8, Error> {
    let request = args.request(session.output.is_stdout() && !args.names_files())?;
    let report = args.report(request.weight);
    let destination = match args.pattern() {
        Some(pattern) => Destination::Pattern(pattern),
        None => Destination::Output(&mut session.output),
    };
    run::run(&request, &report, destination, &mut session.diagnostics)
}

impl Args {
    fn request(&self, to_stdout: bool) -> Result<Request, Error> {
        self.check()?;
        let events = self.events()?;
        let weight = self.weight(&events);
        Ok(Request {
            target: self.target(to_stdout)?,
            events,
            rate: self.frequency.map(Rate::Frequency).or(self.count.map(Rate::Period)),
            off_cpu: self.off_cpu(),
            call_graph: self.call_graph(),
            ring_order: self.mmap_pages,
            max_stack: self.max_stack,
            cpus: self.cpu.as_ref().map(|cpus| cpus.0.clone()),
            live_tail: !self.no_live_tail,
            duration: self.duration,
            interval: self.interval,
            max_overhead: self.max_overhead,
            weight,
            each_sample: self.script,
        })
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::Usage(what.to_owned()));
        let off_cpu = self.off_cpu || self.wall;
        if !off_cpu && self.off_cpu_period.is_some() {
            return wrong("--off-cpu-period is for --off-cpu and --wall");
        }
        if self.wall && self.cpu.is_some() {
            return wrong("-C is not for --wall: threads run on other CPUs meanwhile");
        }
        if self.bpf && self.call_graph() != CallGraph::FramePointers {
            return wrong("--bpf follows frame pointers; it copies no stacks for --call-graph dwarf");
        }
        if self.min_block.zip(self.max_block).is_some_and(|(min, max)| min > max) {
            return wrong("--min-block is more than --max-block");
        }
        if off_cpu && (self.interval.is_some() || self.max_overhead.is_some()) {
            return wrong("--interval and --max-overhead are for samples, not for --off-cpu and --wall");
        }
        if self.interval.is_some_and(|interval| interval < Duration::from_secs(1)) {
            return wrong("--interval is a second at least: it is by the second that files are named");
        }
        if self.interval.is_some() && !self.output().is_some_and(output_pattern::has_time) {
            return wrong("--interval writes a file each time: name it by its time, as in -o 'app-%t.folded'");
        }
        Ok(())
    }

    fn target(&self, to_stdout: bool) -> Result<RequestTarget, Error> {
        let wrong = |what: &str| Err(Error::Usage(what.to_owned()));
        let mut targets = Vec::new();
        if !self.command.is_empty() {
            let (words, user) = (self.command.clone(), self.user.clone());
            targets.push(RequestTarget::Command { words, quiet_stdout: to_stdout, user });
        }
        if !self.pid.is_empty() {
            targets.push(RequestTarget::Processes(self.pid.clone()));
        }
        if !self.tid.is_empty() {
            targets.push(RequestTarget::Threads(self.tid.clone()));
        }
        targets.extend(self.cgroup.clone().map(RequestTarget::Cgroup));
        if self.all_cpus {
            targets.push(RequestTarget::System);
        }
        match (targets.pop(), targets.is_empty()) {
            (Some(target), true) => Ok(target),
            (None, _) => wrong("name a command (fg-record -- CMD), a process (-p PID), or -a"),
            _ => wrong("a command, -p, -t, --cgroup and -a exclude each other"),
        }
    }

    /// A thread that leaves its CPU does not change what the copy misses.
    fn call_graph(&self) -> CallGraph {
        let usual = match self.off_cpu || self.wall {
            _ if self.bpf => CallGraph::FramePointers,
            true => CallGraph::Dwarf(8192),
            false => CallGraph::Dwarf(16384),
        };
        self.call_graph.unwrap_or(usual)
    }

    fn off_cpu(&self) -> Option<OffCpuOptions> {
        (self.off_cpu || self.wall).then_some(OffCpuOptions {
            wall: self.wall,
            period: self.off_cpu_period,
            min_block: self.min_block,
            max_block: self.max_block,
            in_kernel: self.bpf,
        })
    }

    fn events(&self) -> Result<Vec<EventSpec>, Error> {
        let wrong = |what: &str| Err(Error::Usage(what.to_owned()));
        let events = EventSpec::parse_lists(&self.event, self.weight_field.as_deref())?;
        if events.len() > 1 && !self.script && !self.output().is_some_and(output_pattern::has_event) {
            return wrong(
                "several events make several profiles: name each file by its event (-o 'app-%e.folded'), \
                 or print them all with --script",
            );
        }
        if self.frequency.is_some() && events.iter().any(|event| event.value.is_some()) {
            return wrong("-F takes samples by time, and a sum needs each event, or with -c every Nth");
        }
        let is_argument = |event: &EventSpec| matches!(event.value, Some(SampleValue::Argument(_)));
        if !matches!(self.call_graph(), CallGraph::Dwarf(_)) && events.iter().any(is_argument) {
            return wrong("only --call-graph dwarf brings a function's arguments");
        }
        Ok(events)
    }

    fn weight(&self, events: &[EventSpec]) -> SampleWeight {
        match self.max_overhead {
            _ if events.iter().any(|event| event.value.is_some()) => SampleWeight::Period,
            _ if self.off_cpu || self.wall => SampleWeight::Microseconds,
            // Where the rate changes, samples do not count alike.
            Some(_) => SampleWeight::Period,
            None => self.weight,
        }
    }

    fn report(&self, weight: SampleWeight) -> Report {
        let names = SymbolizeOptions { inline: !self.no_inline, lines: self.lines, debuginfod: self.debuginfod };
        Report { script: self.script, clock: self.clock, names, weight, call_graph: self.call_graph() }
    }

    fn output(&self) -> Option<&std::path::Path> {
        self.common.output.as_deref()
    }

    fn pattern(&self) -> Option<PathBuf> {
        self.output().filter(|_| self.names_files()).map(std::path::Path::to_owned)
    }
}
