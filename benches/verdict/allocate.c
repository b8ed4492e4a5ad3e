/* Allocating: lists, strings and tables come and go. `build_strings` has a fifth of the time and takes EXTRA percent
 * longer. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef EXTRA
#define EXTRA 0
#endif
#ifndef ROUNDS
#define ROUNDS 320
#endif
#define NOINLINE __attribute__((noinline))

/* Data, so that all builds have the same code. */
static volatile long percent = 100 + EXTRA;

struct node {
    struct node *next;
    uint64_t value;
    char text[24];
};

static volatile uint64_t sink;

NOINLINE static void build_strings(long n)
{
    uint64_t sum = 0;
    for (n = n * percent / 100; n; n--) {
        char text[48];
        for (int at = 0; at < 40; at++) text[at] = (char)('a' + (n * (at + 7) >> 3) % 26);
        text[40] = 0;
        for (int at = 0; at < 40; at++) sum = sum * 31 + (uint8_t)text[at];
    }
    sink = sum;
}
NOINLINE static struct node *build_list(long n)
{
    struct node *head = NULL;
    for (; n; n--) {
        struct node *node = malloc(sizeof *node + (size_t)(n % 5) * 16);
        if (!node) abort();
        node->next = head, node->value = (uint64_t)n * 2654435761u, head = node;
    }
    return head;
}
NOINLINE static uint64_t sum_list(const struct node *node)
{
    uint64_t sum = 0;
    for (; node; node = node->next) sum += node->value;
    return sum;
}
NOINLINE static void free_list(struct node *node)
{
    while (node) {
        struct node *next = node->next;
        free(node);
        node = next;
    }
}
NOINLINE static void grow_table(long n)
{
    size_t capacity = 16;
    uint64_t *table = malloc(capacity * sizeof *table);
    for (long at = 0; at < n; at++) {
        if ((size_t)at == capacity) table = realloc(table, (capacity *= 2) * sizeof *table);
        if (!table) abort();
        table[at] = (uint64_t)at * 40503;
    }
    sink = table[n / 2];
    free(table);
}
NOINLINE static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}
NOINLINE static void sort_keys(long n)
{
    uint64_t *keys = malloc((size_t)n * sizeof *keys), x = 88172645463325252u;
    if (!keys) abort();
    for (long at = 0; at < n; at++) x ^= x << 13, x ^= x >> 7, x ^= x << 17, keys[at] = x;
    qsort(keys, (size_t)n, sizeof *keys, compare);
    sink = keys[n / 2];
    free(keys);
}

NOINLINE static void lists(void)
{
    for (int again = 0; again < 3; again++) {
        struct node *list = build_list(20000);
        sink = sum_list(list);
        free_list(list);
    }
}
NOINLINE static void tables(void)
{
    grow_table(300000), sort_keys(8000), build_strings(7400);
}

int main(void)
{
    for (int round = 0; round < ROUNDS; round++) lists(), tables();
    return 0;
}
