/* Uses about 300 ms of CPU time in `handler`, a signal handler that interrupts `interrupted`. */
#include <signal.h>
#include <time.h>
static volatile unsigned long sum;
static volatile int is_over;
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
__attribute__((noinline)) void handler(int signal) {
    for (unsigned long n = 1; n < 100000; n++) sum += sum / n;
    is_over = now() > 0.3;
}
__attribute__((noinline)) void interrupted(void) {
    raise(SIGUSR1);
    sum++;
}
int main(void) {
    signal(SIGUSR1, handler);
    while (!is_over) interrupted();
    return 0;
}
