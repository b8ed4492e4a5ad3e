// Reads what describes script functions.
//
// A read of user memory costs as much as all else that is done for a frame. So functions, and the texts that they share, are read
// once in a stack; frames that are near each other, and the head and the bytes of a text, are read at once.

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
#define NOTHING (1ull << 63)   // the address of an empty window: no address of user space
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
            s->near[window] = NOTHING;
            from = 0;
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
    u64 offset = text.start - object, is_read = text.length <= OBJECT_SIZE && offset + text.length <= count && !(offset & 7);
    return hash_text(text.start, text.length, is_read ? OBJECT + offset / 8 : 0);
}
