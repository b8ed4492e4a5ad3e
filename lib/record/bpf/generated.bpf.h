// Steps through code that a runtime generates (HotSpot, V8, PHP), and notes which function each frame runs.
//
// The frames of such functions are native frames, but no table of unwind information describes them. The runtime knows the
// size of a frame, or its code follows rules. PHP's have no such frames: its script frames are walked. A function is
// described as in interpreters.bpf.h; the first line is the kind of the frame instead. What is noted during the walk is
// behind the largest walked stack, and moved to its place when the record is sent.

// Notes what the frame that was kept last runs.
static __always_inline void note_generated(struct scratch *s, u64 code, u64 position, u64 hash) {
    u64 frame = s->walk.n - 1;
    note_frame(s, (code & ((1ull << 48) - 1)) | frame << 48, position, hash);
}

// Notes the function of the frame that was kept last. Returns 1 if its name is to be added.
static __always_inline int add_generated(struct scratch *s, struct script_function *function, u64 hash) {
    note_generated(s, function->code, function->instruction << 32 | (u32)function->first_line, hash);
    return is_name_due(s, hash);
}

// True if an address is in code that the process made.
__attribute__((noinline)) int is_generated_code(u32 process, u64 address) {
    struct layout *p = find_layout(process);
    if (!p) return 0;
    struct mapping *mapping = find_mapping(p, address);
    int is_made = mapping->first - GENERATED <= GENERATED_SHARED - GENERATED;
    return is_made && address >= mapping->start && address < mapping->end;
}

// Instructions at the start and the end of a function.
enum { PUSH_BP = 0x55, POP_BP = 0x5d, RETURN = 0xc3, RETURN_N = 0xc2, MOV_BP_SP = 0xe58948, MOV_BP_SP_2 = 0xec8b48 };

#include "hotspot.bpf.h"
#include "php.bpf.h"
#include "v8.bpf.h"

// Steps to the caller of generated code. Returns 1 if it cannot.
__attribute__((noinline)) int step_generated(u32 process) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || !interpreter || s->script_words > OUT) return 1;
    if (interpreter->kind == HOTSPOT) return step_hotspot(s, process);
    if (interpreter->kind == PHP) return step_compiled_php(process);
    if (interpreter->kind != V8) return 1;
    s->v8_is_pending = 0;
    int is_end = step_v8(process, interpreter->field[V8_BYTECODE_TYPE]);
    if (s->v8_is_pending && note_v8_function(process) && v8_read(process)) add_name();
    return is_end;
}

// True if a process runs a runtime that generates code.
static __always_inline int generates_code(u32 process) {
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    return interpreter && interpreter->kind >= HOTSPOT;
}
