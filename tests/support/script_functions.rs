//! Profiles of programs in interpreted languages, whose functions have known callers.

use super::recording::{Profile, Stack};
use super::{Outcome, skip};

/// Functions that compute, each with its callers, innermost first.
pub type Callers<'a> = &'a [(&'a str, &'a [&'a str])];

/// Returns true if a recording with `-v` walked script frames. Otherwise reports the test as skipped.
#[track_caller]
pub fn walked_scripts(outcome: &Outcome) -> bool {
    let copied = outcome.stderr.lines().find(|line| line.contains("stacks copied"));
    if let Some(copied) = copied {
        skip(copied);
    }
    copied.is_none()
}

/// Returns the script functions of a stack, innermost first, without their classes, files and lines.
pub fn functions(stack: &Stack) -> Vec<&str> {
    let names = stack.frames.iter().rev().filter_map(|frame| frame.split_once(" (").map(|(name, _)| name));
    names.map(|name| name.rsplit(['.', ':', '#']).next().unwrap_or(name)).collect()
}

/// Asserts that every stack of a function that computes has its callers, and that each of them was met. Stacks with functions that are
/// not known any more have a mark for them: on a busy machine, code may be gone when its names are read.
#[track_caller]
pub fn assert_callers(profile: &Profile, callers: Callers<'_>, interpreter: &str) {
    for (burn, callers) in callers {
        let mut met = 0;
        let is_known = |stack: &&Stack| !stack.contains(&["[v8]"]);
        for stack in profile.0.iter().filter(is_known) {
            let functions = functions(stack);
            let Some(index) = functions.iter().position(|name| name == burn) else { continue };
            assert!(functions[index + 1..].starts_with(callers), "{interpreter}: {functions:?}: {stack:?}");
            met += stack.weight;
        }
        assert!(met > 0, "{burn} was not met in {interpreter}");
    }
}
