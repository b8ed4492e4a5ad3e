// Sums up, inside the kernel, how long threads were off their CPUs: by process, thread name, stack at the switch, and
// whether the thread was blocked or preempted. scripts/build-bpf compiles this to off_cpu.bpf.o.
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u32 u32;
typedef __u64 u64;

// The fields of kernel structures that are used. Their offsets are relocated when the program is loaded (CO-RE).
struct signal_struct {
    struct { int counter; } live;
} __attribute__((preserve_access_index));
struct sched_entity {
    u64 sum_exec_runtime, prev_sum_exec_runtime;
} __attribute__((preserve_access_index));
struct task_struct {
    int pid, tgid;
    char comm[16];
    struct signal_struct *signal;
    struct sched_entity se;
} __attribute__((preserve_access_index));

enum { DEAD = 0x80 };                     // TASK_DEAD
enum { EVERYBODY, PROCESSES, THREADS };   // scope: whose switches are recorded
enum { HELD, WANTED };                    // a chosen process: before and after it runs its program
enum { BLOCKED, PREEMPTED };
enum { FRAMES = 127 };

const volatile u64 scope, own, shortest, longest = ~0ULL;

// The addresses of a stack, innermost first.
struct stack { u64 frames, address[FRAMES]; };
// A thread that is off its CPU since this time (0: on a CPU), with the hashes of its stacks.
struct absence { u64 since, user, kernel, process; };
struct block { u64 user, kernel, process; char comm[16]; };
struct sum { u64 blocks, nanoseconds, last; };
// Number of stacks that were stored (kept), and of what did not fit into the maps.
struct counts { u64 kept, stacks, absences, processes, blocks, nanoseconds; };
// Userspace reads the sums of one window while the other one is filled.
struct control { u64 window; };

#define MAP(name, kind, entries, of, to) \
    struct { \
        __uint(type, kind); \
        __uint(max_entries, entries); \
        __type(key, of); \
        __type(value, to); \
    } name SEC(".maps")

MAP(chosen, BPF_MAP_TYPE_HASH, 65536, u32, u32);
MAP(absences, BPF_MAP_TYPE_HASH, 65536, u32, struct absence);
// The sums of the two windows.
MAP(even, BPF_MAP_TYPE_HASH, 32768, struct block, struct sum);
MAP(odd, BPF_MAP_TYPE_HASH, 32768, struct block, struct sum);
MAP(stacks, BPF_MAP_TYPE_HASH, 16384, u64, struct stack);
MAP(scratch, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, struct stack);
MAP(counted, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, struct counts);
MAP(controls, BPF_MAP_TYPE_ARRAY, 1, u32, struct control);

static const u32 only = 0;
#define COUNT(what, more) \
    do { \
        struct counts *counts = bpf_map_lookup_elem(&counted, &only); \
        if (counts) counts->what += (more); \
    } while (0)

static __always_inline int is_wanted(u32 process, u32 thread) {
    u32 number = scope == THREADS ? thread : process;
    if (scope == EVERYBODY) return 1;
    u32 *state = bpf_map_lookup_elem(&chosen, &number);
    return state && *state == WANTED;
}

// Stores the current stack and returns its hash; 0 if there is none.
static __always_inline u64 keep_stack(void *context, u64 flags) {
    struct stack *stack = bpf_map_lookup_elem(&scratch, &only);
    if (!stack) return 0;
    long bytes = bpf_get_stack(context, stack->address, sizeof stack->address, flags);
    if (bytes < 8) return 0;
    stack->frames = (u64)bytes / 8;
    u64 hash = stack->frames;
    for (u32 n = 0; n < FRAMES && n < stack->frames; n++) {
        hash = (hash ^ stack->address[n]) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 32;
    }
    if (bpf_map_lookup_elem(&stacks, &hash)) return hash;
    if (bpf_map_update_elem(&stacks, &hash, stack, BPF_ANY))
        COUNT(stacks, 1);
    else
        COUNT(kept, 1);
    return hash;
}

static __always_inline int add(void *blocks, struct block *block, u64 nanoseconds, u64 now) {
    struct sum *sum = bpf_map_lookup_elem(blocks, block);
    if (!sum) {
        struct sum none = {};
        bpf_map_update_elem(blocks, block, &none, BPF_NOEXIST);
        sum = bpf_map_lookup_elem(blocks, block);
    }
    if (!sum) return 0;
    __sync_fetch_and_add(&sum->blocks, 1);
    __sync_fetch_and_add(&sum->nanoseconds, nanoseconds);
    sum->last = now;
    return 1;
}

static __always_inline void come(struct task_struct *task, struct absence *absence, u64 now) {
    struct control *control = bpf_map_lookup_elem(&controls, &only);
    if (!control) return;
    u64 nanoseconds = now - absence->since;
    absence->since = 0;
    if (nanoseconds < shortest || nanoseconds > longest) return;
    struct block block = {absence->user, absence->kernel, absence->process};
    bpf_core_read(block.comm, sizeof block.comm, &task->comm);
    int is_added = control->window ? add(&odd, &block, nanoseconds, now) : add(&even, &block, nanoseconds, now);
    if (!is_added) {
        COUNT(blocks, 1);
        COUNT(nanoseconds, nanoseconds);
    }
}

// Returns when the thread that leaves its CPU now had come to it, if that was not traced: the kernel may exclude the
// switches of some threads from tracing, and then the switch-in of the next thread is missed too.
static __always_inline u64 since_when(struct task_struct *task, u64 earliest, u64 now) {
    u64 runs = BPF_CORE_READ(task, se.sum_exec_runtime) - BPF_CORE_READ(task, se.prev_sum_exec_runtime);
    return runs < now - earliest ? now - runs : now;
}

static __always_inline void leave(void *context, struct absence *kept, u64 numbers, int is_preempted, u64 now) {
    u32 thread = numbers;
    struct absence absence = {
        .since = now,
        .process = numbers >> 32 << 32 | (is_preempted ? PREEMPTED : BLOCKED),
        .kernel = keep_stack(context, 0),
        .user = keep_stack(context, BPF_F_USER_STACK),
    };
    if (kept)
        *kept = absence;
    else if (bpf_map_update_elem(&absences, &thread, &absence, BPF_ANY))
        COUNT(absences, 1);
}

// The program runs in the context of the thread that leaves its CPU.
SEC("raw_tp/sched_switch")
int BPF_PROG(on_switch, _Bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int state) {
    u64 now = bpf_ktime_get_ns(), numbers = bpf_get_current_pid_tgid();
    u32 process = numbers >> 32, thread = numbers, coming = BPF_CORE_READ(next, pid);
    struct absence *absence = coming ? bpf_map_lookup_elem(&absences, &coming) : 0;
    if (absence && absence->since) come(next, absence, now);
    absence = thread ? bpf_map_lookup_elem(&absences, &thread) : 0;
    if (absence && absence->since) {
        struct task_struct *task = (struct task_struct *)bpf_get_current_task();
        come(task, absence, since_when(task, absence->since, now));
    }
    if (state & DEAD) {
        bpf_map_delete_elem(&absences, &thread);
    } else if (thread && process != own && is_wanted(process, thread)) {
        leave(ctx, absence, numbers, preempt || !state, now);
    }
    return 0;
}

// A process that a recorded one creates is recorded too. Its threads are, by its ID.
SEC("raw_tp/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child) {
    u64 numbers = bpf_get_current_pid_tgid();
    u32 number = BPF_CORE_READ(child, tgid), wanted = WANTED;
    if (scope == PROCESSES && BPF_CORE_READ(child, pid) == number && is_wanted(numbers >> 32, numbers) &&
        bpf_map_update_elem(&chosen, &number, &wanted, BPF_ANY))
        COUNT(processes, 1);
    return 0;
}

SEC("raw_tp/sched_process_exec")
int BPF_PROG(on_exec) {
    u32 number = bpf_get_current_pid_tgid() >> 32, wanted = WANTED;
    if (scope == PROCESSES) bpf_map_update_elem(&chosen, &number, &wanted, BPF_EXIST);
    return 0;
}

// The ID may be reused.
SEC("raw_tp/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task) {
    u64 numbers = bpf_get_current_pid_tgid();
    u32 number = scope == THREADS ? numbers : numbers >> 32;
    if (scope == THREADS || (scope == PROCESSES && !BPF_CORE_READ(task, signal, live.counter)))
        bpf_map_delete_elem(&chosen, &number);
    return 0;
}

char licence[] SEC("license") = "Dual MIT/GPL";
