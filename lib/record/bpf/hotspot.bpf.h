// Steps through frames of HotSpot: of methods that are interpreted or compiled, and of stubs.
//
// The code cache consists of up to three heaps. A heap has a map with a byte for each segment: the distance in segments to
// the start of the block, 255 for a free segment. The description of a code blob follows the head of its block, and says
// how large the blob's frames are. Compiled code uses rbp for other things, and saves it above its frame.

// The fields: offsets in bytes, and what they contain.
enum {
    IS_ONE_HEAP,         // 1 if the anchor points to the only heap, 0 if to an array of heaps
    HEAP_COUNT, HEAPS,   // in the array
    HEAP_START, HEAP_END, SEGMENT_MAP, SEGMENT_SHIFT,   // in a heap
    BLOCK_HEAD,          // the size of a block's head
    BLOB_NAME, FRAME_WORDS_OF_BLOB, FRAME_COMPLETE,     // in a blob
    ARE_SHORT,           // bits: 1 if FRAME_WORDS_OF_BLOB has 16 bits, 2 if FRAME_COMPLETE has; else they have 32
    CODE_BEGIN,          // in a blob: the address of its code
    IS_CODE_OFFSET,      // 1 if CODE_BEGIN is an offset from the blob, 0 if it is an address
    BLOB_METHOD, COMPILE_ID, ORIGINAL_PC, DEOPT_HANDLER,   // in a blob: of compiled methods
    CALL_STUB_RETURN,    // the distance from the anchor to the variable with the address to which methods return to C++
    CONST_METHOD,        // in a method
    CONST_METHOD_SIZE, BYTECODE_SIZE, POOL, NAME_INDEX,    // of and in the constant part of a method
    POOL_SIZE, POOL_HOLDER,   // of and in a pool of constants
    KLASS_NAME, SYMBOL_LENGTH, SYMBOL_BODY,
    BYTECODE_SLOT,       // the distance in words from an interpreted frame down to the address of its bytecode
};
// The kinds of frames. One that is unpacked is being filled in: until then it contains what was on the stack before.
enum { INTERPRETED = 1, COMPILED = 2, NATIVE_METHOD = 3, STUB = 4, CALL_STUB = 5, UNPACKED = 6 };
// The first bytes of the names of blobs.
#define NMETHOD 0x00646f6874656d6eull         // "nmethod"
#define NATIVE_NMETHOD 0x6e2065766974616eull  // "native n"
#define INTERPRETER_BLOB 0x6572707265746e49ull   // "Interpre"
#define VTABLE_CHUNKS 0x6320656c62617476ull   // "vtable c"
#define DEOPTIMIZATION 0x696d6974706f6544ull   // "Deoptimi": replaces a compiled frame by interpreted ones
#define UNCOMMON_TRAP 0x6e6f6d6d6f636e55ull   // "Uncommon": likewise
#define EXCEPTION 0x6f69747065637845ull       // "Exceptio"
#define ADAPTERS 0x204932432f433249ull        // "I2C/C2I ": between interpreted and compiled code
#define METHOD_HANDLES 0x6148646f6874654dull  // "MethodHa": what is called in place of a method handle's method

#define HEAPS_MAX 3
#define BLOB 128         // the place of the blob's description in the page, in words
#define BLOB_SIZE 384
#define CODE 192         // the place of the innermost frame's code in the page, in words: 64 bytes before it, and 64 from it
#define BLOB_FIELD(type, s, offset) (*(type *)((char *)(s)->page + 8 * BLOB + ((offset) & 255)))
#define FAR_BLOB_FIELD(type, s, offset) (*(type *)((char *)(s)->page + 8 * BLOB + ((offset) & 511)))
#define MAX_INTERPRETED (64u << 10)   // bytes between an interpreted frame and the stack pointer of its caller

static __always_inline u32 read_u32(u64 at) {
    u32 number = 0;
    bpf_probe_read_user(&number, 4, (void *)at);
    return number;
}

// Functions that are not static are verified once, whoever calls them: together they are too much for older kernels.

// Reads the heaps of the code cache: of each its start, its size, its map, and the shift from bytes to segments.
__attribute__((noinline)) int read_heaps(u32 process) {
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!interpreter) return 1;
    u32 *f = interpreter->field;
    u64 heaps = read_word(interpreter->anchor), count = 1, only = heaps;
    if (!f[IS_ONE_HEAP]) {
        count = read_u32(heaps + f[HEAP_COUNT]);
        heaps = read_word(heaps + f[HEAPS]);
    }
#pragma unroll
    for (u32 k = 0; k < HEAPS_MAX; k++) {
        u64 heap = f[IS_ONE_HEAP] ? only : read_word(heaps + 8 * k), start = read_word(heap + f[HEAP_START]);
        if (k >= count) heap = start = 0;   // what is read there is 0
        u64 *cached = &interpreter->cached[4 * k];
        cached[2] = read_word(heap + f[SEGMENT_MAP]);
        cached[3] = read_u32(heap + f[SEGMENT_SHIFT]);
        cached[0] = start;
        cached[1] = heap ? read_word(heap + f[HEAP_END]) - start : 0;
    }
    return 0;
}

// Returns the address of the blob with an address of its code; 0 if there is none.
__attribute__((noinline)) u64 find_blob(u32 process, u64 at) {
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!interpreter) return 0;
    u64 *cached = interpreter->cached, start = 0, map = 0, shift = 0;
#pragma unroll
    for (u32 k = 0; k < HEAPS_MAX; k++) {
        // All ones if the address is in the heap. No branches.
        u64 distance = at - cached[4 * k], is_inside = -((~distance & (distance - cached[4 * k + 1])) >> 63);
        start |= is_inside & cached[4 * k];
        map |= is_inside & cached[4 * k + 2];
        shift |= is_inside & cached[4 * k + 3];
    }
    if (!map) return 0;
    shift &= 63;
    u64 segment = (at - start) >> shift;
    for (u32 i = 0; i < 32; i++) {
        u8 distance = 255;
        if (bpf_probe_read_user(&distance, 1, (void *)(map + segment)) || distance == 255) return 0;
        if (!distance) return start + (segment << shift) + interpreter->field[BLOCK_HEAD];
        segment -= distance;
    }
    return 0;
}

// Keeps clang from knowing anything of a value, by which it would make branches.
#define HIDE(x) asm volatile("" : "+r"(x))

#include "hotspot_code.bpf.h"
#include "hotspot_frames.bpf.h"

// Reads the text of a symbol, which has a length of 16 bits. Returns its hash.
static __always_inline u64 read_symbol(struct scratch *s, u32 *f, u64 symbol, struct string *text) {
    // The text begins at the second word of what is read, and the length is before it.
    u64 object = symbol + f[SYMBOL_BODY] - 8, at = f[SYMBOL_LENGTH] + 8 - f[SYMBOL_BODY], count = read_object(s, object, 8);
    text->start = object + 8;
    text->length = s->page[OBJECT] >> 8 * (at & 7) & 0xffff;
    return hash_in_object(*text, object, count);
}

// Notes the method of the frame that was stepped from: `method`, of which `noted` has the kind of the frame, what it is read from
// later, and the position.
__attribute__((noinline)) int note_method(u32 process) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || !interpreter) return 0;
    u32 *f = interpreter->field;
    struct script_function *noted = &s->noted;
    u64 method = s->method, called_at = s->called_at;
    // An interpreted frame is known by its method, compiled code by the address at which it was called; 0 if it is interrupted.
    u64 known_by = noted->first_line == INTERPRETED ? method : called_at;
    struct met *met = find_met(s, known_by);
    if (noted->first_line == INTERPRETED && is_met(s, met, method)) {
        note_generated(s, method, (noted->instruction - met->word[0]) << 32 | INTERPRETED, met->hash);
        return 0;
    }
    u64 constant = read_word(method + f[CONST_METHOD]), code = noted->code;
    if (!constant) return 0;
    read_object(s, constant, f[CONST_METHOD_SIZE]);
    u64 pool = OBJECT_FIELD(u64, s, f[POOL]), index = OBJECT_FIELD(u16, s, f[NAME_INDEX]);
    struct met *class = find_met(s, pool);
    if (!is_met(s, class, pool)) {
        u64 name = read_word(read_word(pool + f[POOL_HOLDER]) + f[KLASS_NAME]);
        u64 text_hash = read_symbol(s, f, name, &class->text);
        set_met(s, class, pool, text_hash);
    }
    noted->class = class->text;
    noted->file.length = 0;
    // Classes are unloaded, and others come to the same addresses: names belong to the identity.
    u64 class_hash = class->hash, hash = mix(mix(mix(mix(0, code), method), constant), s->code_identity);
    u64 name = read_word(pool + f[POOL_SIZE] + 8 * index) & ~1ull;
    hash = mix(mix(hash, read_symbol(s, f, name, &noted->name)), class_hash);
    if (noted->first_line == INTERPRETED) {
        u64 start = constant + f[CONST_METHOD_SIZE];
        noted->instruction -= start;
        met->word[0] = start;
    } else {
        met->word[0] = code;
        met->word[1] = s->frame_size;
    }
    set_met(s, met, known_by, hash);
    met->first_line = noted->first_line;
    met->line = noted->instruction;
    return add_generated(s, noted, hash);
}

// Steps through code that was not met in this stack, or that is interrupted. Has its method noted, if it is one.
__attribute__((noinline)) int step_code(u32 process) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || !interpreter) return 1;
    struct walk *w = &s->walk;
    u32 *f = interpreter->field;
    u64 pc = w->pc, at = pc - !w->exact;
    u64 blob = find_blob(process, at);
    if (!blob) {
        // The program does not know the heaps yet, or the address is in none.
        read_heaps(process);
        blob = find_blob(process, at);
        if (!blob) return 1;
    }
    if (bpf_probe_read_user(&s->page[BLOB], BLOB_SIZE, (void *)blob)) return 1;
    u64 name = read_word(BLOB_FIELD(u64, s, f[BLOB_NAME]));
    if (name == INTERPRETER_BLOB) {
        struct met *met = find_met(s, pc);
        set_met(s, met, pc, 0);
        met->first_line = INTERPRETED;
        met->word[0] = blob;
        return step_interpreted(process, blob);
    }
    // The frames that follow, up to one that is compiled.
    s->is_unpacking = name == DEOPTIMIZATION || name == UNCOMMON_TRAP;
    u64 are_short = f[ARE_SHORT];
    s64 size = are_short & 1 ? BLOB_FIELD(short, s, f[FRAME_WORDS_OF_BLOB]) : BLOB_FIELD(int, s, f[FRAME_WORDS_OF_BLOB]);
    if (name != NMETHOD && name != NATIVE_NMETHOD) {
        int is_end = step_stub(process, blob, name, size);
        return is_end == UNDESCRIBED ? step_undescribed_stub(process, blob) : is_end;
    }
    s64 complete = are_short & 2 ? BLOB_FIELD(short, s, f[FRAME_COMPLETE]) : BLOB_FIELD(int, s, f[FRAME_COMPLETE]);
    u64 is_offset = f[IS_CODE_OFFSET];
    u64 code = is_offset ? blob + BLOB_FIELD(u32, s, f[CODE_BEGIN]) : BLOB_FIELD(u64, s, f[CODE_BEGIN]);
    u64 handler = is_offset ? blob + BLOB_FIELD(u32, s, f[DEOPT_HANDLER]) : BLOB_FIELD(u64, s, f[DEOPT_HANDLER]);
    u64 running = pc;
    s->called_at = w->exact || pc == handler ? 0 : pc;
    // The return address was replaced: the frame is to be interpreted once it is returned to.
    if (pc == handler && !w->exact) running = read_word(w->sp + FAR_BLOB_FIELD(u32, s, f[ORIGINAL_PC]));
    s->method = BLOB_FIELD(u64, s, f[BLOB_METHOD]);
    s->code_identity = FAR_BLOB_FIELD(u32, s, f[COMPILE_ID]);
    s->frame_size = size;
    s->noted.code = blob;
    s->noted.first_line = name == NMETHOD ? COMPILED : NATIVE_METHOD;
    // Before its frame is complete, it runs nothing that was inlined.
    s->noted.instruction = w->exact && pc < code + complete ? -1 : running - code;
    return step_compiled(process, size, code + complete);
}

// Steps through a frame of HotSpot. What is known of code that was called: its kind and its blob, of that of methods also the
// position and the size of the frame.
static __always_inline int step_hotspot(struct scratch *s, u32 process) {
    struct walk *w = &s->walk;
    struct met *met = find_met(s, w->pc);
    s->method = 0;
    int is_known = is_called_method(s) && is_met(s, met, w->pc), is_end;
    if (is_known && met->first_line != INTERPRETED) {
        s->is_unpacking = 0;
        note_generated(s, met->word[0], met->line << 32 | (u32)met->first_line, met->hash);
        if (step_to(s, w->sp + 8 * met->word[1], 1)) return 1;
        note_method_call(s);
        return 0;
    }
    is_end = is_known ? step_interpreted(process, met->word[0]) : step_code(process);
    if (s->method && note_method(process)) add_name();
    return is_end;
}
