//! Checks recordings of `tests/programs/callers.c`, where the right stack of each sample is known.

use super::recording::{Profile, Stack};

/// The callers of the program, each with the leaf that it alone calls.
const CALLERS: [(&str, &str); 2] = [("odd_caller", "odd_leaf"), ("even_caller", "even_leaf")];

/// The numbers of samples in the program's leaves.
#[derive(Debug, Default)]
pub struct LeafSamples {
    pub all: u64,
    pub truncated: u64,
}

impl LeafSamples {
    /// Counts the samples of a recording of `callers SECONDS DEPTH`. Panics if a stack has frames of another call, or
    /// lacks frames without being marked as truncated.
    #[track_caller]
    pub fn count(profile: &Profile, depth: usize) -> Self {
        let mut samples = Self::default();
        for stack in profile.0.iter().filter(|stack| has_leaf(stack)) {
            assert!(is_right(stack, depth), "{stack:?}");
            samples.all += stack.weight;
            samples.truncated += if is_truncated(stack) { stack.weight } else { 0 };
        }
        samples
    }
}

/// True if a stack is in one of the program's leaves, or in what they call.
pub fn has_leaf(stack: &Stack) -> bool {
    stack.frames.iter().any(|frame| frame.ends_with("_leaf"))
}

fn is_truncated(stack: &Stack) -> bool {
    stack.contains(&["[truncated]"])
}

/// True if the frames of a stack in a leaf belong together, and none is missing that is not said to be missing.
fn is_right(stack: &Stack, depth: usize) -> bool {
    let count = |name: &str| stack.frames.iter().filter(|frame| *frame == name).count();
    let descents = count("descend");
    match is_truncated(stack) {
        true => descents <= depth && CALLERS.iter().all(|(caller, leaf)| count(caller) <= count(leaf)),
        false => {
            descents == depth && count("main") == 1 && CALLERS.iter().all(|(caller, leaf)| count(caller) == count(leaf))
        }
    }
}
