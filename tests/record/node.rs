//! JavaScript functions in Node.js, as they run: without options, agents or a restart.

use std::process::Stdio;
use std::time::Duration;

use crate::support::process::Background;
use crate::support::programs::sources;
use crate::support::recording::{Profile, can_record, record, record_process};
use crate::support::script_functions::{Callers, assert_callers, walked_scripts};
use crate::support::{command, directory, skip_optional};

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

/// True if the Node.js of this machine is one whose functions are shown. Otherwise reports the test as skipped.
#[track_caller]
pub fn has_node() -> bool {
    let mut check = command("node");
    check.args(["-e", "const v = parseInt(process.versions.node); process.exit(v < 16 || v > 24 ? 1 : 0)"]);
    let is_known = check.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !is_known {
        skip_optional("no Node.js 16 to 24");
    }
    is_known
}

/// Returns the weight of the stacks with a function of a script, and that of all.
fn script_weights(profile: &Profile) -> (u64, u64) {
    let is_script = |frame: &String| frame.ends_with(".js)");
    let scripts = profile.0.iter().filter(|stack| stack.frames.iter().any(is_script));
    (scripts.map(|stack| stack.weight).sum(), profile.total())
}

#[test]
fn shows_the_functions_of_a_command_and_of_a_process_that_runs_already() {
    if !can_record() || !has_node() {
        return;
    }
    let program = sources().join("functions.js").display().to_string();
    let outcome = record(["-v", "-F", "997", "--", "node", &program, "2", "worker"]).ok();
    if !walked_scripts(&outcome) {
        return;
    }
    let profile = Profile::from_stdout(&outcome);
    assert_callers(&profile, CALLERS, "node");
    assert_callers(&profile, &[("burn_worker", &["inWorker"])], "node");

    let process = Background::start(command("node").args([&program, "100"]));
    process.wait_for_cpu_time(Duration::from_millis(500));
    let outcome = record_process(&process, &["-v", "-F", "997"], Duration::from_secs(1)).ok();
    let profile = Profile::from_stdout(&outcome);
    assert_callers(&profile, CALLERS, "node -p");
    let (scripts, total) = script_weights(&profile);
    assert!(scripts * 100 >= total * 90, "{scripts} of {total}: {profile:?}");
    // Nothing tells which function runs in the first instructions of one that is not optimized, nor what code that is gone contained.
    let unknown = profile.weight(&["[v8]"]);
    assert!(unknown * 10 <= total, "{unknown} of {total}: {profile:?}");
}

#[test]
fn shows_native_frames_alone() {
    if !can_record() || !has_node() {
        return;
    }
    let program = sources().join("functions.js").display().to_string();
    let outcome = record(["--native-only", "-F", "997", "--", "node", &program, "0.5"]).ok();
    assert_eq!(script_weights(&Profile::from_stdout(&outcome)).0, 0);
}

#[test]
fn says_what_names_functions_where_the_kernel_takes_stacks() {
    if !can_record() || !has_node() {
        return;
    }
    let program = sources().join("functions.js").display().to_string();
    let outcome = record(["--call-graph", "fp", "-F", "997", "--", "node", &program, "1"]).ok();
    let hint = "in code that node generated; start node with --perf-basic-prof; as root, --call-graph dwarf names it without that";
    assert_eq!(outcome.stderr.matches(hint).count(), 1, "{}", outcome.stderr);
}

#[test]
fn shows_the_line_of_each_call() {
    if !can_record() || !has_node() {
        return;
    }
    let folder = directory();
    let path = folder.path().join("lines.js");
    let source = "function work(n) {
  let s = 0;
  for (let i = 0; i < n; i++) {
    s = (s * 31 + i) & 0xffffff;
  }
  return s;
}

function call() {
  const x = 1;
  work(100);
  return [
    work(10),
    work(500000 + x),
  ];
}

const last = Date.now() + 1000;
while (Date.now() < last) {
  call();
}
";
    std::fs::write(&path, source).unwrap();
    let shown = path.display().to_string();
    let outcome = record(["-v", "--lines", "-F", "997", "--", "node", &shown]).ok();
    if !walked_scripts(&outcome) {
        return;
    }
    let profile = Profile::from_stdout(&outcome);
    let line_of = |frame: &String| frame.strip_suffix(')')?.rsplit_once(".js:")?.1.parse::<u32>().ok();
    for stack in &profile.0 {
        for frame in &stack.frames {
            let Some(line) = line_of(frame) else { continue };
            let lines = match frame {
                frame if frame.starts_with("work (") => 1..=7,
                frame if frame.starts_with("call (") => 9..=16,
                frame if frame.contains("lines.js") => 18..=22,
                _ => continue,
            };
            assert!(lines.contains(&line), "{stack:?}");
        }
    }
}
