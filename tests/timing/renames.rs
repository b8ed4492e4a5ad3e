//! Time of comparisons in which many names are others, relative to that of the same profiles with equal names.

use std::process::Stdio;
use std::time::Duration;

use crate::support::process::wait_with_cpu_time;
use crate::support::statistics::{ensure, statistical};
use crate::support::{command, tool};

/// Returns the CPU time that fg-diff takes.
fn cpu_time_to_compare(before: &str, after: &str) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let files = [("before", before), ("after", after)].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let mut diff = command(tool("fg-diff"));
    diff.arg("--match-renames").args(files).stdout(Stdio::null()).stderr(Stdio::null());
    #[allow(clippy::zombie_processes)] // wait_with_cpu_time waits for it.
    let (status, cpu_time) = wait_with_cpu_time(&diff.spawn().unwrap());
    assert!(status.success(), "{status:?}");
    cpu_time
}

/// Returns stacks of functions that call each other, and those of others by which two sides are versions of one program. The
/// caller of each function has a smaller number, or is `main`.
fn stacks_of_calls(prefix: &str, count: usize, caller: impl Fn(usize) -> Option<usize>) -> String {
    let mut paths: Vec<String> = Vec::new();
    for number in 0..count {
        let path = caller(number).map_or("app;main", |caller| &paths[caller]);
        paths.push(format!("{path};{prefix}{number}"));
    }
    let stacks = paths.iter().enumerate().map(|(number, path)| format!("{path};lib{number} {}\n", 50 + number % 7));
    let common = (0..10).map(|number| format!("app;main;common{number} {}\n", 6 * count));
    stacks.chain(common).collect()
}

/// Checks that names that differ do not take much longer than equal ones.
fn check_time(stacks: impl Fn(&str) -> String) {
    let [old, new] = ["old", "new"].map(stacks);
    statistical(|| {
        let (equal, renamed) = (cpu_time_to_compare(&old, &old), cpu_time_to_compare(&old, &new));
        // Five times as long at most, when it was measured.
        ensure!(renamed < 15 * equal + Duration::from_millis(50), "{renamed:?}, and {equal:?} with equal names");
        Ok(())
    });
}

#[test]
fn a_deep_chain_of_renamed_functions_is_compared_in_time() {
    check_time(|prefix| stacks_of_calls(prefix, 500, |number| number.checked_sub(1)));
}

#[test]
fn a_tree_of_minified_functions_is_compared_in_time() {
    check_time(|prefix| stacks_of_calls(prefix, 1000, |number| number.checked_sub(1 + number * number % 13)));
}

#[test]
fn many_renamed_files_and_folders_are_compared_in_time() {
    let functions = |path: &dyn Fn(usize) -> String| {
        (0..5000).map(|number| format!("python3;f{number} ({}) {}\n", path(number % 250), 100 + number % 13)).collect()
    };
    check_time(|prefix| functions(&|file| format!("/s/{prefix}{file}.py")));
    check_time(|prefix| functions(&|folder| format!("/{prefix}{folder}/m.py")));
}
