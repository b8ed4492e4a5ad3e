// Finds the code at which the walk of a stack begins: not always that of the instruction pointer.

#define XOL_SLOT 128u   // bytes in which the kernel executes a probed instruction (UPROBE_XOL_SLOT_BYTES)

// Returns the place of a probed instruction in the program, if the current thread executes it out of line: a copy, in memory that
// the kernel maps ([uprobes]). 0 if it does not.
static __always_inline u64 find_probed(struct task_struct *task, u64 ip) {
    // A kernel may have no uprobes.
    if (!bpf_core_field_exists(task->utask)) return 0;
    struct uprobe_task *utask = task->utask;
    u64 slot = utask ? BPF_CORE_READ(utask, xol_vaddr) : 0, distance = ip - slot;
    // Behind the copy until the kernel has set the instruction pointer to what follows the instruction.
    return slot && distance < XOL_SLOT ? BPF_CORE_READ(utask, vaddr) + distance : 0;
}

#define BEHIND_SYSCALL 18   // bytes of a comparison and two branches

// Returns where the code behind a system call goes after it has compared the result with 0: a new thread, in which the call returns
// 0, has no caller from there on (lib/perf/unwind/after_syscall.rs). 0 if `ip` is not on the way. `code` is behind the call.
__attribute__((noinline)) u64 find_thread_start(u64 code, u64 ip) {
    u8 bytes[BEHIND_SYSCALL], *byte = bytes;
    u32 at = 0;
    if (bpf_probe_read_user(bytes, sizeof bytes, (void *)code)) return 0;
    // test eax, eax; test rax, rax; cmp $0, eax; cmp $0, rax
    if (byte[0] == 0x48) at++;
    if (byte[at] == 0x85 && byte[at + 1] == 0xc0) at += 2;
    else if (byte[at] == 0x83 && byte[at + 1] == 0xf8 && !byte[at + 2]) at += 3;
    else return 0;
    // jl, js
    if (byte[at] == 0x7c || byte[at] == 0x78) at += 2;
    else if (byte[at] == 0x0f && (byte[at + 1] == 0x8c || byte[at + 1] == 0x88)) at += 6;
    int is_short = byte[at] >> 4 == 7;
    u8 condition = is_short ? byte[at] : byte[at] == 0x0f ? byte[at + 1] - 0x10 : 0;
    s64 distance = is_short ? (signed char)byte[at + 1]
                            : (int)(byte[at + 2] | byte[at + 3] << 8 | byte[at + 4] << 16 | (u32)byte[at + 5] << 24);
    u64 next = code + at + (is_short ? 2 : 6);
    if (ip >= next) return 0;
    // je, jne
    return condition == 0x74 ? next + distance : condition == 0x75 ? next : 0;
}

#define RESUME_FLAG (1u << 16)   // set where a fault interrupts

// Sets the place in code that was interrupted at `ip`, with these values in its registers.
static __always_inline void interrupt_at(struct walk *w, u64 ip, u64 ax, u64 behind, u64 r11, u64 flags) {
    u16 before = 0;
    w->pc = ip;
    w->exact = 1;
    // A system call leaves the address behind it in rcx, and the flags in r11.
    if (ip - behind >= BEHIND_SYSCALL) return;
    if (ip == behind && (r11 ^ flags) & ~RESUME_FLAG) return;
    if (bpf_probe_read_user(&before, sizeof before, (void *)(behind - 2)) || before != SYSCALL) return;
    u64 start = ax ? 0 : find_thread_start(behind, ip);
    // The code behind the call may be another function.
    if (start) w->pc = start;
    else w->exact = ip != behind;
}

// Sets the code at which a walk begins.
static __always_inline void begin_at(struct walk *w, struct pt_regs___kernel *regs, u64 probed) {
    w->r13 = regs->r13;
    w->ax = regs->ax;
    w->bx = regs->bx;
    w->dx = regs->dx;
    interrupt_at(w, regs->ip, regs->ax, regs->cx, regs->r11, regs->flags);
    if (probed && w->pc == regs->ip) w->pc = probed;
}
