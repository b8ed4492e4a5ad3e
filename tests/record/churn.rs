//! Programs that make functions and drop them all the time. What is read too late has no name, never a wrong one.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::support::process::Background;
use crate::support::programs::sources;
use crate::support::recording::{Profile, can_record, record_process};
use crate::support::script_functions::walked_scripts;
use crate::support::{command, directory, nodes, pythons, skip_optional};

/// The functions of the programs. Each has a number behind its name, and calls the next one with the same number alone.
const KINDS: [&str; 3] = ["outer_", "inner_", "leaf_"];

/// Returns the kind of a function, and its number. `None` if a frame is of another function.
fn numbered(frame: &str) -> Option<(usize, u32)> {
    KINDS.iter().enumerate().find_map(|(kind, name)| {
        let (_, rest) = frame.split_once(name)?;
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        Some((kind, rest[..digits].parse().ok()?))
    })
}

/// Records a program for two seconds of its CPU time, and asserts that its functions are called by those that call them, or that
/// the caller has no name.
#[track_caller]
fn assert_edges(interpreter: &Path, program: &str) {
    let folder = directory();
    let program = sources().join(program);
    let mut interpreter = command(interpreter);
    let process = Background::start(interpreter.arg(&program).arg("100").env("TMPDIR", folder.path()));
    process.wait_for_cpu_time(Duration::from_millis(500));
    let outcome = record_process(&process, &["-v", "-F", "1999"], Duration::from_secs(2)).ok();
    if !walked_scripts(&outcome) {
        return;
    }
    let (mut right, mut unnamed) = (0, 0);
    for stack in &Profile::from_stdout(&outcome).0 {
        for (caller, frame) in stack.frames.iter().zip(&stack.frames[1..]) {
            let Some((kind, number)) = numbered(frame) else { continue };
            match kind.checked_sub(1).map(|kind| (kind, number)) {
                expected if numbered(caller) == expected => right += stack.weight,
                Some(_) if caller.starts_with('[') => unnamed += stack.weight,
                _ => panic!("{caller} calls {frame}: {stack:?}"),
            }
        }
    }
    // How many are read in time depends on how busy the machine is.
    assert!(right + unnamed > 20, "{right} right, {unnamed} without a name");
}

/// True if a program of this machine runs with these arguments. Otherwise reports the test as skipped.
#[track_caller]
fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut check = command(program);
    check.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = check.status().is_ok_and(|status| status.success());
    if !is_there {
        skip_optional(&format!("no {program} that is known"));
    }
    is_there
}

#[test]
fn functions_of_python() {
    let newest = pythons::supported()
        .into_iter()
        .max_by_key(|python| (8..20).rev().find(|minor| pythons::is_at_least(python, (3, *minor))));
    match newest {
        Some(python) if can_record() => assert_edges(&python, "churn.py"),
        None => skip_optional("no Python 3.8 or later"),
        _ => {}
    }
}

#[test]
fn functions_of_node() {
    if can_record() {
        nodes::supported().iter().for_each(|node| assert_edges(node, "churn.js"));
    }
}

#[test]
fn functions_of_java() {
    if can_record() && runs("java", &["--source", "11", "--version"]) {
        assert_edges(Path::new("java"), "Churn.java");
    }
}

#[test]
fn functions_of_ruby() {
    let is_known = "exit((3.0...3.5).cover?(RUBY_VERSION.to_f))";
    if can_record() && runs("ruby", &["-e", is_known]) {
        assert_edges(Path::new("ruby"), "churn.rb");
    }
}

#[test]
fn code_of_php() {
    let is_known = "exit(PHP_VERSION_ID >= 70400 && PHP_VERSION_ID < 80500 && !PHP_ZTS ? 0 : 1);";
    if can_record() && runs("php", &["-r", is_known]) {
        assert_edges(Path::new("php"), "churn.php");
    }
}
