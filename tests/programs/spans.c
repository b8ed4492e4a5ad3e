/* `spans [LIBRARY [again | unreadable]]`: threads that work on spans, and publish which as OpenTelemetry does: OTEP 4947 for
   threads, OTEP 4719 for the names of attributes. Runs until it is killed. The variable is in thread_context.c, which is part of
   the program or of a library that it is linked with; or with -DLOAD, of the library that it loads, and with `again`, unloads
   and loads at another address, and with `unreadable`, hides from everybody when all threads have found the variable.
   `spans fork`: creates processes that work on the span of the first one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef LOAD
static void **(*thread_context)(void);
#else
void **thread_context(void);
#endif

struct record { uint8_t trace[16], span[8], valid, flags; uint16_t size; uint8_t attributes[612]; } __attribute__((packed));

static volatile unsigned long sink;

static void work(int microseconds) {
    struct timespec t;
    long long start = 0, now = 0;
    do {
        for (unsigned n = 0; n < 5000; n++) sink += n;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        now = t.tv_sec * 1000000LL + t.tv_nsec / 1000;
        if (!start) start = now;
    } while (now - start < microseconds);
}

static void add(struct record *record, int key, const char *value) {
    uint8_t *end = record->attributes + record->size;
    end[0] = key;
    end[1] = strlen(value);
    memcpy(end + 2, value, end[1]);
    record->size += 2 + end[1];
}

static void fill(struct record *record, int number) {
    char route[] = "/route/0";
    memset(record->trace, 0x10 + number, sizeof record->trace);
    memset(record->span, 0x20 + number, sizeof record->span);
    record->size = 0;
    add(record, 1, "overwritten below");
    add(record, 0, "GET");
    add(record, 9, "has no name");
    route[7] += number;
    add(record, 1, route);
}

#define BARRIER() __asm__ volatile("" ::: "memory")
#define HANDLER(name, microseconds) __attribute__((noinline)) static void name(void) { work(microseconds); __asm__(""); }
HANDLER(handle_0, 3000)
HANDLER(handle_1, 2000)
HANDLER(handle_2, 1000)
HANDLER(idle, 1000)

enum { THREADS = 4 };
static volatile int started, can_work;

/* Returns the thread's variable. Waits until all threads have found theirs. */
static void *volatile *find_variable(void) {
    void *volatile *variable = thread_context();
    __sync_fetch_and_add(&started, 1);
    while (!can_work) usleep(1000);
    return variable;
}

/* Moves the pointer from record to record. */
static void *serve(void *unused) {
    static void (*const handlers[])(void) = {handle_0, handle_1, handle_2};
    static __thread struct record records[3];
    void *volatile *context = find_variable();
    prctl(PR_SET_NAME, "server");
    for (int n = 0; n < 3; n++) {
        fill(&records[n], n);
        records[n].valid = 1;
    }
    for (unsigned n = 0;; n++) {
        *context = &records[n % 3];
        BARRIER();
        handlers[n % 3]();
        BARRIER();
        *context = 0;
        BARRIER();
        idle();
    }
    return unused;
}

/* Changes its only record all the time. */
static void *switch_spans(void *unused) {
    static __thread struct record record;
    prctl(PR_SET_NAME, "switcher");
    *find_variable() = &record;
    for (unsigned n = 0;; n++) {
        record.valid = 0;
        BARRIER();
        fill(&record, n % 3);
        BARRIER();
        record.valid = 1;
        BARRIER();
        for (volatile int k = 0; k < 20; k++) {}
        BARRIER();
    }
    return unused;
}

/* Has a span without an attribute that anybody asks for, then attributes without a span. One is what separates wakers. */
__attribute__((noinline)) static void work_without_attribute(void) { work(500); __asm__(""); }
__attribute__((noinline)) static void work_without_span(void) { work(500); __asm__(""); }
__attribute__((noinline)) static void work_like_waker(void) { work(500); __asm__(""); }
static void *serve_oddly(void *unused) {
    static __thread struct record plain, odd, separator;
    void *volatile *context = find_variable();
    prctl(PR_SET_NAME, "odd");
    memset(plain.trace, 0xee, 24);
    add(&odd, 1, "a;b\nc d");
    add(&separator, 1, "--");
    plain.valid = odd.valid = separator.valid = 1;
    for (;;) {
        *context = &plain;
        BARRIER();
        work_without_attribute();
        BARRIER();
        *context = &odd;
        BARRIER();
        work_without_span();
        BARRIER();
        *context = &separator;
        BARRIER();
        work_like_waker();
        BARRIER();
    }
    return unused;
}

/* Waits within a span. */
__attribute__((noinline)) static void wait_in_span(void) { nanosleep(&(struct timespec) {.tv_nsec = 2000000}, 0); __asm__(""); }
__attribute__((noinline)) static void wait_idle(void) { nanosleep(&(struct timespec) {.tv_nsec = 1000000}, 0); __asm__(""); }
static void *wait_often(void *unused) {
    static __thread struct record record;
    void *volatile *context = find_variable();
    prctl(PR_SET_NAME, "waiter");
    fill(&record, 4);
    record.valid = 1;
    for (;;) {
        *context = &record;
        BARRIER();
        wait_in_span();
        BARRIER();
        *context = 0;
        BARRIER();
        wait_idle();
    }
    return unused;
}

/* Appends a field of a protobuf message that is shorter than 128 bytes. */
static uint8_t *field(uint8_t *to, int number, const void *content, size_t size) {
    *to++ = number << 3 | 2;
    *to++ = size;
    memcpy(to, content, size);
    return to + size;
}

/* Publishes the names of attributes: field 2 of a ProcessContext, a KeyValue with an array of strings. */
static void publish_names(void) {
    const char *names[] = {"http_method", "http_route"}, *key = "threadlocal.attribute_key_map";
    uint8_t text[64], array[128], value[128], pair[192], message[256], *end = array;
    for (int n = 0; n < 2; n++) end = field(end, 1, text, field(text, 1, names[n], strlen(names[n])) - text);
    size_t size = field(value, 5, array, end - array) - value;
    end = field(field(pair, 1, key, strlen(key)), 2, value, size);
    size = field(message, 2, pair, end - pair) - message;
    struct { char signature[8]; uint32_t version, size; uint64_t time; void *message; uint8_t content[256]; } *head;
    int file = syscall(SYS_memfd_create, "OTEL_CTX", 0);
    if (file < 0 || ftruncate(file, sizeof *head)) exit(1);
    head = mmap(0, sizeof *head, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    madvise(head, sizeof *head, MADV_DONTFORK);
    memcpy(head->content, message, size);
    head->version = 2;
    head->size = size;
    head->time = 1;
    head->message = head->content;
    BARRIER();
    memcpy(head->signature, "OTEL_CTX", 8);
}

/* Creates processes, one after the other. */
static void fork_often(void) {
    static struct record record;
    fill(&record, 0);
    record.valid = 1;
    *(void *volatile *) thread_context() = &record;
    for (;;) {
        pid_t child = fork();
        if (!child) {
            prctl(PR_SET_NAME, "child");
            handle_0();
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
}

/* Makes all of a library unreadable but its code. */
static void hide(const char *library) {
    char line[4096], permissions[8];
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (strstr(line, library) && sscanf(line, "%lx-%lx %7s", &start, &end, permissions) == 3 && permissions[2] != 'x')
            mprotect((void *) start, end - start, PROT_NONE);
    fclose(maps);
}

int main(int count, char **words) {
    pthread_t thread;
#ifdef LOAD
    /* The next library that is loaded is at a higher address than the one before. */
    void *above = count > 2 ? mmap(0, 1 << 24, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : 0;
    void *library = dlopen(words[1], RTLD_NOW);
    if (library && count > 2 && !strcmp(words[2], "again")) {
        /* The recorder sees both. */
        work(200000);
        dlclose(library);
        munmap(above, 1 << 24);
        library = dlopen(words[1], RTLD_NOW);
    }
    thread_context = library ? (void **(*)(void)) dlsym(library, "thread_context") : 0;
    if (!thread_context) return 1;
#endif
    publish_names();
    if (count > 1 && !strcmp(words[1], "fork")) fork_often();
    pthread_create(&thread, 0, serve, 0);
    pthread_create(&thread, 0, serve_oddly, 0);
    pthread_create(&thread, 0, wait_often, 0);
    pthread_create(&thread, 0, switch_spans, 0);
    while (started < THREADS) usleep(1000);
    if (count > 2 && !strcmp(words[2], "unreadable")) hide(words[1]);
    can_work = 1;
    pthread_join(thread, 0);
    return 0;
}
