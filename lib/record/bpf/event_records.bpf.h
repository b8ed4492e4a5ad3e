// Records of events with the context in which they happened: the user stack of the current thread, then a record with its
// registers and its kernel stack.

enum { EVENT_FRAMES = KERNEL_FRAMES, EVENT_REGISTERS = 21 };

// The first bit of `kind` tells a record from a stack, whose first word is an address of user space. `kind` also has the
// type in bits 56 to 62, the number of events that the record stands for in bits 16 to 47, and that of kernel addresses in bits
// 0 to 15. `program` differs from one program to another, in the same process too, and `comm` is the name of the thread; of
// a sleeper, `program` is the thread pointer. `ids` has
// the process and the thread: a thread that exits may wake others when perf's own sample has no ID of it any more.
// `registers` is a struct pt_regs, or 0 if there is no 64-bit user code.
struct event_record {
    u64 kind, subject, nanoseconds, program, ids;
    char comm[16];
    u64 registers[EVENT_REGISTERS], kernel[EVENT_FRAMES + 1];
};
#define EVENT_SIZE(frames) ((7 + EVENT_REGISTERS + (frames)) * 8)
#define EVENT (1ull << 63)
#define EVENT_TYPE(type, count) (EVENT | (u64)(type) << 56 | ((count) & 0xffffffff) << 16)
enum { WAKING, PAIR, PAIR_BEGIN, PAIR_END, SLEEPER, KILLED, SWITCH, LONG_BLOCK };

// Sends an event without its context.
static __always_inline void send_event(void *context, struct scratch *s, u64 kind, u64 subject, u64 nanoseconds) {
    struct event_record *event = (void *)s->record;
    __builtin_memset(event, 0, EVENT_SIZE(0));
    event->kind = kind;
    event->subject = subject;
    event->nanoseconds = nanoseconds;
    event->ids = bpf_get_current_pid_tgid();
    bpf_perf_event_output(context, &outputs, BPF_F_CURRENT_CPU, event, EVENT_SIZE(0));
}

// The kernel's code that interrupts enter; empty if that is not known.
const volatile u64 interrupt_start, interrupt_size;

// Takes the kernel stack of an event. Returns 1 if an interrupt has interrupted the current thread.
static __always_inline int take_kernel_stack(void *context, struct scratch *s) {
    long bytes = bpf_get_stack(context, s->kernel, EVENT_FRAMES * 8, 0);
    u64 frames = bytes > 0 ? (u64)bytes / 8 : 0;
    BOUND(frames, EVENT_FRAMES);
    s->kernel_frames = frames;
    for (u32 i = 0; i < EVENT_FRAMES; i++) {
        if (i >= frames) break;
        if (s->kernel[i] - interrupt_start < interrupt_size) return 1;
    }
    return 0;
}

// Sends an event with the stacks of the current thread. The program's memory is locked. With `of_thread`, the user stack is left
// out in an interrupt: that of the interrupted thread says nothing, and may be large.
static __always_inline void send_event_with_stack(void *context, u64 kind, u64 subject, u64 nanoseconds, int of_thread) {
    struct scratch *s = this_scratch();
    if (!s) return;
    // Kept here: the combined stack has no room for it meanwhile.
    s->event_kind = kind;
    s->event_subject = subject;
    s->event_nanoseconds = nanoseconds;
    int with_user = !take_kernel_stack(context, s) || !of_thread;
    if (with_user) take_user_stack(context, bpf_get_current_pid_tgid() >> 32);
    s = this_scratch();
    if (!s) return;
    struct event_record *event = (void *)s->record;
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __builtin_memset(event->registers, 0, sizeof event->registers);
    struct pt_regs___kernel *registers = (void *)bpf_task_pt_regs((void *)task);
    if (with_user && task->mm && !(task->flags & PF_KTHREAD) && registers->cs == USER64_CS)
        bpf_probe_read_kernel(event->registers, sizeof event->registers, registers);
    u64 frames = s->kernel_frames;
    BOUND(frames, EVENT_FRAMES);
    bpf_probe_read_kernel(event->kernel, frames * 8, s->kernel);
    event->kind = s->event_kind | frames;
    event->subject = s->event_subject;
    event->nanoseconds = s->event_nanoseconds;
    event->ids = bpf_get_current_pid_tgid();
    event->program = task->group_leader->start_time + task->self_exec_id;
    bpf_get_current_comm(event->comm, sizeof event->comm);
    bpf_perf_event_output(context, &outputs, BPF_F_CURRENT_CPU, event, EVENT_SIZE(frames));
}
