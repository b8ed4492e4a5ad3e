//! What can be recorded: commands with their threads and children, running processes, CPUs, cgroups.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::support::process::Background;
use crate::support::programs::{copy_program, program, workload};
use crate::support::recording::{
    Profile, can_record, can_record_switches, finish, record, record_process, recorder, until_cpu_time,
    wait_until_recording,
};
use crate::support::{Outcome, command, directory, eventually, require, run_bounded, skip, tool};

#[test]
fn threads_have_their_names() {
    if !can_record() {
        return;
    }
    let outcome = record(["--", &workload(), "0.8"]).ok();
    assert!(outcome.stderr.contains("workload: done"), "{outcome:?}");
    let profile = Profile::from_stdout(&outcome);
    for thread in ["workload", "parser", "sorter"] {
        profile.assert_contains(&[thread]);
    }
}

#[test]
fn inlined_calls_are_frames_unless_no_inline() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let profile = Profile::from_stdout(&record(["--", &busy, "0.2"]).ok());
    profile.assert_contains(&["busy", "main", "spin", "step"]);
    let profile = Profile::from_stdout(&record(["--no-inline", "--", &busy, "0.2"]).ok());
    profile.assert_contains(&["busy", "main", "spin"]);
    profile.assert_lacks(&["step"]);
}

#[test]
fn follows_children_through_fork_and_exec() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let folder = directory();
    for name in ["first", "second", "third"] {
        copy_program(&busy, folder.path().join(name));
    }
    let script = "./first 0.1 & (env A=1 nice ./second 0.1); wait; exec env sh -c 'exec ./third 0.1'";
    let outcome = finish(recorder(["--", "sh", "-c", script]).current_dir(&folder).spawn().unwrap()).ok();
    let profile = Profile::from_stdout(&outcome);
    for name in ["first", "second", "third"] {
        profile.assert_contains(&[name, "main", "spin", "step"]);
    }
}

#[test]
fn odd_thread_names_become_frames_that_readers_accept() {
    let (true, Some(threads)) = (can_record(), program("threads")) else { return };
    let profile = Profile::from_stdout(&record(["--", &threads, "names"]).ok());
    for name in ["a:b", "new_line", "two_words", "\u{1b}[31mred", "\u{fffd}\u{fffd}", "lead", "1_2_3", "[unknown]"] {
        profile.assert_contains(&[name, "work", "spin"]);
    }
}

#[test]
fn records_several_processes_until_they_exit() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let start = || Background::start(command(&busy).arg("0.8"));
    let (one, other) = (start(), start());
    let outcome = record(["-F", "997", "-p", &format!("{},{}", one.pid(), other.pid())]).ok();
    Profile::from_stdout(&outcome).assert_contains(&["busy", "main", "spin", "step"]);
}

#[test]
fn a_process_that_sleeps_makes_an_empty_profile() {
    if !can_record() {
        return;
    }
    let process = Background::sleeping();
    let outcome = record(["-d", "200ms", "-p", &process.pid()]).ok();
    assert_eq!(outcome.text(), "");
    assert!(outcome.stderr.contains("nothing was recorded"), "{outcome:?}");
}

#[test]
fn records_a_process_with_threads_that_come_and_go() {
    let (true, Some(threads)) = (can_record(), program("threads")) else { return };
    let process = Background::start(command(threads).arg("churn"));
    let outcome = record_process(&process, &["-F", "997"], Duration::from_millis(500)).ok();
    let profile = Profile::from_stdout(&outcome);
    profile.assert_contains(&["threads", "main", "spin"]);
    profile.assert_contains(&["passing", "work", "spin"]);
}

#[test]
fn records_a_thread_without_its_siblings() {
    let (true, Some(threads)) = (can_record(), program("threads")) else { return };
    let process = Background::start(command(threads).arg("churn"));
    let mut recorder = recorder(["-F", "997", "-d", "0.8", "-t"]);
    // The first thread has the number of the process.
    let outcome = finish(recorder.arg(process.pid()).spawn().unwrap()).ok();
    Profile::from_stdout(&outcome).assert_lacks(&["passing"]);
}

#[test]
fn a_recording_of_threads_ends_when_they_exit() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let process = Background::start(command(busy).arg("0.5"));
    let outcome = record(["-F", "997", "-t", &process.pid()]).ok();
    Profile::from_stdout(&outcome).assert_contains(&["busy", "main", "spin", "step"]);
    let outcome = record(["-t", "4194305"]);
    assert_eq!((outcome.code(), &*outcome.stderr), (125, "fg-record: -t 4194305: no such thread\n"));
    // Nobody waits for the thread of a process that has exited.
    let mut exited = command("true").spawn().unwrap();
    let tid = exited.id().to_string();
    let stat = Path::new("/proc").join(&tid).join("stat");
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::sleep(Duration::from_millis(1));
    }
    let outcome = record(["-t", &tid]);
    assert_eq!((outcome.code(), &*outcome.stderr), (125, &*format!("fg-record: -t {tid}: the thread has exited\n")));
    exited.wait().unwrap();
}

#[test]
fn does_not_wait_for_daemons_that_a_command_started() {
    if !can_record() {
        return;
    }
    let folder = directory();
    let script = "setsid sleep 100000 < /dev/null > /dev/null 2>&1 & echo $! > daemon; exit 4";
    let outcome = finish(recorder(["--", "sh", "-c", script]).current_dir(&folder).spawn().unwrap());
    let daemon = std::fs::read_to_string(folder.path().join("daemon")).unwrap();
    let is_running = || Path::new("/proc").join(daemon.trim()).exists();
    assert!(is_running(), "{outcome:?}");
    command("kill").arg(daemon.trim()).status().unwrap();
    assert_eq!(outcome.code(), 4, "{outcome:?}");
    assert!(eventually(|| !is_running()));
}

#[test]
fn records_a_command_with_many_arguments_and_few_descriptors() {
    if !can_record() {
        return;
    }
    let recorder = tool("fg-record");
    let script = format!("ulimit -n 64; exec {recorder} -q -- sh -c 'echo $#, $(ulimit -n)' $(seq 20000)");
    let mut shell = command("sh");
    let outcome = run_bounded(shell.args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert_eq!(outcome.ok().stderr, "19999, 64\n");
}

#[test]
fn records_the_given_cpus_only() {
    let (true, Some(busy)) = (can_record() && require("taskset"), program("busy")) else { return };
    let script = record(["--script", "-C", "0", "--", "taskset", "-c", "0", &busy, "0.3"]).ok().text();
    let samples = script.lines().filter(|line| line.ends_with(": ")).count();
    assert!(samples > 0 && script.matches("[000]").count() == samples, "{script}");
    let outcome = record(["-C", "0", "--", "sh", "-c", "exit 3"]);
    assert_eq!(outcome.code(), 3, "{outcome:?}");
    let outcome = record(["-C", "60000", "--", "true"]);
    assert_eq!(
        (outcome.code(), &*outcome.stderr),
        (125, "fg-record: -C 60000: this CPU does not exist or is offline\n")
    );
    assert_eq!(record(["-C", "x", "--", "true"]).code(), 2);
}

/// The cgroup hierarchy, mounted in a directory of the test: not every machine has it at /sys/fs/cgroup.
struct CgroupMount(tempfile::TempDir);

impl CgroupMount {
    fn new() -> Self {
        let folder = directory();
        let mounted = command("mount").args(["-t", "cgroup2", "none"]).arg(folder.path()).output();
        assert!(mounted.is_ok(), "{mounted:?}");
        Self(folder)
    }

    /// Creates a cgroup without processes.
    fn create_cgroup(&self, name: &str) -> Option<std::path::PathBuf> {
        let cgroup = self.0.path().join(format!("fg-test-{name}-{}", std::process::id()));
        if std::fs::create_dir(&cgroup).is_err() || !cgroup.join("cgroup.procs").exists() {
            skip("no cgroup can be created here");
            return None;
        }
        Some(cgroup)
    }
}

impl Drop for CgroupMount {
    fn drop(&mut self) {
        drop(command("umount").arg(self.0.path()).output());
    }
}

#[test]
fn records_a_cgroup_without_other_processes() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let mount = CgroupMount::new();
    let Some(cgroup) = mount.create_cgroup("samples") else { return };
    let [inside, _outside] = [(); 2].map(|()| Background::start(command(&busy).arg("100000")));
    std::fs::write(cgroup.join("cgroup.procs"), inside.pid()).unwrap();
    let mut recorder = recorder(["--script", "-F", "499", "--cgroup", cgroup.to_str().unwrap()]);
    recorder.args(until_cpu_time(inside.pid().parse().unwrap(), Duration::from_millis(500)));
    let outcome = finish(recorder.spawn().unwrap());
    let pid = inside.pid();
    drop(inside);
    assert!(eventually(|| std::fs::remove_dir(&cgroup).is_ok()));
    assert_eq!(outcome.code(), 3, "{outcome:?}");
    let text = outcome.text();
    let mut headers = text.lines().filter(|line| line.contains("cpu-clock:") || line.contains("cycles:"));
    let is_inside =
        |header: &str| header.split_whitespace().nth(1).is_some_and(|ids| ids.starts_with(&format!("{pid}/")));
    assert!(headers.all(is_inside), "{text}");
    assert!(text.contains(" spin+") && text.contains(" main+"), "{text}");
}

#[test]
fn the_time_of_a_cgroup_is_that_of_its_threads() {
    let (true, Some(busy)) = (can_record_switches(&["--wakers"]), program("busy")) else { return };
    let mount = CgroupMount::new();
    let Some(cgroup) = mount.create_cgroup("waits") else { return };
    let path = cgroup.to_str().unwrap();
    // Threads outside are created, and run other programs.
    let outside = ["--", "sh", "-c", "for i in 1 2 3 4 5; do sleep 0.05; done"];
    for way in [&["--latency"][..], &["--wall", "--wakers"]] {
        let outcome = finish(recorder(["--cgroup", path]).args(way).args(outside).spawn().unwrap()).ok();
        assert_eq!(outcome.text(), "", "{way:?}: {outcome:?}");
    }
    let inside = Background::start(command(&busy).arg("100000"));
    std::fs::write(cgroup.join("cgroup.procs"), inside.pid()).unwrap();
    let outcome = finish(recorder(["--cgroup", path, "--wall"]).args(outside).spawn().unwrap()).ok();
    let profile = Profile::from_stdout(&outcome);
    profile.assert_contains(&["busy"]);
    assert!(profile.0.iter().all(|stack| stack.thread() == "busy"), "{outcome:?}");
    for option in ["--io-latency", "--syscall-latency", "--lock-wait"] {
        let outcome = finish(recorder(["--cgroup", path, option]).args(outside).spawn().unwrap());
        let message = format!(
            "fg-record: {option} cannot be used with --cgroup: it would record other processes too; use -p PID --subprocesses\n"
        );
        assert_eq!((outcome.code(), outcome.stderr), (2, message));
    }
    drop(inside);
    assert!(eventually(|| std::fs::remove_dir(&cgroup).is_ok()));
}

#[test]
fn rejects_cgroups_that_cannot_be_recorded() {
    let outcome = record(["--cgroup", "no/such/group"]);
    assert_eq!(
        (outcome.code(), &*outcome.stderr),
        (125, "fg-record: --cgroup no/such/group: no such cgroup; name a directory below /sys/fs/cgroup\n")
    );
    let folder = directory();
    std::fs::write(folder.path().join("cgroup.procs"), "").unwrap();
    // The hierarchy of another controller, where each controller has its own.
    let cpu_controller = Path::new("/sys/fs/cgroup/cpu");
    let exists = cpu_controller.join("cpu.shares").exists();
    for other in [Some(folder.path()), exists.then_some(cpu_controller)].into_iter().flatten() {
        let outcome = record(["-d", "1", "--cgroup", other.to_str().unwrap()]);
        assert!(outcome.stderr.contains("its hierarchy has no perf_event controller"), "{outcome:?}");
    }
}

#[test]
fn runs_a_command_as_another_user() {
    if !can_record() || !rustix::process::geteuid().is_root() {
        return;
    }
    let outcome = record(["--user", "nobody", "--", "sh", "-c", "id -u; id -Gn; echo $USER; exit 5"]);
    assert_eq!(outcome.code(), 5, "{outcome:?}");
    assert!(outcome.stderr.starts_with("65534\nnogroup\nnobody\n"), "{outcome:?}");
    let outcome = record(["--user", "no-such-user", "--", "true"]);
    assert_eq!((outcome.code(), &*outcome.stderr), (125, "fg-record: --user no-such-user: no such user\n"));
}

/// Makes a set-user-ID program in a folder. `None` if that is not possible here.
fn make_set_user_id_program(folder: &Path) -> Option<PathBuf> {
    let (true, true, Some(busy)) = (can_record(), rustix::process::geteuid().is_root(), program("busy")) else {
        return None;
    };
    let program = folder.join("rights");
    copy_program(&busy, &program);
    for (path, mode) in [(folder, 0o755), (&program, 0o4755)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    Some(program)
}

/// Records a shell of another user, which runs the program in a folder once the recording has started.
fn record_running_shell(folder: &Path, options: &[&str]) -> Outcome {
    let script = "while ! [ -e start ]; do sleep 0.05; done; ./rights 1; true";
    let mut shell = command("sh");
    let shell = Background::start(shell.args(["-c", script]).current_dir(folder).uid(65534).gid(65534));
    let mut running = recorder(["-p", &shell.pid()]).args(options).spawn().unwrap();
    wait_until_recording(&mut running);
    std::fs::write(folder.join("start"), "").unwrap();
    finish(running)
}

/// The kernel takes the counters away from a process that runs a program with other rights.
#[test]
fn the_mappings_of_a_set_user_id_program_are_known() {
    let folder = directory();
    let Some(program) = make_set_user_id_program(folder.path()) else { return };
    let own = ["-F", "997", "--user", "nobody", "--", "sh", "-c", "$0 1; true", program.to_str().unwrap()];
    for outcome in [record_running_shell(folder.path(), &["-F", "997"]), record(own)] {
        // The first samples may come before the recorder has attached to the process again.
        Profile::from_stdout(&outcome).assert_contains(&["rights", "main", "spin", "step"]);
        assert!(!outcome.stderr.contains("counters away"), "{outcome:?}");
    }
}

#[test]
fn what_a_set_user_id_program_does_off_the_cpu_is_called_missing() {
    let folder = directory();
    let Some(_) = make_set_user_id_program(folder.path()) else { return };
    let outcome = record_running_shell(folder.path(), &["--off-cpu"]);
    assert!(outcome.stderr.contains("the kernel took the counters away from process "), "{outcome:?}");
}

#[test]
fn stacks_begin_with_properties_of_threads() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let outcome = record(["--split-by", "cgroup,container,pid,tid,cpu", "--", &busy, "0.2"]).ok();
    let profile = Profile::from_stdout(&outcome);
    assert!(!profile.0.is_empty(), "{outcome:?}");
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let line = own.lines().find(|line| line.starts_with("0::")).or(own.lines().next()).unwrap();
    let cgroup = line.splitn(3, ':').nth(2).unwrap();
    for stack in &profile.0 {
        let [first, _, pid, tid, cpu, name, ..] = &stack.frames[..] else { panic!("{outcome:?}") };
        assert_eq!((&**first, pid.strip_prefix("pid-")), (cgroup, tid.strip_prefix("tid-")), "{outcome:?}");
        assert!(cpu.starts_with("cpu-") && name == "busy", "{outcome:?}");
    }
    for options in [&["--split-by", "process"][..], &["--split-by", "pid,pid"], &["--split-by", "pid", "--script"]] {
        assert_eq!(finish(recorder([]).args(options).args(["--", "true"]).spawn().unwrap()).code(), 2);
    }
}
