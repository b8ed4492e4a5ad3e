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
    /// The weight of a stack is the time that its thread spent off the CPU after it was switched out in this stack. The
    /// leaf is `[off-cpu]` if the thread blocked, and `[runnable]` if it was preempted. A block lasts until the thread
    /// runs again, so it includes the wait for a CPU after the wakeup. If a thread is off the CPU when the recording
    /// ends, the time up to the end counts. Threads that -p and -t select and that sleep already when the recording begins
    /// have the stack in which they sleep, and the time from then on: this shows what a process waits for that hangs. The stack
    /// has the functions of Python, Ruby and PHP, but none that a virtual machine such as Java's has compiled, and requires what
    /// --wakers requires. Else the block is `[unsampled]`. Of a whole system or a cgroup, such threads are left out until they
    /// run.
    #[arg(long, conflicts_with_all = ["event", "frequency", "count", "script", "weight"])]
    pub off_cpu: bool,

    /// Record time on and off the CPU, in microseconds
    ///
    /// Combines samples on the CPU with what --off-cpu records. The weights of a thread add up to its lifetime within
    /// the recording: context switches tell how long it ran, and that time is divided among its samples. The frame
    /// `[unsampled]` marks time without a stack: runs in which no sample was taken, and blocks that began before the
    /// recording, if their stacks cannot be read (see --off-cpu).
    #[arg(long, conflicts_with_all = ["off_cpu", "event", "count", "script", "weight"])]
    #[arg(conflicts_with_all = ["min_block", "max_block", "bpf"])]
    pub wall: bool,

    /// Show who ended each block, as `STACK;--;WAKER`
    ///
    /// After the stack of a block come the frame `--` and the stack of the thread that woke the blocked one, root first. The
    /// frames of the waker end in `_[w]`. If an interrupt woke the thread, the waker is `[timer]`, `[network]`, `[disk]`,
    /// `[softirq]` or `[interrupt]`. If the waker was not seen, it is `[unknown]`.
    /// A wait that the end of its process cuts has no waker.
    ///
    /// A block ends with the wake-up. The time from then until the thread runs is a stack of its own, which ends in
    /// `[runnable]` and has no waker. The total is the same as without --wakers.
    ///
    /// A waker need not be part of the target. If it is not, the mappings of its process are read once for each program that it
    /// runs, at the first wake-up of a recorded thread. While only one in 17 stacks is captured (see --off-cpu-period), the same
    /// holds for wakers.
    /// Requires root, or CAP_BPF and CAP_PERFMON, on x86-64 with Linux 6.1 or later. `fg-svg` draws
    /// wakers in a colour of their own.
    #[arg(long, conflicts_with = "bpf", hide_short_help = true)]
    pub wakers: bool,

    /// Follow chains of up to N wakers [default: 1]
    ///
    /// With N of 2 or more, a block is divided among what its waker did from its beginning to its end. While the waker was
    /// blocked itself, the stack behind `--` is that in which it was, and that of its own waker follows after another `--`, and
    /// so on. The rest is the time in which the waker ran or waited for a CPU: there the stack is that of the wake-up. The
    /// parts add up to the block. The last stack of a chain is what all the others waited for, and what to make faster.
    /// If a chain has more wakers, `[more-wakers]` follows the last one for the time in which it was blocked itself.
    ///
    /// With N of 1, a whole block is charged to the thread that ended it, as bcc's offwaketime does.
    ///
    /// If it is not known what a waker did, its own waker is `[unknown]`: it is not part of the target, or its stack was not
    /// captured, or too many blocks happened meanwhile. Of all threads together, at least the last 262144 blocks are known.
    #[arg(long, value_name = "N", value_parser = integer_in(1_u8..=64), requires = "wakers", hide_short_help = true)]
    pub waker_depth: Option<u8>,

    /// Record CPU time, divided among the threads that run at the same moment
    ///
    /// The weights, in microseconds, add up to the elapsed time in which at least one recorded thread ran. Code that runs
    /// alone weighs as long as it lasts; code that runs beside three other threads weighs a quarter of that. The graph shows
    /// what to speed up so that the program ends earlier, as `perf report --latency` does.
    #[arg(long, hide_short_help = true)]
    #[arg(conflicts_with_all = ["off_cpu", "wall", "wakers", "bpf", "run_queue", "event", "count", "script", "weight"])]
    #[arg(conflicts_with_all = ["off_cpu_period", "cpu"])]
    pub latency: bool,

    /// Record how long threads wait for a CPU, in microseconds
    ///
    /// The weight of a stack is the time from the wake-up or the preemption of its thread until the thread runs. This is the
    /// `[runnable]` time of `--off-cpu --wakers`, and requires the same rights.
    #[arg(long, hide_short_help = true)]
    #[arg(conflicts_with_all = ["off_cpu", "wall", "wakers", "bpf", "event", "frequency", "count", "script", "weight"])]
    pub run_queue: bool,

    /// Record the critical path of a thread, in microseconds
    ///
    /// The weights add up to the elapsed time from the start of THREAD, or of the recording, to its exit, or the end. They say what
    /// that time was for: while THREAD ran, its own stacks; where it was blocked until another thread woke it, what that thread
    /// did before, and so on back in time, until that thread was woken itself or created. The first frame is the thread that the
    /// path is in. What a thread did while another took longer is not on the path: to make it faster changes nothing. A wait
    /// that an interrupt or an unknown thread ended is on the path itself, as with --wakers: `STACK;--;[timer]_[w];[off-cpu]`. The frame
    /// `[runnable]` marks waits for a CPU, `[unsampled]` time without a stack.
    ///
    /// THREAD is `main`, for the main thread of the command or of -p, a TID, or the name of a thread, as it is printed or with
    /// its blanks; of several with that name, the one that lives longest. If none has it at its end, a thread counts that had it
    /// before. Spinning, polling and messages from other machines are no wake-ups by a thread: there the path
    /// stays where it is. All switches and samples are kept until the end, the last 4194304 of them.
    ///
    /// With `spans:FILE`, each span in FILE, such as a request, has a path of its own from its end back to its start, below a root
    /// frame with the name of the span: what the time of the requests was for, in whatever threads. A span within another one of its
    /// thread is a part of it, and its frame is below: `request;query;STACK`. If spans of a thread overlap otherwise, the one that began
    /// last wins. So the weights add up to the time in which threads were in spans. Spans of other threads have paths of their own.
    /// FILE is read at the end of the recording; for its form, see --span in fg-collapse(1). Spans must lie within the recording.
    ///
    /// Captures the stacks of all switches, and requires the same rights as --wakers.
    #[arg(long, value_name = "THREAD", hide_short_help = true)]
    #[arg(conflicts_with_all = ["off_cpu", "wall", "wakers", "bpf", "run_queue", "latency", "event", "count", "script", "weight"])]
    #[arg(conflicts_with_all = ["off_cpu_period", "cpu", "min_block", "max_block", "ring", "interval", "cgroup"])]
    #[arg(action = clap::ArgAction::Append)]
    pub critical_path: Vec<PathThread>,

    /// Capture the stacks of one in N switches [default: adaptive]
    ///
    /// By default, every stack is captured. While there are more than 20000 switches a second, or samples are lost, only
    /// one in 17 is. Which of N it is, is random; without the rights for BPF, or with --call-graph, it is every Nth: a program
    /// that repeats itself may then switch in the same place each time. Every switch is timed in any case. The time of blocks
    /// without a stack is assigned to stacks of the same thread whose blocks lasted about as long.
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
    /// Record the time from event FROM to event TO
    ///
    /// The weight of a stack is the time in microseconds from FROM to TO in the same thread. An event is a tracepoint
    /// (`SUBSYSTEM:EVENT`), the call of a function (`uprobe:PATH:SYMBOL`) or the return of a function
    /// (`uretprobe:PATH:SYMBOL`): `--pair uprobe:./app:parse,uretprobe:./app:parse`.
    ///
    /// Events of different threads are matched by a key: one or two fields that both tracepoints have, as in
    /// `FROM,TO:FIELD` or `FROM,TO:FIELD+FIELD`. Write `NAME=OTHER` for a field that is called NAME in FROM and OTHER in
    /// TO. The key `tid`, the default, is the thread. If FROM happens again before TO, the later one counts. Calls of a function
    /// that calls itself are paired with their own returns, and the time of an inner call is part of that of the outer one.
    ///
    /// FROM must happen in the target, which cannot be a cgroup. With -C, only pairs that end on these CPUs count, and the
    /// stack must be that of TO. Pairs without a TO at the end of the recording are left out and counted. The kernel follows 64
    /// calls of a thread that are not over, and deeper calls are left out.
    ///
    /// All pairs have their stacks as long as these take less than a fortieth of a CPU's time. Beyond that, one in 17 has, or
    /// one in 289, chosen at random, and the time of all pairs is divided among those. If the stack is that of TO, pairs of 1 ms
    /// or more are chosen first. Requires root, or CAP_BPF and CAP_PERFMON, on x86-64 with Linux 6.1 or later.
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
    /// The default is `first` if TO is the return of a function or may happen in another thread, and `last` otherwise. With
    /// --over, `last` is cheaper.
    #[arg(long, value_name = "WHICH", value_parser = ["first", "last"], hide_possible_values = true, hide_short_help = true)]
    pub pair_stack: Option<String>,

    /// Record how long block I/O takes, by the stack that issued it
    ///
    /// This and the next two options are forms of --pair: the weights are microseconds, and the requirements are the same.
    #[arg(long, hide_short_help = true, conflicts_with_all = PAIRS_EXCLUDE, conflicts_with = "pair")]
    pub io_latency: bool,

    /// Record how long system calls take
    #[arg(long, hide_short_help = true, conflicts_with_all = PAIRS_EXCLUDE)]
    #[arg(conflicts_with_all = ["pair", "io_latency"])]
    pub syscall_latency: bool,

    /// Record how long threads wait for contended locks of the kernel
    #[arg(long, hide_short_help = true, conflicts_with_all = PAIRS_EXCLUDE)]
    #[arg(conflicts_with_all = ["pair", "io_latency", "syscall_latency"])]
    pub lock_wait: bool,
}

/// The options that say what else to record.
const PAIRS_EXCLUDE: [&str; 10] =
    ["event", "frequency", "count", "script", "weight", "off_cpu", "wall", "run_queue", "latency", "critical_path"];
