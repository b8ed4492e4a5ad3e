//! Measures runs, and writes their profiles.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::folder::RunFolder;
use super::process::{self, End};
use super::progress;
use super::watcher::Watcher;
use super::{Options, Side};
use crate::diagnostics::{Diagnostics, plural};
use crate::input::Source;
use crate::markers::MEASURED_VALUE;
use crate::output::Output;
use crate::profile::{Profile, Weight, Weights};
use crate::{Error, collapse, folded, io_error_text};

/// Most bytes of a result that may be a number.
const NUMBER: u64 = 64;

/// Largest error by which a number may be rounded, relative to it.
const LARGEST_ROUNDING: f64 = 1e-4;

/// Name of the file with fg-record's summary of a run.
const SUMMARY: &str = "summary.json";

/// The measure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Samples of fg-record, by its options.
    Samples {
        /// The program fg-record.
        program: PathBuf,
        /// The options of fg-record for each run.
        options: Vec<String>,
    },
    /// The output of a shell command that runs the command in `$FG_COMMAND`.
    Output(String),
}

/// A run of one side.
#[derive(Debug)]
pub(super) struct Run<'b> {
    pub side: Side,
    /// Number of the pair, from 1.
    pub number: u32,
    /// Time when the benchmark began.
    pub start: Instant,
    /// The state of the verdict, for the line that shows the progress.
    pub state: &'b str,
}

/// Facts about a run that its profile does not contain.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// Time from the start to the end of the command; with a measure of its own, that of the measure.
    pub elapsed: Duration,
    /// Warnings about the recording.
    pub warnings: Vec<String>,
}

/// Runs the commands of both sides and writes the profile of each run into a folder.
pub(super) struct Recorder<'a> {
    options: &'a Options,
    folder: &'a RunFolder,
    watcher: Watcher,
}

impl<'a> Recorder<'a> {
    pub fn new(options: &'a Options, folder: &'a RunFolder) -> Self {
        Self { options, folder, watcher: Watcher::start() }
    }

    /// Measures a run, writes its profile and returns what else is known; `None` if the time is over or the user has interrupted.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the run fails, has no weight or exceeds its time; [`Error::Write`].
    pub fn record(
        &self,
        run: &Run<'_>,
        is_interrupted: &dyn Fn() -> bool,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<Recorded>, Error> {
        let name = format!("{}, run {}", run.side.name(), run.number);
        self.folder.empty_scratch()?;
        let result = self.folder.scratch().join("result");
        let command = self.command(run.side, &result)?;
        let deadline = self.deadline(run);
        let start = Instant::now();
        let ended = process::run(command, &self.watcher, deadline, is_interrupted, || {
            diagnostics.show_progress(|| progress::describe(self.options, run));
        });
        let (end, stderr) =
            ended.map_err(|error| Error::System(format!("{name}: cannot run: {}", io_error_text(&error))))?;
        let elapsed = start.elapsed();
        match end {
            End::Exited(status) if status.success() => {}
            End::Exited(status) => return Err(failure(&name, &format!("the command failed ({status})"), &stderr)),
            End::Interrupted => return Ok(None),
            End::TimedOut
                if self.options.timeout.is_some_and(|most| run.start.elapsed() < self.options.max_time.max(most)) =>
            {
                return Err(failure(&name, "the command took longer than --timeout", &stderr));
            }
            End::TimedOut => {
                diagnostics.warn(&format!("{name} was ended at --max-time"));
                return Ok(None);
            }
        }
        self.finish(run, &name, &result, diagnostics)?;
        let recorded = read_summary(&self.folder.scratch().join(SUMMARY)).unwrap_or_default();
        // Without a recorder there is no better time.
        let elapsed = if recorded.elapsed.is_zero() { elapsed } else { recorded.elapsed };
        Ok(Some(Recorded { elapsed, ..recorded }))
    }

    /// Returns the time at which a run that begins now is ended.
    fn deadline(&self, run: &Run<'_>) -> Option<Instant> {
        let timeout = self.options.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let end = run.start.checked_add(self.options.max_time).filter(|_| self.options.pairs.is_none());
        timeout.into_iter().chain(end).min()
    }

    fn command(&self, side: Side, result: &Path) -> Result<Command, Error> {
        let shell_command = self.options.commands.get(side);
        match &self.options.measure {
            Measure::Samples { program, options } => {
                let mut command = Command::new(program);
                // It prints nothing then but what the command does not write: why it cannot record.
                command.arg("-q").arg("--summary-to").arg(self.folder.scratch().join(SUMMARY));
                command.args(options).arg("-o").arg(result).args(["--", "sh", "-c", shell_command]);
                command.stdout(Stdio::null());
                Ok(command)
            }
            Measure::Output(measure) => {
                let stdout = self.folder.scratch().join("stdout");
                let created =
                    File::create(&stdout).map_err(|error| Error::write(stdout.display().to_string(), error))?;
                let mut command = Command::new("sh");
                command.args(["-c", measure]).stdout(created);
                command.env("FG_COMMAND", shell_command).env("FG_FILE", result).env("FG_SIDE", side.letter());
                Ok(command)
            }
        }
    }

    /// Reads the result of a run, and writes it as folded stacks.
    fn finish(&self, run: &Run<'_>, name: &str, result: &Path, diagnostics: &mut Diagnostics) -> Result<(), Error> {
        let stdout = self.folder.scratch().join("stdout");
        let path = if is_filled(result) { result } else { &stdout };
        let profile = match read_number(path, name) {
            Some(profile) => profile?,
            None if is_filled(path) => read_profile(path, name, diagnostics)?,
            None => Profile::new(false),
        };
        if profile.total() == Weights::default() {
            let advice = match self.options.measure {
                Measure::Samples { .. } => {
                    "the command is too short, or does not do what is measured; sample more often (-F), or other events (-e)"
                }
                Measure::Output(_) => {
                    "--measure wrote nothing; it must write a profile or a number to standard output or to $FG_FILE"
                }
            };
            return Err(Error::Invalid(format!("{name}: no weight: {advice}")));
        }
        let mut output = Output::create(Some(&self.folder.profile_path(run.side, run.number)))?;
        output.write_with(|mut out| folded::write(&profile, &mut out))?;
        output.finish()
    }
}

/// Reads what fg-record knows of a run.
fn read_summary(path: &Path) -> Option<Recorded> {
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let elapsed = Duration::try_from_secs_f64(json["elapsed_seconds"].as_f64()?).ok()?;
    let warnings = json["warnings"].as_array()?.iter().filter_map(|warning| warning.as_str().map(str::to_owned));
    Some(Recorded { elapsed, warnings: warnings.collect() })
}

/// Reads the profile that a run left. Messages about it name the run, since the file is a temporary one.
fn read_profile(path: &Path, name: &str, diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let mut unseen = Diagnostics::silent();
    let read = collapse::collapse(&[Source::File(path.to_owned())], &collapse::Options::default(), &mut unseen);
    let profile = read.map_err(|_| {
        let first = first_line(path);
        Error::Invalid(format!(
            "{name}: the result is neither a number nor a profile that fg-collapse reads; it begins with: {first}"
        ))
    })?;
    if unseen.skipped_lines() > 0 {
        let lines = plural(unseen.skipped_lines(), "malformed line");
        diagnostics.warn(&format!("{name}: {lines} of the result left out"));
    }
    Ok(profile)
}

/// Returns the beginning of the first line of a file that is not empty.
fn first_line(path: &Path) -> String {
    let mut head = Vec::new();
    // What cannot be read is shown as empty: the error is about its content.
    let _ = File::open(path).and_then(|file| file.take(NUMBER).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// Returns a profile with one frame if the file has a number only.
///
/// # Errors
/// [`Error::Invalid`] if the number is zero, negative, or too small or too large for a weight.
fn read_number(path: &Path, name: &str) -> Option<Result<Profile, Error>> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(NUMBER).read_to_end(&mut text).ok()?;
    let text = std::str::from_utf8(&text).ok().filter(|text| text.len() < NUMBER as usize)?.trim();
    let is_numeric = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let number: f64 = text.parse().ok().filter(|_| is_numeric)?;
    let weight =
        weight_of(number, text).map_err(|why| Error::Invalid(format!("{name}: --measure wrote {text}: {why}")));
    Some(weight.and_then(|weight| {
        let mut profile = Profile::new(false);
        let frame = profile.frames.intern(MEASURED_VALUE);
        profile.add(&[frame], Weights::plain(weight))?;
        Ok(profile)
    }))
}

/// Returns a number, given with its text, as a weight, or the reason why it cannot be one.
fn weight_of(number: f64, text: &str) -> Result<Weight, &'static str> {
    if number <= 0.0 {
        return Err("only numbers above 0 can be compared");
    }
    let weight = Weight::parse(text.as_bytes());
    weight.filter(|weight| (weight.as_f64() / number - 1.0).abs() <= LARGEST_ROUNDING).ok_or(match number < 1.0 {
        true => "six decimal places are too few for it; write a smaller unit, such as nanoseconds",
        false => "it is too large; write a larger unit",
    })
}

/// Returns the error of a run, with the last line that it wrote.
fn failure(name: &str, what: &str, stderr: &str) -> Error {
    let last = stderr.lines().rfind(|line| !line.trim().is_empty());
    let last = last.map_or_else(String::new, |line| format!("; it wrote: {}", line.trim()));
    Error::Invalid(format!("{name}: {what}{last}"))
}

/// True if a file exists and is not empty.
fn is_filled(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
}
