//! Runs two commands in turns, measures each run, and judges the difference.
//!
//! Runs are pairs, one before and one after, in random order, so that both sides meet the same state of the machine.
//! The difference is judged after 5 pairs, 10, 20 and so on, and when the time is over; each look has its share of the
//! error rate ([`Looks`]). The benchmark ends as soon as a function has grown, or as soon as growth that
//! matters is ruled out.

mod process;
mod recorder;
mod schedule;
mod verdict;

pub use recorder::Measure;
pub use schedule::Looks;
pub use verdict::{Change, Verdict};

use std::path::PathBuf;
use std::time::{Duration, Instant};

use self::recorder::{Recorder, Run};
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
///
/// # Errors
/// [`Error::Invalid`] if a run fails, has no weight or exceeds its time, or if there are too few runs to judge;
/// [`Error::Write`] for files, and those of reading the profiles.
pub fn bench(
    options: &Options,
    is_interrupted: &dyn Fn() -> bool,
    diagnostics: &mut Diagnostics,
) -> Result<Verdict, Error> {
    let start = Instant::now();
    let recorder = Recorder::new(options)?;
    let (mut order, mut looks) = (Order::new(options.seed), Looks::default());
    let (mut pairs, mut longest) = (0, Duration::ZERO);
    while options.pairs.is_none_or(|most| pairs < most) {
        let pair_start = Instant::now();
        if pairs >= FEWEST_PAIRS && options.pairs.is_none() && start.elapsed() + longest > options.max_time {
            break;
        }
        if !run_pair(&recorder, order.next_pair(), pairs + 1, start, is_interrupted, diagnostics)? {
            break;
        }
        pairs += 1;
        longest = longest.max(pair_start.elapsed());
        if options.pairs.is_none()
            && let Some(level) = looks.level_after(pairs, || verdict::is_exact(options, pairs))
        {
            let verdict = Verdict::new(options, pairs, level, diagnostics)?;
            if verdict.is_decided() {
                return Ok(verdict);
            }
        }
    }
    if pairs < FEWEST_PAIRS {
        let done = plural(pairs.into(), "pair");
        return Err(Error::Invalid(format!(
            "{done} of runs cannot be judged, at least {FEWEST_PAIRS} can; raise --max-time"
        )));
    }
    Verdict::new(options, pairs, looks.last_level(options.pairs.is_some()), diagnostics)
}

/// Runs both commands of a pair; false if the time is over or the user has interrupted.
fn run_pair(
    recorder: &Recorder,
    order: [Side; 2],
    number: u32,
    start: Instant,
    is_interrupted: &dyn Fn() -> bool,
    diagnostics: &mut Diagnostics,
) -> Result<bool, Error> {
    for side in order {
        let run = Run { side, number, start };
        if !recorder.record(&run, is_interrupted, diagnostics)? {
            recorder.remove_pair(number);
            return Ok(false);
        }
    }
    Ok(true)
}
