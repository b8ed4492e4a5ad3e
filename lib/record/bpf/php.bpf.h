// Steps through functions that PHP has compiled while it runs (opcache.jit).
//
// The loop jumps to compiled code, and compiled code jumps back: it has no frame of its own, and runs in that of the loop.
// The stack pointer is that of the loop, or lower by what the code has pushed. The return address tells by how much.
//
// The code is in memory that processes share. Regular expressions are compiled, too, to private memory: their code has
// frames of its own.

// The distances from the loop's stack pointer (lib/perf/runtimes/php.rs).
static const volatile u16 pushed_sizes[] = {0, 8, 16, 24, 32, 256};

// Returns 1 if an address is in code of a file, behind an instruction that calls: E8, or FF with 2 in the middle of the next
// byte.
static __always_inline int is_return_address(struct layout *p, u64 address) {
    struct mapping *mapping = find_mapping(p, address);
    if (address < mapping->start || address >= mapping->end || mapping->first <= GENERATED_SHARED) return 0;
    u64 code = read_word(address - 8), is_call = (code >> 24 & 0xff) == 0xe8;
#pragma unroll
    for (u32 size = 2; size < 8; size++) is_call |= (code >> (64 - 8 * size) & 0x38ff) == 0x10ff;
    return is_call;
}

// Steps from compiled code to the caller of the loop.
__attribute__((noinline)) int step_compiled_php(u32 process) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    struct layout *p = find_layout(process);
    if (!s || !interpreter || !p) return 1;
    struct walk *w = &s->walk;
    struct mapping *mapping = find_mapping(p, w->pc - !w->exact);
    u64 size = interpreter->field[LOOP_FRAME_SIZE];
    s64 saved = (int)interpreter->field[LOOP_SAVED_BP];
    if (w->is_unmapped || mapping->first != GENERATED_SHARED || !size) return 1;
    for (u32 i = 0; i < sizeof pushed_sizes / sizeof *pushed_sizes; i++) {
        u64 cfa = w->sp + size + pushed_sizes[i], address = read_word(cfa - 8);
        if (!is_return_address(p, address)) continue;
        if (saved) w->bp = read_word(cfa + 8 * saved);
        w->pc = address;
        w->sp = cfa;
        w->exact = 0;
        return 0;
    }
    return 1;
}
