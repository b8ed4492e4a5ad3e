//! The difference between two runs of one program is not significant. A function that became slower is.

use std::path::{Path, PathBuf};

use crate::support::programs::compiler;
use crate::support::recording::can_record;
use crate::support::statistics::{ensure, statistical};
use crate::support::tables::assert_tables_match_reference;
use crate::support::{directory, require, run};

/// Compiles the program, in which `divide` is `slower` times as slow, and which runs for this many seconds.
fn compile(folder: &Path, slower: &str, seconds: &str) -> PathBuf {
    let program = folder.join(slower).join("varied");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    let mut compiler = compiler(&program);
    compiler
        .args([format!("-DSLOWER={slower}"), format!("-DSECONDS={seconds}")])
        .args(["-O1", "-g", "varied.c", "-lm"]);
    assert!(compiler.status().unwrap().success());
    program
}

fn record(program: &Path, profile: &Path) {
    let [program, profile] = [program, profile].map(|path| path.to_str().unwrap());
    run("fg-record", ["-q", "-F", "9999", "-o", profile, "--", program], b"").ok();
}

/// Returns the stacks whose weights differ significantly.
fn significant_differences(before: &Path, after: &Path) -> Vec<String> {
    let [before, after] = [before, after].map(|path| path.to_str().unwrap());
    let out = run("fg-diff", ["-n", "--significant", before, after], b"").ok();
    let differs = |line: &&str| {
        let weights: Vec<&str> = line.rsplitn(3, ' ').take(2).collect();
        weights[0] != weights[1]
    };
    out.text().lines().filter(differs).map(str::to_owned).collect()
}

/// `FG_NOISE_RUNS` is the number of comparisons, `FG_NOISE_SECONDS` the length of a run.
#[test]
fn finds_a_slower_function_and_no_difference_between_equal_runs() {
    if !can_record() || !require("cc") {
        return;
    }
    let runs = std::env::var("FG_NOISE_RUNS").map_or(2, |runs| runs.parse().unwrap());
    let seconds = std::env::var("FG_NOISE_SECONDS").unwrap_or_else(|_| "0.6".to_owned());
    let folder = directory();
    let [same, slower] = ["1", "2"].map(|slower| compile(folder.path(), slower, &seconds));
    let [before, again, after] = ["before", "again", "after"].map(|name| folder.path().join(name));
    statistical(|| {
        let (mut false_alarms, mut found) = (Vec::new(), 0);
        for _ in 0..runs {
            record(&same, &before);
            record(&same, &again);
            record(&slower, &after);
            false_alarms.extend(significant_differences(&before, &again));
            let (divide, others): (Vec<_>, Vec<_>) =
                significant_differences(&before, &after).into_iter().partition(|line| line.contains(";divide "));
            found += usize::from(!divide.is_empty());
            println!("{false_alarms:?} {divide:?} {others:?}");
        }
        println!("{} false alarms in {runs} comparisons, a slower function found in {found}", false_alarms.len());
        ensure!(false_alarms.len() <= 1, "{false_alarms:?}");
        ensure!(found + 1 >= runs, "{found} of {runs}");
        Ok(())
    });
    assert_tables_match_reference("before", &std::fs::read(before).unwrap());
}
