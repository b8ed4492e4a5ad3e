//! Counting: what each function, command, stack or call weighs.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::Error;
use crate::profile::{FrameId, Profile, Weights};

/// Leaves that are states of a thread and not functions.
const STATES: [&[u8]; 3] = [b"[off-cpu]", b"[runnable]", b"[unsampled]"];

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

/// Counts. What weighs nothing is left out.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn count(profile: &Profile, by: By) -> Result<Vec<Row>, Error> {
    let mut rows = match by {
        By::Function => functions(profile)?,
        By::Comm => commands(profile)?,
        By::Stack => stacks(profile)?,
        By::Edge => edges(profile)?,
    };
    rows.retain(|row| row.weights.iter().any(|weights| *weights != Weights::default()));
    Ok(rows)
}

/// The self weight of a frame is that of the stacks in which it is the leaf, or is in the state that the leaf names; over
/// all frames it adds up to the total. Its inclusive weight is that of all stacks in which it stands, each once.
fn functions(profile: &Profile) -> Result<Vec<Row>, Error> {
    let is_state: Vec<bool> = profile.frames.iter().map(|(_, name)| STATES.contains(&name)).collect();
    let mut counts = vec![[Weights::default(); 2]; profile.frames.len()];
    let mut last_seen = vec![0usize; profile.frames.len()];
    let mut number = 0;
    profile.for_each(|stack, weights| {
        number += 1;
        for frame in stack {
            if std::mem::replace(&mut last_seen[frame.index()], number) != number {
                counts[frame.index()][1].add(weights)?;
            }
        }
        match charged(stack, &is_state) {
            Some(frame) => counts[frame.index()][0].add(weights),
            None => Ok(()),
        }
    })?;
    let row = |(frame, _): (FrameId, &[u8])| Row { frames: vec![frame], weights: counts[frame.index()].to_vec() };
    Ok(profile.frames.iter().map(row).collect())
}

/// The frame that a stack's self weight belongs to; a state has none, but where there is nothing else.
fn charged(stack: &[FrameId], is_state: &[bool]) -> Option<FrameId> {
    let function = stack.iter().rfind(|frame| !is_state[frame.index()]);
    function.or(stack.last()).copied()
}

fn commands(profile: &Profile) -> Result<Vec<Row>, Error> {
    let mut counts = vec![Weights::default(); profile.frames.len()];
    profile.for_each(|stack, weights| stack.first().map_or(Ok(()), |comm| counts[comm.index()].add(weights)))?;
    let row = |(frame, _): (FrameId, &[u8])| Row { frames: vec![frame], weights: vec![counts[frame.index()]] };
    Ok(profile.frames.iter().map(row).collect())
}

fn stacks(profile: &Profile) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::with_capacity(profile.len());
    profile.for_each::<Error>(|stack, weights| {
        rows.push(Row { frames: stack.to_vec(), weights: vec![weights] });
        Ok(())
    })?;
    Ok(rows)
}

/// Each call's weight is that of the stacks in which it stands, each once.
fn edges(profile: &Profile) -> Result<Vec<Row>, Error> {
    let mut numbers: HashMap<[FrameId; 2], (usize, usize), FxBuildHasher> = HashMap::default();
    let mut rows: Vec<Row> = Vec::new();
    let mut stack_number = 0;
    profile.for_each(|stack, weights| {
        stack_number += 1;
        for call in stack.windows(2) {
            let (number, last_seen) = numbers.entry([call[0], call[1]]).or_insert((rows.len(), 0));
            if *number == rows.len() {
                rows.push(Row { frames: call.to_vec(), weights: vec![Weights::default()] });
            }
            if std::mem::replace(last_seen, stack_number) != stack_number {
                rows[*number].weights[0].add(weights)?;
            }
        }
        Ok::<(), Error>(())
    })?;
    Ok(rows)
}
