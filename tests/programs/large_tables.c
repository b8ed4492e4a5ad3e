// A library with much unwind information, and (with -DMAIN) a program that runs in it for a second with a large stack of what may
// be addresses.
#include <time.h>

#ifndef MAIN
__asm__(".text\n"
        ".rept 200000\n"
        ".cfi_startproc\n"
        "push %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pop %rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".endr\n");

void spin(void) {
    clock_t start = clock();
    while (clock() - start < CLOCKS_PER_SEC) {}
}
#else
void spin(void);

__attribute__((noinline)) static void fill(void) {
    void *volatile words[40000];
    for (int i = 0; i < 40000; i++) words[i] = (void *)0x123456789a0;
    spin();
    (void)words[0];
}

int main(void) {
    fill();
    return 0;
}
#endif
