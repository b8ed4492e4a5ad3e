//! The options of fg-record that record how long something lasts, instead of samples.

use std::time::Duration;

use fgkit::cli::{integer_in, parse_duration};

/// Options for time off the CPU.
#[derive(clap::Args)]
#[command(next_help_heading = "Off-CPU time")]
pub struct OffCpuArgs {
    /// Record time off the CPU, in microseconds
    ///
    /// The weight of a stack is the time that its thread spent off the CPU after it was switched out in this stack. The
    /// leaf is `[off-cpu]` if the thread blocked, and `[runnable]` if it was preempted. A block lasts until the thread
    /// runs again, so it includes the wait for a CPU after the wakeup. If a thread is off the CPU when the recording
    /// ends, the time up to the end counts. Blocks that began before the recording are left out.
    #[arg(long, conflicts_with_all = ["event", "frequency", "count", "script", "weight"])]
    pub off_cpu: bool,

    /// Record time on and off the CPU, in microseconds
    ///
    /// Combines samples on the CPU with what --off-cpu records. The weights of a thread add up to its lifetime within
    /// the recording: context switches tell how long it ran, and that time is divided among its samples. The frame
    /// `[unsampled]` marks time without a stack: runs in which no sample was taken, and blocks that began before the
    /// recording.
    #[arg(long, conflicts_with_all = ["off_cpu", "event", "count", "script", "weight"])]
    #[arg(conflicts_with_all = ["min_block", "max_block", "bpf"])]
    pub wall: bool,

    /// Show who ended each block, as `STACK;--;WAKER`
    ///
    /// The stack of each block is followed by the frame `--`, and by the stack of the thread that woke it, whose frames end in
    /// `_[w]`. Both begin at their roots. What an interrupt woke has `[timer]`, `[network]`, `[disk]`, `[softirq]` or
    /// `[interrupt]` for a waker; `[unknown]` is a waker that was not seen. The time from the wake-up until the thread runs is
    /// no part of the block: the leaf of its stack is `[runnable]`, without a waker. The sums are those of recordings without
    /// --wakers.
    ///
    /// Wakers need not be part of what is recorded. Mappings of other processes are read once, when they first wake. Where
    /// only every 17th stack is captured (see --off-cpu-period), so are wakers. Requires root, or CAP_BPF and CAP_PERFMON, on
    /// x86-64 from Linux 6.1 on. Draw the profile with `fg-svg -c chain`.
    #[arg(long, conflicts_with = "bpf", hide_short_help = true)]
    pub wakers: bool,

    /// Follow wakers that had been blocked themselves, up to N [default: 1]
    ///
    /// If the waker was itself blocked during the block, the stack of its own waker follows after another `--`, and so on: the
    /// last one is what all were waiting for. Only threads that are recorded continue a chain.
    #[arg(long, value_name = "N", value_parser = integer_in(1_u8..=64), requires = "wakers", hide_short_help = true)]
    pub waker_depth: Option<u8>,

    /// Record time on the CPU, shared among the threads that run at the same moment
    ///
    /// The weights, in microseconds, add up to the elapsed time in which any of the recorded threads ran: a part of the program in
    /// which one thread runs weighs as much as it lasts, one in which four threads run weighs a quarter for each. It shows
    /// what to speed up for the program to end earlier, as `perf report --latency` does.
    #[arg(long, hide_short_help = true)]
    #[arg(conflicts_with_all = ["off_cpu", "wall", "wakers", "bpf", "run_queue", "event", "count", "script", "weight"])]
    #[arg(conflicts_with_all = ["off_cpu_period", "cpu"])]
    pub latency: bool,

    /// Record how long threads wait for a CPU, in microseconds
    ///
    /// The weight of a stack is the time from the wake-up of its thread until it ran, or from its preemption. As --off-cpu
    /// --wakers, without the blocks. Requires the same rights.
    #[arg(long, hide_short_help = true)]
    #[arg(conflicts_with_all = ["off_cpu", "wall", "wakers", "bpf", "event", "frequency", "count", "script", "weight"])]
    pub run_queue: bool,

    /// Capture the stack of every Nth switch [default: adaptive]
    ///
    /// By default, every stack is captured, but only every 17th while there are more than 20000 switches a second or
    /// samples are lost. All switches are timed in any case. The time of blocks without a stack is given to stacks of
    /// the same thread whose blocks lasted about as long.
    #[arg(long, value_name = "N", value_parser = integer_in(1_u64..), hide_short_help = true)]
    pub off_cpu_period: Option<u64>,

    /// Leave out blocks that are shorter than TIME, like 1ms or 50us
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "off_cpu", hide_short_help = true)]
    pub min_block: Option<Duration>,

    /// Leave out blocks that are longer than TIME
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "off_cpu", hide_short_help = true)]
    pub max_block: Option<Duration>,

    /// Aggregate in the kernel, to record a whole system continuously
    ///
    /// A BPF program adds up the time off the CPU by process, thread name and stack, and fg-record reads the sums once
    /// a second. fg-record itself then uses hardly any CPU time; a context switch costs as much as without --bpf.
    /// Stacks are unwound as with `--call-graph fp`. Each second has room for 16384 distinct stacks and 32768 distinct
    /// sums; the rest is counted as `[lost]`. Requires root, or CAP_BPF and CAP_PERFMON, and Linux 5.18 or later.
    #[arg(long, requires = "off_cpu", hide_short_help = true)]
    #[arg(conflicts_with_all = ["off_cpu_period", "cpu", "mmap_pages", "cgroup"])]
    pub bpf: bool,
}

/// Options for the time between two events.
#[derive(clap::Args)]
#[command(next_help_heading = "Time between events")]
pub struct PairArgs {
    /// Record the time between two events, like FROM,TO
    ///
    /// The weight of a stack is the time in microseconds from event FROM to event TO of the same thread. Events are tracepoints
    /// (`SUBSYSTEM:EVENT`), calls (`uprobe:PATH:SYMBOL`) and returns (`uretprobe:PATH:SYMBOL`) of functions:
    /// `--pair uprobe:./app:parse,uretprobe:./app:parse`.
    ///
    /// Events of different threads are paired by a key, fields that both tracepoints have: `FROM,TO:FIELD` or
    /// `FROM,TO:FIELD+FIELD`. `tid` is the thread, and the default. `NAME=OTHER` is a field that FROM calls NAME and TO calls
    /// OTHER. If FROM happens again before TO, the last one counts.
    ///
    /// FROM must happen in what is recorded. Pairs that are not over at the end are left out, and counted. Above 20000 pairs a second,
    /// one in 17 is recorded, and those recorded share the time of all; if the stack is that of the last event, pairs of 1 ms
    /// and more are all recorded. Requires root, or CAP_BPF and CAP_PERFMON, on x86-64 from Linux 6.1 on.
    #[arg(long, value_name = "FROM,TO", hide_short_help = true)]
    #[arg(conflicts_with_all = PAIRS_EXCLUDE)]
    pub pair: Option<String>,

    /// Leave out pairs that are shorter than TIME, like 5ms
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide_short_help = true)]
    pub over: Option<Duration>,

    /// Take the stack of the `first` or the `last` event
    ///
    /// The default is the first if the last one is a return or may happen in another thread, and else the last, which is cheaper
    /// with --over.
    #[arg(long, value_name = "WHICH", value_parser = ["first", "last"], hide_possible_values = true, hide_short_help = true)]
    pub pair_stack: Option<String>,

    /// Record the time of requests to block devices, by the stack that makes them
    #[arg(long, hide_short_help = true, conflicts_with_all = PAIRS_EXCLUDE, conflicts_with = "pair")]
    pub io_latency: bool,

    /// Record the time of system calls
    #[arg(long, hide_short_help = true, conflicts_with_all = PAIRS_EXCLUDE)]
    #[arg(conflicts_with_all = ["pair", "io_latency"])]
    pub syscall_latency: bool,

    /// Record the time for which threads wait for locks of the kernel
    #[arg(long, hide_short_help = true, conflicts_with_all = PAIRS_EXCLUDE)]
    #[arg(conflicts_with_all = ["pair", "io_latency", "syscall_latency"])]
    pub lock_wait: bool,
}

/// The options that say what else to record.
const PAIRS_EXCLUDE: [&str; 9] =
    ["event", "frequency", "count", "script", "weight", "off_cpu", "wall", "run_queue", "latency"];
