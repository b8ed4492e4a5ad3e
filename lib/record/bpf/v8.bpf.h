// Steps through frames of V8, and notes which JavaScript function each of them runs.
//
// Each frame has a frame pointer. Below it are the function's context, the function (`JSFunction`), and of a function that
// is not optimised the array of its bytecode and the offset in it; frames of other code have a number in place of the
// context. Pointers to objects have bit 0 set, numbers are in the upper halves of words.
//
// What a note says of the position is in 64 bits: the address of the code in the lower 48, or the offset in the bytecode;
// then the kind of the position in 2 bits, and a hash of the instructions in 14 bits.

// The fields of V8: offsets in objects, and types of objects.
enum {
    V8_SHARED,        // in a function: its description (`SharedFunctionInfo`)
    V8_SHARED_TYPE,
    V8_NAME,          // in a description: the name, or the `ScopeInfo`
    V8_SCRIPT,        // in a description
    V8_LITERAL,       // in a description: the number of the function in its script, in the upper half of a word
    V8_SCRIPT_TYPE,
    V8_SCOPE_TYPE,
    V8_SCOPE_LOCALS,  // in a `ScopeInfo`: where variables begin
    V8_BYTECODE_TYPE,
    V8_FIRST_NON_STRING,
};
// The size of the head of an object, and the places of a map's type, of a string's length and bytes, and of a script's name. All
// count from the object's address, not from the pointer with bit 0 set.
enum { V8_HEAD = 32, V8_TYPE = 12, V8_STRING_LENGTH = 12, V8_STRING_DATA = 16, V8_SCOPE_COUNT = 24, V8_SCRIPT_NAME = 16 };
// The number of variables from which on their names are not in the `ScopeInfo`, but in a table of it.
enum { V8_MAX_LOCALS = 75 };
// How strings are kept, in the lower bits of their type.
enum { V8_REPRESENTATION = 7, V8_SEQUENTIAL = 0, V8_CONS = 1, V8_THIN = 5, V8_ONE_BYTE = 8 };
// The kind of a position: unknown, an offset in the bytecode, a return address, an instruction pointer.
enum { V8_NO_POSITION, V8_BYTECODE, V8_RETURN, V8_EXACT };
// The words of a frame that are read, from the offset in the bytecode to the return address.
enum { V8_OFFSET, V8_BYTECODES, V8_COUNT, V8_FUNCTION, V8_CONTEXT, V8_SAVED_BP, V8_CALLER, V8_FRAME_WORDS };

#define V8_IS_OBJECT(word) (((word) & 3) == 1)
// The address for which the description of a function is met; for that of the function itself it is its type.
#define V8_MET(function) ((function) + 1)

// Returns the type of the objects with a map; NONE if it cannot be read.
static __always_inline u32 v8_map_type(struct scratch *s, u64 map) {
    struct met *met = find_met(s, map);
    u16 type = 0;
    if (is_met(s, met, map)) return met->hash;
    if (!V8_IS_OBJECT(map) || bpf_probe_read_user(&type, 2, (void *)(map - 1 + V8_TYPE))) return NONE;
    set_met(s, met, map, type);
    return type;
}

// Returns the type of an object; NONE if it is none.
static __always_inline u32 v8_type(struct scratch *s, u64 object) {
    struct met *met = find_met(s, object);
    u64 map = 0;
    if (is_met(s, met, object)) return met->hash;
    if (!V8_IS_OBJECT(object) || bpf_probe_read_user(&map, 8, (void *)(object - 1))) return NONE;
    u32 type = v8_map_type(s, map);
    set_met(s, met, object, type);
    return type;
}

// Reads an object. Returns its type; NONE if it is none. Notes the number of bytes that were read.
__attribute__((noinline)) u32 v8_read_object(u64 object) {
    struct scratch *s = this_scratch();
    if (!s || !V8_IS_OBJECT(object)) return NONE;
    s->v8_count = read_object(s, object - 1, V8_HEAD);
    return v8_map_type(s, s->page[OBJECT]);
}

// The length of the string that was read last.
#define V8_LENGTH(s) ((s)->page[OBJECT + 1] >> 32)

// Returns a hash of the string that was read last, whose type this is. The address of its bytes is 0 if they are not in one
// piece. Sets `is_wide` if characters have two bytes.
static __always_inline u64 v8_text(struct scratch *s, u64 object, u32 type, struct string *text, int *is_wide) {
    u32 representation = type & V8_REPRESENTATION;
    if (representation == V8_CONS || representation == V8_THIN) {
        // A string that was joined since has all its characters in the first part.
        u64 first = s->page[OBJECT + 2], second = s->page[OBJECT + 3];
        if (representation == V8_THIN || !(read_word(second - 1 + V8_STRING_LENGTH) & NONE)) {
            object = first;
            type = v8_read_object(object);
        }
    }
    *is_wide = !(type & V8_ONE_BYTE);
    text->length = *is_wide ? 2 * V8_LENGTH(s) : V8_LENGTH(s);
    text->start = 0;
    if ((type & V8_REPRESENTATION) != V8_SEQUENTIAL) return mix(0, text->length);
    text->start = object - 1 + V8_STRING_DATA;
    return hash_in_object(*text, object - 1, s->v8_count);
}

// Reads the name of a function: of its description, or the first string behind the variables of its `ScopeInfo`, which is the
// name or what the parser took for one. Returns its address; 0 if there is none.
static __always_inline u64 v8_name(struct scratch *s, u32 *f, u64 name, u32 *name_type) {
    u64 *slots = s->page + 128;
    u32 type = v8_read_object(name);
    *name_type = type;
    if (type != f[V8_SCOPE_TYPE]) return type < f[V8_FIRST_NON_STRING] ? name : 0;
    u64 locals = s->page[OBJECT + V8_SCOPE_COUNT / 8] >> 32;
    locals = locals < V8_MAX_LOCALS ? 2 * locals : locals + 1;
    if (bpf_probe_read_user(slots, 32, (void *)(name - 1 + f[V8_SCOPE_LOCALS] + 8 * locals))) return 0;
    for (u32 i = 0; i < 4; i++) {
        name = slots[i];
        type = v8_read_object(name);
        *name_type = type;
        if (type < f[V8_FIRST_NON_STRING] && V8_LENGTH(s)) return name;
    }
    return 0;
}

// Reads the strings and the hash of `noted`, and notes it if it is not. Returns 1 if its name is to be added.
__attribute__((noinline)) int v8_read(u32 process) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || !interpreter) return 0;
    u32 *f = interpreter->field;
    struct script_function *noted = &s->noted;
    struct v8_known *known = &s->known[(noted->code + 1) >> 4 & (V8_KNOWN - 1)];
    u32 type;
    int is_wide = 0, is_wide_file = 0;
    u64 name_hash = 0, file_hash = 0, function = s->v8_function;
    s->text_bits = 0;
    u64 name = v8_name(s, f, known->name, &type);
    if (name) name_hash = v8_text(s, name, type, &noted->name, &is_wide);
    if (v8_type(s, known->script) == f[V8_SCRIPT_TYPE]) {
        u64 file = read_word(known->script - 1 + V8_SCRIPT_NAME);
        type = v8_read_object(file);
        if (type < f[V8_FIRST_NON_STRING]) file_hash = v8_text(s, file, type, &noted->file, &is_wide_file);
        // Any byte tells a function of a script without a name from one of V8.
        if (!noted->file.length) noted->class = (struct string){.start = known->script - 1, .length = 1};
    } else if (!name) {
        // A function of V8 without a name is shown by its code.
        return 0;
    } else {
        known->literal = 0;
    }
    known->hash = mix(mix(mix(known->literal, 1), name_hash), file_hash);
    int is_flat = (noted->name.start || !noted->name.length) && (noted->file.start || !noted->file.length);
    known->can_send = is_flat && !(s->text_bits & 0x8080808080808080ull) && !is_wide && !is_wide_file;
    known->shared = noted->code + 1;
    struct met *met = find_met(s, V8_MET(function));
    set_met(s, met, V8_MET(function), known->hash);
    met->word[0] = noted->code;
    if (!s->v8_is_noted && !add_generated(s, noted, known->hash)) return 0;
    return known->can_send;
}

// Notes the function that the frame kept last runs, or if that is 0 what the position tells. Returns 1 if it is to be read:
// it is not known, and so not noted yet, or its name is to be added.
__attribute__((noinline)) int note_v8_function(u32 process) {
    struct scratch *s = this_scratch();
    if (!s) return 0;
    u64 function = s->v8_function, position = s->v8_position, is_object = V8_IS_OBJECT(function);
    struct met *met = find_met(s, V8_MET(function));
    if (is_object && is_met(s, met, V8_MET(function))) {
        note_generated(s, met->word[0], position, met->hash);
        return 0;
    }
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!interpreter) return 0;
    u32 *f = interpreter->field;
    struct script_function *noted = &s->noted;
    *noted = (struct script_function){.instruction = position >> 32, .first_line = position};
    s->v8_is_noted = 1;
    u64 *words = s->page + 224, now = bpf_ktime_get_ns();
    u64 shared = is_object ? read_word(function - 1 + f[V8_SHARED]) : 0;
    is_object = V8_IS_OBJECT(shared) && !bpf_probe_read_user(words, 64, (void *)(shared - 1));
    struct v8_known *known = &s->known[shared >> 4 & (V8_KNOWN - 1)];
    u64 map = words[0], name = words[f[V8_NAME] / 8 & 7], script = words[f[V8_SCRIPT] / 8 & 7];
    u32 literal = words[f[V8_LITERAL] / 8 & 7] >> 32;
    int is_known = known->shared == shared && known->map == map && known->name == name && known->script == script &&
                   known->number == literal && now - known->time < V8_KNOWN_TIME;
    if (!is_object || (!is_known && v8_map_type(s, map) != f[V8_SHARED_TYPE])) {
        // No function of a script: generated code tells what it is.
        if (!function || (position >> 48 & 3) == V8_EXACT) add_generated(s, noted, mix(position, 2));
        return 0;
    }
    noted->code = shared - 1;
    if (is_known) {
        set_met(s, met, V8_MET(function), known->hash);
        met->word[0] = noted->code;
        return add_generated(s, noted, known->hash);
    }
    known->shared = 0;
    known->map = map;
    known->name = name;
    known->script = script;
    known->number = known->literal = literal;
    known->time = now;
    s->v8_is_noted = 0;
    return 1;
}

// Returns a hash of the 16 bytes of code before an address, in 14 bits.
static __always_inline u64 v8_code_hash(struct scratch *s, u64 pc) {
    struct met *met = find_met(s, pc);
    u64 two[2] = {};
    if (!is_met(s, met, pc)) {
        bpf_probe_read_user(two, 16, (void *)(pc - 16));
        set_met(s, met, pc, mix(mix(0, two[0]), two[1]) & 0x3fff);
    }
    return met->hash;
}

// Has the function of the frame noted after the step.
static __always_inline void note_v8(struct scratch *s, u64 function, u64 position) {
    s->v8_function = function;
    s->v8_position = position;
    s->v8_is_pending = 1;
}

// Has the function noted that has just been called: it is in rdi.
static __always_inline void note_called_v8(struct scratch *s, u64 pc) {
    struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
    note_v8(s, s->walk.n == 1 ? regs->di : 0, pc | (u64)V8_EXACT << 48 | v8_code_hash(s, pc) << 50);
}

// Has the function noted whose frame is about to go, or has gone: it is still in the stack's memory. What was inlined has
// returned before. `frame` are the function, its context and the saved frame pointer.
static __always_inline void note_returning_v8(struct scratch *s, u64 pc, u64 *frame, u64 saved) {
    if (s->walk.n == 1 && frame[2] == saved && V8_IS_OBJECT(frame[1]) && V8_IS_OBJECT(frame[0])) note_v8(s, frame[0], 0);
    else note_v8(s, 0, pc | (u64)V8_EXACT << 48 | v8_code_hash(s, pc) << 50);
}

#define FRAME_START 0xe5894855u   // push rbp; mov rbp, rsp

// Returns 1 if the frame of generated code is made within 24 bytes from an address on. Before that, the code may ask whether it
// is to be thrown away. No other code is that near: there are at least 32 bytes between the instructions of two.
__attribute__((noinline)) int is_before_v8_frame(u64 pc) {
    u64 words[4] = {}, found = 0;
    if (bpf_probe_read_user(words, sizeof words, (void *)pc)) return 0;
#pragma unroll
    for (u32 k = 0; k < 24; k++) {
        u64 shift = 8 * (k % 8), low = words[k / 8] >> shift, high = shift ? words[k / 8 + 1] << (64 - shift) : 0;
        found |= (((low | high) & 0xffffffff) ^ FRAME_START) - 1;
    }
    return found >> 63;
}

// Steps through a frame of V8, and has its function noted.
__attribute__((noinline)) int step_v8(u32 process, u32 bytecode_type) {
    struct scratch *s = this_scratch();
    if (!s) return 1;
    struct walk *w = &s->walk;
    u64 pc = w->pc, sp = w->sp, bp = w->bp, exact = w->exact, is_generated = !w->end;
    u64 two[2], popped[3] = {}, position = 0, first = 0;
    if (exact) {
        if (bpf_probe_read_user(two, 16, (void *)(pc - 8))) return 1;
        u32 next = two[1] & 0xffffff, before = two[0] >> 56;
        first = next & 0xff;
        int is_start = before == PUSH_BP && (next == MOV_BP_SP || next == MOV_BP_SP_2);
        int is_returning = !is_start && (first == RETURN || first == RETURN_N);
        int is_called = is_start || first == PUSH_BP;
        if (is_generated && !is_called && !is_returning) is_called = is_before_v8_frame(pc);
        if (is_called || is_returning) {
            // The frame is not complete yet, or not any more.
            if (is_generated && is_returning) {
                bpf_probe_read_user(popped, sizeof popped, (void *)(sp - sizeof popped));
                note_returning_v8(s, pc, popped, bp);
            } else if (is_generated) {
                note_called_v8(s, pc);
            }
            if (bpf_probe_read_user(two, 16, (void *)sp)) return 1;
            w->pc = is_start ? two[1] : two[0];
            if (is_start) w->bp = two[0];
            w->sp = sp + (is_start ? 16 : 8);
            w->exact = 0;
            return 0;
        }
    }
    if (bp & 7 || bp < sp || bp - sp > 16 << 20) return 1;
    u64 place = read_near(s, FRAMES_WINDOW, bp - 8 * V8_SAVED_BP, 8 * V8_FRAME_WORDS, 1), *frame = &s->page[place];
    if (!place) return 1;
    u64 saved = frame[V8_SAVED_BP], caller = frame[V8_CALLER];
    if (is_generated && exact && bp - sp < 16) {
        if (first == POP_BP) note_returning_v8(s, pc, &frame[V8_FUNCTION], saved);
        else note_called_v8(s, pc);
    } else if (!(frame[V8_CONTEXT] & 1) || !V8_IS_OBJECT(frame[V8_FUNCTION]) || bp - sp < 16) {
        // Generated code tells what it is.
        if (is_generated) note_v8(s, 0, pc | (exact ? (u64)V8_EXACT : V8_RETURN) << 48 | v8_code_hash(s, pc) << 50);
    } else if (!is_generated && bp - sp >= 40 && !(frame[V8_OFFSET] << 32) && v8_type(s, frame[V8_BYTECODES]) == bytecode_type) {
        // Code that was entered in the middle of a loop (OSR) keeps the interpreter's frame, where these words are of that time.
        note_v8(s, frame[V8_FUNCTION], (frame[V8_OFFSET] >> 32) | (u64)V8_BYTECODE << 48);
    } else {
        u64 at = pc, kind = exact ? V8_EXACT : V8_RETURN;
        if (!is_generated) {
            // Code without a frame of its own was called by the function whose frame this is, if it was called by generated
            // code.
            at = exact ? read_word(sp) : 0;
            kind = is_generated_code(process, at) ? V8_RETURN : V8_NO_POSITION;
        }
        if (kind != V8_NO_POSITION) position = (at & ((1ull << 48) - 1)) | kind << 48 | v8_code_hash(s, at) << 50;
        note_v8(s, frame[V8_FUNCTION], position);
    }
    w->pc = caller;
    w->bp = saved;
    w->sp = bp + 16;
    w->exact = 0;
    return 0;
}
