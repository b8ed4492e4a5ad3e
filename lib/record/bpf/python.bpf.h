// Walks the frames of CPython.

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

// Steps to the next native frame, unless it begins behind the variables of the loop.
static long pass_native(u32 i, struct scratch **scratch) {
    struct scratch *s = *scratch;
    u64 next = s->native + 1, start = s->frame_at[next & (FRAMES - 1)];
    if (next >= s->native_count || start > s->loop_at) return 1;
    s->native = next;
    return 0;
}

// Returns the bits that tell which native frame has the variables of a loop, at `loop_at`. It is called for loops from the
// innermost one on.
static __always_inline u64 place_loop(struct scratch *s) {
    bpf_loop(FRAMES, pass_native, &s, 0);
    u64 native = s->native;
    if (native >= s->native_count || s->frame_at[native & (FRAMES - 1)] > s->loop_at) return NO_NATIVE;
    // Where the last frame ends is known at the root alone.
    int is_last = native + 1 == s->native_count && !s->walk.is_rooted;
    return native << 48 | (is_last ? FROM_NATIVE : 0);
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
        // It is a variable of its loop, of which the frame that was noted before is the outermost. If there is none, the loop is
        // about to end.
        u64 last = s->script_last;
        BOUND(last, RECORD - 1);
        s->loop_at = frame;
        if (n) s->record[HEAD + last] |= OUTERMOST | place_loop(s);
        else s->script_flags |= SCRIPT_ENTERING;
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
    u64 loop = owner_kind == LOOP_PER_FRAME ? OUTERMOST : 0;
    if (owner_kind == LOOP_BY_FLAG && owner) {
        loop = OUTERMOST | place_loop(s);
        s->loop_at = read_word(s->loop_at + f[LOOP_CALLER]);
    }
    note_frame(s, code | loop, instruction << 32 | (u32)met->first_line, met->hash);
    if (is_new) add_name();
    return 0;
}
