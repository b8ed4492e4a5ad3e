//! Starting recordings, and asking profiles what is in them.

use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use crate::support::{Outcome, end_bounded, eventually, run, run_bounded, skip, tool};

/// What the kernel says to a recording, if it refuses.
static REFUSAL: LazyLock<Option<String>> = LazyLock::new(|| {
    let probe = run("fg-record", ["--", "true"], b"");
    (!probe.status.success()).then_some(probe.stderr)
});

/// Whether this machine lets us record. Tests skip where it does not.
pub fn may_record() -> bool {
    if let Some(refusal) = &*REFUSAL {
        skip(&format!("fg-record cannot record here: {}", refusal.trim()));
    }
    REFUSAL.is_none()
}

/// fg-record with all streams at hand.
pub fn recorder<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(tool("fg-record"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Records to the end.
pub fn record<const N: usize>(arguments: [&str; N]) -> Outcome {
    run_bounded(&mut recorder(arguments))
}

/// A program that a test started and that goes when the test ends.
pub struct Background(Child);

impl Background {
    pub fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// A process that already sleeps, and will for longer than a test lasts.
    pub fn sleeping() -> Self {
        let process = Self::start(Command::new("sleep").arg("60"));
        let stat = format!("/proc/{}/stat", process.pid());
        assert!(eventually(|| std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains("(sleep) S "))));
        process
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// The time it has spent on CPUs.
    pub fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        // Behind its name, which may be anything.
        let ticks = stat.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    pub fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to a child that has not been waited for.
#[allow(unsafe_code)]
pub fn send(child: &Child, signal: i32) {
    // SAFETY: the child has not been waited for, so the number is still its own.
    assert_eq!(unsafe { libc::kill(child.id().try_into().unwrap(), signal) }, 0);
}

/// The end of a recording that was started.
pub fn end(child: Child) -> Outcome {
    end_bounded(child, "fg-record")
}

/// A folded profile.
#[derive(Debug)]
pub struct Folded(pub Vec<(Vec<String>, u64)>);

impl Folded {
    /// Of a recording's standard output, all of whose lines must be folded stacks.
    #[track_caller]
    pub fn of(outcome: &Outcome) -> Self {
        Self::parse(&outcome.stdout)
    }

    #[track_caller]
    pub fn parse(bytes: &[u8]) -> Self {
        let stack = |line: &str| {
            let (stack, weight) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no folded stack: {line}"));
            let weight = weight.parse().unwrap_or_else(|_| panic!("no folded stack: {line}"));
            (stack.split(';').map(str::to_owned).collect(), weight)
        };
        Self(String::from_utf8_lossy(bytes).lines().map(stack).collect())
    }

    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, weight)| weight).sum()
    }

    /// The share of the whole that stands in stacks with these frames, in this order, others between them or not.
    pub fn share(&self, frames: &[&str]) -> f64 {
        let has = |stack: &[String]| {
            let mut stack = stack.iter();
            frames.iter().all(|frame| stack.any(|there| there == frame))
        };
        let part: u64 = self.0.iter().filter(|(stack, _)| has(stack)).map(|(_, weight)| weight).sum();
        part as f64 / self.total().max(1) as f64
    }

    /// Fails unless stacks with these frames are at least that share of the whole.
    #[track_caller]
    pub fn assert_share(&self, frames: &[&str], least: f64) {
        let share = self.share(frames);
        assert!(share >= least, "{frames:?} are {share:.2} and not {least} of {}", self.heaviest());
    }

    /// The heaviest stacks, for a message.
    fn heaviest(&self) -> String {
        let mut stacks: Vec<_> = self.0.iter().map(|(stack, weight)| (*weight, stack.join(";"))).collect();
        stacks.sort_unstable_by(|a, b| b.cmp(a));
        stacks
            .iter()
            .take(20)
            .fold(format!("{}:", self.total()), |text, (weight, stack)| format!("{text}\n{weight} {stack}"))
    }
}
