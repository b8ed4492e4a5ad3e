/* `realigned SECONDS`: functions that realign their frames, and end with few instructions after they have restored the frame pointer.
   Each is called by its own two callers alone, whose frames are found by the frame pointer: `odd_top`, `odd_caller`, and `odd_leaf` or
   `odd_tail`, which ends with a jump to `odd_last`; and the same with `even`. Runs for so many seconds of CPU time. */
#include <alloca.h>
#include <stdlib.h>
#include <time.h>

#define OWN __attribute__((noinline)) static
/* The compiler must neither leave a buffer out, nor a call at the end of a function. */
#define KEEP(buffer) __asm__ volatile("" ::"r"(buffer) : "memory")

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

/* GCC finds the arguments on the stack by the unaligned stack pointer, if there are buffers of variable size or -mforce-drap. */
#define FUNCTIONS(kind, alignment) \
    OWN void kind##_leaf(int size) { \
        __attribute__((aligned(alignment))) char aligned[alignment]; \
        char *variable = alloca(size); \
        KEEP(aligned); \
        KEEP(variable); \
    } \
    OWN int kind##_last(int n) { KEEP(0); return n; } \
    OWN int kind##_tail(int n, int b, int c, int d, int e, int f, int g, int h) { \
        { \
            __attribute__((aligned(alignment))) volatile char aligned[alignment]; \
            aligned[n % alignment] = 1; \
            n += aligned[1] + h; \
        } \
        return kind##_last(n); \
    } \
    OWN void kind##_caller(int size) { \
        char *variable = alloca(size); \
        KEEP(variable); \
        for (int n = 0; n < 50; n++) { \
            kind##_leaf(size); \
            kind##_tail(size, 0, 0, 0, 0, 0, 0, n); \
        } \
        KEEP(variable); \
    } \
    OWN void kind##_top(int size) { \
        char *variable = alloca(size); \
        KEEP(variable); \
        kind##_caller(size); \
        KEEP(variable); \
    }
FUNCTIONS(odd, 64)
FUNCTIONS(even, 32)

int main(int count, char **words) {
    double end = now() + atof(words[1]);
    while (now() < end) {
        for (int size = 0; size < 1000; size++) {
            if (rand() & 1) odd_top(size);
            else even_top(size);
        }
    }
    return 0;
}
