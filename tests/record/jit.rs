//! Code that a running program generates, named by what its compiler writes.

use fgkit::perf::event::{Event, Mmap, Sample, Stamp};
use fgkit::perf::recording::{Options, Recording};
use fgkit::perf::symbols::frame::SymbolizeOptions;
use fgkit::perf::symbols::symbolize::symbolize;
use fgkit::profile::SampleWeight;

use crate::support::recording::{Profile, Stack, can_record, finish, recorder};
use crate::support::{directory, require, skip};

const JAVASCRIPT: &str = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    let sum = 0;
    for (let n = 0; n < 35; n++) sum += fib(n);
    console.log(sum);";

fn is_javascript_fib(stack: &Stack) -> bool {
    stack.frames.iter().any(|frame| frame.starts_with("JS:") && frame.contains("fib"))
}

#[test]
fn ignores_a_perf_map_of_another_user() {
    if !can_record() || !require("node") {
        return;
    }
    let folder = directory();
    std::fs::write(folder.path().join("a.js"), JAVASCRIPT).unwrap();
    let script =
        "node --perf-basic-prof a.js & wait; chown 65534 /tmp/perf-$!.map 2>/dev/null || exit 0; echo given >&2";
    let mut recorder = recorder(["--native-only", "--", "sh", "-c", script]);
    let outcome = finish(recorder.current_dir(&folder).spawn().unwrap()).ok();
    if !outcome.stderr.contains("given") {
        return skip("chown is not permitted here");
    }
    assert!(outcome.stderr.contains(".map is ignored: its owner is neither root nor you"), "{}", outcome.stderr);
    let profile = Profile::from_stdout(&outcome);
    assert!(!profile.0.iter().any(is_javascript_fib), "{profile:#?}");
}

#[test]
fn names_java_code_by_its_perf_map() {
    if !can_record() || !require("java") {
        return;
    }
    let folder = directory();
    let source = "class Fib { static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
        public static void main(String[] words) { for (int n = 0; n < 38; n++) fib(n); } }";
    let path = folder.path().join("Fib.java");
    std::fs::write(&path, source).unwrap();
    let options = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+PreserveFramePointer", "-XX:+DumpPerfMapAtExit"];
    let mut recorder = recorder(["--", "java"]);
    let outcome = finish(recorder.args(options).arg(path).spawn().unwrap());
    if outcome.stderr.contains("Unrecognized VM option") || !outcome.status.success() {
        return skip(&format!("this java writes no perf map: {}", outcome.stderr));
    }
    let profile = Profile::from_stdout(&outcome);
    let is_fib = |frame: &String| frame.contains("Fib") && frame.contains("fib");
    assert!(profile.0.iter().any(|stack| stack.frames.iter().any(is_fib)), "{profile:#?}");
}

/// Makes a jitdump with these functions, one after another at the same address, each for 100 nanoseconds.
fn jitdump(names: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut push = |words: &[u64], text: &[u8]| {
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(text);
    };
    push(&[0x4a69_5444 | 1 << 32, 40 | 62 << 32, 1 << 32, 5, 0], b"");
    for (number, name) in names.iter().enumerate() {
        let code = [name.as_bytes(), &[0; 17]].concat();
        let number = number as u64;
        push(&[(16 + 40 + code.len() as u64) << 32, 100 * number + 1, 1, 0x7000, 0x7000, 16, number], &code);
    }
    bytes
}

#[test]
fn names_each_sample_by_the_code_of_its_time() {
    let folder = directory();
    let path = folder.path().join("jit-1.dump");
    std::fs::write(&path, jitdump(&["first", "second", "third"])).unwrap();
    let pid = std::process::id();
    let options = Options { weight: SampleWeight::Samples, keep_samples: false, max_stack: 127, ..Options::default() };
    let mut recording = Recording::new(options);
    let stamp = |time| Stamp { pid, tid: pid, time, ..Stamp::default() };
    let path = path.to_str().unwrap().as_bytes();
    let mmap = Mmap {
        pid,
        start: 0x10000,
        length: 4096,
        offset: 0,
        inode: None,
        build_id: None,
        executable: true,
        writable: false,
        path,
    };
    recording.handle_event(stamp(1), Event::Comm { pid, tid: pid, exec: true, comm: b"jit" });
    recording.handle_event(stamp(2), Event::Mmap(mmap));
    for time in [5, 50, 150, 250, 251, 252] {
        let sample = Sample { ip: 0x7004, period: 1, ..Sample::default() };
        recording.handle_event(stamp(time), Event::Sample(sample));
    }
    recording.finish();
    let names = symbolize(&recording.objects, recording.locations(), &SymbolizeOptions::default());
    let mut folded = Vec::new();
    fgkit::folded::write(&recording.to_profile(0, &names).unwrap().0, &mut folded).unwrap();
    assert_eq!(String::from_utf8(folded).unwrap(), "jit;first 2\njit;second 1\njit;third 3\n");
}
