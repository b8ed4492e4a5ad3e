//! Skips tests whose tools or inputs are missing, and reports each of them in one line on standard error.

use std::collections::HashSet;
use std::io::Write as _;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Returns a file of the shared corpus, or `None` and reports the test as skipped.
///
/// The corpus is not part of the package: its absence is no failure, not even with `FG_SKIP=never`.
#[track_caller]
pub fn corpus(path: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus").join(path);
    if file.exists() {
        return Some(file);
    }
    skip_optional(&format!("no ../shared/corpus/{path}"));
    None
}

/// Reports the test as skipped because of something that packages do not provide everywhere: no failure, not even with
/// `FG_SKIP=never`.
#[track_caller]
pub fn skip_optional(why: &str) {
    report(why);
}

/// Returns true if a program is installed. Otherwise reports the test as skipped.
#[track_caller]
pub fn require(program: &str) -> bool {
    let found = is_installed(program);
    if !found {
        skip(&format!("{program} is not installed"));
    }
    found
}

/// Returns true if a program is on the `PATH`.
pub fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|paths| std::env::split_paths(&paths).any(|folder| folder.join(program).is_file()))
}

/// Reports the test as skipped. With `FG_SKIP=never`, as in CI, this is a failure.
#[track_caller]
pub fn skip(why: &str) {
    let forbidden = std::env::var_os("FG_SKIP").is_some_and(|value| value == "never");
    assert!(!forbidden, "skipped although FG_SKIP=never: {why}");
    report(why);
}

/// Writes one line for each test, which libtest does not capture.
#[track_caller]
fn report(why: &str) {
    static REPORTED: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let test = test_name();
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    if reported.get_or_insert_default().insert(test.clone()) {
        let _ = writeln!(std::io::stderr(), "skipped: {test}: {}", why.trim());
    }
}

/// Returns the name of the running test. libtest names threads after tests, unless there is only one thread.
#[track_caller]
pub fn test_name() -> String {
    match std::thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => Location::caller().to_string(),
    }
}
