// Tells the state of an interrupted frame of HotSpot from the code around its instruction.
//
// A frame is not there yet at the start of a method, and gone at its end. Three facts tell its state. Compiled code keeps the
// stack pointer at a multiple of 16, calls have a return address below that: so the lower bits of the stack pointer tell whether
// a frame is there. The instructions that make and remove frames are known. And return addresses lead into the code cache,
// behind calls whose targets tell whom they have called. What these do not prove is no state: the stack is cut there.

#define CODE_BEFORE 64 // bytes of code that are read before an instruction, and as many from it on

// Reads the code around an instruction to `CODE_AT`. Returns 0 if it cannot.
static __always_inline int read_code(struct scratch *s, u64 pc) {
    return !bpf_probe_read_user(&s->page[CODE], 2 * CODE_BEFORE, (void *)(pc - CODE_BEFORE));
}

#define CODE_AT(s) ((u8 *)&(s)->page[CODE] + CODE_BEFORE)
#define THREE_BYTES(code, at) (*(u32 *)((code) + (at)) & 0xffffff)
// Without the bits that tell whether the offset in an operand has 8 or 32 bits.
#define WITHOUT_SIZE(three) ((three) & 0x3fffff)

#define LEAVE 0xc9
#define JUMP 0xe9
#define ENTER 0xec8b4855         // push rbp; mov rbp, rsp
#define COMPARE_SP 0x273b49      // cmp rsp, [r15 + N]: is the thread to stop?
#define LOAD_POLL 0x178b4d       // mov r10, [r15 + N]: up to JDK 13, test [r10], eax follows
#define TEST_POLL 0x028541
#define LOAD_POLL_PLACE 0x158d4c // lea r10, [rip + N]: mov [r15 + N], r10 and jmp follow, where the thread stops
#define STORE_POLL_PLACE 0x17894d
#define TOUCH_STACK 0x248489     // mov [rsp + N], eax: is the stack large enough?

static __always_inline int is_subtract_sp(u32 three) { return (three & 0xfffdff) == 0xec8148; }

// True if an address is in the code cache: a thread may return to it. The heaps are known by now, and exist from the start.
static __always_inline int is_generated_return(u32 process, u64 address) { return find_blob(process, address - 1) != 0; }

// Returns the address that is called right before a return address; 0 if the code does not tell.
__attribute__((noinline)) u64 find_call_target(u64 address) {
    u64 bytes[2];
    // call rel32; or mov r10, N and call r10
    if (bpf_probe_read_user(bytes, 16, (void *)(address - 16))) return 0;
    if ((bytes[1] >> 24 & 0xff) == 0xe8) return address + (s64)(int)(bytes[1] >> 32);
    if (bytes[1] >> 40 == 0xd2ff41 && (bytes[0] >> 24 & 0xffff) == 0xba49) return bytes[0] >> 40 | bytes[1] << 24;
    return 0;
}

// True if the return address at a place can be that of a call of `s->method`: the call does not lead to another method's code.
__attribute__((noinline)) int is_call_of_method(u32 process, u64 place) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || !interpreter) return 0;
    u64 address = read_word(place);
    if (!is_generated_return(process, address)) return 0;
    u64 target = find_call_target(address), blob = target ? find_blob(process, target) : 0;
    if (!blob || read_word(read_word(blob + interpreter->field[BLOB_NAME])) != NMETHOD) return 1;
    return read_word(blob + interpreter->field[BLOB_METHOD]) == s->method;
}

// True if the return address at a place is behind a call of code in a blob.
__attribute__((noinline)) int is_call_of_blob(u32 process, u64 place, u64 blob) {
    u64 target = find_call_target(read_word(place));
    return target && find_blob(process, target) == blob;
}

// Where the innermost frame of compiled code keeps its caller.
enum { IN_FRAME, AT_SP, ABOVE_SAVED_BP, IN_FRAME_WITHOUT_BP, IN_FRAME_BELOW_PUSHED };

// True for the instructions of methods at which a return address is at the stack pointer, other than before the frame is
// complete: behind pop rbp, in the code that stops the thread there, and at the second start of code that replaces a loop's.
static __always_inline int is_outside_frame(u8 *code) {
    u32 now = THREE_BYTES(code, 0), is_popped = code[-1] == POP_BP;
    u32 is_compared = (WITHOUT_SIZE(THREE_BYTES(code, -7)) == COMPARE_SP && code[-5] == 0xa7)
        || (WITHOUT_SIZE(THREE_BYTES(code, -4)) == COMPARE_SP && code[-2] == 0x67);
    if (code[0] == RETURN || code[0] == PUSH_BP || now == TOUCH_STACK) return 1;
    if (WITHOUT_SIZE(now) == COMPARE_SP || now == LOAD_POLL_PLACE) return 1;
    // ja, jbe
    if (is_compared && (((now & 0xfeff) == 0x860f) || (code[0] & 0xfe) == 0x76)) return 1;
    // test [rip + N], eax; mov r10, N
    if (is_popped && (WITHOUT_SIZE(now) == LOAD_POLL || (now & 0xffff) == 0x0585 || (now & 0xffff) == 0xba49)) return 1;
    // jmp; jmp rel8; jmp to a register or a word; pop rdx, and jmp rax behind it
    if (is_popped && (code[0] == JUMP || code[0] == 0xeb || code[0] == 0xff || (now & 0xffff) == 0xff41 || code[0] == 0x5a))
        return 1;
    if ((now & 0xffff) == 0xe0ff && code[-1] == 0x5a && code[-2] == POP_BP) return 1;
    if (now == TEST_POLL && (code[-8] == POP_BP || code[-5] == POP_BP || code[-11] == POP_BP)) return 1;
    if (WITHOUT_SIZE(now) == STORE_POLL_PLACE && THREE_BYTES(code, -7) == LOAD_POLL_PLACE) return 1;
    return code[0] == JUMP
        && ((WITHOUT_SIZE(THREE_BYTES(code, -7)) == STORE_POLL_PLACE && THREE_BYTES(code, -14) == LOAD_POLL_PLACE)
            || (WITHOUT_SIZE(THREE_BYTES(code, -4)) == STORE_POLL_PLACE && THREE_BYTES(code, -11) == LOAD_POLL_PLACE));
}

// Returns the state of the innermost frame, which is complete at the address `complete`; -1 if it is not known.
__attribute__((noinline)) int find_state(u64 complete) {
    struct scratch *s = this_scratch();
    if (!s) return -1;
    struct walk *w = &s->walk;
    u8 *code = CODE_AT(s);
    if (!read_code(s, w->pc) || w->sp & 7) return -1;
    u32 now = THREE_BYTES(code, 0);
    if (w->sp & 8) {
        if (w->pc < complete || is_outside_frame(code)) return AT_SP;
        // C2's code for comparing strings pushes a word, and pops it at its end.
        return IN_FRAME_BELOW_PUSHED;
    }
    int is_entered = code[-1] == MOV_BP_SP_2 >> 16 && code[-2] == (MOV_BP_SP_2 >> 8 & 0xff) && code[-4] == PUSH_BP;
    if (code[-1] == PUSH_BP && (is_subtract_sp(now) || now == MOV_BP_SP_2)) return ABOVE_SAVED_BP;
    if (is_entered && is_subtract_sp(now)) return ABOVE_SAVED_BP;
    if (code[0] == POP_BP) return ABOVE_SAVED_BP;
    // mov [rsp + N], rbp
    if (w->pc < complete && (now == 0x6c8948 || now == 0xac8948)) return IN_FRAME_WITHOUT_BP;
    return IN_FRAME;
}
