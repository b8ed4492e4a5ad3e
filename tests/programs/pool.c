/* `pool THREADS SECONDS`: threads that each work for 3 ms of CPU time five times a second, until SECONDS after the last of them was
   started: that takes a while if each is recorded. Linked with busy.c. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
void spin(double);
static volatile double end = 1e300;
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
static void *work(void *offset) {
    double total = 0;
    usleep((long) offset);
    while (now() < end) { spin(total += 0.003); usleep(200000); }
    return 0;
}
int main(int count, char **words) {
    int threads = atoi(words[1]);
    pthread_t ids[threads];
    for (long n = 0; n < threads; n++) pthread_create(ids + n, 0, work, (void *) (n * 200000 / threads));
    end = now() + atof(words[2]);
    for (int n = 0; n < threads; n++) pthread_join(ids[n], 0);
    return 0;
}
