//! Shares of samples in code that a running program generates.

use std::time::Duration;

use crate::support::java::{Transitions, installed_javas};
use crate::support::process::Background;
use crate::support::recording::{Profile, can_record, finish, record_process, recorder};
use crate::support::statistics::{Check, ensure, statistical};
use crate::support::{command, directory, require, run, run_command, skip};

const JAVASCRIPT: &str = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    let sum = 0;
    for (let n = 0; n < 37; n++) sum += fib(n);
    console.log(sum);";

/// Records a shell script in a directory with the program `a.js`.
fn record_node(script: &str) -> Profile {
    let folder = directory();
    std::fs::write(folder.path().join("a.js"), JAVASCRIPT).unwrap();
    let mut recorder = recorder(["--native-only", "--", "sh", "-c", script]);
    Profile::from_stdout(&finish(recorder.current_dir(&folder).spawn().unwrap()).ok())
}

/// Checks that the JavaScript function has a name in enough samples.
fn check_share_of_fib(profile: &Profile) -> Check {
    let is_fib = |frame: &String| frame.starts_with("JS:") && frame.contains("fib");
    let stacks = profile.0.iter().filter(|stack| stack.frames.iter().any(is_fib));
    let share = stacks.map(|stack| stack.weight).sum::<u64>() as f64 / profile.total() as f64;
    ensure!(share > 0.3, "{share}: {profile:#?}");
    Ok(())
}

#[test]
fn names_node_code_by_its_perf_map() {
    if can_record() && require("node") {
        statistical(|| check_share_of_fib(&record_node("node --perf-basic-prof a.js")));
    }
}

#[test]
fn names_node_code_by_its_jitdump() {
    if !(can_record() && require("node")) {
        return;
    }
    for options in ["--perf-prof", "--perf-prof --perf-prof-unwinding-info"] {
        statistical(|| check_share_of_fib(&record_node(&format!("node {options} a.js"))));
    }
}

#[test]
fn finds_a_perf_map_in_a_mount_namespace_that_is_gone() {
    if !(can_record() && require("node")) {
        return;
    }
    let script = "unshare -m -p -f true 2>/dev/null || exit 0
        exec unshare -m -p -f sh -c 'cp a.js /var/tmp/fg-$$.js; mount -t tmpfs none /tmp &&
        node --perf-basic-prof /var/tmp/fg-$$.js; rm /var/tmp/fg-$$.js'";
    statistical(|| {
        let profile = record_node(script);
        if profile.thread_weight("node") == 0 {
            skip("unshare is not permitted here");
            return Ok(());
        }
        check_share_of_fib(&profile)
    });
}

/// CPython writes jitdumps from version 3.13.
#[test]
fn names_python_code_by_its_jitdump() {
    if !(can_record() && require("python3")) {
        return;
    }
    let version_check = "import sys; sys.exit(sys.version_info < (3, 13))";
    if !command("python3").args(["-c", version_check]).status().unwrap().success() {
        return; // No skip: FG_SKIP=never must not require a newer Python than distributions have.
    }
    let folder = directory();
    let path = folder.path().join("a.py");
    std::fs::write(&path, "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(27)\n").unwrap();
    statistical(|| {
        let mut recorder = recorder(["--native-only", "--", "python3", "-X", "perf_jit"]);
        let profile = Profile::from_stdout(&finish(recorder.arg(&path).spawn().unwrap()).ok());
        let frame = format!("py::fib:{}", path.display());
        profile.check_share(&[&frame, &frame], 0.5)
    });
}

#[test]
fn names_node_code_in_recordings_of_perf() {
    if !(require("perf") && require("node")) {
        return;
    }
    let folder = directory();
    std::fs::write(folder.path().join("a.js"), JAVASCRIPT).unwrap();
    for option in ["--perf-basic-prof", "--perf-prof"] {
        statistical(|| {
            let mut perf = command("perf");
            perf.args(["record", "-q", "-F", "997", "-k", "mono", "-g", "-o", "perf.data", "node", option, "a.js"]);
            perf.current_dir(&folder);
            if !run_command(perf, b"").status.success() {
                skip("perf cannot record here");
                return Ok(());
            }
            let folded = run("fg-collapse", [folder.path().join("perf.data")], b"").ok();
            let profile = Profile::from_stdout(&folded);
            let of_fib = profile.0.iter().filter(|stack| stack.frames.iter().any(|frame| frame.contains("fib")));
            let weight: u64 = of_fib.map(|stack| stack.weight).sum();
            ensure!(weight * 4 > profile.total(), "{option}: {}", folded.text());
            Ok(())
        });
    }
}

/// Runs until it is killed.
const JAVA: &str = "public class A {
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] words) { while (true) if (fib(33) == 0) System.exit(1); }
}";

#[test]
fn unwinds_java_code_that_keeps_frame_pointers() {
    if !(can_record() && require("javac")) {
        return;
    }
    let folder = directory();
    std::fs::write(folder.path().join("A.java"), JAVA).unwrap();
    assert!(command("javac").arg("A.java").current_dir(&folder).status().unwrap().success());
    let mut java = command("java");
    let java = Background::start(java.args(["-XX:+PreserveFramePointer", "A"]).current_dir(&folder));
    java.wait_for_cpu_time(Duration::from_secs(1));
    // Of a BPF program that walks the stack, and of a copy of the stack.
    for call_graph in ["dwarf", "dwarf,65528"] {
        statistical(|| {
            let options = ["-F", "997", "--call-graph", call_graph];
            let profile = Profile::from_stdout(&record_process(&java, &options, Duration::from_secs(1)).ok());
            let truncated = profile.weight(&["[truncated]"]);
            ensure!(profile.total() > 200, "{call_graph}: {}", profile.total());
            ensure!(truncated * 20 < profile.total(), "{call_graph}: {truncated} of {}", profile.total());
            Ok(())
        });
    }
}

/// Adapters between interpreted and compiled methods have no frames, and move return addresses.
#[test]
fn cuts_few_stacks_between_java_methods_of_different_kinds() {
    if !(can_record() && require("javac")) {
        return;
    }
    let transitions = Transitions::compile();
    for java in installed_javas() {
        statistical(|| {
            let profile = Profile::from_stdout(&transitions.record(&java).ok());
            let is_of_program = |frame: &String| frame.starts_with("Transitions") || frame == "I2C/C2I adapters";
            let stacks = profile.0.iter().filter(|stack| stack.frames.iter().any(is_of_program));
            let (mut all, mut cut) = (0, 0);
            for stack in stacks {
                all += stack.weight;
                cut += if stack.frames.iter().any(|frame| frame == "Transitions.main") { 0 } else { stack.weight };
            }
            ensure!(all > 1000, "{java}: {all}");
            ensure!(cut * 50 < all, "{java}: {cut} of {all}");
            Ok(())
        });
    }
}
