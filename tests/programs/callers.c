// callers SECONDS DEPTH: two callers in turn, each with its own leaf, DEPTH frames of 1000 bytes apart. A stack is right if
// its leaf and its caller are of the same kind. Frames are not written as a whole, and each call takes 20 us to 500 us.
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sum;
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void spin(unsigned long rounds) {
    for (unsigned long round = 0; round < rounds; round++) sum += round ^ sum;
}
__attribute__((noinline)) void odd_leaf(unsigned long rounds) { spin(rounds); __asm__ volatile(""); }
__attribute__((noinline)) void even_leaf(unsigned long rounds) { spin(rounds + 1); __asm__ volatile(""); }

__attribute__((noinline)) void descend(int depth, void (*leaf)(unsigned long), unsigned long rounds) {
    char untouched[1000];
    __asm__ volatile("" ::"r"(untouched) : "memory");
    if (depth > 1) descend(depth - 1, leaf, rounds);
    else leaf(rounds);
    __asm__ volatile("" ::"r"(untouched) : "memory");
}

__attribute__((noinline)) void odd_caller(int depth, unsigned long rounds) { descend(depth, odd_leaf, rounds); __asm__ volatile(""); }
__attribute__((noinline)) void even_caller(int depth, unsigned long rounds) { descend(depth, even_leaf, rounds); __asm__ volatile(""); }

int main(int count, char **words) {
    double seconds = count > 1 ? atof(words[1]) : 1;
    int depth = count > 2 ? atoi(words[2]) : 100;
    for (unsigned call = 0; now() < seconds; call++) {
        unsigned long rounds = 10000 + (unsigned long)rand() % 240000;
        if (call & 1) odd_caller(depth, rounds);
        else even_caller(depth, rounds);
    }
    return 0;
}
