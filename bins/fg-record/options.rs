//! The options of fg-record, in groups.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use fgkit::cli::{ColorArgs, CommonArgs, integer_in, parse_duration, parse_percent};
use fgkit::perf::export::perf_script::Clock;
use fgkit::profile::SampleWeight;

use crate::ring_options::RingArgs;
use crate::time_options::{OffCpuArgs, PairArgs};

/// Sample the stacks of a command, of processes or of the whole system
///
/// Writes folded stacks, which fg-svg(1) and the other programs read; fg-folded(5) describes the format. Linux only.
///
/// Stacks are unwound while the program runs, from the unwind information that compilers emit by default: no frame
/// pointers are needed, and no raw samples are written to disk. Functions are named from symbol tables and debug
/// information, and inlined calls have frames of their own. Threads and child processes are recorded, too.
///
/// If the profile goes to standard output, the command's own output is redirected to standard error.
///
/// The recording ends when the target exits, after the time of -d, or on Ctrl-C, Ctrl-\, SIGTERM or SIGHUP. fg-record
/// then writes the profile; a second signal before it has finished ends it without a profile. SIGTERM and SIGHUP are
/// passed on to the command. A SIGINT or SIGQUIT that is sent to fg-record alone ends the recording but not the command:
/// fg-record writes the profile, and waits for the command to exit.
///
/// If fg-record is killed, even by SIGKILL, the kernel sends SIGTERM to the command, but not to the command's children.
/// It sends none if the command is set-user-ID or set-group-ID, has file capabilities, or changes its user or group.
///
/// With -p, -t, -a or --cgroup, a command sets the duration: the target is recorded until the command exits. The
/// command itself is not recorded, unless it is part of the target. If the recording ends first, the command gets a
/// SIGTERM.
///
/// If the requirements for BPF are met (see PERMISSIONS in fg-record(1)), a BPF program captures the stacks, and clocks
/// and hardware events are counted per CPU. Without it, each thread has its own counter, and a thread that exits before
/// its first sample is not recorded: if the program starts many short-lived threads or processes, raise -F. At the end,
/// fg-record prints a summary to standard error, which shows how much of the CPU time the samples cover.
#[derive(clap::Parser)]
#[command(
    name = "fg-record",
    override_usage = "fg-record [OPTIONS] -- COMMAND [ARGUMENT]...\n       \
                      fg-record [OPTIONS] -p PID | -t TID | -a | --cgroup PATH [-- COMMAND...]"
)]
pub struct Args {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub off_cpu: OffCpuArgs,
    #[command(flatten)]
    pub pairs: PairArgs,
    #[command(flatten)]
    pub stacks: StackArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub ring: RingArgs,
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub color: ColorArgs,
}

/// Options that select the target.
#[derive(clap::Args)]
#[command(next_help_heading = "Target")]
pub struct TargetArgs {
    /// The command to run, with its arguments
    ///
    /// It is recorded unless -p, -t, -a or --cgroup selects the target.
    #[arg(value_name = "COMMAND", trailing_var_arg = true, help_heading = None)]
    pub command: Vec<OsString>,

    /// Record running processes and their new children
    ///
    /// Separate PIDs with commas.
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = integer_in::<u32>(..))]
    pub pid: Vec<u32>,

    /// With -p, also record descendants already running
    ///
    /// By default, of the descendants of PID, only those that start during the recording are recorded. A process whose
    /// parent has exited no longer counts as a descendant. The recording ends when all of its processes that were
    /// running at its start have exited, even if newer ones are still running.
    #[arg(long, requires = "pid")]
    pub subprocesses: bool,

    /// Record running threads, but no threads or processes that they start
    #[arg(short, long, value_name = "TID", value_delimiter = ',', value_parser = integer_in::<u32>(..))]
    #[arg(hide_short_help = true)]
    pub tid: Vec<u32>,

    /// Record the processes of a cgroup
    ///
    /// PATH is the directory of the cgroup, absolute or relative to /sys/fs/cgroup. --cgroup cannot be used with --pair
    /// or its short forms.
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub cgroup: Option<PathBuf>,

    /// Record the whole system
    #[arg(short, long)]
    pub all_cpus: bool,

    /// Record on these CPUs only, like 0-3,8
    ///
    /// With --off-cpu, LIST selects blocks by the CPU on which they begin.
    #[arg(short = 'C', long, value_name = "LIST", hide_short_help = true)]
    #[cfg(target_os = "linux")]
    pub cpu: Option<fgkit::record::cpus::CpuList>,

    /// Run the command as this user, which only root may do
    #[arg(long, value_name = "NAME", requires = "command", hide_short_help = true)]
    pub user: Option<String>,

    /// Stop after this time, like 10, 500ms or 2m
    ///
    /// A number without a unit is in seconds. A command that is still running gets a SIGTERM.
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
}

/// Options for events and the sampling rate.
#[derive(clap::Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Sample HZ times a second [default: 997 or 99]
    ///
    /// The default is 997 for a command, and 99 with -p, -t, -a and --cgroup.
    #[arg(short = 'F', long, alias = "freq", value_name = "HZ", value_parser = integer_in(1_u64..))]
    pub frequency: Option<u64>,

    /// Sample every Nth event instead of HZ times a second
    #[arg(short = 'c', long, value_name = "N", value_parser = integer_in(1_u64..), hide_short_help = true)]
    #[arg(conflicts_with = "frequency")]
    pub count: Option<u64>,

    /// Sample these events [default: cycles or cpu-clock]
    ///
    /// The default is cpu-clock on machines that cannot count cycles. For the names of events, see EVENTS in
    /// fg-record(1).
    #[arg(short, long, value_name = "EVENT")]
    pub event: Vec<String>,

    /// Weight stacks by `samples` or by `period`
    ///
    /// The period is the number of events since the previous sample: nanoseconds for cpu-clock. Events that are counted one
    /// by one, such as tracepoints and page faults, have periods with -c only.
    #[arg(long, value_name = "BY", default_value = "samples", hide_possible_values = true, hide_short_help = true)]
    pub weight: SampleWeight,

    /// Weight stacks by the sum of this field of a tracepoint
    ///
    /// Name the tracepoint with -e: `-e block:block_rq_issue --weight-field bytes`. Negative values, such as the results of
    /// failed system calls, count as 0.
    #[arg(long, value_name = "FIELD", requires = "event", conflicts_with = "weight", hide_short_help = true)]
    pub weight_field: Option<String>,

    /// Sample a tracepoint only if EXPRESSION is true of its fields
    ///
    /// Name one tracepoint with -e: `-e sched:sched_switch --filter 'prev_state & 1 && prev_prio < 120'`. The kernel
    /// evaluates the expression.
    #[arg(long, value_name = "EXPRESSION", requires = "event", hide_short_help = true)]
    pub filter: Option<String>,

    /// Sample less often while fg-record uses more than this share of a CPU
    ///
    /// The rate rises again when the share falls. Stacks are weighted by their periods, as with `--weight period`. The share
    /// is that of fg-record itself, without the time for which the recorded program stops while its stacks are taken: lower
    /// -F to reduce that, because samples of clocks, of threads and with -c are left out only after their stacks were taken.
    #[arg(long, value_name = "PERCENT", hide_short_help = true)]
    #[arg(value_parser = parse_percent, conflicts_with = "weight")]
    pub max_overhead: Option<f64>,

    /// Set the size of each CPU's ring buffer: pages, or bytes like 512K or 4M
    ///
    /// The default is 512K, and 2M to 16M if the kernel copies stacks. The number of pages is rounded up to a power of
    /// two.
    #[arg(short, long, value_name = "SIZE", hide_short_help = true)]
    #[cfg_attr(target_os = "linux", arg(value_parser = fgkit::record::counters::ring_size::parse_ring_size))]
    pub mmap_pages: Option<u8>,
}

/// Options for unwinding and symbolization.
#[derive(clap::Args)]
#[command(next_help_heading = "Stacks")]
pub struct StackArgs {
    /// Unwind with `dwarf`, `fp` or `lbr` [default: dwarf]
    ///
    /// `dwarf` uses the program's unwind information and needs no frame pointers. With BPF (see PERMISSIONS in
    /// fg-record(1)), it captures whole stacks, of up to 4096 frames, while the thread is stopped. Otherwise the kernel
    /// copies up to 65528 bytes of each stack, or less if frequent samples or a low limit of locked memory would make
    /// the ring buffers overflow. Larger stacks are cut, and marked with the frame `[truncated]`. -v prints which
    /// method was used.
    ///
    /// `dwarf,BYTES` makes the kernel copy stacks even with BPF, at most BYTES of each, up to 65528.
    ///
    /// With `fp`, the kernel follows the frame pointers. It is cheaper, but stacks end early in code without frame
    /// pointers, and this cannot be detected.
    ///
    /// `lbr` takes stacks from the CPU's last branch record, without reading the program's memory. It needs an Intel
    /// CPU (Haswell or later), whose record holds the innermost 8 to 32 calls.
    #[arg(long, value_name = "MODE")]
    #[cfg(target_os = "linux")]
    pub call_graph: Option<fgkit::record::counters::sampling::CallGraph>,

    /// Accepted for compatibility with `perf record -g`: call graphs are always recorded
    #[arg(short = 'g', hide_short_help = true)]
    _call_graphs: bool,

    /// Unwind at most N frames
    ///
    /// With `--call-graph fp`, N includes kernel frames, and the default is the sysctl kernel.perf_event_max_stack,
    /// normally 127. With `dwarf`, N limits user frames only.
    #[arg(long, value_name = "N", value_parser = integer_in(1_u16..), hide_short_help = true)]
    pub max_stack: Option<u16>,

    /// Leave out inlined calls, which is faster for large programs
    #[arg(long, hide_short_help = true)]
    pub no_inline: bool,

    /// Leave out the functions of scripts and of virtual machines
    ///
    /// By default, functions of Python, Ruby, PHP, Java and JavaScript programs are shown: see INTERPRETERS AND VIRTUAL
    /// MACHINES in fg-record(1).
    #[arg(long, hide_short_help = true)]
    pub native_only: bool,

    /// Show the interpreter's own frames, too
    ///
    /// This applies to Python, Ruby and PHP. By default, native frames are shown only before the first script function
    /// and after the last one.
    #[arg(long, conflicts_with = "native_only", hide_short_help = true)]
    pub interpreter_frames: bool,

    /// Do not ask Java processes for the names of their methods
    ///
    /// Without BPF, the names of compiled Java methods come from /tmp/perf-PID.map. When the recording of a command or
    /// of processes ends, fg-record asks JVMs of JDK 17 or later that run as the same user to write this file. It does
    /// so as `jcmd PID Compiler.perfmap` does: by SIGQUIT and the socket /tmp/.java_pidPID.
    #[arg(long, hide_short_help = true)]
    pub no_attach: bool,

    /// Append the source line to each frame, like `parse:lexer.c:123`
    #[arg(long, alias = "srcline", hide_short_help = true)]
    pub lines: bool,

    /// Download missing debug information with debuginfod-find(1)
    #[arg(long, hide_short_help = true)]
    pub debuginfod: bool,
}

/// Options for the output format.
#[derive(clap::Args)]
#[command(next_help_heading = "Output format")]
pub struct FormatArgs {
    /// Print samples one by one, in the format of perf-script(1)
    #[arg(long, hide_short_help = true)]
    pub script: bool,

    /// Use this clock for the times of --script: `monotonic` or `realtime`
    ///
    /// `realtime` is CLOCK_REALTIME, in seconds since 1970. To add spans to the samples (--span in fg-collapse(1)),
    /// choose the clock that the program logs them with; OpenTelemetry uses `realtime`.
    #[arg(
        long,
        value_name = "CLOCK",
        default_value = "monotonic",
        requires = "script",
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub clock: Clock,

    /// Write the seconds of the recording and its warnings to FILE as JSON, for fg-bench(1)
    #[arg(long, value_name = "FILE", hide = true)]
    pub summary_to: Option<PathBuf>,

    /// Start stacks with these properties of their threads, like container,pid
    ///
    /// LIST is a comma-separated list of any of `pid`, `tid`, `cpu`, `cgroup` (its path), `container` (the first digits
    /// of its ID), and the properties below. Each is a frame before the thread's name, so fg-filter(1) can select
    /// stacks by it.
    ///
    /// `task` is the name of the asyncio task that a thread of Python 3.14 or later runs, or `[no task]`.
    ///
    /// `trace`, `span` and `attr:NAME`, such as `attr:http_route`, are the trace, the span and an attribute of the work
    /// that the thread does. The program must publish them while it runs, as OpenTelemetry's thread context (OTEP 4947)
    /// describes. The frame is `[no span]` outside of spans, and `[no attribute]` if a span lacks the attribute. It is
    /// `[unknown]` if it could not be read: right after a process has started or its library has been loaded, and for
    /// attributes of a process that does not publish their names, such as a forked one. Only the first 612 bytes of
    /// attributes are read.
    ///
    /// `task`, `trace`, `span` and `attr:NAME` require BPF (see PERMISSIONS in fg-record(1)).
    #[arg(long, value_name = "LIST", hide_short_help = true, conflicts_with_all = ["script", "bpf"])]
    pub split_by: Option<fgkit::perf::recording::RootLabels>,

    /// Write a profile every TIME, like 10m, and start a new one
    ///
    /// Use this for recordings that last for days. TIME is at least 1s. --interval cannot be used with options that record
    /// time, such as --off-cpu, --wall and --pair. In the file name of -o, `%t` is the time at which a profile begins:
    /// `-o 'app-%t.folded'` writes app-20261121T025700Z.folded and so on. Processes that have exited are forgotten
    /// after each profile, to limit memory.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide_short_help = true)]
    pub interval: Option<Duration>,
}

impl Args {
    /// True if the output's name is a pattern for several files, one for each event or time.
    pub fn has_output_pattern(&self) -> bool {
        let name = self.common.output.as_ref().map(|path| path.to_string_lossy());
        name.is_some_and(|name| name.contains("%t") || name.contains("%e"))
    }
}
