// A library to preload, with which it takes 2 ms to enable a counter.
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

int ioctl(int file, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    int result = syscall(SYS_ioctl, file, request, argument);
    if (request == PERF_EVENT_IOC_ENABLE) usleep(2000);
    return result;
}
