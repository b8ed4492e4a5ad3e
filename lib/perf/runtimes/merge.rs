//! Merges script frames into the native stack.
//!
//! An interpreter runs script functions in a loop. Each activation of the loop is one native frame, and runs a group of
//! script frames: those up to the next one that is the outermost of its loop. CPython from 3.11 on tells which native frame a loop
//! is: a thread switches between greenlets and between interpreters, each of which has script frames of its own, so that
//! loops further out may be of others. With other interpreters, groups and loops are paired from the root on. Only the
//! innermost may lack its partner: the loop has just been entered, or is about to be left.

use std::ops::Range;

use super::interpreter::{Place, ScriptFrame};
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

/// A stack of native and script frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The frames, innermost first.
    pub frames: Vec<MergedFrame>,
    /// True if the callers of the outermost frame are not known: the native frames further out run functions of another greenlet
    /// or interpreter.
    pub is_cut: bool,
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
    /// The places of the variables of loops, of those that end at the outermost frames in their order. Empty if these frames tell
    /// their native frames, or if nothing does.
    pub loops: &'a [u64],
}

/// Merges frames, innermost first. `None` if the two stacks do not match.
///
/// The interpreter's own frames are left out where script frames tell more: everywhere but above the innermost script
/// frame, where they show what that function does. Compiled script functions are left out everywhere: they have script frames,
/// which are above the interpreter's functions that called them. `keep_interpreter` keeps all of them. If one of the stacks is
/// cut before its root, they can be paired only by places: otherwise, the script frames follow the native frames up to the
/// innermost loop. `is_placed` says that the outermost frames of loops tell their native frames.
pub fn merge(
    natives: &[NativeKind],
    is_native_complete: bool,
    scripts: ScriptStack<'_>,
    is_placed: bool,
    keep_interpreter: bool,
) -> Option<Merged> {
    let groups = split_groups(scripts.frames);
    if groups.is_empty() {
        return None;
    }
    let loops: Vec<usize> = (0..natives.len()).filter(|index| natives[*index] == NativeKind::Loop).collect();
    let known_places = if is_placed && scripts.cut.is_none() { find_places(&groups, &loops, scripts) } else { None };
    if scripts.cut.is_some() || !is_native_complete && known_places.is_none() {
        let first = loops.get(usize::from(scripts.is_entering)).copied().unwrap_or(natives.len());
        let compiled = natives[..first].iter().position(|kind| *kind == NativeKind::Compiled);
        let shown = compiled.filter(|_| !keep_interpreter).unwrap_or(first);
        let natives = (0..shown).map(MergedFrame::Native);
        let frames = natives.chain((0..scripts.frames.len()).map(MergedFrame::Script)).collect();
        return Some(Merged { frames, is_cut: false });
    }
    let places = match is_placed {
        true => known_places.or_else(|| pair_all(groups.len(), &loops, scripts.is_entering))?,
        false => pair_from_root(groups.len(), &loops, scripts.is_entering)?,
    };
    let mut merged = Vec::with_capacity(natives.len() + scripts.frames.len());
    let ends_here = !is_native_complete || places.len() < groups.len();
    let mut pending = groups.into_iter().zip(places).peekable();
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
        let mut is_empty = true;
        while let Some((group, _)) = pending.next_if(|(_, place)| *place == index) {
            merged.extend(group.map(MergedFrame::Script));
            is_empty = false;
        }
        is_below_script |= !is_empty;
        if keep_interpreter || is_empty {
            merged.push(MergedFrame::Native(index));
        }
        if pending.peek().is_none() && (ends_here || loops.last() != Some(&index)) {
            // A greenlet has only a part of the native stack: behind it are the functions that run by now, not those that were
            // there when it began. A coroutine in C has a stack of its own.
            return Some(Merged { frames: merged, is_cut: true });
        }
    }
    merged.extend(pending.flat_map(|(group, _)| group).map(MergedFrame::Script));
    Some(Merged { frames: merged, is_cut: false })
}

/// Returns the native frames of groups, innermost first, as far as the outermost frames of their loops tell. `None` if that of the
/// first one does not.
fn find_places(groups: &[Range<usize>], loops: &[usize], scripts: ScriptStack<'_>) -> Option<Vec<usize>> {
    let mut places = Vec::with_capacity(groups.len());
    for group in groups {
        let frame = scripts.frames[group.end - 1];
        let is_outer = |place: &usize| places.last().is_none_or(|last| last < place);
        match frame.place_of_loop() {
            Place::At(place) if is_outer(&place) && loops.contains(&place) => places.push(place),
            Place::From(first) => {
                let outer: Vec<usize> =
                    loops.iter().copied().filter(|place| *place >= first && is_outer(place)).collect();
                if outer.len() == groups.len() - places.len() {
                    places.extend(outer);
                }
                break;
            }
            _ => break,
        }
    }
    (!places.is_empty()).then_some(places)
}

/// Pairs groups with as many loops. `is_entering` says that the innermost loop has no group.
fn pair_all(groups: usize, loops: &[usize], is_entering: bool) -> Option<Vec<usize>> {
    let loops = loops.get(usize::from(is_entering)..)?;
    (loops.len() == groups).then(|| loops.to_vec())
}

/// Pairs groups with loops from the root on. The innermost loop may have no group, or the innermost group no loop.
fn pair_from_root(groups: usize, loops: &[usize], is_entering: bool) -> Option<Vec<usize>> {
    let groups = groups + usize::from(is_entering);
    let mut places = match loops.len().checked_sub(groups) {
        Some(empty @ (0 | 1)) => loops[empty..].to_vec(),
        // The function of the group is about to be called, or has returned.
        None if loops.len() + 1 == groups => {
            let first = loops.first().copied().unwrap_or(usize::MAX);
            [&[first], loops].concat()
        }
        _ => return None,
    };
    if is_entering {
        places.remove(0);
    }
    Some(places)
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
    use super::super::interpreter::FROM_NATIVE;
    use super::{MergedFrame, NativeKind, ScriptFrame, ScriptStack, StopReason, merge};

    /// Merges stacks that are written innermost first: natives as `L` for a loop, `i` for another function of the
    /// interpreter, `j` for a compiled function and `c` for others, scripts as letters, with `|` behind the outermost of a
    /// loop. Returns the names in the same form.
    fn merged(natives: &str, scripts: &str, options: &str) -> Option<String> {
        merged_at(natives, scripts, None, options)
    }

    /// The same for an interpreter that places its loops: `places` are the indexes of the native frames of the groups.
    fn merged_at(natives: &str, scripts: &str, places: Option<&[u16]>, options: &str) -> Option<String> {
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
            native: u16::MAX,
        });
        let mut frames: Vec<ScriptFrame> = frames.collect();
        let outermost = frames.iter_mut().filter(|frame| frame.is_outermost);
        outermost.zip(places.into_iter().flatten()).for_each(|(frame, place)| frame.native = *place);
        let [is_cut, is_entering, is_truncated, keeps_interpreter] =
            ["cut", "entering", "truncated", "keep"].map(|option| options.contains(option));
        let cut = is_cut.then_some(StopReason::TooDeep);
        let stack = ScriptStack { frames: &frames, cut, is_entering, loops: &[] };
        let found = merge(&kinds, !is_truncated, stack, places.is_some(), keeps_interpreter)?;
        let end = found.is_cut.then_some('?');
        let names = found.frames.into_iter().map(|frame| match frame {
            MergedFrame::Native(index) => natives.as_bytes()[index] as char,
            MergedFrame::Script(index) => letters[names[index]],
        });
        Some(names.chain(end).collect())
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
    fn loops_that_are_placed_have_their_frames() {
        assert_eq!(merged_at("ciLiciLic", "AB|C|", Some(&[2, 6]), "").unwrap(), "ciABcCc");
        // Another greenlet or interpreter runs the loops further out.
        assert_eq!(merged_at("ciLicLiL", "AB|", Some(&[2]), "").unwrap(), "ciAB?");
        assert_eq!(merged_at("LcLL", "A|B|", Some(&[0, 2]), "keep").unwrap(), "ALcBL?");
        assert_eq!(merged_at("LicL", "A|", Some(&[0]), "").unwrap(), "A?");
        // A coroutine has a stack of its own: that of the outer loop is another one.
        assert_eq!(merged_at("cLic", "AB|C|", Some(&[1, u16::MAX]), "").unwrap(), "cAB?");
        assert_eq!(merged_at("ciLicLic", "AB|", Some(&[2]), "truncated").unwrap(), "ciAB?");
        assert_eq!(merged_at("LicLi", "A|B|", Some(&[0, 3]), "truncated").unwrap(), "AcB?");
        // The BPF program walked two frames: the innermost loop is none of those of these groups.
        assert_eq!(merged_at("LcLicL", "A|B|", Some(&[FROM_NATIVE | 1; 2]), "").unwrap(), "LcAcB");
        assert_eq!(
            merged_at("LcLicL", "A|B|", Some(&[0, FROM_NATIVE | 1]), "").unwrap(),
            "A?",
            "one of two is another greenlet's"
        );
        // The innermost loop has just begun.
        assert_eq!(merged_at("LicL", "A|", Some(&[3]), "").unwrap(), "LicA");
    }

    #[test]
    fn loops_that_are_not_placed_are_paired_only_if_all_are() {
        let unknown = Some(&[u16::MAX; 2][..]);
        assert_eq!(merged_at("LcL", "A|B|", unknown, "").unwrap(), "AcB");
        assert_eq!(merged_at("LcLcL", "A|B|", unknown, "entering").unwrap(), "LcAcB");
        assert_eq!(merged_at("LcLcL", "A|B|", unknown, ""), None);
        assert_eq!(merged_at("LcL", "A|B|", Some(&[1, 2]), "").unwrap(), "AcB", "1 is no loop");
        assert_eq!(merged_at("LcL", "A|B|", Some(&[2, 2]), "").unwrap(), "LcA?", "only one of them is there");
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
