/* Waiting: four threads fetch and hand over to one that stores, two contend for a lock, one reads from a pipe. `store` sleeps
 * EXTRA percent longer. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifndef EXTRA
#define EXTRA 0
#endif
#ifndef ROUNDS
#define ROUNDS 100
#endif
#define NOINLINE __attribute__((noinline))

enum { FETCHERS = 4, CAPACITY = 2 };

/* Data, so that all builds have the same code. */
static volatile long percent = 100 + EXTRA;

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER, ledger = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_room = PTHREAD_COND_INITIALIZER, has_item = PTHREAD_COND_INITIALIZER;
static int queued, ends[2];

NOINLINE static void sleep_us(long us)
{
    struct timespec time = {0, us * 1000};
    nanosleep(&time, NULL);
}
NOINLINE static void fetch(unsigned *seed)
{
    sleep_us(1000 + rand_r(seed) % 2000);
    __asm__("");
}
NOINLINE static void hand_over(void)
{
    pthread_mutex_lock(&queue_lock);
    while (queued == CAPACITY) pthread_cond_wait(&has_room, &queue_lock);
    queued++;
    pthread_cond_signal(&has_item);
    pthread_mutex_unlock(&queue_lock);
}
NOINLINE static void take(void)
{
    pthread_mutex_lock(&queue_lock);
    while (!queued) pthread_cond_wait(&has_item, &queue_lock);
    queued--;
    pthread_cond_signal(&has_room);
    pthread_mutex_unlock(&queue_lock);
}
NOINLINE static void store(void)
{
    sleep_us(1000 * percent / 100);
    __asm__("");
}
static void *fetcher(void *number)
{
    unsigned seed = (unsigned)(size_t)number;
    for (int n = 0; n < ROUNDS; n++) fetch(&seed), hand_over();
    return NULL;
}
static void *storer(void *none)
{
    for (int n = 0; n < FETCHERS * ROUNDS; n++) take(), store();
    return none;
}
NOINLINE static void post(void)
{
    pthread_mutex_lock(&ledger);
    sleep_us(700);
    pthread_mutex_unlock(&ledger);
}
NOINLINE static void rest(unsigned *seed)
{
    sleep_us(200 + rand_r(seed) % 600);
    __asm__("");
}
static void *clerk(void *number)
{
    unsigned seed = 77 + (unsigned)(size_t)number;
    for (int n = 0; n < 2 * ROUNDS; n++) post(), rest(&seed);
    return NULL;
}
NOINLINE static int receive(void)
{
    char byte;
    return read(ends[0], &byte, 1) == 1;
}
static void *reader(void *none)
{
    while (receive());
    return none;
}
NOINLINE static void tick(void)
{
    sleep_us(4000);
    if (write(ends[1], "x", 1) != 1) abort();
}

int main(void)
{
    pthread_t threads[FETCHERS + 4];
    int count = 0;
    if (pipe(ends)) return 1;
    for (size_t n = 0; n < FETCHERS; n++) pthread_create(&threads[count++], NULL, fetcher, (void *)n);
    for (size_t n = 0; n < 2; n++) pthread_create(&threads[count++], NULL, clerk, (void *)n);
    pthread_create(&threads[count++], NULL, storer, NULL);
    pthread_create(&threads[count++], NULL, reader, NULL);
    for (int n = 0; n < ROUNDS; n++) tick();
    close(ends[1]);
    for (int n = 0; n < count; n++) pthread_join(threads[n], NULL);
    return 0;
}
