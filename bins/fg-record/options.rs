//! The options of fg-record, in groups.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use fgkit::cli::{ColorArgs, CommonArgs, integer_in, parse_duration, parse_percent};
use fgkit::perf::export::perf_script::Clock;
use fgkit::profile::SampleWeight;

use crate::time_options::{OffCpuArgs, PairArgs};

/// Sample the stacks of a command, of processes or of the whole system
///
/// Writes folded stacks, which fg-svg(1) and the other programs read; fg-folded(5) describes the format. Linux only.
///
/// Stacks are unwound while the program runs, with the unwind information that compilers put into every program. No
/// frame pointers are needed, and no raw samples are written to disk. Functions are named from symbol tables and debug
/// information; inlined calls are frames of their own. Threads and child processes are recorded, too.
///
/// If the profile goes to standard output, the command's own output is redirected to standard error.
///
/// The recording ends when the target exits, after the time of -d, or on Ctrl-C or Ctrl-\. The profile is then written;
/// a second signal meanwhile ends fg-record without a profile. SIGTERM and SIGHUP are passed on to the command. A
/// SIGINT or SIGQUIT that is sent to fg-record alone ends the recording but not the command: fg-record writes the
/// profile and waits for the command to exit.
///
/// If fg-record is killed, even by SIGKILL, the command gets a SIGTERM, but processes that it has started do not. The
/// kernel sends no such signal to a command that has rights which fg-record lacks, because its program is set-user-ID,
/// set-group-ID or has file capabilities, nor to one that changes its user or group later.
///
/// With -p, -t, -a or --cgroup, a command sets the duration: the target is recorded until the command exits. The
/// command itself is not recorded, unless it is part of the target. If the recording ends first, the command gets a
/// SIGTERM.
///
/// If fg-record runs as root, or with CAP_BPF and CAP_PERFMON, a BPF program takes the stacks, and counters are per
/// CPU. Otherwise counters are per thread: a thread that exits before its first sample is due is not recorded. If a
/// program then starts many short-lived threads or processes, raise -F. The summary says how much of the CPU time the
/// samples cover.
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
    pub common: CommonArgs,
    #[command(flatten)]
    pub color: ColorArgs,
}

/// Options that select the target.
#[derive(clap::Args)]
#[command(next_help_heading = "Target")]
pub struct TargetArgs {
    /// The command to run and record, with its arguments
    ///
    /// With -p, -t, -a or --cgroup, the target is recorded until the command exits.
    #[arg(value_name = "COMMAND", trailing_var_arg = true, help_heading = None)]
    pub command: Vec<OsString>,

    /// Record running processes and children they start
    ///
    /// Separate several PIDs by commas.
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = integer_in::<u32>(..))]
    pub pid: Vec<u32>,

    /// With -p, record running descendants, too
    ///
    /// Without this option, only children that start during the recording are recorded. A process whose parent has
    /// exited is no descendant any more. The recording ends when all processes that ran at its start have exited.
    #[arg(long, requires = "pid")]
    pub subprocesses: bool,

    /// Record running threads, but no threads or processes that they start
    #[arg(short, long, value_name = "TID", value_delimiter = ',', value_parser = integer_in::<u32>(..))]
    #[arg(hide_short_help = true)]
    pub tid: Vec<u32>,

    /// Record the processes of a cgroup
    ///
    /// PATH is relative to /sys/fs/cgroup, or the path of the cgroup's directory.
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

    /// Run the command as this user, if fg-record runs as root
    #[arg(long, value_name = "NAME", requires = "command", hide_short_help = true)]
    pub user: Option<String>,

    /// Stop after this time, like 10, 500ms or 2m
    ///
    /// A number without a unit is in seconds. The command, if there is one and it still runs, gets a SIGTERM.
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
    #[arg(short = 'F', long, value_name = "HZ", value_parser = integer_in(1_u64..))]
    pub frequency: Option<u64>,

    /// Sample every Nth event instead of HZ times a second
    #[arg(short = 'c', long, value_name = "N", value_parser = integer_in(1_u64..), hide_short_help = true)]
    #[arg(conflicts_with = "frequency")]
    pub count: Option<u64>,

    /// Sample these events [default: cycles or cpu-clock]
    ///
    /// cpu-clock is the default on machines that do not count cycles. For the names of events, see EVENTS in
    /// fg-record(1).
    #[arg(short, long, value_name = "EVENT")]
    pub event: Vec<String>,

    /// Weigh stacks by `samples` or by `period`
    ///
    /// The period is the number of events since the previous sample: nanoseconds for cpu-clock.
    #[arg(long, value_name = "BY", default_value = "samples", hide_possible_values = true, hide_short_help = true)]
    pub weight: SampleWeight,

    /// Weigh stacks by the sum of this field of a tracepoint
    ///
    /// -e names the tracepoint: `-e block:block_rq_issue --weight-field bytes`. Negative values, such as the results of
    /// failed system calls, count as 0.
    #[arg(long, value_name = "FIELD", requires = "event", conflicts_with = "weight", hide_short_help = true)]
    pub weight_field: Option<String>,

    /// Sample a tracepoint only if EXPRESSION is true of its fields
    ///
    /// The expression is the kernel's, as in `-e sched:sched_switch --filter 'prev_state & 1 && prev_prio < 120'`.
    /// -e names one tracepoint.
    #[arg(long, value_name = "EXPRESSION", requires = "event", hide_short_help = true)]
    pub filter: Option<String>,

    /// Sample less often while fg-record uses more than this share of a CPU
    ///
    /// The rate rises again when the share falls. Stacks are weighed as with `--weight period`.
    #[arg(long, value_name = "PERCENT", hide_short_help = true)]
    #[arg(value_parser = parse_percent, conflicts_with = "weight")]
    pub max_overhead: Option<f64>,

    /// Set the size of each CPU's ring buffer, in pages or like 512K
    ///
    /// The number of pages is rounded up to a power of two.
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
    /// `dwarf` uses the program's unwind information and needs no frame pointers. As root, or with CAP_BPF and
    /// CAP_PERFMON, on x86-64 and Linux 6.1 or later, a BPF program takes whole stacks, of up to 4096 frames, while the
    /// thread is stopped. Otherwise, and for `uprobe:` events, the kernel copies up to 65528 bytes of the stack, or
    /// less if frequent samples or a low limit of locked memory would make the ring buffers overflow. Larger stacks are
    /// cut, and marked with the frame `[truncated]`. -v says how stacks were taken.
    ///
    /// `dwarf,BYTES` copies BYTES of each stack in any case, at most 65528.
    ///
    /// `fp` follows frame pointers in the kernel. It is cheaper, but code without frame pointers cuts stacks short,
    /// which cannot be detected.
    ///
    /// `lbr` uses the CPU's own record of calls that have not returned, without reading the program's memory. It needs
    /// a CPU with such a record (Intel Haswell and later), which holds 8 to 32 calls.
    #[arg(long, value_name = "MODE")]
    #[cfg(target_os = "linux")]
    pub call_graph: Option<fgkit::record::counters::sampling::CallGraph>,

    /// Record call graphs, as with `perf record -g`: this is always on
    #[arg(short = 'g', hide_short_help = true)]
    _call_graphs: bool,

    /// Unwind at most N frames
    ///
    /// With `--call-graph fp` this includes kernel frames, and the default is the sysctl kernel.perf_event_max_stack,
    /// normally 127. With `dwarf` it limits user frames only.
    #[arg(long, value_name = "N", value_parser = integer_in(1_u16..), hide_short_help = true)]
    pub max_stack: Option<u16>,

    /// Leave out inlined calls, which is faster for large programs
    #[arg(long, hide_short_help = true)]
    pub no_inline: bool,

    /// Leave out the functions of script languages and of Java
    ///
    /// By default, fg-record shows the functions of running Python (3.8 to 3.15), Ruby (3.0 to 3.4) and PHP (7.4 to 8.4,
    /// without thread safety) programs as `NAME (FILE)`, in place of the interpreter's own frames. This needs root, or
    /// CAP_BPF and CAP_PERFMON, on x86-64, and no options or restart of the program. The frame of a function whose name
    /// cannot be read is `[python]`, `[ruby]` or `[php]`. PHP's functions in C have `(php)` for a file, Ruby's are native
    /// frames. The stack of a fiber begins with the fiber. Tried with Python 3.8 to 3.14, Ruby 3.1 and 3.3, and PHP 8.2 and
    /// 8.4; the others are known from their headers only.
    ///
    /// Under the same conditions, methods of Java programs on HotSpot (OpenJDK) are shown as `PACKAGE.CLASS.METHOD`:
    /// interpreted, compiled and inlined ones. In the innermost compiled method, inlined ones are as exact as the compiler's
    /// records: `-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints` makes it keep all. `[frozen]` replaces the callers of a
    /// virtual thread that are not on a stack, and `[java]` for a method whose name cannot be read. Tried with JDK 8, 11,
    /// 17, 21 and 25.
    ///
    /// So are JavaScript functions on V8 9.4 to 13.6, if pointers are not compressed (Node.js 16 to 24), as `NAME (FILE)`:
    /// interpreted, compiled and inlined ones, those of workers, and V8's own with `(v8)` for a file. V8 does not keep the lines
    /// of all code: with `--lines`, some of these frames have none. `[v8]` is a function whose name cannot be read.
    /// Tried with Node.js 16, 18, 20, 22 and 24.
    #[arg(long, hide_short_help = true)]
    pub native_only: bool,

    /// Show the interpreter's own frames, too
    ///
    /// This is about Python, Ruby and PHP. By default, the interpreter's frames are only shown above the innermost script function: there they tell what it
    /// does.
    #[arg(long, conflicts_with = "native_only", hide_short_help = true)]
    pub interpreter_frames: bool,

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
    /// `realtime` is the time of day. Choose the clock with which the program logs its spans: see --span in
    /// fg-collapse(1).
    #[arg(
        long,
        value_name = "CLOCK",
        default_value = "monotonic",
        requires = "script",
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub clock: Clock,

    /// Begin stacks with these properties of their threads, like container,pid
    ///
    /// A list of `pid`, `tid`, `cpu`, `cgroup` (its path) and `container` (the first digits of its ID). The name of the thread
    /// follows. fg-filter(1) and fg-csv(1) select by them as by any other frame.
    #[arg(long, value_name = "LIST", hide_short_help = true, conflicts_with_all = ["script", "bpf"])]
    pub split_by: Option<fgkit::perf::recording::RootLabels>,

    /// Write a profile every TIME, like 10m, and start a new one
    ///
    /// Use this for recordings that last for days. In the file name of -o, `%t` is the time at which a profile begins:
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
