//! `fg-record`: samples the stacks of a live program, of running processes, or of the whole system.

use std::process::ExitCode;

use fgkit::Error;
use fgkit::cli::{self, Color, Common, Entries, Session, Tool};

#[cfg(target_os = "linux")]
mod linux {
    use std::time::Duration;

    use fgkit::cli::Session;
    use fgkit::diagnostics::plural;
    use fgkit::perf::recording::Counts;
    use fgkit::perf::{script, symbolize};
    use fgkit::record::events::Metric;
    use fgkit::record::sampling::Rate;
    use fgkit::record::{self, Recorded, Request, RequestTarget, summary};
    use fgkit::{Error, folded};

    use super::Args;

    /// Records, prints, and passes on how the command ended.
    pub fn run(args: Args, session: &mut Session) -> Result<u8, Error> {
        let request = request(&args, session.output.is_stdout())?;
        let diagnostics = &mut session.diagnostics;
        // Not beside a command, which has the terminal to itself.
        let watched = args.command.is_empty() && diagnostics.shows_progress();
        let mut watch = |elapsed: Duration, counts: &Counts| diagnostics.progress(|| so_far(elapsed, counts));
        let mut recorded = record::record(request, watched.then_some(&mut watch))?;
        for note in &recorded.notes {
            session.diagnostics.warn(note);
        }
        let printed = print(&args, &recorded, session);
        let status = recorded.command.as_mut().map_or(Ok(0), |command| command.wait())?;
        match printed {
            // Whoever read our output has gone; the command's own end still counts.
            Err(error) if error.is_broken_pipe() => Ok(status),
            result => result.map(|()| status),
        }
    }

    fn request(args: &Args, to_stdout: bool) -> Result<Request, Error> {
        let target = match (args.command.is_empty(), args.pid.is_empty(), args.all_cpus) {
            (false, true, false) => RequestTarget::Command(args.command.clone(), to_stdout),
            (true, false, false) => RequestTarget::Processes(args.pid.clone()),
            (true, true, true) => RequestTarget::System,
            (true, true, false) => {
                return Err(Error::Usage("name a command (fg-record -- CMD), a process (-p PID), or -a".to_owned()));
            }
            _ => return Err(Error::Usage("a command, -p and -a exclude each other".to_owned())),
        };
        Ok(Request {
            target,
            metrics: args.event.as_deref().map_or(Ok(Vec::new()), Metric::list)?,
            rate: args.frequency.map(Rate::Frequency),
            call_graph: args.call_graph,
            ring: None,
            max_stack: None,
            cpus: None,
            live_tail: !args.no_live_tail,
            duration: args.duration,
            weight: args.weight,
            each_sample: args.script,
        })
    }

    /// Prints the profile and sums the recording up. The output is closed, so that whoever reads it can go on even if
    /// the command still runs.
    fn print(args: &Args, recorded: &Recorded, session: &mut Session) -> Result<(), Error> {
        let Recorded { recording, .. } = recorded;
        let names = symbolize::symbolize(&recording.objects, recording.locations(), &names_wanted(args));
        let (profile, unknown) = recording.profile(0, &names)?;
        for remark in names.remarks() {
            session.diagnostics.warn(remark);
        }
        for line in summary::lines(recorded, args.call_graph, unknown) {
            session.diagnostics.warn(&line);
        }
        session.diagnostics.note(&summary::cuts(recorded));
        session.output.write_with(|mut out| match args.script {
            true => {
                let events: Vec<&str> = recorded.metrics.iter().map(|(metric, _)| metric.name()).collect();
                script::write(recording, &names, &events, args.weight, &mut out)
            }
            false => folded::write(&profile, &mut out),
        })?;
        session.output.close()
    }

    fn names_wanted(args: &Args) -> symbolize::Options {
        symbolize::Options { inline: !args.no_inline, lines: args.lines, debuginfod: args.debuginfod }
    }

    fn so_far(elapsed: Duration, counts: &Counts) -> String {
        format!("{} s, {}, {} lost", elapsed.as_secs(), plural(counts.samples, "sample"), counts.lost)
    }
}

/// Sample stacks of a command, of running processes, or of all CPUs, as folded text
///
/// Stacks are unwound by the information that compilers leave in every program, as they are sampled; nothing goes to
/// disk. They are named from symbol tables and debug information; inlined calls are frames of their own. Threads and
/// children are followed. While the profile goes to standard output, what the command prints there goes to standard
/// error. Ctrl-C ends the recording and prints what there is; the command's exit status is passed on.
#[derive(clap::Parser)]
#[command(
    name = "fg-record",
    override_usage = "fg-record [OPTIONS] -- COMMAND [ARGUMENT]...\n       fg-record [OPTIONS] -p PID[,PID]...\n       fg-record [OPTIONS] -a"
)]
struct Args {
    /// The command to run and record, and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<std::ffi::OsString>,

    /// Record running processes, and what they start
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<u32>,

    /// Record all CPUs
    #[arg(short, long)]
    all_cpus: bool,

    /// Stop after this time: 10, 500ms, 2m
    #[arg(short, long, value_name = "TIME", value_parser = cli::parse_duration)]
    duration: Option<std::time::Duration>,

    /// Samples a second [default: 997 of a command, else 99]
    #[arg(short = 'F', long, value_name = "HZ", value_parser = clap::value_parser!(u64).range(1..))]
    frequency: Option<u64>,

    /// The event to sample [default: cycles or cpu-clock]
    ///
    /// Of the CPU: cycles, instructions, cache-misses, branches, branch-misses; most virtual machines do not count
    /// them. Of the kernel: cpu-clock, task-clock, page-faults, minor-faults, major-faults.
    #[arg(short, long, value_name = "EVENT")]
    event: Option<String>,

    /// dwarf[,BYTES] or fp
    ///
    /// dwarf unwinds a copy of the stack (16384 bytes of it, unless said) by the unwind information that compilers leave
    /// in every program; what lies deeper is read from the thread itself while it runs. Right for programs without frame
    /// pointers, however deep. fp follows frame pointers, in the kernel: cheaper, but code without them cuts stacks short,
    /// and nothing can tell that.
    #[arg(long, value_name = "HOW", default_value = "dwarf,16384")]
    #[cfg(target_os = "linux")]
    call_graph: fgkit::record::sampling::CallGraph,

    /// Do not read from living threads what the copy of a stack misses
    #[arg(long, hide_short_help = true)]
    no_live_tail: bool,

    /// What a stack weighs: samples, or period, the event's own count since the last sample
    #[arg(long, value_name = "BY", value_enum, default_value_t, hide_possible_values = true, hide_short_help = true)]
    weight: fgkit::perf::recording::WeightBy,

    /// Leave inlined calls out: quicker for large programs
    #[arg(long, hide_short_help = true)]
    no_inline: bool,

    /// Add each frame's place in the source: `parse:lexer.c:123`
    #[arg(long, hide_short_help = true)]
    lines: bool,

    /// Let debuginfod-find fetch debug information that is missing
    #[arg(long, hide_short_help = true)]
    debuginfod: bool,

    /// Print each sample as `perf script` does
    #[arg(long)]
    script: bool,

    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    color: Color,
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-record -- ./app | fg-svg > flame.svg", "A program from start to end."),
        ("fg-record -p 1234 -d 30 | fg-svg > flame.svg", "A running process for half a minute."),
        ("sudo fg-record -a -d 10 | fg-filter --focus kswapd", "The whole system; what matters is chosen later."),
        ("fg-record --script -- ./app > app.script", "Each sample with its time, as perf script prints it."),
    ];

    const EXIT_STATUS: Entries = &[
        ("N", "That of the command; 128+N if signal N ended it. 0 where there was no command."),
        ("125", "Nothing could be recorded, or the output could not be written."),
        ("126", "The command could not be run."),
        ("127", "The command was not found."),
        ("2", "The command line is wrong."),
    ];

    const SEE_ALSO: &'static [&'static str] = &["perf-record(1)", "perf-script(1)", "perf_event_open(2)"];

    fn common(&self) -> &Common {
        &self.common
    }

    fn color(&self) -> clap::ColorChoice {
        self.color.color
    }

    fn reads_stdin(&self) -> bool {
        false
    }

    fn handles_signals(&self) -> bool {
        true
    }

    #[cfg(target_os = "linux")]
    fn run(self, session: &mut Session) -> Result<u8, Error> {
        linux::run(self, session)
    }

    #[cfg(not(target_os = "linux"))]
    fn run(self, _: &mut Session) -> Result<u8, Error> {
        let instead = "recording needs Linux; record with dtrace, sample or xctrace and fold that with fg-collapse";
        Err(Error::Refused(instead.to_owned()))
    }

    fn failure(error: &Error) -> u8 {
        match error {
            Error::Command { status, .. } => *status,
            _ => 125,
        }
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
