//! Counting: what each function, command, stack or call weighs.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::{Kind, StackSink, read_all, read_parallel};
use crate::input::Source;
use crate::markers::is_thread_state;
use crate::profile::{self, FrameId, Frames, Weights};
use crate::stats::significance::{Differences, Runs};
use crate::stats::weight_kind::{Divisor, Weighed};

/// The frame that a stack's self weight belongs to; a state has none, but where there is nothing else.
pub fn charged(stack: &[FrameId], is_state: impl Fn(FrameId) -> bool) -> Option<FrameId> {
    stack.iter().copied().rfind(|frame| !is_state(*frame)).or(stack.last().copied())
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Each function: alone, and with what it calls.
    #[default]
    Function,
    /// Each first frame, which in most profiles is the command's name.
    Comm,
    /// Each stack.
    Stack,
    /// Each caller and callee.
    Edge,
}

/// One thing that was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is: a function, a command, the frames of a stack, or caller and callee.
    pub frames: Vec<FrameId>,
    /// What it weighs: a function first alone and then with what it calls, others once.
    pub weights: Vec<Weights>,
}

/// What was counted, and what it was counted from.
#[derive(Debug, Default)]
pub struct Counts {
    /// The frames' names.
    pub frames: Frames,
    /// Whether each stack has two weights.
    pub differential: bool,
    /// What all stacks weigh.
    pub total: Weights,
    /// What the weights after are.
    pub weighed: Weighed,
    /// How many runs each of two weights adds up.
    pub runs: Runs,
    /// What was counted; what weighs nothing is left out.
    pub rows: Vec<Row>,
}

impl Counts {
    /// What judges the differences of a differential profile whose weights are counts. Of functions their self weights tell
    /// what noise is, since no sample is in two of them.
    pub(super) fn differences(&self) -> Option<Differences> {
        let sample = self.weighed.sample().filter(|_| self.differential)?;
        Some(Differences::new(self.rows.iter().map(|row| row.weights[0]), sample, self.total, self.runs))
    }
}

/// Counts the stacks of all sources as they come, without keeping them: of a file, in all cores.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit, and those of [`read_all`].
pub fn count(sources: &[Source], by: By, diagnostics: &mut Diagnostics) -> Result<Counts, Error> {
    // Of whole stacks nearly each is counted once, and to join them is as much work as to count them.
    if let [source] = sources
        && by != By::Stack
        && let Some(parts) = read_parallel(source, || Intake::new(by))
    {
        return join(parts);
    }
    let mut intake = Intake::new(by);
    read_all(sources, &mut intake, diagnostics)?;
    join(vec![intake])
}

/// Adds up what was counted of parts.
fn join(parts: Vec<Intake>) -> Result<Counts, Error> {
    let (mut whole, mut divisor) = (Counts::default(), Divisor::default());
    let mut places = HashMap::<Vec<FrameId>, usize, FxBuildHasher>::default();
    let alone = parts.len() == 1;
    for mut part in parts {
        let rows = part.counter.rows()?;
        divisor.join(part.divisor);
        whole.differential = part.counts.differential;
        whole.total.add(part.counts.total)?;
        if alone {
            (whole.frames, whole.rows) = (part.counts.frames, rows);
            break;
        }
        let ids = whole.frames.intern_all(&part.counts.frames);
        for Row { frames, weights } in rows {
            let frames: Vec<FrameId> = frames.iter().map(|frame| ids[frame.index()]).collect();
            let place = *places.entry(frames).or_insert_with_key(|frames| {
                let nothing = vec![Weights::default(); weights.len()];
                whole.rows.push(Row { frames: frames.clone(), weights: nothing });
                whole.rows.len() - 1
            });
            for (sum, weights) in whole.rows[place].weights.iter_mut().zip(weights) {
                sum.add(weights)?;
            }
        }
    }
    whole.rows.retain(|row| row.weights.iter().any(|weights| *weights != Weights::default()));
    whole.weighed = divisor.weighed(&whole.frames);
    Ok(whole)
}

/// Gives what is read to a counter.
struct Intake {
    counts: Counts,
    divisor: Divisor,
    counter: Box<dyn Counter + Send>,
}

impl Intake {
    fn new(by: By) -> Self {
        let counter: Box<dyn Counter + Send> = match by {
            By::Function => Box::<Functions>::default(),
            By::Comm => Box::<Commands>::default(),
            By::Stack => Box::<Stacks>::default(),
            By::Edge => Box::<Edges>::default(),
        };
        Self { counts: Counts::default(), divisor: Divisor::default(), counter }
    }
}

impl StackSink for Intake {
    fn frames(&mut self) -> &mut Frames {
        &mut self.counts.frames
    }

    fn begin(&mut self, kind: Kind) {
        self.counts.differential = kind == Kind::Differential;
    }

    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        self.counts.total.add(weights)?;
        // BEFORE may be scaled.
        if self.counts.differential {
            self.divisor.add(weights.after);
        }
        self.counter.add(&self.counts.frames, stack, shared, weights)
    }
}

/// Counts one kind of thing.
trait Counter {
    /// Counts a stack, which has its first `shared` frames in common with the one before.
    fn add(&mut self, frames: &Frames, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error>;

    /// All that was counted.
    fn rows(&mut self) -> Result<Vec<Row>, Error>;
}

/// Functions. The self weight of a frame is that of the stacks in which it is the leaf, or is in the state that the leaf
/// names; over all frames it adds up to the total. Its inclusive weight is that of all stacks in which it stands, each
/// once.
#[derive(Default)]
struct Functions {
    functions: Vec<Function>,
    /// The last stack's frames, root first, with what was counted since they came: a frame that stays is not counted again
    /// for every stack that it stays in.
    path: Vec<(FrameId, Weights)>,
}

#[derive(Clone, Default)]
struct Function {
    is_state: bool,
    alone: Weights,
    inclusive: Weights,
    /// How often it stands in the path.
    open: u32,
}

impl Functions {
    /// Leaves all but so many frames of the last stack.
    fn leave(&mut self, kept: usize) -> Result<(), Error> {
        while self.path.len() > kept {
            let Some((frame, weights)) = self.path.pop() else { break };
            let function = &mut self.functions[frame.index()];
            function.open -= 1;
            if function.open == 0 {
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
        self.leave(shared)?;
        for index in self.functions.len()..frames.len() {
            let name = frames.name(FrameId::from_index(index as u32));
            self.functions.push(Function { is_state: is_thread_state(name), ..Function::default() });
        }
        for frame in &stack[shared..] {
            self.functions[frame.index()].open += 1;
            self.path.push((*frame, Weights::default()));
        }
        if let Some((_, leaf)) = self.path.last_mut() {
            leaf.add(weights)?;
        }
        let charged = charged(stack, |frame| self.functions[frame.index()].is_state);
        charged.map_or(Ok(()), |frame: FrameId| self.functions[frame.index()].alone.add(weights))
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        self.leave(0)?;
        let row = |(index, function): (u32, &Function)| Row {
            frames: vec![FrameId::from_index(index)],
            weights: vec![function.alone, function.inclusive],
        };
        Ok((0..).zip(&self.functions).map(row).collect())
    }
}

/// First frames.
#[derive(Default)]
struct Commands(Vec<Weights>);

impl Counter for Commands {
    fn add(&mut self, frames: &Frames, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        self.0.resize(frames.len(), Weights::default());
        stack.first().map_or(Ok(()), |comm| self.0[comm.index()].add(weights))
    }

    fn rows(&mut self) -> Result<Vec<Row>, Error> {
        let row = |(index, weights): (u32, &Weights)| Row {
            frames: vec![FrameId::from_index(index)],
            weights: vec![*weights],
        };
        Ok((0..).zip(&self.0).map(row).collect())
    }
}

/// Whole stacks.
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
        let row = |(number, weights): (u32, &Weights)| Row {
            frames: self.stacks.get(number).iter().map(|id| FrameId::from_index(*id)).collect(),
            weights: vec![*weights],
        };
        Ok((0..).zip(&self.weights).map(row).collect())
    }
}

/// Calls. Each one's weight is that of the stacks in which it stands, each once.
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
