//! Trees of processes: `--subprocesses`, and the line that suggests it.

use std::path::Path;
use std::time::Duration;

use crate::support::process::{Background, Status, all_pids};
use crate::support::programs::{copy_program, program};
use crate::support::recording::{
    Profile, can_record, can_record_switches, finish, record, recorder, until_cpu_time, wait_until_recording,
};
use crate::support::{Outcome, command, directory, eventually};

/// Options with which a BPF program takes stacks if we have the rights, and with which each thread has counters.
const METHODS: [&[&str]; 2] = [&[], &["--call-graph", "fp"]];

/// A shell with its children and their children. They are killed when the value is dropped.
struct Tree {
    root: Background,
    folder: tempfile::TempDir,
}

impl Tree {
    /// Runs a shell script, which finds the program `busy` in its directory under each of the names.
    fn start(script: &str, names: &[&str]) -> Option<Self> {
        let busy = program("busy")?;
        let folder = directory();
        names.iter().for_each(|name| copy_program(&busy, folder.path().join(name)));
        let root = Background::start(command("sh").args(["-c", script]).current_dir(&folder));
        Some(Self { root, folder })
    }

    /// Waits until some process with this name has used CPU time.
    fn wait_for_cpu_time(&self, name: &str, time: Duration) {
        let has_used = || self.descendants().iter().any(|pid| name_of(*pid) == name && cpu_time(*pid) >= time);
        assert!(eventually(has_used), "{name} does not run");
    }

    fn descendants(&self) -> Vec<u32> {
        let (mut family, mut next) = (vec![self.root.pid().parse().unwrap()], 0);
        while let Some(parent) = family.get(next).map(u32::to_string) {
            family.extend(all_pids().filter(|pid| Status::read(*pid).field("PPid") == parent));
            next += 1;
        }
        family.split_off(1)
    }

    /// Returns a process of the tree by its name.
    fn find(&self, name: &str) -> u32 {
        self.descendants().into_iter().find(|pid| name_of(*pid) == name).unwrap()
    }

    /// Records until a process with this name has used more CPU time.
    fn record_until(&self, options: &[&str], name: &str, more: Duration) -> Outcome {
        let mut recorder = recorder(["-F", "997", "-p", &self.root.pid()]);
        let outcome = finish(recorder.args(options).args(until_cpu_time(self.find(name), more)).spawn().unwrap());
        assert_eq!(outcome.code(), 3, "{outcome:?}");
        outcome
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Only what this test started, parents first: they start no more.
        let family = [vec![self.root.pid().parse().unwrap()], self.descendants()].concat();
        let pids: Vec<String> = family.iter().map(u32::to_string).collect();
        let _ = command("kill").arg("-KILL").args(pids).output();
    }
}

fn name_of(pid: u32) -> String {
    Status::read(pid).field("Name").to_owned()
}

fn cpu_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

const SERVER: &str = "./worker 100000 & (./helper 100000; :) & wait";

#[test]
fn records_the_running_descendants_of_a_process() {
    let (true, Some(tree)) = (can_record(), Tree::start(SERVER, &["worker", "helper"])) else { return };
    for name in ["worker", "helper"] {
        tree.wait_for_cpu_time(name, Duration::from_millis(50));
    }
    for options in METHODS {
        let outcome = tree.record_until(&[options, &["--subprocesses"]].concat(), "helper", Duration::from_millis(300));
        let profile = Profile::from_stdout(&outcome);
        profile.assert_contains(&["worker", "main", "spin"]);
        profile.assert_contains(&["helper", "main", "spin"]);
        assert!(!outcome.stderr.contains("--subprocesses"), "{outcome:?}");
    }
}

#[test]
fn suggests_subprocesses_if_they_do_the_work() {
    let (true, Some(tree)) = (can_record(), Tree::start(SERVER, &["worker", "helper"])) else { return };
    for name in ["worker", "helper"] {
        tree.wait_for_cpu_time(name, Duration::from_millis(50));
    }
    for options in METHODS {
        let outcome = tree.record_until(options, "worker", Duration::from_millis(400));
        assert_eq!(outcome.text(), "", "{outcome:?}");
        let start = format!("fg-record: PID {} has 3 running subprocesses that used ", tree.root.pid());
        let line = outcome.stderr.lines().find_map(|line| line.strip_prefix(&start));
        let seconds = line.and_then(|line| line.strip_suffix(" s of CPU time: --subprocesses records them"));
        assert!(seconds.is_some_and(|seconds| seconds.parse::<f64>().unwrap() >= 0.4), "{outcome:?}");
    }
}

#[test]
fn suggests_nothing_if_the_process_itself_works_or_its_children_sleep() {
    if !can_record() {
        return;
    }
    for script in ["sleep 100000 & while :; do :; done", "sleep 100000 & wait"] {
        let Some(tree) = Tree::start(script, &[]) else { return };
        assert!(eventually(|| tree.descendants().iter().any(|pid| name_of(*pid) == "sleep")));
        let outcome = record(["-d", "500ms", "-p", &tree.root.pid()]).ok();
        assert!(!outcome.stderr.contains("--subprocesses"), "{outcome:?}");
    }
}

#[test]
fn follows_a_tree_that_forks_all_the_time() {
    // Each `link` is the grandchild of a shell that exits right away.
    let script = "./worker 100000 & while :; do ./link 0.002 & sh -c './link 0.002; :'; wait $!; done";
    let (true, Some(tree)) = (can_record(), Tree::start(script, &["worker", "link"])) else { return };
    tree.wait_for_cpu_time("worker", Duration::from_millis(50));
    for options in METHODS {
        let outcome = tree.record_until(&[options, &["--subprocesses"]].concat(), "worker", Duration::from_millis(500));
        let profile = Profile::from_stdout(&outcome);
        profile.assert_contains(&["worker", "main", "spin"]);
        profile.assert_contains(&["link", "main", "spin"]);
    }
}

#[test]
fn a_recording_of_a_tree_ends_with_its_last_process() {
    let (true, Some(tree)) = (can_record(), Tree::start(SERVER, &["worker", "helper"])) else { return };
    for name in ["worker", "helper"] {
        tree.wait_for_cpu_time(name, Duration::from_millis(50));
    }
    let pid = tree.root.pid();
    let mut recorder = recorder(["-F", "997", "--subprocesses", "-p", &pid]).spawn().unwrap();
    wait_until_recording(&mut recorder);
    tree.wait_for_cpu_time("worker", cpu_time(tree.find("worker")) + Duration::from_millis(100));
    // Kills all of them.
    drop(tree);
    finish(recorder).ok();
}

#[test]
fn counts_each_event_once_however_counters_were_inherited() {
    if !can_record() || !Path::new("/sys/kernel/tracing/events/sched").exists() {
        return;
    }
    // Subshells that are created while the recorder attaches have inherited counters and get their own, and their children
    // inherit both.
    let script = "while :; do (for n in 1 2 3 4 5 6 7 8; do /bin/true; done; echo >> lines); done";
    let Some(tree) = Tree::start(script, &[]) else { return };
    let lines = tree.folder.path().join("lines");
    assert!(eventually(|| lines.exists()));
    for _ in 0..3 {
        let script =
            "lines() { wc -l < \"$0\"; }; end=$(($(lines) + 5)); while [ $(lines) -lt $end ]; do sleep 0.01; done";
        let mut recorder =
            recorder(["--script", "-e", "sched:sched_process_exec", "--subprocesses", "-p", &tree.root.pid()]);
        let outcome = finish(recorder.args(["--", "sh", "-c", script]).arg(&lines).spawn().unwrap()).ok();
        // Each process runs one program.
        let text = outcome.text();
        let headers = text.lines().filter_map(|line| line.strip_prefix("true")).map(str::split_whitespace);
        let mut pids: Vec<&str> = headers.filter_map(|mut words| words.next()).collect();
        let count = pids.len();
        pids.sort_unstable();
        pids.dedup();
        assert!(count >= 4 * 8, "{outcome:?}");
        assert_eq!(pids.len(), count, "{outcome:?}");
    }
}

#[test]
fn records_time_off_the_cpu_of_descendants() {
    for options in [&[][..], &["--bpf"]] {
        if !can_record_switches(options) {
            continue;
        }
        let Some(tree) = Tree::start("while :; do sleep 0.02; echo >> lines; done & wait", &[]) else { return };
        let lines = tree.folder.path().join("lines");
        assert!(eventually(|| lines.exists()));
        // Until two processes were created and have slept.
        let script =
            "lines() { wc -l < \"$0\"; }; end=$(($(lines) + 3)); while [ $(lines) -lt $end ]; do sleep 0.01; done";
        let mut recorder = recorder(["--off-cpu", "--subprocesses", "-p", &tree.root.pid()]);
        recorder.args(options).args(["--", "sh", "-c", script]).arg(&lines);
        let outcome = finish(recorder.spawn().unwrap()).ok();
        assert!(Profile::from_stdout(&outcome).thread_weight("sleep") > 0, "{outcome:?}");
    }
}

#[test]
fn subprocesses_needs_a_process() {
    let outcome = record(["--subprocesses", "--", "true"]);
    assert_eq!(outcome.code(), 2, "{outcome:?}");
    assert!(outcome.stderr.contains("--pid <PID>"), "{outcome:?}");
}
