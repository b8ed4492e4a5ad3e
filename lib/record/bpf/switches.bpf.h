// Takes the stacks of some switches, where there are so many that taking all would slow the program down: that of a random
// one in `switch_period` when the thread leaves its CPU, and those of the longest of the other blocks when it comes back, with
// the same stack. The recorder counts and times all switches.
//
// A counter whose samples this program drops would be simpler, but the kernel collects the registers and the kernel stack of a
// sample before it runs the program.

// 0 unless switches are many; then 1, or 3 if the stacks of long blocks can be taken.
MAP(are_switches_many, BPF_MAP_TYPE_ARRAY, 1, 0, u32, u64);
enum { LONG_BLOCKS_TOO = 2 };

// The ID of the cgroup whose processes are recorded; 0 if the target is no cgroup.
const volatile u64 recorded_cgroup;

struct kernfs_node { u64 id; } KERNEL;
struct cgroup { struct kernfs_node *kn; } KERNEL;
struct cgroup_subsys_state { struct cgroup *cgroup; struct cgroup_subsys_state *parent; } KERNEL;
struct css_set { struct cgroup_subsys_state *subsys[1]; } KERNEL;
struct task_struct___cgroup { struct css_set *cgroups; } KERNEL;
// Its value depends on how the kernel was built.
enum cgroup_subsys_id { perf_event_cgrp_id = 1 };
// Cgroups that are more levels below the recorded one are left out.
#define CGROUP_DEPTH 128

// Returns 1 if the current thread is in the recorded cgroup, as the counters of a cgroup have it: in the hierarchy of perf_event.
static __always_inline int is_in_cgroup(void) {
    struct task_struct___cgroup *task = (void *)bpf_get_current_task();
    struct css_set *set = BPF_CORE_READ(task, cgroups);
    u64 place = bpf_core_field_offset(struct css_set, subsys);
    place += bpf_core_enum_value(enum cgroup_subsys_id, perf_event_cgrp_id) * sizeof(void *);
    struct cgroup_subsys_state *state = 0;
    bpf_probe_read_kernel(&state, sizeof state, (void *)set + place);
    for (int i = 0; i < CGROUP_DEPTH; i++) {
        if (!state) return 0;
        if (BPF_CORE_READ(state, cgroup, kn, id) == recorded_cgroup) return 1;
        state = BPF_CORE_READ(state, parent);
    }
    return 0;
}

// Sends the stack of the current thread, with the time at which it left its CPU. Returns 0 if it cannot.
static __always_inline int send_switch(void *context, u64 type, u64 time) {
    if (!take_scratch(0)) return 0;
    send_event_with_stack(context, EVENT_TYPE(type, 1), time, 0, 0);
    unlock_scratch(0);
    return 1;
}

SEC("raw_tp/sched_switch")
int BPF_PROG(on_switch, int is_preempted) {
    u32 zero = 0;
    u64 *found = bpf_map_lookup_elem(&are_switches_many, &zero), mode = found ? *found : 0;
    if (!mode) return 0;
    u64 ids = bpf_get_current_pid_tgid();
    u32 process = ids >> 32, thread = ids;
    if (!thread || process == own || !is_wanted(process, thread)) return 0;
    if (recorded_cgroup && !is_in_cgroup()) return 0;
    u64 *absence = find_absence(thread);
    if (bpf_get_prandom_u32() % switch_period == 0 && send_switch(ctx, SWITCH, 0)) {
        if (absence) *absence = 0;
        if (with_wakers) note_block(process);
        return 0;
    }
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    // A thread that has exited never comes back, but another one may have its ID.
    if (task->__state & TASK_DEAD) return 0;
    if (absence && mode & LONG_BLOCKS_TOO)
        *absence = bpf_ktime_get_ns() << 8 | (thread >> 16 & 0x3f) | (!is_preempted && task->__state ? IS_BLOCKED : 0);
    return 0;
}

// Runs in the thread that comes onto a CPU, before the kernel writes the record of that.
SEC("fentry/__perf_event_task_sched_in")
int BPF_PROG(on_return) {
    u32 thread = bpf_get_current_pid_tgid();
    u64 *entry = find_absence(thread), absence = entry ? *entry : 0;
    if (!absence || !thread) return 0;
    u64 now = bpf_ktime_get_ns(), time = absence_time(absence, thread, now);
    if (!time) return 0;
    *entry = 0;
    // A block without its waker is left to the random choice.
    int is_taken = with_wakers && absence & IS_BLOCKED ? !!(absence & HAS_WAKER) : is_long_block(time, now);
    if (is_taken) send_switch(ctx, LONG_BLOCK, now - time);
    return 0;
}
