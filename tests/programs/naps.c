/* `naps COUNT STEPS` sleeps for 200 µs that often, and then makes that many steps each in `first_half` and `second_half`. It writes
   the CPU time in milliseconds of the two. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile double sum;
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}
static inline __attribute__((always_inline)) void divide(int steps) {
    for (int n = 1; n < steps; n++) sum += 1.0 / n;
}
__attribute__((noinline)) void first_half(int steps) { divide(steps); }
__attribute__((noinline)) void second_half(int steps) { divide(steps + 1); }
int main(int count, char **words) {
    int steps = atoi(words[2]);
    double first = 0, second = 0;
    for (int n = atoi(words[1]); n > 0; n--) {
        usleep(200);
        double start = now();
        first_half(steps);
        double middle = now();
        second_half(steps);
        first += middle - start;
        second += now() - middle;
    }
    printf("%.0f %.0f\n", first, second);
    return 0;
}
