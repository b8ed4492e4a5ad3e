// Walks the frames of script functions, which interpreters keep in memory of their own.
//
// The recorder publishes a description of each process that runs a known interpreter: where a thread finds its own state,
// and the offsets of the fields that are read (lib/perf/runtimes). The words of the script frames follow those of the native
// stack, innermost frame first:
//
// - the address of the code object. Bit 63 is set if the frame is the outermost of an interpreter loop, bit 62 if a name
//   follows. Bits 48 to 61 are the index of the native frame, if script frames are native frames (generated.bpf.h).
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
    RUNNING_TASK,    // in the thread's state: the task of asyncio that it runs; 0 if there are no tasks, NONE if they are not known
    IS_TASK, TASK_NAME,            // in a task
    PYTHON_TYPE, TYPE_FLAGS,       // in an object, and in a type
    INT_TAG, INT_DIGITS,           // in a number
    FIELDS = 48, CACHED = 12
};
// The fields of PHP's structures: offsets in a function, and the frame of the loop (php.bpf.h).
enum { FUNCTION_SIZE, OPCODES, OPCODE_COUNT, PHP_FILE, PHP_FIRST_LINE, LOOP_FRAME_SIZE, LOOP_SAVED_BP };
// Ruby: the size of a frame, 1 if the first line of a method is a tagged number, and 1 if the length of a short string is in
// its flags.
enum { RUBY_FRAME_SIZE, IS_LINE_TAGGED, IS_LENGTH_IN_FLAGS };
// A loop runs one frame, or frames up to the one whose OWNER is not 0, or up to the one before a frame that is not shown,
// whose OWNER is 3 or more.
enum { LOOP_PER_FRAME, LOOP_BY_FLAG, LOOP_BY_ENTRY_FRAME };
#define NONE (~0u)

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

static __always_inline u64 mix(u64 hash, u64 word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

// Returns what was met at an address in this stack; if nothing was (`is_met`), its place. It is read once in a stack: the thread
// is interrupted, and its frames keep the functions that they run, and what those refer to. There are two places for it.
static __always_inline struct met *find_met(struct scratch *s, u64 address) {
    u64 place = address * 0x9e3779b97f4a7c15ull >> 48;
    BOUND(place, MET - 2);
    // The second place if the first one has something else of this stack. No branches: what comes after would be verified for
    // each way.
    u64 is_other = s->met[place].address ^ address, is_old = s->met[place].stack ^ s->stack;
    place |= (is_other | -is_other) >> 63 & ~((is_old | -is_old) >> 63);
    BOUND(place, MET - 1);
    return &s->met[place];
}

static __always_inline int is_met(struct scratch *s, struct met *met, u64 address) {
    return met->address == address && met->stack == s->stack;
}

static __always_inline void set_met(struct scratch *s, struct met *met, u64 address, u64 hash) {
    met->address = address;
    met->stack = s->stack;
    met->hash = hash;
}

// The place of the object that was read last, in the page in words; a text in it begins at a word.
#define OBJECT 64
#define OBJECT_SIZE 128
#define OBJECT_FIELD(type, s, offset) (*(type *)((char *)&(s)->page[OBJECT] + ((offset) & (OBJECT_SIZE - 1))))

// Reads an object with a text in it, of which `head` bytes are there for certain. Returns the number of bytes that were read.
static __always_inline u64 read_object(struct scratch *s, u64 object, u64 head) {
    if (!bpf_probe_read_user(&s->page[OBJECT], OBJECT_SIZE, (void *)object)) return OBJECT_SIZE;
    BOUND(head, OBJECT_SIZE - 1);
    bpf_probe_read_user(&s->page[OBJECT], head, (void *)object);
    return head;
}

// Windows of the page, through which frames that are near each other share a read.
#define NEAR_SIZE 1024
#define NEAR_PLACE 256   // of the first one, in words
enum { FRAMES_WINDOW, VALUES_WINDOW };
#define FIELD_AT(type, s, place, offset) (*(type *)((char *)&(s)->page[place] + ((offset) & 255)))

// Returns the place in the page, in words, of `size` bytes at an address; 0 if they cannot be read. They are read with what is
// above, with `is_upward`, or below in the same page of memory.
static __always_inline u64 read_near(struct scratch *s, u32 window, u64 at, u64 size, int is_upward) {
    u64 place = NEAR_PLACE + NEAR_SIZE / 8 * window, from = at - s->near[window];
    if (from > NEAR_SIZE - size || from & 7) {
        u64 page = at & ~(PAGE - 1ull), above = page + PAGE - NEAR_SIZE, below = (at + size + 7 - NEAR_SIZE) & ~7ull;
        u64 start = is_upward ? (at < above ? at : above) : (below > page ? below : page);
        from = at - start;
        s->near[window] = start;
        if (from > NEAR_SIZE - size || from & 7 || bpf_probe_read_user(&s->page[place], NEAR_SIZE, (void *)start)) {
            s->near[window] = from = 0;
            BOUND(size, 255);
            if (bpf_probe_read_user(&s->page[place], size, (void *)at)) return 0;
        }
    }
    place += from / 8;
    BOUND(place, 511);
    return place;
}

// Returns a hash of the length and the last bytes of a text. `place` is the word of the page from which on the text was read, 0
// if it was not.
__attribute__((noinline)) u64 hash_text(u64 start, u64 length, u64 place) {
    struct scratch *s = this_scratch();
    u64 size = length, hash = mix(0, length);
    if (!s) return 0;
    if (size > MAX_STRING) {
        size = MAX_STRING;
        place = 0;
    }
    if (!place) {
        place = OBJECT;
        BOUND(size, 2 * MAX_STRING - 1);
        bpf_probe_read_user(&s->page[OBJECT], size, (void *)(start + length - size));
    }
#pragma clang loop unroll(disable)
    for (u32 i = 0; i < STRING_WORDS; i++) {
        u64 at = place + i, left = size - 8 * i;
        if (size <= 8 * i) break;
        BOUND(at, 511);
        u64 word = s->page[at];
        if (left < 8) word &= (1ull << 8 * left) - 1;
        hash = mix(hash, word);
        s->text_bits |= word;
    }
    return hash;
}

// Returns a hash of a text in the object that was read last, of which `count` bytes were read.
static __always_inline u64 hash_in_object(struct string text, u64 object, u64 count) {
    u64 offset = text.start - object, is_read = text.length <= OBJECT_SIZE && offset + text.length <= count;
    return hash_text(text.start, text.length, is_read ? OBJECT + offset / 8 : 0);
}

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

// Marks the frame that was noted last as the outermost of its loop.
static __always_inline void end_loop(struct scratch *s) {
    u64 last = s->script_last;
    BOUND(last, RECORD - 1);
    if (s->script_n) s->record[HEAD + last] |= OUTERMOST;
}

static __always_inline int cut_script(struct scratch *s) {
    s->script_flags |= SCRIPT_CUT;
    return 1;
}

// The state of a string: the size of a character in 3 bits, whether the characters follow the head, and whether they are ASCII.
static __always_inline int is_python_ascii(u64 state) {
    return (state & 0x18) == 0x18;
}

// Reads a string of CPython. Returns its hash, and notes whether it is ASCII.
static __always_inline u64 read_python_text(struct scratch *s, u32 *f, u64 object, struct string *text, u64 *is_ascii) {
    u64 count = read_object(s, object, f[STRING_STATE] + 8);
    u64 state = (u32)OBJECT_FIELD(u64, s, f[STRING_STATE]) >> f[STATE_SHIFT];
    *is_ascii = is_python_ascii(state);
    text->start = object + f[STRING_DATA] + (*is_ascii ? 0 : f[WIDE_DATA]);
    text->length = OBJECT_FIELD(u64, s, f[STRING_LENGTH]) * (state & 7);
    return hash_in_object(*text, object, count);
}

// Notes a frame of CPython, and steps to its caller. Returns 1 at the root, or where memory cannot be read.
static long step_python(u32 i, struct script_walk *walk) {
    u32 *f = walk->interpreter->field;
    struct scratch *s = walk->scratch;
    u64 frame = s->script_frame, n = s->script_n;
    if (!frame) return 1;
    u64 place = n >= SCRIPT_FRAMES ? 0 : read_near(s, FRAMES_WINDOW, frame, f[FRAME_SIZE] & 255, 0);
    if (!place) return cut_script(s);
    u64 code = FIELD_AT(u64, s, place, f[CODE]) & ~7ull, previous = FIELD_AT(u64, s, place, f[PREVIOUS]);
    u64 instruction = FIELD_AT(u64, s, place, f[INSTRUCTION]);
    u8 owner = FIELD_AT(u8, s, place, f[OWNER]);
    u32 owner_kind = f[OWNER_KIND];
    s->script_frame = previous;
    if (owner_kind == LOOP_BY_ENTRY_FRAME && owner >= 3) {
        // The frame that was noted before is the outermost of its loop. If there is none, the loop is about to end.
        end_loop(s);
        if (!n) s->script_flags |= SCRIPT_ENTERING;
        return 0;
    }
    if (!code) return cut_script(s);
    if (f[IS_POINTER]) instruction -= code + f[BYTECODE];
    struct met *met = find_met(s, code);
    int is_new = 0;
    if (!is_met(s, met, code)) {
        if (bpf_probe_read_user(s->page, f[CODE_SIZE] & 255, (void *)(code + f[CODE_START]))) return cut_script(s);
        u64 first_line = PAGE_FIELD(u32, s, f[FIRST_LINE]), hash = mix(first_line, PAGE_FIELD(u64, s, f[LINES]));
        u64 name = PAGE_FIELD(u64, s, f[NAME]), file = PAGE_FIELD(u64, s, f[FILE]), are_ascii;
        struct met *met_file = find_met(s, file);
        if (!is_met(s, met_file, file)) {
            u64 text_hash = read_python_text(s, f, file, &met_file->text, &met_file->word[0]);
            set_met(s, met_file, file, text_hash);
        }
        s->noted.file = met_file->text;
        u64 file_hash = met_file->hash, is_file_ascii = met_file->word[0];
        hash = mix(mix(hash, read_python_text(s, f, name, &s->noted.name, &are_ascii)), file_hash);
        s->noted.class.length = 0;
        set_met(s, met, code, hash);
        met->first_line = first_line;
        is_new = are_ascii && is_file_ascii && is_name_due(s, hash);
    }
    int is_outermost = owner_kind == LOOP_PER_FRAME || (owner_kind == LOOP_BY_FLAG && owner);
    note_frame(s, code | (is_outermost ? OUTERMOST : 0), instruction << 32 | (u32)met->first_line, met->hash);
    if (is_new) add_name();
    return 0;
}

// In PHP: the type of a function in C, a flag of frames that are the outermost of a loop, and the size of an instruction.
enum { INTERNAL_FUNCTION = 1, CALL_TOP = 0x20000, OPCODE = 32 };
// The places of the frame, of the generator to which it delegates, and of its placeholder among the frames, in a generator.
enum { GENERATOR_FRAME = 56, GENERATOR_PARENT = 152, GENERATOR_PLACEHOLDER = 184, MAX_GENERATORS = 8 };

// Returns the generator to which another one delegates over so many others, and notes over how many it does. The last one
// delegates to none.
__attribute__((noinline)) u64 find_generator(u64 generator, u32 distance) {
    struct scratch *s = this_scratch();
    if (!s) return 0;
    u32 found = 0;
    for (; found < MAX_GENERATORS && found < distance; found++) {
        u64 parent = read_word(generator + GENERATOR_PARENT);
        if (!parent) break;
        generator = parent;
    }
    s->generator_distance = found;
    return generator;
}

// Reads a string of PHP; the empty one if there is none. Returns its hash.
static __always_inline u64 read_php_text(struct scratch *s, u64 object, struct string *text) {
    text->start = object + 24;
    text->length = 0;
    if (!object) return 0;
    u64 count = read_object(s, object, 24);
    text->length = s->page[OBJECT + 2];
    return hash_in_object(*text, object, count);
}

// Notes a frame of PHP (`zend_execute_data`: the instruction at 0, the function at 24, flags at 40, the caller at 48), and
// steps to its caller. Its instruction is a line.
static long step_php(u32 i, struct script_walk *walk) {
    u32 *f = walk->interpreter->field;
    struct scratch *s = walk->scratch;
    u64 frame = s->script_frame, n = s->script_n, generators = s->generators;
    if (generators) frame = read_word(find_generator(s->generator, generators - 1) + GENERATOR_FRAME);
    if (!frame) return 1;
    u64 place = n >= SCRIPT_FRAMES ? 0 : read_near(s, FRAMES_WINDOW, frame, 56, 0);
    if (!place) return cut_script(s);
    u64 instruction = s->page[place], callee = s->page[place + 3], caller = s->page[place + 6];
    u32 flags = s->page[place + 5];
    if (generators) s->generators = generators - 1;
    else s->script_frame = caller;
    if (!callee) {
        // A placeholder for the generators that delegate to the one before. It is part of the outermost of them.
        u64 outermost = s->page[place + 4];
        if (generators || frame != outermost + GENERATOR_PLACEHOLDER) return cut_script(s);
        find_generator(outermost, MAX_GENERATORS);
        u64 distance = s->generator_distance;
        if (distance >= MAX_GENERATORS) return cut_script(s);
        s->generator = outermost;
        s->generators = distance;
        // The loop runs the generator before for all of them.
        u64 last = s->script_last;
        BOUND(last, RECORD - 1);
        if (n && distance) s->record[HEAD + last] &= ~OUTERMOST;
        return 0;
    }
    struct met *met = find_met(s, callee);
    int is_new = 0;
    if (!is_met(s, met, callee)) {
        if (bpf_probe_read_user(s->page, f[FUNCTION_SIZE] & 255, (void *)callee)) return cut_script(s);
        u64 name = s->page[1], class = s->page[2], file = 0, first_line = 0, opcodes = 0, size = 0, hash;
        int is_internal = PAGE_FIELD(u8, s, 0) == INTERNAL_FUNCTION;
        // A fiber begins behind a function without a name. Its caller is on another stack.
        if (is_internal && !name) {
            s->script_frame = 0;
            return 1;
        }
        if (!is_internal) {
            opcodes = PAGE_FIELD(u64, s, f[OPCODES]);
            size = PAGE_FIELD(u32, s, f[OPCODE_COUNT]) * (u64)OPCODE;
            first_line = PAGE_FIELD(u32, s, f[PHP_FIRST_LINE]);
            file = PAGE_FIELD(u64, s, f[PHP_FILE]);
        }
        struct met *met_file = find_met(s, file);
        if (!is_met(s, met_file, file)) {
            u64 text_hash = read_php_text(s, file, &met_file->text);
            set_met(s, met_file, file, text_hash);
        }
        s->noted.file = met_file->text;
        u64 file_hash = met_file->hash;
        struct met *met_class = find_met(s, class);
        if (!is_met(s, met_class, class)) {
            u64 text_hash = read_php_text(s, class ? read_word(class + 8) : 0, &met_class->text);
            set_met(s, met_class, class, text_hash);
        }
        s->noted.class = met_class->text;
        u64 class_hash = met_class->hash;
        hash = mix(mix(mix(first_line, read_php_text(s, name, &s->noted.name)), file_hash), class_hash);
        set_met(s, met, callee, hash);
        met->first_line = first_line;
        met->word[0] = opcodes;
        met->word[1] = size;
        met->word[2] = 0;
        is_new = is_name_due(s, hash);
    }
    u64 opcodes = met->word[0], size = met->word[1];
    // The loop keeps the innermost frame and its instruction in registers, and writes the instruction back for calls.
    if (!n) {
        struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
        u64 in_register = regs->r15;
        if (regs->r14 == frame && in_register - opcodes < size) instruction = in_register;
    }
    if (instruction != met->word[2]) {
        met->line = instruction - opcodes < size ? (u32)read_word(instruction + 24) : 0;
        met->word[2] = instruction;
    }
    int is_outermost = generators ? generators == 1 : (flags & CALL_TOP) != 0;
    note_frame(s, callee | (is_outermost ? OUTERMOST : 0), met->line << 32 | (u32)met->first_line, met->hash);
    if (is_new) add_name();
    return 0;
}

// In Ruby: kinds of frames in their flags, and a flag of frames that are the outermost of a loop.
enum { FRAME_KIND = 0x7fff0001, C_FRAME = 0x55550001, I_FRAME = 0x66660001, DUMMY_FRAME = 0x79990001, FINISH = 0x20 };
// The type of arrays in the flags of objects, and a flag: the content of an array is in the object, that of a string is not.
enum { OBJECT_TYPE = 0x1f, ARRAY = 7, STORAGE_FLAG = 0x2000 };

// Reads a string of Ruby. Returns its hash.
static __always_inline u64 read_ruby_text(struct scratch *s, u64 object, u32 is_length_in_flags, struct string *text) {
    u64 count = read_object(s, object, 32), *head = &s->page[OBJECT];
    int is_embedded = !(head[0] & STORAGE_FLAG);
    text->start = is_embedded ? object + (is_length_in_flags ? 16 : 24) : head[3];
    text->length = is_embedded && is_length_in_flags ? head[0] >> 14 & 31 : head[2];
    return hash_in_object(*text, object, is_embedded ? count : 0);
}

// Reads the path of a method: a string, or an array of the path and the absolute path. Returns its hash.
static __always_inline u64 read_ruby_path(struct scratch *s, u64 path, u32 is_length_in_flags, struct string *text) {
    u64 flags = read_word(path);
    if ((flags & OBJECT_TYPE) == ARRAY) path = read_word(flags & STORAGE_FLAG ? path + 16 : read_word(path + 32));
    return read_ruby_text(s, path, is_length_in_flags, text);
}

// Notes a frame of Ruby (`rb_control_frame_t`: the next instruction at 0, the method at 16, flags behind the pointer at 32),
// and steps to its caller, which follows it.
static long step_ruby(u32 i, struct script_walk *walk) {
    u32 *f = walk->interpreter->field;
    struct scratch *s = walk->scratch;
    u64 frame = s->script_frame, n = s->script_n;
    if (!frame || frame >= s->script_end) {
        s->script_frame = 0;
        return 1;
    }
    u64 place = n >= SCRIPT_FRAMES ? 0 : read_near(s, FRAMES_WINDOW, frame, 40, 1);
    if (!place) return cut_script(s);
    u64 next = s->page[place], method = s->page[place + 2];
    place = read_near(s, VALUES_WINDOW, s->page[place + 4], 8, 0);
    u64 flags = place ? s->page[place] : 0, kind = flags & FRAME_KIND;
    s->script_frame = frame + f[RUBY_FRAME_SIZE];
    // Methods in C are native frames, and the outermost frame of a thread is none.
    if (kind == C_FRAME || kind == I_FRAME || kind == DUMMY_FRAME || !method) return 0;
    struct met *met = find_met(s, method);
    int is_new = 0;
    if (!is_met(s, met, method)) {
        u64 body = read_word(method + 16);
        if (!body || bpf_probe_read_user(s->page, 96, (void *)body)) return cut_script(s);
        u64 code = s->page[1], path = s->page[8], label = s->page[10], line = s->page[11];
        u64 first_line = f[IS_LINE_TAGGED] ? (u32)(line >> 1) : (u32)line, hash = mix(first_line, code);
        struct met *met_path = find_met(s, path);
        if (!is_met(s, met_path, path)) {
            u64 text_hash = read_ruby_path(s, path, f[IS_LENGTH_IN_FLAGS], &met_path->text);
            set_met(s, met_path, path, text_hash);
        }
        s->noted.file = met_path->text;
        u64 path_hash = met_path->hash;
        hash = mix(mix(hash, read_ruby_text(s, label, f[IS_LENGTH_IN_FLAGS], &s->noted.name)), path_hash);
        s->noted.class.length = 0;
        set_met(s, met, method, hash);
        met->first_line = first_line;
        met->word[0] = body;
        met->word[1] = code;
        is_new = is_name_due(s, hash);
    }
    u64 instruction = next ? (next - met->word[1]) / 8 : 0, is_outermost = (flags & FINISH) != 0;
    note_frame(s, met->word[0] | (is_outermost ? OUTERMOST : 0), instruction << 32 | (u32)met->first_line, met->hash);
    if (is_new) add_name();
    return 0;
}

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
    s->near[FRAMES_WINDOW] = s->near[VALUES_WINDOW] = 0;
    s->generators = 0;
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
        if (frame && f[INDIRECT_FRAME] != NONE) frame = read_word(frame + f[INDIRECT_FRAME]);
        s->script_frame = frame;
        bpf_loop(2 * SCRIPT_FRAMES, step_python, &walk, 0);
    }
    if (s->script_frame && s->script_n >= SCRIPT_FRAMES) s->script_flags |= SCRIPT_CUT;
    return s->script_words;
}
