// The time that taking stacks takes, and the samples of clocks that are due in it.
//
// It is time in which the thread makes no progress, though the kernel may count it as the thread's. Deep stacks take longest: with
// the samples that are due meanwhile, what calls deeply would have too many. They are left out, so that samples represent what
// the threads use themselves:
//
// - a sample that was due while another stack was taken. Its clock's timer tells when it was due.
// - a part of the samples of a timer, as large as the part of its period that its last stack took: it never fires meanwhile. A
//   random number decides.
//
// With several clocks, the timers of one are always due while the other's stacks are taken. Then nothing is left out.
//
// Shares are not right if a program alternates between deep and shallow stacks at the pace of the timers of a CPU: what taking
// a stack takes decides where the next sample falls. They err by half of the share of the CPU time that taking stacks takes.

#include <linux/bpf_perf_event.h>

struct hrtimer { s64 _softexpires; } KERNEL;
struct hw_perf_event { struct hrtimer hrtimer; } KERNEL;
struct perf_event { struct hw_perf_event hw; } KERNEL;
struct bpf_perf_event_data_kern { struct perf_event *event; } KERNEL;

// True if there is one clock.
const volatile u64 leaves_out;

// On a CPU: the sum in nanoseconds; when the last stack was begun and finished; and the number of samples that were left out.
struct own_time { u64 sum, start, end, left_out; };
MAP(own_times, BPF_MAP_TYPE_PERCPU_ARRAY, 1, 0, u32, struct own_time);

// The last stack of a timer: the time that it took, and when it was finished. A timer may take the place of another.
struct timer { u64 event, time, end; };
#define TIMERS 64
MAP(timers, BPF_MAP_TYPE_PERCPU_ARRAY, TIMERS, 0, u32, struct timer);

static __always_inline struct own_time *this_own_time(void) {
    u32 zero = 0;
    return bpf_map_lookup_elem(&own_times, &zero);
}

// Notes that a stack was taken since a moment.
static __always_inline void note_own_time(u64 start) {
    struct own_time *own = this_own_time();
    if (!own) return;
    own->start = start;
    own->end = bpf_ktime_get_ns();
    own->sum += own->end - start;
}

// Returns the kernel's counter of a sample.
static __always_inline struct perf_event *event_of(struct bpf_perf_event_data *context) {
    return BPF_CORE_READ((struct bpf_perf_event_data_kern *)context, event);
}

static __always_inline struct timer *timer_of(struct perf_event *event) {
    u32 place = mix(0, (u64)event) % TIMERS;
    return bpf_map_lookup_elem(&timers, &place);
}

// Returns 1 if a sample of a clock falls to the time of taking stacks.
static __always_inline int is_in_own_time(struct bpf_perf_event_data *context) {
    struct own_time *own = this_own_time();
    struct perf_event *event = event_of(context);
    struct timer *timer = timer_of(event);
    if (!leaves_out || !own || !timer) return 0;
    u64 due = BPF_CORE_READ(event, hw.hrtimer._softexpires);
    if (due - own->start < own->end - own->start) return 1;
    u64 period = context->sample_period, time = timer->event == (u64)event ? timer->time : 0;
    // If more than a period is over, the kernel has left the next sample out itself, because it excludes the code.
    if (!time || !period || period >> 32 || bpf_ktime_get_ns() - timer->end >= period) return 0;
    timer->time = 0;
    return (bpf_get_prandom_u32() * period) >> 32 < time % period;
}

// Notes that the stack of a sample was taken.
static __always_inline void note_stack_of_timer(struct bpf_perf_event_data *context) {
    struct own_time *own = this_own_time();
    struct perf_event *event = event_of(context);
    struct timer *timer = timer_of(event);
    if (!own || !timer) return;
    timer->event = (u64)event;
    timer->time = own->end - own->start;
    timer->end = own->end;
}
