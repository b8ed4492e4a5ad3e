/* `threads names` starts a thread for each odd name. `threads churn` starts threads one after another beside the main
   one, until it is killed. `threads empty COUNT` starts that many threads that end at once, `threads
   children COUNT` that many processes on stacks of their own, and `threads planted COUNT` on stacks whose first word looks like a
   return address, also by a function without unwind information, and `threads vforked COUNT` by one that holds its return address in a
   register. Linked with busy.c. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
void spin(double);
static void *work(void *name) { prctl(PR_SET_NAME, name); spin(0.03); return 0; }
static void *end(void *nothing) { return nothing; }
static void start_empty(int count) {
    pthread_t threads[50];
    for (; count > 0; count -= 50) {
        for (int n = 0; n < 50; n++) pthread_create(threads + n, 0, end, 0);
        for (int n = 0; n < 50; n++) pthread_join(threads[n], 0);
    }
}
static int exit_child(void *nothing) { return 0; }
/* What follows the stack of a child must not be taken for its caller. */
static struct { char stack[16384] __attribute__((aligned(16))); void *other; } memory = {.other = (char *) start_empty + 8};
static void start_children(int count) {
    for (; count > 0; count--) waitpid(clone(exit_child, memory.stack + sizeof memory.stack, CLONE_VM | SIGCHLD, 0), 0, 0);
}
#ifdef __x86_64__
/* `create` and `create_bare` make a process of the same memory on a stack that ends at `top`, which exits at once. Nobody calls `unused`, which would
   return to `planted`. */
int create(void *top);
int create_bare(void *top);
/* Like musl's vfork. */
int bare_vfork(void);
extern char planted[];
__asm__(
    ".text\n.globl create\n.type create, @function\ncreate:\n.cfi_startproc\n"
    "mov %rdi, %rsi\nmov $0x4111, %edi\nxor %edx, %edx\nxor %r10d, %r10d\nxor %r8d, %r8d\nmov $56, %eax\nsyscall\n"
    "test %rax, %rax\nje 1f\nret\n1:\n.cfi_undefined rip\nxor %edi, %edi\nmov $60, %eax\nsyscall\nud2\n"
    ".cfi_endproc\n.size create, . - create\n"
    ".globl create_bare\n.type create_bare, @function\ncreate_bare:\n"
    "lea 2f(%rip), %r9\nmov %rdi, %rsi\nmov $0x4111, %edi\nxor %edx, %edx\nxor %r10d, %r10d\nxor %r8d, %r8d\nmov $56, %eax\nsyscall\n"
    "test %eax, %eax\njne 1f\nxor %ebp, %ebp\npop %rdi\ncall *%r9\n2: xor %edi, %edi\nmov $60, %eax\nsyscall\nhlt\n1: ret\n"
    ".size create_bare, . - create_bare\n"
    ".globl bare_vfork\n.type bare_vfork, @function\nbare_vfork:\n"
    "pop %rdx\nmov $58, %eax\nsyscall\npush %rdx\nret\n.size bare_vfork, . - bare_vfork\n"
    ".type unused, @function\nunused:\n.cfi_startproc\nsub $8, %rsp\n.cfi_def_cfa_offset 16\ncall create\n"
    "planted: add $8, %rsp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size unused, . - unused\n");
static void start_planted(int count) {
    static void *stack[64] __attribute__((aligned(16)));
    stack[32] = planted;
    for (; count > 0; count--) waitpid((count % 2 ? create : create_bare)(stack + 32), 0, 0);
}
static void start_vforked(int count) {
    for (; count > 0; count--) {
        int child = bare_vfork();
        if (!child) _exit(0);
        waitpid(child, 0, 0);
    }
}
#else
static void start_vforked(int count) { start_children(count); }
static void start_planted(int count) { start_children(count); }
#endif
static const char *names[] = {"a;b", "new\nline", "", "   ", "two words", "\x1b[31mred", "\xff\xfe", "  lead", "1 2 3"};
int main(int count, char **words) {
    pthread_t thread;
    if (count > 2 && !strcmp(words[1], "empty")) return start_empty(atoi(words[2])), 0;
    if (count > 2 && !strcmp(words[1], "children")) return start_children(atoi(words[2])), 0;
    if (count > 2 && !strcmp(words[1], "planted")) return start_planted(atoi(words[2])), 0;
    if (count > 2 && !strcmp(words[1], "vforked")) return start_vforked(atoi(words[2])), 0;
    int churn = count > 1 && !strcmp(words[1], "churn");
    for (unsigned n = 0; churn || n < sizeof names / sizeof *names; n++) {
        pthread_create(&thread, 0, work, (void *) (churn ? "passing" : names[n]));
        if (churn) spin(0.03 * (n + 1));
        pthread_join(thread, 0);
    }
    return 0;
}
