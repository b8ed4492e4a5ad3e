//! The share of what the target used that samples cover.

use super::bpf::OwnTime;
use super::counters::sampling::{Rate, SampledEvent};
use super::observer::FinishedRecording;
use super::usage::EndedCounts;

/// Below this share the user is warned.
const ENOUGH: f64 = 0.9;

/// From this share on, the time that taking stacks took is mentioned.
const MENTIONED_OWN: f64 = 0.01;

/// The time in nanoseconds of a tick of the kernel's timer, at most.
const TICK: f64 = 1e7;

/// The events that samples represent, compared with those that happened. CPU time is in nanoseconds, other events
/// are counted.
#[derive(Clone, Copy, Debug)]
pub struct Coverage<'a> {
    event: &'a SampledEvent,
    /// True if other events were sampled too.
    is_one_of_several: bool,
    code: Code,
    /// The amount that one sample represents.
    sample: f64,
    /// The amount that the samples represent, without lost ones.
    sampled: f64,
    /// The amount that the lost samples represent.
    lost: f64,
    /// The time that taking stacks took, whose samples were left out.
    own: f64,
    used: f64,
    /// The processes or threads that have ended, and of how many `used` lacks the CPU time.
    ended: EndedCounts,
}

/// The code whose CPU time, or events, the samples are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    All,
    User,
    Kernel,
    /// Only user code or only the kernel was sampled, but only the CPU time of both is known.
    UnknownPart,
}

impl<'a> Coverage<'a> {
    /// Compares the samples of a recording with the usage. If there are several events, returns the lowest coverage;
    /// `None` if none is known.
    pub fn new(finished: &'a FinishedRecording) -> Option<Self> {
        // The time of each state is exact.
        if finished.totals.is_some() {
            return None;
        }
        let coverages = (0..finished.events.len()).filter_map(|index| Self::of_event(finished, index));
        coverages.min_by(|one, other| one.share().total_cmp(&other.share()))
    }

    fn of_event(finished: &'a FinishedRecording, index: usize) -> Option<Self> {
        let event = &finished.events[index];
        let (code, used) = match event.spec.is_clock() {
            true => used_time(finished, event)?,
            false if event.spec.is_hardware() => (Code::All, finished.usage.event_counts.as_ref()?[index]),
            false => return None,
        };
        let tally = finished.recording.total(index as u32);
        let sample = match (tally.samples, event.rate) {
            (0, Rate::Period(period)) => period as f64,
            (0, Rate::Frequency(hertz)) => 1e9 / hertz as f64,
            (samples, _) => tally.period as f64 / samples as f64,
        };
        let lost = finished.recording.counts.lost as f64 * sample;
        let OwnTime { time, left_out } = finished.usage.own_time;
        let own = if event.spec.is_clock() && left_out > 0 { time } else { 0 };
        Some(Self {
            event,
            is_one_of_several: finished.events.len() > 1,
            code,
            sample,
            sampled: tally.period as f64,
            lost,
            own: own as f64,
            used: used as f64,
            ended: finished.usage.cpu_time.filter(|_| event.spec.is_clock()).map(|time| time.ended).unwrap_or_default(),
        })
    }

    /// Returns what one sample represents.
    pub fn sample(&self) -> f64 {
        self.sample
    }

    /// Returns the CPU time in nanoseconds that was used. `None` if other events were counted.
    pub fn used_time(&self) -> Option<f64> {
        self.event.spec.is_clock().then_some(self.used)
    }

    /// Returns what was used and not sampled, nor lost or left out.
    pub fn missing(&self) -> f64 {
        self.used - self.sampled - self.lost - self.own
    }

    /// True if only the CPU time of user code and the kernel together is known, but only one of them was sampled.
    pub fn is_of_unknown_part(&self) -> bool {
        self.code == Code::UnknownPart
    }

    /// True if much more than chance is missing.
    pub fn is_low(&self) -> bool {
        // Samples that are independent of each other scatter like this. Those of one thread scatter less.
        let mut variance = self.used * self.sample;
        if self.code != Code::All {
            variance += self.used * TICK;
        }
        !self.is_of_unknown_part()
            && self.missing() > (1.0 - ENOUGH) * self.used
            && self.missing() > 2.0 * variance.sqrt()
    }

    fn share(&self) -> f64 {
        self.sampled / self.used
    }

    /// Describes the coverage; `None` if nothing was used.
    pub fn describe(&self) -> Option<String> {
        if self.used <= 0.0 {
            return None;
        }
        let name = self.event.spec.name();
        let samples = match self.is_one_of_several {
            true => format!("samples of {name}"),
            false => "samples".to_owned(),
        };
        let used = match self.used_time() {
            Some(nanoseconds) => format!("{} CPU time", seconds(nanoseconds)),
            None => format!("all {name}"),
        };
        let part = match self.code {
            Code::All => "",
            Code::User => " in user space",
            Code::Kernel => " in the kernel",
            Code::UnknownPart if self.event.spec.excluded.user => ", sampled only in the kernel",
            Code::UnknownPart => ", sampled only in user space",
        };
        let unknown = match self.ended {
            EndedCounts { unknown: 0, .. } => String::new(),
            EndedCounts { unknown, all } => format!(" (that of {unknown} of {all} that ended is not known)"),
        };
        let own = match self.own >= MENTIONED_OWN * self.used {
            true => format!(", taking them took {}", seconds(self.own)),
            false => String::new(),
        };
        Some(format!("{samples} cover {} of {used}{part}{own}{unknown}", percent(self.share())))
    }
}

/// Returns the CPU time of the code in which an event is sampled.
fn used_time(finished: &FinishedRecording, event: &SampledEvent) -> Option<(Code, u64)> {
    let time = finished.usage.cpu_time?;
    let (excludes_user, excludes_kernel) =
        (event.spec.excluded.user, event.spec.excluded.kernel || finished.usage.excludes_kernel);
    Some(match time.user {
        _ if !excludes_user && !excludes_kernel => (Code::All, time.total),
        None => (Code::UnknownPart, time.total),
        Some(user) if excludes_kernel => (Code::User, user),
        Some(user) => (Code::Kernel, time.total.saturating_sub(user)),
    })
}

/// Formats a share with as many digits as it is worth.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// Formats nanoseconds with three digits.
pub fn seconds(nanoseconds: f64) -> String {
    match nanoseconds / 1e9 {
        seconds if seconds >= 99.95 => format!("{seconds:.0} s"),
        seconds if seconds >= 9.995 => format!("{seconds:.1} s"),
        seconds if seconds >= 0.9995 => format!("{seconds:.2} s"),
        seconds if seconds >= 0.009_95 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{:.2} ms", seconds * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, Coverage, EndedCounts, seconds};
    use crate::record::counters::sampling::{Rate, SampledEvent};
    use crate::record::events::spec::EventSpec;

    /// Returns the coverage of `samples` samples of a millisecond each.
    fn coverage(event: &SampledEvent, samples: u32, lost: u32, used_ms: u32) -> Coverage<'_> {
        let [sampled, lost, used] = [samples, lost, used_ms].map(|ms| f64::from(ms) * 1e6);
        let ended = EndedCounts::default();
        Coverage { event, is_one_of_several: false, code: Code::All, sample: 1e6, sampled, lost, own: 0.0, used, ended }
    }

    fn clock() -> SampledEvent {
        SampledEvent { spec: EventSpec::cpu_clock(), rate: Rate::Frequency(1000) }
    }

    #[test]
    fn describes_the_share_of_the_cpu_time() {
        let event = clock();
        assert_eq!(coverage(&event, 12_152, 0, 12_400).describe().unwrap(), "samples cover 98 % of 12.4 s CPU time");
        assert_eq!(coverage(&event, 11, 900, 1050).describe().unwrap(), "samples cover 1.0 % of 1.05 s CPU time");
        let of_user = Coverage { code: Code::User, is_one_of_several: true, ..coverage(&event, 50, 0, 50) };
        assert_eq!(of_user.describe().unwrap(), "samples of cpu-clock cover 100 % of 50 ms CPU time in user space");
        let of_part = Coverage { code: Code::UnknownPart, ..coverage(&event, 50, 0, 100) };
        assert_eq!(of_part.describe().unwrap(), "samples cover 50 % of 100 ms CPU time, sampled only in user space");
        let with_ended = Coverage { ended: EndedCounts { all: 300, unknown: 2 }, ..coverage(&event, 99, 0, 100) };
        let text = "samples cover 99 % of 100 ms CPU time (that of 2 of 300 that ended is not known)";
        assert_eq!(with_ended.describe().unwrap(), text);
        let with_own = Coverage { own: 36e6, ..coverage(&event, 64, 0, 100) };
        let text = "samples cover 64 % of 100 ms CPU time, taking them took 36 ms";
        assert_eq!(with_own.describe().unwrap(), text);
        assert!(!with_own.is_low());
        let cycles = SampledEvent { spec: EventSpec::cycles(), rate: Rate::Frequency(1000) };
        assert_eq!(coverage(&cycles, 97, 0, 100).describe().unwrap(), "samples cover 97 % of all cycles");
        assert!(coverage(&event, 0, 0, 0).describe().is_none());
    }

    #[test]
    fn is_low_if_more_than_chance_is_missing() {
        let event = clock();
        assert!(!coverage(&event, 9001, 0, 10_000).is_low());
        assert!(coverage(&event, 8999, 0, 10_000).is_low());
        // 20 expected samples scatter by 4.5.
        assert!(!coverage(&event, 12, 0, 20).is_low());
        assert!(coverage(&event, 10, 0, 20).is_low());
        assert!(!coverage(&event, 0, 0, 4).is_low());
        // Lost samples have a warning of their own.
        assert!(!coverage(&event, 500, 450, 1000).is_low());
        // The ticks that tell user space from the kernel scatter too: 1 s has 100.
        let of_user = |samples| Coverage { code: Code::User, ..coverage(&event, samples, 0, 1000) };
        assert!(!of_user(800).is_low());
        assert!(of_user(780).is_low());
        assert!(!Coverage { code: Code::UnknownPart, ..of_user(1) }.is_low());
    }

    #[test]
    fn formats_times_with_three_digits() {
        let texts = [0.0, 420_000.0, 17e6, 1.234e9, 12.36e9, 1234e9].map(seconds);
        assert_eq!(texts, ["0.00 ms", "0.42 ms", "17 ms", "1.23 s", "12.4 s", "1234 s"]);
    }
}
