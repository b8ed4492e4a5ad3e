//! What the kernel does not permit, and messages that say what would permit it.

use std::fs::{File, Permissions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::process::Background;
use crate::support::programs::{compiler, copy_program, program};
use crate::support::recording::{Profile, can_record, record};
use crate::support::{Outcome, command, directory, eventually, require, run, run_bounded, run_command, skip, tool};

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const MLOCK_KB: &str = "/proc/sys/kernel/perf_event_mlock_kb";

/// A lock that all runs of the tests on this machine share. It is released when the value is dropped.
struct MachineLock(#[allow(dead_code)] File);

impl MachineLock {
    /// Waits for the lock of a file.
    #[allow(unsafe_code)]
    fn acquire(path: &str) -> Self {
        let file = File::open(path).unwrap();
        // SAFETY: flock has no memory effects, and the descriptor is open.
        assert_eq!(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) }, 0, "{}", std::io::Error::last_os_error());
        Self(file)
    }
}

/// A kernel setting that is changed until the value is dropped.
struct Setting {
    path: &'static str,
    before: String,
}

impl Setting {
    /// Changes a setting. Without permission returns `None` and reports the test as skipped.
    ///
    /// The caller holds the lock of [`Nobody`], so that one test at a time depends on the settings.
    fn change(_nobody: &Nobody, path: &'static str, value: &str) -> Option<Self> {
        let before = std::fs::read_to_string(path).unwrap();
        if let Err(error) = std::fs::write(path, value) {
            skip(&format!("{path}: {error}"));
            return None;
        }
        Some(Self { path, before })
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        std::fs::write(self.path, &self.before).unwrap();
    }
}

/// Runs programs as the user nobody, in a directory with the program `busy` and fg-record.
///
/// One test at a time has a value: settings hold for the whole machine, and all recordings of a user share the memory that
/// it may lock.
struct Nobody {
    folder: tempfile::TempDir,
    _lock: MachineLock,
}

impl Nobody {
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("only root can run programs as nobody");
            return None;
        }
        let busy = program("busy").filter(|_| can_record() && require("setpriv"))?;
        let folder = directory();
        for (name, path) in [("busy", &*busy), ("fg-record", tool("fg-record"))] {
            copy_program(path, folder.path().join(name));
        }
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        Some(Self { folder, _lock: MachineLock::acquire(PARANOID) })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn program(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Returns a command that runs a shell script in the directory as nobody.
    fn command(&self, script: &str) -> Command {
        let mut command = command("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", script]);
        command.current_dir(self.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, script: &str) -> Outcome {
        run_bounded(&mut self.command(script))
    }
}

#[test]
fn says_that_the_mappings_of_other_users_are_hidden() {
    let Some(nobody) = Nobody::new() else { return };
    let Some(_setting) = Setting::change(&nobody, PARANOID, "-1") else { return };
    let _busy = Background::start(command(program("busy").unwrap()).arg("30"));
    let outcome = nobody.run("./fg-record -F 97 -a -o /dev/null -- sleep 1");
    let message = "of stacks end in code without a known mapping: those of other users' processes cannot be read; \
                   run fg-record with sudo\n";
    assert!(outcome.stderr.contains(message), "{outcome:?}");
}

#[test]
fn leaves_out_kernel_frames_without_permission_and_reports_it() {
    let Some(nobody) = Nobody::new() else { return };
    let Some(_setting) = Setting::change(&nobody, PARANOID, "2") else { return };
    let outcome = nobody.run("./fg-record -- sh -c './busy 0.2; exit 4'");
    assert_eq!(outcome.code(), 4, "{outcome:?}");
    let message = "fg-record: kernel frames left out: perf_event_paranoid is 2; \
                   run: sudo sysctl kernel.perf_event_paranoid=1 (or run fg-record with sudo or CAP_PERFMON)\n";
    assert_eq!(outcome.stderr.matches(message).count(), 1, "{outcome:?}");
    let profile = Profile::from_stdout(&outcome);
    profile.assert_contains(&["busy", "main", "spin", "step"]);
    profile.assert_lacks(&["do_syscall_64"]);
    // The shell's child used most of the time: how much of that in user space is not known.
    assert!(outcome.stderr.contains(" CPU time, sampled only in user space\n"), "{outcome:?}");
    // A running process of the same user.
    let outcome = nobody.run("./busy 1 & ./fg-record -F 997 -p $!").ok();
    Profile::from_stdout(&outcome).assert_contains(&["busy", "main", "spin", "step"]);
    assert!(outcome.stderr.contains(message), "{outcome:?}");
    // A program whose file was removed has names without root's permissions too.
    let script = "cp busy /tmp/fg-gone-$$; /tmp/fg-gone-$$ 2 & sleep 0.1; rm /tmp/fg-gone-$$; ./fg-record -F 997 -p $!";
    Profile::from_stdout(&nobody.run(script).ok()).assert_contains(&["main", "spin", "step"]);
}

#[test]
fn reports_what_would_permit_recording_the_whole_system() {
    let Some(nobody) = Nobody::new() else { return };
    for level in ["2", "1"] {
        let Some(_setting) = Setting::change(&nobody, PARANOID, level) else { return };
        let outcome = nobody.run("./fg-record -a -d 100ms");
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        let message = format!(
            "fg-record: -a: cannot record all CPUs: perf_event_paranoid is {level}; \
             run: sudo sysctl kernel.perf_event_paranoid=0 (or run fg-record with sudo or CAP_PERFMON)\n"
        );
        assert_eq!(outcome.stderr, message);
    }
    let Some(_setting) = Setting::change(&nobody, PARANOID, "0") else { return };
    nobody.run("./fg-record -a -d 100ms").ok();
}

#[test]
fn rejects_a_process_of_another_user_with_its_name_and_owner() {
    let Some(nobody) = Nobody::new() else { return };
    let process = Background::start(command(nobody.program("busy")).arg("100000"));
    let outcome = nobody.run(&format!("./fg-record -d 100ms -p {}", process.pid()));
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    let message = format!("fg-record: cannot attach to pid {} (busy, owned by uid ", process.pid());
    assert!(outcome.stderr.starts_with(&message) && outcome.stderr.contains("permission denied"), "{outcome:?}");
}

#[test]
fn uses_smaller_ring_buffers_with_little_locked_memory() {
    let Some(nobody) = Nobody::new() else { return };
    let Some(_setting) = Setting::change(&nobody, MLOCK_KB, "100") else { return };
    // With copied stacks the buffer is large enough for two samples, and some may be lost.
    for call_graph in ["fp", "dwarf"] {
        let outcome = nobody.run(&format!("ulimit -l 0; ./fg-record --call-graph {call_graph} -- ./busy 0.2")).ok();
        assert_eq!(outcome.stderr.matches("ring buffers reduced to").count(), 1, "{outcome:?}");
        assert!(outcome.stderr.contains("(kernel.perf_event_mlock_kb=100, ulimit -l)"), "{outcome:?}");
        Profile::from_stdout(&outcome).assert_contains(&["busy", "main", "spin", "step"]);
    }
}

#[test]
fn does_not_run_the_command_without_locked_memory() {
    let Some(nobody) = Nobody::new() else { return };
    let Some(_setting) = Setting::change(&nobody, MLOCK_KB, "1") else { return };
    // Exactly this: the suspended command exits silently, whether it or the recorder exits first.
    let message = "fg-record: cannot allocate ring buffers: locked-memory limit reached (kernel.perf_event_mlock_kb=1, \
                   ulimit -l), which all recordings of a user share; use a smaller -m, or raise the limit\n";
    for _ in 0..10 {
        let outcome = nobody.run("ulimit -l 0; ./fg-record -- sh -c 'echo ran'");
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        assert_eq!(outcome.stderr, message);
    }
}

#[test]
fn rejects_a_process_that_does_not_exist() {
    for pid in ["0", "4194305"] {
        let outcome = record(["-p", pid]);
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        assert_eq!(outcome.stderr, format!("fg-record: -p {pid}: no such process\n"));
    }
    let outcome = record(["-p", "init"]);
    assert_eq!(outcome.code(), 2, "{outcome:?}");
}

#[test]
fn rejects_a_process_that_has_exited() {
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    let stat = format!("/proc/{}/stat", child.id());
    assert!(eventually(|| std::fs::read_to_string(&stat).unwrap().contains(") Z ")));
    let outcome = record(["-p", &child.id().to_string()]);
    child.wait().unwrap();
    let what = "the process has exited, and its parent has not waited for it";
    assert_eq!((outcome.code(), outcome.stderr), (125, format!("fg-record: -p {}: {what}\n", child.id())));
}

#[test]
fn names_the_limit_of_open_files() {
    if !can_record() {
        return;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 16; exec \"$0\" -o /dev/null -- true", tool("fg-record")]);
    let outcome = run_command(shell, b"");
    assert_eq!((outcome.code(), outcome.stderr.lines().count()), (125, 1), "{outcome:?}");
    assert!(outcome.stderr.contains("ulimit -n"), "{outcome:?}");
}

#[test]
fn rejects_a_thread_and_names_its_process() {
    let (send_link, link) = std::sync::mpsc::channel();
    let (exit, wait_for_exit) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        // PID/task/TID
        send_link.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
        let _ = wait_for_exit.recv();
    });
    let link = link.recv().unwrap();
    let tid = link.file_name().unwrap().to_str().unwrap();
    let outcome = record(["-p", tid]);
    drop(exit);
    thread.join().unwrap();
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    let message = format!("fg-record: -p {tid} is a thread of process {} (", std::process::id());
    assert!(outcome.stderr.starts_with(&message), "{outcome:?}");
}

#[test]
fn reports_a_limit_on_descriptors_that_is_too_low() {
    if !(can_record() && require("python3")) {
        return;
    }
    let script = "import threading, time\n\
        for n in range(80): threading.Thread(target=time.sleep, args=[100000], daemon=True).start()\n\
        time.sleep(100000)";
    let process = Background::start(command("python3").args(["-c", script]));
    let threads = Path::new("/proc").join(process.pid()).join("task");
    assert!(eventually(|| std::fs::read_dir(&threads).unwrap().count() > 80));
    let record_with_limit = |limit: &str| {
        let script = format!("ulimit -n {limit}; exec \"$0\" -d 0.1 --call-graph dwarf,16384 -p \"$1\"");
        let mut shell = command("sh");
        shell.args(["-c", &script, tool("fg-record"), &process.pid()]);
        run_bounded(shell.stdout(Stdio::piped()).stderr(Stdio::piped()))
    };
    let outcome = record_with_limit("64");
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert!(outcome.stderr.contains("the limit is 64; run: ulimit -n "), "{outcome:?}");
    // The limit that the message recommends is high enough.
    let recommended = outcome.stderr.split("ulimit -n ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    record_with_limit(recommended).ok();
}

#[test]
fn reports_missing_support_for_branch_records_and_precise_events() {
    if !can_record() {
        return;
    }
    for (arguments, message) in [
        (["--call-graph", "lbr"], "this CPU or virtual machine has no branch records; use --call-graph dwarf"),
        (["-e", "cycles:ppp"], "this machine "),
    ] {
        let outcome = record([arguments[0], arguments[1], "--", "true"]);
        assert!(outcome.status.success() || outcome.code() == 125 && outcome.stderr.contains(message), "{outcome:?}");
    }
}

#[test]
fn rejects_contradicting_or_missing_targets() {
    for arguments in [&["-p", "1", "-t", "1"][..], &["-a", "-p", "1"], &["-a", "--cgroup", "/", "--", "true"], &[]] {
        let outcome = run("fg-record", arguments, b"");
        assert_eq!(outcome.code(), 2, "{outcome:?}");
        assert!(!outcome.stderr.is_empty() && outcome.stdout.is_empty(), "{outcome:?}");
    }
}

#[test]
fn rejects_pictures() {
    let folder = directory();
    let file = folder.path().join("flame.svg");
    let outcome = record(["-o", &file.to_string_lossy(), "--", "true"]);
    assert!(outcome.code() == 2 && outcome.stderr.contains("| fg-svg > "), "{outcome:?}");
    assert!(!file.exists());
}

#[test]
fn rejects_malformed_events() {
    let modifiers = "-e cpu-clock:z: unknown modifier z; allowed are u, k and up to three p\n";
    for (event, message) in
        [("cpu-clock:z", modifiers), ("", "-e: an event name is empty\n"), (",", "-e: an event name is empty\n")]
    {
        let outcome = record(["-e", event, "--", "true"]);
        assert_eq!((outcome.code(), outcome.stderr), (2, format!("fg-record: {message}")));
    }
}

#[test]
fn rejects_kernel_events_without_permission() {
    let Some(nobody) = Nobody::new() else { return };
    let Some(_setting) = Setting::change(&nobody, PARANOID, "2") else { return };
    for events in ["cpu-clock:k", "cpu-clock,page-faults:k --script"] {
        let outcome = nobody.run(&format!("./fg-record -e {events} -- ./busy 0.1"));
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        let event = if events.contains("--script") { "page-faults:k" } else { events };
        let message = format!(
            "fg-record: -e {event} counts kernel events only: perf_event_paranoid is 2; \
             run: sudo sysctl kernel.perf_event_paranoid=1 (or run fg-record with sudo or CAP_PERFMON)\n"
        );
        assert_eq!(outcome.stderr, message);
    }
}

#[test]
fn rejects_off_cpu_recordings_without_permission() {
    let Some(nobody) = Nobody::new() else { return };
    let Some(_setting) = Setting::change(&nobody, PARANOID, "2") else { return };
    for option in ["--off-cpu", "--wall"] {
        let outcome = nobody.run(&format!("./fg-record {option} -- ./busy 0.1"));
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        let message = "fg-record: --off-cpu, --wall and --latency need kernel events: perf_event_paranoid is 2; \
                       run: sudo sysctl kernel.perf_event_paranoid=1 (or run fg-record with sudo or CAP_PERFMON)\n";
        assert_eq!(outcome.stderr, message);
    }
}

#[test]
fn names_the_option_that_needs_root() {
    let Some(nobody) = Nobody::new() else { return };
    for option in ["--critical-path=main", "--run-queue", "--io-latency", "--syscall-latency", "--lock-wait"] {
        let outcome = nobody.run(&format!("./fg-record {option} -- true"));
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        let option = option.trim_end_matches("=main");
        assert!(outcome.stderr.starts_with(&format!("fg-record: {option}: ")), "{outcome:?}");
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_a_bracketed_frame() {
    let Some(nobody) = Nobody::new() else { return };
    let source = nobody.program("main.c");
    std::fs::write(&source, "void spin(double); int main(void) { spin(2); return 0; }").unwrap();
    let compile = |output: &str, arguments: &[&str]| {
        let mut compiler = compiler(&nobody.program(output));
        assert!(compiler.args(["-O2", "-g"]).args(arguments).status().unwrap().success(), "{compiler:?}");
    };
    compile("libgone.so", &["-shared", "-fPIC", "-DNO_MAIN", "busy.c", "-Wl,-soname,./libgone.so"]);
    compile("main", &[source.to_str().unwrap(), nobody.program("libgone.so").to_str().unwrap()]);
    // Only root may read the mapped pages of a removed file, unless it is the process's own program.
    let process = Background::start(&mut nobody.command("exec ./main"));
    let maps = Path::new("/proc").join(process.pid()).join("maps");
    assert!(eventually(|| std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("libgone.so"))));
    std::fs::remove_file(nobody.program("libgone.so")).unwrap();
    let outcome = nobody.run(&format!("./fg-record -F 997 -p {}", process.pid())).ok();
    Profile::from_stdout(&outcome).assert_contains(&["main", "[libgone.so (deleted)]"]);
    assert!(!outcome.stderr.contains(", 0 of"), "{outcome:?}");
}

#[test]
fn rejects_probes_and_bpf_without_permission() {
    let Some(nobody) = Nobody::new() else { return };
    for (options, message) in
        [("-e uprobe:./busy:spin", "-e uprobe:./busy:spin: uprobes need root"), ("--off-cpu --bpf", "--bpf needs root")]
    {
        let outcome = nobody.run(&format!("./fg-record {options} -- ./busy 0.1"));
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        assert!(outcome.stderr.starts_with(&format!("fg-record: {message}, or ")), "{outcome:?}");
    }
}
