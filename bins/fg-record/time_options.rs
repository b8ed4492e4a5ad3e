//! The options of fg-record that record how long something lasts, instead of samples.

use std::time::Duration;

use fgkit::cli::{integer_in, parse_duration};
use fgkit::record::off_cpu::critical_path::PathThread;

/// Options for time off the CPU.
#[derive(clap::Args)]
#[command(next_help_heading = "Off-CPU time")]
pub struct OffCpuArgs {
    /// Record time off the CPU, in microseconds
    ///
    /// The weight of a stack is the time from when its thread was switched out in this stack until it runs again. The
    /// leaf is `[off-cpu]` if the thread blocked, and `[runnable]` if it was preempted. A block includes the wait for a
    /// CPU after the wake-up. If a thread is off the CPU when the recording ends, the time up to the end counts.
    ///
    /// Threads of -p and -t that are already asleep when the recording begins count from then on, with the stack in
    /// which they sleep: this shows what a hanging process waits for. Reading this stack requires BPF (see PERMISSIONS
    /// in fg-record(1)); otherwise, the stack is `[unsampled]`. Functions of Python, Ruby and PHP are part of the
    /// stack; code that a virtual machine such as Java's has compiled is not. With -a, --cgroup, -C or --bpf, such
    /// threads are left out until they run.
    #[arg(long, conflicts_with_all = ["event", "frequency", "count", "script", "weight"])]
    pub off_cpu: bool,

    /// Record time on and off the CPU, in microseconds
    ///
    /// Combines samples on the CPU with what --off-cpu records. The weights of a thread add up to its lifetime within
    /// the recording: context switches tell how long it ran, and that time is divided among its samples. The frame
    /// `[unsampled]` marks time without a stack: runs in which no sample was taken, and blocks that began before the
    /// recording and whose stacks could not be read (see --off-cpu).
    #[arg(long, conflicts_with_all = ["off_cpu", "event", "count", "script", "weight"])]
    #[arg(conflicts_with_all = ["min_block", "max_block", "bpf"])]
    pub wall: bool,

    /// Show who ended each block, as `STACK;--;WAKER;[off-cpu]`
    ///
    /// The stack of a block is followed by the frame `--` and the stack of the thread that woke the blocked thread,
    /// root first. The frames of the waker end in `_[w]`. If an interrupt woke the thread, the waker is `[timer]`,
    /// `[network]`, `[disk]`, `[softirq]` or `[interrupt]`. A waker that was not seen is `[unknown]`. A block that was
    /// cut short because its process exited has no waker.
    ///
    /// With --wakers, a block ends at the wake-up. The time from then until the thread runs is a separate stack, which
    /// ends in `[runnable]` and has no waker. The total stays the same.
    ///
    /// A waker need not be part of the target. If it is not, the mappings of its process are read only at its first
    /// wake-up of a recorded thread, and after an exec: libraries that it loads later are not known. While only one in
    /// 17 stacks is captured (see --off-cpu-period), only one in 17 wakers is. fg-svg(1) draws wakers in a colour of
    /// their own. Requires BPF (see PERMISSIONS in fg-record(1)).
    #[arg(long, conflicts_with = "bpf", hide_short_help = true)]
    pub wakers: bool,

    /// Follow chains of up to N wakers [default: 1]
    ///
    /// If N is 1, a whole block is charged to the thread that ended it, as in bcc's offwaketime.
    ///
    /// If N is 2 or more, a block is divided up according to what its waker did in the meantime. For the time in which
    /// the waker was itself blocked, the frame `--` is followed by the stack in which it was blocked, another `--` and
    /// its own waker, and so on. For the rest of the time, in which the waker ran or waited for a CPU, its stack is
    /// that of the wake-up. The parts add up to the block. The last stack of a chain is what all others waited for: it
    /// is the one to make faster. `[more-wakers]` at the end of a chain marks time in which its last waker was itself
    /// blocked.
    ///
    /// If what a waker did is not known, its own waker is `[unknown]`: the waker is not part of the target, its stack
    /// was not captured, or too many blocks happened in the meantime. At least the last 262144 blocks of all threads
    /// are remembered.
    #[arg(long, value_name = "N", value_parser = integer_in(1_u8..=64), requires = "wakers", hide_short_help = true)]
    pub waker_depth: Option<u8>,

    /// Record CPU time, divided among the threads that run at the same moment
    ///
    /// The weights, in microseconds, add up to the elapsed time in which at least one recorded thread ran. Code that
    /// runs alone has its full time as weight; code that runs beside three other threads has a quarter. The graph shows
    /// what to speed up so that the program ends earlier, as `perf report --latency` does.
    #[arg(long, hide_short_help = true)]
    #[arg(conflicts_with_all = ["off_cpu", "wall", "wakers", "bpf", "run_queue", "event", "count", "script", "weight"])]
    #[arg(conflicts_with_all = ["off_cpu_period", "cpu"])]
    pub latency: bool,

    /// Record how long threads wait for a CPU, in microseconds
    ///
    /// The weight of a stack is the time from the wake-up or preemption of its thread until the thread runs. This is
    /// the `[runnable]` time of `--off-cpu --wakers`, and has the same requirements.
    #[arg(long, hide_short_help = true)]
    #[arg(conflicts_with_all = ["off_cpu", "wall", "wakers", "bpf", "event", "frequency", "count", "script", "weight"])]
    pub run_queue: bool,

    /// Record the critical path of a thread, in microseconds
    ///
    /// The path is followed back in time from the exit of THREAD, or the end of the recording. While THREAD ran, it
    /// consists of THREAD's own stacks. Where THREAD was blocked until another thread woke it, the path continues with
    /// what that thread did before, back to where that thread was itself woken or created, and so on. The weights add
    /// up to the elapsed time. What is not on the path did not determine that time: making it faster changes nothing.
    ///
    /// The first frame is the thread that the path is in. A wait that an interrupt or an unknown thread ended is on the
    /// path itself, as with --wakers: `STACK;--;[timer]_[w];[off-cpu]`. `[runnable]` marks waits for a CPU, and
    /// `[unsampled]` time without a stack. Spinning, polling and messages from other machines are not wake-ups by a
    /// thread, so the path stays in the thread that waits.
    ///
    /// THREAD is `main` (the main thread of the command or of -p), a TID, or the name of a thread, as the profile shows
    /// it or with its original blanks. If several threads have that name, it is the one that lives longest. If no
    /// thread has that name when it exits, a thread that had it earlier is used.
    ///
    /// If THREAD is `spans:FILE`, each span in FILE, such as a request, has a path of its own, from its end back to its
    /// start. A root frame has the name of the span, so that the graph shows what each request spent its time on, in
    /// whatever threads. A span nested in another span of the same thread is part of it, and its frame is below:
    /// `request;query;STACK`. If spans of a thread overlap without being nested, the one that began last wins. So the
    /// weights add up to the time in which threads were in spans. Spans must lie within the recording. FILE is read
    /// when the recording ends; for its format, see --span in fg-collapse(1).
    ///
    /// The stacks of all switches are captured. Switches and samples are kept in memory until the end, the last 4194304
    /// of them. The requirements are those of --wakers.
    #[arg(long, value_name = "THREAD", hide_short_help = true)]
    #[arg(conflicts_with_all = ["off_cpu", "wall", "wakers", "bpf", "run_queue", "latency", "event", "count", "script", "weight"])]
    #[arg(conflicts_with_all = ["off_cpu_period", "cpu", "min_block", "max_block", "ring", "interval", "cgroup"])]
    #[arg(action = clap::ArgAction::Append)]
    pub critical_path: Vec<PathThread>,

    /// Capture the stacks of one in N switches [default: adaptive]
    ///
    /// By default, every stack is captured, but only one in 17 while there are more than 20000 switches a second or
    /// samples are lost. Every switch is timed in any case. The time of blocks without a stack is assigned to stacks of
    /// the same thread whose blocks lasted about as long.
    ///
    /// With BPF and the default --call-graph, switches are chosen at random. Of the other blocks, the longest that last
    /// 1 ms or more are captured, too: up to 1000 a second on each CPU. On kernels that do not let BPF programs attach
    /// to their functions, such as some with lockdown, stacks of long blocks are not captured; the summary says whether
    /// they are. Without BPF, the stack of every Nth switch is captured: in a program that repeats itself, this may
    /// always be the same stack.
    #[arg(long, value_name = "N", value_parser = integer_in(1_u64..), hide_short_help = true)]
    pub off_cpu_period: Option<u64>,

    /// Leave out blocks that are shorter than TIME, like 1ms or 50us
    ///
    /// A number without a unit is in seconds.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "off_cpu", hide_short_help = true)]
    pub min_block: Option<Duration>,

    /// Leave out blocks that are longer than TIME
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "off_cpu", hide_short_help = true)]
    pub max_block: Option<Duration>,

    /// With --off-cpu, aggregate in the kernel, to record a whole system continuously
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
    /// Record the time from event FROM to event TO
    ///
    /// The weight of a stack is the time in microseconds from FROM to TO. An event is a tracepoint (`SUBSYSTEM:EVENT`),
    /// the call of a function (`uprobe:PATH:SYMBOL`) or its return (`uretprobe:PATH:SYMBOL`): `--pair
    /// uprobe:./app:parse,uretprobe:./app:parse`. Requires BPF (see PERMISSIONS in fg-record(1)).
    ///
    /// By default, both events must happen in the same thread. To match tracepoints of different threads, name a key of
    /// one or two fields that both have, as in `FROM,TO:FIELD` or `FROM,TO:FIELD+FIELD`. Write `NAME=OTHER` for a field
    /// that is called NAME in FROM and OTHER in TO, and `tid` for the thread. If FROM happens again before TO, the time
    /// from the later FROM counts. Recursive calls are paired with their own returns, and the time of an inner call is
    /// part of that of the outer one.
    ///
    /// FROM must happen in the target, which cannot be a cgroup. With -C, only pairs that end on these CPUs count, and
    /// the stack must be that of TO (--pair-stack). Pairs that have not ended when the recording ends are left out; the
    /// summary shows how many there were. At most 64 nested calls of a thread are followed; deeper ones are left out.
    ///
    /// Every pair has its stack, as long as capturing stacks takes less than 2.5% of a CPU. Beyond that, one pair in
    /// 17 or 289 has one, chosen at random, and the time of all pairs is divided among those. If the stack is that of
    /// TO, pairs of 1 ms or more are chosen first.
    #[arg(long, value_name = "FROM,TO", hide_short_help = true)]
    #[arg(conflicts_with_all = PAIRS_EXCLUDE)]
    pub pair: Option<String>,

    /// Leave out pairs that are shorter than TIME, like 5ms
    ///
    /// A number without a unit is in seconds.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide_short_help = true)]
    pub over: Option<Duration>,

    /// Take the stack of the `first` or the `last` event
    ///
    /// The default is `first` if TO is the return of a function or may happen in another thread, and `last` otherwise.
    /// With --over, `last` is cheaper.
    #[arg(long, value_name = "WHICH", value_parser = ["first", "last"], hide_possible_values = true, hide_short_help = true)]
    pub pair_stack: Option<String>,

    /// Record how long block I/O takes, by the stack that issued it
    ///
    /// This and the next two options are short forms of --pair, with the same weights and requirements.
    #[arg(long, hide_short_help = true, conflicts_with_all = PAIRS_EXCLUDE, conflicts_with = "pair")]
    pub io_latency: bool,

    /// Record how long system calls take
    #[arg(long, hide_short_help = true, conflicts_with_all = PAIRS_EXCLUDE)]
    #[arg(conflicts_with_all = ["pair", "io_latency"])]
    pub syscall_latency: bool,

    /// Record how long threads wait for contended kernel locks
    #[arg(long, hide_short_help = true, conflicts_with_all = PAIRS_EXCLUDE)]
    #[arg(conflicts_with_all = ["pair", "io_latency", "syscall_latency"])]
    pub lock_wait: bool,
}

/// The options that say what else to record.
const PAIRS_EXCLUDE: [&str; 10] =
    ["event", "frequency", "count", "script", "weight", "off_cpu", "wall", "run_queue", "latency", "critical_path"];
