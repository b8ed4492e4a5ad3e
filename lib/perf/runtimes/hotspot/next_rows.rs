//! The rows of the compiler's records to which an instruction of compiled code leads.
//!
//! Few instructions have a row. The next ones in the control flow tell what is active better than those at the nearest addresses:
//! the compiler moves code, and code that was inlined may have no rows at all.

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use rustc_hash::FxHashSet;

/// The most instructions that are followed.
const MAX_INSTRUCTIONS: usize = 500;

/// Follows all paths from an offset in the code up to the first row on each, and returns the scopes of these rows. `code` begins
/// at the offset `start`; `scope_of` returns the scope of the row at an offset. `None` if there are too many instructions, or code
/// that is not known, or if a path leaves the method without a row: then only the rows of a loop with the offset tell what is
/// active there.
///
/// The row of a call is behind it, those of other instructions are at them.
pub(super) fn find_next_scopes(
    code: &[u8],
    start: i32,
    offset: i32,
    scope_of: impl Fn(i32) -> Option<u32>,
) -> Option<Vec<u32>> {
    let paths = Paths { code, start };
    let mut scopes = Vec::new();
    let mut rows = Vec::new();
    let is_left = paths.follow(vec![offset], |at| {
        let Some(scope) = scope_of(at) else { return false };
        scopes.push(scope);
        rows.push(at);
        true
    })?;
    if is_left && !scopes.is_empty() {
        let mut is_loop = false;
        paths.follow(rows, |at| {
            is_loop |= at == offset;
            is_loop
        })?;
        return is_loop.then_some(scopes);
    }
    Some(scopes)
}

/// The code in which paths are followed, which begins at the offset `start`.
struct Paths<'a> {
    code: &'a [u8],
    start: i32,
}

impl Paths<'_> {
    /// Follows all paths from offsets, each up to one at which `is_end` is true. Returns true if a path leaves the method. `None`
    /// if there are too many instructions, or code that is not known.
    fn follow(&self, mut pending: Vec<i32>, mut is_end: impl FnMut(i32) -> bool) -> Option<bool> {
        let (mut followed, mut is_left) = (FxHashSet::default(), false);
        while let Some(mut at) = pending.pop() {
            while followed.insert(at) {
                if followed.len() > MAX_INSTRUCTIONS {
                    return None;
                }
                if is_end(at) {
                    break;
                }
                let index = usize::try_from(at.checked_sub(self.start)?).ok()?;
                let bytes = self.code.get(index..).filter(|bytes| !bytes.is_empty())?;
                let mut decoder = Decoder::with_ip(64, bytes, u64::from(at.cast_unsigned()), DecoderOptions::NONE);
                let instruction = decoder.decode();
                if instruction.is_invalid() {
                    return None;
                }
                let target = (instruction.near_branch_target() as u32).cast_signed();
                let is_inside = (self.start..self.start.saturating_add(self.code.len() as i32)).contains(&target);
                at = at.checked_add(instruction.len() as i32)?;
                match instruction.flow_control() {
                    FlowControl::ConditionalBranch if is_inside => pending.push(target),
                    FlowControl::ConditionalBranch => return None,
                    FlowControl::UnconditionalBranch if is_inside => at = target,
                    // To another blob, too.
                    FlowControl::UnconditionalBranch | FlowControl::Return | FlowControl::IndirectBranch => {
                        is_left = true;
                        break;
                    }
                    FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => {}
                    _ => break,
                }
            }
        }
        Some(is_left)
    }
}

#[cfg(test)]
mod tests {
    use super::find_next_scopes;

    #[test]
    fn follows_all_paths_to_their_first_rows() {
        let code = [
            0x85, 0xc0, // 0: test eax, eax
            0x74, 0x06, // 2: je 10
            0xff, 0xd0, // 4: call rax
            0x90, 0x90, // 6: nop; nop
            0xeb, 0xf6, // 8: jmp 0
            0x90, // 10: nop
            0xc3, // 11: ret
        ];
        let find = |offset, rows: &[(i32, u32)]| {
            find_next_scopes(&code, 0, offset, |at| rows.iter().find(|(row, _)| *row == at).map(|(_, scope)| *scope))
        };
        // The row of a call is behind it.
        assert_eq!(find(0, &[(6, 1), (11, 2)]), Some(vec![1, 2]));
        assert_eq!(find(10, &[(6, 1), (11, 2)]), Some(vec![2]));
        assert_eq!(find(7, &[(6, 1), (11, 2)]), Some(vec![1, 2]));
        // A call without a row is passed, and a loop ends.
        assert_eq!(find(0, &[(11, 2)]), Some(vec![2]));
        assert_eq!(find(0, &[]), Some(vec![]));
        assert_eq!(find(12, &[]), None);
    }

    #[test]
    fn a_path_without_a_row_proves_nothing_outside_a_loop() {
        let code = [
            0x85, 0xc0, // 0: test eax, eax
            0x74, 0x06, // 2: je 10
            0xff, 0xd0, // 4: call rax
            0x90, // 6: nop
            0x75, 0xfb, // 7: jne 4
            0xc3, // 9: ret
            0xc3, // 10: ret
        ];
        let find = |offset| find_next_scopes(&code, 0, offset, |at| (at == 6).then_some(1));
        // Whether the call is reached is not known yet.
        assert_eq!(find(0), None);
        assert_eq!(find(4), Some(vec![1]));
        // The end of a loop: all that it leads to is the loop, or nothing.
        assert_eq!(find(7), Some(vec![1]));
        assert_eq!(find(9), Some(vec![]));
    }
}
