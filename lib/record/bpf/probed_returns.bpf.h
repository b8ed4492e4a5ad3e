// Finds the return addresses of functions whose returns are probed (uretprobes), by us or by somebody else.
//
// The kernel writes the address of a trampoline over such a return address when the function is called. The addresses that were
// there are in a list of the thread, the innermost call first.

// No return that is left is probed.
#define NO_PLACE (~0ull)

static __always_inline void next_probed_return(struct scratch *s) {
    struct return_instance *instance = s->probed.next;
    s->probed.place = NO_PLACE;
    if (!instance) return;
    s->probed.place = BPF_CORE_READ(instance, stack);
    s->probed.address = BPF_CORE_READ(instance, orig_ret_vaddr);
    s->probed.next = BPF_CORE_READ(instance, next);
}

// Begins with the innermost call of the current thread.
static __always_inline void begin_probed_returns(struct scratch *s, struct task_struct *task) {
    s->probed.place = NO_PLACE;
    s->probed.next = 0;
    // A kernel may have no uprobes.
    if (!bpf_core_field_exists(task->utask)) return;
    struct uprobe_task *utask = task->utask;
    if (!utask) return;
    s->probed.next = BPF_CORE_READ(utask, return_instances);
    next_probed_return(s);
}

// Returns the address that was at a place in the stack; 0 if that was not replaced. Places must ascend from call to call.
__attribute__((noinline)) u64 find_probed_return(u64 place) {
    struct scratch *s = this_scratch();
    if (!s) return 0;
    for (int i = 0; i < 32 && s->probed.place < place; i++) next_probed_return(s);
    return s->probed.place == place ? s->probed.address : 0;
}

struct page_restoration { struct scratch *scratch; u64 page; };

static long restore_address(u32 turn, void *context) {
    struct page_restoration *restoration = context;
    struct scratch *s = restoration->scratch;
    u64 offset = s->probed.place - restoration->page;
    if (s->probed.place >= restoration->page + PAGE) return 1;
    if (offset < PAGE) s->page[offset / 8] = s->probed.address;
    next_probed_return(s);
    return 0;
}

// Writes the addresses that were in a page of the stack into the copy of the page.
__attribute__((noinline)) int restore_page(u64 page) {
    struct page_restoration restoration = {.scratch = this_scratch(), .page = page};
    if (!restoration.scratch) return 0;
    // Calls are 16 bytes apart at least, by which the stack is aligned.
    bpf_loop(PAGE / 16, restore_address, &restoration, 0);
    return 0;
}
