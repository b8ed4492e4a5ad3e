//! Runs a recording for the command line: shows its progress, prints its parts while it goes on, and its end.

use std::path::{Path, PathBuf};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::observer::{FinishedRecording, Observer};
use super::report::{ALL_EVENTS, Report, Summary};
use super::request::{Request, RequestTarget};
use super::{output_pattern, recorder};
use crate::diagnostics::{Diagnostics, plural};
use crate::output::Output;
use crate::perf::recording::Counts;
use crate::{Error, parallel};

/// The output of a recording.
pub enum Destination<'a> {
    /// A single output.
    Output(&'a mut Output),
    /// A file for each event and time: see [`output_pattern`].
    Pattern(PathBuf),
}

/// Records and prints. Returns the exit status of the command, or 0 if there is none.
///
/// # Errors
/// Errors of recording and of writing.
pub fn run(
    request: &Request,
    report: &Report,
    destination: Destination<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<u8, Error> {
    let (output, pattern) = match destination {
        Destination::Output(output) => (Some(output), None),
        Destination::Pattern(pattern) => (None, Some(pattern)),
    };
    let printer = Printer { report, pattern };
    if let Some(pattern) = &printer.pattern {
        // Fails now if files cannot be created there, before anything runs. Dropped unclosed, this one does not appear.
        Output::create(Some(&output_pattern::expand(pattern, ALL_EVENTS, now())))?;
    }
    let (mut finished, printed) = std::thread::scope(|scope| {
        // Not beside a command, which has the terminal to itself.
        let has_command = matches!(request.target, RequestTarget::Command(_)) || request.workload.is_some();
        let wants_progress = !has_command && diagnostics.shows_progress();
        let goes_on = request.ring.is_some();
        let mut observer =
            PrintingObserver { wants_progress, diagnostics, printer: &printer, scope, goes_on, printing: None };
        let mut finished = recorder::record(request, &mut observer)?;
        observer.finish_printing()?;
        for note in &finished.notes {
            observer.diagnostics.warn(note);
        }
        if let Some(reason) = finished.missed.take() {
            if printer.pattern.is_none() || !goes_on {
                // Who reads the output must see that it is empty for a reason.
                return Ok((finished, Err(Error::System(reason))));
            }
            observer.diagnostics.warn(&reason);
            return Ok((finished, Ok(())));
        }
        let (summary, printed) = printer.print(&finished, output);
        show_summary(&summary, observer.diagnostics);
        if let Some(path) = &report.summary_file {
            write_summary(path, &finished, &summary)?;
        }
        Ok::<_, Error>((finished, printed))
    })?;
    let status = finished.command.as_mut().map_or(Ok(0), |command| command.wait())?;
    match printed {
        // The reader of our output has exited. The command's exit status still counts.
        Err(error) if error.is_broken_pipe() => Ok(status),
        result => result.map(|()| status),
    }
}

/// Prints recordings and parts of them.
struct Printer<'a> {
    report: &'a Report,
    /// The pattern of the files' names, unless there is one output.
    pattern: Option<PathBuf>,
}

impl Printer<'_> {
    fn print(&self, finished: &FinishedRecording, mut output: Option<&mut Output>) -> (Summary, Result<(), Error>) {
        self.report.print(finished, |event, write| match (&self.pattern, &mut output) {
            (Some(pattern), _) => {
                write(&mut Output::create(Some(&output_pattern::expand(pattern, event, finished.file_time)))?)
            }
            (None, Some(output)) => write(output),
            (None, None) => Err(Error::Usage("--interval needs -o with a %t in the file's name".to_owned())),
        })
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Writes the summary for programs.
fn write_summary(path: &Path, finished: &FinishedRecording, summary: &Summary) -> Result<(), Error> {
    let warnings: Vec<&String> = finished.notes.iter().chain(&summary.warnings).collect();
    let json = serde_json::json!({ "elapsed_seconds": finished.elapsed.as_secs_f64(), "warnings": warnings });
    std::fs::write(path, json.to_string()).map_err(|error| Error::write(path.display().to_string(), error))
}

fn show_summary(summary: &Summary, diagnostics: &mut Diagnostics) {
    summary.lines.iter().for_each(|line| diagnostics.warn(line));
    summary.details.iter().for_each(|line| diagnostics.note(line));
}

/// Shows the progress of a recording, and prints its parts in a thread beside it.
struct PrintingObserver<'scope, 'env> {
    wants_progress: bool,
    diagnostics: &'env mut Diagnostics,
    printer: &'env Printer<'env>,
    scope: &'scope Scope<'scope, 'env>,
    /// True if the recording goes on when a part cannot be written.
    goes_on: bool,
    /// The thread that prints the previous part.
    printing: Option<ScopedJoinHandle<'scope, (Summary, Result<(), Error>)>>,
}

impl PrintingObserver<'_, '_> {
    /// Waits until the previous part is printed.
    fn finish_printing(&mut self) -> Result<(), Error> {
        let Some(printing) = self.printing.take() else { return Ok(()) };
        let (summary, result) = printing.join().map_err(|_| Error::AlreadyReported)?;
        show_summary(&summary, self.diagnostics);
        match result {
            // There may be room on the disk the next time.
            Err(error) if self.goes_on => {
                self.diagnostics.fail(&error);
                Ok(())
            }
            result => result,
        }
    }
}

impl Observer for PrintingObserver<'_, '_> {
    fn wants_progress(&self) -> bool {
        self.wants_progress
    }

    fn on_progress(&mut self, elapsed: Duration, counts: &Counts) {
        let (seconds, samples) = (elapsed.as_secs(), plural(counts.samples, "sample"));
        self.diagnostics.show_progress(|| format!("{seconds} s, {samples}, {} lost", counts.lost));
    }

    fn on_wait(&mut self) -> Result<(), Error> {
        if self.printing.as_ref().is_some_and(ScopedJoinHandle::is_finished) { self.finish_printing() } else { Ok(()) }
    }

    fn on_part(&mut self, part: FinishedRecording) -> Result<(), Error> {
        self.finish_printing()?;
        part.notes.iter().for_each(|note| self.diagnostics.warn(note));
        let printer = self.printer;
        self.printing = Some(parallel::spawn_scoped(self.scope, move || printer.print(&part, None))?);
        Ok(())
    }
}
