/* Memory-bound: reads far apart, and long rows. `lookup` has a fifth of the time and takes EXTRA percent longer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef EXTRA
#define EXTRA 0
#endif
#ifndef ROUNDS
#define ROUNDS 20
#endif
#define NOINLINE __attribute__((noinline))

/* Data, so that all builds have the same code. */
static volatile long percent = 100 + EXTRA;

enum { CELLS = 1 << 23 }; /* 64 MiB */

static uint64_t *cells;
static volatile uint64_t sink;

NOINLINE static void lookup(long n)
{
    uint64_t at = sink, sum = 0;
    for (n = n * percent / 100; n; n--) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        sum += cells[at >> 41];
    }
    sink = sum;
}
NOINLINE static void chase(long n)
{
    uint64_t at = sink % CELLS;
    for (; n; n--) at = (cells[at] * 2654435761u + (uint64_t)n) % CELLS;
    sink = at;
}
NOINLINE static void sum_rows(int rows)
{
    uint64_t sum = 0;
    for (long at = 0; at < (long)rows << 16; at++) sum += cells[at % CELLS];
    sink = sum;
}
NOINLINE static void sum_columns(int columns)
{
    uint64_t sum = 0;
    for (int column = 0; column < columns; column++)
        for (long at = column; at < CELLS; at += 512) sum += cells[at];
    sink = sum;
}
NOINLINE static void copy_rows(int rows)
{
    for (int row = 0; row < rows; row++)
        memmove(cells + (row % 32 << 16), cells + ((row % 32 + 40) << 16), 1 << 19);
}
NOINLINE static void scatter(long n)
{
    uint64_t at = sink;
    for (; n; n--) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        cells[at >> 41] += (uint64_t)n;
    }
    sink = at;
}

NOINLINE static void scan(void)
{
    sum_rows(120), sum_columns(24), copy_rows(24);
}
NOINLINE static void query(void)
{
    lookup(1000000), chase(70000), scatter(300000);
}

int main(void)
{
    cells = malloc(sizeof *cells * CELLS);
    if (!cells) return 1;
    for (long at = 0; at < CELLS; at++) cells[at] = (uint64_t)at * 40503;
    for (int round = 0; round < ROUNDS; round++) scan(), query();
    free(cells);
    return 0;
}
