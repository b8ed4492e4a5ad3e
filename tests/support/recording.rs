//! Starts recordings and answers questions about their profiles.

use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use super::process::{Background, Status};
use super::statistics::{Check, ensure};
use super::{Outcome, command, eventually, run, run_bounded, skip, tool, wait_for_exit};

/// Returns true if this machine lets us record. Otherwise reports the test as skipped.
#[track_caller]
pub fn can_record() -> bool {
    static REFUSAL: LazyLock<Option<String>> = LazyLock::new(|| {
        let probe = run("fg-record", ["-q", "--", "true"], b"");
        (!probe.status.success()).then_some(probe.stderr)
    });
    if let Some(refusal) = &*REFUSAL {
        skip(&format!("fg-record cannot record here: {}", refusal.trim()));
    }
    REFUSAL.is_none()
}

/// Returns true if this machine lets us record context switches with these options. Otherwise reports the test as
/// skipped.
#[track_caller]
pub fn can_record_switches(options: &[&str]) -> bool {
    if !can_record() {
        return false;
    }
    let probe = run("fg-record", [&["--off-cpu"], options, &["--", "true"]].concat(), b"");
    if !probe.status.success() {
        skip(&probe.stderr);
    }
    probe.status.success()
}

/// Returns a command for fg-record without standard input and with pipes for its output.
pub fn recorder<const N: usize>(arguments: [&str; N]) -> Command {
    let mut recorder = command(tool("fg-record"));
    recorder.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    recorder
}

/// Runs fg-record until it exits.
pub fn record<const N: usize>(arguments: [&str; N]) -> Outcome {
    run_bounded(&mut recorder(arguments))
}

/// Waits until a recorder exits.
pub fn finish(recorder: Child) -> Outcome {
    wait_for_exit(recorder, "fg-record")
}

/// Records a running process until it has used so much CPU time, then interrupts the recorder.
///
/// Unlike a recording with `-d`, this one has samples however rarely a busy machine lets the process run.
pub fn record_process(process: &Background, options: &[&str], cpu_time: Duration) -> Outcome {
    let mut recorder = recorder(["-p", &process.pid()]).args(options).spawn().unwrap();
    wait_until_recording(&mut recorder);
    process.wait_for_cpu_time(cpu_time);
    super::signals::send(&recorder, libc::SIGINT);
    finish(recorder)
}

/// Returns arguments for a recorder that end it once a process has used so much more CPU time: a command beside the
/// target, which runs from when the counters count.
pub fn until_cpu_time(pid: u32, more: Duration) -> [String; 5] {
    let ticks = (more.as_secs_f64() * rustix::param::clock_ticks_per_second() as f64).ceil();
    // The name, field 2, may contain anything. utime and stime are fields 14 and 15.
    let script = format!(
        "ticks() {{ sed 's/.*) //' /proc/{pid}/stat | {{ read -r $(seq -f f%g 3 13) utime stime rest; \
         echo $((utime + stime)); }}; }}; end=$(($(ticks) + {ticks})); while [ $(ticks) -lt $end ]; do sleep 0.01; done"
    );
    ["--", "sh", "-c", &format!("{script}; echo printed; exit $0"), "3"].map(str::to_owned)
}

/// Waits until a recorder's counters count and its signal handlers are installed, or until it exits.
pub fn wait_until_recording(recorder: &mut Child) {
    // It creates the file descriptor that it waits with after all others.
    let files = format!("/proc/{}/fd", recorder.id());
    let waits_for_rings = || {
        let mut files = std::fs::read_dir(&files).into_iter().flatten().flatten();
        files.any(|file| std::fs::read_link(file.path()).is_ok_and(|link| link.ends_with("anon_inode:[eventpoll]")))
    };
    let pid = recorder.id();
    let catches = |signals: [i32; 4]| signals.iter().all(|signal| Status::read(pid).catches(*signal));
    let ends = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];
    let is_ready = || waits_for_rings() && catches(ends);
    assert!(eventually(|| is_ready() || recorder.try_wait().unwrap().is_some()), "the recorder does not start");
}

/// A folded profile.
#[derive(Debug)]
pub struct Profile(pub Vec<Stack>);

#[derive(Clone, Debug)]
pub struct Stack {
    /// Root first. Of a recording, the first frame is the thread's name.
    pub frames: Vec<String>,
    pub weight: u64,
}

impl Stack {
    /// True if the stack contains these frames in this order, with or without others between them.
    pub fn contains(&self, frames: &[&str]) -> bool {
        let mut rest = self.frames.iter();
        frames.iter().all(|frame| rest.any(|own| own == frame))
    }

    pub fn thread(&self) -> &str {
        &self.frames[0]
    }

    pub fn leaf(&self) -> &str {
        self.frames.last().unwrap()
    }
}

impl Profile {
    /// Parses standard output, all lines of which must be folded stacks.
    #[track_caller]
    pub fn from_stdout(outcome: &Outcome) -> Self {
        Self::parse(&outcome.stdout)
    }

    #[track_caller]
    pub fn parse(folded: &[u8]) -> Self {
        let parse_line = |line: &str| {
            let (frames, weight) = line.rsplit_once(' ')?;
            Some(Stack { frames: frames.split(';').map(str::to_owned).collect(), weight: weight.parse().ok()? })
        };
        let text = String::from_utf8_lossy(folded);
        Self(
            text.lines().map(|line| parse_line(line).unwrap_or_else(|| panic!("not a folded stack: {line}"))).collect(),
        )
    }

    pub fn total(&self) -> u64 {
        self.0.iter().map(|stack| stack.weight).sum()
    }

    /// Returns the weight of the stacks that contain these frames in this order.
    pub fn weight(&self, frames: &[&str]) -> u64 {
        self.0.iter().filter(|stack| stack.contains(frames)).map(|stack| stack.weight).sum()
    }

    /// Returns the weight of all stacks of threads with this name.
    pub fn thread_weight(&self, name: &str) -> u64 {
        self.0.iter().filter(|stack| stack.thread() == name).map(|stack| stack.weight).sum()
    }

    /// Returns the share of the total weight that [`weight`](Self::weight) is.
    pub fn share(&self, frames: &[&str]) -> f64 {
        self.weight(frames) as f64 / self.total().max(1) as f64
    }

    /// Asserts that some stack contains these frames in this order.
    #[track_caller]
    pub fn assert_contains(&self, frames: &[&str]) {
        assert!(self.weight(frames) > 0, "no stack contains {frames:?} of {}", self.heaviest());
    }

    /// Asserts that no stack contains these frames in this order.
    #[track_caller]
    pub fn assert_lacks(&self, frames: &[&str]) {
        assert!(self.weight(frames) == 0, "a stack contains {frames:?} of {}", self.heaviest());
    }

    /// Checks that stacks with these frames have at least this share of the total weight.
    pub fn check_share(&self, frames: &[&str], least: f64) -> Check {
        let share = self.share(frames);
        ensure!(share >= least, "{frames:?} have {share:.3} instead of {least} of {}", self.heaviest());
        Ok(())
    }

    /// Lists the heaviest stacks, for a message.
    fn heaviest(&self) -> String {
        let mut stacks: Vec<_> = self.0.iter().map(|stack| (stack.weight, stack.frames.join(";"))).collect();
        stacks.sort_unstable_by(|a, b| b.cmp(a));
        let listed = stacks.iter().take(20).map(|(weight, stack)| format!("\n{weight} {stack}"));
        format!("{}:{}", self.total(), listed.collect::<String>())
    }
}
