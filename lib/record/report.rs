//! Printing a recording, or a part of one: to one output, or to a file for each event and time.

use std::path::{Path, PathBuf};

use super::Recorded;
use super::clock;
use super::counters::sampling::CallGraph;
use super::summary;
use crate::output::Output;
use crate::perf::export::perf_script;
use crate::perf::export::perf_script::Clock;
use crate::perf::export::profile::Unknown;
use crate::perf::symbols::frame::SymbolizeOptions;
use crate::perf::symbols::symbolize::symbolize;
use crate::profile::SampleWeight;
use crate::{Error, folded};

/// How a recording is printed.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whether each sample is printed, as `perf script` does.
    pub script: bool,
    /// By which clock.
    pub clock: Clock,
    /// What is wanted of names.
    pub names: SymbolizeOptions,
    /// What a stack weighs.
    pub weight: SampleWeight,
    /// How stacks were found.
    pub call_graph: CallGraph,
}

/// What a recording has to say of itself.
#[derive(Debug, Default)]
pub struct Said {
    /// To everybody.
    pub lines: Vec<String>,
    /// To those who ask for more.
    pub note: String,
}

impl Report {
    /// Prints everything, each event's profile to the output that `open` gives for its number. The outputs are closed, so
    /// that whoever reads them can go on even if the command still runs.
    pub fn print(
        &self,
        recorded: &Recorded,
        mut print: impl FnMut(&str, &mut dyn FnMut(&mut Output) -> Result<(), Error>) -> Result<(), Error>,
    ) -> (Said, Result<(), Error>) {
        let recording = &recorded.recording;
        let names = symbolize(&recording.objects, recording.locations(), &self.names);
        let events: Vec<&str> = recorded.metrics.iter().map(|(metric, _)| metric.name()).collect();
        let mut unknown = Unknown::default();
        let mut result = Ok(());
        for (number, event) in events.iter().enumerate().take(recorded.profiles()) {
            let printed = recording.profile(number as u32, &names).and_then(|(profile, of_event)| {
                unknown.add(of_event);
                let mut write = |output: &mut Output| {
                    output.write_with(|mut out| folded::write(&profile, &mut out))?;
                    output.close()
                };
                if self.script { Ok(()) } else { print(event, &mut write) }
            });
            result = result.and(printed);
        }
        if self.script {
            let mut write = |output: &mut Output| {
                let ahead = clock::offset_from_monotonic(self.clock);
                output.write_with(|mut out| {
                    perf_script::write(recording, &names, &events, self.weight, ahead, &mut out)
                })?;
                output.close()
            };
            result = result.and(print("all", &mut write));
        }
        let mut lines = names.warnings().to_vec();
        lines.extend(summary::lines(recorded, self.call_graph, unknown));
        (Said { lines, note: summary::cuts(recorded) }, result)
    }
}

/// The signs in a file's name that stand for the time and the event.
const TIME: &str = "%t";
const EVENT: &str = "%e";

/// Whether a file's name stands for several, a file a time.
pub fn names_times(path: &Path) -> bool {
    path.to_string_lossy().contains(TIME)
}

/// Whether a file's name stands for several, a file an event.
pub fn names_events(path: &Path) -> bool {
    path.to_string_lossy().contains(EVENT)
}

/// The file for an event at a time, in seconds since 1970.
pub fn file(pattern: &Path, event: &str, time: u64) -> PathBuf {
    let event: String = event.chars().map(|sign| if sign == '/' || sign == ':' { '-' } else { sign }).collect();
    PathBuf::from(pattern.to_string_lossy().replace(EVENT, &event).replace(TIME, &stamp(time)))
}

/// `20261121T025700Z`: sorts by time.
fn stamp(time: u64) -> String {
    let (days, seconds) = (time / 86400, time % 86400);
    // Years of 400 have the same days; counted from March, leap days come last.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{file, stamp};

    #[test]
    fn times_are_those_of_the_calendar() {
        for (time, text) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_709_251_200, "20240301T000000Z"),
            (4_102_444_799, "20991231T235959Z"),
        ] {
            assert_eq!(stamp(time), text);
        }
    }

    #[test]
    fn a_file_is_named_by_event_and_time() {
        let path = file(Path::new("a/%e-%t.folded"), "sched:sched_switch", 0);
        assert_eq!(path, Path::new("a/sched-sched_switch-19700101T000000Z.folded"));
    }
}
