//! A recording as a user has it: its progress on a terminal, its parts printed while it goes on, and its end.

use std::path::{Path, PathBuf};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::report::{self, Report, Said};
use super::{Audience, Recorded, Request, RequestTarget};
use crate::Error;
use crate::cli::Session;
use crate::diagnostics::{Diagnostics, plural};
use crate::output::Output;
use crate::parallel;
use crate::perf::recording::Counts;

/// Records, prints, and passes on how the command ended. With a `pattern` what is printed goes to files, a file for each
/// event and time.
///
/// # Errors
/// Those of recording and of writing.
pub fn run(request: Request, report: Report, pattern: Option<PathBuf>, session: &mut Session) -> Result<u8, Error> {
    let printer = Printer { report, pattern };
    if printer.pattern.is_some() {
        // Whether files can be written there is known before anything runs; this one is not to appear.
        Output::create(Some(&printer.file("all", now())))?;
    }
    let (mut recorded, printed) = std::thread::scope(|scope| {
        let diagnostics = &mut session.diagnostics;
        // Not beside a command, which has the terminal to itself.
        let watches = !matches!(request.target, RequestTarget::Command { .. }) && diagnostics.shows_progress();
        let mut listener = Listener { watches, diagnostics, printer: &printer, scope, printing: None };
        let recorded = super::record(request, &mut listener)?;
        listener.finish()?;
        for note in &recorded.notes {
            listener.diagnostics.warn(note);
        }
        let (said, printed) = printer.print(&recorded, Some(&mut session.output));
        tell(said, listener.diagnostics);
        Ok::<_, Error>((recorded, printed))
    })?;
    let status = recorded.command.as_mut().map_or(Ok(0), |command| command.wait())?;
    match printed {
        // Whoever read our output has gone; the command's own end still counts.
        Err(error) if error.is_broken_pipe() => Ok(status),
        result => result.map(|()| status),
    }
}

/// Prints recordings and parts of them.
struct Printer {
    report: Report,
    /// The files' names, where there are several.
    pattern: Option<PathBuf>,
}

impl Printer {
    fn print(&self, recorded: &Recorded, mut output: Option<&mut Output>) -> (Said, Result<(), Error>) {
        let time = recorded.began;
        self.report.print(recorded, |event, write| match (&self.pattern, &mut output) {
            (None, Some(output)) => write(output),
            _ => write(&mut Output::create(Some(&self.file(event, time)))?),
        })
    }

    fn file(&self, event: &str, time: u64) -> PathBuf {
        report::file(self.pattern.as_deref().unwrap_or(Path::new("%e-%t")), event, time)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn tell(said: Said, diagnostics: &mut Diagnostics) {
    said.lines.iter().for_each(|line| diagnostics.warn(line));
    diagnostics.note(&said.note);
}

/// Shows how far the recording is, and prints its parts beside it.
struct Listener<'scope, 'env> {
    watches: bool,
    diagnostics: &'env mut Diagnostics,
    printer: &'env Printer,
    scope: &'scope Scope<'scope, 'env>,
    printing: Option<ScopedJoinHandle<'scope, (Said, Result<(), Error>)>>,
}

impl Listener<'_, '_> {
    /// Waits until the last part is printed.
    fn finish(&mut self) -> Result<(), Error> {
        let Some(printing) = self.printing.take() else { return Ok(()) };
        let (said, result) = printing.join().map_err(|_| Error::AlreadyReported)?;
        tell(said, self.diagnostics);
        result
    }
}

impl Audience for Listener<'_, '_> {
    fn watches(&self) -> bool {
        self.watches
    }

    fn so_far(&mut self, elapsed: Duration, counts: &Counts) {
        let (seconds, samples) = (elapsed.as_secs(), plural(counts.samples, "sample"));
        self.diagnostics.show_progress(|| format!("{seconds} s, {samples}, {} lost", counts.lost));
    }

    fn part(&mut self, part: Recorded) -> Result<(), Error> {
        self.finish()?;
        part.notes.iter().for_each(|note| self.diagnostics.warn(note));
        let printer = self.printer;
        self.printing = Some(parallel::spawn_scoped(self.scope, move || printer.print(&part, None))?);
        Ok(())
    }
}
