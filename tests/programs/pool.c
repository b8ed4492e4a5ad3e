/* `pool THREADS SECONDS`: threads that each work for 3 ms of CPU time five times a second. Linked with busy.c. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
void spin(double);
static time_t end;
static void *work(void *offset) {
    double total = 0;
    usleep((long) offset);
    while (time(0) < end) { spin(total += 0.003); usleep(200000); }
    return 0;
}
int main(int count, char **words) {
    int threads = atoi(words[1]);
    pthread_t ids[threads];
    end = time(0) + atoi(words[2]);
    for (long n = 0; n < threads; n++) pthread_create(ids + n, 0, work, (void *) (n * 200000 / threads));
    for (int n = 0; n < threads; n++) pthread_join(ids[n], 0);
    return 0;
}
