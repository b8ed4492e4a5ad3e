//! Sums of weights by function, command, stack, call or waker.

mod charged_waker;
mod charging;
mod counters;
mod judge;
mod observe;

use arrayvec::ArrayVec;

use self::counters::{Commands, Counter, Edges, Functions, Leaves, OwnStacks, Stacks, Wakers};
use crate::Error;
use crate::profile::{FrameId, Frames, Profile, Weights};

pub use charged_waker::{ChargedWaker, charged_waker};
pub use charging::Charging;
pub use judge::{Judgement, check_not_flattened, format_chance, is_significant, observe_sum, observe_sums};
pub use observe::{RunSums, observe_runs};

/// Key by which weights are summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum GroupBy {
    /// Each function, with self and inclusive weight.
    #[default]
    Function,
    /// Each root frame, in most profiles the command name.
    Comm,
    /// Each distinct stack.
    Stack,
    /// Each pair of caller and callee.
    Edge,
    /// Each pair of a thread that was blocked and the last of the chain of threads that woke it.
    Waker,
    /// The function that self weight is charged to, with the thread state if there is one.
    #[value(skip)]
    Leaf,
    /// Each stack of a thread itself, without its state and its wakers.
    #[value(skip)]
    OwnStack,
}

impl GroupBy {
    /// True for keys that are judged by the spread of functions: there may be too few of them to show a spread, or
    /// several of them contain the same samples.
    pub fn is_judged_by_functions(self) -> bool {
        matches!(self, Self::Comm | Self::Edge | Self::Waker | Self::Leaf)
    }
}

/// Sum of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key: a function, a command, the frames of a stack, caller and callee, thread and waker (and the marker
    /// of a chain that was cut), or function and state.
    pub frames: Vec<FrameId>,
    /// Self and inclusive weight of a function; one weight of any other key.
    pub weights: ArrayVec<Weights, 2>,
}

impl Row {
    /// Creates the sum of a key that has one weight.
    pub(crate) fn new(frames: Vec<FrameId>, weights: Weights) -> Self {
        Self { frames, weights: [weights].into_iter().collect() }
    }
}

/// Sums of weights by one kind of key.
pub struct Tally(Box<dyn Counter + Send>);

impl Tally {
    /// Returns empty sums.
    pub fn new(by: GroupBy) -> Self {
        Self(match by {
            GroupBy::Function => Box::<Functions>::default(),
            GroupBy::Comm => Box::<Commands>::default(),
            GroupBy::Stack => Box::<Stacks>::default(),
            GroupBy::Edge => Box::<Edges>::default(),
            GroupBy::Waker => Box::<Wakers>::default(),
            GroupBy::Leaf => Box::<Leaves>::default(),
            GroupBy::OwnStack => Box::<OwnStacks>::default(),
        })
    }

    /// Adds a stack whose first `shared` frames equal those of the stack before.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn add(&mut self, frames: &Frames, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        self.0.add(frames, stack, shared, weights)
    }

    /// Returns the sums of all keys, also of those without weight.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn rows(&mut self) -> Result<Vec<Row>, Error> {
        self.0.rows()
    }
}

/// Sums up the weights of a profile.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn tally_profile(profile: &Profile, by: GroupBy) -> Result<Vec<Row>, Error> {
    let mut tally = Tally::new(by);
    profile.for_each_sorted::<Error>(|stack| tally.add(&profile.frames, stack.frames, stack.shared, stack.weights))?;
    let mut rows = tally.rows()?;
    rows.retain(|row| row.weights.iter().any(|weights| *weights != Weights::default()));
    Ok(rows)
}
