//! Code that programs make as they run: named by what their compilers tell.

use std::process::Command;

use fgkit::perf::event::{Callchain, Event, Mmap, Sample, Stamp};
use fgkit::perf::recording::{Options, Recording};
use fgkit::perf::symbols::frame::SymbolizeOptions;
use fgkit::perf::symbols::symbolize::symbolize;
use fgkit::profile::SampleWeight;

use crate::folded::{Folded, end, may_record, recorder};
use crate::support::{directory, has, skip};

const JAVASCRIPT: &str = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    let sum = 0;
    for (let n = 0; n < 37; n++) sum += fib(n);
    console.log(sum);";

/// Records a shell's commands in a folder with the program `a.js`.
fn record_node(commands: &str) -> Option<(Folded, String)> {
    if !may_record() || !has("node") {
        return None;
    }
    let folder = directory();
    std::fs::write(folder.path().join("a.js"), JAVASCRIPT).unwrap();
    let mut recorder = recorder(["--", "sh", "-c", commands]);
    let outcome = end(recorder.current_dir(&folder).env("HERE", folder.path()).spawn().unwrap()).ok();
    Some((Folded::of(&outcome), outcome.stderr))
}

fn share_of_fib(folded: &Folded) -> f64 {
    let is_fib = |stack: &[String]| stack.iter().any(|frame| frame.starts_with("JS:") && frame.contains("fib"));
    let part: u64 = folded.0.iter().filter(|(stack, _)| is_fib(stack)).map(|(_, weight)| weight).sum();
    part as f64 / folded.total() as f64
}

#[test]
fn node_is_named_by_its_map() {
    let Some((folded, _)) = record_node("node --perf-basic-prof a.js") else { return };
    assert!(share_of_fib(&folded) > 0.3, "{folded:#?}");
}

#[test]
fn node_is_named_by_its_jitdump() {
    for options in ["--perf-prof", "--perf-prof --perf-prof-unwinding-info"] {
        let Some((folded, _)) = record_node(&format!("node {options} a.js")) else { return };
        assert!(share_of_fib(&folded) > 0.3, "{options}: {folded:#?}");
    }
}

#[test]
fn a_map_is_found_where_its_process_saw_it_though_both_are_gone() {
    let private = "unshare -m -p -f true 2>/dev/null || exit 0
        exec unshare -m -p -f sh -c 'cp a.js /var/tmp/fg-$$.js; mount -t tmpfs none /tmp &&
        node --perf-basic-prof /var/tmp/fg-$$.js; rm /var/tmp/fg-$$.js'";
    let Some((folded, _)) = record_node(private) else { return };
    if folded.0.iter().all(|(stack, _)| stack[0] != "node") {
        return skip("no process can be given its own folders here");
    }
    assert!(share_of_fib(&folded) > 0.3, "{folded:#?}");
}

#[test]
fn a_map_that_is_somebody_elses_is_not_believed() {
    let given =
        "node --perf-basic-prof a.js & wait; chown 65534 /tmp/perf-$!.map 2>/dev/null || exit 0; echo given >&2";
    let Some((folded, stderr)) = record_node(given) else { return };
    if !stderr.contains("given") {
        return skip("files cannot be given away here");
    }
    assert!(stderr.contains(".map is ignored: it belongs to neither root nor you"), "{stderr}");
    assert_eq!(share_of_fib(&folded), 0.0, "{folded:#?}");
}

#[test]
fn java_is_named_by_its_map() {
    if !may_record() || !has("java") {
        return;
    }
    let folder = directory();
    let source = "class Fib { static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
        public static void main(String[] words) { for (int n = 0; n < 38; n++) fib(n); } }";
    let path = folder.path().join("Fib.java");
    std::fs::write(&path, source).unwrap();
    let options = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+PreserveFramePointer", "-XX:+DumpPerfMapAtExit"];
    let mut recorder = recorder(["--", "java"]);
    let outcome = end(recorder.args(options).arg(path).spawn().unwrap());
    if outcome.stderr.contains("Unrecognized VM option") || !outcome.status.success() {
        return skip(&format!("this java cannot: {}", outcome.stderr));
    }
    let folded = Folded::of(&outcome);
    let named = |frame: &String| frame.contains("Fib") && frame.contains("fib");
    assert!(folded.0.iter().any(|(stack, _)| stack.iter().any(named)), "{folded:#?}");
}

/// A jitdump with one function after the other at the same address.
fn jitdump(names: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut words = |words: &[u64], text: &[u8]| {
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(text);
    };
    words(&[0x4a69_5444 | 1 << 32, 40 | 62 << 32, 1 << 32, 5, 0], b"");
    for (number, name) in names.iter().enumerate() {
        let code = [name.as_bytes(), &[0; 17]].concat();
        let number = number as u64;
        words(&[(16 + 40 + code.len() as u64) << 32, 100 * number + 1, 1, 0x7000, 0x7000, 16, number], &code);
    }
    bytes
}

#[test]
fn each_sample_has_the_name_of_its_own_time() {
    let folder = directory();
    let path = folder.path().join("jit-1.dump");
    std::fs::write(&path, jitdump(&["first", "second", "third"])).unwrap();
    let pid = std::process::id();
    let options = Options { weight: SampleWeight::Samples, each_sample: false, max_stack: 127, ..Options::default() };
    let mut recording = Recording::new(options, None);
    let stamp = |time| Stamp { pid, tid: pid, time, ..Stamp::default() };
    let path = path.to_str().unwrap().as_bytes();
    let mmap =
        Mmap { pid, start: 0x10000, length: 4096, offset: 0, inode: None, build_id: None, executable: true, path };
    recording.take(stamp(1), Event::Comm { pid, tid: pid, exec: true, comm: b"jit" });
    recording.take(stamp(2), Event::Mmap(mmap));
    for time in [5, 50, 150, 250, 251, 252] {
        let callchain = Callchain::default();
        let sample = Sample {
            ip: 0x7004,
            period: 1,
            in_kernel: false,
            callchain,
            user: None,
            event: 0,
            raw: &[],
            branches: Default::default(),
        };
        recording.take(stamp(time), Event::Sample(sample));
    }
    recording.finish();
    let names = symbolize(&recording.objects, recording.locations(), &SymbolizeOptions::default());
    let mut folded = Vec::new();
    fgkit::folded::write(&recording.profile(0, &names).unwrap().0, &mut folded).unwrap();
    assert_eq!(String::from_utf8(folded).unwrap(), "jit;first 2\njit;second 1\njit;third 3\n");
}

/// CPython tells of its functions so from 3.13 on.
#[test]
fn python_is_named_by_its_jitdump() {
    if !may_record() || !has("python3") {
        return;
    }
    let source = "import sys; sys.exit(sys.version_info < (3, 13))";
    if !Command::new("python3").args(["-c", source]).status().unwrap().success() {
        return; // Most are older; nothing is to be installed for it.
    }
    let folder = directory();
    let path = folder.path().join("a.py");
    std::fs::write(&path, "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(27)\n").unwrap();
    let mut recorder = recorder(["--", "python3", "-X", "perf_jit"]);
    let folded = Folded::of(&end(recorder.arg(&path).spawn().unwrap()).ok());
    let frame = format!("py::fib:{}", path.display());
    folded.assert_share(&[&frame, &frame], 0.5);
}
