//! Merges script frames into the native stack.
//!
//! An interpreter runs script functions in a loop. Each activation of the loop is one native frame, and runs a group of
//! script frames: those up to the next one that is the outermost of its loop. Groups and loops are paired from the root
//! on. Only the innermost may lack its partner: the loop has just been entered, or is about to be left.

use std::ops::Range;

use super::interpreter::ScriptFrame;
use crate::perf::stop_reason::StopReason;

/// The part of a native frame in an interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeKind {
    /// It runs script functions.
    Loop,
    /// It is the function that calls the loop, or a compiled script function in its place.
    Entry,
    /// It is another function of the interpreter.
    Interpreter,
    /// It is code to which the interpreter has compiled a script function, and belongs to the loop that called it.
    Compiled,
    /// It does not belong to the interpreter.
    Other,
}

/// A frame of a merged stack, by its index in the native or script frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergedFrame {
    /// A native frame.
    Native(usize),
    /// A script frame.
    Script(usize),
}

/// The script frames of a stack, innermost first.
#[derive(Clone, Copy, Debug)]
pub struct ScriptStack<'a> {
    /// The frames of script functions.
    pub frames: &'a [ScriptFrame],
    /// The reason why the outermost frames are missing, if they are.
    pub cut: Option<StopReason>,
    /// True if the innermost loop is known to have no frame.
    pub is_entering: bool,
}

/// Merges frames, innermost first. `None` if the two stacks do not match.
///
/// The interpreter's own frames are left out where script frames tell more: everywhere but above the innermost script
/// frame, where they show what that function does. Compiled script functions are left out everywhere: they have script frames,
/// which are above the interpreter's functions that called them. `keep_interpreter` keeps all of them. If one of the stacks is
/// cut before its root, they cannot be paired: then the script frames follow the native frames up to the innermost loop.
pub fn merge(
    natives: &[NativeKind],
    is_native_complete: bool,
    scripts: ScriptStack<'_>,
    keep_interpreter: bool,
) -> Option<Vec<MergedFrame>> {
    let mut groups = split_groups(scripts.frames);
    if groups.is_empty() {
        return None;
    }
    let loops: Vec<usize> = (0..natives.len()).filter(|index| natives[*index] == NativeKind::Loop).collect();
    if scripts.is_entering {
        groups.insert(0, 0..0);
    }
    if !is_native_complete || scripts.cut.is_some() {
        let first = loops.get(usize::from(scripts.is_entering)).copied().unwrap_or(natives.len());
        let compiled = natives[..first].iter().position(|kind| *kind == NativeKind::Compiled);
        let shown = compiled.filter(|_| !keep_interpreter).unwrap_or(first);
        let natives = (0..shown).map(MergedFrame::Native);
        return Some(natives.chain((0..scripts.frames.len()).map(MergedFrame::Script)).collect());
    }
    if loops.len() == groups.len() + 1 {
        groups.insert(0, 0..0);
    }
    let has_pending_group = groups.len() == loops.len() + 1;
    if groups.len() != loops.len() && !has_pending_group {
        return None;
    }
    let mut merged = Vec::with_capacity(natives.len() + scripts.frames.len());
    let mut pending = groups.into_iter();
    // The group whose loop has not begun, or has ended.
    let mut extra = if has_pending_group { pending.next() } else { None };
    let mut is_below_script = false;
    for (index, kind) in natives.iter().enumerate() {
        if *kind != NativeKind::Loop {
            let is_kept = match kind {
                NativeKind::Other => true,
                NativeKind::Compiled => false,
                _ => !is_below_script,
            };
            is_below_script |= *kind == NativeKind::Compiled;
            if is_kept || keep_interpreter {
                merged.push(MergedFrame::Native(index));
            }
            continue;
        }
        let group = extra.take().into_iter().chain(pending.next()).collect::<Vec<Range<usize>>>();
        let is_empty = group.iter().all(Range::is_empty);
        is_below_script |= !is_empty;
        merged.extend(group.into_iter().flatten().map(MergedFrame::Script));
        if keep_interpreter || is_empty {
            merged.push(MergedFrame::Native(index));
        }
    }
    merged.extend(extra.into_iter().flatten().map(MergedFrame::Script));
    Some(merged)
}

/// Splits frames after those that are the outermost of a loop.
fn split_groups(frames: &[ScriptFrame]) -> Vec<Range<usize>> {
    let mut start = 0;
    let ends = frames.iter().enumerate().filter(|(_, frame)| frame.is_outermost).map(|(index, _)| index + 1);
    let mut groups: Vec<Range<usize>> = ends.map(|end| std::mem::replace(&mut start, end)..end).collect();
    if start < frames.len() {
        groups.push(start..frames.len());
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::{MergedFrame, NativeKind, ScriptFrame, ScriptStack, StopReason, merge};

    /// Merges stacks that are written innermost first: natives as `L` for a loop, `i` for another function of the
    /// interpreter, `j` for a compiled function and `c` for others, scripts as letters, with `|` behind the outermost of a
    /// loop. Returns the names in the same form.
    fn merged(natives: &str, scripts: &str, options: &str) -> Option<String> {
        let kinds: Vec<NativeKind> = natives
            .chars()
            .map(|native| match native {
                'L' => NativeKind::Loop,
                'i' => NativeKind::Interpreter,
                'j' => NativeKind::Compiled,
                _ => NativeKind::Other,
            })
            .collect();
        let letters: Vec<char> = scripts.chars().collect();
        let names: Vec<usize> = (0..letters.len()).filter(|index| letters[*index] != '|').collect();
        let frames = names.iter().map(|index| ScriptFrame {
            code: *index as u64,
            instruction: 0,
            first_line: 1,
            hash: 0,
            is_outermost: letters.get(index + 1) == Some(&'|'),
            native: 0,
        });
        let frames: Vec<ScriptFrame> = frames.collect();
        let [is_cut, is_entering, is_truncated, keeps_interpreter] =
            ["cut", "entering", "truncated", "keep"].map(|option| options.contains(option));
        let cut = is_cut.then_some(StopReason::TooDeep);
        let stack = ScriptStack { frames: &frames, cut, is_entering };
        let found = merge(&kinds, !is_truncated, stack, keeps_interpreter)?;
        let names = found.into_iter().map(|frame| match frame {
            MergedFrame::Native(index) => natives.as_bytes()[index] as char,
            MergedFrame::Script(index) => letters[names[index]],
        });
        Some(names.collect())
    }

    #[test]
    fn each_loop_is_replaced_by_its_frames() {
        assert_eq!(merged("ciLiciLic", "AB|C|", "").unwrap(), "ciABcCc");
        assert_eq!(merged("ciLiciLic", "AB|C|", "keep").unwrap(), "ciABLiciCLic");
    }

    #[test]
    fn the_innermost_loop_may_have_no_frame() {
        assert_eq!(merged("iLiLc", "A|", "").unwrap(), "iLiAc");
        assert_eq!(merged("iLiLc", "A|", "entering").unwrap(), "iLiAc");
    }

    #[test]
    fn the_innermost_frames_may_have_no_loop() {
        assert_eq!(merged("iiLc", "A|B|", "").unwrap(), "iiABc");
        assert_eq!(merged("ic", "A|", "").unwrap(), "icA");
    }

    #[test]
    fn script_frames_stand_for_compiled_functions() {
        assert_eq!(merged("cijjLicL", "AB|C|", "").unwrap(), "ciABcC");
        assert_eq!(merged("cijijiLicL", "AB|C|", "").unwrap(), "ciABcC");
        assert_eq!(merged("cijijiLicL", "AB|C|", "keep").unwrap(), "cijijiABLicCL");
        assert_eq!(merged("jjL", "AB|", "").unwrap(), "AB");
        assert_eq!(merged("jL", "A|", "keep").unwrap(), "jAL");
        assert_eq!(merged("jL", "AB", "truncated").unwrap(), "AB");
    }

    #[test]
    fn stacks_that_do_not_match_are_not_merged() {
        for (natives, scripts) in [("LcLcL", "A|"), ("L", "A|B|C|"), ("LL", "")] {
            assert_eq!(merged(natives, scripts, ""), None, "{natives} {scripts}");
        }
    }

    #[test]
    fn a_cut_stack_is_not_paired() {
        assert_eq!(merged("cLicL", "AB|C|D|", "truncated").unwrap(), "cABCD");
        assert_eq!(merged("cijiL", "AB|C|D|", "truncated").unwrap(), "ciABCD");
        assert_eq!(merged("cLicLcL", "AB", "cut").unwrap(), "cAB");
        assert_eq!(merged("cLicL", "A|B|", "truncated entering").unwrap(), "cLicAB");
    }
}
