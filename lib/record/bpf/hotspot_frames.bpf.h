// Steps from frames of HotSpot to their callers.

static __always_inline int step_by_bp(struct walk *w) {
    u64 frame[2];
    if (w->bp < w->sp || bpf_probe_read_user(frame, 16, (void *)w->bp)) return 1;
    w->sp = w->bp + 16;
    w->bp = frame[0];
    w->pc = frame[1];
    w->exact = 0;
    return 0;
}

// Steps to the caller of a frame that ends at `cfa`. The frame has rbp below the return address, if it has saved it.
static __always_inline int step_to(struct scratch *s, u64 cfa, int has_bp) {
    struct walk *w = &s->walk;
    u64 frame[2];
    if (read_two(s, cfa - 16, frame)) return 1;
    w->sp = cfa;
    if (has_bp) w->bp = frame[0];
    w->pc = frame[1];
    w->exact = 0;
    return 0;
}

// Notes that the frame that is kept last is of a method, or of what stands between methods: it was called as methods are.
static __always_inline void note_method_call(struct scratch *s) { s->method_frame = s->walk.n; }

// True if the frame that is stepped from was called by a method.
static __always_inline int is_called_method(struct scratch *s) {
    return !s->walk.exact && s->method_frame + 1 == s->walk.n;
}

// Goes on at a return address with the stack pointer of the caller, whose rbp is in its register.
static __always_inline int go_to_caller(struct scratch *s, u64 address, u64 sender) {
    struct walk *w = &s->walk;
    w->pc = address;
    w->sp = sender;
    w->exact = 0;
    note_method_call(s);
    return 0;
}

#define ADAPTER_CODE 512      // bytes of an adapter that are read before the instruction
#define POP_AX 0x58
#define PUSH_AX 0x50
#define AND_SP 0xe48348       // and rsp, -16
#define MOV_R13_SP 0xec8b4c
#define MOV_SP_AX 0x24048948  // mov [rsp], rax
#define POP_AX_MOV_R13_SP 0xec8b4c58   // up to JDK 17
#define LEA_R13_SP_POP_AX 0x5808246c   // from JDK 21 on: the end of lea r13, [rsp + 8], and pop rax

// True if the instruction is behind those by which an adapter sets r13 and pops the return address. `blob` is its own.
static __always_inline int is_address_popped(u8 *code, u64 pc, u64 blob) {
    u64 found = 0, own = pc - blob;
    for (u64 i = 4; i <= ADAPTER_CODE; i++) {
        u32 word = *(u32 *)(code - i);
        u64 differs = (u64)(word ^ POP_AX_MOV_R13_SP) * (word ^ LEA_R13_SP_POP_AX);
        HIDE(differs);
        // 1 if one of them is there, and in the blob.
        found |= ~((differs | -differs) >> 63) & 1 & (i - own) >> 63;
    }
    return found;
}

// Steps from an interrupted adapter between interpreted and compiled code, which has no frame.
//
// The code to which compiled methods call begins with the return address at the stack pointer, below a multiple of 16. At its
// end it puts the caller's stack pointer into r13, pops the address into rax, makes room for arguments, and stores or pushes the
// address. The code to which interpreted methods call pops the address, aligns the stack pointer, and pushes the address.
__attribute__((noinline)) int step_adapter(u32 process, u64 blob) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || !interpreter) return 1;
    struct walk *w = &s->walk;
    u64 sp = w->sp, pc = w->pc;
    if (bpf_probe_read_user(&s->page[CODE], ADAPTER_CODE + 8, (void *)(pc - ADAPTER_CODE))) return 1;
    u8 *code = (u8 *)&s->page[CODE] + ADAPTER_CODE;
    u32 now = THREE_BYTES(code, 0);
    int is_popped = is_address_popped(code, pc, blob);
    // True if the address is in rax.
    int is_moved = is_popped && (is_subtract_sp(now) || code[0] == PUSH_AX || *(u32 *)code == MOV_SP_AX);
    if (!is_popped && now == MOV_R13_SP) is_moved = code[-1] == POP_AX;
    if (!is_popped && now == AND_SP) is_moved = THREE_BYTES(code, -3) != MOV_R13_SP && THREE_BYTES(code, -7) != MOV_R13_SP;
    if (!is_popped && code[0] == PUSH_AX) is_moved = THREE_BYTES(code, -4) == AND_SP && THREE_BYTES(code, -7) != MOV_R13_SP;
    u64 address = is_moved ? w->ax : read_word(sp), sender = is_popped ? w->r13 : is_moved ? sp : sp + 8;
    if (!is_generated_return(process, address)) return 1;
    u64 name = read_word(read_word(find_blob(process, address - 1) + interpreter->field[BLOB_NAME]));
    // Interpreted frames are found by rbp.
    if (name != NMETHOD && name != NATIVE_NMETHOD) return go_to_caller(s, address, is_moved ? sp : sp + 8);
    if (sender & 15 || sender - sp > 4096) return 1;
    return go_to_caller(s, address, sender);
}

enum { IS_TOP = 0, IS_LEFT = 1, IS_UNKNOWN = 2 };

// Finds out whose frame is at rbp, while the interpreter runs: that of the method that is interpreted. Or there is none of a
// method that is being entered or left: then steps to its caller. `place` is that of the frame's lowest words in the page.
__attribute__((noinline)) int find_activation(u32 process, u64 place) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || !interpreter) return IS_UNKNOWN;
    struct walk *w = &s->walk;
    u32 *f = interpreter->field;
    u64 bp = w->bp, sp = w->sp, slot = f[BYTECODE_SLOT] & 15, is_frame = 0, sender, address;
    u64 lowest = bp - 8 * (slot + 1);
    if (place) {
        u64 bytecode = s->page[place & 511], last_sp = s->page[place + slot - 2 & 511];
        u64 constant = read_word(s->page[place + slot - 3 & 511] + f[CONST_METHOD]), start = constant + f[CONST_METHOD_SIZE];
        u64 size = read_u32(constant + f[BYTECODE_SIZE]) & 0xffff;
        is_frame = constant && (bytecode - start < size || (!size && !bytecode)) && sp <= lowest;
        if (is_frame && !last_sp) {
            // Its method calls no other.
            s->bytecode = w->exact && w->r13 - start < size ? w->r13 : bytecode;
            return IS_TOP;
        }
        if (is_frame && !w->exact) {
            // It is an offset in words from JDK 22 on.
            if ((s64)last_sp < 0) last_sp = bp + 8 * last_sp;
            s->bytecode = bytecode;
            return last_sp - sp <= 24 ? IS_TOP : IS_UNKNOWN;
        }
        s->bytecode = bytecode;
    }
    u8 *code = CODE_AT(s);
    if (!w->exact || !read_code(s, w->pc)) return IS_UNKNOWN;
    u32 now = *(u32 *)code;
    // A method has returned: mov rsp, [rbp - 16]; or mov rcx, [rbp - 16] and lea rsp, [rbp + 8 * rcx]; and mov [rbp - 16], 0
    if (is_frame && (now == 0xf0658b48 || now == 0xf04d8b48 || now == 0xcd648d48 || now == 0xf045c748)) return IS_TOP;
    // The frame is not complete.
    if (sp <= bp && sp > lowest) {
        sender = sp <= bp - 8 ? read_word(bp - 8) : w->r13;
        address = read_word(bp + 8);
        w->bp = read_word(bp);
    } else if (THREE_BYTES(code, 0) == 0x485d41 || (THREE_BYTES(code, 0) == 0x87c641 && THREE_BYTES(code, 8) == 0x485d41)) {
        // Behind leave: pop r13, mov rsp, rbx; from JDK 23 on behind mov byte [r15 + N], 0
        sender = w->bx;
        address = read_word(sp);
    } else if (find_blob(process, w->r13)) {
        sender = THREE_BYTES(code, 0) == 0xe38b48 ? w->bx : sp;
        address = w->r13;
    } else {
        sender = w->r13;
        address = read_word(code[-1] == PUSH_BP && THREE_BYTES(code, 0) == MOV_BP_SP_2 ? sp + 8 : sp);
        if (!is_generated_return(process, address)) address = w->ax;
    }
    if (sender < sp || sender - sp > MAX_INTERPRETED || sender & 7 || !is_generated_return(process, address)) return IS_UNKNOWN;
    go_to_caller(s, address, sender);
    return IS_LEFT;
}

// Steps from an interpreted frame to its caller. The frame has the saved rbp and the return address above it, below it the
// stack pointer of the caller, and the method two words further down. Has the method noted, or if the frame is being filled in,
// `blob`.
__attribute__((noinline)) int step_interpreted(u32 process, u64 blob) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || !interpreter) return 1;
    struct walk *w = &s->walk;
    u64 bp = w->bp, slot = interpreter->field[BYTECODE_SLOT] & 15;
    u64 place = read_near(s, FRAMES_WINDOW, bp - 8 * slot, 8 * (slot + 2), 1);
    struct script_function *noted = &s->noted;
    int is_checked = !s->is_unpacking && !is_called_method(s), activation = IS_TOP;
    s->bytecode = s->page[place & 511];
    if (is_checked) activation = find_activation(process, place);
    if (activation != IS_TOP) {
        *noted = (struct script_function){.code = blob, .first_line = STUB};
        add_generated(s, noted, mix(mix(0, blob), STUB));
        return activation == IS_UNKNOWN;
    }
    if (!place) return 1;
    u64 method = s->page[place + slot - 3 & 511], sender = s->page[place + slot - 1 & 511];
    u64 saved = s->page[place + slot & 511], pc = s->page[place + slot + 1 & 511];
    // A method handle's call (`linkTo…`) removes its last argument, so that the return address may be in that place.
    if (bp < w->sp || sender < bp + 8 || sender - bp > MAX_INTERPRETED) return 1;
    if (s->is_unpacking) {
        *noted = (struct script_function){.code = blob, .first_line = UNPACKED};
        add_generated(s, noted, mix(0, UNPACKED));
    } else {
        noted->code = s->method = method;
        noted->first_line = INTERPRETED;
        noted->instruction = s->bytecode;
        s->code_identity = 0;
    }
    w->bp = saved;
    return go_to_caller(s, pc, sender);
}

#define LEAVE_AND_TEST_POLL 0x47f641c9   // leave; testb [r15 + N]
#define POLL_AT_END 41   // bytes from leave to the end of ret

#define MAX_MOVED 64   // bytes by which C2's code for searching strings moves the stack pointer

// Returns the place of the return address of a method's frame, which is `place` if the stack pointer is the frame's, and `distance`
// above the stack pointer of the frame in any case. 0 if it is not known: an address of an earlier call may be elsewhere too. Of
// a frame that is not complete, `distance` is 0.
//
// C2's code for searching strings keeps the stack pointer in rcx, makes room for copies of short strings, pushes three registers and
// rcx, and pops the stack pointer at its end.
__attribute__((noinline)) u64 find_return(u32 process, u64 distance, u64 place) {
    struct scratch *s = this_scratch();
    if (!s) return 0;
    struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
    u64 sp = s->walk.sp, pushed = read_word(sp), kept = regs->cx, unmoved = is_call_of_method(process, place) ? place : 0;
    // A frame of two words has the saved rbp at the stack pointer.
    if (!s->walk.exact || !distance || (unmoved && distance == 8)) return unmoved;
    if (!(pushed & 15) && pushed - sp - 32 <= MAX_MOVED - 32 && is_call_of_method(process, pushed + distance))
        return unmoved ? 0 : pushed + distance;
    // Other code may have an address of its frame in rcx too: the place of a lock.
    if (kept & 15 || kept - sp - 8 > MAX_MOVED - 8 || kept + distance == place) return unmoved;
    if (!is_call_of_method(process, kept + distance)) return unmoved;
    return unmoved ? 0 : kept + distance;
}

// True for the instructions of a native method between leave and ret. From JDK 25 on it asks whether the thread is to stop:
// testb [r15 + N], 1 and je; mov r10, N, mov [r15 + N], r10 and jmp. Then it asks whether there is an exception: cmp qword
// [r15 + 8], 0 and jne.
static __always_inline int is_behind_leave(u8 *code) {
    u64 found = 0;
    for (u32 i = 1; i <= POLL_AT_END; i++) {
        u64 differs = *(u32 *)(code - i) ^ LEAVE_AND_TEST_POLL;
        HIDE(differs);
        found |= (differs - 1) >> 63;
    }
    return found || code[-1] == LEAVE || (code[-9] == LEAVE && THREE_BYTES(code, -8) == 0x7f8149);
}

// Steps from the frame of a method's code, of `size` words, to its caller.
__attribute__((noinline)) int step_compiled(u32 process, u64 size, u64 complete) {
    struct scratch *s = this_scratch();
    if (!s) return 1;
    struct walk *w = &s->walk;
    u64 cfa = w->sp + 8 * size, above = w->bp + 16 - cfa;
    int is_native = s->noted.first_line == NATIVE_METHOD, state = w->exact ? find_state(complete) : IN_FRAME;
    if (state < 0) return 1;
    if (is_native && w->exact && state != ABOVE_SAVED_BP) {
        // Its code keeps a frame pointer, and pushes words at times. Those of method handles have no frame.
        u8 *code = CODE_AT(s);
        // jmp behind ret
        int is_left = !size || code[0] == RETURN || (code[0] == JUMP && code[-1] == RETURN) || is_behind_leave(code);
        state = w->sp & 8 && (w->pc < complete || is_left) ? AT_SP : IN_FRAME;
        // Or the frame is gone, if there is a return address.
        if (w->sp & 8 && state == IN_FRAME && is_call_of_method(process, w->sp)) return 1;
    }
    if (is_native && state == IN_FRAME && !is_called_method(s)) {
        if (above > 256) return 1;
        cfa += above;
    }
    if (state == AT_SP) cfa = w->sp + 8;
    if (state == ABOVE_SAVED_BP) cfa = w->sp + 16;
    // Or the frame is gone, if there is a return address.
    if (state == IN_FRAME_BELOW_PUSHED && is_call_of_method(process, w->sp)) return 1;
    if (state == IN_FRAME_BELOW_PUSHED) cfa += 8;
    // What methods do not call may move the stack pointer before: barriers of garbage collectors save registers.
    if (!is_called_method(s)) {
        int is_complete = state == IN_FRAME || state == IN_FRAME_BELOW_PUSHED;
        u64 place = find_return(process, is_complete ? 8 * size - 8 : 0, cfa - 8);
        if (!place) return 1;
        cfa = place + 8;
    }
    if (step_to(s, cfa, state != AT_SP && state != IN_FRAME_WITHOUT_BP)) return 1;
    note_method_call(s);
    return 0;
}

// Steps to the caller of a stub that has a frame of `size` words and is interrupted.
__attribute__((noinline)) int step_interrupted_stub(u32 process, u64 size, u64 code_start, u64 complete) {
    struct scratch *s = this_scratch();
    if (!s) return 1;
    struct walk *w = &s->walk;
    u64 sp = w->sp, cfa = sp + 8 * size, above = w->bp - sp;
    u8 *code = CODE_AT(s);
    if (!read_code(s, w->pc) || sp & 7) return 1;
    int is_entered = (u32)read_word(code_start) == ENTER, is_pushed = code[-1] == PUSH_BP || code[0] == POP_BP;
    if (code[0] == LEAVE || w->bp + 16 == cfa) return step_by_bp(w);
    if (sp & 8 && is_generated_return(process, read_word(sp))) {
        int is_outside = code[0] == PUSH_BP || code[0] == RETURN || code[-1] == POP_BP || code[-1] == LEAVE;
        return is_outside || (!is_entered && w->pc < complete) ? step_to(s, sp + 8, 0) : 1;
    }
    if (is_pushed) return is_generated_return(process, read_word(sp + 8)) ? step_to(s, sp + 16, 1) : 1;
    // It is saving or restoring registers.
    if (is_entered) return above <= 8 * size && is_generated_return(process, read_word(w->bp + 8)) ? step_by_bp(w) : 1;
    return sp & 15 || !is_generated_return(process, read_word(cfa - 8)) ? 1 : step_to(s, cfa, 1);
}

// Steps from the interrupted stub that finds a method's handler of an exception to that method. It pushes rdx, which has the place
// in the method, and pops it before it jumps to the handler.
__attribute__((noinline)) int step_exception_stub(u32 process) {
    struct scratch *s = this_scratch();
    if (!s) return 1;
    struct walk *w = &s->walk;
    u64 sp = w->sp, sender = sp, address, popped = 0;
    u8 *code = CODE_AT(s);
    if (!read_code(s, w->pc) || sp & 7) return 1;
    for (u32 i = 1; i < 48; i++) {
        // pop rdx; mov r8, rax
        u64 differs = *(u32 *)(code - i) ^ 0xc08b4c5a;
        HIDE(differs);
        popped |= (differs - 1) >> 63;
    }
    int is_in_register = !(sp & 8) && (code[0] == 0x52 || popped);
    if (!is_in_register) sender += sp & 8 ? 8 : 16;
    address = is_in_register ? w->dx : read_word(sender - 8);
    return is_generated_return(process, address) ? go_to_caller(s, address, sender) : 1;
}

// Steps to the caller of a stub whose frame is not described. Most keep a frame pointer.
__attribute__((noinline)) int step_undescribed_stub(u32 process, u64 blob) {
    struct scratch *s = this_scratch();
    if (!s) return 1;
    struct walk *w = &s->walk;
    u64 sp = w->sp, bp = w->bp;
    u8 *code = CODE_AT(s);
    if (!read_code(s, w->pc)) return 1;
    if (w->exact) {
        int is_outside = code[0] == PUSH_BP || code[0] == RETURN || (code[-1] == LEAVE && (code[0] == JUMP || code[0] == 0xeb));
        if (is_outside) return is_call_of_blob(process, sp, blob) ? step_to(s, sp + 8, 0) : 1;
        if (code[-1] == PUSH_BP && THREE_BYTES(code, 0) == MOV_BP_SP_2)
            return is_call_of_blob(process, sp + 8, blob) ? step_to(s, sp + 16, 1) : 1;
    } else {
        // An exception leaves a method: the function that finds the handler has returned. mov rbx, rax; pop rdx
        u64 aligned = THREE_BYTES(code, 0) == 0xc48348 && code[3] == 8 ? 8 : 0;
        u64 to = !aligned ? 0 : code[4] == JUMP ? 9 : code[4] == 0xeb ? 6 : 4;
        BOUND(to, 15);
        if (*(u32 *)(code + to) == 0x5ad88b48) return go_to_caller(s, read_word(sp + aligned), sp + aligned + 8);
    }
    if (bp >= sp && bp - sp <= MAX_INTERPRETED && is_call_of_blob(process, bp + 8, blob)) return step_by_bp(w);
    return w->exact && is_call_of_blob(process, sp, blob) ? step_to(s, sp + 8, 0) : 1;
}

#define CALL_STUB_BEFORE 200   // bytes of the stub that calls methods from C++, before and behind the call
#define CALL_STUB_BEHIND 100

#define UNDESCRIBED 2

// Steps to the caller of a stub. `size` is that of its frame, if it has one. Returns UNDESCRIBED if only the code tells the caller:
// nested calls have little stack.
__attribute__((noinline)) int step_stub(u32 process, u64 blob, u64 name, s64 size) {
    struct scratch *s = this_scratch();
    struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
    if (!s || !interpreter || s->script_words > OUT) return 1;
    struct walk *w = &s->walk;
    u32 *f = interpreter->field;
    u64 pc = w->pc, is_offset = f[IS_CODE_OFFSET];
    u64 call_stub_return = read_word(interpreter->anchor + (s64)(int)f[CALL_STUB_RETURN]);
    // The instruction says whether the stub has called the frame before.
    struct script_function *function = &s->noted;
    int is_call_stub = !w->exact && pc == call_stub_return;
    *function = (struct script_function){.code = blob, .instruction = !w->exact};
    function->first_line = is_call_stub ? CALL_STUB : STUB;
    add_generated(s, function, mix(mix(0, blob), function->first_line));
    // What methods return to keeps a frame pointer.
    if (is_call_stub || (size <= 0 && is_called_method(s))) return step_by_bp(w);
    if (name == ADAPTERS || name == METHOD_HANDLES) return w->exact ? step_adapter(process, blob) : 1;
    if (name == VTABLE_CHUNKS)
        return is_generated_return(process, read_word(w->sp)) ? go_to_caller(s, read_word(w->sp), w->sp + 8) : 1;
    if (size > 0 && !w->exact) return step_to(s, w->sp + 8 * size, 1);
    if (size > 0) {
        // These move frames.
        if (s->is_unpacking) return 1;
        if (name == EXCEPTION) return step_exception_stub(process);
        u64 code = is_offset ? blob + BLOB_FIELD(u32, s, f[CODE_BEGIN]) : BLOB_FIELD(u64, s, f[CODE_BEGIN]);
        s64 complete = f[ARE_SHORT] & 2 ? BLOB_FIELD(short, s, f[FRAME_COMPLETE]) : BLOB_FIELD(int, s, f[FRAME_COMPLETE]);
        return step_interrupted_stub(process, size, code, code + complete);
    }
    if (w->exact && pc - call_stub_return + CALL_STUB_BEFORE < CALL_STUB_BEFORE + CALL_STUB_BEHIND && w->bp - w->sp < PAGE)
        return find_blob(process, read_word(w->bp + 8)) ? 1 : step_by_bp(w);
    return UNDESCRIBED;
}
