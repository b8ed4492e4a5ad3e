//! A table of the BPF program in parts, each of which is allocated when it is needed.

use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use aya::Ebpf;
use aya::maps::{Array, ArrayOfMaps, IterableMap as _, MapData};

use super::errors::BoxError;
use super::maps::{map_file, take_map};
use crate::parallel;
use crate::record::sys::{MappedArray, update_file_map};

/// Numbers of the table that an entry of a part begins with.
const CHUNK_SIZE: usize = 1024;

/// Numbers of the next entry that an entry ends with, so that the program finds numbers that belong together in one.
const OVERLAP: usize = 256;

const ENTRY_SIZE: usize = CHUNK_SIZE + OVERLAP;

/// Numbers in a part, which has 1.25 MiB.
const PART_SIZE: usize = 1 << 18;
const PART_ENTRIES: usize = PART_SIZE / CHUNK_SIZE;

/// Lets a process map the part into its memory.
const BPF_F_MMAPABLE: u32 = 1 << 10;

type Part = Array<MapData, [u32; ENTRY_SIZE]>;

/// A table of numbers.
pub(super) struct PartedTable {
    /// The map of the parts.
    parts: OwnedFd,
    max_parts: usize,
    mapped: Vec<MappedArray<u32>>,
}

/// A part that is not in its table yet.
struct NewPart {
    table: usize,
    index: u32,
    part: Part,
    mapped: MappedArray<u32>,
}

/// Allocates the parts of tables before an index that are missing.
///
/// For each part, the kernel waits until all CPUs have left the programs that they run. It waits for all parts at once if it is
/// asked at once.
pub(super) fn reserve<const N: usize>(tables: [(&mut PartedTable, usize); N]) -> Result<(), BoxError> {
    let mut new_parts = Vec::new();
    for (number, (table, end)) in tables.iter().enumerate() {
        for index in table.mapped.len()..end.div_ceil(PART_SIZE) {
            new_parts.push(NewPart::create(number, u32::try_from(index)?)?);
        }
    }
    let set = |new: &NewPart| {
        let parts = tables[new.table].0.parts.as_fd();
        update_file_map(parts, new.index, new.part.map().fd().as_fd().as_raw_fd())
    };
    parallel::map(&new_parts, new_parts.len(), set).into_iter().collect::<Result<(), _>>()?;
    for new in new_parts {
        tables[new.table].0.mapped.push(new.mapped);
    }
    Ok(())
}

impl NewPart {
    fn create(table: usize, index: u32) -> Result<Self, BoxError> {
        let part = Part::create(PART_ENTRIES as u32, BPF_F_MMAPABLE)?;
        let mapped = MappedArray::open(part.map().fd().as_fd(), PART_ENTRIES * ENTRY_SIZE)?;
        Ok(Self { table, index, part, mapped })
    }
}

impl PartedTable {
    /// Takes a table, of which no part is allocated, out of the program.
    pub(super) fn take(program: &mut Ebpf, name: &str) -> Result<Self, BoxError> {
        let map = take_map(program, name)?;
        let max_parts = ArrayOfMaps::<_, Part>::try_from(&map)?.len() as usize;
        Ok(Self { parts: map_file(&map)?, max_parts, mapped: Vec::new() })
    }

    /// Returns the size of the table if all of its parts are allocated, in numbers.
    pub(super) fn capacity(&self) -> usize {
        self.max_parts * PART_SIZE
    }

    /// Writes numbers from an index on into the parts that are allocated.
    ///
    /// # Panics
    /// Panics if they do not fit.
    pub(super) fn write(&mut self, first: usize, numbers: &[u32]) {
        for Piece { entry, place, numbers: piece } in pieces(first, numbers.len()) {
            let start = entry % PART_ENTRIES * ENTRY_SIZE + place;
            self.mapped[entry / PART_ENTRIES].write(start, numbers[piece].iter().copied());
        }
    }
}

/// Numbers that are next to each other in an entry.
struct Piece {
    entry: usize,
    /// The place of the first one in the entry.
    place: usize,
    /// Which of the numbers they are.
    numbers: Range<usize>,
}

/// Returns the pieces of numbers from an index of the table on. Some numbers are in two entries.
fn pieces(first: usize, count: usize) -> Vec<Piece> {
    let (mut pieces, mut done) = (Vec::new(), 0);
    while done < count {
        let (entry, place) = ((first + done) / CHUNK_SIZE, (first + done) % CHUNK_SIZE);
        let end = count.min(done + CHUNK_SIZE - place);
        if place < OVERLAP && entry > 0 {
            let numbers = done..end.min(done + OVERLAP - place);
            pieces.push(Piece { entry: entry - 1, place: CHUNK_SIZE + place, numbers });
        }
        pieces.push(Piece { entry, place, numbers: done..end });
        done = end;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_SIZE, ENTRY_SIZE, OVERLAP, Piece, pieces};

    #[test]
    fn numbers_that_belong_together_are_in_one_entry() {
        let mut entries = vec![[0; ENTRY_SIZE]; 8];
        let mut first = 1;
        for count in [300, 700, 90, 4000, 1, 255, 257, 1024] {
            for Piece { entry, place, numbers } in pieces(first, count) {
                numbers.enumerate().for_each(|(offset, number)| entries[entry][place + offset] = first + number);
            }
            first += count;
        }
        for start in 1..first - OVERLAP {
            let entry = &entries[start / CHUNK_SIZE][start % CHUNK_SIZE..][..OVERLAP];
            assert!(entry.iter().copied().eq(start..start + OVERLAP), "{start}: {entry:?}");
        }
    }
}
