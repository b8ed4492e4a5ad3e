// Walks the frames of PHP. Code that PHP has compiled is in php.bpf.h.

// In PHP: the type of a function in C, flags of frames that are the outermost of a loop and of generators, the size of an
// instruction, and a flag of generators that a loop runs.
enum { INTERNAL_FUNCTION = 1, CALL_TOP = 0x20000, CALL_GENERATOR = 0x1000000, OPCODE = 32, GENERATOR_RUNS = 1 };
// The places of the frame, of the generator to which it delegates, and of its placeholder among the frames, in a generator.
enum { GENERATOR_FRAME = 56, GENERATOR_PARENT = 152, GENERATOR_PLACEHOLDER = 184 };

// Keeps the generators that delegate to the one whose frame was noted last, from the outermost one on. Returns their number; NONE
// if they cannot be read, do not lead to it, or are too many, which is noted.
__attribute__((noinline)) u32 keep_generators(u64 generator) {
    struct scratch *s = this_scratch();
    if (!s) return NONE;
    u64 innermost = s->script_generator;
    for (u32 n = 0; n < GENERATORS; n++) {
        u64 parent = 0, frame = 0;
        // The innermost one may be about to delegate, too: then it has a parent, which does not run yet.
        if (generator != innermost && bpf_probe_read_user(&parent, 8, (void *)(generator + GENERATOR_PARENT))) return NONE;
        if (!parent) {
            // One that ends has no frame. What runs meanwhile are destructors.
            if (innermost && generator != innermost &&
                (bpf_probe_read_user(&frame, 8, (void *)(generator + GENERATOR_FRAME)) || frame)) return NONE;
            return n ? n : NONE;
        }
        s->generators[n] = generator;
        generator = parent;
    }
    s->script_flags |= SCRIPT_DEEP;
    return NONE;
}

// Returns 1 if a loop runs the generator with this frame. Before and after that, the frame may have the caller of the time
// before, or none. `place` is that of the flags in a generator, 0 if it is not known.
__attribute__((noinline)) int is_running(u64 generator, u64 frame, u32 place) {
    u64 own = 0;
    unsigned char flags = 0;
    if (!place || bpf_probe_read_user(&own, 8, (void *)(generator + GENERATOR_FRAME))) return 0;
    if (bpf_probe_read_user(&flags, 1, (void *)(generator + place))) return 0;
    // One that ends has no frame.
    return (own == frame || !own) && flags & GENERATOR_RUNS;
}

// Returns 1 if a generator's frame has the caller that it gets from the function that resumes it, which is interrupted. That keeps
// the generator which is resumed and the frame that resumes it in registers. `registers` has their places, from 1 on.
__attribute__((noinline)) int is_resumed(u64 generator, u64 caller, u64 resume, u32 size, u32 registers) {
    struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
    u64 resumed = 0, by = 0;
    if (!registers || regs->ip - resume >= size) return 0;
    bpf_probe_read_kernel(&resumed, 8, (u64 *)regs + ((registers & 15) - 1));
    bpf_probe_read_kernel(&by, 8, (u64 *)regs + ((registers >> 4 & 15) - 1));
    if (resumed == generator) return caller == by;
    return caller == resumed + GENERATOR_PLACEHOLDER && read_word(caller + 48) == by;
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
    u64 frame = s->script_frame, n = s->script_n, generators = s->generator_count;
    if (generators) {
        u64 last = generators - 1;
        BOUND(last, GENERATORS - 1);
        frame = read_word(s->generators[last] + GENERATOR_FRAME);
        if (!frame) return cut_script(s);
    }
    if (!frame) return 1;
    u64 place = n >= SCRIPT_FRAMES ? 0 : read_near(s, FRAMES_WINDOW, frame, 56, 0);
    if (!place) return cut_script(s);
    u64 instruction = s->page[place], callee = s->page[place + 3], caller = s->page[place + 6];
    u32 flags = s->page[place + 5];
    u64 generator = flags & CALL_GENERATOR ? s->page[place + 2] : 0;
    if (generators) s->generator_count = generators - 1;
    else s->script_frame = caller;
    if (!callee) {
        // A placeholder for the generators that delegate to the one before. It is part of the outermost of them.
        u64 outermost = s->page[place + 4];
        if (generators || !caller || frame != outermost + GENERATOR_PLACEHOLDER) return cut_script(s);
        u32 count = keep_generators(outermost);
        if (count == NONE) return cut_script(s);
        s->generator_count = count;
        // The loop runs the generator before for all of them.
        u64 last = s->script_last;
        BOUND(last, RECORD - 1);
        if (n) s->record[HEAD + last] &= ~OUTERMOST;
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
    s->script_generator = generator;
    // A generator is called by another frame, which it has while a loop runs it.
    if (generators || !generator) return 0;
    if (!caller) return cut_script(s);
    if (n || is_running(generator, frame, f[GENERATOR_FLAGS])) return 0;
    u64 resume = walk->interpreter->anchor + (s64)(int)f[RESUME];
    return is_resumed(generator, caller, resume, f[RESUME_SIZE], f[RESUME_REGISTERS]) ? 0 : cut_script(s);
}
