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

/// A sample, as `perf script` prints it.
struct Sample<'a> {
    thread: &'a str,
    /// Innermost first: address, name, object.
    frames: Vec<(u64, &'a str, &'a str)>,
}

impl<'a> Sample<'a> {
    fn all(text: &'a str) -> Vec<Self> {
        text.split_terminator("\n\n").map(Self::parse).collect()
    }

    fn parse(text: &'a str) -> Self {
        let (head, frames) = text.split_once('\n').unwrap_or((text, ""));
        let frame = |line: &'a str| {
            let (address, name) = line.trim_start().split_once(' ').unwrap();
            let (name, object) = name.split_once(" (").unwrap();
            let name = name.split_once("+0x").map_or(name, |(name, _)| name);
            (u64::from_str_radix(address, 16).unwrap(), name, object.trim_end_matches(')'))
        };
        Self { thread: head.split_whitespace().next().unwrap(), frames: frames.lines().map(frame).collect() }
    }

    fn has(&self, name: &str) -> bool {
        self.frames.iter().any(|(_, its, _)| *its == name)
    }

    /// Code that belongs to nothing.
    fn unknown(&self) -> Option<u64> {
        let is_unknown = |name: &str, object: &str| name == "[unknown]" && matches!(object, "[unknown]" | "//anon");
        self.frames.iter().find(|(_, name, object)| is_unknown(name, object)).map(|(address, ..)| *address)
    }
}

/// Where in a page the system call that runs another program returns to.
fn returns_of_exec(samples: &[Sample<'_>]) -> Vec<u64> {
    let frames = samples.iter().flat_map(|sample| &sample.frames);
    let returns = frames.filter(|(_, name, object)| name.ends_with("execve") && object.contains("libc.so"));
    returns.map(|(address, ..)| address % 4096).collect()
}

/// What is wrong with a sample.
fn wrong(sample: &Sample<'_>, returns_of_exec: &[u64]) -> Option<&'static str> {
    let others = (0..PROGRAMS).map(|number| format!("p{number}")).filter(|program| program != sample.thread);
    if sample.thread.starts_with(':') {
        return Some("no process");
    }
    if sample.thread.starts_with('p') && others.map(|other| format!("in_{other}")).any(|other| sample.has(&other)) {
        return Some("another program's function");
    }
    if (sample.has("call_a") && sample.has("in_b")) || (sample.has("call_b") && sample.has("in_a")) {
        return Some("the other library's function");
    }
    // In the midst of an exec the old program is gone, and its registers are not: they stand where its last system call
    // would have returned to. The kernel's own frames tell less of it, for within a thunk it cannot follow its stack.
    let in_exec = |address: u64| returns_of_exec.contains(&(address % 4096));
    sample.unknown().filter(|address| !in_exec(*address)).map(|_| "code that belongs to nothing")
}

/// Records storms; how many of their samples met programs and libraries.
fn storms(ends_with_command: bool) -> u64 {
    let folder = directory();
    compile(folder.path());
    let runs = std::env::var("FG_STORMS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(2);
    let mut met = 0;
    for run in 0..runs {
        // Of all CPUs, who takes samples that often takes none in time.
        let mut command = recorder(["--script", "--no-inline", "-F", if ends_with_command { "9973" } else { "1999" }]);
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
        let text = outcome.text();
        let samples = Sample::all(&text);
        let returns = returns_of_exec(&samples);
        for sample in samples.iter().filter(|sample| ends_with_command || is_ours(sample.thread)) {
            let (thread, frames) = (sample.thread, &sample.frames);
            assert_eq!(wrong(sample, &returns), None, "run {run}: {thread} {frames:x?}\n{}", outcome.stderr);
            met += u64::from(frames.iter().any(|(_, name, _)| name.starts_with("in_")));
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
