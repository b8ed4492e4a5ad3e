// Takes the stacks of wakers: of the threads that end the blocks of recorded threads, in their context.
//
// A wake-up is sent only if the block that it ends is recorded with its stack: `note_block` marks the thread when that is taken
// at its switch, and the stack of a long block may be taken later. So the rate of switch stacks limits that of wakers, too.

// True if wakers are recorded, and the recorder's own process, whose blocks are left out.
const volatile u64 with_wakers, own;

// Blocked threads whose stacks were taken at their switch.
MAP(blocked, BPF_MAP_TYPE_HASH, 65536, 0, u32, u32);

enum { TASK_DEAD = 0x80, SIGNAL_GROUP_EXIT = 4 };

// Notes that the current thread, which leaves its CPU, waits to be woken. One that could run on, or exits, does not.
static __always_inline void note_block(u32 process) {
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    u32 thread = task->pid, state = task->__state, yes = 1;
    if (state && !(state & TASK_DEAD) && process != own) bpf_map_update_elem(&blocked, &thread, &yes, BPF_ANY);
}

// A thread may be woken between the moment at which it decides to block and the sample of its switch: while it is on its
// CPU, it is not marked yet. Of several wake-ups before it runs again, the recorder takes the last.
static __always_inline int is_recorded_block(struct task_struct *wakee, u32 thread) {
    if (bpf_map_lookup_elem(&blocked, &thread)) {
        bpf_map_delete_elem(&blocked, &thread);
        return 1;
    }
    if (switch_period && note_waker_of_long_block(thread)) return 1;
    if (!BPF_CORE_READ(wakee, on_cpu)) return 0;
    u32 process = BPF_CORE_READ(wakee, tgid);
    return process != own && is_wanted(process, thread);
}

// The program runs in the context of the waker. If that is an interrupt, only the kernel stack is taken, by which the recorder
// tells it from the thread that it has interrupted. A thread of a process that ends is woken to exit: nobody has ended what it
// waited for.
SEC("raw_tp/sched_waking")
int BPF_PROG(on_waking, struct task_struct *wakee) {
    u32 thread = BPF_CORE_READ(wakee, pid);
    if (!is_recorded_block(wakee, thread)) return 0;
    if (!take_scratch(0)) return 0;
    struct scratch *s = this_scratch();
    if (s && BPF_CORE_READ(wakee, signal, flags) & SIGNAL_GROUP_EXIT)
        send_event(ctx, s, EVENT_TYPE(KILLED, 1), thread, 0);
    else
        send_event_with_stack(ctx, EVENT_TYPE(WAKING, 1), thread, 0, 1);
    unlock_scratch(0);
    return 0;
}
