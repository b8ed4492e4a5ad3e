// Steps through code that a runtime generates (HotSpot, V8, PHP), and notes which function each frame runs.
//
// The frames of such functions are native frames, but no table of unwind information describes them. The runtime knows the
// size of a frame, or its code follows rules. PHP's have no such frames: its script frames are walked. A function is
// described as in interpreters.bpf.h; the first line is the kind of the frame instead. What is noted during the walk is
// behind the largest walked stack, and moved to its place when the record is sent.

// Adds the description of the frame that was kept last. Returns 1 if its name is to be added: its hash is new.
static __always_inline int add_generated(struct scratch *s, struct script_function *function, u64 hash) {
    u64 index = FRAMES + s->script_words, frame = s->walk.n - 1;
    BOUND(index, RECORD - 1);
    u64 *words = &s->record[HEAD + index];
    words[0] = (function->code & ((1ull << 48) - 1)) | frame << 48;
    words[1] = function->instruction << 32 | (u32)function->first_line;
    words[2] = hash;
    s->script_last = index;
    s->script_n++;
    s->script_words += FRAME_WORDS;
    return s->script_words < NAMED_WORDS && is_new_name(s, hash);
}

// Adds the name of the function that was added last, which is `noted`.
__attribute__((noinline)) int add_name(void) {
    struct scratch *s = this_scratch();
    if (!s) return 0;
    struct script_function *function = &s->noted;
    u64 index = FRAMES + s->script_words, last = s->script_last;
    BOUND(index, RECORD - 1);
    BOUND(last, RECORD - 1);
    u64 *words = &s->record[HEAD + index];
    words[0] = function->name.length << 32 | (u32)function->file.length;
    words[1] = function->class.length;
    read_string(words + 2, function->name, 0);
    read_string(words + 2 + STRING_WORDS, function->file, 0);
    read_string(words + 2 + 2 * STRING_WORDS, function->class, 0);
    s->record[HEAD + last] |= WITH_NAME;
    s->script_words += 2 + 3 * STRING_WORDS;
    return 0;
}

// True if an address is in code that the process made.
__attribute__((noinline)) int is_generated_code(u32 process, u64 address) {
    struct layout *p = find_layout(process);
    if (!p) return 0;
    struct mapping *mapping = find_mapping(p, address);
    int is_made = mapping->first - GENERATED <= GENERATED_SHARED - GENERATED;
    return is_made && address >= mapping->start && address < mapping->end;
}

#include "hotspot.bpf.h"
#include "php.bpf.h"
#include "v8.bpf.h"

// Steps to the caller of generated code. Returns 1 if it cannot.
__attribute__((noinline)) int step_generated(u32 process) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || !interpreter || s->script_words > OUT) return 1;
    if (interpreter->kind == HOTSPOT) return step_hotspot(s, interpreter, process);
    if (interpreter->kind == PHP) return step_compiled_php(process);
    if (interpreter->kind != V8) return 1;
    s->v8_is_pending = 0;
    int is_end = step_v8(s, interpreter, process);
    if (s->v8_is_pending && note_v8_function(process) && v8_read(process)) add_name();
    return is_end;
}

// True if a process runs a runtime that generates code.
static __always_inline int generates_code(u32 process) {
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    return interpreter && interpreter->kind >= HOTSPOT;
}
