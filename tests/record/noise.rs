//! What runs of one program differ by is no difference, and a function that became slower is one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::folded::may_record;
use crate::support::tables::assert_tables_are_true;
use crate::support::{data, directory, has, run};

/// The program, `divide` as slow as said, that runs for so many seconds.
fn program(folder: &Path, slower: &str, seconds: &str) -> PathBuf {
    let program = folder.join(slower).join("varied");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args([format!("-DSLOWER={slower}"), format!("-DSECONDS={seconds}")]).args(["-O1", "-g", "-o"]);
    assert!(compiler.arg(&program).arg(data("record/varied.c")).arg("-lm").status().unwrap().success());
    program
}

fn record(program: &Path, profile: &Path) {
    let out = run(
        "fg-record",
        ["-q", "-F", "9999", "-o"].map(AsRef::as_ref).into_iter().chain([
            profile.as_os_str(),
            "--".as_ref(),
            program.as_os_str(),
        ]),
        b"",
    );
    assert!(out.status.success(), "{out:?}");
}

/// What is left of a comparison: the stacks that differ.
fn different(before: &Path, after: &Path) -> Vec<String> {
    let out =
        run("fg-diff", ["-n".as_ref(), "--significant".as_ref(), before.as_os_str(), after.as_os_str()], b"").ok();
    let differs = |line: &&str| {
        let weights: Vec<&str> = line.rsplitn(3, ' ').take(2).collect();
        weights[0] != weights[1]
    };
    out.text().lines().filter(differs).map(str::to_owned).collect()
}

/// `FG_NOISE_RUNS` says how often; a few times are enough to see it work.
#[test]
fn two_runs_are_alike_and_a_slower_function_is_found() {
    if !may_record() || !has("cc") {
        return;
    }
    let runs = std::env::var("FG_NOISE_RUNS").map_or(2, |runs| runs.parse().unwrap());
    let seconds = std::env::var("FG_NOISE_SECONDS").unwrap_or_else(|_| "0.6".to_owned());
    let folder = directory();
    let [same, slower] = ["1", "2"].map(|slower| program(folder.path(), slower, &seconds));
    let [before, again, after] = ["before", "again", "after"].map(|name| folder.path().join(name));
    let (mut alarms, mut found) = (Vec::new(), 0);
    for _ in 0..runs {
        record(&same, &before);
        record(&same, &again);
        record(&slower, &after);
        alarms.extend(different(&before, &again));
        let (divide, others): (Vec<_>, Vec<_>) =
            different(&before, &after).into_iter().partition(|line| line.contains(";divide "));
        found += usize::from(!divide.is_empty());
        println!("{alarms:?} {divide:?} {others:?}");
    }
    println!("{} false alarms in {runs} comparisons, a slower function found in {found}", alarms.len());
    assert!(alarms.len() <= 1, "{alarms:?}");
    assert!(found + 1 >= runs, "{found} of {runs}");
    assert_tables_are_true("before", &std::fs::read(before).unwrap());
}
