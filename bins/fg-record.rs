//! `fg-record`: samples the stacks of a live program, of running processes, or of the whole system.

use std::process::ExitCode;

use fgkit::Error;
use fgkit::cli::{self, Color, Common, Entries, Session, Tool};

#[cfg(target_os = "linux")]
#[path = "fg-record/request.rs"]
mod request;

/// Sample stacks of a command, of running processes, or of all CPUs, as folded text
///
/// Stacks are unwound by the information that compilers leave in every program, as they are sampled; nothing goes to
/// disk. They are named from symbol tables and debug information; inlined calls are frames of their own. Threads and
/// children are followed. While the profile goes to standard output, what the command prints there goes to standard
/// error. Ctrl-C ends the recording and prints what there is; the command's exit status is passed on. A SIGINT to
/// fg-record alone leaves the command running and waits for its end; a SIGTERM is passed on to it.
///
/// In each thread and child the kernel counts from the start: one that ends before its first sample is due has none.
/// Where many live that short, use a higher frequency, or -a, which counts on CPUs.
#[derive(clap::Parser)]
#[command(
    name = "fg-record",
    override_usage = "fg-record [OPTIONS] -- COMMAND [ARGUMENT]...\n       fg-record [OPTIONS] -p PID[,PID]... | -t TID | -a | --cgroup PATH"
)]
struct Args {
    /// The command to run and record, and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<std::ffi::OsString>,

    /// Record running processes, and what they start
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<u32>,

    /// Record running threads, without what they start
    #[arg(short, long, value_name = "TID", value_delimiter = ',', hide_short_help = true)]
    tid: Vec<u32>,

    /// Record the processes of a cgroup, by its path below /sys/fs/cgroup
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    cgroup: Option<std::path::PathBuf>,

    /// Record all CPUs
    #[arg(short, long)]
    all_cpus: bool,

    /// Record on these CPUs alone: 0-3,8
    ///
    /// With --off-cpu, blocks that began there, wherever they ended.
    #[arg(short = 'C', long, value_name = "LIST", hide_short_help = true)]
    #[cfg(target_os = "linux")]
    cpu: Option<fgkit::record::cpus::CpuList>,

    /// Run the command as this user: with sudo fg-record it need not be root
    #[arg(long, value_name = "NAME", requires = "command", hide_short_help = true)]
    user: Option<String>,

    /// Stop after this time: 10, 500ms, 2m
    #[arg(short, long, value_name = "TIME", value_parser = cli::parse_duration)]
    duration: Option<std::time::Duration>,

    /// Samples a second [default: 997 of a command, else 99]
    #[arg(short = 'F', long, value_name = "HZ", value_parser = clap::value_parser!(u64).range(1..))]
    frequency: Option<u64>,

    /// One sample every N events, instead of so many a second
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    #[arg(conflicts_with = "frequency")]
    count: Option<u64>,

    /// The events to sample [default: cycles or cpu-clock]
    ///
    /// Of the CPU: cycles, instructions, cache-misses, branches and the like, L1-dcache-load-misses and the like, rNNN by
    /// its number, cpu/event=0xNN,umask=0xNN/ by the words that the kernel lists; most virtual machines count none of them.
    /// Of the kernel: cpu-clock, task-clock, page-faults, context-switches and the like, and tracepoints such as
    /// sched:sched_switch; but for the clocks every one is sampled, unless -F or -c says otherwise. Of a program: calls
    /// of a function, uprobe:PATH:SYMBOL, by its name in the file, as pictures show it or as 0xADDRESS, which are sampled
    /// too, or with :NUMBER behind it the sum of that argument, such as malloc's first: an int that is below zero counts
    /// as the large number that it is without its sign. Behind a colon: u, in programs alone; k, in the kernel alone; p, pp, ppp,
    /// as near to the cause as the CPU can. Several, with commas between them or -e again, make several profiles: name the
    /// files by event, as in -o 'app-%e.folded', or print them all with --script.
    #[arg(short, long, value_name = "EVENT")]
    event: Vec<String>,

    /// Record blocked time, in microseconds
    ///
    /// By the stack with which they left their CPU. The leaf is [off-cpu], or [runnable] after a preemption. The wait for
    /// a CPU after the end of a block is part of it: only the scheduler's own events could tell them apart. Who is still
    /// blocked when the recording ends counts up to then. Blocks that began before the recording are left out.
    #[arg(long, conflicts_with_all = ["event", "frequency", "count", "script", "weight"])]
    off_cpu: bool,

    /// Record all time, on CPUs and off, in microseconds
    ///
    /// What was sampled on CPUs and what --off-cpu records, in one profile. The sum of a thread is its life within the
    /// recording: switches say for how long it ran, and its samples share that out. Run time without a sample is
    /// [unsampled], and so is what was asleep when the recording began.
    #[arg(long, conflicts_with_all = ["off_cpu", "event", "count", "script", "weight", "min_block", "max_block", "bpf"])]
    wall: bool,

    /// Of blocks, take the stack of every Nth [default: of each, until there are 20000 a second]
    ///
    /// All are timed nevertheless. Those of one thread that last about equally long share their time out among those whose
    /// stack was taken.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    off_cpu_period: Option<u64>,

    /// Add blocks up in the kernel, for --off-cpu of a whole system all the time
    ///
    /// A program there adds up how long threads were off their CPUs, by stack; what is read, once a second, is the sums.
    /// Switches cost what they cost without it, the recorder next to nothing. Stacks are followed by frame pointers, as
    /// with --call-graph fp. Of more than 16384 distinct stacks or 32768 kinds of blocks a second, the rest is [lost].
    /// Needs root, Linux 5.18, and a build with `--features bpf`.
    #[arg(long, requires = "off_cpu", hide_short_help = true)]
    #[arg(conflicts_with_all = ["off_cpu_period", "cpu", "mmap_pages", "cgroup"])]
    bpf: bool,

    /// Leave shorter blocks out: 1ms, 50us
    #[arg(long, value_name = "TIME", value_parser = cli::parse_duration, requires = "off_cpu", hide_short_help = true)]
    min_block: Option<std::time::Duration>,

    /// Leave longer blocks out
    #[arg(long, value_name = "TIME", value_parser = cli::parse_duration, requires = "off_cpu", hide_short_help = true)]
    max_block: Option<std::time::Duration>,

    /// dwarf[,BYTES], fp or lbr [default: dwarf]
    ///
    /// dwarf unwinds a copy of the stack (16384 bytes of it, or 8192 of each switch with --off-cpu and --wall, unless said)
    /// by the unwind information that compilers leave in every program; what lies deeper is read from the thread itself
    /// while it runs. Right for programs without frame pointers, however deep. fp follows frame pointers, in the kernel:
    /// cheaper, but code without them cuts stacks short, and nothing can tell that. lbr takes the calls that have not
    /// returned from the branch records of the CPU, where it has some: 8 to 32 of them, without any of the program's memory.
    #[arg(long, value_name = "HOW")]
    #[cfg(target_os = "linux")]
    call_graph: Option<fgkit::record::counters::sampling::CallGraph>,

    /// Do not read from living threads what the copy of a stack misses
    #[arg(long, hide_short_help = true)]
    no_live_tail: bool,

    /// What a stack weighs: samples, or period, the event's own count since the last sample
    #[arg(
        long,
        value_name = "BY",
        value_enum,
        default_value = "samples",
        hide_possible_values = true,
        hide_short_help = true
    )]
    weight: fgkit::profile::SampleWeight,

    /// Follow no stack further than this many frames
    ///
    /// With --call-graph fp the kernel follows 127 of them, its own among them, unless kernel.perf_event_max_stack says
    /// otherwise. With dwarf only the program's count.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), hide_short_help = true)]
    max_stack: Option<u16>,

    /// The size of the ring of samples of each CPU: pages, or bytes as in 512K; a power of two
    #[arg(short, long, value_name = "SIZE", hide_short_help = true)]
    #[cfg_attr(target_os = "linux", arg(value_parser = fgkit::record::counters::sampling::parse_ring_size))]
    mmap_pages: Option<u8>,

    /// Take fewer samples while the recorder itself takes more of a CPU than this
    ///
    /// And more again when it takes less. Samples weigh their period then, as with --weight period.
    #[arg(long, value_name = "PERCENT", hide_short_help = true)]
    #[arg(value_parser = cli::parse_percent, conflicts_with = "weight")]
    max_overhead: Option<f64>,

    /// Write a profile every so often, and begin anew: for days
    ///
    /// Each to a file of its own, whose name tells when it began: -o 'app-%t.folded' makes app-20261121T025700Z.folded.
    /// What ended meanwhile is forgotten.
    #[arg(long, value_name = "TIME", value_parser = cli::parse_duration, hide_short_help = true)]
    interval: Option<std::time::Duration>,
    /// What a stack weighs, of a tracepoint: the sum of this field, such as bytes of block:block_rq_issue
    ///
    /// What is negative, as the results of system calls that failed are, weighs nothing.
    #[arg(long, value_name = "FIELD", requires = "event", conflicts_with = "weight", hide_short_help = true)]
    weight_field: Option<String>,

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
    #[arg(long, hide_short_help = true)]
    script: bool,

    /// Whose times --script prints: monotonic, or realtime (the time of day)
    ///
    /// For a program that writes down by this clock what it does when: see fg-collapse --span.
    #[arg(
        long,
        value_name = "CLOCK",
        default_value = "monotonic",
        requires = "script",
        hide_possible_values = true,
        hide_short_help = true
    )]
    clock: fgkit::perf::export::perf_script::Clock,

    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    color: Color,
}

impl Args {
    /// Whether the output's name stands for several files, one for each event or time.
    fn names_files(&self) -> bool {
        let name = self.common.output.as_ref().map(|path| path.to_string_lossy());
        name.is_some_and(|name| name.contains("%t") || name.contains("%e"))
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-record -- ./app | fg-svg > flame.svg", "A program from start to end."),
        ("fg-record -p 1234 -d 30 | fg-svg > flame.svg", "A running process for half a minute."),
        ("sudo fg-record -a -d 10 | fg-filter --focus kswapd", "The whole system; what matters is chosen later."),
        ("sudo fg-record --off-cpu -p 1234 -d 30 | fg-svg > waits.svg", "Where a process waits."),
        ("sudo fg-record --wall -- ./app | fg-svg > time.svg", "All time, on CPUs and off."),
        (
            "fg-record -e syscalls:sys_exit_write --weight-field ret -- ./app | fg-svg > writes.svg",
            "The bytes that were written.",
        ),
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

    fn names_files(&self) -> bool {
        Self::names_files(self)
    }

    fn reads_stdin(&self) -> bool {
        false
    }

    fn handles_signals(&self) -> bool {
        true
    }

    #[cfg(target_os = "linux")]
    fn run(self, session: &mut Session) -> Result<u8, Error> {
        request::run(&self, session)
    }

    #[cfg(not(target_os = "linux"))]
    fn run(self, _: &mut Session) -> Result<u8, Error> {
        let instead = "recording needs Linux; record with dtrace, sample or xctrace and fold that with fg-collapse";
        Err(Error::System(instead.to_owned()))
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
