/* `sizes write` writes bytes, `sizes grab` allocates memory, `sizes touch` touches pages, `sizes apart` allocates memory in
   10 processes and 10 threads of its own. Each prints the number of bytes or pages on standard error, but the last that of the
   processes and threads which could be created. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static char block[3000];
static long sum;
__attribute__((noinline)) void write_big(int file) { sum += write(file, block, 3000); __asm__(""); }
__attribute__((noinline)) void write_small(int file) { sum += write(file, block, 1000); __asm__(""); }
__attribute__((noinline)) void *grab(int other, size_t size) { sum += size; return malloc(size + other); }
__attribute__((noinline)) void touch(char *pages, int count) {
    for (int n = 0; n < count; n++) pages[4096L * n] = 1, sum++;
}
static void *grab_apart(void *unused) {
    for (int n = 0; n < 10; n++) free(grab(1, 10));
    return unused;
}
static int create_apart(void) {
    int created = 0;
    pthread_t thread;
    for (int n = 0; n < 10; n++) {
        pid_t child = fork();
        if (!child) _exit(grab_apart(0) != 0);
        created += child > 0 && waitpid(child, 0, 0) == child;
        created += !pthread_create(&thread, 0, grab_apart, 0) && !pthread_join(thread, 0);
    }
    return created;
}
int main(int count, char **words) {
    int ends[2];
    if (!strcmp(words[1], "write")) {
        if (pipe(ends)) return 1;
        for (int n = 0; n < 10; n++) write_big(ends[1]), write_small(ends[1]);
        write(-1, block, 1000);
        for (long left = sum; left > 0;) left -= read(ends[0], block, sizeof block);
    }
    if (!strcmp(words[1], "grab")) for (int n = 0; n < 100; n++) free(grab(1, 10 * n));
    if (!strcmp(words[1], "apart")) sum = create_apart();
    if (!strcmp(words[1], "touch")) {
        int pages = 2000;
        char *memory = mmap(0, 4096L * pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory, 4096L * pages, MADV_NOHUGEPAGE);
        touch(memory, pages);
    }
    fprintf(stderr, "%ld\n", sum);
    return 0;
}
