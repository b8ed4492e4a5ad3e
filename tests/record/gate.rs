//! A project's gate: its CI records the program before and after a commit, compares, and checks.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::folded::may_record;
use crate::support::{directory, has, run_command, skip, tool};

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

/// What the project's CI runs, with a program from each side.
const GATE: &str = r#"
    set -e
    for run in 1 2 3; do
        fg-record -q -F 3999 -o before.$run -- "$1"
        fg-record -q -F 3999 -o after.$run -- "$2"
    done
    fg-diff -n --before before.1 --before before.2 --before before.3 --after after.1 --after after.2 --after after.3 |
        fg-check --runs 3 --inclusive-growth 3% --lost 1%
"#;

/// The program of a commit in which `parse` takes so many turns.
fn commit(folder: &Path, turns: u32) -> PathBuf {
    let (source, program) = (folder.join("app.c"), folder.join(turns.to_string()).join("app"));
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compiler = Command::new("cc");
    let built = compiler.arg(format!("-DPARSE={turns}")).args(["-O1", "-g", "-o"]).args([&program, &source]);
    assert!(built.status().unwrap().success());
    program
}

/// The gate's exit status and words.
fn gate(folder: &Path, before: &Path, after: &Path) -> (i32, String) {
    let programs = Path::new(tool("fg-check")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.current_dir(folder).env("PATH", path).args(["-o", "pipefail", "-c", GATE, "gate"]).args([before, after]);
    let outcome = run_command(command, b"");
    assert!(outcome.stderr.is_empty(), "{outcome:?}");
    (outcome.code(), outcome.text())
}

/// `FG_GATE_RUNS` says how often; a few times are enough to see the gate work.
#[test]
fn a_slower_function_is_red_and_noise_is_green() {
    if !may_record() {
        return;
    }
    if !has("cc") {
        return skip("no C compiler");
    }
    let runs = std::env::var("FG_GATE_RUNS").map_or(2, |runs| runs.parse().unwrap());
    let folder = directory();
    let [before, same, slower] = [1000, 1001, 1500].map(|turns| commit(folder.path(), turns));
    let (mut red, mut green) = (0, 0);
    for _ in 0..runs {
        let (code, said) = gate(folder.path(), &before, &slower);
        red += u32::from(code == 1 && said.starts_with("inclusive-growth parse: +"));
        let (code, said) = gate(folder.path(), &before, &same);
        green += u32::from(code == 0 && said.is_empty());
        print!("{said}");
    }
    println!("{red} of {runs} regressions were red, {green} of {runs} changes without one green");
    assert_eq!((red, green), (runs, runs));
}
