// Sleeps for a moment again and again, and now and then for 20 ms, each time in another function: 20 of
// them, rare_00 to rare_23.
#include <time.h>

#define NOINLINE __attribute__((noinline))

static void nap(long microseconds) {
    struct timespec time = {0, microseconds * 1000};
    nanosleep(&time, 0);
}

NOINLINE static void frequent(void) {
    nap(1);
    __asm__ volatile("");
}

#define RARE(number) \
    NOINLINE static void rare_##number(void) { \
        nap(20000); \
        __asm__ volatile("" ::"i"(number)); \
    }
#define ALL(do) \
    do(00) do(01) do(02) do(03) do(04) do(05) do(06) do(07) do(10) do(11) \
    do(12) do(13) do(14) do(15) do(16) do(17) do(20) do(21) do(22) do(23)
ALL(RARE)

#define CALL(number) \
    for (int i = 0; i < 100; i++) frequent(); \
    rare_##number();

int main(void) {
    ALL(CALL)
    return 0;
}
