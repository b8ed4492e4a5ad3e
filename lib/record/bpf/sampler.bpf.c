// Takes the user stack of a sample, in the context of the interrupted thread, where the stack cannot change.
// scripts/build-bpf compiles this to sampler.bpf.o.
//
// The program runs in the overflow handler of a counter or at a tracepoint, before the kernel writes its own sample. It
// keeps samples of other processes out, and writes a record with the user stack into the same ring. The stack is either
//
// - walked: the return addresses, found with the rows that the recorder makes from .eh_frame and the tables of Go
//   programs (`step`), or
// - sparse: those words of the stack's memory that may be return addresses or pointers into the stack (`scan_page`).
//   The recorder unwinds it with the complete unwind information. This covers all that has no row.
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;

// The fields of kernel structures that are used. Their offsets are relocated when the program is loaded (CO-RE).
#define KERNEL __attribute__((preserve_access_index))
struct mm_struct { u64 exec_vm, start_stack, start_code; } KERNEL;
struct vm_area_struct { u64 vm_end; } KERNEL;
struct thread_struct { u64 fsbase; } KERNEL;
struct sched_entity { u64 sum_exec_runtime; } KERNEL;
struct signal_struct { u32 flags; u64 sum_sched_runtime; } KERNEL;
struct return_instance { u64 stack, orig_ret_vaddr; struct return_instance *next; } KERNEL;
struct uprobe_task { struct return_instance *return_instances; u64 vaddr, xol_vaddr; } KERNEL;
struct task_struct {
    int pid, tgid, on_cpu;
    u32 flags, __state;
    u64 start_time, self_exec_id, nvcsw, nivcsw;
    struct mm_struct *mm;
    struct task_struct *group_leader;
    struct signal_struct *signal;
    struct sched_entity se;
    u64 sas_ss_sp, sas_ss_size;
    struct thread_struct thread;
    struct uprobe_task *utask;
} KERNEL;
struct pt_regs___kernel { u64 r15, r14, r13, bp, bx, r11, ax, cx, dx, di, ip, cs, flags, sp; } KERNEL;

enum { PF_KTHREAD = 0x00200000, USER64_CS = 0x33, PAGE = 4096, SYSCALL = 0x050f };
enum { EVERYBODY, PROCESSES, THREADS };   // scope: whose samples are taken
enum { HELD, WANTED };                    // a target: before and after it runs its program

const volatile u64 scope;
// The largest part of a stack that is scanned, in bytes.
const volatile u64 max_scan = 1 << 20;

#define OUT 16384u     // words of a stack
#define RECORD 32768u  // words of a stack and of script frames
#define CONTEXT_ROOM 192  // words behind these that are written at once
#define PART 7400u     // words of a record: perf records have at most 65535 bytes
#define MAPPINGS 256u  // executable mappings of a process
#define FRAMES 4096u   // frames of a walk
#define WINDOW 512     // bytes that a walk reads at once
#define UNKNOWN_SCAN (64u << 10)   // bytes of a stack that are scanned if its end is not known: what the kernel copies
#define KERNEL_FRAMES 127  // of the kernel stack of an event
#define CHUNK 1024u    // numbers of a table that an entry begins with
#define OVERLAP 256u   // numbers of the next entry that it ends with: a block has no more rows
#define TABLE_PART (1u << 18)   // numbers in a part of a table

// What a record says of a stack.
enum {
    ROOTED = 1,      // the walk reached the root: return addresses follow, innermost first, else words of the stack
    NO_STACK = 2,    // within execve: the old program's stack is gone, the new one has not started
    UNREADABLE = 4,  // a page of the stack was not in memory
    FULL = 8,        // more words than fit
    LIMIT = 16,      // the stack is larger than max_scan
    SECOND = 32,     // the thread is on its alternate signal stack
    SCRIPT_CUT = 64,        // the outermost script frames are missing
    SCRIPT_ENTERING = 128,  // the innermost interpreter loop has no script frame
    WALK_CUT = 256,         // the walk met generated code that is known, and ended before the root
    CONTEXT_UNKNOWN = 512,  // the thread may have a context (thread_context.bpf.h) that was not read
    TASK_UNKNOWN = 1024,    // the thread may run a task (tasks.bpf.h) that was not read
    UNKNOWN_PROCESS = 2048, // the recorder has not published the process
    OUTDATED = 4096,        // the mappings have changed since `published`: nothing was walked
    SCRIPT_DEEP = 8192,     // if script frames are missing, there are more than fit
};

struct target { u64 task; u64 state; };
// Targets that are gone: their CPU time in nanoseconds, and their number; and how often threads of targets that have ended went
// to sleep.
struct ended { u64 time, count, sleeps; };
// A mapping with code. `first` is the place of `start` in the tables: its block, and its byte in the block; 0 if the
// code has no rows, GENERATED if the process made it, GENERATED_SHARED if it did in memory that processes may share.
#define GENERATED 1
#define GENERATED_SHARED 2
struct mapping { u64 start, end, first; };
// Where the code of processes is: complete up to the time `published`. `exec_pages` is compared with the kernel's own sum to
// notice that something was mapped or unmapped since. `code` has a bit for each 64 KiB that contain code, modulo 2 GiB. A
// layout is never changed: a process gets another one.
struct layout { u64 published, exec_pages; struct mapping mapping[MAPPINGS]; u64 code[512]; };
// The number of the layout of processes that the recorder did not publish: code may be anywhere.
#define UNKNOWN_LAYOUT 0u
// The head of each part of a record. `second` is the start of the second stack, whose words begin at `second_word`;
// `scanned` the number of bytes from `sp` on that were scanned, and `words` the number of words in this part. `rowless` is
// the code without rows at which the walk ended, if it ended there, and `probed` the place of the instruction of which the thread
// executes a copy, if it does. The last `task_words` of all words are the name of the
// thread's task, the `context_words` before them are its context, and the `script_words` before those are script frames.
struct head {
    u64 ip, sp, published, second, rowless, probed;
    u32 flags, second_word, scanned, words;
    u16 part, parts, script_words, context_words, task_words, unused[3];
};
// Stands for the rest of a page that was not in memory.
#define HOLE 1
// Stands for a word that is 0.
#define ZERO 3
// In a walked stack: an instruction pointer, not a return address.
#define EXACT (1ull << 63)
#define HEAD (sizeof(struct head) / 8)

// The state of a walk or a scan is in a map: in registers or on the BPF stack the verifier would follow every value
// through every frame.
struct walk { u64 pc, sp, bp, n, exact, is_rooted, is_unmapped, rowless, start, end, first, window, process, r13, ax, bx, dx; };
struct scan { u64 low, span, end, other_low, other_high, other; u32 layout; };
// The next return that is probed (probed_returns.bpf.h): the place of its address in the stack, and that address.
struct probed_return { u64 place, address; struct return_instance *next; };
// A function of V8 that was met, and for how long its name is taken to be the same.
struct v8_known { u64 shared, map, name, script, time, hash; u32 number, literal, can_send; };
#define V8_KNOWN 512
#define V8_KNOWN_TIME (50ull * 1000 * 1000)
// The bytes of a string.
struct string { u64 start, length; };
// What is known of a script frame.
struct script_function { u64 code, instruction, first_line; struct string name, file, class; };
// What a runtime has at an address, and was met in the stack with this number: a function, a text or a class.
struct met { u64 address, stack, hash, first_line, line, word[3]; struct string text; };
#define MET 1024
#define GENERATORS 256u   // generators that delegate to each other

struct scratch {
    u64 page[512];
    struct walk walk;
    struct scan scan;
    struct probed_return probed;
    volatile u64 n, index, last, after_pointer, low, span, first, next, flags, holes;
    volatile u64 is_locked, is_nested, lost_records;
    volatile u64 script_frame, script_n, script_base, script_words, script_last, script_flags, script_end;
    volatile u64 native_count, native, loop_at; // the native frames that were walked, the one that was reached while script frames
                                 // are walked, and the place of the variables of a loop of the interpreter
    u64 frame_at[FRAMES];        // where the native frames begin
    volatile u64 generator_count;
    volatile u64 script_generator; // that of the frame of PHP that was noted last, 0 if it has none
    u64 generators[GENERATORS];  // of PHP that delegate to others and were not stepped to yet, from the outermost on
    volatile u64 v8_function, v8_position, v8_is_pending, v8_is_noted, v8_count;
    volatile u64 text_bits;      // those of the texts that were hashed, in one word
    volatile u64 is_unpacking;   // HotSpot makes interpreted frames of a compiled one
    volatile u64 method_frame, bytecode; // of HotSpot: the last frame, from 1 on, that was called as methods are; and the position
                                 // in an interpreted method
    volatile u64 method, code_identity; // of HotSpot's frame that was stepped from: the method that is to be noted, 0 if there is
                                 // none, and what tells its code from other code that was at the address
    volatile u64 called_at, frame_size; // where its code was called, 0 if it is interrupted, and the size of the frame in words
    struct script_function noted; // the function of the frame that was kept last
    struct v8_known known[V8_KNOWN];
    u64 stack;                   // the number of the stack that is taken
    u64 near[2];                 // the addresses of what is in windows of the page
    struct met met[MET];
    volatile u64 kernel_frames, event_kind, event_subject, event_nanoseconds;
    u64 kernel[KERNEL_FRAMES + 1]; // the kernel stack of an event
    u64 record[HEAD + RECORD + CONTEXT_ROOM];
};

#define MAP(name, kind, entries, mapflags, of, to) \
    struct { \
        __uint(type, kind); \
        __uint(max_entries, entries); \
        __uint(map_flags, mapflags); \
        __type(key, of); \
        __type(value, to); \
    } name SEC(".maps")

MAP(targets, BPF_MAP_TYPE_HASH, 65536, BPF_F_NO_PREALLOC, u32, struct target);
MAP(ended_targets, BPF_MAP_TYPE_ARRAY, 1, 0, u32, struct ended);
// The number of the layout of each process. A new process has that of its parent.
MAP(processes, BPF_MAP_TYPE_HASH, 16384, BPF_F_NO_PREALLOC, u32, u32);
MAP(layouts, BPF_MAP_TYPE_HASH, 16384, BPF_F_NO_PREALLOC, u32, struct layout);
// A table of numbers in parts: the kernel allocates all entries of an array at once, and most programs need one part. Its
// type and that of its entries have no name: the compiler would describe named structs by their names alone.
#define TABLE(name, numbers) \
    struct { \
        __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); \
        __uint(max_entries, (numbers) / TABLE_PART); \
        __type(key, u32); \
        __array(values, struct { \
            __uint(type, BPF_MAP_TYPE_ARRAY); \
            __uint(max_entries, TABLE_PART / CHUNK); \
            __uint(map_flags, BPF_F_MMAPABLE); \
            __type(key, u32); \
            __type(value, u32[CHUNK + OVERLAP]); \
        }); \
    } name SEC(".maps")

// The rows of a block of 256 bytes of code begin at blocks[i] and end before blocks[i + 1]. A row has the byte in its
// block from which it holds in 8 bits, and the number of its rule in 24.
TABLE(blocks, 1 << 21);
TABLE(rows, 1 << 23);
// A rule has the kind of its CFA in bits 48 to 55, the CFA's offset in bits 16 to 47, and the place of the saved rbp, in
// words from the CFA, in bits 0 to 15 (0: rbp is not saved).
MAP(rules, BPF_MAP_TYPE_ARRAY, 1 << 16, BPF_F_MMAPABLE, u32, u64);
// The number of entries is set when the program is loaded: one for each CPU, and another one where programs interrupt each other.
MAP(scratches, BPF_MAP_TYPE_ARRAY, 1, 0, u32, struct scratch);
#define OUTPUTS(name) \
    struct { \
        __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); \
        __uint(max_entries, 1); \
        __uint(key_size, 4); \
        __uint(value_size, 4); \
    } name SEC(".maps")
OUTPUTS(outputs);
// Writes into the same rings, and wakes the recorder.
OUTPUTS(waking_outputs);

// A bound that clang cannot drop as redundant, nor move: the verifiers of Linux 6.1 to 6.8 forget what they knew.
#define BOUND(x, mask) asm volatile("%0 &= %1" : "+r"(x) : "i"(mask))

static __always_inline int is_wanted(u32 process, u32 thread) {
    u32 id = scope == THREADS ? thread : process;
    if (scope == EVERYBODY) return 1;
    struct target *target = bpf_map_lookup_elem(&targets, &id);
    return target && target->state == WANTED;
}

// The number of CPUs.
const volatile u64 cpus;

static __always_inline struct scratch *first_scratch(void) {
    u32 cpu = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&scratches, &cpu);
}

// Returns the memory of the program that runs on this CPU.
static __always_inline struct scratch *this_scratch(void) {
    u32 cpu = bpf_get_smp_processor_id();
    struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
    if (!s || !s->is_nested) return s;
    cpu += cpus;
    return bpf_map_lookup_elem(&scratches, &cpu);
}

// Takes the memory for a program. Returns 0 if others have it. A program at a function of user space may be interrupted by a
// sample, which gets memory of its own: it is over before the other one goes on. It may also be preempted. Another one of its
// kind, whose end is not known, gets no memory meanwhile. A function of its own keeps its variables out of the combined stack.
__attribute__((noinline)) int take_scratch(int is_preemptible) {
    struct scratch *s = first_scratch();
    if (!s) return 0;
    if (!__sync_val_compare_and_swap(&s->is_locked, 0, 1)) return 1;
    if (is_preemptible || s->is_nested) return 0;
    s->is_nested = 1;
    if (this_scratch()) return 1;
    s->is_nested = 0;
    return 0;
}

static __always_inline struct scratch *lock_scratch(int is_preemptible) {
    return take_scratch(is_preemptible) ? this_scratch() : 0;
}

__attribute__((noinline)) int unlock_scratch(u32 unused) {
    asm volatile("" ::"r"(unused));
    struct scratch *s = first_scratch();
    if (!s) return 0;
    if (s->is_nested) s->is_nested = 0;
    else s->is_locked = 0;
    return 0;
}

static __always_inline u64 read_word(u64 at) {
    u64 word = 0;
    bpf_probe_read_user(&word, 8, (void *)at);
    return word;
}

// Returns the layout of a process, or 0 if the recorder does not know the process. A number that is returned through a pointer
// would be on the stack, of which nested calls have 512 bytes in Linux 6.1: `take_user_stack` looks it up itself.
static __always_inline struct layout *find_layout(u32 process) {
    u32 *number = bpf_map_lookup_elem(&processes, &process), layout = number ? *number : UNKNOWN_LAYOUT;
    return number ? bpf_map_lookup_elem(&layouts, &layout) : 0;
}

// Returns the first mapping that ends after an address; the last one if there is none, which is free.
static __always_inline struct mapping *find_mapping(struct layout *p, u64 address) {
    u64 low = 0;
#pragma unroll
    for (int half = MAPPINGS / 2; half; half /= 2) {
        u64 k = low + half - 1;
        BOUND(k, MAPPINGS - 1);
        low += half & -((p->mapping[k].end - address - 1) >> 63);
    }
    BOUND(low, MAPPINGS - 1);
    return &p->mapping[low];
}

#include "interpreters.bpf.h"
#include "probed_returns.bpf.h"

// Returns 1 if a word points into the stack or to code. No register is compared with another: the verifier would learn
// something of both, differently on each way.
static __always_inline u64 is_kept(struct layout *p, u64 word, u64 low, u64 span) {
    u64 granule = (word >> 16) & 0x7fff, distance = word - low;
    return ((~distance & (distance - span)) >> 63 | p->code[granule >> 6] >> (granule & 63)) & 1;
}

static __always_inline void keep(struct scratch *s, u64 word) {
    u64 n = s->n;
    s->record[HEAD + (n & (OUT - 1))] = word;
    s->n = n + 1;
}

struct page_scan { struct scratch *scratch; struct layout *layout; };

// Scans 16 words. A kept word changes memory, not registers: both ways meet in one state, so that the verifier follows
// the words one after the other and not 2^16 ways.
static long scan_group(u32 group, void *context) {
    struct page_scan *scan = context;
    struct scratch *s = scan->scratch;
    struct layout *p = scan->layout;
    u64 low = s->low, span = s->span, index = s->index;
    u32 base = (group & 31) * 16;
    if (group < s->first) return 0;
    if (s->n >= OUT - 40) return 1;
#pragma unroll
    for (int k = 0; k < 16; k++) {
        u64 word = s->page[base + k];
        // A return address of 0 behind a pointer marks the root of some stacks.
        if (!word && s->after_pointer == index + k) {
            keep(s, ZERO | (index + k - s->last) << 48);
            s->last = index + k + 1;
        }
        if (word - 0x10000 >= (1ull << 47) - 0x10000) continue;
        if (is_kept(p, word, low, span)) {
            keep(s, word | (index + k - s->last) << 48);
            s->last = index + k + 1;
            s->after_pointer = index + k + 1;
        }
    }
    s->index = index + 16;
    if (index + 16 - s->last > 60000) {   // the distance must fit into 16 bits: a word 0 is kept
        keep(s, (index + 15 - s->last) << 48);
        s->last = index + 16;
    }
    return 0;
}

// A function that is not static is verified once, whoever calls it. So is the body of bpf_loop, but that of a loop in C once for
// each turn.
__attribute__((noinline)) int scan_words(u32 layout) {
    struct page_scan scan = {.scratch = this_scratch(), .layout = bpf_map_lookup_elem(&layouts, &layout)};
    if (!scan.scratch || !scan.layout) return 1;
    bpf_loop(32, scan_group, &scan, 0);
    return scan.scratch->n >= OUT - 40;
}

static long scan_page(u32 turn, struct scratch **scratch) {
    struct scratch *s = *scratch;
    struct scan *scan = &s->scan;
    u64 next = s->next;
    if (next >= scan->end) return 1;
    u64 page = next & ~(PAGE - 1ull);
    u32 first = (next & (PAGE - 1)) / 8 / 16;   // up to 15 words below the stack pointer are scanned too
    if (bpf_probe_read_user(s->page, PAGE, (void *)page)) {
        // A page that was never touched, or is swapped out. A large frame may contain some: what is above may be there.
        s->flags |= UNREADABLE;
        if (++s->holes > 256 || s->n >= OUT - 40) return 1;
        keep(s, HOLE | (s->index - s->last) << 48);
        s->last = s->index = s->index + 512 - first * 16;
        s->next = page + PAGE;
        return 0;
    }
    s->holes = 0;
    if (s->probed.place < page + PAGE) restore_page(page);
    s->first = first;
    s->low = scan->low;
    s->span = scan->span;
    if (scan_words(scan->layout)) {
        s->flags |= FULL;
        return 1;
    }
    s->next = page + PAGE;
    return 0;
}

static __always_inline void scan_from(struct scratch *s, u64 start) {
    s->next = start;
    s->holes = 0;
    bpf_loop(4096, scan_page, &s, 0);
}

// Notes the lowest kept word that points into the other stack.
static long find_other(u32 i, struct scratch **scratch) {
    struct scratch *s = *scratch;
    if (i >= s->n || i >= OUT) return 1;
    struct scan *scan = &s->scan;
    u64 word = s->record[HEAD + (i & (OUT - 1))] & ((1ull << 48) - 1);
    if (word >= scan->other_low && word < scan->other_high && (!scan->other || word < scan->other)) scan->other = word;
    return 0;
}

static long find_end(struct task_struct *task, struct vm_area_struct *vma, void *end) {
    *(u64 *)end = vma->vm_end;
    return 0;
}

// Writes the words of the stack from `sp` up into the record.
static __always_inline void scan_stack(struct scratch *s, struct task_struct *task, struct mm_struct *mm, u32 layout,
                                       u64 sp, struct head *head) {
    u64 end = 0, start_stack = mm->start_stack, fs = task->thread.fsbase;
    u64 alternate = task->sas_ss_sp, size = task->sas_ss_size;
    s->n = s->index = s->last = s->flags = 0;
    begin_probed_returns(s, task);
    // The main thread's stack ends behind the program's arguments, a thread's (of glibc and musl) at its descriptor.
    if (sp < start_stack && start_stack - sp < 1ull << 30) {
        end = start_stack + 8;
    } else if (size && sp - alternate <= size) {
        end = alternate + size;
        s->flags |= SECOND;
    } else if (fs > sp && fs - sp < 64ull << 20) {
        end = fs;
    } else {
        // A stack that the program made itself, such as a goroutine's: its mapping may contain much else.
        bpf_find_vma(task, sp, find_end, &end, 0);
        if (!end || end - sp > UNKNOWN_SCAN) {
            end = sp + UNKNOWN_SCAN;
            s->flags |= LIMIT;
        }
    }
    struct scan *scan = &s->scan;
    u64 low = sp & ~(PAGE - 1ull), span = end - low;
    if (end - sp > max_scan) {
        end = sp + max_scan;
        s->flags |= LIMIT;
    }
    scan->low = low;
    scan->span = span;
    scan->end = end;
    scan->layout = layout;
    scan->other = 0;
    if (s->flags & SECOND) {
        // Pointers into the interrupted stack are kept too. The lowest is where that stack is scanned from.
        scan->other_high = task->pid == task->tgid ? start_stack : fs;
        scan->other_low = scan->other_high - (8ull << 20);
        scan->low = scan->other_low;
        scan->span = scan->other_high - scan->other_low;
        scan_from(s, sp);
        u64 after = s->next;
        bpf_loop(OUT, find_other, &s, 0);
        u64 other = scan->other & ~7ull;
        head->second = other;
        head->second_word = s->n;
        if (other) {
            s->index = s->last = 0;
            scan->low = other & ~(PAGE - 1ull);
            scan->span = scan->other_high - scan->low;
            scan->end = scan->other_high;
            if (scan->end - other > max_scan) {
                scan->end = other + max_scan;
                s->flags |= LIMIT;
            }
            scan_from(s, other);
        }
        s->next = after;
    } else {
        scan_from(s, sp);
    }
    head->scanned = s->next - sp;
}

// Kinds of rules. Those from BY_GO_SP on are of Go programs, and explained in lib/perf/unwind/go.rs. The last one is of code
// that a runtime generated when its file was built.
enum {
    NO_RULE, BY_SP, BY_BP, AT_ROOT, BY_SIGNAL, BY_BP_DEREF,
    BY_GO_SP, BY_GO_CALLBACK, BY_GOROUTINE, BY_RESUMED, BY_RUNTIME,
};

// Returns the number at an index of a table, which OVERLAP - 1 others follow; 0 if the table ends before.
static __always_inline u32 *numbers_from(void *table, u64 index) {
    u32 number = index / TABLE_PART, entry = index % TABLE_PART / CHUNK;
    void *part = bpf_map_lookup_elem(table, &number);
    u32 *chunk = part ? bpf_map_lookup_elem(part, &entry) : 0;
    BOUND(index, CHUNK - 1);
    return chunk ? &chunk[index] : 0;
}

// Returns the rule at a place of the tables; 0 if there is none.
__attribute__((noinline)) u64 find_rule(u64 place) {
    u64 byte = place & 255, low = 0;
    u32 *block = numbers_from(&blocks, place >> 8);
    if (!block) return 0;
    u64 first = block[0], count = block[1] - first;
    if (count - 1 >= OVERLAP) return 0;
    u32 *row = numbers_from(&rows, first);
    if (!row) return 0;
    // The last row that begins at this byte or before. No branches: what comes after would be verified for each way.
#pragma unroll
    for (u64 half = OVERLAP / 2; half; half /= 2) {
        u64 middle = low + half;
        BOUND(middle, OVERLAP - 1);
        low += half & -((low + half - count) >> 63 & ((u64)(row[middle] >> 24) - byte - 1) >> 63);
    }
    BOUND(low, OVERLAP - 1);
    u32 number = row[low] & 0xffffff;
    u64 *rule = bpf_map_lookup_elem(&rules, &number);
    return rule ? *rule : 0;
}

// Reads two words of the stack through a window: small frames share one read.
static __always_inline int read_two(struct scratch *s, u64 at, u64 *two) {
    u64 from = at - s->walk.window;
    if (from > WINDOW - 16 || from & 7) {
        if (bpf_probe_read_user(s->page, WINDOW, (void *)at)) {
            s->walk.window = 0;
            return bpf_probe_read_user(two, 16, (void *)at);
        }
        s->walk.window = at;
        from = 0;
    }
    u64 index = from / 8;
    if (index > WINDOW / 8 - 2) return 1;
    two[0] = s->page[index];
    two[1] = s->page[index + 1];
    return 0;
}

// Reads the saved stack pointer and program counter of the goroutine for which the thread runs on its scheduler's
// stack. `tls` is the place of the running goroutine (g) in the thread's storage, and `current` that of the current goroutine
// (m.curg) in the thread's description (m). In a description of a goroutine, m is at byte 48, and what was saved is at
// byte 56. Returns 1 if the thread runs on another stack.
static __always_inline int read_goroutine(s64 tls, u64 current, u64 *saved) {
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    u64 g = read_word(task->thread.fsbase + tls), m = read_word(g + 48);
    if (!g || !m || read_word(m) != g) return 1;
    u64 goroutine = read_word(m + current);
    if (!goroutine || goroutine == g || read_word(goroutine + 48) != m) return 1;
    return bpf_probe_read_user(saved, 16, (void *)(goroutine + 56)) || !saved[0];
}

#define UNKNOWN_BP 1   // no frame is there

#include "generated.bpf.h"
#include "thread_context.bpf.h"
#include "tasks.bpf.h"
#include "position.bpf.h"

struct walking { struct layout *layout; struct scratch *scratch; };

// Steps to the caller. Returns 1 at the end of the walk: at the root, or where it finds no rule or cannot read.
static long step(u32 i, struct walking *walking) {
    struct layout *p = walking->layout;
    struct scratch *s = walking->scratch;
    struct walk *w = &s->walk;
    u64 n = w->n, pc = w->pc;
    if (n >= FRAMES) return 1;
    u64 *kept = &s->record[HEAD + (n & (FRAMES - 1))];
    *kept = pc | (w->exact ? EXACT : 0);
    s->frame_at[n & (FRAMES - 1)] = w->sp;
    w->n = n + 1;
    u64 at = pc - !w->exact, rule = 0, is_generated = 0;
    if (at - w->start >= w->end - w->start) {
        struct mapping *mapping = find_mapping(p, at);
        w->start = w->end = 0;
        w->is_unmapped = at < mapping->start || at >= mapping->end;
        is_generated = w->is_unmapped || mapping->first - GENERATED <= GENERATED_SHARED - GENERATED;
        if (!is_generated) {
            if (!mapping->first) {
                w->rowless = at;
                return 1;
            }
            w->start = mapping->start;
            w->end = mapping->end;
            w->first = mapping->first;
        }
    }
    if (!is_generated) {
        rule = find_rule(w->first + (at - w->start));
        is_generated = rule >> 48 == BY_RUNTIME;
    }
    if (is_generated) {
        if (!step_generated(w->process)) {
            w->is_unmapped = 0;
            return 0;
        }
        if (!w->end && !w->is_unmapped) w->rowless = at;
        return 1;
    }
    u32 kind = rule >> 48 & 0xff;
    u64 offset = rule >> 16 & 0xffffffff;
    s64 saved = (s64)(rule << 48) >> 48;
    u64 cfa, two[2], bp = w->bp, is_other_stack = 0;
    if (kind == BY_SP) {
        cfa = w->sp + offset;
    } else if (kind == BY_BP) {
        cfa = bp + offset;
    } else if (kind == AT_ROOT) {
        w->is_rooted = 1;
        return 1;
    } else if (kind == BY_SIGNAL) {
        // The stack pointer is at a struct ucontext. Its registers begin at byte 40: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx,
        // rsp, rip, and the flags.
        w->window = 0;
        if (bpf_probe_read_user(s->page, 18 * 8, (void *)(w->sp + 40))) return 1;
        // Nobody called the code to which the handler returns.
        *kept = pc | EXACT;
        w->bp = s->page[10];
        w->sp = s->page[15];
        w->r13 = s->page[5];
        w->bx = s->page[11];
        w->dx = s->page[12];
        w->ax = s->page[13];
        interrupt_at(w, s->page[16], s->page[13], s->page[14], s->page[3], s->page[17]);
        return 0;
    } else if (kind == BY_BP_DEREF) {
        if (bpf_probe_read_user(&cfa, 8, (void *)(bp - offset))) return 1;
    } else if (kind == BY_GO_SP || kind == BY_GO_CALLBACK) {
        cfa = w->sp + offset;
        bp = UNKNOWN_BP;
    } else if (kind == BY_GOROUTINE || kind == BY_RESUMED) {
        if (read_goroutine(saved, offset & 0xffff, two)) return 1;
        bp = UNKNOWN_BP;
        saved = 0;
        is_other_stack = 1;
        if (kind == BY_RESUMED) {
            w->sp = two[0];
            w->pc = two[1];
            w->bp = bp;
            w->exact = 0;
            return 0;
        }
        cfa = two[0] + (offset >> 16);
    } else {
        return 1;
    }
    // A frame pointer may lead to another stack, whose addresses may be lower.
    if (cfa <= w->sp && kind != BY_BP && !is_other_stack) return 1;
    // Large frames share nothing.
    if (cfa - w->sp < 256 ? read_two(s, cfa - 16, two) : bpf_probe_read_user(two, 16, (void *)(cfa - 16))) return 1;
    if (s->probed.place <= cfa - 8) {
        u64 address = find_probed_return(cfa - 8);
        if (address) two[1] = address;
    }
    if (saved == -2) {
        bp = two[0];
    } else if (saved) {
        if (bpf_probe_read_user(&bp, 8, (void *)(cfa + saved * 8))) return 1;
    }
    if (!two[1]) {
        // A return address of 0 marks the root of a stack that a program made itself.
        w->is_rooted = n > 0;
        return 1;
    }
    w->pc = two[1];
    w->bp = bp;
    w->sp = cfa;
    w->exact = kind == BY_GO_CALLBACK;
    return 0;
}

// Sends the words of the native stack, those of the script frames, and those of the thread's context and task.
static __always_inline void send(void *context, struct scratch *s, u32 process, u64 words) {
    struct head *head = (void *)s->record;
    u32 script_words = walk_script(process, words);
    BOUND(script_words, RECORD / 2 - 1);
    words += script_words;
    head->script_words = script_words;
    head->flags |= s->script_flags;
    head->context_words = head->task_words = 0;
    if (with_context) {
        u32 context_words = read_context(process, words);
        BOUND(context_words, 127);
        head->context_words = context_words;
        words += context_words;
    }
    if (with_task) {
        u32 task_words = read_task(process, words);
        BOUND(task_words, 31);
        head->task_words = task_words;
        words += task_words;
    }
    head->parts = words <= PART ? 1 : words <= 2 * PART ? 2 : words <= 3 * PART ? 3 : words <= 4 * PART ? 4 : 5;
#pragma unroll
    for (u32 part = 0; part < 5; part++) {
        if (part && words <= part * PART) break;
        // The head of a part replaces words of the part before, which was sent.
        struct head *own = (void *)&s->record[part * PART];
        if (part) *own = *head;
        u64 size = words - part * PART;
        if (size > PART) size = PART;
        own->part = part;
        own->words = size;
        size = sizeof *own + size * 8;
        // Until the recorder publishes the process, each of its large stacks takes much of the ring.
        long error = part && head->flags & UNKNOWN_PROCESS
            ? bpf_perf_event_output(context, &waking_outputs, BPF_F_CURRENT_CPU, own, size)
            : bpf_perf_event_output(context, &outputs, BPF_F_CURRENT_CPU, own, size);
        if (error) s->lost_records++;
    }
}

// Writes the user stack of the current thread into the ring, if it has one.
static __always_inline int take_user_stack(void *context, u32 process) {
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct mm_struct *mm = task->mm;
    struct scratch *s = this_scratch();
    if (!s || !mm || task->flags & PF_KTHREAD) return 1;
    struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs((void *)task);
    if (regs->cs != USER64_CS) return 1;
    u64 sp = regs->sp;
    struct head *head = (void *)s->record;
    head->ip = regs->ip;
    head->sp = sp;
    head->published = head->second = head->rowless = 0;
    head->probed = find_probed(task, regs->ip);
    head->second_word = head->scanned = 0;
    s->stack++;
    s->near[FRAMES_WINDOW] = s->near[VALUES_WINDOW] = NOTHING;
    s->script_base = FRAMES;
    s->script_n = s->script_words = s->script_last = s->script_flags = s->is_unpacking = s->native_count = 0;
    s->method_frame = NOTHING;
    // execve sets the start of the code when the program's image is complete.
    if (!mm->start_code) {
        head->flags = NO_STACK;
        send(context, s, process, 0);
        return 1;
    }
    u32 *number = bpf_map_lookup_elem(&processes, &process), layout = number ? *number : UNKNOWN_LAYOUT;
    // The recorder removes layouts that no process has any more, as far as it knows.
    struct layout *p = number ? bpf_map_lookup_elem(&layouts, &layout) : 0;
    // If the recorder has not heard of a mapping yet, every word that may be an address is kept. Runtimes change their mappings
    // all the time: what is walked is compared with the mappings later.
    int is_unknown = !p, is_stale = p && p->exec_pages != mm->exec_vm;
    int is_outdated = is_stale && !generates_code(process);
    if (p) head->published = p->published;
    if (is_outdated) p = 0;
    if (p) {
        struct walk *w = &s->walk;
        w->sp = sp;
        w->bp = regs->bp;
        begin_at(w, regs, head->probed);
        w->n = w->is_rooted = w->is_unmapped = w->rowless = w->start = w->end = w->window = 0;
        w->process = process;
        begin_probed_returns(s, task);
        struct walking walking = {.layout = p, .scratch = s};
        bpf_loop(FRAMES, step, &walking, 0);
        head->rowless = w->rowless;
        // The recorder walks these frames by the same rules, and may find more.
        s->native_count = w->n;
        // Generated code can be walked here alone.
        if (w->is_rooted || s->script_words) {
            u64 n = w->n;
            head->flags = w->is_rooted ? ROOTED : WALK_CUT;
            if (n > FRAMES) n = FRAMES;
            send(context, s, process, n);
            return 1;
        }
        // The recorder's knowledge may be old.
        if (w->is_unmapped || is_stale) {
            p = 0;
            s->native_count = 0;
        }
    }
    scan_stack(s, task, mm, p ? layout : UNKNOWN_LAYOUT, sp, head);
    u64 n = s->n;
    head->flags = s->flags | (is_unknown ? UNKNOWN_PROCESS : 0) | (is_outdated ? OUTDATED : 0);
    if (n > OUT) n = OUT;
    send(context, s, process, n);
    return 1;
}

#include "own_time.bpf.h"
#include "event_records.bpf.h"
#include "long_blocks.bpf.h"
#include "wakers.bpf.h"
#include "switches.bpf.h"
#include "sleepers.bpf.h"
#include "pairs.bpf.h"

// Writes the user stack of the current thread into the ring. Returns 0 if the sample is not wanted.
static __always_inline int take_stack(void *context, int is_preemptible) {
    u64 ids = bpf_get_current_pid_tgid();
    u64 start = bpf_ktime_get_ns();
    if (!is_wanted(ids >> 32, ids)) return 0;
    if (!lock_scratch(is_preemptible)) return 1;
    int is_taken = take_user_stack(context, ids >> 32);
    unlock_scratch(0);
    note_own_time(start);
    return is_taken;
}

// Takes the stack of a sample, and notes if it is that of a block. Returns 0 if the sample is not wanted.
static __always_inline int take_sample(void *context) {
    if (!take_stack(context, 0)) return 0;
    if (with_wakers) note_block(bpf_get_current_pid_tgid() >> 32);
    return 1;
}

SEC("perf_event")
int on_sample(void *context) {
    return take_sample(context);
}

SEC("perf_event")
int on_clock(struct bpf_perf_event_data *context) {
    if (!is_in_own_time(context)) {
        int is_taken = take_sample(context);
        if (is_taken) note_stack_of_timer(context);
        return is_taken;
    }
    u64 ids = bpf_get_current_pid_tgid();
    struct own_time *own = this_own_time();
    if (own && is_wanted(ids >> 32, ids)) own->left_out++;
    return 0;
}

// The kernel runs the programs of a tracepoint for every process, and drops the samples of all counters, those of other
// recorders too, if one returns 0.
SEC("tracepoint")
int on_tracepoint(void *context) {
    take_stack(context, 0);
    return 1;
}

// Of a function's calls, each CPU has a counter of its own, and the kernel runs the programs of all of them on the CPU of the
// call. Their cookies are the numbers of their CPUs, from 1.
SEC("kprobe")
int on_probe(void *context) {
    u64 cookie = bpf_get_attach_cookie(context);
    if (cookie && cookie != bpf_get_smp_processor_id() + 1) return 0;
    int is_taken = take_stack(context, 1);
    return cookie ? is_taken : 1;
}

// A new process of a target is a target too, whose samples count from its first instant. An ID that is reused by another
// process is no target any more.
SEC("raw_tp/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child) {
    u64 ids = bpf_get_current_pid_tgid();
    u32 thread = BPF_CORE_READ(child, pid), process = BPF_CORE_READ(child, tgid);
    struct target wanted = {.task = (u64)child, .state = WANTED};
    if (scope == THREADS) {
        bpf_map_delete_elem(&targets, &thread);
    } else if (scope == PROCESSES && thread == process) {
        if (is_wanted(ids >> 32, ids))
            bpf_map_update_elem(&targets, &process, &wanted, BPF_ANY);
        else
            bpf_map_delete_elem(&targets, &process);
    }
    if (thread == process) {
        // A copy of a process has everything at the same addresses.
        u32 old = ids >> 32;
        u32 *layout = bpf_map_lookup_elem(&processes, &old);
        if (layout) bpf_map_update_elem(&processes, &process, layout, BPF_ANY);
        else bpf_map_delete_elem(&processes, &process);
        struct interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &old);
        if (interpreter) bpf_map_update_elem(&interpreters, &process, interpreter, BPF_ANY);
        else bpf_map_delete_elem(&interpreters, &process);
        if (with_context) copy_variable(old, process);
    }
    return 0;
}

SEC("raw_tp/sched_process_exec")
int BPF_PROG(on_exec) {
    u32 process = bpf_get_current_pid_tgid() >> 32;
    struct target *target = bpf_map_lookup_elem(&targets, &process);
    if (target) target->state = WANTED;
    bpf_map_delete_elem(&processes, &process);
    bpf_map_delete_elem(&interpreters, &process);
    bpf_map_delete_elem(&thread_variables, &process);
    return 0;
}

SEC("raw_tp/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task) {
    u32 zero = 0;
    u64 ids = bpf_get_current_pid_tgid();
    struct ended *ended = bpf_map_lookup_elem(&ended_targets, &zero);
    if (ended && scope != EVERYBODY && is_wanted(ids >> 32, ids))
        __sync_fetch_and_add(&ended->sleeps, BPF_CORE_READ(task, nvcsw));
    return 0;
}

// Once a target is gone for good, its CPU time is known, and its ID may be reused. A thread that is not the leader any
// more, because another called execve, has the ID of a process that goes on.
SEC("raw_tp/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task) {
    u32 zero = 0, id = scope == THREADS ? BPF_CORE_READ(task, pid) : BPF_CORE_READ(task, tgid);
    if (scope == PROCESSES && BPF_CORE_READ(task, group_leader) != task) return 0;
    struct target *target = bpf_map_lookup_elem(&targets, &id);
    // The task of a target that the recorder named is not known.
    if (!target || (target->task && target->task != (u64)task)) return 0;
    struct ended *ended = bpf_map_lookup_elem(&ended_targets, &zero);
    if (ended) {
        u64 own = scope == THREADS ? BPF_CORE_READ(task, se.sum_exec_runtime)
                                   : BPF_CORE_READ(task, signal, sum_sched_runtime);
        __sync_fetch_and_add(&ended->time, own);
        __sync_fetch_and_add(&ended->count, 1);
    }
    bpf_map_delete_elem(&targets, &id);
    return 0;
}

char licence[] SEC("license") = "Dual MIT/GPL";
