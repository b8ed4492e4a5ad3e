// A library to preload, with which it takes 1 ms to change a map of a BPF program.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...) {
    static long (*next)(long, ...);
    if (!next) next = (long (*)(long, ...)) dlsym(RTLD_NEXT, "syscall");
    va_list list;
    va_start(list, number);
    long argument[6];
    for (int n = 0; n < 6; n++) argument[n] = va_arg(list, long);
    va_end(list);
    long result = next(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
    if (number == SYS_bpf && argument[0] == BPF_MAP_UPDATE_ELEM) usleep(1000);
    return result;
}
