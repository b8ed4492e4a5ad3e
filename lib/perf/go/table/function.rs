//! A function of a Go program: its names, lines, inlined calls and stack deltas.

use std::ops::Range;

use super::layout::Version;
use super::{FunctionTable, read_string, read_u32};

/// The fields of a function's record that are read, after its address, as indices of 4-byte numbers.
mod field {
    pub const NAME: usize = 0;
    pub const STACK_DELTAS: usize = 3;
    pub const FILES: usize = 4;
    pub const LINES: usize = 5;
    pub const TABLE_COUNT: usize = 6;
    /// Since Go 1.16.
    pub const UNIT: usize = 7;
}

/// The index of the table that has the number of the innermost inlined call at each instruction
/// (`PCDATA_InlTreeIndex`).
const INLINED_CALL_INDEX: usize = 2;

/// The index of the data that have the inlined calls (`FUNCDATA_InlTree`), since Go 1.18.
const INLINED_CALLS: usize = 3;

/// The flags of a function.
mod flag {
    pub const TOP_FRAME: u8 = 1;
    pub const WRITES_STACK_POINTER: u8 = 2;
}

/// The functions that write the stack pointer, in programs of Go before 1.18.
const STACK_POINTER_WRITERS: &[&[u8]] = &[
    b"runtime.asmcgocall",
    b"runtime.cgocallback",
    b"runtime.cgocallback_gofunc",
    b"runtime.clone",
    b"runtime.gogo",
    b"runtime.mcall",
    b"runtime.morestack",
    b"runtime.nanotime",
    b"runtime.nanotime1",
    b"runtime.systemstack",
    b"runtime.walltime",
    b"runtime.walltime1",
    b"time.now",
];

/// A function of a Go program.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    pub(super) table: FunctionTable<'a>,
    /// The first address.
    pub start: u64,
    /// The address of the next function.
    pub end: u64,
    /// The offset of its record, after the address.
    pub(super) record: usize,
}

/// A call that the compiler inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlinedCall<'a> {
    /// The name of the called function.
    pub name: &'a [u8],
    /// An address of the calling function whose source line is that of the call.
    pub call_site: u64,
}

impl<'a> Function<'a> {
    /// Returns the name.
    pub fn name(&self) -> Option<&'a [u8]> {
        self.table.name(self.field(field::NAME)?)
    }

    /// True if the function is the outermost of its stack.
    pub fn is_top_frame(&self) -> bool {
        self.has_flag(flag::TOP_FRAME, &[b"runtime.goexit", b"runtime.mstart", b"runtime.rt0_go"])
    }

    /// True if the function writes the stack pointer, so that [`stack_deltas`](Self::stack_deltas) may be wrong.
    pub fn writes_stack_pointer(&self) -> bool {
        self.has_flag(flag::WRITES_STACK_POINTER, STACK_POINTER_WRITERS)
    }

    /// Returns how many bytes the function has pushed, for each of its instructions.
    pub fn stack_deltas(&self) -> Values<'a> {
        self.values(self.field(field::STACK_DELTAS))
    }

    /// Returns the source file and line of an instruction.
    pub fn source(&self, address: u64) -> Option<(&'a [u8], u32)> {
        let file = u32::try_from(self.values(self.field(field::FILES)).find(address)?).ok()?;
        let line = u32::try_from(self.values(self.field(field::LINES)).find(address)?).ok()?;
        let (table, layout) = (self.table, self.table.layout);
        let entry =
            |start: usize, index: u32| read_u32(table.bytes, start.checked_add((index as usize).checked_mul(4)?)?);
        let offset = match layout.version {
            Version::Go12 => entry(layout.files, file)?,
            // A file's number is that in its compilation unit.
            _ => entry(layout.units, self.field(field::UNIT)?.checked_add(file)?)?,
        };
        let base = if layout.version == Version::Go12 { 0 } else { layout.files };
        Some((read_string(table.bytes, base.checked_add(offset as usize)?)?, line))
    }

    /// Returns the innermost call that was inlined at an address. The table has these calls since Go 1.18.
    pub fn inlined_call(&self, address: u64) -> Option<InlinedCall<'a>> {
        if self.table_count()? <= INLINED_CALL_INDEX {
            return None;
        }
        let index = self.values(self.field(self.first_table() + INLINED_CALL_INDEX)).find(address)?;
        let (name, parent) = self.read_inlined_call(usize::try_from(index).ok()?)?;
        let call_site = self.start.checked_add(u64::from(parent))?;
        (call_site < self.end).then_some(InlinedCall { name: self.table.name(name)?, call_site })
    }

    /// True if the first inlined call is well-formed; `None` if nothing was inlined.
    pub(in crate::perf::go) fn has_valid_calls(&self) -> Option<bool> {
        self.inlined_calls()?;
        let is_valid = self.read_inlined_call(0).is_some_and(|(name, parent)| {
            self.table.is_start_of_name(name) && u64::from(parent) < self.end - self.start
        });
        Some(is_valid)
    }

    /// Reads an inlined call: the offset of its name, and the distance of the call from the function's start.
    fn read_inlined_call(&self, index: usize) -> Option<(u32, u32)> {
        // `struct inlinedCall`: the offsets of its name and its parent's instruction, and its size.
        let (name, parent, size) = if self.table.layout.version >= Version::Go120 { (4, 8, 16) } else { (12, 16, 20) };
        let start = self.inlined_calls()?.checked_add(index.checked_mul(size)?)?;
        let data = self.table.function_data;
        Some((read_u32(data, start.checked_add(name)?)?, read_u32(data, start.checked_add(parent)?)?))
    }

    /// Returns the offset of the inlined calls in the data of functions.
    fn inlined_calls(&self) -> Option<usize> {
        if self.table.layout.version < Version::Go118 || usize::from(self.tail()?[3]) <= INLINED_CALLS {
            return None;
        }
        let first_data = self.first_table().checked_add(self.table_count()?)?;
        let offset = self.field(first_data.checked_add(INLINED_CALLS)?)?;
        (offset != u32::MAX).then_some(offset as usize)
    }

    /// Returns the number of tables with a value for each instruction, besides those that all functions have.
    fn table_count(&self) -> Option<usize> {
        usize::try_from(self.field(field::TABLE_COUNT)?).ok()
    }

    /// True if the function has a flag. Tables before Go 1.18 have none: `names` has the functions with it.
    fn has_flag(&self, flag: u8, names: &[&[u8]]) -> bool {
        if self.table.layout.version >= Version::Go118 {
            return self.tail().is_some_and(|tail| tail[1] & flag != 0);
        }
        self.name().is_some_and(|name| names.contains(&name))
    }

    /// Returns the last bytes of the record: what the function is for the runtime, its flags, a pad, and the number of
    /// data.
    fn tail(&self) -> Option<[u8; 4]> {
        Some(self.field(self.first_table() - 1)?.to_le_bytes())
    }

    /// The index of the first field after the record, where the offsets of its tables are.
    fn first_table(&self) -> usize {
        match self.table.layout.version {
            Version::Go12 => 8,
            Version::Go116 | Version::Go118 => 9,
            Version::Go120 => 10,
        }
    }

    fn field(&self, index: usize) -> Option<u32> {
        read_u32(self.table.bytes, self.record.checked_add(index.checked_mul(4)?)?)
    }

    /// Returns the values of a table at an offset; 0 for none.
    fn values(&self, offset: Option<u32>) -> Values<'a> {
        let start = offset
            .filter(|offset| *offset > 0)
            .and_then(|offset| self.table.layout.values.checked_add(offset as usize));
        let bytes = start.and_then(|start| self.table.bytes.get(start..)).unwrap_or_default();
        Values {
            bytes,
            quantum: self.table.layout.quantum,
            address: self.start,
            end: self.end,
            value: -1,
            is_first: true,
        }
    }
}

/// A value for each instruction of a function: ranges of addresses, each with its value.
///
/// Each range is at least one byte long and ends within the function, so the number of ranges is bounded by its size.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    bytes: &'a [u8],
    quantum: u64,
    address: u64,
    end: u64,
    value: i32,
    is_first: bool,
}

impl Values<'_> {
    /// Returns the value at an address.
    pub fn find(mut self, address: u64) -> Option<i32> {
        self.find_map(|(range, value)| range.contains(&address).then_some(value))
    }

    /// Reads a number of 7 bits in each byte, the lowest first.
    fn read_varint(&mut self) -> Option<u32> {
        let mut number = 0;
        for shift in (0..32).step_by(7) {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

impl Iterator for Values<'_> {
    type Item = (Range<u64>, i32);

    fn next(&mut self) -> Option<Self::Item> {
        let change = self.read_varint()?;
        if change == 0 && !self.is_first {
            return None;
        }
        self.is_first = false;
        // The sign is in the lowest bit.
        self.value = self.value.wrapping_add((change >> 1).cast_signed() ^ -(change & 1).cast_signed());
        let size = u64::from(self.read_varint()?) * self.quantum;
        let start = self.address;
        self.address = start.saturating_add(size).min(self.end);
        (start < self.address).then_some((start..self.address, self.value))
    }
}
