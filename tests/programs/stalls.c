/* Stalls COUNT times, at the start and then every INTERVAL ms, for 50 ms each. Between them it works and rests. Runs for one
   more INTERVAL. Prints the microseconds of each stall on standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}
static void sleep_for(double microseconds) {
    nanosleep(&(struct timespec){.tv_nsec = microseconds * 1e3}, 0);
    sink++;
}
__attribute__((noinline)) void first_stall(void) { sleep_for(50e3); }
__attribute__((noinline)) void stall(void) { sleep_for(50e3); }
__attribute__((noinline)) void rest(void) { sleep_for(2e3); }
__attribute__((noinline)) void work(void) {
    for (double end = now() + 3e3; now() < end;) sink++;
}

int main(int count, char **words) {
    int stalls = atoi(words[1]);
    double interval = atof(words[2]) * 1e3, start = now();
    for (int number = 0; number <= stalls; number++) {
        while (now() < start + number * interval) {
            work();
            rest();
        }
        if (number == stalls) break;
        double before = now();
        if (number) stall(); else first_stall();
        fprintf(stderr, "%.0f\n", now() - before);
    }
}
