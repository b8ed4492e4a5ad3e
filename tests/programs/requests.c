/* `requests CLOCK`: two threads serve requests and print each as a span, with the times of a clock (0: realtime,
   1: monotonic). */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static clockid_t stamps;

static long long now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void work(int ms) {
    long long end = now(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000LL;
    while (now(CLOCK_THREAD_CPUTIME_ID) < end)
        for (unsigned n = 0; n < 20000; n++) sink += n;
}

static void print_span(const char *name, long long start) {
    printf("{\"name\": \"%s\", \"trace_id\": \"%llx\", \"tid\": %ld, \"start\": %lld, \"end\": %lld}\n", name, start,
        syscall(SYS_gettid), start, now(stamps));
}

__attribute__((noinline)) static void query(int ms) { work(ms); __asm__(""); }
__attribute__((noinline)) static void render(int ms) { work(ms); __asm__(""); }
__attribute__((noinline)) static void idle(int ms) { work(ms); __asm__(""); }

static void *serve(void *unused) {
    for (int n = 0; n < 8; n++) {
        long long start = now(stamps);
        render(10);
        long long inner = now(stamps);
        query(15);
        print_span("query", inner);
        render(10);
        print_span("GET /", start);
        idle(8);
    }
    return unused;
}

int main(int count, char **words) {
    pthread_t thread;
    stamps = atoi(words[1]) ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    pthread_create(&thread, 0, serve, 0);
    serve(0);
    pthread_join(thread, 0);
    return 0;
}
