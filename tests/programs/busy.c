/* `busy SECONDS` uses that much CPU time in `step`, which is inlined into `spin`. -DNO_MAIN leaves out `main`. */
#include <stdlib.h>
#include <time.h>
static volatile unsigned long sink;
static inline __attribute__((always_inline)) void step(unsigned long n) {
    sink = sink * 3 + n; sink += n / (sink | 1); sink += n / (sink | 3);
}
__attribute__((noinline)) void spin(double seconds) {
    struct timespec t;
    do {
        for (unsigned long n = 0; n < 50000; n++) step(n);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while (t.tv_sec + 1e-9 * t.tv_nsec < seconds);
}
#ifndef NO_MAIN
int main(int count, char **words) { spin(count > 1 ? atof(words[1]) : 0.3); return 0; }
#endif
