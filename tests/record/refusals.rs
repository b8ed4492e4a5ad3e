//! What the kernel does not allow, in words that help.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::folded::{Background, Folded, may_record, record};
use crate::programs::{compiled, copy_program, program};
use crate::support::{Outcome, directory, eventually, has, run_bounded, skip, tool};

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const LOCKED: &str = "/proc/sys/kernel/perf_event_mlock_kb";

/// One test at a time changes what the kernel allows.
static SETTINGS: Mutex<()> = Mutex::new(());

/// What the kernel allows, for the length of a test.
struct Setting {
    path: &'static str,
    before: String,
    _alone: MutexGuard<'static, ()>,
}

impl Setting {
    /// `None`, and the test skips, without root's rights.
    fn change(path: &'static str, value: &str) -> Option<Self> {
        let alone = SETTINGS.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::fs::read_to_string(path).unwrap();
        if let Err(error) = std::fs::write(path, value) {
            skip(&format!("{path}: {error}"));
            return None;
        }
        Some(Self { path, before, _alone: alone })
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        std::fs::write(self.path, &self.before).unwrap();
    }
}

/// One test at a time records as nobody: all recordings of a user share the memory that it may lock.
static NOBODY: Mutex<()> = Mutex::new(());

/// A folder that nobody may use too, with what it records and records with.
struct Nobody {
    folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Nobody {
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("only root can run programs as nobody");
            return None;
        }
        let busy = program("busy").filter(|_| may_record() && has("setpriv"))?;
        let folder = directory();
        for (name, path) in [("busy", &*busy), ("fg-record", tool("fg-record"))] {
            copy_program(path, folder.path().join(name));
        }
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self { folder, _alone: NOBODY.lock().unwrap_or_else(PoisonError::into_inner) })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn program(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Runs a shell script in the folder as the user nobody.
    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", script]);
        command.current_dir(self.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, script: &str) -> Outcome {
        run_bounded(&mut self.command(script))
    }
}

#[test]
fn without_leave_the_kernels_frames_are_left_out_and_that_is_said() {
    let (Some(nobody), Some(_setting)) = (Nobody::new(), Setting::change(PARANOID, "2")) else { return };
    let outcome = nobody.run("./fg-record -- sh -c './busy 0.2; exit 4'");
    assert_eq!(outcome.code(), 4, "{outcome:?}");
    let said = "fg-record: kernel frames left out: perf_event_paranoid is 2 (needs 1, or CAP_PERFMON). \
                Try: sudo sysctl kernel.perf_event_paranoid=1\n";
    assert_eq!(outcome.stderr.matches(said).count(), 1, "{outcome:?}");
    let profile = Folded::of(&outcome);
    profile.assert_share(&["busy", "main", "spin", "step"], 0.8);
    assert_eq!(profile.share(&["do_syscall_64"]), 0.0);
    // Of a process that runs already, its owner's, the same.
    let outcome = nobody.run("./busy 20 & ./fg-record -F 997 -d 300ms -p $!; kill $!").ok();
    Folded::of(&outcome).assert_share(&["busy", "main", "spin", "step"], 0.8);
    assert!(outcome.stderr.contains(said), "{outcome:?}");
    // A file that went away is named without root's rights too.
    let script = "cp busy /tmp/fg-gone-$$; /tmp/fg-gone-$$ 20 & sleep 0.1; rm /tmp/fg-gone-$$; \
                  ./fg-record -F 997 -d 300ms -p $!; kill $!";
    Folded::of(&nobody.run(script).ok()).assert_share(&["main", "spin", "step"], 0.8);
}

#[test]
fn the_whole_system_is_refused_with_what_would_allow_it() {
    let Some(nobody) = Nobody::new() else { return };
    for level in ["2", "1"] {
        let Some(_setting) = Setting::change(PARANOID, level) else { return };
        let outcome = nobody.run("./fg-record -a -d 100ms");
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        let said = format!(
            "fg-record: cannot record all CPUs (-a): perf_event_paranoid is {level}, -a needs 0 or CAP_PERFMON. \
             Try: sudo sysctl kernel.perf_event_paranoid=0, or sudo fg-record -a\n"
        );
        assert_eq!(outcome.stderr, said);
    }
    let Some(_setting) = Setting::change(PARANOID, "0") else { return };
    nobody.run("./fg-record -a -d 100ms").ok();
}

#[test]
fn somebody_elses_process_is_refused_with_its_name_and_owner() {
    let Some(nobody) = Nobody::new() else { return };
    let process = Background::start(Command::new(nobody.program("busy")).arg("20"));
    let outcome = nobody.run(&format!("./fg-record -d 100ms -p {}", process.pid()));
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    let said = format!("fg-record: cannot attach to pid {} (busy, owned by uid ", process.pid());
    assert!(outcome.stderr.starts_with(&said) && outcome.stderr.contains("permission denied"), "{outcome:?}");
}

#[test]
fn with_little_locked_memory_the_rings_are_smaller() {
    let (Some(nobody), Some(_setting)) = (Nobody::new(), Setting::change(LOCKED, "100")) else { return };
    // Where stacks are copied, so little is enough for two of them, and some samples may be lost.
    for (call_graph, least) in [("fp", 0.8), ("dwarf", 0.05)] {
        let outcome = nobody.run(&format!("ulimit -l 0; ./fg-record --call-graph {call_graph} -- ./busy 0.2")).ok();
        assert_eq!(outcome.stderr.matches("ring buffers reduced to").count(), 1, "{outcome:?}");
        assert!(outcome.stderr.contains("(kernel.perf_event_mlock_kb=100, ulimit -l)"), "{outcome:?}");
        Folded::of(&outcome).assert_share(&["busy", "main", "spin", "step"], least);
    }
}

#[test]
fn without_locked_memory_recording_is_refused_and_the_command_does_not_run() {
    let (Some(nobody), Some(_setting)) = (Nobody::new(), Setting::change(LOCKED, "1")) else { return };
    // All of it: the command, held until now, ends without a word, whether it sees its end or ours first.
    let said = "fg-record: no memory for ring buffers: locked-memory limit (kernel.perf_event_mlock_kb=1, ulimit -l), \
                which all recordings of a user share\n";
    for _ in 0..10 {
        let outcome = nobody.run("ulimit -l 0; ./fg-record -- sh -c 'echo ran'");
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        assert_eq!(outcome.stderr, said);
    }
}

#[test]
fn a_process_that_is_not_there_is_said() {
    for pid in ["0", "4194305"] {
        let outcome = record(["-p", pid]);
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        assert_eq!(outcome.stderr, format!("fg-record: -p {pid}: no such process\n"));
    }
    let outcome = record(["-p", "init"]);
    assert_eq!(outcome.code(), 2, "{outcome:?}");
}

#[test]
fn a_thread_is_refused_with_its_process() {
    let (sent, received) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        // PID/task/TID
        sent.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
        let _ = ended.recv();
    });
    let link = received.recv().unwrap();
    let tid = link.file_name().unwrap().to_str().unwrap();
    let outcome = record(["-p", tid]);
    drop(end);
    thread.join().unwrap();
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    let said = format!("fg-record: -p {tid} is a thread of process {} (", std::process::id());
    assert!(outcome.stderr.starts_with(&said), "{outcome:?}");
}

#[test]
fn more_threads_than_files_may_be_open_is_said() {
    if !(may_record() && has("python3")) {
        return;
    }
    let script = "import threading, time\n\
        for n in range(80): threading.Thread(target=time.sleep, args=[60], daemon=True).start()\n\
        time.sleep(60)";
    let process = Background::start(Command::new("python3").args(["-c", script]));
    let threads = Path::new("/proc").join(process.pid()).join("task");
    assert!(eventually(|| std::fs::read_dir(&threads).unwrap().count() > 80));
    let script = "ulimit -n 64; exec \"$0\" -d 1 -p \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, tool("fg-record"), &process.pid()]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let outcome = run_bounded(&mut command);
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert!(outcome.stderr.contains("the limit is 64: raise it with ulimit -n "), "{outcome:?}");
    // With as many as it asks for there are enough.
    let needed = outcome.stderr.split("ulimit -n ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    let script = format!("ulimit -n {needed}; exec \"$0\" -d 0.1 -p \"$1\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, tool("fg-record"), &process.pid()]).stdout(Stdio::piped()).stderr(Stdio::piped());
    run_bounded(&mut command).ok();
}

#[test]
fn branch_records_and_exactness_that_the_machine_lacks_are_said() {
    if !may_record() {
        return;
    }
    for (arguments, said) in [
        (["--call-graph", "lbr"], "this CPU or virtual machine keeps no branch records; use --call-graph dwarf"),
        (["-e", "cycles:ppp"], "this machine "),
    ] {
        let outcome = record([arguments[0], arguments[1], "--", "true"]);
        assert!(outcome.status.success() || outcome.code() == 125 && outcome.stderr.contains(said), "{outcome:?}");
    }
}

#[test]
fn what_cannot_be_meant_is_a_usage_error() {
    for arguments in [&["-p", "1", "--", "true"][..], &["-a", "-p", "1"], &["-a", "--", "true"], &[]] {
        let outcome = crate::support::run("fg-record", arguments, b"");
        assert_eq!(outcome.code(), 2, "{outcome:?}");
        assert!(!outcome.stderr.is_empty() && outcome.stdout.is_empty(), "{outcome:?}");
    }
}

#[test]
fn what_is_no_event_is_said() {
    let modifiers = "-e cpu-clock:z: behind the event stand u, k and up to three p, not z\n";
    for (event, said) in
        [("cpu-clock:z", modifiers), ("", "-e: an event has no name\n"), (",", "-e: an event has no name\n")]
    {
        let outcome = record(["-e", event, "--", "true"]);
        assert_eq!((outcome.code(), outcome.stderr), (2, format!("fg-record: {said}")));
    }
}

#[test]
fn without_leave_what_is_counted_in_the_kernel_alone_is_refused() {
    let (Some(nobody), Some(_setting)) = (Nobody::new(), Setting::change(PARANOID, "2")) else { return };
    for events in ["cpu-clock:k", "cpu-clock,page-faults:k --script"] {
        let outcome = nobody.run(&format!("./fg-record -e {events} -- ./busy 0.1"));
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        let event = if events.contains("--script") { "page-faults:k" } else { events };
        let said = format!(
            "fg-record: {event} is counted in the kernel alone: perf_event_paranoid is 2 (needs 1, or CAP_PERFMON). \
             Try: sudo sysctl kernel.perf_event_paranoid=1\n"
        );
        assert_eq!(outcome.stderr, said);
    }
}

#[test]
fn without_leave_time_off_the_cpu_is_refused_with_the_reason() {
    let (Some(nobody), Some(_setting)) = (Nobody::new(), Setting::change(PARANOID, "2")) else { return };
    for option in ["--off-cpu", "--wall"] {
        let outcome = nobody.run(&format!("./fg-record {option} -- ./busy 0.1"));
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        let said = "fg-record: time off the CPU is known to the kernel alone: perf_event_paranoid is 2 \
                    (needs 1, or CAP_PERFMON). Try: sudo sysctl kernel.perf_event_paranoid=1\n";
        assert_eq!(outcome.stderr, said);
    }
}

#[test]
fn a_file_that_could_not_be_opened_is_a_name_in_brackets_and_counted() {
    let (Some(nobody), Some(sources)) = (Nobody::new(), compiled()) else { return };
    let compile = |arguments: &[&str]| {
        let compiler = Command::new("cc").args(["-O2", "-g"]).args(arguments).current_dir(nobody.path()).status();
        assert!(compiler.unwrap().success());
    };
    let busy = sources.join("busy.c");
    std::fs::write(nobody.program("main.c"), "void spin(double); int main(void) { spin(20); return 0; }").unwrap();
    compile(&["-shared", "-fPIC", "-DNO_MAIN", "-o", "libgone.so", busy.to_str().unwrap()]);
    compile(&["-o", "main", "main.c", "./libgone.so"]);
    std::fs::remove_file(nobody.program("main.c")).unwrap();
    // Of a file that was removed only root may still read what is mapped; but for the program itself.
    let process = Background::start(&mut nobody.command("exec ./main"));
    let maps = Path::new("/proc").join(process.pid()).join("maps");
    assert!(eventually(|| std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("libgone.so"))));
    std::fs::remove_file(nobody.program("libgone.so")).unwrap();
    let outcome = nobody.run(&format!("./fg-record -F 997 -d 500ms -p {}", process.pid())).ok();
    let profile = Folded::of(&outcome);
    profile.assert_share(&["main", "[libgone.so (deleted)]"], 0.8);
    assert!(!outcome.stderr.contains(", 0 of"), "{outcome:?}");
}

#[test]
fn without_leave_probes_and_programs_in_the_kernel_are_refused_with_the_reason() {
    let Some(nobody) = Nobody::new() else { return };
    let mut cases = vec![("-e uprobe:./busy:spin", "uprobe:./busy:spin: a probe in a program's code needs root")];
    if cfg!(feature = "bpf") {
        cases.push(("--off-cpu --bpf", "--bpf needs root"));
    }
    for (options, said) in cases {
        let outcome = nobody.run(&format!("./fg-record {options} -- ./busy 0.1"));
        assert_eq!(outcome.code(), 125, "{outcome:?}");
        assert!(outcome.stderr.starts_with(&format!("fg-record: {said}, or ")), "{outcome:?}");
    }
}
