// Reads the context of the current thread as OpenTelemetry publishes it (OTEP 4947): the span that the thread works on, and
// attributes of it.
//
// A program has a thread-local variable, a pointer to the record of the thread. The recorder publishes where it is
// (lib/perf/thread_context/variable.rs). The thread is interrupted, so its record cannot change while it is read; the thread
// may have been interrupted while it changed it, and then the record does not call itself valid.

// True if contexts are recorded.
const volatile u64 with_context;

// The place of a thread's variable: nowhere; at an offset from the thread pointer; at one that the dynamic linker wrote to
// the anchor; at an offset in the storage of a module, both of which are at the anchor; the same with a known offset; or
// where the descriptor (TLSDESC) at the anchor says.
enum { NO_VARIABLE, AT_OFFSET, AT_STORED_OFFSET, IN_STORED_MODULE, IN_OWN_MODULE, BY_DESCRIPTOR };
struct thread_variable { u64 kind, anchor, offset, is_musl; };
MAP(thread_variables, BPF_MAP_TYPE_HASH, 16384, BPF_F_NO_PREALLOC, u32, struct thread_variable);

// A record begins with 16 bytes of the trace's ID, 8 of the span's, a byte that is 1 if the record is valid, a byte of flags,
// and 2 bytes with the size of the attributes, which follow.
#define CONTEXT_HEAD 28u
#define CONTEXT_VALID 24u
#define MAX_ATTRIBUTES 612u

// Stands for the address of a variable: what leads to it could not be read.
#define UNREADABLE 1

// Returns the address of a byte in the thread's storage of a module; 0 if the thread has none. `generation` is that of the
// module table which knows the module.
static __always_inline u64 find_in_module(u64 is_musl, u64 thread_pointer, u64 module, u64 offset, u64 generation) {
    // musl: the first word of the table is the number of modules, each of which has a word. glibc: 16 bytes for each module. The
    // first are the generation; before them is the number of modules.
    u64 table = 0, count = 0, known = 0, storage = 0, entry = is_musl ? 8 : 16;
    if (bpf_probe_read_user(&table, 8, (void *)(thread_pointer + 8))) return UNREADABLE;
    if (bpf_probe_read_user(&count, 8, (void *)(table - (entry & 16)))) return UNREADABLE;
    if (bpf_probe_read_user(&known, 8, (void *)table)) return UNREADABLE;
    if (module - 1 >= count || generation > known) return 0;
    if (bpf_probe_read_user(&storage, 8, (void *)(table + entry * module))) return UNREADABLE;
    // glibc: -1 is storage that the thread has not used yet.
    return storage && storage != ~0ull ? storage + offset : 0;
}

// Returns the address of the current thread's variable; 0 if it has none, UNREADABLE if that is not known.
static __always_inline u64 find_variable(struct thread_variable *variable, u64 thread_pointer) {
    u64 anchor = variable->anchor, kind = variable->kind, offset = variable->offset, is_musl = variable->is_musl;
    if (kind == AT_OFFSET) return thread_pointer + offset;
    u64 words[3] = {};
    if (bpf_probe_read_user(words, 16, (void *)anchor)) return UNREADABLE;
    if (kind == AT_STORED_OFFSET) return words[0] ? thread_pointer + words[0] : 0;
    if (kind == IN_STORED_MODULE) return find_in_module(is_musl, thread_pointer, words[0], words[1], 0);
    if (kind == IN_OWN_MODULE) return find_in_module(is_musl, thread_pointer, words[0], offset, 0);
    // A descriptor is a function and its argument: the offset from the thread pointer, which is negative, or a pointer to the
    // module, the offset, and in glibc the generation. There is no function before the dynamic linker was there.
    if (!words[0]) return 0;
    u64 argument = words[1];
    if ((s64)argument < 0) return thread_pointer + argument;
    if (bpf_probe_read_user(words, sizeof words, (void *)argument)) return UNREADABLE;
    return find_in_module(is_musl, thread_pointer, words[0], words[1], is_musl ? 0 : words[2]);
}

// Gives a new process the variable of its parent.
static __always_inline void copy_variable(u32 parent, u32 child) {
    struct thread_variable *variable = bpf_map_lookup_elem(&thread_variables, &parent);
    if (variable) bpf_map_update_elem(&thread_variables, &child, variable, BPF_ANY);
    else bpf_map_delete_elem(&thread_variables, &child);
}

// Returns 1 if the program that the process runs is the one whose mappings the recorder has published.
static __always_inline int is_known_program(u32 process, u64 code) {
    u32 *layout = bpf_map_lookup_elem(&processes, &process);
    struct layout *p = layout ? bpf_map_lookup_elem(&layouts, layout) : 0;
    if (!p) return 0;
    struct mapping *mapping = find_mapping(p, code);
    return code >= mapping->start && code < mapping->end;
}

static __always_inline u32 fail_to_read_context(struct scratch *s) {
    ((struct head *)s->record)->flags |= CONTEXT_UNKNOWN;
    return 0;
}

// Writes the current thread's context behind the first `base` words of the record. Returns the number of words, 0 if there is
// no context.
__attribute__((noinline)) u32 read_context(u32 process, u32 base) {
    struct scratch *s = this_scratch();
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct mm_struct *mm = task->mm;
    struct thread_variable *variable = bpf_map_lookup_elem(&thread_variables, &process);
    if (!s || !mm) return 0;
    // The recorder knows whether the process has a variable by the time at which it reads this.
    if (!variable || !variable->kind || !is_known_program(process, mm->start_code)) return fail_to_read_context(s);
    u64 at = find_variable(variable, task->thread.fsbase), index = base;
    if (at == UNREADABLE) return fail_to_read_context(s);
    // A variable in a page that is not in memory was most likely never written.
    u64 record = at ? read_word(at) : 0;
    if (!record) return 0;
    BOUND(index, RECORD - 1);
    u8 *bytes = (u8 *)&s->record[HEAD + index], valid = 0;
    if (bpf_probe_read_user(bytes, CONTEXT_HEAD, (void *)record)) return fail_to_read_context(s);
    if (bytes[CONTEXT_VALID] != 1) return 0;
    u64 size = *(u16 *)(bytes + CONTEXT_VALID + 2);
    if (size > MAX_ATTRIBUTES) size = MAX_ATTRIBUTES;
    BOUND(size, 1023);
    if (size && bpf_probe_read_user(bytes + CONTEXT_HEAD, size, (void *)(record + CONTEXT_HEAD)))
        return fail_to_read_context(s);
    // A record that another thread changes, against the rules, may not be valid any more.
    if (bpf_probe_read_user(&valid, 1, (void *)(record + CONTEXT_VALID)) || valid != 1) return 0;
    return (CONTEXT_HEAD + size + 7) / 8;
}
