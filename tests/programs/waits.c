/* Threads that wait in known ways and measure how long. Time off the CPU is wall-clock time less CPU time.
 * `waits`: one thread for each way. Prints a line "NAME BLOCKED LEAST MOST STOLEN" for each, in microseconds: the time
 * off the CPU in function wait_NAME, the bounds of the thread's lifetime, and the time that other virtual machines and
 * interrupts took. The clock counts stolen time, but no context switch shows it, and the timestamps of a switch
 * during which it falls differ by it.
 * `waits pingpong SECONDS`: two threads that wake each other as often as they can.
 * `waits for-ever`: a thread that sleeps again and again. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define WAIT(name) __attribute__((noinline)) static void wait_##name(void)
enum { TURNS = 60, PAUSE = 5 };

static double clock_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e6 * t.tv_sec + 1e-3 * t.tv_nsec;
}
static double wall(void) { return clock_us(CLOCK_MONOTONIC); }
static double off(void) { return wall() - clock_us(CLOCK_THREAD_CPUTIME_ID); }
/* Returns how long this thread has waited for a CPU, by the kernel's account, or 0 without one. The file was opened
   before, because opening one may block. */
static __thread int account = -1;
static double delayed(void) {
    char said[64] = "", *delay = said;
    if (account >= 0 && pread(account, said, sizeof said - 1, 0) <= 0) abort();
    strtoull(said, &delay, 10);
    return strtoull(delay, 0, 10) / 1e3;
}
/* Returns the time that other virtual machines took from all our CPUs, by the kernel's account. */
static double taken(void) {
    double ticks = 0;
    FILE *file = fopen("/proc/stat", "r");
    if (file && fscanf(file, "cpu %*f %*f %*f %*f %*f %*f %*f %lf", &ticks) != 1) ticks = 0;
    if (file) fclose(file);
    return ticks * 1e6 / sysconf(_SC_CLK_TCK);
}
static void pause_ms(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, 0); }

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int told, ends[2], disk;
static sem_t turn, done;
static void *block;
static double delay;

WAIT(sleep) { pause_ms(PAUSE); __asm__(""); }
WAIT(mutex) { pthread_mutex_lock(&held); __asm__(""); }
WAIT(condvar) {
    pthread_mutex_lock(&guard);
    while (!told) pthread_cond_wait(&changed, &guard);
    told--;
    pthread_mutex_unlock(&guard);
}
WAIT(pipe) { char byte; if (read(ends[0], &byte, 1) != 1) abort(); }
WAIT(disk) { if (disk >= 0 && pread(disk, block, 1 << 20, 0) < 0) abort(); }
WAIT(burn) {
    double before = delayed(), end = clock_us(CLOCK_THREAD_CPUTIME_ID) + 5000;
    while (clock_us(CLOCK_THREAD_CPUTIME_ID) < end) for (volatile int n = 0; n < 20000; n++);
    delay += delayed() - before;
}

/* The threads that end the waits, each a while after it has begun. */
static void *drive_mutex(void *unused) {
    for (int n = 0; n < TURNS; n++) {
        pthread_mutex_lock(&held);
        sem_post(&turn);
        pause_ms(PAUSE);
        pthread_mutex_unlock(&held);
        sem_wait(&done);
    }
    return 0;
}
static void *drive_condvar(void *unused) {
    for (int n = 0; n < TURNS; n++) {
        pause_ms(PAUSE);
        pthread_mutex_lock(&guard);
        told++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&guard);
    }
    return 0;
}
static void *drive_pipe(void *unused) {
    for (int n = 0; n < TURNS; n++) {
        pause_ms(PAUSE);
        if (write(ends[1], "x", 1) != 1) abort();
    }
    return 0;
}

static struct way {
    const char *name;
    void (*wait)(void);
    double blocked, began, ended, least, most;
    pthread_t thread;
} ways[] = {{"sleep", wait_sleep}, {"mutex", wait_mutex}, {"condvar", wait_condvar},
            {"pipe", wait_pipe},   {"disk", wait_disk},   {"burn", wait_burn}};
enum { WAYS = sizeof ways / sizeof *ways };

static void *work(void *argument) {
    struct way *way = argument;
    prctl(PR_SET_NAME, way->name);
    account = open("/proc/thread-self/schedstat", O_RDONLY);
    double began = wall();
    for (int n = 0; n < TURNS; n++) {
        int is_mutex = way->wait == wait_mutex;
        if (is_mutex) sem_wait(&turn);
        double before = off();
        way->wait();
        way->blocked += off() - before;
        if (is_mutex) {
            pthread_mutex_unlock(&held);
            sem_post(&done);
        }
    }
    way->least = wall() - began;
    return 0;
}

static int to[2], fro[2];
static void *pong(void *unused) {
    char byte;
    prctl(PR_SET_NAME, "pong");
    while (read(to[0], &byte, 1) == 1) if (write(fro[1], &byte, 1) != 1) abort();
    return 0;
}
__attribute__((noinline)) static void wait_pong(void) { char byte; if (read(fro[0], &byte, 1) != 1) abort(); }
static void pingpong(double seconds) {
    pthread_t thread;
    if (pipe(to) || pipe(fro)) abort();
    pthread_create(&thread, 0, pong, 0);
    long turns = 0;
    double began = wall(), before = off();
    for (; wall() - began < 1e6 * seconds; turns++) {
        if (write(to[1], "x", 1) != 1) abort();
        wait_pong();
    }
    fprintf(stderr, "pong %.0f %.0f %ld 0\n", off() - before, wall() - began, turns);
    close(to[1]);
    pthread_join(thread, 0);
}

int main(int count, char **words) {
    if (count > 2) return pingpong(atof(words[2])), 0;
    if (count > 1) for (;;) wait_sleep();
    disk = open(getenv("WAITS_FILE") ? getenv("WAITS_FILE") : "waits.disk", O_RDONLY | O_DIRECT);
    if (posix_memalign(&block, 4096, 1 << 20) || pipe(ends) || sem_init(&turn, 0, 0) || sem_init(&done, 0, 0)) abort();
    double before = taken();
    pthread_t drivers[3];
    void *(*drive[3])(void *) = {drive_mutex, drive_condvar, drive_pipe};
    for (int n = 0; n < 3; n++) pthread_create(&drivers[n], 0, drive[n], 0);
    for (int n = 0; n < WAYS; n++) ways[n].began = wall(), pthread_create(&ways[n].thread, 0, work, &ways[n]);
    for (int n = 0; n < WAYS; n++) pthread_join(ways[n].thread, 0), ways[n].most = wall() - ways[n].began;
    for (int n = 0; n < 3; n++) pthread_join(drivers[n], 0);
    struct way *burn = &ways[WAYS - 1];
    double stolen = burn->blocked - delay, took = taken() - before;
    if (stolen < took) stolen = took;
    burn->blocked = delay;
    for (struct way *way = ways; way <= burn; way++)
        fprintf(stderr, "%s %.0f %.0f %.0f %.0f\n", way->name, way->blocked, way->least, way->most, stolen);
    return 0;
}
