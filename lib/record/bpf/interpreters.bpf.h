// Walks the frames of script functions, which interpreters keep in memory of their own.
//
// The recorder publishes a description of each process that runs a known interpreter: where a thread finds its own state,
// and the offsets of the fields that are read (lib/perf/runtimes). The words of the script frames follow those of the native
// stack, innermost frame first:
//
// - the address of the code object. Bit 63 is set if the frame is the outermost of an interpreter loop, bit 62 if a name
//   follows.
// - the index of the instruction in the upper half, the function's first line in the lower half
// - a hash of what makes up the function's name. The recorder reads the name later, and believes it only if it has the
//   same hash: code objects are freed, and others are made at their addresses.
// - with bit 62, the lengths of the function's name and of its file's path, and the last bytes of both. They are sent when
//   the hash is new: the process may not have them any more when the recorder reads them.

// The kind of an interpreter.
enum { PYTHON = 1 };
// The place of a thread's state: in thread-specific data, whose key is at the anchor, or in thread-local storage, at an
// offset from the thread pointer.
enum { IN_THREAD_DATA = 1, IN_THREAD_STORAGE = 2 };
// The fields of CPython's structures: offsets in bytes, and what they contain.
enum {
    THREAD_ID,       // in the thread's state: its thread pointer
    FIRST_FRAME,     // in the thread's state: the frame, or what points to it
    INDIRECT_FRAME,  // the offset of the frame in what FIRST_FRAME points to; NONE if that is the frame
    FRAME_SIZE,      // the size of the part of a frame that is read
    CODE, PREVIOUS, INSTRUCTION,   // in a frame
    IS_POINTER,      // 1 if INSTRUCTION is a pointer to the instruction, 0 if it is an index
    OWNER,           // in a frame: the byte that tells where a loop begins
    OWNER_KIND,
    BYTECODE,        // in a code object: its first instruction
    CODE_START, CODE_SIZE,         // the part of a code object that is read
    FIRST_LINE, NAME, FILE, LINES, // in that part
    STRING_DATA,     // in a string: its bytes
    FIELDS = 24
};
// A loop runs one frame, or frames up to the one whose OWNER is not 0, or up to the one before a frame that is not shown,
// whose OWNER is 3 or more.
enum { LOOP_PER_FRAME, LOOP_BY_FLAG, LOOP_BY_ENTRY_FRAME };
#define NONE (~0u)

struct interpreter { u32 kind, anchor_kind; u64 anchor; u32 is_musl, unused; u32 field[FIELDS]; };
MAP(interpreters, BPF_MAP_TYPE_HASH, 16384, BPF_F_NO_PREALLOC, u32, struct interpreter);

// The hashes whose names were sent last, each in the place of its lower bits.
#define SENT_NAMES 65536
MAP(sent_names, BPF_MAP_TYPE_ARRAY, SENT_NAMES, 0, u32, u64);

#define SCRIPT_FRAMES 4096u
#define FRAME_WORDS 3u
#define OUTERMOST (1ull << 63)
#define WITH_NAME (1ull << 62)
#define STRING_WORDS 16u   // of a string that are hashed and sent: its last
#define MAX_STRING (8 * STRING_WORDS)
#define NAMED_WORDS 4000u  // no names are sent behind so many words

struct script_walk { struct interpreter *interpreter; struct scratch *scratch; u32 base; };

static __always_inline u64 mix(u64 hash, u64 word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

// Reads the last bytes of a string object, and adds them and its length to a hash.
static __always_inline u64 read_string(u64 *words, u64 string, u64 data, u64 length, u64 hash) {
    u64 size = length > MAX_STRING ? MAX_STRING : length;
#pragma unroll
    for (u32 i = 0; i < STRING_WORDS; i++) words[i] = 0;
    BOUND(size, 2 * MAX_STRING - 1);
    if (size <= MAX_STRING) bpf_probe_read_user(words, size, (void *)(string + data + length - size));
    hash = mix(hash, length);
#pragma unroll
    for (u32 i = 0; i < STRING_WORDS; i++) hash = mix(hash, words[i]);
    return hash;
}

// Returns 1 if a name is to be sent, and notes that it is.
static __always_inline int is_new_name(u64 hash) {
    u32 place = hash % SENT_NAMES;
    u64 *sent = bpf_map_lookup_elem(&sent_names, &place);
    if (!sent || *sent == hash) return 0;
    *sent = hash;
    return 1;
}

// The value of a field in the first 512 bytes of the page.
#define PAGE_FIELD(type, s, offset) (*(type *)((char *)(s)->page + ((offset) & 255)))

// Notes a frame of CPython, and steps to its caller. Returns 1 at the root, or where memory cannot be read.
static long step_python(u32 i, struct script_walk *walk) {
    u32 *f = walk->interpreter->field;
    struct scratch *s = walk->scratch;
    u64 frame = s->script_frame, n = s->script_n;
    if (!frame) return 1;
    if (n >= SCRIPT_FRAMES || bpf_probe_read_user(s->page, f[FRAME_SIZE] & 255, (void *)frame)) {
        s->script_flags |= SCRIPT_CUT;
        return 1;
    }
    u64 code = PAGE_FIELD(u64, s, f[CODE]) & ~7ull, previous = PAGE_FIELD(u64, s, f[PREVIOUS]);
    u64 instruction = PAGE_FIELD(u64, s, f[INSTRUCTION]);
    u8 owner = PAGE_FIELD(u8, s, f[OWNER]);
    u32 owner_kind = f[OWNER_KIND];
    u64 index = walk->base + s->script_words, last = s->script_last;
    BOUND(index, RECORD - 1);
    BOUND(last, RECORD - 1);
    u64 *words = &s->record[HEAD + index];
    s->script_frame = previous;
    if (owner_kind == LOOP_BY_ENTRY_FRAME && owner >= 3) {
        // The frame that was noted before is the outermost of its loop. If there is none, the loop is about to end.
        if (n) s->record[HEAD + last] |= OUTERMOST;
        else s->script_flags |= SCRIPT_ENTERING;
        return 0;
    }
    if (!code || bpf_probe_read_user(s->page, f[CODE_SIZE] & 255, (void *)(code + f[CODE_START]))) {
        s->script_flags |= SCRIPT_CUT;
        return 1;
    }
    u64 first_line = PAGE_FIELD(u32, s, f[FIRST_LINE]), name = PAGE_FIELD(u64, s, f[NAME]);
    u64 file = PAGE_FIELD(u64, s, f[FILE]), lines = PAGE_FIELD(u64, s, f[LINES]);
    u64 name_length = read_word(name + 16), file_length = read_word(file + 16);
    u64 hash = mix(mix(mix(first_line, name), file), lines);
    hash = read_string(s->page + 64, name, f[STRING_DATA], name_length, hash);
    hash = read_string(s->page + 64 + STRING_WORDS, file, f[STRING_DATA], file_length, hash);
    if (f[IS_POINTER]) instruction -= code + f[BYTECODE];
    int is_outermost = owner_kind == LOOP_PER_FRAME || (owner_kind == LOOP_BY_FLAG && owner);
    // Bits 5 and 6 of a string's state say that its bytes are ASCII and follow its head.
    int is_named = s->script_words < NAMED_WORDS && is_new_name(hash) &&
                   (read_word(name + 32) & read_word(file + 32) & 0x60) == 0x60;
    words[0] = code | (is_outermost ? OUTERMOST : 0) | (is_named ? WITH_NAME : 0);
    words[1] = instruction << 32 | first_line;
    words[2] = hash;
    s->script_last = index;
    s->script_n = n + 1;
    u64 size = FRAME_WORDS;
    if (is_named) {
        words[3] = name_length << 32 | (u32)file_length;
#pragma unroll
        for (u32 i = 0; i < 2 * STRING_WORDS; i++) words[4 + i] = s->page[64 + i];
        size = FRAME_WORDS + 1 + 2 * STRING_WORDS;
    }
    s->script_words += size;
    return 0;
}

// Returns the state of the current thread; 0 if it has none.
static __always_inline u64 find_thread_state(struct interpreter *interpreter, u64 thread_pointer) {
    u64 anchor = interpreter->anchor;
    if (interpreter->anchor_kind == IN_THREAD_STORAGE) return read_word(thread_pointer + anchor);
    u64 key = (u32)read_word(anchor);
    if (interpreter->is_musl) return read_word(read_word(thread_pointer + 0x80) + 8 * key);
    // glibc's struct pthread has the first 32 keys, and pointers to blocks of 32 keys.
    if (key < 32) return read_word(thread_pointer + 0x310 + 16 * key + 8);
    if (key >= 1024) return 0;
    return read_word(read_word(thread_pointer + 0x510 + 8 * (key / 32)) + 16 * (key % 32) + 8);
}

// Writes the script frames of the current thread behind the first `base` words of the record. Returns the number of words.
__attribute__((noinline)) u32 walk_script(u32 process, u32 base) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || base > OUT) return 0;
    s->script_n = s->script_words = s->script_last = s->script_flags = 0;
    if (!interpreter) return 0;
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    u64 thread_pointer = task->thread.fsbase;
    u32 *f = interpreter->field;
    u64 state = find_thread_state(interpreter, thread_pointer);
    // The address may be of another program, which the process runs by now.
    if (!state || read_word(state + f[THREAD_ID]) != thread_pointer) return 0;
    u64 frame = read_word(state + f[FIRST_FRAME]);
    if (frame && f[INDIRECT_FRAME] != NONE) frame = read_word(frame + f[INDIRECT_FRAME]);
    s->script_frame = frame;
    struct script_walk walk = {.interpreter = interpreter, .scratch = s, .base = base};
    bpf_loop(2 * SCRIPT_FRAMES, step_python, &walk, 0);
    if (s->script_frame && s->script_n >= SCRIPT_FRAMES) s->script_flags |= SCRIPT_CUT;
    return s->script_words;
}
