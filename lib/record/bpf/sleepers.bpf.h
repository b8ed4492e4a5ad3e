// Tells where threads are that sleep: an iterator over all tasks writes a record for each thread of the target that is asleep.
//
// The stack of such a thread cannot change while it sleeps: the registers with which it entered the kernel are at the root of its
// kernel stack, and its user stack can be read from its memory. The recorder runs the iterator before it reads the memory and
// after it. If the thread has as many switches both times, and was off its CPU, it has not run meanwhile.

MAP(sleeper_record, BPF_MAP_TYPE_ARRAY, 1, 0, u32, struct event_record);

struct bpf_iter_meta { struct seq_file *seq; } KERNEL;
struct bpf_iter__task { struct bpf_iter_meta *meta; struct task_struct *task; } KERNEL;

// Returns the number of bytes of the user stack above a stack pointer, as far as that is known: see `scan_stack`.
static __always_inline u64 stack_size(struct task_struct *task, u64 sp) {
    u64 start_stack = task->mm->start_stack, fs = task->thread.fsbase;
    if (sp < start_stack && start_stack - sp < 1ull << 30) return start_stack + 8 - sp;
    if (fs > sp && fs - sp < 64ull << 20) return fs - sp;
    return UNKNOWN_SCAN;
}

enum { TASK_WAKING = 0x200, TASK_NEW = 0x800 };

// The state is read first: a thread that ran in between has switched before it is off its CPU again.
static __always_inline int is_asleep(struct task_struct *task) {
    u32 state = task->__state;
    return !task->on_cpu && state && !(state & (TASK_DEAD | TASK_WAKING | TASK_NEW));
}

SEC("iter/task")
int on_task(struct bpf_iter__task *context) {
    struct task_struct *task = context->task;
    u32 zero = 0, yes = 1;
    struct event_record *event = bpf_map_lookup_elem(&sleeper_record, &zero);
    if (!event || !task) return 0;
    u32 thread = task->pid, process = task->tgid;
    if (process == own || !is_wanted(process, thread) || !is_asleep(task)) return 0;
    u64 switches = task->nvcsw + task->nivcsw, size = 0;
    if (with_wakers) {
        bpf_map_update_elem(&blocked, &thread, &yes, BPF_ANY);
        if (!is_asleep(task)) {
            bpf_map_delete_elem(&blocked, &thread);
            return 0;
        }
    }
    __builtin_memset(event, 0, EVENT_SIZE(0));
    struct pt_regs___kernel *registers = (void *)bpf_task_pt_regs(task);
    if (task->mm && !(task->flags & PF_KTHREAD) && registers->cs == USER64_CS) {
        bpf_probe_read_kernel(event->registers, sizeof event->registers, registers);
        size = stack_size(task, registers->sp);
        event->program = task->thread.fsbase;
    }
    long bytes = bpf_get_task_stack(task, event->kernel, EVENT_FRAMES * 8, 0);
    u64 frames = bytes > 0 ? (u64)bytes / 8 : 0;
    BOUND(frames, EVENT_FRAMES);
    event->kind = EVENT_TYPE(SLEEPER, 1) | frames;
    event->subject = switches;
    event->nanoseconds = size;
    event->ids = (u64)process << 32 | thread;
    bpf_seq_write(context->meta->seq, event, EVENT_SIZE(frames));
    return 0;
}
