// Tells long blocks among those of which no stack was taken, where switches are many (switches.bpf.h).

// One in so many switches is taken; 0 if switches are never many.
const volatile u64 switch_period;

// When threads left their CPUs without a stack, by the low bits of their IDs: the time in bits 8 to 63, what is known of the block
// in bits 6 and 7, and the high bits of the ID in bits 0 to 5. Of two threads with the same low bits, one has no entry.
#define ABSENCES 65536
MAP(absences, BPF_MAP_TYPE_ARRAY, ABSENCES, 0, u32, u64);
enum { IS_BLOCKED = 1 << 6, HAS_WAKER = 1 << 7 };

// The number of stacks of long blocks that a CPU takes in a window, in nanoseconds: a thousand a second take about a percent
// of its time. If more blocks are long, longer ones count, four times as long each time, as in the recorder's buckets.
#define LONG_BITS 20
#define LONG_WINDOW 100000000
#define LONG_MAX 100
#define LONG_MAX_SHIFT 20
struct long_blocks { u64 start, taken, shift; };
MAP(long_blocks, BPF_MAP_TYPE_PERCPU_ARRAY, 1, 0, u32, struct long_blocks);

static __always_inline u64 *find_absence(u32 thread) {
    u32 index = thread & (ABSENCES - 1);
    return bpf_map_lookup_elem(&absences, &index);
}

// Returns the time since a thread left its CPU; 0 if it has no entry.
static __always_inline u64 absence_time(u64 absence, u32 thread, u64 now) {
    int is_own = absence && (absence & 0x3f) == (thread >> 16 & 0x3f);
    return is_own ? now - (absence >> 8) : 0;
}

// Returns 1 if a block is one of the longest of this CPU.
static __always_inline int is_long_block(u64 nanoseconds, u64 now) {
    u32 zero = 0;
    if (!(nanoseconds >> LONG_BITS)) return 0;
    struct long_blocks *blocks = bpf_map_lookup_elem(&long_blocks, &zero);
    if (!blocks) return 0;
    if (now - blocks->start >= LONG_WINDOW) {
        if (blocks->shift && blocks->taken < LONG_MAX / 8) blocks->shift -= 2;
        blocks->start = now;
        blocks->taken = 0;
    }
    if (!(nanoseconds >> (LONG_BITS + (blocks->shift & 31)))) return 0;
    if (blocks->taken >= LONG_MAX) {
        if (blocks->shift < LONG_MAX_SHIFT) blocks->shift += 2;
        blocks->taken = 0;
        return 0;
    }
    blocks->taken++;
    return 1;
}

// Returns 1 if a thread is woken from a long block that was not taken. Its stack is taken when it runs.
static __always_inline int note_waker_of_long_block(u32 thread) {
    u64 *absence = find_absence(thread), now = bpf_ktime_get_ns();
    u64 time = absence && *absence & IS_BLOCKED ? absence_time(*absence, thread, now) : 0;
    if (!time || !(*absence & HAS_WAKER || is_long_block(time, now))) return 0;
    *absence |= HAS_WAKER;
    return 1;
}
