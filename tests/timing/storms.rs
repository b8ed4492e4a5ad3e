//! Storms of fork, exec, exit, dlopen and munmap: every sample is attributed to its own program.
//!
//! `FG_STORMS` is the number of storms in each test, two by default.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::programs::compiler;
use crate::support::recording::{Profile, can_record, finish, recorder, wait_until_recording};
use crate::support::signals::send;
use crate::support::statistics::{ensure, statistical};
use crate::support::{Outcome, command, directory, require, skip};

const PROGRAMS: usize = 5;

/// Compiles the programs p0 to p4, each of which runs the next, and two libraries.
fn compile_storm(folder: &Path) {
    let compile = |arguments: &[String], output: &str| {
        let mut compiler = compiler(&folder.join(output));
        compiler.args(["-O2", "-fno-optimize-sibling-calls"]).args(arguments).args(["storm.c", "-ldl"]);
        assert!(compiler.status().unwrap().success());
    };
    for number in 0..PROGRAMS {
        let next = (number + 1) % PROGRAMS;
        compile(&[format!("-DPROGRAM=p{number}"), format!("-DNEXT=p{next}")], &format!("p{number}"));
    }
    for library in ["a", "b"] {
        compile(&[format!("-DLIBRARY={library}"), "-shared".into(), "-fPIC".into()], &format!("lib{library}.so"));
    }
}

/// A sample in the format of `perf script`.
struct Sample<'a> {
    thread: &'a str,
    /// Leaf first.
    frames: Vec<Frame<'a>>,
}

#[derive(Debug)]
struct Frame<'a> {
    address: u64,
    name: &'a str,
    object: &'a str,
}

impl<'a> Frame<'a> {
    fn parse(line: &'a str) -> Self {
        let (address, name) = line.trim_start().split_once(' ').unwrap();
        let (name, object) = name.split_once(" (").unwrap();
        let name = name.split_once("+0x").map_or(name, |(name, _)| name);
        Self { address: u64::from_str_radix(address, 16).unwrap(), name, object: object.trim_end_matches(')') }
    }

    /// True if the address is in no mapping that the recorder knows.
    fn is_unmapped(&self) -> bool {
        self.name == "[unknown]" && matches!(self.object, "[unknown]" | "//anon")
    }
}

impl<'a> Sample<'a> {
    fn parse(text: &'a str) -> Self {
        let (header, frames) = text.split_once('\n').unwrap_or((text, ""));
        Self { thread: header.split_whitespace().next().unwrap(), frames: frames.lines().map(Frame::parse).collect() }
    }

    fn has(&self, name: &str) -> bool {
        self.frames.iter().any(|frame| frame.name == name)
    }
}

/// Returns the offsets in their page of the return addresses of the system call `execve`.
fn execve_return_offsets(samples: &[Sample<'_>]) -> Vec<u64> {
    let frames = samples.iter().flat_map(|sample| &sample.frames);
    let returns = frames.filter(|frame| frame.name.ends_with("execve") && frame.object.contains("libc.so"));
    returns.map(|frame| frame.address % 4096).collect()
}

/// Returns what is wrong with a sample.
fn find_error(sample: &Sample<'_>, execve_return_offsets: &[u64]) -> Option<&'static str> {
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
    // Within execve the old program is unmapped, while its registers still contain the return address of the system
    // call. The kernel's own frames do not always show execve, because the kernel cannot unwind through a thunk.
    let is_in_execve = |frame: &Frame<'_>| execve_return_offsets.contains(&(frame.address % 4096));
    let unmapped = sample.frames.iter().find(|frame| frame.is_unmapped())?;
    (!is_in_execve(unmapped)).then_some("an address in no mapping")
}

/// Records a storm and returns its outcome: of the command, or of all CPUs meanwhile.
fn record_storm(folder: &Path, all_cpus: bool) -> Outcome {
    // At a higher frequency, no recorder of all CPUs keeps up.
    let mut recorder = recorder(["--script", "--no-inline", "-F", if all_cpus { "1999" } else { "9973" }]);
    recorder.current_dir(folder);
    if all_cpus {
        return record_all_cpus_while(recorder, 20, command("./p0").arg("6").current_dir(folder));
    }
    finish(recorder.args(["--", "./p0", "6"]).spawn().unwrap())
}

/// Records storms. Asserts that no sample is wrong, and checks that enough samples are in the programs and libraries.
fn check_storms(all_cpus: bool) {
    if !can_record() || !require("cc") {
        return;
    }
    let folder = directory();
    compile_storm(folder.path());
    let runs = std::env::var("FG_STORMS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(2);
    statistical(|| {
        let mut hits = 0;
        for run in 0..runs {
            let outcome = record_storm(folder.path(), all_cpus);
            if outcome.stderr.contains("cannot record all CPUs") {
                skip(&outcome.stderr);
                return Ok(());
            }
            let text = outcome.ok().text();
            let samples: Vec<Sample<'_>> = text.split_terminator("\n\n").map(Sample::parse).collect();
            let offsets = execve_return_offsets(&samples);
            for sample in samples.iter().filter(|sample| !all_cpus || is_of_storm(sample.thread)) {
                let Sample { thread, frames } = sample;
                assert_eq!(find_error(sample, &offsets), None, "run {run}: {thread} {frames:x?}");
                hits += u64::from(frames.iter().any(|frame| frame.name.starts_with("in_")));
            }
        }
        ensure!(hits > 50, "{hits} samples in the programs and libraries");
        Ok(())
    });
}

/// Records all CPUs while a program runs several times.
fn record_all_cpus_while(mut recorder: Command, times: u32, program: &mut Command) -> Outcome {
    let mut recorder = recorder.arg("-a").spawn().unwrap();
    wait_until_recording(&mut recorder);
    for _ in 0..times {
        let status = program.status().unwrap();
        assert!(status.success(), "{status}: {program:?}");
    }
    if recorder.try_wait().unwrap().is_none() {
        send(&recorder, libc::SIGINT);
    }
    finish(recorder)
}

/// True if a thread may be part of a storm. A name with a colon is that of a process that the recorder does not know.
fn is_of_storm(thread: &str) -> bool {
    thread.starts_with(':') || (0..PROGRAMS).any(|number| thread == format!("p{number}"))
}

#[test]
fn attributes_samples_of_a_command_in_a_storm() {
    check_storms(false);
}

#[test]
fn attributes_samples_of_all_cpus_in_a_storm() {
    check_storms(true);
}

/// A child exits with a large mapping, which takes long to unmap. Meanwhile its parent, which has a real-time priority,
/// wakes up and occupies their CPU for most of a second.
const SLOW_EXIT: &str = r#"
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
fn a_process_that_takes_long_to_exit_keeps_its_name() {
    if !(can_record() && require("python3")) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skip("only root can have a real-time priority");
    }
    statistical(|| {
        let recorder = recorder(["-F", "2000", "--call-graph", "fp", "--no-inline"]);
        let mut python = command("python3");
        let outcome = record_all_cpus_while(recorder, 2, python.args(["-c", SLOW_EXIT]).stderr(Stdio::null())).ok();
        let profile = Profile::from_stdout(&outcome);
        let exiting = profile.0.iter().filter(|stack| stack.contains(&["do_exit"]));
        let weight_of = |prefix: &str| {
            let stacks = exiting.clone().filter(|stack| stack.thread().starts_with(prefix));
            stacks.map(|stack| stack.weight).sum::<u64>()
        };
        ensure!(weight_of(":") == 0, "{} without a name: {}", weight_of(":"), outcome.stderr);
        ensure!(weight_of("python3") > 20, "{} samples: {}", weight_of("python3"), outcome.stderr);
        Ok(())
    });
}
