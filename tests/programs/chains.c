/* Threads that wait for threads that wait themselves, and measure how long. `chains pipeline`: an item passes three stages. The
 * first one takes SLOW milliseconds for each, the second one QUICK: the third waits for the second, which waits for the first.
 * `chains lock`: the holder of a mutex waits for a disk, and then sleeps for QUICK milliseconds, while another thread wants the
 * mutex. `chains outsider PIPE`: a process writes into a pipe, changes its name, writes more, and again as another program.
 * `chains exit`: a process waits for a child whose first thread has exited, and whose other one sleeps.
 * `chains hang`: a thread wants a mutex whose holder waits for ever for a signal.
 * `chains turns`: a thread is blocked in seventeen places, one after the other. Prints on standard error for each kind of wait the time in microseconds that a thread was not on a CPU in it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ITEMS = 80, SLOW = 6, QUICK = 3 };

#define APART __attribute__((noinline))
/* Code behind a call keeps it from becoming a jump. */
#define RETURN_HERE __asm__ volatile("")

static double clock_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e6 * t.tv_sec + 1e-3 * t.tv_nsec;
}
static double off_cpu(void) { return clock_us(CLOCK_MONOTONIC) - clock_us(CLOCK_THREAD_CPUTIME_ID); }
static void pause_ms(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, 0); }

#define MEASURE(sum, action) do { double before = off_cpu(); action; sum += off_cpu() - before; } while (0)

static int queue[2][2];
APART static void put(int stage) { if (write(queue[stage][1], "x", 1) != 1) abort(); RETURN_HERE; }
APART static void take_first(void) { char byte; if (read(queue[0][0], &byte, 1) != 1) abort(); RETURN_HERE; }
APART static void take_second(void) { char byte; if (read(queue[1][0], &byte, 1) != 1) abort(); RETURN_HERE; }
APART static void work_slowly(void) { pause_ms(SLOW); RETURN_HERE; }
APART static void work_quickly(void) { pause_ms(QUICK); RETURN_HERE; }

static double middle_taking, middle_working, last_taking;
static void *first(void *unused) {
    prctl(PR_SET_NAME, "first");
    for (int n = 0; n < ITEMS; n++) {
        work_slowly();
        put(0);
    }
    return 0;
}
static void *middle(void *unused) {
    prctl(PR_SET_NAME, "middle");
    for (int n = 0; n < ITEMS; n++) {
        MEASURE(middle_taking, take_first());
        MEASURE(middle_working, work_quickly());
        put(1);
    }
    return 0;
}
static void *last(void *unused) {
    prctl(PR_SET_NAME, "last");
    for (int n = 0; n < ITEMS; n++) MEASURE(last_taking, take_second());
    return 0;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;
static double holder_storing, wanter_waiting;
static int file = -1;
APART static void store(void) {
    static char block[1 << 16];
    if (file >= 0 && (pwrite(file, block, sizeof block, 0) < 0 || fsync(file))) abort();
    pause_ms(QUICK);
    RETURN_HERE;
}
APART static void acquire(void) { pthread_mutex_lock(&mutex); RETURN_HERE; }
APART static void release(void) { pthread_mutex_unlock(&mutex); RETURN_HERE; }
static void *holder(void *unused) {
    const char *name = getenv("CHAINS_FILE");
    prctl(PR_SET_NAME, "holder");
    if (name) file = open(name, O_CREAT | O_WRONLY, 0600);
    for (int n = 0; n < ITEMS; n++) {
        acquire();
        pthread_barrier_wait(&start);
        MEASURE(holder_storing, store());
        release();
        pthread_barrier_wait(&start);
    }
    return 0;
}
static void *wanter(void *unused) {
    prctl(PR_SET_NAME, "wanter");
    for (int n = 0; n < ITEMS; n++) {
        pthread_barrier_wait(&start);
        MEASURE(wanter_waiting, acquire());
        release();
        pthread_barrier_wait(&start);
    }
    return 0;
}

static void write_lines(int pipe) {
    for (int n = 0; n < 150; n++) {
        pause_ms(QUICK);
        if (write(pipe, "x\n", 2) != 2) abort();
    }
}
APART static void write_first(int pipe) { write_lines(pipe); RETURN_HERE; }
APART static void write_renamed(int pipe) { write_lines(pipe); RETURN_HERE; }
APART static void write_replaced(int pipe) { write_lines(pipe); RETURN_HERE; }
static void outsider(const char *name) {
    int pipe = open(name, O_WRONLY);
    write_first(pipe);
    prctl(PR_SET_NAME, "renamed");
    write_renamed(pipe);
    char number[12];
    snprintf(number, sizeof number, "%d", pipe);
    execl("/proc/self/exe", "chains", "replaced", number, (char *) 0);
    abort();
}

#define PLACES(X) X(a) X(b) X(c) X(d) X(e) X(f) X(g) X(h) X(i) X(j) X(k) X(l) X(m) X(n) X(o) X(p) X(q)
#define PLACE(name) APART static void place_##name(void) { nanosleep(&(struct timespec){0, 1000}, 0); RETURN_HERE; }
#define CALL(name) place_##name();
PLACES(PLACE)
APART static void turns(void) { for (int n = 0; n < 500; n++) { PLACES(CALL) } }

APART static void linger(void) { pause_ms(50 * QUICK); RETURN_HERE; }
static void *exit_last(void *unused) {
    prctl(PR_SET_NAME, "exits_last");
    linger();
    return 0;
}
APART static void wait_for(pid_t child) { if (waitpid(child, 0, 0) != child) abort(); RETURN_HERE; }
static void exit_apart(void) {
    pthread_t thread;
    pid_t child = fork();
    if (child) return wait_for(child);
    pthread_create(&thread, 0, exit_last, 0);
    pthread_exit(0);
}

APART static void wait_for_ever(void) { pause(); RETURN_HERE; }
static void *stuck(void *unused) {
    prctl(PR_SET_NAME, "stuck");
    acquire();
    return 0;
}
static void hang(void) {
    pthread_t thread;
    acquire();
    pthread_create(&thread, 0, stuck, 0);
    wait_for_ever();
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "turns")) return turns(), 0;
    if (argc == 2 && !strcmp(argv[1], "hang")) return hang(), 0;
    if (argc == 2 && !strcmp(argv[1], "exit")) return exit_apart(), 0;
    if (argc == 3 && !strcmp(argv[1], "outsider")) return outsider(argv[2]), 0;
    if (argc == 3 && !strcmp(argv[1], "replaced")) return write_replaced(atoi(argv[2])), 0;
    int is_pipeline = argc == 2 && !strcmp(argv[1], "pipeline");
    void *(*functions[])(void *) = {last, middle, first, holder, wanter};
    pthread_t threads[3];
    int count = 0;
    if (pipe(queue[0]) || pipe(queue[1]) || pthread_barrier_init(&start, 0, 2)) abort();
    for (int n = is_pipeline ? 0 : 3; n < (is_pipeline ? 3 : 5); n++) pthread_create(&threads[count++], 0, functions[n], 0);
    while (count) pthread_join(threads[--count], 0);
    fprintf(stderr, "middle_taking %.0f\nmiddle_working %.0f\nlast_taking %.0f\n", middle_taking, middle_working, last_taking);
    fprintf(stderr, "holder_storing %.0f\nwanter_waiting %.0f\n", holder_storing, wanter_waiting);
    return 0;
}
