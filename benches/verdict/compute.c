/* Compute-bound: integer and floating-point arithmetic in registers. `mix` has a fifth of the time and takes EXTRA
 * percent longer. */
#include <math.h>
#include <stdint.h>

#ifndef EXTRA
#define EXTRA 0
#endif
#ifndef ROUNDS
#define ROUNDS 220
#endif
#define NOINLINE __attribute__((noinline))

/* Data, so that all builds have the same code. */
static volatile long percent = 100 + EXTRA;

static volatile uint64_t sink;
static volatile double real_sink;

NOINLINE static void mix(long n)
{
    uint64_t x = sink | 1;
    for (n = n * percent / 100; n; n--) x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    sink = x;
}
NOINLINE static void hash(long n)
{
    uint64_t x = sink;
    for (; n; n--) x = (x ^ (uint64_t)n) * 1099511628211u;
    sink = x;
}
NOINLINE static void divide(long n)
{
    uint64_t x = sink | 1ull << 60;
    for (; n; n--) x = x / ((uint64_t)n | 3) + (1ull << 60);
    sink = x;
}
NOINLINE static void root(long n)
{
    double x = real_sink + 2;
    for (; n; n--) x = sqrt(x + (double)n);
    real_sink = x;
}
NOINLINE static void polynomial(long n)
{
    double x = 0.5, y = 0;
    for (; n; n--) y = ((y * x + 1.25) * x - 0.75) * x + 0.5;
    real_sink = y;
}
NOINLINE static void branch(long n)
{
    uint64_t x = sink | 1, count = 0;
    for (; n; n--) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        if (x & 1) count += x >> 60;
        else count ^= x;
    }
    sink = count | 1;
}
NOINLINE static void shift(long n)
{
    uint64_t x = sink | 1;
    for (; n; n--) x = x << 7 | x >> 57, x += (uint64_t)n;
    sink = x;
}

NOINLINE static void simulate(void)
{
    divide(190000), root(160000), polynomial(60000);
}
NOINLINE static void scramble(void)
{
    mix(560000), hash(420000), branch(140000), shift(360000);
}

int main(void)
{
    for (int round = 0; round < ROUNDS; round++) simulate(), scramble();
    return 0;
}
