//! Prints a recording, or a part of one, as folded stacks or as `perf script` does.

use std::path::PathBuf;

use super::clock;
use super::counters::sampling::CallGraph;
use super::observer::FinishedRecording;
use super::summary;
use crate::output::Output;
use crate::perf::export::perf_script::{self, Clock};
use crate::perf::export::profile::UnnamedFrames;
use crate::perf::symbols::frame::SymbolizeOptions;
use crate::perf::symbols::symbolize::symbolize;
use crate::profile::SampleWeight;
use crate::{Error, folded};

/// The event name of an output that contains all events.
pub const ALL_EVENTS: &str = "all";

/// Options of printing a recording.
#[derive(Clone, Debug)]
pub struct Report {
    /// True if each sample is printed, as `perf script` does. Else folded stacks are.
    pub script: bool,
    /// The clock of the printed times.
    pub clock: Clock,
    /// Options of naming frames.
    pub names: SymbolizeOptions,
    /// The weight of a sample.
    pub weight: SampleWeight,
    /// The method by which stacks were collected.
    pub call_graph: CallGraph,
    /// The file for a summary that programs read: a JSON object with the seconds and the warnings of the recording.
    pub summary_file: Option<PathBuf>,
}

/// Messages about a recording.
#[derive(Debug, Default)]
pub struct Summary {
    /// Lines that are shown unless `-q` is given.
    pub lines: Vec<String>,
    /// Lines that are shown with `-v`.
    pub details: Vec<String>,
    /// Warnings about the recording; most are among the lines.
    pub warnings: Vec<String>,
}

/// Writes to an output that [`Report::print`] asks for, and closes it.
pub type WriteOutput<'a> = &'a mut dyn FnMut(&mut Output) -> Result<(), Error>;

impl Report {
    /// Prints a recording. `with_output` is called with the name of each event, or with [`ALL_EVENTS`], and must call
    /// the function that it is given with the output for that event. The outputs are closed, so that their readers can
    /// go on even if the command still runs.
    pub fn print(
        &self,
        finished: &FinishedRecording,
        mut with_output: impl FnMut(&str, WriteOutput<'_>) -> Result<(), Error>,
    ) -> (Summary, Result<(), Error>) {
        let recording = &finished.recording;
        let names = symbolize(&recording.objects, recording.locations(), &self.names);
        let events: Vec<&str> = finished.events.iter().map(|event| event.spec.name()).collect();
        let mut unnamed = UnnamedFrames::default();
        let mut result = Ok(());
        for (index, event) in events.iter().enumerate().take(finished.profile_count()) {
            let printed = recording.to_profile(index as u32, &names).and_then(|(profile, of_event)| {
                unnamed.add(of_event);
                if self.script {
                    return Ok(());
                }
                with_output(event, &mut |output| {
                    output.write_with(|mut out| folded::write(&profile, &mut out))?;
                    output.close()
                })
            });
            result = result.and(printed);
        }
        if self.script {
            let printed = with_output(ALL_EVENTS, &mut |output| {
                let offset = clock::offset_from_monotonic(self.clock);
                output.write_with(|mut out| {
                    perf_script::write(recording, &names, &events, self.weight, offset, &mut out)
                })?;
                output.close()
            });
            result = result.and(printed);
        }
        let mut lines = names.warnings().to_vec();
        let hints = summary::hints(finished, self.call_graph, &names);
        let warnings = [&lines[..], &hints].concat();
        lines.extend(summary::lines(finished, unnamed, &hints));
        (Summary { lines, warnings, details: summary::details(finished, self.call_graph) }, result)
    }
}
