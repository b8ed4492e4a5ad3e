// Reads the name of the asyncio task that the current thread runs (CPython 3.14 and later).
//
// A thread's state points to the task, which the thread itself sets: it is interrupted, so nothing changes meanwhile. The name
// is a string, or a number N that stands for `Task-N`. The words of a name follow all others:
//
// - its length in the lower half, in characters, and the state of the string in the upper half; TASK_NUMBER there for a number
// - the number, or the first bytes of what follows the head of an ASCII string, in TASK_WORDS words

// True if tasks are recorded.
const volatile u64 with_task;

#define TASK_WORDS 16u
#define TASK_NUMBER (~0u)
#define MAX_TASK_NAME (1u << 20)   // longer ones are taken for as long
// Flags of the types of strings and numbers, and of their subclasses.
#define INT_SUBCLASS (1u << 24)
#define STRING_SUBCLASS (1u << 28)
#define DIGIT_BITS 30

static __always_inline u32 fail_to_read_task(struct scratch *s) {
    ((struct head *)s->record)->flags |= TASK_UNKNOWN;
    return 0;
}

// Returns the address of the object that names the current task; 0 if there is none, 1 if that is not known.
static __always_inline u64 find_task_name(u32 *f, u64 state, u64 thread_pointer) {
    if (f[RUNNING_TASK] == NONE) return 1;
    if (!state || !f[RUNNING_TASK]) return 0;
    if (read_word(state + f[THREAD_ID]) != thread_pointer) return 1;
    u64 task = 0;
    u8 is_task = 0;
    if (bpf_probe_read_user(&task, 8, (void *)(state + f[RUNNING_TASK]))) return 1;
    if (!task) return 0;
    // A task that is written in Python has other fields.
    if (bpf_probe_read_user(&is_task, 1, (void *)(task + f[IS_TASK])) || is_task != 1) return 1;
    u64 name = read_word(task + f[TASK_NAME]);
    return name ? name : 1;
}

// Writes the name of the current task behind the first `base` words of the record. Returns the number of words, 0 if there is
// no task.
__attribute__((noinline)) u32 read_task(u32 process, u32 base) {
    struct scratch *s = this_scratch();
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct mm_struct *mm = task->mm;
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || !mm) return 0;
    // The recorder knows whether the process runs Python by the time at which it reads this.
    if (!is_known_program(process, mm->start_code)) return fail_to_read_task(s);
    if (!interpreter || interpreter->kind != PYTHON) return 0;
    u32 *f = interpreter->field;
    u64 name = find_task_name(f, find_thread_state(interpreter, task->thread.fsbase), task->thread.fsbase), index = base;
    if (!name) return 0;
    if (name == 1) return fail_to_read_task(s);
    BOUND(index, RECORD - 1);
    u64 *words = &s->record[HEAD + index];
    u32 flags = read_u32(read_word(name + f[PYTHON_TYPE]) + f[TYPE_FLAGS]);
    if (flags & INT_SUBCLASS) {
        // The lowest bits of the tag are the sign, 0 for a positive number.
        u64 tag = read_word(name + f[INT_TAG]), digits = read_word(name + f[INT_DIGITS]);
        if (tag & 3 || tag >> 3 > 2) return fail_to_read_task(s);
        words[0] = (u64)TASK_NUMBER << 32;
        words[1] = (digits & ((1u << DIGIT_BITS) - 1)) | (tag >> 3 == 2 ? digits >> 32 << DIGIT_BITS : 0);
        return 2;
    }
    if (!(flags & STRING_SUBCLASS)) return fail_to_read_task(s);
    u64 length = read_word(name + f[STRING_LENGTH]), state = read_u32(name + f[STRING_STATE]);
    if (length > MAX_TASK_NAME) length = MAX_TASK_NAME;
    words[0] = state << 32 | length;
    // The head of other strings is longer. Their characters have up to 4 bytes.
    u64 size = is_python_ascii(state >> f[STATE_SHIFT]) ? length : f[WIDE_DATA] + 4 * length;
    if (size > 8 * TASK_WORDS) size = 8 * TASK_WORDS;
    BOUND(size, 2 * 8 * TASK_WORDS - 1);
    if (bpf_probe_read_user(words + 1, size, (void *)(name + f[STRING_DATA]))) return fail_to_read_task(s);
    return 1 + TASK_WORDS;
}
