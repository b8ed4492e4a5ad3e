// Measures the time between two events with the same key, and takes the stack of the second one, or of the first.
//
// Pairs that are shorter than `pair_over` are only counted. A CPU may spend a share of its time on the stacks of the others,
// which it measures. As long as time is left, every pair is sent; else one in `pair_every`, which represents the others, and if
// that is too much, too, one in `pair_every` squared. Which one of so many is random: a program that repeats itself may make as many
// pairs each time. Of the first so many of a CPU it is the first one: the recording may end before they are complete.
// The recorder may be too late to slow a CPU down: a ring can be full before it has seen any pair.
// Long pairs are thinned later than others, if their length is known before the stack is taken.

// The fields of the key in the records of both tracepoints: offset << 8 | size, or 0. The thread is part of the key if
// `pair_in_thread`. The stack is that of the first event if `pair_first`, else of the second.
const volatile u64 pair_from_one, pair_from_two, pair_to_one, pair_to_two, pair_in_thread, pair_first;
// True if the pair is the call of a function and its return. Then the place of the return address is part of the key: calls of
// a function that calls itself are paired with their own returns.
const volatile u64 pair_in_frame;
// One in so many pairs is sent if there are too many. One in so many nanoseconds may be spent on stacks. The largest time that
// may be spent at once, in nanoseconds.
const volatile u64 pair_every, pair_share, pair_burst;
// The shortest pair that is long, in nanoseconds.
#define LONG_PAIR 1000000
// The shortest pair that is recorded, in nanoseconds.
const volatile u64 pair_over;

// The context of a program at a function: the registers, as struct pt_regs of x86-64 has them.
struct call_registers { u64 others[19], sp; };
struct pair_key { u64 thread, one, two; };
// A pair that has begun and is not over. If the stack of its first event was sent, `sent` is the number of pairs for which it
// stands, and `id` that of the record.
struct pair_start { u64 time, sent, id; };
// Sums of a CPU: pairs and their nanoseconds, those that were too short, pairs or stacks for which there was no room, and pairs
// whose stack was sent but which began again before they were over: a function may be left without a return. Of a group of
// `group` pairs, of which `missing` are to come, the one is sent before which `chosen` are missing. At `updated`, `left` nanoseconds
// could be spent on stacks.
struct pair_sums {
    u64 pairs, nanoseconds, short_pairs, short_nanoseconds, dropped, abandoned, group, missing, chosen, updated;
    s64 left;
};

MAP(pair_starts, BPF_MAP_TYPE_HASH, 65536, 0, struct pair_key, struct pair_start);
MAP(pair_sums, BPF_MAP_TYPE_PERCPU_ARRAY, 1, 0, u32, struct pair_sums);

static const u32 pair_zero = 0;

static __always_inline u64 read_pair_field(void *context, u64 field) {
    u64 value = 0;
    u32 size = field & 15;
    if (size) bpf_probe_read_kernel(&value, size, context + (field >> 8));
    return value;
}

// Returns the number of pairs that the next pair of the CPU represents, or 0 if it is not to be sent.
static __always_inline u64 count_represented(struct pair_sums *sums, u64 now, int is_long) {
    s64 burst = pair_burst, left = sums->left + (s64)((now - sums->updated) / pair_share);
    if (left > burst || !sums->updated) left = burst;
    sums->updated = now;
    sums->left = left;
    if (left > 0 || (is_long && left > -burst)) return 1;
    // A program at a function of user space may be preempted between the two steps below.
    if (!sums->missing || sums->missing > sums->group) {
        u64 is_first = !sums->group;
        sums->group = sums->missing = left > -burst ? pair_every : pair_every * pair_every;
        sums->chosen = is_first ? sums->group : 1 + bpf_get_prandom_u32() % sums->group;
    }
    return sums->missing-- == sums->chosen ? sums->group : 0;
}

// Notes that a stack was taken. The sums are looked up again: the combined stack has no room for their address meanwhile.
static __always_inline void spend(u64 start) {
    struct pair_sums *sums = bpf_map_lookup_elem(&pair_sums, &pair_zero);
    u64 time = bpf_ktime_get_ns() - start;
    // A program at a function of user space may have been preempted.
    if (sums) sums->left -= time < pair_burst ? time : pair_burst;
}

// Takes the memory for the stack of a pair, or notes that it has none.
static __always_inline struct scratch *lock_pair_scratch(struct pair_sums *sums) {
    struct scratch *s = lock_scratch(1);
    if (!s) sums->dropped++;
    return s;
}

// Begins a pair with the first event, whose stack it sends if that is asked for. Returns 0 if the pair is not wanted.
static __always_inline int begin_pair(void *context, struct pair_start *start) {
    u64 ids = bpf_get_current_pid_tgid();
    struct pair_sums *sums = bpf_map_lookup_elem(&pair_sums, &pair_zero);
    if (!sums || ids >> 32 == own || !is_wanted(ids >> 32, ids)) return 0;
    if (!pair_first) return 1;
    start->time = bpf_ktime_get_ns();
    start->sent = count_represented(sums, start->time, 0);
    struct scratch *s = start->sent ? lock_pair_scratch(sums) : 0;
    if (!s) {
        start->sent = 0;
        return 1;
    }
    // Two CPUs may begin a pair at the same time.
    start->id = bpf_ktime_get_ns() << 8 | (bpf_get_smp_processor_id() & 255);
    send_event_with_stack(context, EVENT_TYPE(PAIR_BEGIN, start->sent), start->id, 0, 0);
    unlock_scratch(0);
    spend(start->time);
    return 1;
}

// Keeps a pair until it is over. Its key is read after its stack was sent: the combined stack has no room for it before.
static __always_inline void keep_pair(struct pair_key *key, struct pair_start *start) {
    struct pair_sums *sums = bpf_map_lookup_elem(&pair_sums, &pair_zero);
    if (!sums) return;
    struct pair_start *before = pair_first ? bpf_map_lookup_elem(&pair_starts, key) : 0;
    if (before && before->sent) sums->abandoned++;
    // The pair begins after its stack was taken, which is no part of it.
    start->time = bpf_ktime_get_ns();
    if (bpf_map_update_elem(&pair_starts, key, start, BPF_ANY)) sums->dropped++;
}

static __always_inline void end_pair(void *context, struct pair_key *key) {
    u64 now = bpf_ktime_get_ns();
    struct pair_start *found = bpf_map_lookup_elem(&pair_starts, key);
    struct pair_sums *sums = bpf_map_lookup_elem(&pair_sums, &pair_zero);
    if (!found || !sums) return;
    u64 nanoseconds = now - found->time, count = found->sent, id = found->id, is_short = nanoseconds < pair_over;
    bpf_map_delete_elem(&pair_starts, key);
    if (is_short) {
        sums->short_pairs++;
        sums->short_nanoseconds += nanoseconds;
    } else {
        sums->pairs++;
        sums->nanoseconds += nanoseconds;
    }
    if (!pair_first && !is_short) count = count_represented(sums, now, nanoseconds >= LONG_PAIR);
    if (!count) return;
    struct scratch *s = lock_pair_scratch(sums);
    if (!s) return;
    // The stack of a short pair, which was sent, is not needed.
    if (pair_first)
        send_event(context, s, EVENT_TYPE(PAIR_END, is_short ? 0 : count), id, nanoseconds);
    else
        send_event_with_stack(context, EVENT_TYPE(PAIR, count), 0, nanoseconds, 0);
    unlock_scratch(0);
    spend(now);
}

#define PAIR_KEY(context, side) { \
    .thread = pair_in_thread ? (u32)bpf_get_current_pid_tgid() : 0, \
    .one = read_pair_field(context, pair_##side##_one), \
    .two = read_pair_field(context, pair_##side##_two), \
}

SEC("tracepoint")
int on_pair_begin(void *context) {
    struct pair_start start = {};
    if (!begin_pair(context, &start)) return 1;
    struct pair_key key = PAIR_KEY(context, from);
    keep_pair(&key, &start);
    return 1;
}

SEC("tracepoint")
int on_pair_end(void *context) {
    struct pair_key key = PAIR_KEY(context, to);
    end_pair(context, &key);
    return 1;
}

// Returns the key of the call of a function, or of its return, after which the return address is `taken` bytes below the stack
// pointer.
static __always_inline struct pair_key call_key(struct call_registers *registers, u64 taken) {
    struct pair_key key = {.thread = (u32)bpf_get_current_pid_tgid()};
    if (pair_in_frame) key.one = registers->sp - taken;
    return key;
}

SEC("uprobe")
int on_call_begin(void *context) {
    struct pair_start start = {};
    if (!begin_pair(context, &start)) return 0;
    struct pair_key key = call_key(context, 0);
    keep_pair(&key, &start);
    return 0;
}

SEC("uprobe")
int on_call_end(void *context) {
    struct pair_key key = call_key(context, 0);
    end_pair(context, &key);
    return 0;
}

SEC("uretprobe")
int on_return_end(void *context) {
    struct pair_key key = call_key(context, 8);
    end_pair(context, &key);
    return 0;
}
