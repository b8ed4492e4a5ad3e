//! The sums by each kind of key.

use arrayvec::ArrayVec;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::Row;
use super::charged_waker::charged_waker;
use super::charging::Charging;
use crate::profile::{Batch, FrameId, Frames, Profile, Weights};
use crate::{Error, markers};

/// Sums up weights by one kind of key.
pub(super) trait Counter {
    /// Adds a stack whose first `shared` frames equal those of the stack before.
    fn add(&mut self, frames: &Frames, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error>;

    /// Returns all sums.
    fn rows(&mut self) -> Result<Vec<Row>, Error>;
}

/// Sums by function.
///
/// Self weight is that of stacks that [`Charging`] charges to the function; self weights add up to the total. Inclusive weight
/// is that of all stacks that contain the function, each counted once.
#[derive(Default)]
pub(super) struct Functions {
    functions: Vec<Function>,
    charging: Charging,
    /// Frames of the last stack, root first, with the weight added since each was pushed. Weight is added to a function
    /// when its frame is popped, not for each stack.
    path: Vec<(FrameId, Weights)>,
}

#[derive(Clone, Default)]
struct Function {
    self_weights: Weights,
    inclusive: Weights,
    /// Number of occurrences in the path.
    occurrences: u32,
}

impl Functions {
    /// Pops frames until `depth` are left.
    fn pop_to(&mut self, depth: usize) -> Result<(), Error> {
        while self.path.len() > depth {
            let Some((frame, weights)) = self.path.pop() else { break };
            let function = &mut self.functions[frame.index()];
            function.occurrences -= 1;
            if function.occurrences == 0 {
                function.inclusive.add(weights)?;
            }
            if let Some((_, caller)) = self.path.last_mut() {
                caller.add(weights)?;
            }
        }
        Ok(())
    }
}

impl Counter for Functions {
    fn add(&mut self, frames: &Frames, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        self.pop_to(shared)?;
        self.charging.update(frames);
        self.functions.resize(frames.len(), Function::default());
        for frame in &stack[shared..] {
            self.functions[frame.index()].occurrences += 1;
            self.path.push((*frame, Weights::default()));
        }
        if let Some((_, leaf)) = self.path.last_mut() {
            leaf.add(weights)?;
        }
        let charged = self.charging.charged(stack);
        charged.map_or(Ok(()), |frame| self.functions[frame.index()].self_weights.add(weights))
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        self.pop_to(0)?;
        let functions = (0..).map(FrameId::from_index).zip(&self.functions);
        let functions = functions.filter(|(frame, function)| {
            !self.charging.is_separator(*frame) || function.self_weights != Weights::default()
        });
        let rows = functions.map(|(frame, function)| Row {
            frames: vec![frame],
            weights: ArrayVec::from([function.self_weights, function.inclusive]),
        });
        Ok(rows.collect())
    }
}

/// Sums by root frame.
#[derive(Default)]
pub(super) struct Commands(Vec<Weights>);

impl Counter for Commands {
    fn add(&mut self, frames: &Frames, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        self.0.resize(frames.len(), Weights::default());
        stack.first().map_or(Ok(()), |comm| self.0[comm.index()].add(weights))
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        let commands = (0..).map(FrameId::from_index).zip(&self.0);
        Ok(commands.map(|(comm, weights)| Row::new(vec![comm], *weights)).collect())
    }
}

/// Sums by stack.
pub(super) struct Stacks {
    /// The stacks, without the names of their frames.
    profile: Profile,
    batch: Batch,
}

impl Default for Stacks {
    fn default() -> Self {
        Self { profile: Profile::new(true), batch: Batch::default() }
    }
}

impl Counter for Stacks {
    fn add(&mut self, frames: &Frames, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        self.batch.push(stack, weights, frames);
        if self.batch.is_full() { self.profile.add_batch(&mut self.batch) } else { Ok(()) }
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        self.profile.add_batch(&mut self.batch)?;
        let mut rows = Vec::with_capacity(self.profile.len());
        self.profile.for_each(|frames, weights| {
            rows.push(Row::new(frames.to_vec(), weights));
            Ok::<(), Error>(())
        })?;
        Ok(rows)
    }
}

/// Sums by caller and callee: the weight of stacks that contain the call, each counted once.
#[derive(Default)]
pub(super) struct Edges {
    charging: Charging,
    numbers: HashMap<[FrameId; 2], (usize, usize), FxBuildHasher>,
    rows: Vec<Row>,
    stacks: usize,
}

impl Counter for Edges {
    fn add(&mut self, frames: &Frames, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        self.stacks += 1;
        self.charging.update(frames);
        let charging = &self.charging;
        for call in stack.windows(2).filter(|call| !call.iter().any(|frame| charging.is_separator(*frame))) {
            let (number, last_seen) = self.numbers.entry([call[0], call[1]]).or_insert((self.rows.len(), 0));
            if *number == self.rows.len() {
                self.rows.push(Row::new(call.to_vec(), Weights::default()));
            }
            if std::mem::replace(last_seen, self.stacks) != self.stacks {
                self.rows[*number].weights[0].add(weights)?;
            }
        }
        Ok(())
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        Ok(std::mem::take(&mut self.rows))
    }
}

/// Sums by the function that self weight is charged to, and the thread state.
#[derive(Default)]
pub(super) struct Leaves {
    charging: Charging,
    sums: HashMap<(FrameId, Option<FrameId>), Weights, FxBuildHasher>,
}

impl Counter for Leaves {
    fn add(&mut self, frames: &Frames, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        self.charging.update(frames);
        let Some(charged) = self.charging.charged(stack) else { return Ok(()) };
        self.sums.entry((charged, self.charging.state(stack))).or_default().add(weights)
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        let rows = self
            .sums
            .iter()
            .map(|((charged, state), weights)| Row::new([*charged].into_iter().chain(*state).collect(), *weights));
        Ok(rows.collect())
    }
}

/// Sums by the thread that was blocked and the waker that is charged, with the marker of a chain that was cut: see
/// [`charged_waker`]. Stacks without wakers are left out.
#[derive(Default)]
pub(super) struct Wakers(HashMap<(FrameId, FrameId, Option<FrameId>), Weights, FxBuildHasher>);

impl Counter for Wakers {
    fn add(&mut self, frames: &Frames, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        let Some(waker) = charged_waker(frames, stack) else { return Ok(()) };
        let more = waker.waited_for.filter(|frame| markers::strip_suffix(frames.name(*frame)) == markers::MORE_WAKERS);
        self.0.entry((stack[0], waker.stack[0], more)).or_default().add(weights)
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        let rows = self.0.iter().map(|((comm, waker, more), weights)| {
            Row::new([*comm, *waker].into_iter().chain(*more).collect(), *weights)
        });
        Ok(rows.collect())
    }
}

/// Sums by stack of the thread itself, without thread states and wakers.
#[derive(Default)]
pub(super) struct OwnStacks {
    charging: Charging,
    stacks: Stacks,
}

impl Counter for OwnStacks {
    fn add(&mut self, frames: &Frames, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        self.charging.update(frames);
        self.stacks.add(frames, self.charging.own_frames(stack), shared, weights)
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        self.stacks.rows()
    }
}
