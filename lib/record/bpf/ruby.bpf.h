// Walks the frames of Ruby.

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
