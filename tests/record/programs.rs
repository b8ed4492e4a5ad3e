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
    static inline __attribute__((always_inline)) void step(unsigned long n) { sink += n * n; }
    __attribute__((noinline)) void spin(double seconds) {
        struct timespec t;
        do {
            for (unsigned long n = 0; n < 200000; n++) step(n);
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

static COMPILED: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    if !has("cc") {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("record");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in [("busy", BUSY), ("threads", THREADS), ("memory", MEMORY)] {
        std::fs::write(folder.join(format!("{name}.c")), text).unwrap();
    }
    for (name, sources) in [
        ("busy", &["busy.c"][..]),
        ("memory", &["memory.c"]),
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
