// Measures the time between two events with the same key, and takes the stack of the second one, or of the first.
//
// Pairs that are shorter than `pair_over` are only counted. The recorder sets how many pairs share a stack: one in `pair_every`
// of a CPU is sent, and stands for the others. Long pairs, of which few fit into a second, are all sent if their length is
// known before the stack is taken.

// The fields of the key in the records of both tracepoints: offset << 8 | size, or 0. The thread is part of the key if
// `pair_in_thread`. The stack is that of the first event if `pair_first`, else of the second.
const volatile u64 pair_from_one, pair_from_two, pair_to_one, pair_to_two, pair_in_thread, pair_first;
// The shortest pair that is sent whatever `pair_every` is, in nanoseconds.
#define LONG_PAIR 1000000
// The shortest pair that is recorded, in nanoseconds.
const volatile u64 pair_over;

struct pair_key { u64 thread, one, two; };
// A pair that has begun and is not over. If the stack of its first event was sent, `sent` is the number of pairs for which it
// stands, and `id` that of the record.
struct pair_start { u64 time, sent, id; };
// Sums of a CPU: pairs and their nanoseconds, those that were too short, and pairs or stacks for which there was no room.
struct pair_sums { u64 pairs, nanoseconds, short_pairs, short_nanoseconds, dropped, turn; };

MAP(pair_starts, BPF_MAP_TYPE_HASH, 65536, 0, struct pair_key, struct pair_start);
MAP(pair_sums, BPF_MAP_TYPE_PERCPU_ARRAY, 1, 0, u32, struct pair_sums);
MAP(pair_every, BPF_MAP_TYPE_ARRAY, 1, 0, u32, u64);

static const u32 pair_zero = 0;

static __always_inline u64 read_pair_field(void *context, u64 field) {
    u64 value = 0;
    u32 size = field & 15;
    if (size) bpf_probe_read_kernel(&value, size, context + (field >> 8));
    return value;
}

static __always_inline u64 read_every(void) {
    u64 *every = bpf_map_lookup_elem(&pair_every, &pair_zero);
    return every && *every ? *every : 1;
}

// Returns 1 for one in `every` pairs of the CPU.
static __always_inline int is_turn(struct pair_sums *sums, u64 every) {
    if (++sums->turn < every) return 0;
    sums->turn = 0;
    return 1;
}

// A program at a function of user space may be preempted. Another one must not use the same memory meanwhile: then returns 0.
static __always_inline struct scratch *lock_scratch(struct pair_sums *sums) {
    struct scratch *s = this_scratch();
    if (s && !__sync_val_compare_and_swap(&s->is_locked, 0, 1)) return s;
    sums->dropped++;
    return 0;
}

static __always_inline void begin_pair(void *context, struct pair_key *key) {
    u64 ids = bpf_get_current_pid_tgid(), every = read_every();
    struct pair_sums *sums = bpf_map_lookup_elem(&pair_sums, &pair_zero);
    if (!sums || ids >> 32 == own || !is_wanted(ids >> 32, ids)) return;
    struct scratch *s = pair_first && is_turn(sums, every) ? lock_scratch(sums) : 0;
    struct pair_start start = {.sent = s ? every : 0};
    if (s) {
        // Two CPUs may begin a pair at the same time.
        start.id = bpf_ktime_get_ns() << 8 | (bpf_get_smp_processor_id() & 255);
        send_event_with_stack(context, s, EVENT_TYPE(PAIR_BEGIN, every), start.id, 0);
        s->is_locked = 0;
    }
    // The pair begins after its stack was taken, which is no part of it.
    start.time = bpf_ktime_get_ns();
    if (bpf_map_update_elem(&pair_starts, key, &start, BPF_ANY)) sums->dropped++;
}

static __always_inline void end_pair(void *context, struct pair_key *key) {
    u64 now = bpf_ktime_get_ns(), every = read_every();
    struct pair_start *found = bpf_map_lookup_elem(&pair_starts, key);
    struct pair_sums *sums = bpf_map_lookup_elem(&pair_sums, &pair_zero);
    if (!found || !sums) return;
    struct pair_start start = *found;
    bpf_map_delete_elem(&pair_starts, key);
    u64 nanoseconds = now - start.time, is_short = nanoseconds < pair_over;
    if (is_short) {
        sums->short_pairs++;
        sums->short_nanoseconds += nanoseconds;
    } else {
        sums->pairs++;
        sums->nanoseconds += nanoseconds;
    }
    if (!pair_first && nanoseconds >= LONG_PAIR) every = 1;
    if (pair_first ? !start.sent : is_short || (every > 1 && !is_turn(sums, every))) return;
    struct scratch *s = lock_scratch(sums);
    if (!s) return;
    // The stack of a short pair, which was sent, is not needed.
    if (pair_first)
        send_event(context, s, EVENT_TYPE(PAIR_END, is_short ? 0 : start.sent), start.id, nanoseconds);
    else
        send_event_with_stack(context, s, EVENT_TYPE(PAIR, every), 0, nanoseconds);
    s->is_locked = 0;
}

#define PAIR_KEY(context, side) { \
    .thread = pair_in_thread ? (u32)bpf_get_current_pid_tgid() : 0, \
    .one = read_pair_field(context, pair_##side##_one), \
    .two = read_pair_field(context, pair_##side##_two), \
}

SEC("tracepoint")
int on_pair_begin(void *context) {
    struct pair_key key = PAIR_KEY(context, from);
    begin_pair(context, &key);
    return 1;
}

SEC("tracepoint")
int on_pair_end(void *context) {
    struct pair_key key = PAIR_KEY(context, to);
    end_pair(context, &key);
    return 1;
}

SEC("uprobe")
int on_call_begin(void *context) {
    struct pair_key key = {.thread = (u32)bpf_get_current_pid_tgid()};
    begin_pair(context, &key);
    return 0;
}

SEC("uprobe")
int on_call_end(void *context) {
    struct pair_key key = {.thread = (u32)bpf_get_current_pid_tgid()};
    end_pair(context, &key);
    return 0;
}

SEC("uretprobe")
int on_return_end(void *context) {
    struct pair_key key = {.thread = (u32)bpf_get_current_pid_tgid()};
    end_pair(context, &key);
    return 0;
}
