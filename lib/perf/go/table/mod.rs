//! Reads the function table of a Go program.
//!
//! The format is that of Go's `src/runtime/symtab.go`, `src/runtime/symtabinl.go` and
//! `src/cmd/link/internal/ld/pcln.go`. The program is little-endian. All numbers in the table are checked before use.

mod function;
mod layout;

pub use self::function::{Function, InlinedCall};
pub use self::layout::Layout;
use self::layout::Version;

/// The longest name that is read, in bytes.
const MAX_NAME: usize = 4096;

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

    /// Returns the record of a function.
    fn record(start: u32, name: u32, tables: [u32; 3], flags: u32, inlined: u32) -> Vec<u32> {
        // The number of tables is 3, and there is one unit.
        let mut words = vec![start, name, 0, 0, tables[0], tables[1], tables[2], 3, 0, 1, flags << 8 | 4 << 24];
        words.extend([0, 0, inlined, u32::MAX, u32::MAX, u32::MAX]);
        words.push(if inlined == 0 { u32::MAX } else { 0 });
        words
    }

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

    fn read(bytes: &[u8], data: &[u8]) -> Option<usize> {
        Layout::read(bytes).map(|layout| read_all(&FunctionTable::new(bytes, data, layout)))
    }

    #[test]
    fn survives_tables_that_are_cut_or_damaged() {
        let (bytes, data) = example();
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
