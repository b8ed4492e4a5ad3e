// Threads that wait for each other, with planted costs, in one of four ways:
//   paths join       main creates two workers, which spin for 100 and 300 ms, and joins the shorter one first;
//   paths hang [FILE]     main waits for a worker that never ends, called "early name", then "a worker"; FILE is created then;
//   paths requests FILE   main makes three requests, which a worker serves in 30 ms each, and writes their spans to FILE;
//   paths pipeline   40 items pass through three stages, which spin for 1, 5 and 2 ms an item, with room for one item between them.
// Prints the elapsed time of the work, and the time that each of the workers or stages ran, in nanoseconds.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define ITEMS 40
#define MS 1000000L

static long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static long spin(long duration) {
    long start = now(CLOCK_THREAD_CPUTIME_ID), ran;
    while ((ran = now(CLOCK_THREAD_CPUTIME_ID) - start) < duration)
        for (volatile int i = 0; i < 1000; i++) {
        }
    return ran;
}

static long ran[3];

__attribute__((noinline)) static void *short_work(void *unused) {
    (void)unused;
    ran[0] = spin(100 * MS);
    return NULL;
}

__attribute__((noinline)) static void *long_work(void *unused) {
    (void)unused;
    ran[1] = spin(300 * MS);
    return NULL;
}

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int items;
};

static struct queue queues[2] = {{PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0},
                                 {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}};

__attribute__((noinline)) static void move_item(struct queue *queue, int change) {
    pthread_mutex_lock(&queue->lock);
    while (queue->items + change < 0 || queue->items + change > 1)
        pthread_cond_wait(&queue->changed, &queue->lock);
    queue->items += change;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

__attribute__((noinline)) static void *first_stage(void *unused) {
    (void)unused;
    for (int i = 0; i < ITEMS; i++) {
        ran[0] += spin(1 * MS);
        move_item(&queues[0], 1);
    }
    return NULL;
}

__attribute__((noinline)) static void *second_stage(void *unused) {
    (void)unused;
    for (int i = 0; i < ITEMS; i++) {
        move_item(&queues[0], -1);
        ran[1] += spin(5 * MS);
        move_item(&queues[1], 1);
    }
    return NULL;
}

__attribute__((noinline)) static void *third_stage(void *unused) {
    (void)unused;
    for (int i = 0; i < ITEMS; i++) {
        move_item(&queues[1], -1);
        ran[2] += spin(2 * MS);
    }
    return NULL;
}

__attribute__((noinline)) static void *endless_work(void *file) {
    prctl(PR_SET_NAME, "early name");
    usleep(1000);
    prctl(PR_SET_NAME, "a worker");
    usleep(1000);
    if (file != NULL)
        fclose(fopen(file, "w"));
    for (;;)
        usleep(1000);
    return NULL;
}

__attribute__((noinline)) static void wait_for_ever(char *file) {
    pthread_t worker;
    pthread_create(&worker, NULL, endless_work, file);
    pthread_join(worker, NULL);
    puts("never");
}

__attribute__((noinline)) static void *serve_requests(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "server");
    for (int i = 0; i < 3; i++) {
        move_item(&queues[0], -1);
        spin(30 * MS);
        move_item(&queues[1], 1);
    }
    return NULL;
}

__attribute__((noinline)) static void do_other_work(void) { spin(20 * MS); }
__attribute__((noinline)) static void prepare_request(void) { spin(10 * MS); }

static void write_span(FILE *spans, const char *name, long start, long end) {
    fprintf(spans, "{\"name\": \"%s\", \"tid\": %d, \"start\": %ld, \"end\": %ld}\n", name, getpid(), start, end);
}

static int make_requests(const char *path) {
    FILE *spans = fopen(path, "w");
    if (spans == NULL)
        return 1;
    pthread_t server;
    pthread_create(&server, NULL, serve_requests, NULL);
    for (int i = 0; i < 3; i++) {
        do_other_work();
        long start = now(CLOCK_MONOTONIC);
        prepare_request();
        move_item(&queues[0], 1);
        long inner = now(CLOCK_MONOTONIC);
        move_item(&queues[1], -1);
        write_span(spans, "answer", inner, now(CLOCK_MONOTONIC));
        write_span(spans, "request", start, now(CLOCK_MONOTONIC));
    }
    pthread_join(server, NULL);
    return fclose(spans);
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "hang") == 0)
        wait_for_ever(arguments[2]);
    if (count > 2 && strcmp(arguments[1], "requests") == 0)
        return make_requests(arguments[2]);
    int pipeline = count > 1 && strcmp(arguments[1], "pipeline") == 0;
    void *(*work[])(void *) = {short_work, long_work, NULL, first_stage, second_stage, third_stage};
    pthread_t threads[3];
    long start = now(CLOCK_MONOTONIC);
    int all = pipeline ? 3 : 2;
    for (int i = 0; i < all; i++)
        pthread_create(&threads[i], NULL, work[3 * pipeline + i], NULL);
    for (int i = 0; i < all; i++)
        pthread_join(threads[i], NULL);
    printf("elapsed=%ld ran=%ld,%ld,%ld\n", now(CLOCK_MONOTONIC) - start, ran[0], ran[1], ran[2]);
    return 0;
}
