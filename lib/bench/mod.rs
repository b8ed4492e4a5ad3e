//! Runs two commands in turns, measures each run, and judges the difference.
//!
//! Runs are pairs, one before and one after, in random order, so that both sides meet the same state of the machine.
//! The difference is judged after 5 pairs, 10, 20 and so on, and when the time is over; each look has its share of the
//! error rate ([`Looks`]). The benchmark ends as soon as a function has grown, or as soon as growth that
//! matters is ruled out.

mod folder;
mod process;
mod progress;
mod recorder;
mod run_warnings;
mod schedule;
mod verdict;
mod watcher;

pub use recorder::Measure;
pub use run_warnings::RunWarning;
pub use schedule::Looks;
pub use verdict::{Change, Elapsed, Verdict};

use std::path::PathBuf;
use std::time::{Duration, Instant};

use self::folder::RunFolder;
use self::recorder::{Recorder, Run};
use self::run_warnings::RunWarnings;
use self::schedule::Order;
use crate::Error;
use crate::diagnostics::{Diagnostics, plural};
use crate::stats::sample_weight::WeightOptions;

/// Fewest pairs of runs that are judged.
const FEWEST_PAIRS: u32 = 2;

/// Options of a benchmark.
#[derive(Clone, Debug)]
pub struct Options {
    /// Shell commands before and after.
    pub commands: Sides<String>,
    /// The measure of a run.
    pub measure: Measure,
    /// Folder for the profiles of the runs.
    pub folder: PathBuf,
    /// Longest time of all runs.
    pub max_time: Duration,
    /// Time limit of one run. `None`: until `max_time`.
    pub timeout: Option<Duration>,
    /// Exact number of pairs of runs.
    pub pairs: Option<u32>,
    /// Smallest growth that matters, in percent of all weight before.
    pub min_growth: f64,
    /// The options for the kind of weights.
    pub weights: WeightOptions,
    /// Compare names as they are: see [`crate::diff::Options::exact_names`].
    pub exact_names: bool,
    /// Seed of the random order.
    pub seed: u64,
}

/// A value for each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sides<T> {
    /// The value before.
    pub before: T,
    /// The value after.
    pub after: T,
}

impl<T> Sides<T> {
    /// Returns the value of a side.
    pub fn get(&self, side: Side) -> &T {
        match side {
            Side::Before => &self.before,
            Side::After => &self.after,
        }
    }
}

/// A side of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The command before.
    Before,
    /// The command after.
    After,
}

impl Side {
    /// Returns the name of the side in messages and file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }

    /// Returns the letter of the side. The environments of both commands have the same size, because the dynamic
    /// linker's work depends on it.
    pub fn letter(self) -> &'static str {
        &self.name()[..1]
    }
}

/// Runs the benchmark. `is_interrupted` is asked often: if it is true, the run ends, and the complete pairs are judged.
/// A benchmark that cannot be judged leaves nothing in the folder.
///
/// # Errors
/// [`Error::Invalid`] if a run fails, has no weight or exceeds its time, or if there are too few runs to judge;
/// [`Error::Write`] for files, and those of reading the profiles.
pub fn bench(
    options: &Options,
    is_interrupted: &dyn Fn() -> bool,
    diagnostics: &mut Diagnostics,
) -> Result<Verdict, Error> {
    let folder = RunFolder::create(&options.folder, diagnostics)?;
    let recorder = Recorder::new(options, &folder);
    let mut pairs = Pairs {
        recorder,
        folder: &folder,
        options,
        start: Instant::now(),
        completed: 0,
        elapsed: Vec::new(),
        warnings: RunWarnings::default(),
        state: String::new(),
    };
    let result = pairs.judge(is_interrupted, diagnostics);
    diagnostics.clear_progress();
    let completed = pairs.completed;
    match result {
        Err(_) if completed < FEWEST_PAIRS => folder.remove_pairs(completed + 1),
        Err(_) => {
            folder.remove_pair(completed + 1);
            let (completed, folder) = (plural(completed.into(), "pair"), options.folder.display());
            diagnostics.warn(&format!("the profiles of {completed} of runs are in {folder}"));
        }
        Ok(_) => {}
    }
    result
}

/// The pairs of runs of a benchmark.
struct Pairs<'a> {
    recorder: Recorder<'a>,
    folder: &'a RunFolder,
    options: &'a Options,
    /// Time when the benchmark began.
    start: Instant,
    /// Number of complete pairs.
    completed: u32,
    /// Seconds of the runs of complete pairs, before and after.
    elapsed: Vec<(f64, f64)>,
    /// Warnings about the recordings.
    warnings: RunWarnings,
    /// The growth that the last verdict could not exclude.
    state: String,
}

impl Pairs<'_> {
    /// Runs pairs until they can be judged, or the time is over.
    fn judge(&mut self, is_interrupted: &dyn Fn() -> bool, diagnostics: &mut Diagnostics) -> Result<Verdict, Error> {
        let options = self.options;
        let (mut order, mut looks) = (Order::new(options.seed), Looks::default());
        let mut longest = Duration::ZERO;
        while options.pairs.is_none_or(|most| self.completed < most) {
            let pair_start = Instant::now();
            let can_stop = self.completed >= FEWEST_PAIRS && options.pairs.is_none();
            if can_stop && self.start.elapsed() + longest > options.max_time {
                break;
            }
            let Some(elapsed) = self.run_pair(order.next_pair(), is_interrupted, diagnostics)? else { break };
            self.elapsed.push(elapsed);
            self.completed += 1;
            longest = longest.max(pair_start.elapsed());
            if options.pairs.is_none()
                && let Some(level) = looks.level_after(self.completed, || verdict::is_exact(options, self.completed))
            {
                let verdict = self.verdict(level, diagnostics)?;
                if verdict.is_decided() {
                    return Ok(verdict);
                }
                self.state = progress::describe_open(&verdict);
            }
        }
        if self.completed < FEWEST_PAIRS {
            let done = plural(self.completed.into(), "complete pair");
            let cause = if is_interrupted() { "interrupted" } else { "the time is over" };
            let advice = if is_interrupted() { "" } else { "; raise --max-time" };
            return Err(Error::Invalid(format!(
                "{cause} after {done} of runs, at least {FEWEST_PAIRS} are needed{advice}"
            )));
        }
        self.verdict(looks.last_level(options.pairs.is_some()), diagnostics)
    }

    /// Judges the complete pairs.
    fn verdict(&self, level: f64, diagnostics: &mut Diagnostics) -> Result<Verdict, Error> {
        let verdict = Verdict::new(self.options, self.completed, level, diagnostics)?;
        let is_recorded = matches!(self.options.measure, Measure::Samples { .. });
        let elapsed = is_recorded.then(|| Elapsed::new(&self.elapsed));
        Ok(Verdict { elapsed, warnings: self.warnings.to_vec(), ..verdict })
    }

    /// Runs both commands of a pair, and returns their seconds; `None` if the time is over or the user has interrupted.
    fn run_pair(
        &mut self,
        order: [Side; 2],
        is_interrupted: &dyn Fn() -> bool,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<(f64, f64)>, Error> {
        let number = self.completed + 1;
        let mut elapsed = (0.0, 0.0);
        for side in order {
            let run = Run { side, number, start: self.start, state: &self.state };
            let Some(recorded) = self.recorder.record(&run, is_interrupted, diagnostics)? else {
                self.folder.remove_pair(number);
                return Ok(None);
            };
            self.warnings.add(side, number, recorded.warnings);
            match side {
                Side::Before => elapsed.0 = recorded.elapsed.as_secs_f64(),
                Side::After => elapsed.1 = recorded.elapsed.as_secs_f64(),
            }
        }
        Ok(Some(elapsed))
    }
}
