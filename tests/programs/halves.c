/* `halves DEPTH ROUNDS STEPS` makes that many steps in `deep_half`, called so deeply, and as many in `shallow_half`, in turn. */
#include <stdlib.h>
static volatile double sum;
static inline __attribute__((always_inline)) void divide(int steps) {
    for (int n = 1; n < steps; n++) sum += 1.0 / n;
}
__attribute__((noinline)) void deep_half(int steps) { divide(steps); }
__attribute__((noinline)) void shallow_half(int steps) { divide(steps); }
__attribute__((noinline)) static void call(int depth, int steps) {
    if (depth) call(depth - 1, steps);
    else deep_half(steps);
    sum += 1;
}
int main(int count, char **words) {
    int steps = atoi(words[3]);
    for (int n = atoi(words[2]); n > 0; n--) {
        call(atoi(words[1]), steps);
        shallow_half(steps);
    }
}
