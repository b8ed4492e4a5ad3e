//! Tells return addresses from other words of a stack.

use std::ops::Range;

use crate::perf::event::Address;
use crate::perf::mappings::Mapping;
use crate::perf::objects::object::Object;
use crate::perf::unwind::code_paths::{direct_call_target, ends_with_call};
use crate::perf::unwind::snapshot::ProcessSnapshot;
use crate::perf::unwind::stack::Stack;

/// The longest call instruction, in bytes.
const MAX_CALL: usize = 8;

/// The largest frame of generated code that is searched for other return addresses, in bytes.
pub(super) const MAX_FRAME: u64 = 1 << 16;

/// Returns a word as an address to which a function returns.
pub(super) fn return_address(value: u64) -> Address {
    Address { value, in_kernel: false, exact: false }
}

/// True if a word may be a return address: behind a call instruction of an ELF file, or anywhere in generated code.
/// Interpreters that are generated push addresses to which they return themselves.
pub(in crate::perf::unwind) fn is_return_address(snapshot: ProcessSnapshot<'_>, word: u64) -> bool {
    let Some(mapping) = snapshot.find_mapping(return_address(word)) else { return false };
    let is_elf = matches!(snapshot.objects.get(mapping.object), Object::Elf(_));
    !is_elf || read_before(snapshot, word, mapping).is_some_and(|bytes| ends_with_call(&bytes))
}

/// Returns true if a word in a range of the stack may be a return address; `None` if the range is too large, or not
/// known.
pub(super) fn has_return_address(
    snapshot: ProcessSnapshot<'_>,
    range: Range<u64>,
    stack: &mut Stack<'_>,
) -> Option<bool> {
    if range.end.checked_sub(range.start)? > MAX_FRAME {
        return None;
    }
    for address in (range.start.checked_next_multiple_of(8)?..range.end).step_by(8) {
        if is_return_address(snapshot, stack.read(address)?) {
            return Some(true);
        }
    }
    Some(false)
}

/// Reads the code before an address of a mapping; `None` if it cannot be read.
fn read_before(snapshot: ProcessSnapshot<'_>, address: u64, mapping: Mapping) -> Option<[u8; MAX_CALL]> {
    let start = address.checked_sub(MAX_CALL as u64)?;
    let Object::Elf(elf) = snapshot.objects.get(mapping.object) else {
        let mut bytes = [0; MAX_CALL];
        return (snapshot.read_generated_code(start, &mut bytes) == MAX_CALL).then_some(bytes);
    };
    let svma = elf.address_of_offset(start.wrapping_sub(mapping.start).wrapping_add(mapping.offset))?;
    elf.code_from(svma).first_chunk().copied()
}

/// Returns the target of the direct call before a return address.
pub(super) fn find_call_target(snapshot: ProcessSnapshot<'_>, word: u64) -> Option<u64> {
    let bytes = read_before(snapshot, word, snapshot.find_mapping(return_address(word))?)?;
    direct_call_target(&bytes, word)
}
