//! Sums up weights by function, command, stack or call.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::{LineKind, StackSink, read_all, read_parallel};
use crate::input::Source;
use crate::markers::is_thread_state;
use crate::profile::{self, FrameId, Frames, Weights};
use crate::stats::significance::{Runs, SignificanceTest};
use crate::stats::weight_kind::{CommonDivisor, WeightKind};

/// Returns the frame to which a stack's self weight is charged: the leaf below thread states, or the last frame if all
/// are thread states.
pub fn charged_frame(stack: &[FrameId], is_state: impl Fn(FrameId) -> bool) -> Option<FrameId> {
    stack.iter().copied().rfind(|frame| !is_state(*frame)).or(stack.last().copied())
}

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
}

/// Sum of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key: a function, a command, the frames of a stack, or caller and callee.
    pub frames: Vec<FrameId>,
    /// Self and inclusive weight of a function; one weight of any other key.
    pub weights: Vec<Weights>,
}

/// Sums of all keys, and totals of the profile.
#[derive(Debug, Default)]
pub struct Counts {
    /// Names of frames.
    pub frames: Frames,
    /// True if each stack has two weights.
    pub differential: bool,
    /// Total weight of the profile.
    pub total: Weights,
    /// Kind of the weights after.
    pub weight_kind: WeightKind,
    /// Number of runs that each side adds up.
    pub runs: Runs,
    /// Sums of all keys with weight.
    pub rows: Vec<Row>,
}

impl Counts {
    /// Returns the significance test of a differential profile whose weights are counts. Noise is estimated from self
    /// weights, because each sample is in only one of them.
    pub(super) fn significance_test(&self) -> Option<SignificanceTest> {
        let sample = self.weight_kind.sample().filter(|_| self.differential)?;
        Some(SignificanceTest::new(self.rows.iter().map(|row| row.weights[0]), sample, self.total, self.runs))
    }
}

/// Sums up the stacks of all sources while they are read; a single file is read on all cores.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit, and those of [`read_all`].
pub fn count(sources: &[Source], by: GroupBy, diagnostics: &mut Diagnostics) -> Result<Counts, Error> {
    // Most stacks appear once, so merging sums of stacks costs as much as computing them: not in parallel.
    if let [source] = sources
        && by != GroupBy::Stack
        && let Some(parts) = read_parallel(source, || Accumulator::new(by))
    {
        return merge_parts(parts);
    }
    let mut accumulator = Accumulator::new(by);
    read_all(sources, &mut accumulator, diagnostics)?;
    merge_parts(vec![accumulator])
}

/// Merges the sums of several parts.
fn merge_parts(parts: Vec<Accumulator>) -> Result<Counts, Error> {
    let (mut whole, mut divisor) = (Counts::default(), CommonDivisor::default());
    let mut indices = HashMap::<Vec<FrameId>, usize, FxBuildHasher>::default();
    let is_single = parts.len() == 1;
    for mut part in parts {
        let rows = part.counter.rows()?;
        divisor.merge(part.divisor);
        whole.differential = part.counts.differential;
        whole.total.add(part.counts.total)?;
        if is_single {
            (whole.frames, whole.rows) = (part.counts.frames, rows);
            break;
        }
        let ids = whole.frames.intern_all(&part.counts.frames);
        for Row { frames, weights } in rows {
            let frames: Vec<FrameId> = frames.iter().map(|frame| ids[frame.index()]).collect();
            let index = *indices.entry(frames).or_insert_with_key(|frames| {
                let nothing = vec![Weights::default(); weights.len()];
                whole.rows.push(Row { frames: frames.clone(), weights: nothing });
                whole.rows.len() - 1
            });
            for (sum, weights) in whole.rows[index].weights.iter_mut().zip(weights) {
                sum.add(weights)?;
            }
        }
    }
    whole.rows.retain(|row| row.weights.iter().any(|weights| *weights != Weights::default()));
    whole.weight_kind = divisor.kind(&whole.frames);
    Ok(whole)
}

/// Passes stacks to a counter while they are read.
struct Accumulator {
    counts: Counts,
    divisor: CommonDivisor,
    counter: Box<dyn Counter + Send>,
}

impl Accumulator {
    fn new(by: GroupBy) -> Self {
        let counter: Box<dyn Counter + Send> = match by {
            GroupBy::Function => Box::<Functions>::default(),
            GroupBy::Comm => Box::<Commands>::default(),
            GroupBy::Stack => Box::<Stacks>::default(),
            GroupBy::Edge => Box::<Edges>::default(),
        };
        Self { counts: Counts::default(), divisor: CommonDivisor::default(), counter }
    }
}

impl StackSink for Accumulator {
    fn frames(&mut self) -> &mut Frames {
        &mut self.counts.frames
    }

    fn begin(&mut self, kind: LineKind) {
        self.counts.differential = kind == LineKind::Differential;
    }

    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        self.counts.total.add(weights)?;
        // Weights before may be scaled.
        if self.counts.differential {
            self.divisor.add(weights.after);
        }
        self.counter.add(&self.counts.frames, stack, shared, weights)
    }
}

/// Sums up weights by one kind of key.
trait Counter {
    /// Adds a stack whose first `shared` frames equal those of the stack before.
    fn add(&mut self, frames: &Frames, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error>;

    /// Returns all sums.
    fn rows(&mut self) -> Result<Vec<Row>, Error>;
}

/// Sums by function.
///
/// Self weight is that of stacks in which the function is the leaf, or directly below a thread state; self weights add
/// up to the total. Inclusive weight is that of all stacks that contain the function, each counted once.
#[derive(Default)]
struct Functions {
    functions: Vec<Function>,
    /// Frames of the last stack, root first, with the weight added since each was pushed. Weight is added to a function
    /// when its frame is popped, not for each stack.
    path: Vec<(FrameId, Weights)>,
}

#[derive(Clone, Default)]
struct Function {
    is_state: bool,
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
        for index in self.functions.len()..frames.len() {
            let name = frames.name(FrameId::from_index(index as u32));
            self.functions.push(Function { is_state: is_thread_state(name), ..Function::default() });
        }
        for frame in &stack[shared..] {
            self.functions[frame.index()].occurrences += 1;
            self.path.push((*frame, Weights::default()));
        }
        if let Some((_, leaf)) = self.path.last_mut() {
            leaf.add(weights)?;
        }
        let charged = charged_frame(stack, |frame| self.functions[frame.index()].is_state);
        charged.map_or(Ok(()), |frame: FrameId| self.functions[frame.index()].self_weights.add(weights))
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        self.pop_to(0)?;
        let functions = (0..).map(FrameId::from_index).zip(&self.functions);
        let rows = functions.map(|(frame, function)| Row {
            frames: vec![frame],
            weights: vec![function.self_weights, function.inclusive],
        });
        Ok(rows.collect())
    }
}

/// Sums by root frame.
#[derive(Default)]
struct Commands(Vec<Weights>);

impl Counter for Commands {
    fn add(&mut self, frames: &Frames, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        self.0.resize(frames.len(), Weights::default());
        stack.first().map_or(Ok(()), |comm| self.0[comm.index()].add(weights))
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        let commands = (0..).map(FrameId::from_index).zip(&self.0);
        Ok(commands.map(|(comm, weights)| Row { frames: vec![comm], weights: vec![*weights] }).collect())
    }
}

/// Sums by stack.
#[derive(Default)]
struct Stacks {
    stacks: profile::Stacks,
    weights: Vec<Weights>,
    ids: Vec<u32>,
}

impl Counter for Stacks {
    fn add(&mut self, _: &Frames, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        self.ids.truncate(shared);
        self.ids.extend(stack[shared..].iter().map(|frame| frame.index() as u32));
        let number = self.stacks.intern(&self.ids) as usize;
        self.weights.resize(self.stacks.len(), Weights::default());
        self.weights[number].add(weights)
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        let rows = (0..).zip(&self.weights).map(|(number, weights)| Row {
            frames: self.stacks.get(number).iter().map(|id| FrameId::from_index(*id)).collect(),
            weights: vec![*weights],
        });
        Ok(rows.collect())
    }
}

/// Sums by caller and callee: the weight of stacks that contain the call, each counted once.
#[derive(Default)]
struct Edges {
    numbers: HashMap<[FrameId; 2], (usize, usize), FxBuildHasher>,
    rows: Vec<Row>,
    stacks: usize,
}

impl Counter for Edges {
    fn add(&mut self, _: &Frames, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        self.stacks += 1;
        for call in stack.windows(2) {
            let (number, last_seen) = self.numbers.entry([call[0], call[1]]).or_insert((self.rows.len(), 0));
            if *number == self.rows.len() {
                self.rows.push(Row { frames: call.to_vec(), weights: vec![Weights::default()] });
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
