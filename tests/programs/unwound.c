/* Programs whose stacks are hard to unwind. Compiled without frame pointers.
   `deep`: recursion 200 calls deep.
   `wide`: frames that are larger together than a copied stack, and that come and go.
   `requests MS`, `naps MS`: two kinds of requests by turns in the same places of the stack, at work or asleep in them.
   `turns`: two kinds of deep calls by turns in the same places of the stack.
   `buffers`: like `turns`, with frames that have buffers which are not written.
   `shallows`: like `turns`, but one of the two is shallow and takes longer.
   `alarmed`: a signal handler that interrupts qsort's callback.
   `realigned`: a function that keeps its frame address in rbx.
   `switched`: a thread that works on a stack at a higher address than its own.
   `rootless`: a function whose return address is undefined, by its CIE, and one in which it is for two instructions alone.
   `null`: the handler of a signal for the call of a null pointer.
   `suspended`: the handler of a signal for which a function waits with its last instruction.
   `vsyscall`: calls a function at a fixed address that the kernel executes.
   `contexts`: works on a stack of its own (makecontext).
   `repeated`: a loop of one instruction, the first of a function whose address is where a system call leaves the one behind it. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
static volatile unsigned long sink;
static void work(unsigned rounds) { for (unsigned n = 0; n < rounds; n++) sink += n * sink; }
__attribute__((noinline)) unsigned long deep(int depth) {
    if (!depth) { work(20000); return sink; }
    return deep(depth - 1) + 1;
}
__attribute__((noinline)) unsigned long wide(int depth, unsigned seed) {
    volatile char frame[7000];
    frame[seed % sizeof frame] = seed;
    unsigned long sum = frame[seed % sizeof frame];
    work(3000);
    for (unsigned n = 0; depth && n < 3; n++) sum += wide(depth - 1, seed * 1103515245 + n);
    return sum + frame[0];
}
static int compare(const void *a, const void *b) { work(20); return *(const int *) a - *(const int *) b; }
/* The handler sets the alarm again when it is done, so that the program gets on however slow the machine is. */
static void alarm_soon(void) { setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 1000}}, 0); }
static void alarmed(int signal) { work(800000); alarm_soon(); }
static void sort(void) {
    struct sigaction action = {.sa_handler = alarmed};
    static int numbers[400000];
    sigaction(SIGALRM, &action, 0);
    alarm_soon();
    for (int n = 0; n < 400000; n++) numbers[n] = rand();
    qsort(numbers, 400000, sizeof *numbers, compare);
}
static int naps;
static void work_for_ms(double ms) {
    double now, end = 0;
    if (naps) {
        nanosleep(&(struct timespec){0, ms * 1e6}, 0);
        return;
    }
    do {
        struct timespec t;
        work(3000);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        now = t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
        if (!end) end = now + ms * (0.5 + rand() / (double) RAND_MAX);
    } while (now < end);
}
__attribute__((noinline)) void odd(double ms) { work_for_ms(ms); }
__attribute__((noinline)) void even(double ms) { work_for_ms(ms); __asm__(""); }
static double length = 10;
__attribute__((noinline)) int serve(void (*how)(double)) {
    volatile char frame[20000];
    frame[0] = rand();
    how(length);
    return frame[0];
}
__attribute__((noinline)) int odd_request(void) { return serve(odd) + 1; }
__attribute__((noinline)) int even_request(void) { return serve(even) + 2; }
__attribute__((noinline)) int odd_call(int depth) {
    volatile char frame[2000];
    frame[0] = depth;
    if (!depth) odd(4);
    return (depth ? odd_call(depth - 1) : 0) + frame[0];
}
__attribute__((noinline)) int even_call(int depth) {
    volatile char frame[2000];
    frame[0] = depth;
    if (!depth) even(4);
    return (depth ? even_call(depth - 1) : 0) + frame[0] + 1;
}
/* Neither writes its buffers, so that they contain what the other left there. */
__attribute__((noinline)) unsigned long odd_buffer(int depth) {
    char buffer[208];
    __asm__ volatile("" :: "r"(buffer));
    if (!depth) work(200000);
    unsigned long sum = depth ? odd_buffer(depth - 1) + 1 : 0;
    __asm__ volatile("" :: "r"(buffer));
    return sum;
}
__attribute__((noinline)) unsigned long even_buffer(int depth) {
    char buffer[336];
    __asm__ volatile("" :: "r"(buffer));
    if (!depth) work(200000);
    unsigned long sum = depth ? even_buffer(depth - 1) + 2 : 0;
    __asm__ volatile("" :: "r"(buffer));
    return sum;
}
/* Deep calls, and shallow ones that take ten times as long. Below the shallow ones, the stack of the deep calls stays as
   it was. */
__attribute__((noinline)) unsigned long odd_depth(int depth) {
    char buffer[600];
    __asm__ volatile("" :: "r"(buffer) : "memory");
    if (!depth) work(100000);
    unsigned long sum = depth ? odd_depth(depth - 1) + 1 : 0;
    __asm__ volatile("" :: "r"(buffer) : "memory");
    return sum;
}
__attribute__((noinline)) unsigned long odd_shallow(int depth) {
    unsigned long sum = depth ? odd_shallow(depth - 1) + 1 : odd_depth(33);
    __asm__ volatile("");
    return sum;
}
__attribute__((noinline)) unsigned long even_shallow(int depth) {
    if (!depth) work(1000000);
    unsigned long sum = depth ? even_shallow(depth - 1) + 2 : 0;
    __asm__ volatile("");
    return sum;
}
/* Writes to each page that `buffers` and `shallows` use, whose deepest frames lie in pages that nothing else writes: the
   kernel copies nothing of a stack whose first page does not exist. */
__attribute__((noinline)) void touch_stack(void) {
    volatile char pages[1 << 17];
    for (unsigned n = 0; n < sizeof pages; n += 1024) pages[n] = 0;
}
#ifdef __x86_64__
/* Keeps its frame address in rbx, which its callee saves and changes. */
void realigned(void);
void saver(void) {
    __asm__ volatile("xor %%ebx, %%ebx" ::: "rbx");
    work(20000000);
    __asm__ volatile("" ::: "rbx");
}
__asm__(
    ".text\n.globl realigned\n.type realigned, @function\nrealigned:\n.cfi_startproc\n"
    "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset rbx, -16\nmov %rsp, %rbx\n.cfi_def_cfa_register rbx\n"
    "and $-64, %rsp\nsub $256, %rsp\ncall saver\n"
    "mov %rbx, %rsp\n.cfi_def_cfa_register rsp\npop %rbx\n.cfi_def_cfa_offset 8\nret\n"
    ".cfi_endproc\n.size realigned, . - realigned\n");
/* Calls `saver` on the stack that ends at `top`. */
void switched(char *top);
__asm__(
    ".text\n.globl switched\n.type switched, @function\nswitched:\n.cfi_startproc\n"
    "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\nmov %rsp, %rbp\n.cfi_def_cfa_register rbp\n"
    "mov %rdi, %rsp\ncall saver\nmov %rbp, %rsp\n"
    "pop %rbp\n.cfi_def_cfa rsp, 8\nret\n"
    ".cfi_endproc\n.size switched, . - switched\n");
/* `unused` is right before `repeated`, and is never called. It ends with a system call, as if that were exit. */
void repeater(void);
__asm__(
    ".text\n.globl repeater\n.type repeater, @function\nrepeater:\n.cfi_startproc\n"
    "sub $8, %rsp\n.cfi_def_cfa_offset 16\nxor %r11d, %r11d\nlea repeated(%rip), %rcx\ncall *%rcx\n"
    "add $8, %rsp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size repeater, . - repeater\n"
    ".type unused, @function\nunused:\n.cfi_startproc\n"
    "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset rbx, -16\nsyscall\n.cfi_endproc\n.size unused, . - unused\n"
    ".type repeated, @function\nrepeated:\n.cfi_startproc\n"
    "jmp repeated\n.cfi_endproc\n.size repeated, . - repeated\n");
/* Waits for a signal with the last instruction of its function. Nobody calls `unsuspended`. */
void suspender(sigset_t *set);
__asm__(
    ".text\n.globl suspender\n.type suspender, @function\nsuspender:\n.cfi_startproc\n"
    "sub $40, %rsp\n.cfi_def_cfa_offset 48\nmovq $0, (%rsp)\nmov $8, %esi\nmov $130, %eax\nsyscall\n"
    ".cfi_endproc\n.size suspender, . - suspender\n"
    ".type unsuspended, @function\nunsuspended:\n.cfi_startproc\nnop\nret\n"
    ".cfi_endproc\n.size unsuspended, . - unsuspended\n");
__attribute__((noinline)) void fixed(void) {
    long (*volatile fixed_time)(long *) = (void *) 0xffffffffff600400;
    for (int n = 0; n < 400000; n++) sink += fixed_time(0);
}
#define SPIN "mov $100000000, %ecx\n0: dec %ecx\njne 0b\n"
void rootless(void);
void rerooted(void);
__asm__(
    ".text\n.globl rootless\n.type rootless, @function\nrootless:\n.cfi_startproc\n.cfi_undefined rip\n" SPIN "ret\n"
    ".cfi_endproc\n.size rootless, . - rootless\n"
    ".globl rerooted\n.type rerooted, @function\nrerooted:\n.cfi_startproc\n"
    "nop\n.cfi_undefined rip\nnop\nnop\n.cfi_offset rip, -8\n" SPIN "ret\n"
    ".cfi_endproc\n.size rerooted, . - rerooted\n");
#else
void fixed(void) { work(20000000); }
void suspender(sigset_t *set) { sigsuspend(set); }
void saver(void) { work(20000000); }
void rootless(void) { saver(); __asm__(""); }
void rerooted(void) { saver(); __asm__(""); }
__attribute__((noinline)) void repeated(void) { for (;;) __asm__(""); }
void repeater(void) { repeated(); __asm__(""); }
void realigned(void) { saver(); __asm__(""); }
void switched(char *top) { saver(); __asm__(""); }
#endif
static void *run_switched(void *top) {
    for (int n = 0; n < 20; n++) switched(top);
    return 0;
}
static void start_switched(void) {
    enum { SIZE = 1 << 20 };
    /* Mapped before the thread's own stack, and so above it. */
    char *stack = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t thread;
    pthread_create(&thread, 0, run_switched, stack + SIZE);
    pthread_join(thread, 0);
}
static ucontext_t caller, context;
__attribute__((noinline)) void in_context(void) {
    for (;;) {
        saver();
        swapcontext(&context, &caller);
    }
}
static void start_context(void) {
    static char stack[1 << 16];
    getcontext(&context);
    context.uc_stack = (stack_t){.ss_sp = stack, .ss_size = sizeof stack};
    makecontext(&context, in_context, 0);
    for (int n = 0; n < 20; n++) swapcontext(&caller, &context);
}
static void end(int signal) { _exit(0); }
__attribute__((noinline)) void handler_that_exits(int signal) {
    work(100000000);
    _exit(0);
}
static void (*volatile null)(void);
static void call_null(void) {
    signal(SIGSEGV, handler_that_exits);
    null();
}
static void start_suspended(void) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    signal(SIGALRM, handler_that_exits);
    alarm_soon();
    suspender(&none);
}
static void start_repeated(void) {
    signal(SIGVTALRM, end);
    setitimer(ITIMER_VIRTUAL, &(struct itimerval){{0, 0}, {0, 300000}}, 0);
    repeater();
}
int main(int count, char **words) {
    if (!strcmp(words[1], "switched")) start_switched();
    if (!strcmp(words[1], "repeated")) start_repeated();
    if (!strcmp(words[1], "null")) call_null();
    if (!strcmp(words[1], "vsyscall")) fixed();
    if (!strcmp(words[1], "suspended")) start_suspended();
    if (!strcmp(words[1], "realigned")) for (int n = 0; n < 20; n++) realigned();
    if (!strcmp(words[1], "contexts")) start_context();
    if (!strcmp(words[1], "rootless")) for (int n = 0; n < 4; n++) rootless(), rerooted();
    naps = !strcmp(words[1], "naps");
    if (naps || !strcmp(words[1], "requests")) length = atof(words[2]);
    if (naps || !strcmp(words[1], "requests")) for (int n = 0; n < 800 / length; n++) sink += odd_request() + even_request();
    if (!strcmp(words[1], "turns")) for (int n = 0; n < 200; n++) sink += odd_call(30) + even_call(30);
    if (!strcmp(words[1], "buffers") || !strcmp(words[1], "shallows")) touch_stack();
    if (!strcmp(words[1], "buffers")) for (int n = 0; n < 4000; n++) sink += odd_buffer(100) + even_buffer(100);
    if (!strcmp(words[1], "shallows")) for (int n = 0; n < 1000; n++) sink += odd_shallow(3) + even_shallow(6);
    if (!strcmp(words[1], "deep")) for (int n = 0; n < 15000; n++) deep(200);
    if (!strcmp(words[1], "wide")) for (int n = 0; n < 40; n++) wide(7, n);
    if (!strcmp(words[1], "alarmed")) sort();
    printf("%lu\n", sink);
    return 0;
}
