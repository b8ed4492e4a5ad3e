//! The rules by which the caller of a Go function is found.

use crate::perf::go::table::Function;

/// The way to the caller of a Go function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::perf) enum GoRule {
    /// There is no rule.
    Unknown,
    /// The function has no caller.
    Root,
    /// The CFA is the stack pointer plus this number of bytes.
    StackPointer(u32),
    /// The same, but what looks like a return address is the address of an instruction.
    Callback(u32),
    /// The CFA is the frame pointer plus 16. It may be on another stack.
    FramePointer,
    /// The CFA is the goroutine's saved stack pointer plus this number of bytes.
    SavedStackPointer(u32),
    /// The caller is what the goroutine resumes.
    Resumed,
}

/// An address, and the rule that holds from there on.
pub(in crate::perf) type RuleChange = (u64, GoRule);

/// Adds the rules that the table has for a function, and that there is none behind its last instruction.
pub(super) fn add_deltas(function: &Function<'_>, changes: &mut Vec<RuleChange>) {
    let mut end = function.start;
    for (range, delta) in function.stack_deltas() {
        changes.push((range.start, rule_of_delta(delta)));
        end = range.end;
    }
    changes.push((end, GoRule::Unknown));
}

/// Returns the rule of a function that has pushed `delta` bytes. Its return address is above them.
pub(super) fn rule_of_delta(delta: i32) -> GoRule {
    match u32::try_from(delta) {
        Ok(delta) if delta % 8 == 0 => GoRule::StackPointer(delta + 8),
        _ => GoRule::Unknown,
    }
}
