/* A storm of fork, exec, exit, dlopen and dlclose. `pN DEPTH` works, loads and unloads two libraries, which are mapped
   at the same address, forks, and runs p(N+1) with DEPTH-1. Each program and each library works in a function that has
   its name. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PASTE(a, b) a##b
#define NAMED(a, b) PASTE(a, b)
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

static volatile unsigned long sink;

#ifdef LIBRARY
__attribute__((noinline)) void NAMED(in_, LIBRARY)(void) {
    for (unsigned n = 0; n < 150000; n++) sink += n * sink;
}
void enter(void) {
    NAMED(in_, LIBRARY)();
    sink++;
}
#else
__attribute__((noinline)) void NAMED(in_, PROGRAM)(void) {
    for (unsigned n = 0; n < 150000; n++) sink += n * sink;
}

static void call(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    void (*enter)(void) = library ? (void (*)(void)) dlsym(library, "enter") : 0;
    if (!enter) exit(1);
    enter();
    dlclose(library);
    sink++;
}
__attribute__((noinline)) void call_a(void) { call("./liba.so"); sink++; }
__attribute__((noinline)) void call_b(void) { call("./libb.so"); sink++; }

int main(int count, char **words) {
    int depth = count > 1 ? atoi(words[1]) : 0;
    char rest[16];
    NAMED(in_, PROGRAM)();
    call_a();
    call_b();
    call_a();
    snprintf(rest, sizeof rest, "%d", depth - 1);
    for (int child = 0; depth && child < 2; child++) {
        if (!fork()) {
            NAMED(in_, PROGRAM)();
            // The first child runs the next program, the second only exits.
            if (child) exit(0);
            execl("./" TEXT(NEXT), TEXT(NEXT), rest, (char *) 0);
            exit(1);
        }
        NAMED(in_, PROGRAM)();
    }
    while (wait(0) > 0) continue;
    if (depth > 2 && depth % 2) {
        execl("./" TEXT(NEXT), TEXT(NEXT), "1", (char *) 0);
        exit(1);
    }
    return 0;
}
#endif
