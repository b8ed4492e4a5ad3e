//! The methods that a compiled method contains at an instruction: those that were inlined there, and itself.
//!
//! The compiler leaves a row for each instruction at which a thread may stop: its scope is a bytecode of a method, and the
//! scope that called it (`code/pcDesc.hpp` and `code/scopeDesc.cpp` of the JDK).

use super::compressed::Compressed;
use super::layout::{DebugPlaces, Scopes};
use crate::perf::runtimes::interpreter::Memory;

/// A row of an instruction: its offset in the code, that of its scope, and 8 bytes more.
const ROW: usize = 16;

/// Limits of what is read.
const MAX_ROWS: u64 = 1 << 16;
const MAX_SCOPE: usize = 16;
const MAX_DEPTH: usize = 256;

/// A method, and the bytecode that it runs; negative before its first.
pub(super) type Activation = (u64, i32);

/// Returns the methods at an offset in the code of a blob, innermost first. The last one is the compiled method. `None` if
/// the compiler has left no row there.
pub(super) fn find_activations(
    places: &DebugPlaces,
    memory: Memory,
    blob: u64,
    offset: i32,
) -> Option<Vec<Activation>> {
    let base = places.base.map_or(Some(blob), |place| memory.field(blob, place))?;
    let (pcs, end) = (offset_field(memory, blob, places.pcs)?, offset_field(memory, blob, places.pcs_end)?);
    let count = (end.checked_sub(pcs)? / ROW as u64).min(MAX_ROWS);
    let rows = memory.bytes(base.checked_add(pcs)?, count as usize * ROW)?;
    let mut scope = find_scope(&rows, offset)?;
    let scopes = match places.scopes {
        Scopes::Pointer(place) => memory.field(blob, place)?,
        Scopes::Offset(place) => base.checked_add(offset_field(memory, blob, place)?)?,
    };
    let metadata = places.metadata_base.map_or(Some(blob), |place| memory.field(blob, place))?;
    let metadata = metadata.checked_add(offset_field(memory, blob, places.metadata)?)?;
    let mut found = Vec::new();
    while scope != 0 {
        if found.len() >= MAX_DEPTH {
            return None;
        }
        let mut bytes = [0; MAX_SCOPE];
        let read = (memory.read)(memory.pid, scopes.checked_add(scope.into())?, &mut bytes);
        let mut numbers = Compressed::new(&bytes[..read], places.excluded);
        let (sender, method, bytecode) = (numbers.unsigned()?, numbers.unsigned()?, numbers.unsigned()?);
        let index = u64::from(method.checked_sub(1)?);
        found.push((memory.field(metadata, 8 * index)?, bytecode.cast_signed() - 1));
        scope = sender;
    }
    Some(found)
}

/// Reads a field of 4 bytes, which contains an offset.
fn offset_field(memory: Memory, blob: u64, place: u64) -> Option<u64> {
    memory.field(blob, place).map(|word| u64::from(word as u32))
}

/// Returns the scope of the first row from an offset on.
fn find_scope(rows: &[u8], offset: i32) -> Option<u32> {
    let mut rows = rows.chunks_exact(ROW).map_while(|row| {
        let (start, rest) = row.split_first_chunk()?;
        Some((i32::from_le_bytes(*start), u32::from_le_bytes(*rest.first_chunk()?)))
    });
    rows.find(|(start, _)| *start >= offset).map(|(_, scope)| scope)
}
