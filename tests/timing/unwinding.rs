//! Stacks of programs without frame pointers reach their root, and contain no frames of other calls.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::programs::{compiler, go_program, program, sources};
use crate::support::recording::{Profile, Stack, can_record, finish, record, recorder};
use crate::support::statistics::{Check, ensure, statistical};
use crate::support::{Outcome, command, directory, pythons, require, run_bounded, skip, skip_optional};

/// Returns the path of the program `unwound` if it can be recorded.
fn unwound() -> Option<String> {
    program("unwound").filter(|_| can_record())
}

/// Checks that enough of the stacks that contain `function` begin at the program's first function and contain `main`,
/// in a recording of `unwound MODE`.
fn check_rooted(mode: &str, function: &str, least: f64) -> Check {
    let profile = Profile::from_stdout(&record(["--", &program("unwound").unwrap(), mode]).ok());
    let (mut all, mut rooted) = (0, 0);
    for stack in profile.0.iter().filter(|stack| stack.contains(&[function])) {
        all += stack.weight;
        rooted += if stack.frames[1] == "_start" && stack.contains(&["main"]) { stack.weight } else { 0 };
    }
    ensure!(all > 10, "{all} samples in {function}");
    let share = rooted as f64 / all as f64;
    ensure!(share > least, "{mode}: {share} reach the root");
    Ok(())
}

#[test]
fn unwinds_a_deep_stack_to_its_root() {
    if unwound().is_some() {
        statistical(|| check_rooted("deep", "deep", 0.9));
    }
}

#[test]
fn unwinds_a_stack_of_large_frames_to_its_root() {
    if unwound().is_some() {
        statistical(|| check_rooted("wide", "wide", 0.9));
    }
}

#[test]
fn unwinds_through_a_frame_address_in_a_saved_register() {
    if unwound().is_some() {
        statistical(|| check_rooted("realigned", "saver", 0.9));
    }
}

#[test]
fn unwinds_from_a_signal_handler_to_what_it_interrupted() {
    if unwound().is_some() {
        statistical(|| check_rooted("alarmed", "alarmed", 0.9));
    }
}

#[test]
fn unwinds_from_a_stack_at_a_higher_address() {
    let Some(unwound) = unwound() else { return };
    statistical(|| {
        let outcome = record(["-v", "--", &unwound, "switched"]).ok();
        if outcome.stderr.contains("stacks copied") {
            skip("the kernel copies one stack only");
            return Ok(());
        }
        let profile = Profile::from_stdout(&outcome);
        let (all, rooted) = (profile.weight(&["saver"]), profile.weight(&["run_switched", "switched", "saver"]));
        // The words of one stack do not show the way to the other: the first samples are cut, until tables are made.
        ensure!(all > 50 && rooted * 10 > all * 6, "{rooted} rooted of {all}");
        Ok(())
    });
}

/// Checks that no stack of a thread that calls the `odd` and the `even` functions by turns contains both kinds, which
/// would be wrong. If `is_complete`, none may be truncated, but those of the first access to a page of the stack: the
/// kernel cannot copy a page that does not exist yet.
fn check_callers(outcome: &Outcome, is_complete: bool) -> Check {
    let contains = |stack: &Stack, prefix: &str| stack.frames.iter().any(|frame| frame.starts_with(prefix));
    let mut all = 0;
    for stack in Profile::from_stdout(outcome).0 {
        let (odd, even) = (contains(&stack, "odd"), contains(&stack, "even"));
        assert!(!(odd && even), "{stack:?}");
        let is_page_fault = contains(&stack, "asm_exc_page_fault");
        assert!(!(is_complete && !is_page_fault && (odd || even) && contains(&stack, "[truncated]")), "{stack:?}");
        all += if odd || even { stack.weight } else { 0 };
    }
    ensure!(all > 200, "{outcome:?}");
    Ok(())
}

#[test]
fn a_stack_has_the_callers_of_its_own_call() {
    let Some(unwound) = unwound() else { return };
    // The kernel's copy of a stack ends at a page that was never written: there are some in the frames of `requests`.
    for (mode, fits_in_copy) in [("requests", false), ("turns", true), ("buffers", true), ("shallows", true)] {
        for (bytes, is_complete) in [("65528", fits_in_copy), ("8192", false)] {
            statistical(|| {
                let dwarf = format!("dwarf,{bytes}");
                check_callers(&record(["--call-graph", &dwarf, "--", &unwound, mode, "10"]).ok(), is_complete)
            });
        }
    }
}

#[test]
fn a_stack_that_a_bpf_program_takes_is_complete() {
    for mode in ["requests", "turns", "buffers", "shallows"] {
        check_taken(&[], mode, "10");
    }
}

/// Checks that the stacks of `main.work` begin at the first function of a goroutine.
fn check_goroutines(program: &str) -> Check {
    let outcome = record(["-v", "--", program]).ok();
    let profile = Profile::from_stdout(&outcome);
    let in_work = || profile.0.iter().filter(|stack| stack.contains(&["main.work"]));
    let all: u64 = in_work().map(|stack| stack.weight).sum();
    let is_rooted = |stack: &&Stack| stack.frames[1].starts_with("runtime.goexit") && stack.contains(&["main.main"]);
    let rooted: u64 = in_work().filter(is_rooted).map(|stack| stack.weight).sum();
    // A copy of the stack on which the runtime allocates memory does not contain the stack of the goroutine.
    let least = if outcome.stderr.contains("stacks copied") { 85 } else { 97 };
    ensure!(all > 50 && rooted * 100 >= all * least, "{program}: {rooted} of {all} are rooted");
    Ok(())
}

#[test]
fn a_stack_that_a_bpf_program_takes_at_a_switch_is_complete() {
    check_taken(&["--off-cpu"], "naps", "2");
}

#[test]
fn a_stack_that_a_bpf_program_takes_at_a_tracepoint_is_complete() {
    if !Path::new("/sys/kernel/tracing/events/sched").exists() {
        return skip("tracefs is not mounted or not readable");
    }
    check_taken(&["-e", "sched:sched_switch"], "naps", "2");
    check_taken(&["-e", "syscalls:sys_enter_clock_nanosleep"], "naps", "2");
}

/// Checks the stacks of `unwound MODE ARGUMENT`, unless they are copied.
fn check_taken(options: &[&str], mode: &str, argument: &str) {
    let Some(unwound) = unwound() else { return };
    statistical(|| {
        let outcome = run_bounded(recorder(["-v"]).args(options).args(["--", &unwound, mode, argument])).ok();
        if outcome.stderr.contains("stacks copied") {
            skip("no BPF program takes the stacks");
            return Ok(());
        }
        check_callers(&outcome, true)
    });
}

#[test]
fn finds_the_root_of_a_goroutine() {
    if !can_record() || !require("go") {
        return;
    }
    let folder = directory();
    for options in [&[][..], &["-ldflags=-s -w"], &["-ldflags=-s -w", "-buildmode=pie"]] {
        let program = go_program(folder.path(), "goroutines", options);
        statistical(|| check_goroutines(&program));
    }
}

#[test]
fn a_sleeping_thread_has_the_callers_of_its_own_call() {
    let Some(unwound) = unwound() else { return };
    statistical(|| check_callers(&record(["--off-cpu", "--", &unwound, "naps", "2"]).ok(), false));
}

#[test]
fn samples_within_execve_are_whole_and_have_no_user_frames() {
    if !can_record() {
        return;
    }
    statistical(|| {
        let script = "for n in $(seq 300); do sh -c 'exec /bin/true'; done";
        let outcome = record(["-v", "-F", "4999", "--", "sh", "-c", script]).ok();
        if outcome.stderr.contains("stacks copied") {
            skip("no BPF program takes the stacks");
            return Ok(());
        }
        let profile = Profile::from_stdout(&outcome);
        ensure!(outcome.stderr.contains(" within execve, where there is no user stack"), "{outcome:?}");
        // The kernel replaces the program's memory, and maps the new program.
        let is_loading = |stack: &Stack| stack.frames.iter().any(|frame| frame.starts_with("load_elf_binary"));
        let (loading, cut) = (profile.0.iter().any(is_loading), profile.share(&["[truncated]"]));
        ensure!(loading && cut < 0.02, "{cut} cut: {outcome:?}");
        let without_stack = profile.share(&["[truncated]", "[unknown]"]);
        ensure!(without_stack < 0.005, "{without_stack} without a stack: {outcome:?}");
        Ok(())
    });
}

#[test]
fn stacks_that_are_taken_while_rows_are_made_reach_their_root() {
    if !can_record() || !require("cc") {
        return;
    }
    let folder = directory();
    let [library, program] = ["liblarge_tables.so", "large_tables"].map(|name| folder.path().join(name));
    let mut compile = compiler(&library);
    assert!(compile.args(["-O1", "-fPIC", "-shared", "large_tables.c"]).status().unwrap().success());
    let mut compile = compiler(&program);
    compile.args(["-O1", "-DMAIN", "large_tables.c"]).arg(&library).arg("-Wl,-rpath,$ORIGIN");
    assert!(compile.status().unwrap().success());
    statistical(|| {
        let outcome = record(["-v", "-F", "997", "--", program.to_str().unwrap()]).ok();
        if outcome.stderr.contains("stacks copied") {
            skip("no BPF program takes the stacks");
            return Ok(());
        }
        let profile = Profile::from_stdout(&outcome);
        ensure!(profile.share(&["spin"]) > 0.9, "{outcome:?}");
        let cut = profile.share(&["[truncated]"]);
        ensure!(cut < 0.02, "{cut} cut: {}", outcome.stderr);
        Ok(())
    });
}

/// Checks that the leaves of the program `callers` have their own callers, and that enough of their stacks begin at the
/// program's first function.
fn check_own_callers(outcome: &Outcome) -> Check {
    let profile = Profile::from_stdout(outcome);
    let (mut all, mut rooted) = (0, 0);
    for stack in profile.0.iter().filter(|stack| stack.frames.iter().any(|frame| frame.ends_with("_leaf"))) {
        let has = |name: &str| stack.contains(&[name]);
        for kind in ["odd", "even"] {
            let other = if kind == "odd" { "even" } else { "odd" };
            assert!(!(has(&format!("{kind}_leaf")) && has(&format!("{other}_caller"))), "{stack:?}");
        }
        let has_caller = has("odd_caller") || has("even_caller");
        all += stack.weight;
        rooted += if has_caller && stack.contains(&["_start", "main"]) { stack.weight } else { 0 };
    }
    ensure!(all > 100 && rooted * 100 >= all * 99, "{rooted} rooted of {all}: {outcome:?}");
    Ok(())
}

/// The ways to take stacks.
const WAYS: [&[&str]; 2] = [&[], &["--call-graph", "dwarf,65528"]];

/// Records a program with one of [`WAYS`].
fn record_with(way: &[&str], words: &[&str]) -> Outcome {
    let mut recorder = recorder(["-F", "997"]);
    finish(recorder.args(way).arg("--").args(words).spawn().unwrap()).ok()
}

#[test]
fn unwinds_code_without_unwind_information() {
    if !can_record() || !require("cc") {
        return;
    }
    let folder = directory();
    // Names come from the debug file that the stripped program refers to; it has no symbols to unwind by.
    for name in ["bare", "stripped"] {
        let path = folder.path().join(name);
        let mut compiler = compiler(&path);
        compiler.args(["-O2", "-g", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]);
        compiler.args(["-fno-optimize-sibling-calls", "-fno-ipa-icf", "-fno-ipa-cp", "callers.c"]);
        assert!(compiler.status().unwrap().success(), "{compiler:?}");
        if name == "stripped" {
            let script = "objcopy --only-keep-debug $0 $0.debug && strip $0 && objcopy --add-gnu-debuglink=$0.debug $0";
            assert!(command("sh").args(["-c", script]).arg(&path).status().unwrap().success());
        }
        for way in WAYS {
            statistical(|| check_own_callers(&record_with(way, &[path.to_str().unwrap(), "1", "20"])));
        }
    }
}

#[test]
fn unwinds_a_static_program_of_musl() {
    if !can_record() || !require("musl-gcc") {
        return;
    }
    let folder = directory();
    let path = folder.path().join("musl");
    let mut compiler = command("musl-gcc");
    compiler.current_dir(sources()).args(["-O2", "-g", "-static", "-w", "-o"]).arg(&path).arg("libc_calls.c");
    assert!(compiler.status().unwrap().success(), "{compiler:?}");
    for way in WAYS {
        statistical(|| {
            let profile = Profile::from_stdout(&record_with(way, &[path.to_str().unwrap(), "1"]));
            let (mut all, mut rooted) = (0, 0);
            for stack in profile.0.iter().filter(|stack| stack.frames.iter().any(|frame| is_libc_leaf(frame))) {
                let leaf = stack.frames.iter().find_map(|frame| CALLERS.iter().find(|(leaf, _)| leaf == frame));
                let (_, callers) = leaf.unwrap();
                let has = |name: &&str| stack.contains(&["_start", "main", name]);
                assert!(
                    !["copy", "print", "sort"].iter().any(|name| !callers.contains(name) && has(name)),
                    "{stack:?}"
                );
                all += stack.weight;
                rooted += if callers.iter().any(has) { stack.weight } else { 0 };
            }
            ensure!(all > 100 && rooted * 100 >= all * 99, "{rooted} rooted of {all}: {profile:?}");
            Ok(())
        });
    }
}

/// Functions of the program `libc_calls` and of musl, with those of the program that call them.
const CALLERS: [(&str, &[&str]); 4] =
    [("memcpy", &["copy", "print", "sort"]), ("fmt_fp", &["print"]), ("smoothsort", &["sort"]), ("compare", &["sort"])];

/// True for functions in [`CALLERS`].
fn is_libc_leaf(frame: &str) -> bool {
    CALLERS.iter().any(|(leaf, _)| *leaf == frame)
}

#[test]
fn unwinds_builtins_and_generated_code_of_node() {
    if !can_record() || !require("node") {
        return;
    }
    let folder = directory();
    let script = "function odd() { const numbers = []; for (let n = 0; n < 5000; n++) numbers.push(n * 7919 % 5003);
            return numbers.sort((a, b) => a - b)[5]; }
        function even() { const map = new Map(); for (let n = 0; n < 5000; n++) map.set('k' + n, n); return map.size; }
        function oddCaller() { return odd() + 1; }
        function evenCaller() { return even() + 1; }
        const end = Date.now() + 1500;
        while (Date.now() < end) oddCaller() + evenCaller();";
    let path = folder.path().join("a.js");
    std::fs::write(&path, script).unwrap();
    let log = format!("--logfile={}", folder.path().join("v8.log").display());
    for way in WAYS {
        statistical(|| {
            let words = ["node", "--perf-basic-prof", &log, path.to_str().unwrap()];
            let profile = Profile::from_stdout(&record_with(way, &words));
            let (mut all, mut rooted) = (0, 0);
            for stack in
                profile.0.iter().filter(|stack| stack.frames.iter().any(|frame| frame.starts_with("Builtins_")))
            {
                let has = |name: &str| stack.frames.iter().any(|frame| frame.contains(name));
                assert!(!(has("Builtins_MapPrototypeSet") && has("oddCaller")), "{stack:?}");
                assert!(!(has("Builtins_ArrayTimSort") && has("evenCaller")), "{stack:?}");
                all += stack.weight;
                rooted += if stack.contains(&["_start", "Builtins_JSEntry"]) { stack.weight } else { 0 };
            }
            ensure!(all > 100 && rooted * 100 >= all * 95, "{rooted} rooted of {all}: {profile:?}");
            Ok(())
        });
    }
}

/// Returns the path of a Python whose functions can have trampolines.
fn find_python_with_trampolines() -> Option<String> {
    let has_trampolines = |python: &PathBuf| {
        let mut check = command(python);
        check.args(["-X", "perf", "-c", "import sys; sys.activate_stack_trampoline"]);
        check.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    pythons::all().into_iter().find(has_trampolines).map(|python| python.display().to_string())
}

#[test]
fn unwinds_trampolines_of_python() {
    if !can_record() {
        return;
    }
    let Some(python) = find_python_with_trampolines() else {
        return skip_optional("no Python from 3.12 on, whose functions have trampolines");
    };
    let folder = directory();
    // Functions whose trampolines fill pages, so that some lie across two.
    let script = "import time\nspace = {}\n
for n in range(600):
    exec(f'def f{n}(k):\\n    return f{n + 1}(k) if {n} % 50 < 49 else sum(range(k))', space)
end = time.time() + 1.5
while time.time() < end:
    for n in range(0, 600, 50): space[f'f{n}'](2000)
";
    let path = folder.path().join("a.py");
    std::fs::write(&path, script).unwrap();
    for way in WAYS {
        statistical(|| {
            let options = [way, &["--native-only"]].concat();
            let words = [&*python, "-X", "perf", path.to_str().unwrap()];
            let profile = Profile::from_stdout(&record_with(&options, &words));
            let is_python = |stack: &&Stack| stack.frames.iter().any(|frame| frame.starts_with("py::f"));
            let (mut all, mut rooted) = (0, 0);
            for stack in profile.0.iter().filter(is_python) {
                let names = stack.frames.iter().filter_map(|frame| frame.strip_prefix("py::f")?.split(':').next());
                let numbers: Vec<u32> = names.map(|number| number.parse().unwrap()).collect();
                assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{stack:?}");
                all += stack.weight;
                rooted += if stack.contains(&["_start", "Py_BytesMain"]) { stack.weight } else { 0 };
            }
            ensure!(all > 100 && rooted * 100 >= all * 99, "{rooted} rooted of {all}: {profile:?}");
            Ok(())
        });
    }
}
