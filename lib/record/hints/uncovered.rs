//! Hints at what keeps samples from covering the CPU time.

use super::Hints;
use crate::diagnostics::plural;
use crate::record::coverage::{Coverage, seconds};

/// The CPU time in nanoseconds without samples that each sleep of a thread explains at most: the kernel's work for it, and what the
/// thread runs up to the next sample.
const MAX_UNSAMPLED: f64 = 1e6;

/// The largest part of the CPU time that is used for taking stacks without a hint.
const MAX_OWN_TIME: f64 = 0.1;

/// The largest part of the elapsed time that is used for it without a hint, if what threads wait for is recorded: programs that mostly
/// wait use little CPU time.
const MAX_OWN_PART: f64 = 0.01;

/// The part up to which leaving out the samples that fall to it makes shares right. Beyond it, the timers of a CPU are hardly
/// independent of each other, and the kernel delays them: at 48 %, half of the time was measured as 52 %, at 60 % as 59 %, and with stacks
/// that take longer than the period of a timer as 24 %.
const MAX_LEFT_OUT: f64 = 1.0 / 3.0;

impl Hints<'_> {
    /// Returns the reason why CPU time was not sampled, if much was not, or if taking stacks took much of it.
    pub(super) fn low_coverage(&self) -> Option<String> {
        let Some(coverage) = self.coverage else { return self.cost_of_stacks() };
        // Throttling has a hint of its own.
        let skipped = self.counts().skipped;
        let is_low = coverage.is_low() && self.counts().samples > 0 && self.counts().throttled == 0;
        if is_low && skipped > 0 {
            let samples = plural(skipped, "sample");
            return Some(format!("--max-overhead left {samples} out: shares may be wrong; raise it"));
        }
        if let Some(hint) = self.cost_of_stacks().or_else(|| self.short_threads(&coverage)) {
            return Some(hint);
        }
        is_low.then(|| match coverage.used_time() {
            Some(_) => {
                let missing = seconds(coverage.missing());
                self.cost_of_sleeps(&coverage)
                    .unwrap_or_else(|| format!("{missing} of CPU time has no samples: shares may be wrong"))
            }
            None => "many events were counted, but not sampled: shares may be wrong".to_owned(),
        })
    }

    /// Returns a hint if taking stacks took much of the CPU time. Deep ones take longest, and events of the hardware go on meanwhile, as
    /// the samples of several clocks do.
    fn cost_of_stacks(&self) -> Option<String> {
        let usage = &self.finished.usage;
        let share = usage.own_time.time as f64 / usage.cpu_time?.total.max(1) as f64;
        let events = &self.finished.events;
        let are_several = events.iter().filter(|event| event.spec.is_clock()).count() > 1;
        let is_biased = are_several || events.iter().any(|event| event.spec.is_hardware());
        let effect = match share < MAX_LEFT_OUT && !is_biased {
            true => "the program ran that much longer",
            false if is_biased => "what calls deeply may have too large a share",
            false => "shares may be wrong",
        };
        let help = match events.iter().any(|event| event.rate.period().is_none()) {
            true => "lower -F",
            false => self.reduce_samples(),
        };
        let part = usage.own_time.time as f64 / self.finished.elapsed.as_nanos().max(1) as f64;
        (share > MAX_OWN_TIME && (self.finished.totals.is_none() || part > MAX_OWN_PART))
            .then(|| format!("taking stacks took {:.0} % of the CPU time: {effect}; {help}", share * 100.0))
    }

    /// Returns a hint if threads went to sleep so often that this is why CPU time has no samples. The kernel switches threads with
    /// interrupts disabled, so clocks cannot sample that. And where clocks are sampled on CPUs, their timers wake threads (see
    /// `counters/clock_parts.rs`), and only if no other sample is due until the thread's sleep is over.
    fn cost_of_sleeps(&self, coverage: &Coverage<'_>) -> Option<String> {
        let usage = &self.finished.usage;
        let sleeps = usage.sleeps.filter(|sleeps| *sleeps as f64 * MAX_UNSAMPLED > coverage.missing())?;
        let missing = seconds(coverage.missing());
        Some(match usage.is_per_thread {
            true => format!(
                "{missing} of CPU time has no samples: threads slept {sleeps} times, and clocks sample little of what the kernel does \
                 for it: shares may be wrong"
            ),
            false => format!(
                "{missing} of CPU time has no samples: threads slept {sleeps} times, and what they do right after it is sampled \
                 too little: shares may be wrong; compare with -F 997 --call-graph dwarf,65528"
            ),
        })
    }

    /// Returns a hint if the threads are too short for counters of their own: each waits for a whole period before its
    /// first sample.
    fn short_threads(&self, coverage: &Coverage<'_>) -> Option<String> {
        let usage = &self.finished.usage;
        let time = usage.cpu_time.filter(|_| usage.is_per_thread && coverage.used_time().is_some())?.total as f64;
        // The first thread of a command is not among those that already ran.
        let threads = usage.existing_threads.max(1) as u64 + self.counts().new_threads;
        let each = time / threads as f64;
        let is_cause = match coverage.is_of_unknown_part() {
            true => each < coverage.sample(),
            // Half a period of each thread is missing on average.
            false => coverage.is_low() && threads as f64 * coverage.sample() > coverage.missing(),
        };
        let help = match &self.finished.copy_reason {
            Some(reason) => format!("per-CPU counters sample it, but {reason}"),
            None => "as root, --call-graph dwarf without a size samples it".to_owned(),
        };
        let (each, sample) = (seconds(each), seconds(coverage.sample()));
        is_cause.then(|| {
            format!(
                "{threads} threads used {each} CPU time each: one that uses less than {sample} has no sample; {help}"
            )
        })
    }
}
