//! Stacks that the BPF program takes: whole and right, however deep, and of every process from its first instant.

use std::path::Path;
use std::time::Duration;

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};

use crate::support::callers::{LeafSamples, has_leaf};
use crate::support::process::Background;
use crate::support::programs::{compiler, program, sources};
use crate::support::recording::{Profile, Stack, can_record, finish, record, recorder, until_cpu_time};
use crate::support::{Outcome, command, directory, require, skip};

/// Returns true if a recording with `-v` took its stacks with the BPF program. Otherwise reports the test as skipped.
#[track_caller]
fn took_stacks(outcome: &Outcome) -> bool {
    let copied = outcome.stderr.lines().find(|line| line.contains("stacks copied"));
    if let Some(copied) = copied {
        skip(copied);
    }
    copied.is_none()
}

#[test]
fn the_first_samples_have_stacks() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let folder = directory();
    let library = folder.path().join("slow_enable.so");
    assert!(compiler(&library).args(["-shared", "-fPIC", "slow_enable.c"]).status().unwrap().success());
    let process = Background::start(command(busy).arg("100"));
    process.wait_for_cpu_time(Duration::from_millis(50));
    let until = until_cpu_time(process.pid().parse().unwrap(), Duration::from_millis(200));
    let mut recorder = recorder(["-v", "-F", "997", "-p", &process.pid()]);
    let outcome = finish(recorder.args(until).env("LD_PRELOAD", library).spawn().unwrap());
    assert_eq!(outcome.code(), 3, "{outcome:?}");
    if took_stacks(&outcome) {
        assert!(outcome.stderr.contains(", 0 missing,"), "{}", outcome.stderr);
    }
}

#[test]
fn every_leaf_has_its_own_caller_at_any_depth() {
    let (true, Some(callers)) = (can_record(), program("callers")) else { return };
    for depth in ["1", "60", "500", "900"] {
        let outcome = record(["-v", "-F", "997", "--", &callers, "0.3", depth]).ok();
        if !took_stacks(&outcome) {
            return;
        }
        let samples = LeafSamples::count(&Profile::from_stdout(&outcome), depth.parse().unwrap());
        assert!(samples.all > 0 && samples.truncated == 0, "{samples:?} at depth {depth}");
    }
}

#[test]
fn threads_that_have_just_been_created_have_no_caller() {
    let (true, Some(threads)) = (can_record(), program("threads")) else { return };
    for graph in ["dwarf", "dwarf,65528"] {
        let recording = ["--call-graph", graph, "-F", "4999", "--", &threads, "empty", "20000"];
        let profile = Profile::from_stdout(&record(recording).ok());
        let is_creation = |frame: &String| frame.starts_with("clone") || frame.starts_with("__clone");
        let cut = profile
            .0
            .iter()
            .filter(|stack| stack.frames[1] == "[truncated]" && stack.frames.get(2).is_some_and(is_creation));
        assert_eq!(cut.count(), 0, "{graph}: {profile:?}");
        assert!(profile.0.iter().any(|stack| is_creation(&stack.frames[1])), "{graph}: {profile:?}");
    }
}

#[test]
fn the_first_word_of_a_new_stack_is_no_return_address() {
    let (true, Some(threads)) = (can_record(), program("threads")) else { return };
    if cfg!(not(target_arch = "x86_64")) {
        return skip("the functions are written in assembly of x86-64");
    }
    let outcome = record(["-v", "-F", "4999", "--", &threads, "planted", "20000"]).ok();
    if !took_stacks(&outcome) {
        return;
    }
    let profile = Profile::from_stdout(&outcome);
    profile.assert_lacks(&["unused"]);
    for function in ["create", "create_bare"] {
        let is_new = |stack: &&Stack| stack.frames.iter().any(|frame| frame.starts_with("ret_from_fork"));
        let mut new = profile.0.iter().filter(is_new).filter(|stack| stack.contains(&[function])).peekable();
        assert!(new.peek().is_some() && new.all(|stack| stack.frames[1] == function), "{function}: {profile:?}");
        assert!(profile.0.iter().any(|stack| stack.contains(&["main", function])), "{function}: {profile:?}");
        let mut ends = profile.0.iter().filter(|stack| stack.contains(&[function, "do_exit"])).peekable();
        assert!(ends.peek().is_some() && ends.all(|stack| stack.frames[1] == function), "{function}: {profile:?}");
    }
}

#[test]
fn a_return_address_in_a_register_is_found_without_unwind_information() {
    let (true, Some(threads)) = (can_record(), program("threads")) else { return };
    if cfg!(not(target_arch = "x86_64")) {
        return skip("the function is written in assembly of x86-64");
    }
    let profile = Profile::from_stdout(&record(["-F", "4999", "--", &threads, "vforked", "2000"]).ok());
    let mut stacks = profile.0.iter().filter(|stack| stack.contains(&["bare_vfork"])).peekable();
    assert!(stacks.peek().is_some() && stacks.all(|stack| stack.contains(&["main", "bare_vfork"])), "{profile:?}");
}

#[test]
fn what_a_system_call_interrupts_is_unwound_as_the_call() {
    let (true, Some(threads)) = (can_record(), program("threads")) else { return };
    let outcome = record(["-v", "-F", "4999", "--", &threads, "children", "4000"]).ok();
    if !took_stacks(&outcome) {
        return;
    }
    let profile = Profile::from_stdout(&outcome);
    let is_clone = |frame: &String| frame.starts_with("clone") || frame.starts_with("__clone");
    // A child that exits is behind the last instruction of its part of `clone`.
    let stacks = || profile.0.iter().filter(|stack| stack.frames.iter().any(is_clone));
    assert!(stacks().all(|stack| is_clone(&stack.frames[1]) || stack.contains(&["main"])), "{profile:?}");
    assert!(stacks().any(|stack| is_clone(&stack.frames[1]) && stack.contains(&["do_exit"])), "{profile:?}");
}

#[test]
fn a_function_that_is_called_by_a_register_is_no_system_call() {
    let (true, Some(unwound)) = (can_record(), program("unwound")) else { return };
    for graph in ["dwarf", "dwarf,65528"] {
        let recording = ["--call-graph", graph, "-F", "997", "--", &unwound, "repeated"];
        let profile = Profile::from_stdout(&record(recording).ok());
        assert!(!profile.0.iter().any(|stack| stack.contains(&["unused"])), "{graph}: {profile:?}");
        assert!(
            profile.0.iter().any(|stack| stack.contains(&["main", "start_repeated", "repeater", "repeated"])),
            "{graph}: {profile:?}"
        );
    }
}

#[test]
fn an_undefined_return_address_may_be_defined_again() {
    let (true, Some(unwound)) = (can_record(), program("unwound")) else { return };
    if cfg!(not(target_arch = "x86_64")) {
        return skip("the functions are written in assembly of x86-64");
    }
    for graph in ["dwarf", "dwarf,65528"] {
        let recording = ["--call-graph", graph, "-F", "997", "--", &unwound, "rootless"];
        let profile = Profile::from_stdout(&record(recording).ok());
        let stacks = |name| profile.0.iter().filter(move |stack| stack.contains(&[name]));
        assert!(stacks("rootless").next().is_some() && stacks("rerooted").next().is_some(), "{graph}: {profile:?}");
        assert!(stacks("rootless").all(|stack| stack.frames[1] == "rootless"), "{graph}: {profile:?}");
        assert!(
            stacks("rerooted").all(|stack| stack.contains(&["_start", "main", "rerooted"])),
            "{graph}: {profile:?}"
        );
    }
}

#[test]
fn a_context_begins_where_makecontext_lets_it_return() {
    let (true, Some(unwound)) = (can_record(), program("unwound")) else { return };
    for graph in ["dwarf", "dwarf,65528"] {
        let recording = ["--call-graph", graph, "-F", "997", "--", &unwound, "contexts"];
        let profile = Profile::from_stdout(&record(recording).ok());
        let mut stacks = profile.0.iter().filter(|stack| stack.contains(&["saver"])).peekable();
        assert!(stacks.peek().is_some(), "{graph}: {profile:?}");
        assert!(stacks.all(|stack| stack.frames[1..3] == ["__start_context", "in_context"]), "{graph}: {profile:?}");
    }
}

#[test]
fn a_null_pointer_that_was_called_is_no_root() {
    let (true, Some(unwound)) = (can_record(), program("unwound")) else { return };
    for graph in ["dwarf", "dwarf,65528"] {
        let profile = Profile::from_stdout(&record(["--call-graph", graph, "-F", "997", "--", &unwound, "null"]).ok());
        let mut handlers = profile.0.iter().filter(|stack| stack.contains(&["handler_that_exits"])).peekable();
        assert!(handlers.peek().is_some(), "{graph}: {profile:?}");
        assert!(
            handlers.all(|stack| stack.frames[1] == "[truncated]" || stack.contains(&["main"])),
            "{graph}: {profile:?}"
        );
    }
}

#[test]
fn a_signal_in_a_system_call_interrupts_the_function_that_calls() {
    let (true, Some(unwound)) = (can_record(), program("unwound")) else { return };
    for graph in ["dwarf", "dwarf,65528"] {
        let recording = ["--call-graph", graph, "-F", "997", "--", &unwound, "suspended"];
        let profile = Profile::from_stdout(&record(recording).ok());
        profile.assert_lacks(&["unsuspended"]);
        let mut handlers = profile.0.iter().filter(|stack| stack.contains(&["handler_that_exits"])).peekable();
        assert!(handlers.peek().is_some(), "{graph}: {profile:?}");
        let calls = ["main", "start_suspended", "suspender"];
        assert!(profile.0.iter().any(|stack| stack.contains(&calls) && stack.contains(&["handler_that_exits"])));
        assert!(
            handlers.all(|stack| stack.frames[1] == "[truncated]" || stack.contains(&calls)),
            "{graph}: {profile:?}"
        );
    }
}

#[test]
fn a_function_that_the_kernel_executes_has_its_callers() {
    let (true, Some(unwound)) = (can_record(), program("unwound")) else { return };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    if !maps.contains("[vsyscall]") {
        return skip("the kernel provides no functions at fixed addresses");
    }
    for graph in ["dwarf", "dwarf,65528"] {
        let recording = ["--call-graph", graph, "-F", "997", "--", &unwound, "vsyscall"];
        let profile = Profile::from_stdout(&record(recording).ok());
        let mut stacks = profile.0.iter().filter(|stack| stack.contains(&["[vsyscall]"])).peekable();
        assert!(stacks.peek().is_some(), "{graph}: {profile:?}");
        // Within emulate_vsyscall, the return address has been taken from the stack, and is not yet where the thread goes on.
        let returns =
            |stack: &Stack| stack.frames[1] == "[truncated]" && stack.frames.last().unwrap() == "emulate_vsyscall";
        let has_callers = |stack: &Stack| stack.contains(&["_start", "main", "fixed", "[vsyscall]"]);
        assert!(stacks.all(|stack| has_callers(stack) || returns(stack)), "{graph}: {profile:?}");
    }
}

#[test]
fn copies_leave_out_what_is_deeper_than_they_are() {
    let (true, Some(callers)) = (can_record(), program("callers")) else { return };
    let outcome = record(["--call-graph", "dwarf,65528", "-F", "997", "--", &callers, "0.3", "500"]).ok();
    let profile = Profile::from_stdout(&outcome);
    let leaves = || profile.0.iter().filter(|stack| has_leaf(stack));
    assert!(leaves().all(|stack| stack.frames[1] == "[truncated]"), "{profile:?}");
    assert!(leaves().next().is_some() && leaves().all(|stack| !stack.contains(&["main"])), "{profile:?}");
}

#[test]
fn samples_belong_to_the_target_and_its_children_alone() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let mut stranger = crate::support::command(&busy);
    let stranger = crate::support::process::Background::start(stranger.arg("30"));
    let script = "i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done; exec \"$0\" 0.2";
    let outcome = record(["--script", "-F", "997", "--", "sh", "-c", script, &busy]).ok();
    let text = String::from_utf8(outcome.stdout).unwrap();
    // The first line of a sample begins with the thread's name and its ID.
    let headers = text.lines().filter(|line| !line.is_empty() && !line.starts_with(char::is_whitespace));
    let ids: Vec<&str> = headers.filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert!(ids.len() > 100 && !ids.contains(&&*stranger.pid()), "{ids:?}");
    assert!(text.lines().any(|line| line.starts_with("busy ")), "{text}");
}

/// A probe at a function of a program, as `perf probe -x` makes them. It is removed at the end.
struct Probe {
    name: String,
}

const PROBES: &str = "/sys/kernel/tracing/uprobe_events";

impl Probe {
    /// Makes a probe. Returns nothing if that is not permitted.
    fn create(program: &str, function: &str) -> Option<Self> {
        let bytes = std::fs::read(program).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let address = file.symbols().find(|symbol| symbol.name() == Ok(function)).unwrap().address();
        let contains = |start: u64, size: u64| address >= start && address - start < size;
        let segment = file.segments().find(|segment| contains(segment.address(), segment.size())).unwrap();
        let offset = address - segment.address() + segment.file_range().0;
        let name = format!("fg_{}/{function}", std::process::id());
        write_probes(&format!("p:{name} {program}:{offset:#x}")).then_some(Self { name })
    }

    /// Returns the name as that of an event.
    fn event(&self) -> String {
        self.name.replace('/', ":")
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        assert!(write_probes(&format!("-:{}", self.name)));
    }
}

fn write_probes(line: &str) -> bool {
    use std::io::Write as _;
    let file = std::fs::OpenOptions::new().append(true).open(PROBES);
    file.and_then(|mut file| file.write_all(line.as_bytes())).is_ok()
}

/// The stack of a call is taken in the thread, which a sample of the clock may interrupt meanwhile.
#[test]
fn a_sample_leaves_the_stack_of_a_call_that_it_interrupts_alone() {
    let (true, Some(callers)) = (can_record(), program("callers")) else { return };
    let Some(probes) = ["odd_leaf", "even_leaf"]
        .into_iter()
        .map(|function| Probe::create(&callers, function))
        .collect::<Option<Vec<Probe>>>()
    else {
        return skip("probes need root and tracefs");
    };
    let folder = directory();
    let output = folder.path().join("%e.folded").display().to_string();
    let [odd, even] = [&probes[0].event(), &probes[1].event()];
    let outcome =
        record(["-v", "-e", odd, "-e", even, "-e", "cpu-clock", "-o", &output, "--", &callers, "2", "900"]).ok();
    if !took_stacks(&outcome) {
        return;
    }
    let read = |event: &str| {
        let file: &Path = &folder.path().join(format!("{}.folded", event.replace(':', "-")));
        Profile::parse(&std::fs::read(file).unwrap())
    };
    for event in [odd, even, "cpu-clock"] {
        let samples = LeafSamples::count(&read(event), 900);
        assert!(samples.all > 0, "{event}: {outcome:?}");
    }
    // The kernel executes a copy of the probed instruction, a comparison. Stacks that were lost are counted apart.
    assert!(outcome.stderr.contains(" 0 no unwind information"), "{outcome:?}");
}

/// `_Unwind_Resume` writes the address of a handler over a return address before it returns there.
#[test]
fn a_stack_on_which_an_exception_is_handled_has_its_root() {
    if !can_record() || !require("c++") {
        return;
    }
    let folder = directory();
    let program = folder.path().join("exceptions").display().to_string();
    let mut compiler = command("c++");
    compiler.current_dir(sources()).args(["-O2", "-fno-optimize-sibling-calls", "-o", &program, "exceptions.cc"]);
    assert!(compiler.status().unwrap().success());
    let mut samples = 0;
    for options in [&[][..], &["--call-graph", "dwarf,65528"]] {
        let mut recorder = recorder(["-F", "20000"]);
        let outcome = finish(recorder.args(options).args(["--", &program, "1.5"]).spawn().unwrap()).ok();
        for stack in Profile::from_stdout(&outcome).0 {
            if stack.frames.iter().any(|frame| frame == "descend" || frame == "throw_and_catch") {
                let is_whole = stack.contains(&["main", "throw_and_catch"]) || stack.contains(&["[truncated]"]);
                assert!(is_whole, "{options:?} {stack:?}");
                samples += stack.weight;
            }
        }
    }
    assert!(samples > 0);
}

#[test]
fn refuses_rates_at_which_stacks_would_take_all_the_time() {
    let Some(busy) = program("busy").filter(|_| can_record()) else { return };
    if !took_stacks(&record(["-v", "--", "true"])) {
        return;
    }
    let limit = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").unwrap();
    if limit.trim().parse::<u32>().unwrap() < 60_000 {
        return skip("the kernel permits no such rates");
    }
    let refused = record(["-F", "60000", "--", &busy, "1"]);
    assert_eq!((refused.code(), &*refused.text()), (2, ""), "{refused:?}");
    assert!(refused.stderr.contains("-F 60000: the BPF program takes at most 50000 stacks a second"), "{refused:?}");
    record(["-F", "60000", "--call-graph", "fp", "--", "true"]).ok();
}

/// The counters of a thread end with it, but not the program that takes the stacks of others at the same tracepoint.
#[test]
fn stacks_at_tracepoints_are_whole_after_processes_have_exited() {
    if !can_record() {
        return;
    }
    let script = "for n in 1 2 3 4 5 6 7 8 9 10; do true | cat; echo x >/dev/null; done";
    let outcome = record(["-v", "-e", "syscalls:sys_enter_write", "--", "sh", "-c", script]);
    if !outcome.status.success() {
        return skip(&outcome.stderr);
    }
    if !took_stacks(&outcome) {
        return;
    }
    let profile = Profile::from_stdout(&outcome);
    assert!(profile.thread_weight("sh") >= 10, "{outcome:?}");
    assert_eq!(profile.weight(&["[truncated]"]), 0, "{outcome:?}");
}

/// The code to which handlers return has no unwind information in musl.
#[test]
fn signal_handlers_of_musl_are_called_by_what_they_interrupt() {
    if !can_record() || !require("musl-gcc") {
        return;
    }
    let folder = directory();
    let handled = folder.path().join("handled");
    let mut compiler = command("musl-gcc");
    compiler.args(["-static", "-O2", "-o"]).arg(&handled).arg(sources().join("handled.c"));
    assert!(compiler.status().unwrap().success());
    for graph in ["dwarf", "dwarf,65528"] {
        let options = ["--call-graph", graph, "-F", "997", "--", &handled.to_string_lossy()];
        let profile = Profile::from_stdout(&record(options).ok());
        let handlers: Vec<_> = profile.0.iter().filter(|stack| stack.contains(&["handler"])).collect();
        assert!(!handlers.is_empty(), "{graph}: {profile:?}");
        for stack in handlers {
            assert!(stack.contains(&["main", "interrupted", "raise", "__restore_rt", "handler"]), "{graph}: {stack:?}");
        }
    }
}
