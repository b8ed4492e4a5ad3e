/* Threads that wait for each other in known ways, and measure how long. Each way has a thread WAY that waits in function
 * wait_WAY, and one WAY_w that ends the wait in function wake_WAY, PAUSE milliseconds later. Prints a line "WAY BLOCKED" for each
 * on standard error: the time in microseconds that the waits lasted.
 * `wakers`: all ways. `wakers lock`: the threads of a convoy alone. `wakers pingpong SECONDS`: two threads that wake each other
 * as often as they can. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 40, PAUSE = 6 };

#define APART __attribute__((noinline))
#define WAIT(name) APART static void wait_##name(void)
#define WAKE(name) APART static void wake_##name(void)
/* Code behind a call keeps it from becoming a jump. */
#define RETURN_HERE __asm__ volatile("")

static double clock_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e6 * t.tv_sec + 1e-3 * t.tv_nsec;
}
/* The time that the thread was not on a CPU. */
static double off_cpu(void) { return clock_us(CLOCK_MONOTONIC) - clock_us(CLOCK_THREAD_CPUTIME_ID); }
static void pause_ms(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, 0); }

/* A gate that a thread passes once for each time that it is opened. The waker of `ready` is not measured. */
struct way {
    const char *name;
    void (*wait)(void), (*wake)(void);
    sem_t ready;
    double blocked;
    pthread_t waiter, waker;
};

static int ends[2];
WAIT(pipe) { char byte; if (read(ends[0], &byte, 1) != 1) abort(); RETURN_HERE; }
WAKE(pipe) { if (write(ends[1], "x", 1) != 1) abort(); RETURN_HERE; }

static int word;
WAIT(futex) {
    while (!__atomic_exchange_n(&word, 0, __ATOMIC_ACQ_REL)) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
    RETURN_HERE;
}
WAKE(futex) {
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    RETURN_HERE;
}

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int told;
WAIT(condvar) {
    pthread_mutex_lock(&guard);
    while (!told) pthread_cond_wait(&changed, &guard);
    told--;
    pthread_mutex_unlock(&guard);
    RETURN_HERE;
}
WAKE(condvar) {
    pthread_mutex_lock(&guard);
    told++;
    pthread_mutex_unlock(&guard);
    pthread_cond_signal(&changed);
    RETURN_HERE;
}

static struct way ways[] = {
    {"pipe", wait_pipe, wake_pipe}, {"futex", wait_futex, wake_futex}, {"condvar", wait_condvar, wake_condvar}};
enum { WAYS = sizeof ways / sizeof *ways };

static void *waiter(void *argument) {
    struct way *way = argument;
    prctl(PR_SET_NAME, way->name);
    for (int n = 0; n < TURNS; n++) {
        sem_post(&way->ready);
        double before = off_cpu();
        way->wait();
        way->blocked += off_cpu() - before;
    }
    return 0;
}
static void *waker(void *argument) {
    struct way *way = argument;
    char name[16];
    snprintf(name, sizeof name, "%s_w", way->name);
    prctl(PR_SET_NAME, name);
    for (int n = 0; n < TURNS; n++) {
        sem_wait(&way->ready);
        pause_ms(PAUSE);
        way->wake();
    }
    return 0;
}

/* A queue of three stages: the source makes an item every PAUSE milliseconds, the stages hand it on. The last stage waits for
   the middle one, which waits for the source, which waits for a timer. */
static int queue[2][2];
static double queued;
APART static void hand_on(int stage) { if (write(queue[stage][1], "x", 1) != 1) abort(); RETURN_HERE; }
APART static void take(int stage) { char byte; if (read(queue[stage][0], &byte, 1) != 1) abort(); RETURN_HERE; }
static void *source(void *unused) {
    prctl(PR_SET_NAME, "source");
    for (int n = 0; n < TURNS; n++) {
        pause_ms(PAUSE);
        hand_on(0);
    }
    return 0;
}
static void *middle(void *unused) {
    prctl(PR_SET_NAME, "middle");
    for (int n = 0; n < TURNS; n++) {
        take(0);
        hand_on(1);
    }
    return 0;
}
static void *sink(void *unused) {
    prctl(PR_SET_NAME, "sink");
    for (int n = 0; n < TURNS; n++) {
        double before = off_cpu();
        take(1);
        queued += off_cpu() - before;
    }
    return 0;
}

/* A convoy: three threads, each of which holds the mutex for PAUSE milliseconds, again and again. */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static double convoy_blocked[3];
APART static void acquire(void) { pthread_mutex_lock(&held); RETURN_HERE; }
APART static void release(void) { pthread_mutex_unlock(&held); RETURN_HERE; }
static void *convoy(void *argument) {
    double *blocked = argument;
    prctl(PR_SET_NAME, "convoy");
    for (int n = 0; n < TURNS / 2; n++) {
        double before = off_cpu();
        acquire();
        *blocked += off_cpu() - before;
        pause_ms(PAUSE);
        release();
        pause_ms(1);   /* lets another have it: the mutex is not fair */
    }
    return 0;
}

static double synced;
APART static void sync_file(int file) { if (fsync(file)) abort(); RETURN_HERE; }
static void *writer(void *unused) {
    const char *name = getenv("WAKERS_FILE");
    prctl(PR_SET_NAME, "fsync");
    int file = name ? open(name, O_CREAT | O_WRONLY, 0600) : -1;
    static char block[1 << 16];
    for (int n = 0; file >= 0 && n < TURNS / 2; n++) {
        if (pwrite(file, block, sizeof block, 0) < 0) abort();
        double before = off_cpu();
        sync_file(file);
        synced += off_cpu() - before;
    }
    return 0;
}

static int to[2], fro[2];
static void *pong(void *unused) {
    char byte;
    prctl(PR_SET_NAME, "pong");
    while (read(to[0], &byte, 1) == 1) if (write(fro[1], &byte, 1) != 1) abort();
    return 0;
}
static void pingpong(double seconds) {
    pthread_t thread;
    char byte;
    if (pipe(to) || pipe(fro)) abort();
    pthread_create(&thread, 0, pong, 0);
    long turns = 0;
    double began = clock_us(CLOCK_MONOTONIC);
    for (; clock_us(CLOCK_MONOTONIC) - began < 1e6 * seconds; turns++)
        if (write(to[1], "x", 1) != 1 || read(fro[0], &byte, 1) != 1) abort();
    fprintf(stderr, "turns %ld\n", turns);
    close(to[1]);
    pthread_join(thread, 0);
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "pingpong")) return pingpong(atof(argv[2])), 0;
    int only_lock = argc == 2 && !strcmp(argv[1], "lock");
    pthread_t threads[8];
    int count = 0;
    for (int n = 0; n < 3; n++) pthread_create(&threads[count++], 0, convoy, &convoy_blocked[n]);
    if (!only_lock) {
        if (pipe(ends) || pipe(queue[0]) || pipe(queue[1])) abort();
        for (int n = 0; n < WAYS; n++) {
            sem_init(&ways[n].ready, 0, 0);
            pthread_create(&ways[n].waker, 0, waker, &ways[n]);
            pthread_create(&ways[n].waiter, 0, waiter, &ways[n]);
        }
        void *(*stages[])(void *) = {sink, middle, source, writer};
        for (int n = 0; n < 4; n++) pthread_create(&threads[count++], 0, stages[n], 0);
    }
    while (count) pthread_join(threads[--count], 0);
    for (int n = 0; n < WAYS && !only_lock; n++) {
        pthread_join(ways[n].waiter, 0);
        pthread_join(ways[n].waker, 0);
        fprintf(stderr, "%s %.0f\n", ways[n].name, ways[n].blocked);
    }
    fprintf(stderr, "convoy %.0f\n", convoy_blocked[0] + convoy_blocked[1] + convoy_blocked[2]);
    if (only_lock) return 0;
    fprintf(stderr, "sink %.0f\nfsync %.0f\n", queued, synced);
    return 0;
}
