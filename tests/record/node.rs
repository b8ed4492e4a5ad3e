//! JavaScript functions in Node.js, as they run: without options, agents or a restart.

use std::path::PathBuf;
use std::time::Duration;

use crate::support::process::Background;
use crate::support::programs::sources;
use crate::support::recording::{Profile, Stack, can_record, record, record_process};
use crate::support::script_functions::{Callers, assert_callers, functions, walked_scripts};
use crate::support::{command, directory, nodes, require};

/// The functions of `functions.js` that compute.
pub const CALLERS: Callers<'_> = &[
    ("burn_deep", &["deep", "deep", "deep"]),
    ("burn_odd", &["odd", "even", "odd", "even"]),
    ("burn_closure", &["closure", "callClosure", "main"]),
    ("burn_generator", &["generate"]),
    ("burn_async", &["inner"]),
    ("burn_map", &["mapped"]),
    ("burn_sort", &["compare"]),
    ("burn_replace", &["replacer"]),
    ("burn_reviver", &["reviver"]),
    ("burn_forEach", &["visit"]),
    ("burn_method", &["method", "method", "main"]),
    ("burn_static", &["make", "main"]),
    ("burn_handler", &["handler", "main"]),
    ("burn_bound", &["target", "main"]),
    ("burn_proxy", &["trap"]),
];

/// Returns the weight of the stacks with a function of a script, and that of all.
fn script_weights(profile: &Profile) -> (u64, u64) {
    let is_script = |frame: &String| frame.ends_with(".js)");
    let scripts = profile.0.iter().filter(|stack| stack.frames.iter().any(is_script));
    (scripts.map(|stack| stack.weight).sum(), profile.total())
}

#[test]
fn shows_the_functions_of_a_command_and_of_a_process_that_runs_already() {
    if !can_record() {
        return;
    }
    let program = sources().join("functions.js").display().to_string();
    for node in nodes::supported() {
        let node = node.display().to_string();
        let outcome = record(["-v", "-F", "997", "--", &node, &program, "2", "worker"]).ok();
        if !walked_scripts(&outcome) {
            return;
        }
        let mut profile = Profile::from_stdout(&outcome);
        // Where its code has just been mapped, a stack is cut.
        profile.0.retain(|stack| !stack.contains(&["[truncated]"]));
        assert_callers(&profile, CALLERS, &node);
        assert_callers(&profile, &[("burn_worker", &["inWorker"])], &node);

        let process = Background::start(command(&node).args([&program, "100"]));
        process.wait_for_cpu_time(Duration::from_millis(500));
        let outcome = record_process(&process, &["-v", "-F", "997"], Duration::from_secs(1)).ok();
        let profile = Profile::from_stdout(&outcome);
        assert_callers(&profile, CALLERS, &format!("{node} -p"));
        let (scripts, total) = script_weights(&profile);
        assert!(scripts * 100 >= total * 90, "{node}: {scripts} of {total}: {profile:?}");
        // Nothing tells which function runs in the first instructions of one that is not optimized, nor what code that is gone
        // contained.
        let unknown = profile.weight(&["[v8]"]);
        assert!(unknown * 10 <= total, "{node}: {unknown} of {total}: {profile:?}");
    }
}

#[test]
fn shows_native_frames_alone() {
    if !can_record() || !require("node") {
        return;
    }
    let program = sources().join("functions.js").display().to_string();
    let outcome = record(["--native-only", "-F", "997", "--", "node", &program, "0.5"]).ok();
    assert_eq!(script_weights(&Profile::from_stdout(&outcome)).0, 0);
}

#[test]
fn says_what_names_functions_where_the_kernel_takes_stacks() {
    if !can_record() || !require("node") {
        return;
    }
    let program = sources().join("functions.js").display().to_string();
    let outcome = record(["--call-graph", "fp", "-F", "997", "--", "node", &program, "1"]).ok();
    let hint = "in code that node generated; start node with --perf-basic-prof; as root, --call-graph dwarf names it without that";
    assert_eq!(outcome.stderr.matches(hint).count(), 1, "{}", outcome.stderr);
}

/// A program whose functions call each other, each on a line of its own.
const LINES: &str = "function work(n) {
  let s = 0;
  for (let i = 0; i < n; i++) {
    s = (s * 31 + i) & 0xffffff;
  }
  return s;
}

function small(n) {
  const x = n & 1;
  return x +
    work(n);
}

function call() {
  const x = 1;
  work(100);
  return [
    work(10),
    small(50000 + x),
    (() => 1 +
      small(50000))(),
  ];
}

for (;;) {
  call();
}
";

#[test]
fn shows_the_line_of_each_call() {
    if !can_record() {
        return;
    }
    let folder = directory();
    let path = folder.path().join("lines.js");
    std::fs::write(&path, LINES).unwrap();
    let shown = path.display().to_string();
    // Interpreted alone, and compiled with inlined calls, by each compiler.
    let options = |node: PathBuf| [&["--jitless"][..], &["--no-opt"], &[]].map(|options| (node.clone(), options));
    for (node, options) in nodes::supported().into_iter().flat_map(options) {
        let process = Background::start(command(&node).args(options).arg(&path));
        process.wait_for_cpu_time(Duration::from_millis(500));
        let outcome = record_process(&process, &["-v", "--lines", "-F", "997"], Duration::from_secs(1)).ok();
        if !walked_scripts(&outcome) {
            return;
        }
        let profile = Profile::from_stdout(&outcome);
        for stack in &profile.0 {
            assert_lines(stack, &shown);
        }
        let deepest = ["work", "small", "(anonymous)", "call", "(anonymous)"];
        let has_all = |stack: &Stack| functions(stack).starts_with(&deepest) && !stack.contains(&["[v8]"]);
        assert!(profile.0.iter().any(has_all), "{} {options:?}: {profile:?}", node.display());
    }
}

/// Asserts that the lines of functions are those where they call the next one, or that they are not known.
#[track_caller]
fn assert_lines(stack: &Stack, file: &str) {
    // Where code that was inlined is not known, a frame may lack the functions that it has called.
    if stack.contains(&["[v8]"]) {
        return;
    }
    let frames = stack.frames.iter().filter_map(|frame| frame.strip_suffix(')')?.rsplit_once(" ("));
    let frames: Vec<(&str, Option<u32>)> = frames
        .filter_map(|(name, place)| {
            let line = place.strip_prefix(file)?;
            Some((name, line.strip_prefix(':').and_then(|line| line.parse().ok())))
        })
        .collect();
    for (index, (name, line)) in frames.iter().enumerate() {
        let Some(line) = line else { continue };
        let called = frames.get(index + 1).map_or("", |(name, _)| name);
        let lines = match (*name, called) {
            ("work", "") => 1..=7,
            ("small", "work") => 12..=12,
            ("small", "") => 9..=13,
            ("call", "work") => 17..=19,
            ("call", "small") => 20..=20,
            ("call", "(anonymous)") => 21..=22,
            ("call", "") => 15..=24,
            ("(anonymous)", "small") => 22..=22,
            ("(anonymous)", "call") => 27..=27,
            ("(anonymous)", "") => 1..=28,
            _ => panic!("{name} calls {called}: {stack:?}"),
        };
        assert!(lines.contains(line), "{name} calls {called}: {stack:?}");
    }
}

#[test]
fn shows_what_was_inlined_into_code_that_was_entered_in_a_loop() {
    if !can_record() {
        return;
    }
    let folder = directory();
    let path = folder.path().join("loop.js");
    let source = "function work(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) & 0xffffff; return s; }
        function small(n) { return 1 + work(n); }
        function main() { let t = 0; for (;;) t = (t + small(50)) & 0xffff; }
        main();";
    std::fs::write(&path, source).unwrap();
    for node in nodes::supported() {
        for options in [&["--no-opt"][..], &[]] {
            let process = Background::start(command(&node).args(options).arg(&path));
            process.wait_for_cpu_time(Duration::from_millis(700));
            let outcome = record_process(&process, &["-v", "-F", "997"], Duration::from_millis(500)).ok();
            if !walked_scripts(&outcome) {
                return;
            }
            let profile = Profile::from_stdout(&outcome);
            assert_callers(&profile, &[("work", &["small", "main"])], &format!("{} {options:?}", node.display()));
        }
    }
}
