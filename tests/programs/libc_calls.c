/* libc_calls SECONDS: three functions in turn, each of which calls other functions of the C library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static char from[1 << 16], to[1 << 16];
static int numbers[5000];
static volatile int sink;
static int compare(const void *a, const void *b) { return *(const int *) a - *(const int *) b; }
__attribute__((noinline)) int copy(void) {
    for (int n = 0; n < 200; n++) memcpy(to, from, sizeof to - n);
    return to[7];
}
__attribute__((noinline)) int sort(void) {
    for (int n = 0; n < 5000; n++) numbers[n] = n * 7919 % 5003;
    qsort(numbers, 5000, sizeof *numbers, compare);
    return numbers[3];
}
__attribute__((noinline)) int print(void) {
    int length = 0;
    for (int n = 0; n < 500; n++) length += snprintf(to, sizeof to, "%d %s %g", n, "text", n * 1.37);
    return length;
}
/* Writes to the pages of the stack that `print` needs: the kernel's copy of a stack ends at one that is not in memory. */
__attribute__((noinline)) int touch(void) {
    char pages[1 << 16];
    memset(pages, 1, sizeof pages);
    return ((volatile char *) pages)[numbers[0]];
}
int main(int count, char **words) {
    sink = touch();
    double end = atof(words[1]) * CLOCKS_PER_SEC;
    while (clock() < end) sink += copy() + sort() + print();
    return 0;
}
