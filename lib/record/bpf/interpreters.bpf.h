// Walks the frames of script functions, which interpreters keep in memory of their own.
//
// The recorder publishes a description of each process that runs a known interpreter: where a thread finds its own state,
// and the offsets of the fields that are read (lib/perf/runtimes). The words of the script frames follow those of the native
// stack, innermost frame first:
//
// - the address of the code object. Bit 63 is set if the frame is the outermost of an interpreter loop, bit 62 if a name
//   follows. Bits 48 to 61 are the index of a native frame: its own, if script frames are native frames (generated.bpf.h), that of
//   the loop of which it is the outermost frame, if the interpreter tells where its loops are (python.bpf.h). With FROM_NATIVE, it is
//   this one or further out.
// - the index of the instruction in the upper half, the function's first line in the lower half
// - a hash of what makes up the function's name. The recorder reads the name later, and believes it only if it has the
//   same hash: code objects are freed, and others are made at their addresses.
// - with bit 62, the lengths of the function's name, of its file's path and of its class's name, and the last bytes of each.
//   They are sent when the hash is new: the process may not have them any more when the recorder reads them.

// The kind of an interpreter.
enum { PYTHON = 1, PHP = 2, RUBY = 3, HOTSPOT = 4, V8 = 5 };
// The place of a thread's state: in thread-specific data, whose key is at the anchor; in thread-local storage, at an
// offset from the thread pointer or, in a library, at what the anchor says: the module and the offset in its storage; or at
// the anchor, which is of the main thread. A runtime whose frames are on the native stack has no such state, but an anchor
// in its library.
enum { IN_THREAD_DATA = 1, IN_THREAD_STORAGE = 2, IN_MAIN_THREAD = 3, IN_MODULE_STORAGE = 4, IN_LIBRARY = 5 };
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
    STRING_LENGTH, STRING_STATE,   // in a string
    STATE_SHIFT,     // the number of bits in a string's state before the size of its characters
    WIDE_DATA,       // the distance from the bytes of ASCII strings to those of others
    LOOP_CALLER,     // in a loop's variables, to which the thread's state points: those of the loop that called it; NONE before 3.11
    RUNNING_TASK,    // in the thread's state: the task of asyncio that it runs; 0 if there are no tasks, NONE if they are not known
    IS_TASK, TASK_NAME,            // in a task
    PYTHON_TYPE, TYPE_FLAGS,       // in an object, and in a type
    INT_TAG, INT_DIGITS,           // in a number
    FIELDS = 48, CACHED = 12
};
// The fields of PHP's structures: offsets in a function, the frame of the loop (php.bpf.h), an offset in a generator, and the
// function that resumes generators: its distance from the anchor, its size, and what it has in registers.
enum {
    FUNCTION_SIZE, OPCODES, OPCODE_COUNT, PHP_FILE, PHP_FIRST_LINE, LOOP_FRAME_SIZE, LOOP_SAVED_BP,
    GENERATOR_FLAGS, RESUME, RESUME_SIZE, RESUME_REGISTERS
};
// Ruby: the size of a frame, 1 if the first line of a method is a tagged number, and 1 if the length of a short string is in
// its flags.
enum { RUBY_FRAME_SIZE, IS_LINE_TAGGED, IS_LENGTH_IN_FLAGS };
// A loop runs one frame, or frames up to the one whose OWNER is not 0, or up to the one before a frame that is not shown,
// whose OWNER is 3 or more.
enum { LOOP_PER_FRAME, LOOP_BY_FLAG, LOOP_BY_ENTRY_FRAME };
#define NONE (~0u)
// The bits of a native frame that is not known.
#define NO_NATIVE (0x3fffull << 48)
#define FROM_NATIVE (1ull << 61)

// What the program has found itself is in `cached`.
struct interpreter { u32 kind, anchor_kind; u64 anchor; u32 is_musl, unused; u32 field[FIELDS]; u64 cached[CACHED]; };
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

struct script_walk { struct interpreter *interpreter; struct scratch *scratch; };

#include "script_reads.bpf.h"

// Returns 1 if a name is to be sent, and notes that it is. Each CPU sends it: the recorder reads the rings of CPUs one after
// the other. It is sent again if a record was lost, which may have contained it.
static __always_inline int is_new_name(struct scratch *s, u64 hash) {
    hash = mix(hash, s->lost_records << 32 | bpf_get_smp_processor_id());
    u32 place = hash % SENT_NAMES;
    u64 *sent = bpf_map_lookup_elem(&sent_names, &place);
    if (!sent || *sent == hash) return 0;
    *sent = hash;
    return 1;
}

// The value of a field in the first 512 bytes of the page.
#define PAGE_FIELD(type, s, offset) (*(type *)((char *)(s)->page + ((offset) & 255)))

// Notes a frame of a function.
static __always_inline void note_frame(struct scratch *s, u64 code, u64 position, u64 hash) {
    u64 index = s->script_base + s->script_words;
    BOUND(index, RECORD - 1);
    u64 *words = &s->record[HEAD + index];
    words[0] = code;
    words[1] = position;
    words[2] = hash;
    s->script_last = index;
    s->script_n++;
    s->script_words += FRAME_WORDS;
}

// Returns 1 if the name of the function that is noted last is to be added: its hash is new.
static __always_inline int is_name_due(struct scratch *s, u64 hash) {
    return s->script_words < NAMED_WORDS && is_new_name(s, hash);
}

static __always_inline void copy_text(u64 *words, struct string text) {
    u64 length = text.length, size = length > MAX_STRING ? MAX_STRING : length;
#pragma unroll
    for (u32 i = 0; i < STRING_WORDS; i++) words[i] = 0;
    BOUND(size, 2 * MAX_STRING - 1);
    if (size <= MAX_STRING) bpf_probe_read_user(words, size, (void *)(text.start + length - size));
}

// Adds the name of the function that was noted last, which is `noted`.
__attribute__((noinline)) int add_name(void) {
    struct scratch *s = this_scratch();
    if (!s) return 0;
    struct script_function *function = &s->noted;
    u64 index = s->script_base + s->script_words, last = s->script_last;
    BOUND(index, RECORD - 1);
    BOUND(last, RECORD - 1);
    u64 *words = &s->record[HEAD + index];
    words[0] = function->name.length << 32 | (u32)function->file.length;
    words[1] = function->class.length;
    copy_text(words + 2, function->name);
    copy_text(words + 2 + STRING_WORDS, function->file);
    copy_text(words + 2 + 2 * STRING_WORDS, function->class);
    s->record[HEAD + last] |= WITH_NAME;
    s->script_words += 2 + 3 * STRING_WORDS;
    return 0;
}

// Ends a walk at a frame that cannot be read.
static __always_inline int cut_script(struct scratch *s) {
    s->script_flags |= SCRIPT_CUT;
    return 1;
}

#include "python.bpf.h"
#include "php_frames.bpf.h"
#include "ruby.bpf.h"

// Returns the state of the current thread; 0 if it has none.
static __always_inline u64 find_thread_state(struct interpreter *interpreter, u64 thread_pointer) {
    u64 anchor = interpreter->anchor;
    if (interpreter->anchor_kind == IN_THREAD_STORAGE) return read_word(thread_pointer + anchor);
    if (interpreter->anchor_kind == IN_MODULE_STORAGE) {
        // The C library keeps the addresses of modules' storage in a table of 16 bytes each.
        u64 modules = read_word(thread_pointer + 8), module = read_word(anchor);
        return read_word(read_word(modules + 16 * module) + read_word(anchor + 8));
    }
    u64 ids = bpf_get_current_pid_tgid();
    if (interpreter->anchor_kind == IN_MAIN_THREAD) return ids >> 32 == (u32)ids ? read_word(anchor) : 0;
    u64 key = (u32)read_word(anchor);
    if (interpreter->is_musl) return read_word(read_word(thread_pointer + 0x80) + 8 * key);
    // glibc's struct pthread has the first 32 keys, and pointers to blocks of 32 keys.
    if (key < 32) return read_word(thread_pointer + 0x310 + 16 * key + 8);
    if (key >= 1024) return 0;
    return read_word(read_word(thread_pointer + 0x510 + 8 * (key / 32)) + 16 * (key % 32) + 8);
}

// Moves what was noted of generated code behind the first `base` words of the record. Returns the number of words.
static __always_inline u32 move_generated(struct scratch *s, u32 base) {
    u32 size = s->script_words;
    if (size > RECORD / 2 - 1) return 0;
    u64 to = base;
    BOUND(to, RECORD / 2 - 1);
    bpf_probe_read_kernel(&s->record[HEAD + to], size * 8, &s->record[HEAD + FRAMES]);
    return size;
}

// Writes the script frames of the current thread behind the first `base` words of the record. Returns the number of words.
__attribute__((noinline)) u32 walk_script(u32 process, u32 base) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || base > OUT) return 0;
    if (!interpreter) return 0;
    if (interpreter->kind >= HOTSPOT) return move_generated(s, base);
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    u64 thread_pointer = task->thread.fsbase;
    u32 *f = interpreter->field;
    u64 state = find_thread_state(interpreter, thread_pointer);
    struct script_walk walk = {.interpreter = interpreter, .scratch = s};
    s->script_frame = state;
    s->script_base = base;
    s->near[FRAMES_WINDOW] = s->near[VALUES_WINDOW] = NOTHING;
    s->generator_count = s->script_generator = s->native = 0;
    if (interpreter->kind == PHP) {
        bpf_loop(2 * SCRIPT_FRAMES, step_php, &walk, 0);
    } else if (interpreter->kind == RUBY) {
        // The frames are at the upper end of the thread's stack of values.
        u64 stack = read_word(state);
        s->script_frame = read_word(state + 16);
        s->script_end = stack + 8 * read_word(state + 8);
        if (s->script_frame < stack) return 0;
        bpf_loop(2 * SCRIPT_FRAMES, step_ruby, &walk, 0);
    } else {
        // The address may be of another program, which the process runs by now.
        if (!state || read_word(state + f[THREAD_ID]) != thread_pointer) return 0;
        u64 frame = read_word(state + f[FIRST_FRAME]);
        s->loop_at = frame;
        if (frame && f[INDIRECT_FRAME] != NONE) frame = read_word(frame + f[INDIRECT_FRAME]);
        s->script_frame = frame;
        bpf_loop(2 * SCRIPT_FRAMES, step_python, &walk, 0);
    }
    if (s->script_n >= SCRIPT_FRAMES) s->script_flags |= SCRIPT_DEEP | (s->script_frame ? SCRIPT_CUT : 0);
    return s->script_words;
}
