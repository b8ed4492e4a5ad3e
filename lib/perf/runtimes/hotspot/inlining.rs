//! The methods that a compiled method contains at an instruction: those that were inlined there, and itself.
//!
//! The compiler leaves a row for each instruction at which a thread may stop: its scope is a bytecode of a method, and the
//! scope that called it (`code/pcDesc.hpp` and `code/scopeDesc.cpp` of the JDK).

use super::compressed::Compressed;
use super::layout::{DebugPlaces, Place};
use super::next_rows::find_next_scopes;
use crate::perf::runtimes::interpreter::Memory;

/// A row of an instruction: its offset in the code, that of its scope, and 8 bytes more.
const ROW: usize = 16;

/// Limits of what is read.
const MAX_ROWS: u64 = 1 << 16;
const MAX_SCOPE: usize = 16;
const MAX_DEPTH: usize = 256;

/// The number of bytes of code that are read before an instruction, and from it on.
const CODE_AROUND: i32 = 4096;

/// A method, and the bytecode that it runs; negative before its first.
pub(super) type Activation = (u64, i32);

/// Returns the methods at an offset in the code of a blob, innermost first. The last one is the compiled method. `None` if
/// the compiler has left no row there.
///
/// A row tells of its own instruction alone, unless all instructions have rows (`-XX:+DebugNonSafepoints`): then of those before
/// it, too. Of others, those methods are returned that all rows have in common to which the instruction leads, if
/// [`find_next_scopes`] finds them. Methods that they have inlined may be missing.
pub(super) fn find_activations(
    places: &DebugPlaces,
    memory: Memory,
    blob: u64,
    offset: i32,
    has_all_rows: bool,
) -> Option<Vec<Activation>> {
    let base = places.base.map_or(Some(blob), |place| memory.field(blob, place))?;
    let (pcs, end) = (offset_field(memory, blob, places.pcs)?, offset_field(memory, blob, places.pcs_end)?);
    let count = (end.checked_sub(pcs)? / ROW as u64).min(MAX_ROWS);
    let rows: Vec<Row> = read_rows(&memory.bytes(base.checked_add(pcs)?, count as usize * ROW)?);
    let next = rows.iter().find(|row| row.start >= offset)?;
    let read = |scope| read_scope(places, memory, blob, base, scope);
    if has_all_rows || next.start == offset {
        return read(next.scope);
    }
    // The compiled method itself runs in any case. The first and the last row have no scope.
    let Some(any) = rows.iter().find(|row| row.scope != 0) else { return Some(Vec::new()) };
    let own = read(any.scope)?.last().copied().map(|(method, _)| vec![(method, -1)])?;
    let Some(scopes) = next_scopes(places, memory, blob, offset, &rows) else { return Some(own) };
    let chains = scopes.into_iter().filter(|scope| *scope != 0).map(read).collect::<Option<Vec<_>>>()?;
    Some(chains.into_iter().reduce(|common, chain| common_activations(common, &chain)).unwrap_or(own))
}

/// Returns the scopes of the rows to which an instruction leads. `None` if its code cannot be followed.
fn next_scopes(places: &DebugPlaces, memory: Memory, blob: u64, offset: i32, rows: &[Row]) -> Option<Vec<u32>> {
    let code = match places.code {
        Place::Pointer(place) => memory.field(blob, place)?,
        Place::Offset(place) => blob.checked_add(offset_field(memory, blob, place)?)?,
    };
    let start = (offset - CODE_AROUND).max(0);
    let mut bytes = vec![0; 2 * CODE_AROUND as usize];
    let read = (memory.read)(memory.pid, code.checked_add(u64::from(start.cast_unsigned()))?, &mut bytes);
    let scope_of = |at| rows.binary_search_by_key(&at, |row| row.start).ok().map(|index| rows[index].scope);
    find_next_scopes(&bytes[..read], start, offset, scope_of)
}

/// Returns the methods that are in both lists, from the outermost on.
fn common_activations(mut methods: Vec<Activation>, others: &[Activation]) -> Vec<Activation> {
    let mut common = 0;
    for (method, other) in methods.iter().rev().zip(others.iter().rev()) {
        if method.0 != other.0 {
            break;
        }
        common += 1;
        // Another call may be of another method.
        if method.1 != other.1 {
            break;
        }
    }
    methods.drain(..methods.len() - common);
    methods
}

/// Reads the methods of a scope, innermost first.
fn read_scope(places: &DebugPlaces, memory: Memory, blob: u64, base: u64, mut scope: u32) -> Option<Vec<Activation>> {
    let scopes = match places.scopes {
        Place::Pointer(place) => memory.field(blob, place)?,
        Place::Offset(place) => base.checked_add(offset_field(memory, blob, place)?)?,
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

/// A row: the offset of an instruction, and the scope there; 0 if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    start: i32,
    scope: u32,
}

fn read_rows(rows: &[u8]) -> Vec<Row> {
    let word = |row: &[u8], at: usize| row[at..at + 4].try_into().map(u32::from_le_bytes).unwrap_or_default();
    rows.chunks_exact(ROW).map(|row| Row { start: word(row, 0).cast_signed(), scope: word(row, 4) }).collect()
}

#[cfg(test)]
mod tests {
    use super::common_activations;

    #[test]
    fn keeps_what_all_rows_tell() {
        // Methods with their bytecodes, innermost first.
        let common = |methods: &[_], others: &[_]| common_activations(methods.to_vec(), others);
        assert_eq!(common(&[(1, 9)], &[(1, 3)]), [(1, 9)]);
        assert_eq!(common(&[(2, 0), (1, 9)], &[(1, 3)]), [(1, 9)]);
        assert_eq!(common(&[(1, 9)], &[(2, 0), (1, 9)]), [(1, 9)]);
        assert_eq!(common(&[(2, 7), (1, 9)], &[(2, 4), (1, 9)]), [(2, 7), (1, 9)]);
        // Another call of the same method.
        assert_eq!(common(&[(2, 7), (1, 9)], &[(2, 4), (1, 5)]), [(1, 9)]);
    }
}
