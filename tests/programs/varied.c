/* Twenty functions that use memory, branches and libraries like real programs, so that one run differs a little from
   the next. -DSECONDS is the CPU time of a run. -DSLOWER=2 makes `divide` take twice its 6 % of the time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef SLOWER
#define SLOWER 1
#endif
#define OWN __attribute__((noinline)) static

static volatile unsigned long sink;
static unsigned long state = 88172645463325252ul;
static unsigned char memory[1 << 22];
static char text[60001];

OWN unsigned long any(void) { state ^= state << 13; state ^= state >> 7; return state ^= state << 17; }

struct node { struct node *left, *right; unsigned long key; };

OWN struct node *insert(struct node *root, unsigned long key) {
    struct node **place = &root;
    while (*place) place = key < (*place)->key ? &(*place)->left : &(*place)->right;
    *place = calloc(1, sizeof **place);
    (*place)->key = key;
    return root;
}
OWN unsigned long walk(struct node *node) { return node ? walk(node->left) + node->key + walk(node->right) : 0; }
OWN void release(struct node *node) { if (node) { release(node->left); release(node->right); free(node); } }
OWN void tree(void) {
    struct node *root = 0;
    for (int i = 0; i < 250; i++) root = insert(root, any());
    sink += walk(root);
    release(root);
}
OWN int compare(const void *a, const void *b) {
    unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;
    return (x > y) - (x < y);
}
OWN void sort(void) {
    unsigned long numbers[400];
    for (int i = 0; i < 400; i++) numbers[i] = any();
    qsort(numbers, 400, sizeof *numbers, compare);
    sink += numbers[3];
}
OWN void format(void) {
    char line[100];
    for (int i = 0; i < 120; i++) sink += snprintf(line, sizeof line, "%ld %s %x", (long)any() % 1000, "name", i);
}
OWN unsigned long number(const char *at) { unsigned long n = 0; while (*at >= '0') n = n * 10 + *at++ - '0'; return n; }
OWN void parse(void) { for (char *at = text; at < text + 30000; at = strchr(at, ',') + 1) sink += number(at); }
OWN void multiply(void) {
    static double a[40][40], b[40][40], c[40][40];
    for (int i = 0; i < 40; i++)
        for (int j = 0; j < 40; j++) {
            double sum = 0;
            for (int k = 0; k < 40; k++) sum += a[i][k] * b[k][j];
            c[i][j] = sum;
            a[j][i] += 1e-9;
        }
    sink += (long)c[3][3];
}
OWN void histogram(void) { static unsigned counts[4096]; for (int i = 0; i < 8000; i++) counts[any() & 4095]++; }
OWN void scatter(void) { for (int i = 0; i < 4000; i++) memory[any() & ((1 << 22) - 1)] += i; }
OWN void copy(void) { memcpy(memory, memory + (1 << 21), 60000); memmove(memory + 100, memory, 60000); }
OWN void checksum(void) {
    unsigned a = 1, b = 0;
    for (int i = 0; i < 14000; i++) { a = (a + memory[i]) % 65521; b = (b + a) % 65521; }
    sink += b;
}
OWN void divide(void) { for (unsigned long i = 1; i < 4000 * SLOWER; i++) sink += (sink | 1000000007ul * i) / i; }
OWN void waves(void) { double sum = 0; for (int i = 0; i < 1500; i++) sum += sin(i * .1) * exp(-i * .001); sink += sum; }
OWN void allocate(void) {
    void *blocks[200];
    for (int i = 0; i < 200; i++) blocks[i] = malloc(16 + any() % 500);
    for (int i = 0; i < 200; i++) free(blocks[i * 7 % 200]);
}

int main(void) {
    struct timespec t;
    for (int i = 0; i < 60000; i++) text[i] = i % 5 == 4 ? ',' : '0' + i % 10;
    do {
        for (int i = 0; i < 10; i++) {
            tree(); sort(); format(); parse(); multiply(); histogram(); scatter(); copy(); checksum(); divide(); waves();
            allocate();
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    } while (t.tv_sec + 1e-9 * t.tv_nsec < SECONDS);
    return 0;
}
