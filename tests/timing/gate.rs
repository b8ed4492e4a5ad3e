//! A performance gate in CI: records the program before and after a commit, compares, and checks.

use std::path::{Path, PathBuf};

use crate::support::recording::can_record;
use crate::support::statistics::{ensure, statistical};
use crate::support::{command, directory, require, run_command, tool};

const PROGRAM: &str = r"
    #include <time.h>
    static volatile unsigned long sink;
    __attribute__((noinline)) void parse(void) { for (unsigned long n = PARSE; n; n--) sink += n * n; }
    __attribute__((noinline)) void render(void) { for (unsigned long n = 3000; n; n--) sink += n * n; }
    __attribute__((noinline)) void store(void) { for (unsigned long n = 1500; n; n--) sink += n * n; }
    int main(void) {
        struct timespec t;
        do {
            for (int i = 0; i < 50; i++) { parse(); render(); store(); }
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        } while (t.tv_sec + 1e-9 * t.tv_nsec < 1.2);
        return 0;
    }
";

/// What CI runs, with the program before ($1) and after ($2).
const GATE: &str = r#"
    set -e
    for run in 1 2 3; do
        fg-record -q -F 3999 -o before.$run -- "$1"
        fg-record -q -F 3999 -o after.$run -- "$2"
    done
    fg-check --inclusive-growth 3% --lost 1% --before before.[0-9] --after after.[0-9]
"#;

/// Compiles the program of a commit in which `parse` takes this many iterations.
fn compile_commit(folder: &Path, iterations: u32) -> PathBuf {
    let (source, program) = (folder.join("app.c"), folder.join(iterations.to_string()).join("app"));
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compiler = command("cc");
    let built = compiler.arg(format!("-DPARSE={iterations}")).args(["-O1", "-g", "-o"]).args([&program, &source]);
    assert!(built.status().unwrap().success());
    program
}

/// Runs the gate and returns its exit status and output.
fn run_gate(folder: &Path, before: &Path, after: &Path) -> (i32, String) {
    let programs = Path::new(tool("fg-check")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut bash = command("bash");
    bash.current_dir(folder).env("PATH", path).args(["-o", "pipefail", "-c", GATE, "gate"]).args([before, after]);
    let outcome = run_command(bash, b"");
    // On a noisy machine, three runs may not prove a growth.
    assert!(outcome.stderr.lines().all(|line| line.ends_with("exceeded, but within noise")), "{outcome:?}");
    (outcome.code(), outcome.text())
}

/// `FG_GATE_RUNS` is the number of comparisons of each kind.
#[test]
fn rejects_a_slower_function_and_accepts_noise() {
    if !can_record() || !require("cc") {
        return;
    }
    let runs = std::env::var("FG_GATE_RUNS").map_or(2, |runs| runs.parse().unwrap());
    let folder = directory();
    let [before, same, slower] = [1000, 1001, 1500].map(|iterations| compile_commit(folder.path(), iterations));
    statistical(|| {
        let (mut rejected, mut accepted) = (0, 0);
        for _ in 0..runs {
            let (code, report) = run_gate(folder.path(), &before, &slower);
            rejected += u32::from(code == 1 && report.starts_with("inclusive-growth parse: +"));
            let (code, report) = run_gate(folder.path(), &before, &same);
            accepted += u32::from(code == 0 && report.is_empty());
            print!("{report}");
        }
        println!("{rejected} of {runs} regressions rejected, {accepted} of {runs} equal programs accepted");
        ensure!((rejected, accepted) == (runs, runs), "{rejected} rejected and {accepted} accepted of {runs} each");
        Ok(())
    });
}
