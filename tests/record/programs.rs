//! The programs that are recorded: small ones in C, compiled once, and the workload that ships with the project.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::support::{has, tool};

/// `busy SECONDS`: so much time on the CPU, in `step`, which is inlined into `spin`.
const BUSY: &str = r"
    #include <stdlib.h>
    #include <time.h>
    static volatile unsigned long sink;
    static inline __attribute__((always_inline)) void step(unsigned long n) {
        sink = sink * 3 + n; sink += n / (sink | 1); sink += n / (sink | 3);
    }
    __attribute__((noinline)) void spin(double seconds) {
        struct timespec t;
        do {
            for (unsigned long n = 0; n < 50000; n++) step(n);
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        } while (t.tv_sec + 1e-9 * t.tv_nsec < seconds);
    }
    #ifndef NO_MAIN
    int main(int count, char **words) { spin(count > 1 ? atof(words[1]) : 0.3); return 0; }
    #endif
";

/// `threads MODE`: `names`, a thread for each odd name; `churn`, threads that come and go beside the main one for ever.
const THREADS: &str = r#"
    #include <pthread.h>
    #include <string.h>
    #include <sys/prctl.h>
    void spin(double);
    static void *work(void *name) { prctl(PR_SET_NAME, name); spin(0.03); return 0; }
    static const char *names[] = {"a;b", "new\nline", "", "   ", "two words", "\x1b[31mred", "\xff\xfe", "  lead", "1 2 3"};
    int main(int count, char **words) {
        pthread_t thread;
        int churn = count > 1 && !strcmp(words[1], "churn");
        for (unsigned n = 0; churn || n < sizeof names / sizeof *names; n++) {
            pthread_create(&thread, 0, work, (void *) (churn ? "passing" : names[n]));
            if (churn) spin(0.03 * (n + 1));
            pthread_join(thread, 0);
        }
        return 0;
    }
"#;

/// `memory FILE WORD`: runs a program from a copy that is in memory alone.
const MEMORY: &str = r#"
    #define _GNU_SOURCE
    #include <stdio.h>
    #include <sys/mman.h>
    #include <unistd.h>
    extern char **environ;
    int main(int count, char **words) {
        char block[65536];
        int memory = memfd_create("secret", MFD_CLOEXEC);
        FILE *file = fopen(words[1], "r");
        for (size_t read; (read = fread(block, 1, sizeof block, file)) > 0;)
            if (write(memory, block, read) != (ssize_t) read) return 1;
        fexecve(memory, (char *[]) {"secret", words[2], 0}, environ);
        return 1;
    }
"#;

/// Three thousand pages touched for the first time, one every few microseconds.
const FAULTS: &str = r"
    #include <sys/mman.h>
    static volatile unsigned long sink;
    int main(void) {
        char *pages = mmap(0, 3000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(pages, 3000 * 4096, MADV_NOHUGEPAGE);
        for (int page = 0; page < 3000; page++) {
            pages[page * 4096] = 1;
            for (unsigned n = 0; n < 20000; n++) sink += n;
        }
        return 0;
    }
";

/// Without frame pointers: `deep`, 200 calls deep; `wide`, whose frames are larger than the copy of the stack and come
/// and go; `buffers`, two kinds of calls in the same places, `shallows`, of which one is shallow; `alarmed`, which is mostly in a signal handler above `qsort`'s callback.
const UNWOUND: &str = r#"
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/time.h>
    #include <time.h>
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
    // Anew only when it is done: however slow the machine, what it interrupts gets on.
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
    /* What one leaves on the stack stands in the other's buffers, which it does not write. */
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
    /* Deep calls, and shallow ones ten times as long, under which the deep ones' stack stays as it was. */
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
    #ifdef __x86_64__
    /* Its frame address is in rbx, which the function that it calls saves and changes. */
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
    #else
    void saver(void) { work(20000000); }
    void realigned(void) { saver(); __asm__(""); }
    #endif
    int main(int count, char **words) {
        if (!strcmp(words[1], "realigned")) for (int n = 0; n < 20; n++) realigned();
        naps = !strcmp(words[1], "naps");
        if (naps || !strcmp(words[1], "requests")) length = atof(words[2]);
        if (naps || !strcmp(words[1], "requests")) for (int n = 0; n < 800 / length; n++) sink += odd_request() + even_request();
        if (!strcmp(words[1], "turns")) for (int n = 0; n < 200; n++) sink += odd_call(30) + even_call(30);
        if (!strcmp(words[1], "buffers")) for (int n = 0; n < 4000; n++) sink += odd_buffer(100) + even_buffer(100);
        if (!strcmp(words[1], "shallows")) for (int n = 0; n < 1000; n++) sink += odd_shallow(3) + even_shallow(6);
        if (!strcmp(words[1], "deep")) for (int n = 0; n < 15000; n++) deep(200);
        if (!strcmp(words[1], "wide")) for (int n = 0; n < 40; n++) wide(7, n);
        if (!strcmp(words[1], "alarmed")) sort();
        printf("%lu\n", sink);
        return 0;
    }
"#;

/// `sizes MODE`: bytes that are written, asked for, or touched; says how many bytes or pages.
const SIZES: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <unistd.h>
    static char block[3000];
    static long sum;
    __attribute__((noinline)) void write_big(int file) { sum += write(file, block, 3000); __asm__(""); }
    __attribute__((noinline)) void write_small(int file) { sum += write(file, block, 1000); __asm__(""); }
    __attribute__((noinline)) void *grab(int other, size_t size) { sum += size; return malloc(size + other); }
    __attribute__((noinline)) void touch(char *pages, int count) {
        for (int n = 0; n < count; n++) pages[4096L * n] = 1, sum++;
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
        if (!strcmp(words[1], "touch")) {
            int pages = 2000;
            char *memory = mmap(0, 4096L * pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            madvise(memory, 4096L * pages, MADV_NOHUGEPAGE);
            touch(memory, pages);
        }
        fprintf(stderr, "%ld\n", sum);
        return 0;
    }
"#;

/// Threads that wait in known ways, and say for how long.
const WAITS: &str = include_str!("waits.c");

/// Threads that serve requests, and say when.
const REQUESTS: &str = include_str!("requests.c");

static COMPILED: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    if !has("cc") {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("record");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in [
        ("busy", BUSY),
        ("faults", FAULTS),
        ("threads", THREADS),
        ("memory", MEMORY),
        ("unwound", UNWOUND),
        ("waits", WAITS),
        ("requests", REQUESTS),
        ("sizes", SIZES),
    ] {
        std::fs::write(folder.join(format!("{name}.c")), text).unwrap();
    }
    for (name, sources) in [
        ("busy", &["busy.c"][..]),
        ("faults", &["faults.c"]),
        ("memory", &["memory.c"]),
        ("sizes", &["-fno-optimize-sibling-calls", "sizes.c"]),
        ("waits", &["-fno-optimize-sibling-calls", "waits.c", "-pthread"]),
        ("requests", &["-fno-optimize-sibling-calls", "requests.c", "-pthread"]),
        ("unwound", &["-fomit-frame-pointer", "-fno-optimize-sibling-calls", "unwound.c"]),
        ("threads", &["-DNO_MAIN", "threads.c", "busy.c", "-pthread"]),
    ] {
        // Under another name first: the program may be running for another run of these tests.
        let unfinished = format!("{name}.{}", std::process::id());
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-g", "-fno-omit-frame-pointer", "-w", "-o", &unfinished]).args(sources);
        assert!(compiler.current_dir(&folder).status().unwrap().success());
        std::fs::rename(folder.join(unfinished), folder.join(name)).unwrap();
    }
    Some(folder)
});

/// The folder with the compiled programs; `None`, and the test skips, where there is no compiler.
pub fn compiled() -> Option<&'static Path> {
    COMPILED.as_deref()
}

/// One of the compiled programs, by name.
pub fn program(name: &str) -> Option<String> {
    Some(compiled()?.join(name).to_str().unwrap().to_owned())
}

/// Copies a program that is to be run. Another process does it: were the copy open for writing here, what other tests
/// start meanwhile would inherit that for a moment, and the kernel runs no file that somebody may write.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    assert!(Command::new("cp").args([from.as_ref(), to.as_ref()]).status().unwrap().success());
}

/// The workload that ships with the project.
pub fn workload() -> String {
    let path = Path::new(tool("fg-record")).with_file_name("examples").join("workload");
    if !path.exists() {
        // `cargo test --test record` builds no examples.
        let built = Command::new(env!("CARGO")).args(["build", "--quiet", "--example", "workload"]).status();
        assert!(built.unwrap().success());
    }
    path.to_str().unwrap().to_owned()
}
