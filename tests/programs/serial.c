/* A part that one thread runs, then a part that two threads run at once. Each uses PART milliseconds of CPU time. Prints the elapsed
 * time in microseconds on standard error. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double clock_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e6 * t.tv_sec + 1e-3 * t.tv_nsec;
}
static double part;
static void use_cpu(void) {
    double end = clock_us(CLOCK_THREAD_CPUTIME_ID) + part;
    while (clock_us(CLOCK_THREAD_CPUTIME_ID) < end) for (volatile int n = 0; n < 20000; n++);
}
__attribute__((noinline)) static void serial_part(void) { use_cpu(); __asm__(""); }
__attribute__((noinline)) static void parallel_part(void) { use_cpu(); __asm__(""); }
static void *work(void *unused) { parallel_part(); return 0; }

int main(int argc, char **argv) {
    part = 1e3 * atof(argv[1]);
    double began = clock_us(CLOCK_MONOTONIC);
    pthread_t threads[2];
    serial_part();
    for (int n = 0; n < 2; n++) pthread_create(&threads[n], 0, work, 0);
    for (int n = 0; n < 2; n++) pthread_join(threads[n], 0);
    fprintf(stderr, "elapsed %.0f\n", clock_us(CLOCK_MONOTONIC) - began);
    return 0;
}
