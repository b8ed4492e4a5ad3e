//! Ruby methods, as they run: without options, gems or a restart.

use std::process::Stdio;
use std::time::Duration;

use crate::support::process::Background;
use crate::support::programs::sources;
use crate::support::recording::{Profile, can_record, record, record_process};
use crate::support::script_functions::{Callers, assert_callers, walked_scripts};
use crate::support::{command, directory, skip_optional};

/// The methods of `functions.rb` that compute.
const CALLERS: Callers<'_> = &[
    ("burn_deep", &["deep", "deep", "deep"]),
    ("burn_odd", &["odd", "even", "odd", "even"]),
    ("burn_block", &["block in call_block"]),
    ("burn_fiber", &["in_fiber", "block in run_fiber"]),
    ("burn_sort", &["block in sort_numbers", "sort_numbers", "main", "<main>"]),
    ("burn_method", &["method", "method", "call", "main", "<main>"]),
    ("burn_thread", &["block in run_thread"]),
    ("burn_handler", &["rescue in handler", "handler", "main", "<main>"]),
];

/// True if the Ruby of this machine is one whose methods are shown. Otherwise reports the test as skipped.
#[track_caller]
pub fn has_ruby() -> bool {
    let mut check = command("ruby");
    check.args(["-e", "exit RUBY_ENGINE == 'ruby' && (RUBY_VERSION >= '3.0' && RUBY_VERSION < '3.4')"]);
    let is_known = check.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !is_known {
        skip_optional("no Ruby 3.0 to 3.3");
    }
    is_known
}

#[test]
fn shows_the_methods_of_a_command_and_of_a_process_that_runs_already() {
    if !can_record() || !has_ruby() {
        return;
    }
    let program = sources().join("functions.rb").display().to_string();
    let outcome = record(["-v", "-F", "997", "--", "ruby", &program, "0.7"]).ok();
    if !walked_scripts(&outcome) {
        return;
    }
    assert_callers(&Profile::from_stdout(&outcome), CALLERS, "ruby");

    let process = Background::start(command("ruby").args([&program, "100"]));
    process.wait_for_cpu_time(Duration::from_millis(300));
    let outcome = record_process(&process, &["-v", "-F", "997"], Duration::from_secs(1)).ok();
    let profile = Profile::from_stdout(&outcome);
    assert_callers(&profile, CALLERS, "ruby -p");
    let total: u64 = profile.0.iter().map(|stack| stack.weight).sum();
    let scripts = profile.0.iter().filter(|stack| stack.frames.iter().any(|frame| frame.ends_with(".rb)")));
    let scripts: u64 = scripts.map(|stack| stack.weight).sum();
    assert!(scripts * 100 >= total * 95, "{scripts} of {total}: {profile:?}");
}

/// True if the Ruby of this machine can compile methods. Otherwise reports the test as skipped.
#[track_caller]
fn has_yjit() -> bool {
    let mut check = command("ruby");
    check.args(["--yjit", "-e", "exit RubyVM::YJIT.enabled?"]).stderr(Stdio::null());
    let has_yjit = check.status().is_ok_and(|status| status.success());
    if !has_yjit {
        skip_optional("no YJIT");
    }
    has_yjit
}

#[test]
fn says_what_names_the_code_of_yjit() {
    if !can_record() || !has_ruby() || !has_yjit() {
        return;
    }
    let code = "def work(n) = n.times { |i| n ^= i }\n100_000.times { work(50) }";
    let outcome = record(["--call-graph", "fp", "-F", "997", "--", "ruby", "--yjit", "-e", code]).ok();
    let hint = "of stacks have frames without names in code that YJIT generated; start Ruby 3.3 or later with --yjit-perf; as root";
    assert_eq!(outcome.stderr.matches(hint).count(), 1, "{}", outcome.stderr);
}

/// YJIT compiles methods, whose frames the interpreter keeps.
#[test]
fn compiled_methods_have_no_frames_of_their_own() {
    if !can_record() || !has_ruby() || !has_yjit() {
        return;
    }
    let folder = directory();
    let path = folder.path().join("compiled.rb");
    let source = "def burn(n)
  sum = 0
  i = 0
  while i < n
    sum = (sum * 31 + i) & 0xffffff
    i += 1
  end
  sum
end

def deep(depth)
  depth > 0 ? deep(depth - 1) + 1 : burn(2000)
end

def call
  [1, 2].each { |n| burn(n + 2000) }
end

stop = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 1
while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < stop
  deep(3)
  call
end
";
    std::fs::write(&path, source).unwrap();
    let shown = path.display().to_string();
    let outcome = record(["-v", "-F", "997", "--", "ruby", "--yjit", &shown]).ok();
    if !walked_scripts(&outcome) {
        return;
    }
    let profile = Profile::from_stdout(&outcome);
    let frame = |name: &str| format!("{name} ({shown})");
    let chains = [
        ["<main>", "deep", "deep", "deep", "deep", "burn"].map(frame).to_vec(),
        ["<main>", "call", "block in call", "burn"].map(frame).to_vec(),
    ];
    for chain in &chains {
        let chain: Vec<&str> = chain.iter().map(String::as_str).collect();
        profile.assert_contains(&chain);
    }
    // For a few instructions, methods that Ruby 3.1 has compiled publish a frame that still has the method of an earlier call:
    // `burn` was at the depth of the innermost `deep`, and at that of what it calls itself.
    let burn = [frame("burn")];
    let unfilled_chains = [&chains[0][..4], &chains[0][..], &chains[1][..]].map(|callers| [callers, &burn].concat());
    let mut unfilled = 0;
    for stack in &profile.0 {
        let is_method = |name: &String| name.contains(" (");
        let methods = stack.frames.iter().filter(|name| is_method(name)).cloned().collect::<Vec<String>>();
        if methods.last() == Some(&frame("burn")) {
            assert!(!stack.frames.contains(&"[anon]".to_owned()), "{stack:?}");
            if unfilled_chains.iter().any(|chain| methods.ends_with(chain)) {
                unfilled += stack.weight;
            } else {
                assert!(chains.iter().any(|chain| methods.ends_with(chain)), "{stack:?}");
            }
            // The native functions that call a block are no callees of it.
            let callees = stack.frames.iter().skip_while(|name| !is_method(name)).skip_while(|name| is_method(name));
            assert!(callees.clone().all(|name| name != "rb_yield" && name != "rb_vm_exec"), "{stack:?}");
        }
    }
    let total = profile.0.iter().map(|stack| stack.weight).sum::<u64>();
    assert!(unfilled * 200 < total, "{unfilled} of {total}");
    assert!(!outcome.stderr.contains("without names"), "{outcome:?}");
}

#[test]
fn shows_the_line_of_each_call() {
    if !can_record() || !has_ruby() {
        return;
    }
    let folder = directory();
    let path = folder.path().join("lines.rb");
    let source = "def work(n)
  sum = 0
  i = 0
  while i < n
    sum = (sum * 31 + i) & 0xffffff
    i += 1
  end
  sum
end

def call
  x = 1
  work(100)
  [
    work(10),
    work(500_000 + x)
  ]
end

40.times do
  call
end
";
    std::fs::write(&path, source).unwrap();
    let shown = path.display().to_string();
    let outcome = record(["-v", "--lines", "-F", "997", "--", "ruby", &shown]).ok();
    if !walked_scripts(&outcome) {
        return;
    }
    let profile = Profile::from_stdout(&outcome);
    let calls = [13, 15, 16].map(|line| format!("call ({shown}:{line})"));
    for stack in &profile.0 {
        let Some(frame) = stack.frames.iter().position(|frame| frame.starts_with("work (")) else { continue };
        let line: u32 = stack.frames[frame].rsplit(':').next().unwrap().trim_end_matches(')').parse().unwrap();
        assert!((1..=9).contains(&line), "{stack:?}");
        assert!(calls.contains(&stack.frames[frame - 1]), "{stack:?}");
        assert_eq!(stack.frames[frame - 2], format!("block in <main> ({shown}:21)"), "{stack:?}");
    }
    profile.assert_contains(&[&calls[2], &format!("work ({shown}:5)")]);
}
