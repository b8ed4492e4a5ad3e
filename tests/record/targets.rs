//! What can be recorded: a command with its threads and children, running processes, the whole system.

use std::process::Command;
use std::time::{Duration, Instant};

use fgkit::record::cpus::online_cpus;

use crate::folded::{Background, Folded, end, may_record, record, recorder};
use crate::programs::{compiled, copy_program, program, workload};
use crate::support::{directory, eventually, has};

#[test]
fn threads_have_their_names() {
    if !may_record() {
        return;
    }
    let outcome = record(["--", &workload(), "0.8"]).ok();
    assert!(outcome.stderr.contains("workload: done"), "{outcome:?}");
    let profile = Folded::of(&outcome);
    for root in ["workload", "parser", "sorter"] {
        profile.assert_share(&[root], 0.04);
    }
}

#[test]
fn an_inlined_call_is_a_frame_of_its_own_unless_unwanted() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["--", &busy, "0.2"]).ok();
    Folded::of(&outcome).assert_share(&["busy", "main", "spin", "step"], 0.8);
    let outcome = record(["--no-inline", "--", &busy, "0.2"]).ok();
    let profile = Folded::of(&outcome);
    profile.assert_share(&["busy", "main", "spin"], 0.8);
    assert_eq!(profile.share(&["step"]), 0.0);
}

#[test]
fn children_are_followed_through_fork_and_exec() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let folder = directory();
    for name in ["first", "second", "third"] {
        copy_program(&busy, folder.path().join(name));
    }
    let script = "./first 0.1 & (env A=1 nice ./second 0.1); wait; exec env sh -c 'exec ./third 0.1'";
    let outcome = end(recorder(["--", "sh", "-c", script]).current_dir(&folder).spawn().unwrap()).ok();
    let profile = Folded::of(&outcome);
    for name in ["first", "second", "third"] {
        profile.assert_share(&[name, "main", "spin", "step"], 0.15);
    }
}

#[test]
fn odd_names_of_threads_are_frames_that_readers_take() {
    let (true, Some(threads)) = (may_record(), program("threads")) else { return };
    let outcome = record(["--", &threads, "names"]).ok();
    let profile = Folded::of(&outcome);
    for name in ["a:b", "new_line", "two_words", "\u{1b}[31mred", "\u{fffd}\u{fffd}", "lead", "1_2_3"] {
        profile.assert_share(&[name, "work", "spin"], 0.05);
    }
    profile.assert_share(&["[unknown]", "work", "spin"], 0.1);
}

#[test]
fn hundreds_of_short_lives_are_followed() {
    if !may_record() {
        return;
    }
    // So often that the short ones are met: in each process the kernel counts from the start.
    let script = "n=0; while [ $n -lt 200 ]; do /bin/true; n=$((n + 1)); done; exit 6";
    let outcome = record(["-F", "10000", "--no-inline", "--", "sh", "-c", script]);
    assert_eq!(outcome.code(), 6, "{outcome:?}");
    let profile = Folded::of(&outcome);
    profile.assert_share(&["true"], 0.1);
    // On a busy machine the kernel drops some of so many, and says so.
    assert!(profile.0.iter().all(|(stack, _)| ["sh", "true", "[lost]"].contains(&&*stack[0])), "{profile:?}");
}

#[test]
fn hundreds_of_threads_are_followed() {
    if !(may_record() && has("python3")) {
        return;
    }
    let script = "import threading\n\
        def work():\n    for n in range(20000): pass\n\
        threads = [threading.Thread(target=work) for n in range(300)]\n\
        [t.start() for t in threads]; [t.join() for t in threads]";
    let outcome = record(["-F", "10000", "--no-inline", "--", "python3", "-c", script]).ok();
    assert!(Folded::of(&outcome).total() > 50, "{outcome:?}");
}

#[test]
fn running_processes_are_recorded_until_they_end() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let start = || Background::start(Command::new(&busy).arg("0.8"));
    let (one, other) = (start(), start());
    let outcome = record(["-F", "997", "-p", &format!("{},{}", one.pid(), other.pid())]).ok();
    let profile = Folded::of(&outcome);
    profile.assert_share(&["busy", "main", "spin", "step"], 0.8);
    assert!(profile.total() > 300, "{outcome:?}");
}

#[test]
fn a_process_whose_threads_come_and_go_is_recorded() {
    let (true, Some(threads)) = (may_record(), program("threads")) else { return };
    let process = Background::start(Command::new(threads).arg("churn"));
    let outcome = record(["-F", "997", "-d", "1", "-p", &process.pid()]).ok();
    let profile = Folded::of(&outcome);
    profile.assert_share(&["threads", "main", "spin"], 0.1);
    profile.assert_share(&["passing", "work", "spin"], 0.1);
    // Each thread is counted once: no more than all CPUs can give in that time.
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    assert!(profile.total() <= 2 * 1100 * cpus.min(2), "{outcome:?}");
}

#[test]
fn a_process_that_sleeps_makes_an_empty_profile() {
    if !may_record() {
        return;
    }
    let process = Background::sleeping();
    let outcome = record(["-d", "200ms", "-p", &process.pid()]).ok();
    assert_eq!(outcome.text(), "");
    assert!(outcome.stderr.contains("nothing was recorded"), "{outcome:?}");
}

#[test]
fn the_whole_system_is_recorded_without_its_idling() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let process = Background::start(Command::new(busy).arg("60"));
    let (began, spent) = (Instant::now(), process.cpu_time());
    // The cheapest way: all that runs on the machine is to be named.
    let outcome = record(["-a", "-F", "499", "-d", "2", "--call-graph", "fp", "--no-inline"]);
    if outcome.stderr.contains("cannot record all CPUs") {
        return crate::support::skip(&outcome.stderr);
    }
    let profile = Folded::of(&outcome.ok());
    // Who knows what else runs here: of all that the CPUs could do this is what it did, or more, then as before and after.
    let could = began.elapsed().as_secs_f64() * online_cpus().len() as f64;
    let did = (process.cpu_time() - spent).as_secs_f64() / could;
    assert!(did > 0.0);
    profile.assert_share(&["busy", "main", "spin"], did / 3.0);
    assert!(profile.0.iter().all(|(stack, _)| !stack[0].starts_with("swapper")), "{profile:?}");
}

#[test]
fn the_time_that_was_given_ends_a_command() {
    if !may_record() {
        return;
    }
    let began = Instant::now();
    let outcome = record(["-d", "300ms", "--", "sh", "-c", "while :; do :; done"]);
    assert_eq!(outcome.code(), 128 + libc::SIGTERM, "{outcome:?}");
    assert!(Folded::of(&outcome).total() > 0, "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[test]
fn two_recorders_do_not_mind_each_other() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let process = Background::start(Command::new(busy).arg("20"));
    let start = || recorder(["-F", "997", "-d", "0.5", "-p", &process.pid()]).spawn().unwrap();
    for recording in [start(), start()] {
        Folded::of(&end(recording).ok()).assert_share(&["busy", "main", "spin", "step"], 0.8);
    }
}

#[test]
fn what_a_command_leaves_behind_is_not_waited_for() {
    if !may_record() {
        return;
    }
    let folder = directory();
    let script = "setsid sleep 20 < /dev/null > /dev/null 2>&1 & echo $! > left; exit 4";
    let outcome = end(recorder(["--", "sh", "-c", script]).current_dir(&folder).spawn().unwrap());
    let left = std::fs::read_to_string(folder.path().join("left")).unwrap();
    let still_there = || std::path::Path::new("/proc").join(left.trim()).exists();
    assert!(still_there(), "{outcome:?}");
    Command::new("kill").arg(left.trim()).status().unwrap();
    assert_eq!(outcome.code(), 4, "{outcome:?}");
    assert!(eventually(|| !still_there()));
}

#[test]
fn a_command_may_have_many_words_and_few_files() {
    if !(may_record() && compiled().is_some()) {
        return;
    }
    let record = crate::support::tool("fg-record");
    let script = format!("ulimit -n 64; exec {record} -q -- sh -c 'echo $#, $(ulimit -n)' $(seq 20000)");
    let outcome = crate::support::run_bounded(
        Command::new("sh")
            .args(["-c", &script])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped()),
    );
    assert_eq!(outcome.ok().stderr, "19999, 64\n");
}

#[test]
fn a_thread_is_recorded_without_its_siblings() {
    let (true, Some(threads)) = (may_record(), program("threads")) else { return };
    let process = Background::start(Command::new(threads).arg("churn"));
    // The first thread has the process's number.
    let outcome = record(["-F", "997", "-d", "0.8", "-t", &process.pid()]).ok();
    let profile = Folded::of(&outcome);
    profile.assert_share(&["threads", "main", "spin"], 0.8);
    assert_eq!(profile.share(&["passing"]), 0.0, "{profile:?}");
}

#[test]
fn a_recording_of_threads_ends_with_them() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let process = Background::start(Command::new(busy).arg("0.5"));
    let outcome = record(["-F", "997", "-t", &process.pid()]).ok();
    Folded::of(&outcome).assert_share(&["busy", "main", "spin", "step"], 0.8);
    let outcome = record(["-t", "4194305"]);
    assert_eq!((outcome.code(), &*outcome.stderr), (125, "fg-record: -t 4194305: no such thread\n"));
}

#[test]
fn samples_come_from_the_cpus_that_were_named() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["--script", "-C", "0", "--", "taskset", "-c", "0", &busy, "0.3"]);
    if !has("taskset") {
        return;
    }
    assert!(outcome.ok().text().matches("[000]").count() > 100);
    let outcome = record(["-C", "0", "--", "sh", "-c", "exit 3"]);
    assert_eq!(outcome.code(), 3, "{outcome:?}");
    let outcome = record(["-C", "60000", "--", "true"]);
    assert_eq!((outcome.code(), &*outcome.stderr), (125, "fg-record: CPU 60000 is not there, or is switched off\n"));
    assert_eq!(record(["-C", "x", "--", "true"]).code(), 2);
}

/// The hierarchy of cgroups, mounted in a folder of the test's own: not every machine has it where it usually is.
struct Hierarchy(tempfile::TempDir);

impl Hierarchy {
    fn mounted() -> Self {
        let folder = directory();
        let mounted = Command::new("mount").args(["-t", "cgroup2", "none"]).arg(folder.path()).output();
        assert!(mounted.is_ok(), "{mounted:?}");
        Self(folder)
    }
}

impl Drop for Hierarchy {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.0.path()).output());
    }
}

#[test]
fn a_cgroup_is_recorded_without_the_others() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let hierarchy = Hierarchy::mounted();
    let folder = hierarchy.0.path().join(format!("fg-test-{}", std::process::id()));
    if std::fs::create_dir(&folder).is_err() || !folder.join("cgroup.procs").exists() {
        return crate::support::skip("no cgroup can be made here");
    }
    let (inside, _outside) =
        (Background::start(Command::new(&busy).arg("20")), Background::start(Command::new(&busy).arg("20")));
    std::fs::write(folder.join("cgroup.procs"), inside.pid()).unwrap();
    let outcome = record(["--script", "-F", "499", "-d", "2", "--cgroup", folder.to_str().unwrap()]);
    drop(inside);
    assert!(eventually(|| std::fs::remove_dir(&folder).is_ok()));
    let text = outcome.ok().text();
    let headers: Vec<&str> =
        text.lines().filter(|line| line.contains("cpu-clock:") || line.contains("cycles:")).collect();
    assert!(headers.len() > 20, "{text}");
    assert!(text.contains(" spin+") && text.contains(" main+"), "{text}");
    let pids: std::collections::BTreeSet<_> =
        headers.iter().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
    let outcome = record(["--cgroup", "no/such/group"]);
    assert_eq!(
        (outcome.code(), &*outcome.stderr),
        (125, "fg-record: --cgroup no/such/group: no such cgroup; name a directory below /sys/fs/cgroup\n")
    );
    let folder = directory();
    std::fs::write(folder.path().join("cgroup.procs"), "").unwrap();
    // Another controller's hierarchy, where each has its own.
    let of_cpu = std::path::Path::new("/sys/fs/cgroup/cpu");
    for other in [Some(folder.path()), of_cpu.join("cpu.shares").exists().then_some(of_cpu)].into_iter().flatten() {
        let outcome = record(["-d", "1", "--cgroup", other.to_str().unwrap()]);
        assert!(outcome.stderr.contains("of a hierarchy without perf_event"), "{outcome:?}");
    }
}

#[test]
fn a_command_may_run_as_somebody_else() {
    if !may_record() || !rustix::process::geteuid().is_root() {
        return;
    }
    let outcome = record(["--user", "nobody", "--", "sh", "-c", "id -u; id -Gn; echo $USER; exit 5"]);
    assert_eq!(outcome.code(), 5, "{outcome:?}");
    assert!(outcome.stderr.starts_with("65534\nnogroup\nnobody\n"), "{outcome:?}");
    let outcome = record(["--user", "no-such-user", "--", "true"]);
    assert_eq!((outcome.code(), &*outcome.stderr), (125, "fg-record: --user no-such-user: no such user\n"));
}
