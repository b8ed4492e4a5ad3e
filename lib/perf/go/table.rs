//! Reads the function table of a Go program.
//!
//! The format is that of Go's `src/runtime/symtab.go`, `src/runtime/symtabinl.go` and
//! `src/cmd/link/internal/ld/pcln.go`. The program is little-endian. All numbers in the table are checked before use.

use std::ops::Range;

/// The longest name that is read, in bytes.
const MAX_NAME: usize = 4096;

/// The format of a table, named by the first version of Go that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    Go12,
    Go116,
    Go118,
    Go120,
}

/// The places of the parts of a table, as offsets from its start.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    version: Version,
    pointer_size: usize,
    /// The unit of distances between instructions, in bytes.
    quantum: u64,
    function_count: usize,
    /// The address to which the addresses of functions are relative.
    text: u64,
    functions: usize,
    names: usize,
    units: usize,
    files: usize,
    values: usize,
}

impl Layout {
    /// Number of bytes at the start of a table that identify it: a magic number, two zeros, the quantum and the size of
    /// pointers.
    const MAGIC_SIZE: usize = 8;

    /// Reads the header of a table. `None` if it is not the table of a version that is known.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let [magic, 0xff, 0xff, 0xff, 0, 0, quantum @ (1 | 2 | 4), pointer_size @ (4 | 8)] =
            *bytes.first_chunk::<8>()?
        else {
            return None;
        };
        let version = match magic {
            0xfb => Version::Go12,
            0xfa => Version::Go116,
            0xf0 => Version::Go118,
            0xf1 => Version::Go120,
            _ => return None,
        };
        let pointer_size = usize::from(pointer_size);
        let word = |index: usize| read_pointer(bytes, Self::MAGIC_SIZE + index * pointer_size, pointer_size);
        let offset = |index: usize| usize::try_from(word(index)?).ok();
        let mut layout = Self {
            version,
            pointer_size,
            quantum: u64::from(quantum),
            function_count: offset(0)?,
            text: 0,
            functions: Self::MAGIC_SIZE + pointer_size,
            names: 0,
            units: 0,
            files: 0,
            values: 0,
        };
        if version > Version::Go12 {
            // After the numbers of functions and files, and since Go 1.18 the address of the text.
            let first = if version >= Version::Go118 { 3 } else { 2 };
            layout.text = if first == 3 { word(2)? } else { 0 };
            layout.names = offset(first)?;
            layout.units = offset(first + 1)?;
            layout.files = offset(first + 2)?;
            layout.values = offset(first + 3)?;
            layout.functions = offset(first + 4)?;
        }
        // The last entry has the end of the last function alone.
        let size = layout.function_count.checked_mul(layout.entry_size())?.checked_add(layout.address_size())?;
        let end = layout.functions.checked_add(size).filter(|end| *end <= bytes.len())?;
        if version == Version::Go12 {
            layout.files = read_u32(bytes, end)? as usize;
        }
        (layout.function_count > 0).then_some(layout)
    }

    /// Returns the address of the text; 0 if the table does not say it.
    pub(super) fn text(&self) -> u64 {
        self.text
    }

    /// Returns the layout for functions whose addresses are relative to `text`.
    pub(super) fn with_text(self, text: u64) -> Self {
        Self { text, ..self }
    }

    /// True if the addresses of functions are relative to the address of the text.
    pub(super) fn is_relative(&self) -> bool {
        self.version >= Version::Go118
    }

    /// Returns the number of functions and the offset of their list.
    pub(super) fn functions(&self) -> (usize, usize) {
        (self.function_count, self.functions)
    }

    /// The size of an address in the list of functions.
    fn address_size(&self) -> usize {
        if self.is_relative() { 4 } else { self.pointer_size }
    }

    fn entry_size(&self) -> usize {
        2 * self.address_size()
    }
}

/// A function table.
#[derive(Clone, Copy, Debug)]
pub struct FunctionTable<'a> {
    bytes: &'a [u8],
    /// The data of functions that the garbage collector and tracebacks need, such as inlined calls.
    function_data: &'a [u8],
    layout: Layout,
}

impl<'a> FunctionTable<'a> {
    pub(super) fn new(bytes: &'a [u8], function_data: &'a [u8], layout: Layout) -> Self {
        Self { bytes, function_data, layout }
    }

    /// Returns the function at an address.
    pub fn find(&self, address: u64) -> Option<Function<'a>> {
        let (mut low, mut high) = (0, self.layout.function_count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.start_of(middle)? <= address { low = middle + 1 } else { high = middle }
        }
        self.function(low.checked_sub(1)?).filter(|function| address < function.end)
    }

    /// Returns all functions in the order of their addresses. Those that are out of order are left out.
    pub fn functions(&self) -> impl Iterator<Item = Function<'a>> + use<'a> {
        let (table, mut last_end) = (*self, 0);
        (0..self.layout.function_count).filter_map(move |index| table.function(index)).filter(move |function| {
            let is_in_order = function.start >= last_end;
            last_end = last_end.max(function.end);
            is_in_order
        })
    }

    fn function(&self, index: usize) -> Option<Function<'a>> {
        let (start, end) = (self.start_of(index)?, self.start_of(index + 1)?);
        let size = self.layout.address_size();
        let place = self.layout.functions + index * self.layout.entry_size() + size;
        let offset = usize::try_from(read_pointer(self.bytes, place, size)?).ok()?;
        let base = if self.layout.version == Version::Go12 { 0 } else { self.layout.functions };
        let record = base.checked_add(offset)?;
        // Code between functions of Go has an entry too, whose record is none.
        let has_record = offset > 0 && self.read_address(record)? == start;
        (has_record && start < end).then_some(Function { table: *self, start, end, record: record + size })
    }

    fn start_of(&self, index: usize) -> Option<u64> {
        self.read_address(self.layout.functions + index * self.layout.entry_size())
    }

    fn read_address(&self, place: usize) -> Option<u64> {
        let value = read_pointer(self.bytes, place, self.layout.address_size())?;
        self.layout.text.checked_add(value)
    }

    /// Returns a name by its offset in the list of names.
    fn name(&self, offset: u32) -> Option<&'a [u8]> {
        read_string(self.bytes, self.layout.names.checked_add(offset as usize)?)
    }

    /// True if a name starts at an offset in the list of names.
    fn is_start_of_name(&self, offset: u32) -> bool {
        let before =
            self.layout.names.checked_add(offset as usize).and_then(|start| self.bytes.get(start.checked_sub(1)?));
        (offset == 0 || before == Some(&0)) && self.name(offset).is_some_and(|name| !name.is_empty())
    }
}

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
    table: FunctionTable<'a>,
    /// The first address.
    pub start: u64,
    /// The address of the next function.
    pub end: u64,
    /// The offset of its record, after the address.
    record: usize,
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
    pub(super) fn has_valid_calls(&self) -> Option<bool> {
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

    /// Returns the values of a table at an offset; 0 stands for none.
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

fn read_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// Reads a number of 4 or 8 bytes.
pub(super) fn read_pointer(bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
    match size {
        4 => read_u32(bytes, offset).map(u64::from),
        _ => Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?)),
    }
}

/// Reads a string that ends at a zero.
fn read_string(bytes: &[u8], start: usize) -> Option<&[u8]> {
    let rest = bytes.get(start..)?;
    let rest = &rest[..rest.len().min(MAX_NAME)];
    Some(&rest[..memchr::memchr(0, rest)?])
}

#[cfg(test)]
mod tests {
    use super::{FunctionTable, InlinedCall, Layout};

    const TEXT: u64 = 0x1000;

    /// Returns a table of Go 1.20: `main.work` at 0x1000, into which `strings.Index` is inlined, and `runtime.goexit`
    /// at 0x1040. The second result is the data of functions.
    fn example() -> (Vec<u8>, Vec<u8>) {
        let names = b"main.work\0runtime.goexit\0strings.Index\0";
        let values = [
            &[0][..],
            // Bytes pushed: 0 in 4 bytes, 24 in 56, 0 in 4.
            &[2, 4, 48, 56, 47, 4, 0],
            // The first file in all 64 bytes.
            &[2, 64, 0],
            // Line 10 in 32 bytes, line 12 in 32.
            &[22, 32, 4, 32, 0],
            // No inlined call in 16 bytes, the first in 16, none in 32.
            &[0, 16, 2, 16, 1, 32, 0],
        ];
        let place = |index: usize| values[..index].iter().map(|values| values.len() as u32).sum::<u32>();
        let record = |start: u32, name: u32, tables: [u32; 3], flags: u32, inlined: u32| {
            // The number of tables is 3, and there is one unit.
            let mut words = vec![start, name, 0, 0, tables[0], tables[1], tables[2], 3, 0, 1, flags << 8 | 4 << 24];
            words.extend([0, 0, inlined, u32::MAX, u32::MAX, u32::MAX]);
            words.push(if inlined == 0 { u32::MAX } else { 0 });
            words
        };
        let list = 5 * 4;
        let mut functions = vec![0, list, 0x40, list + 18 * 4, 0x50];
        functions.extend(record(0, 0, [place(1), place(2), place(3)], 0, place(4)));
        functions.extend(record(0x40, 10, [0; 3], 1, 0));
        let parts = [
            names.to_vec(),
            vec![0; 4],
            b"/src/main.go\0".to_vec(),
            values.concat(),
            functions.iter().flat_map(|word| word.to_le_bytes()).collect(),
        ];
        let mut table = vec![0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8];
        let mut next = 72;
        let mut header = vec![2, 1, TEXT];
        for part in &parts {
            header.push(next);
            next += part.len() as u64;
        }
        table.extend(header.iter().flat_map(|word| word.to_le_bytes()));
        table.extend(parts.concat());
        let call: Vec<u8> = [0u32, 25, 0x20, 1].into_iter().flat_map(u32::to_le_bytes).collect();
        (table, call)
    }

    /// Reads everything that a table has.
    fn read_all(table: &FunctionTable<'_>) -> usize {
        let mut count = 0;
        for function in table.functions() {
            count += function.name().map_or(0, <[u8]>::len) + function.stack_deltas().count();
            count += usize::from(function.is_top_frame()) + usize::from(function.has_valid_calls().is_some());
            for address in (function.start..function.end).take(100) {
                count += usize::from(function.source(address).is_some());
                count += usize::from(function.inlined_call(address).is_some());
            }
            assert!(table.find(function.start).is_some_and(|found| found.start <= function.start));
        }
        count
    }

    #[test]
    fn reads_names_deltas_lines_and_inlined_calls() {
        let (bytes, data) = example();
        let table = FunctionTable::new(&bytes, &data, Layout::read(&bytes).unwrap());
        let function = table.find(0x103f).unwrap();
        assert_eq!((function.start, function.end, function.name()), (0x1000, 0x1040, Some(&b"main.work"[..])));
        let deltas: Vec<_> = function.stack_deltas().collect();
        assert_eq!(deltas, [(0x1000..0x1004, 0), (0x1004..0x103c, 24), (0x103c..0x1040, 0)]);
        assert_eq!(function.source(0x101f), Some((&b"/src/main.go"[..], 10)));
        assert_eq!(function.source(0x1020), Some((&b"/src/main.go"[..], 12)));
        let call = InlinedCall { name: b"strings.Index", call_site: 0x1020 };
        assert_eq!([0x100f, 0x1010, 0x1020].map(|address| function.inlined_call(address)), [None, Some(call), None]);
        assert_eq!((function.has_valid_calls(), function.is_top_frame()), (Some(true), false));
        let root = table.find(0x1040).unwrap();
        assert_eq!((root.name(), root.is_top_frame()), (Some(&b"runtime.goexit"[..]), true));
        assert_eq!((root.has_valid_calls(), root.stack_deltas().next(), root.source(0x1040)), (None, None, None));
        assert!(table.find(0xfff).is_none() && table.find(0x1050).is_none());
    }

    #[test]
    fn survives_tables_that_are_cut_or_damaged() {
        let (bytes, data) = example();
        let read = |bytes: &[u8], data: &[u8]| {
            Layout::read(bytes).map(|layout| read_all(&FunctionTable::new(bytes, data, layout)))
        };
        let whole = read(&bytes, &data).unwrap();
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end], &data).is_none_or(|count| count <= whole), "{end}");
        }
        for (place, value) in (0..bytes.len()).flat_map(|place| [0, 1, 0x7f, 0x80, 0xff].map(|value| (place, value))) {
            let mut damaged = bytes.clone();
            damaged[place] = value;
            read(&damaged, &data);
        }
        for end in 0..data.len() {
            read(&bytes, &data[..end]);
        }
    }

    #[test]
    fn functions_out_of_order_are_left_out() {
        let (mut bytes, data) = example();
        let list = Layout::read(&bytes).unwrap().functions().1;
        // The second function starts before the first one ends, and claims to be as large as the address space.
        bytes[list + 8..list + 12].copy_from_slice(&0u32.to_le_bytes());
        bytes[list + 16..list + 20].copy_from_slice(&u32::MAX.to_le_bytes());
        let table = FunctionTable::new(&bytes, &data, Layout::read(&bytes).unwrap());
        assert_eq!(table.functions().count(), 0);
    }
}
