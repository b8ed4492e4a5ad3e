//! Storms of fork, exec, exit, dlopen and munmap: whatever happens, a sample is its own program's.
//!
//! Two storms a test; `FG_STORMS=50` makes more of them.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::folded::{Folded, end, may_record, recorder, send};
use crate::support::{Outcome, directory, eventually, has, skip};

const PROGRAMS: usize = 5;

/// Compiles the programs p0 to p4, each of which runs the next, and two libraries.
fn compile(folder: &Path) {
    let compile = |arguments: &[String], output: &str| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/storm.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-fno-optimize-sibling-calls", "-w", "-o", output]).args(arguments).arg(source);
        assert!(compiler.arg("-ldl").current_dir(folder).status().unwrap().success());
    };
    for number in 0..PROGRAMS {
        let next = (number + 1) % PROGRAMS;
        compile(&[format!("-DPROGRAM=p{number}"), format!("-DNEXT=p{next}")], &format!("p{number}"));
    }
    for library in ["a", "b"] {
        compile(&[format!("-DLIBRARY={library}"), "-shared".into(), "-fPIC".into()], &format!("lib{library}.so"));
    }
}

/// What is wrong with a stack.
fn wrong(stack: &[String]) -> Option<&'static str> {
    let (thread, frames) = stack.split_first()?;
    let has = |name: &str| frames.iter().any(|frame| frame == name);
    let others = (0..PROGRAMS).map(|number| format!("p{number}")).filter(|program| program != thread);
    if thread.starts_with(':') {
        return Some("no process");
    }
    if thread.starts_with('p') && others.map(|other| format!("in_{other}")).any(|other| has(&other)) {
        return Some("another program's function");
    }
    if (has("call_a") && has("in_b")) || (has("call_b") && has("in_a")) {
        return Some("the other library's function");
    }
    // In the midst of an exec the old program is gone, and its registers are not. The kernel cannot follow its own stack from
    // within a thunk: then nothing tells whether there is one.
    let may_exec = frames.iter().any(|frame| frame.contains("exec"))
        || matches!(frames, [.., below, leaf] if below == "[unknown]" && leaf.contains("_indirect_thunk_"));
    let known = |name: &str| may_exec || (!name.starts_with("[unknown]") && name != "[anon]");
    (!frames.iter().all(|frame| known(frame))).then_some("code that belongs to nothing")
}

/// Records storms; how many of their samples met programs and libraries.
fn storms(ends_with_command: bool) -> u64 {
    let folder = directory();
    compile(folder.path());
    let runs = std::env::var("FG_STORMS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(2);
    let mut met = 0;
    for run in 0..runs {
        // Of all CPUs, who takes samples that often takes none in time.
        let mut command = recorder(["--no-inline", "-F", if ends_with_command { "9973" } else { "1999" }]);
        command.current_dir(&folder);
        let outcome = if ends_with_command {
            end(command.args(["--", "./p0", "6"]).spawn().unwrap())
        } else {
            record_all_while(command, 20, Command::new("./p0").arg("6").current_dir(&folder))
        };
        if outcome.stderr.contains("cannot record all CPUs") {
            skip(&outcome.stderr);
            return u64::MAX;
        }
        let outcome = outcome.ok();
        let profile = Folded::of(&outcome);
        let ours = profile.0.iter().filter(|(stack, _)| ends_with_command || is_ours(&stack[0]));
        for (stack, weight) in ours.filter(|(stack, _)| stack[0] != "[lost]") {
            assert_eq!(wrong(stack), None, "run {run}: {weight} {}\n{}", stack.join(";"), outcome.stderr);
            met += if stack.iter().any(|frame| frame.starts_with("in_")) { *weight } else { 0 };
        }
    }
    met
}

/// Records all CPUs while a program runs so many times; the first time the recorder may still be about to begin.
fn record_all_while(mut recorder: Command, times: u32, program: &mut Command) -> Outcome {
    let mut recorder = recorder.arg("-a").spawn().unwrap();
    let files = Path::new("/proc").join(recorder.id().to_string()).join("fd");
    let waits_for_rings = || {
        let mut files = std::fs::read_dir(&files).into_iter().flatten().flatten();
        files.any(|file| std::fs::read_link(file.path()).is_ok_and(|it| it.ends_with("anon_inode:[eventpoll]")))
    };
    assert!(eventually(|| waits_for_rings() || recorder.try_wait().unwrap().is_some()));
    for _ in 0..times {
        program.status().unwrap();
    }
    if recorder.try_wait().unwrap().is_none() {
        send(&recorder, libc::SIGINT);
    }
    end(recorder)
}

fn is_ours(thread: &str) -> bool {
    thread.starts_with(':') || (0..PROGRAMS).any(|number| thread == format!("p{number}"))
}

#[test]
fn in_a_storm_every_sample_of_a_command_is_its_own_programs() {
    if may_record() && has("cc") {
        let met = storms(true);
        assert!(met > 50, "{met}");
    }
}

#[test]
fn in_a_storm_every_sample_of_the_system_is_its_own_programs() {
    if may_record() && has("cc") {
        let met = storms(false);
        assert!(met > 50, "{met}");
    }
}

/// A child ends, and what it had mapped takes long to take down: its parent, which may run whenever it wants, wakes up
/// meanwhile and keeps their CPU for most of a second.
const LINGERING: &str = r#"
import mmap, os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
ready, tell = os.pipe()
child = os.fork()
if not child:
    pages = mmap.mmap(-1, 300 << 20)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(0, len(pages), 4096): pages[page] = 1
    os.write(tell, b"!")
    os._exit(0)
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
os.read(ready, 1)
time.sleep(0.01)
end = time.monotonic() + 0.8
while time.monotonic() < end: pass
os.waitpid(child, 0)
"#;

#[test]
fn a_process_that_takes_long_to_end_keeps_its_name() {
    if !(may_record() && has("python3")) {
        return;
    }
    let recording = recorder(["-F", "2000", "--call-graph", "fp", "--no-inline"]);
    let outcome = record_all_while(recording, 2, Command::new("python3").args(["-c", LINGERING]).stderr(Stdio::null()));
    if outcome.stderr.contains("cannot record all CPUs") || !rustix::process::geteuid().is_root() {
        return skip("only root's programs run whenever they want");
    }
    let outcome = outcome.ok();
    let profile = Folded::of(&outcome);
    let ends = profile.0.iter().filter(|(stack, _)| stack.iter().any(|frame| frame == "do_exit"));
    let of = |name: &str| ends.clone().filter(|(stack, _)| stack[0].starts_with(name)).map(|it| it.1).sum::<u64>();
    assert!(of("python3") > 20 && of(":") == 0, "{} {} {}", of("python3"), of(":"), outcome.stderr);
}
