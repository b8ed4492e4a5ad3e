/* `generated ROUNDS`: a storm of code that is generated, run and unmapped, in threads and in children. `run_a` calls a copy of a
   stub that calls `in_a`, `run_b` one that calls `in_b`. Both stubs are at the same addresses by turns. A stack is right if `in_a`
   is below `run_a`, and `in_b` below `run_b`. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN __attribute__((noinline)) static

static volatile unsigned long sink;
static int rounds;

OWN void in_a(void) { for (unsigned n = 0; n < 60000; n++) sink += n * sink; }
OWN void in_b(void) { for (unsigned n = 0; n < 60000; n++) sink += n ^ sink; }

/* Runs a stub that is generated: push %rbp; mov %rsp, %rbp; movabs FUNCTION, %rax; call *%rax; pop %rbp; ret. */
static void generate(void (*function)(void), int is_shared) {
    unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
    int kind = is_shared ? MAP_SHARED : MAP_PRIVATE;
    unsigned char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) exit(1);
    memcpy(code + 6, &function, 8);
    memcpy(page, code, sizeof code);
    if (mprotect(page, 4096, PROT_READ | PROT_EXEC)) exit(1);
    ((void (*)(void)) page)();
    munmap(page, 4096);
    sink++;
}
OWN void run_a(int is_shared) { generate(in_a, is_shared); sink++; }
OWN void run_b(int is_shared) { generate(in_b, is_shared); sink++; }

static void *work(void *argument) {
    for (int n = 0; n < rounds; n++) {
        run_a(n & 2);
        run_b(n & 2);
    }
    return argument;
}

int main(int count, char **words) {
    rounds = count > 1 ? atoi(words[1]) : 20;
    for (int child = 0; child < 8; child++) {
        if (!fork()) {
            pthread_t thread;
            pthread_create(&thread, 0, work, 0);
            work(0);
            pthread_join(thread, 0);
            exit(0);
        }
        if (child & 1) wait(0);
    }
    work(0);
    while (wait(0) > 0) continue;
    return 0;
}
