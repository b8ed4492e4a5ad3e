//! The spans that threads publish while they run (OTEP 4947).

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::support::process::Background;
use crate::support::programs::{compiler, program};
use crate::support::recording::{
    Profile, Stack, can_record, can_record_switches, finish, record, record_process, recorder,
};
use crate::support::{command, directory, require, run_bounded, skip, tool};

const LABELS: &str = "trace,span,attr:http_route";

/// Functions that run while the thread has the span with a number.
const IN_SPANS: [(&str, u32); 4] = [("handle_0", 0), ("handle_1", 1), ("handle_2", 2), ("wait_in_span", 4)];

/// Functions that run while the thread has no span.
const IDLE: [&str; 2] = ["idle", "wait_idle"];

const NO_SPAN: [&str; 3] = ["[no span]"; 3];

/// Returns the labels of a span.
fn labels(number: u32) -> [String; 3] {
    [
        format!("{:02x}", 0x10 + number).repeat(16),
        format!("{:02x}", 0x20 + number).repeat(8),
        format!("/route/{number}"),
    ]
}

/// Records the program, with a library if it loads one. `None` if the machine does not let us.
fn record_spans(program: &str, library: Option<&Path>, options: &[&str]) -> Option<Profile> {
    let process = Background::start(command(program).args(library));
    process.wait_for_cpu_time(Duration::from_millis(100));
    let options = [&["-v", "-F", "997", "--split-by", LABELS], options].concat();
    let outcome = record_process(&process, &options, Duration::from_secs(1));
    if outcome.code() == 125 && outcome.stderr.contains("--split-by trace: ") {
        skip(&outcome.stderr);
        return None;
    }
    Some(Profile::from_stdout(&outcome.ok()))
}

/// Asserts that each function has the span that it ran in, and no other.
#[track_caller]
fn assert_spans(profile: &Profile) {
    let has = |stack: &Stack, name: &str| stack.frames[4..].iter().any(|frame| frame == name);
    for stack in profile.0.iter().filter(|stack| stack.frames[0] != "[lost]") {
        let found = &stack.frames[..3];
        // The record of a sample may be lost, and the thread may not have been sampled yet.
        if found.iter().all(|label| label == "[unknown]") {
            continue;
        }
        for (name, number) in IN_SPANS {
            assert!(!has(stack, name) || found == labels(number), "{stack:?}");
        }
        for name in IDLE {
            assert!(!has(stack, name) || found == NO_SPAN, "{stack:?}");
        }
        if stack.frames[3] == "switcher" {
            // What is written while a sample is taken belongs to no span.
            assert!(found == NO_SPAN || (0..3).any(|number| found == labels(number)), "{stack:?}");
        }
    }
    for (name, number) in &IN_SPANS[..3] {
        let [trace, span, route] = labels(*number);
        profile.assert_contains(&[&trace, &span, &route, "server", name]);
        profile.assert_contains(&[&trace, &span, &route, "switcher"]);
    }
    profile.assert_contains(&["[no span]", "[no span]", "[no span]", "server", "idle"]);
    let (trace, span) = ("ee".repeat(16), "ee".repeat(8));
    profile.assert_contains(&[&trace, &span, "[no attribute]", "odd", "work_without_attribute"]);
    profile.assert_contains(&["[no span]", "[no span]", "a:b c d", "odd", "work_without_span"]);
    // It must not look like a frame between a waiter and its waker.
    profile.assert_contains(&["[no span]", "[no span]", "\"--\"", "odd", "work_like_waker"]);
    profile.assert_lacks(&["--"]);
}

/// Compiles the library with the variable.
fn library(folder: &Path, name: &str, options: &[&str]) -> std::path::PathBuf {
    let library = folder.join(name);
    let mut compiler = compiler(&library);
    compiler.args(["-O2", "-shared", "-fPIC"]).args(options).arg("thread_context.c");
    assert!(compiler.status().unwrap().success(), "{compiler:?}");
    library
}

#[test]
fn samples_have_the_span_of_their_thread() {
    let (true, Some(program)) = (can_record(), program("spans")) else { return };
    let Some(profile) = record_spans(&program, None, &[]) else { return };
    assert_spans(&profile);
}

#[test]
fn blocks_have_the_span_of_their_thread() {
    let (true, Some(program)) = (can_record_switches(&[]), program("spans")) else { return };
    let Some(profile) = record_spans(&program, None, &["--wall", "--off-cpu-period", "1"]) else { return };
    assert_spans(&profile);
    let [trace, span, route] = labels(4);
    profile.assert_contains(&[&trace, &span, &route, "waiter", "wait_in_span", "[off-cpu]"]);
    profile.assert_contains(&["[no span]", "[no span]", "[no span]", "waiter", "wait_idle", "[off-cpu]"]);
}

#[test]
fn finds_the_variable_of_a_library_that_the_program_is_linked_with() {
    if !can_record() || !require("cc") {
        return;
    }
    let folder = directory();
    for dialect in ["gnu2", "gnu"] {
        let library = library(folder.path(), "libcontext.so", &[&format!("-mtls-dialect={dialect}")]);
        let program = folder.path().join(format!("spans_{dialect}"));
        let mut compiler = compiler(&program);
        compiler
            .args(["-O2", "-g", "-fno-optimize-sibling-calls", "-fno-ipa-icf", "spans.c", "-pthread"])
            .arg(&library);
        assert!(compiler.status().unwrap().success(), "{compiler:?}");
        let Some(profile) = record_spans(program.to_str().unwrap(), None, &[]) else { return };
        assert_spans(&profile);
    }
}

/// With and without room for the variable in the storage that every thread has from its start.
#[test]
fn finds_the_variable_of_a_library_that_the_program_loads() {
    let (true, Some(program)) = (can_record(), program("spans_of_library")) else { return };
    let folder = directory();
    for (name, options) in [
        ("descriptor.so", &["-mtls-dialect=gnu2"][..]),
        ("large_descriptor.so", &["-mtls-dialect=gnu2", "-DFILL"]),
        ("pair.so", &["-mtls-dialect=gnu"]),
        ("large_pair.so", &["-mtls-dialect=gnu", "-DFILL"]),
        ("bound_pair.so", &["-mtls-dialect=gnu", "-DFILL", "-Wl,-Bsymbolic"]),
        ("bound_descriptor.so", &["-mtls-dialect=gnu2", "-DFILL", "-Wl,-Bsymbolic"]),
    ] {
        let library = library(folder.path(), name, options);
        let Some(profile) = record_spans(&program, Some(&library), &[]) else { return };
        assert_spans(&profile);
    }
}

/// The kernel does not report that a library was unloaded.
#[test]
fn finds_the_variable_of_a_library_that_was_loaded_again_elsewhere() {
    let (true, Some(program)) = (can_record(), program("spans_of_library")) else { return };
    let folder = directory();
    // It is too large for the gaps between others.
    let options = ["-mtls-dialect=gnu", "-DFILL", "-Wl,-z,max-page-size=0x200000"];
    let library = library(folder.path(), "pair.so", &options);
    let library = library.to_str().unwrap();
    let outcome = record(["-F", "997", "-d", "3", "--split-by", LABELS, "--", &program, library, "again"]);
    if outcome.code() == 125 && outcome.stderr.contains("--split-by trace: ") {
        skip(&outcome.stderr);
        return;
    }
    // The recorder ended the program.
    assert_eq!(outcome.code(), 143, "{outcome:?}");
    assert_spans(&Profile::from_stdout(&outcome));
}

/// The variable cannot be found then, but the threads may have spans.
#[test]
fn a_span_is_unknown_if_the_way_to_it_cannot_be_read() {
    let (true, Some(program)) = (can_record(), program("spans_of_library")) else { return };
    let folder = directory();
    for dialect in ["-mtls-dialect=gnu2", "-mtls-dialect=gnu"] {
        let library = library(folder.path(), "hidden.so", &[dialect, "-DFILL"]);
        let process = Background::start(command(&program).arg(&library).arg("unreadable"));
        process.wait_for_cpu_time(Duration::from_millis(100));
        let outcome = record_process(&process, &["-F", "997", "--split-by", LABELS], Duration::from_secs(1));
        if outcome.code() == 125 && outcome.stderr.contains("--split-by trace: ") {
            return skip(&outcome.stderr);
        }
        let profile = Profile::from_stdout(&outcome.ok());
        profile.assert_contains(&["[unknown]", "[unknown]", "[unknown]", "server", "handle_0"]);
        profile.assert_lacks(&["[no span]"]);
    }
}

/// A child has everything where its parent has it, also if it begins while the recorder writes to maps.
#[test]
fn a_new_process_has_the_span_of_its_parent_from_its_start() {
    let (true, Some(program)) = (can_record(), program("spans")) else { return };
    let folder = directory();
    let library = folder.path().join("slow_bpf.so");
    assert!(compiler(&library).args(["-shared", "-fPIC", "slow_bpf.c"]).status().unwrap().success());
    let process = Background::start(command(program).arg("fork"));
    process.wait_for_cpu_time(Duration::from_millis(20));
    let pid = process.pid();
    let mut recorder = recorder(["-F", "997", "--split-by", "trace,span", "-d", "0.3", "-p", &pid]);
    let outcome = finish(recorder.env("LD_PRELOAD", library).spawn().unwrap());
    if outcome.code() == 125 && outcome.stderr.contains("--split-by trace: ") {
        return skip(&outcome.stderr);
    }
    let profile = Profile::from_stdout(&outcome.ok());
    let [trace, span, _] = labels(0);
    profile.assert_contains(&[&trace, &span, "child", "handle_0"]);
    for stack in profile.0.iter().filter(|stack| stack.contains(&["child", "handle_0"])) {
        assert_eq!(stack.frames[..2], [&*trace, &*span], "{stack:?}");
    }
}

#[test]
fn a_variable_that_is_not_exported_gets_a_note() {
    if !can_record() || !require("cc") {
        return;
    }
    let folder = directory();
    let program = folder.path().join("spans");
    let mut compiler = compiler(&program);
    compiler.args(["-O2", "spans.c", "thread_context.c", "-pthread"]);
    assert!(compiler.status().unwrap().success(), "{compiler:?}");
    let program = program.to_str().unwrap();
    let outcome = record(["-F", "997", "-d", "0.3", "--split-by", "span", "--", program]);
    if outcome.code() == 125 && outcome.stderr.contains("--split-by span: ") {
        return skip(&outcome.stderr);
    }
    let note = "/spans does not export otel_thread_ctx_v1, the variable with its spans; link it with -Wl,--export";
    assert!(outcome.stderr.contains(note), "{outcome:?}");
}

#[test]
fn finds_the_variable_with_musl() {
    if !can_record() || !require("musl-gcc") {
        return;
    }
    let folder = directory();
    let build = |name: &str, arguments: &[&str]| {
        let built = folder.path().join(name);
        let mut compiler = command("musl-gcc");
        compiler.current_dir(crate::support::programs::sources()).args(["-O2", "-g", "-w", "-o"]).arg(&built);
        assert!(compiler.args(arguments).status().unwrap().success(), "{compiler:?}");
        built
    };
    let program = build("spans", &["-fno-optimize-sibling-calls", "-fno-ipa-icf", "-DLOAD", "spans.c"]);
    for dialect in ["-mtls-dialect=gnu2", "-mtls-dialect=gnu"] {
        let library = build("context.so", &["-shared", "-fPIC", "-DFILL", dialect, "thread_context.c"]);
        let Some(profile) = record_spans(program.to_str().unwrap(), Some(&library), &[]) else { return };
        let [trace, span, route] = labels(0);
        profile.assert_contains(&[&trace, &span, &route, "server"]);
        profile.assert_contains(&[&trace, &span, &route, "switcher"]);
    }
}

#[test]
fn a_program_without_spans_gets_one_note() {
    let (true, Some(program)) = (can_record(), program("callers")) else { return };
    let outcome = record(["-F", "997", "--split-by", "trace,attr:http_route", "--", &program, "1", "8"]);
    if outcome.code() != 0 {
        skip(&outcome.stderr);
        return;
    }
    let profile = Profile::from_stdout(&outcome);
    assert!(profile.0.iter().all(|stack| stack.frames[..2] == NO_SPAN[..2]), "{outcome:?}");
    assert_eq!(outcome.stderr.matches("no process publishes").count(), 1, "{outcome:?}");
}

#[test]
fn labels_of_spans_need_the_program_that_reads_them() {
    for (label, call_graph) in [("span", "fp"), ("span", "dwarf,8192"), ("task", "fp")] {
        let options = ["--split-by", label, "--call-graph", call_graph];
        let outcome = finish(recorder(options).args(["--", "true"]).spawn().unwrap());
        assert_eq!(outcome.code(), 2, "{outcome:?}");
    }
    let mut command = command("setpriv");
    command.args(["--reuid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]);
    if !require("setpriv") || !can_record() {
        return;
    }
    command.arg(tool("fg-record")).args(["--split-by", "attr:x", "--", "/bin/true"]);
    let outcome = run_bounded(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert_eq!((outcome.code(), outcome.text()), (125, String::new()), "{outcome:?}");
    assert!(outcome.stderr.contains("--split-by attr:x: "), "{outcome:?}");
}
