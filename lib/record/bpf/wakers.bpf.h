// Takes the stacks of wakers: of the threads that end the blocks of recorded threads, in their context.
//
// A wake-up is sent only if the block that it ends is recorded with its stack: `note_block` marks the thread at the sample of
// its switch. So the rate of switch stacks limits that of wakers, too.

// True if wakers are recorded, and the recorder's own process, whose blocks are left out.
const volatile u64 with_wakers, own;

// Blocked threads whose stacks were taken at their switch.
MAP(blocked, BPF_MAP_TYPE_HASH, 65536, 0, u32, u32);

enum { TASK_DEAD = 0x80, WAKER_FRAMES = 127, WAKER_REGISTERS = 21 };

// A wake-up: follows the parts of the waker's user stack in the ring. The first bit of `kind` tells it from those, whose first
// word is an address of user space. `kind` also has the number of kernel addresses. `registers` is the waker's struct
// pt_regs, or 0 if it has no 64-bit user code.
struct waking { u64 kind, wakee, registers[WAKER_REGISTERS], kernel[WAKER_FRAMES + 1]; };
#define WAKING (1ull << 63)

// Notes that the current thread, which leaves its CPU, waits to be woken. One that could run on, or exits, does not.
static __always_inline void note_block(u32 process) {
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    u32 thread = task->pid, state = task->__state, yes = 1;
    if (state && !(state & TASK_DEAD) && process != own)
        bpf_map_update_elem(&blocked, &thread, &yes, BPF_ANY);
}

// A thread may be woken between the moment at which it decides to block and the sample of its switch: while it is on its
// CPU, it is not marked yet. Of several wake-ups before it runs again, the recorder takes the last.
static __always_inline int is_recorded_block(struct task_struct *wakee, u32 thread) {
    if (bpf_map_lookup_elem(&blocked, &thread)) {
        bpf_map_delete_elem(&blocked, &thread);
        return 1;
    }
    if (!BPF_CORE_READ(wakee, on_cpu)) return 0;
    u32 process = BPF_CORE_READ(wakee, tgid);
    return process != own && is_wanted(process, thread);
}

// The program runs in the context of the waker. A thread that an interrupt has interrupted is none: the recorder tells by
// the kernel's stack.
SEC("raw_tp/sched_waking")
int BPF_PROG(on_waking, struct task_struct *wakee) {
    u32 thread = BPF_CORE_READ(wakee, pid);
    if (!is_recorded_block(wakee, thread)) return 0;
    take_user_stack(ctx, bpf_get_current_pid_tgid() >> 32);
    struct scratch *s = this_scratch();
    if (!s) return 0;
    struct waking *waking = (void *)s->record;
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __builtin_memset(waking->registers, 0, sizeof waking->registers);
    struct pt_regs___kernel *registers = (void *)bpf_task_pt_regs((void *)task);
    if (task->mm && !(task->flags & PF_KTHREAD) && registers->cs == USER64_CS)
        bpf_probe_read_kernel(waking->registers, sizeof waking->registers, registers);
    long bytes = bpf_get_stack(ctx, waking->kernel, WAKER_FRAMES * 8, 0);
    u64 frames = bytes > 0 ? (u64)bytes / 8 : 0;
    BOUND(frames, WAKER_FRAMES);
    waking->kind = WAKING | frames;
    waking->wakee = thread;
    bpf_perf_event_output(ctx, &outputs, BPF_F_CURRENT_CPU, waking, (2 + WAKER_REGISTERS + frames) * 8);
    return 0;
}
