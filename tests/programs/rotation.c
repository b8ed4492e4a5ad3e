// rotation SECONDS: 17 functions in turn, each of which calls the kernel once.
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sum;

#define CALLER(number) \
    __attribute__((noinline)) static void caller_##number(void) { \
        for (int round = 0; round < 1000; round++) sum += round ^ number; \
        syscall(SYS_getppid); \
        sum++; \
    }
#define ALL(of) of(1) of(2) of(3) of(4) of(5) of(6) of(7) of(8) of(9) of(10) of(11) of(12) of(13) of(14) of(15) of(16) of(17)
#define CALL(number) caller_##number();
ALL(CALLER)

int main(int count, char **words) {
    double seconds = count > 1 ? atof(words[1]) : 1;
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int turn = 0; turn < 100; turn++) { ALL(CALL) }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) + (now.tv_nsec - start.tv_nsec) * 1e-9 < seconds);
    return 0;
}
