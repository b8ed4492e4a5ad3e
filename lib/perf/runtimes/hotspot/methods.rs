//! The names and lines of Java methods, read from the process.

use super::compressed::Compressed;
use super::layout::{HotSpotLayout, MethodPlaces};
use crate::markers;
use crate::perf::runtimes::interpreter::{Function, Memory};
use crate::symbol_name::java;

/// The first of the flags of a method: it has a table of lines.
const HAS_LINES: u64 = 1;

/// The largest table of lines that is read.
const MAX_LINES: usize = 1 << 16;

/// Reads what belongs to methods.
#[derive(Clone, Copy)]
pub(super) struct MethodReader<'a> {
    places: &'a MethodPlaces,
    memory: Memory,
    excluded: u8,
}

impl<'a> MethodReader<'a> {
    pub(super) fn new(layout: &'a HotSpotLayout, memory: Memory) -> Self {
        Self { places: &layout.methods, memory, excluded: layout.debug.excluded }
    }

    fn word(self, address: u64, offset: u64) -> Option<u64> {
        self.memory.field(address, offset)
    }

    /// Returns the address of the constant part of a method.
    pub(super) fn const_method(self, method: u64) -> Option<u64> {
        self.word(method, self.places.const_method).filter(|address| *address != 0)
    }

    /// Reads the class and the name of a method, as the virtual machine has them.
    pub(super) fn read_name(self, method: u64) -> Option<Function> {
        let const_method = self.const_method(method)?;
        let pool = self.word(const_method, self.places.pool)?;
        let index = self.word(const_method, self.places.name_index)? & 0xffff;
        // The lowest bit of an entry belongs to the virtual machine.
        let name = self.word(pool, self.places.pool_size + 8 * index)? & !1;
        let class = self.word(self.word(pool, self.places.pool_holder)?, self.places.klass_name)?;
        let (name, class) = (self.read_symbol(name)?, self.read_symbol(class)?);
        Some(Function { name, class, file: Vec::new(), first_line: 0, lines: None })
    }

    fn read_symbol(self, symbol: u64) -> Option<Vec<u8>> {
        let length = self.word(symbol, self.places.symbol_length)? & 0xffff;
        self.memory.bytes(symbol.checked_add(self.places.symbol_body)?, length as usize)
    }

    /// Returns the line of a bytecode of a method. `None` if the class was compiled without lines.
    pub(super) fn find_line(self, method: u64, bytecode: i32) -> Option<u32> {
        let const_method = self.const_method(method)?;
        if self.word(const_method, self.places.flags)? & HAS_LINES == 0 {
            return None;
        }
        let size = self.word(const_method, self.places.code_size)? & 0xffff;
        let table = const_method.checked_add(self.places.const_method_size + size)?;
        let mut bytes = vec![0; MAX_LINES];
        let read = (self.memory.read)(self.memory.pid, table, &mut bytes);
        line_of(&bytes[..read], u32::try_from(bytecode).ok()?, self.excluded)
    }
}

/// Returns the line of a bytecode from a table: pairs of a bytecode and the line that begins there, as differences.
fn line_of(table: &[u8], bytecode: u32, excluded: u8) -> Option<u32> {
    let mut table = Compressed::new(table, excluded);
    let (mut start, mut line, mut found) = (0i32, 0i32, None::<(i32, i32)>);
    loop {
        match table.byte()? {
            0 => return found.and_then(|(_, line)| u32::try_from(line).ok()),
            u8::MAX => {
                start = start.wrapping_add(table.signed()?);
                line = line.wrapping_add(table.signed()?);
            }
            both => {
                start = start.wrapping_add(i32::from(both >> 3));
                line = line.wrapping_add(i32::from(both & 7));
            }
        }
        // The rows are not always in order.
        let is_before = start >= 0 && start.cast_unsigned() <= bytecode;
        if is_before && found.is_none_or(|(best, _)| start >= best) {
            found = Some((start, line));
        }
    }
}

/// Returns `package.Class.method`, or `package.Class.method:LINE`. What has no name is no method.
pub(super) fn frame_name(function: &Function, line: Option<u32>) -> Vec<u8> {
    if function.name.is_empty() {
        return markers::JAVA.to_vec();
    }
    let mut name = java::class_name(&function.class);
    name.push(b'.');
    name.extend_from_slice(&function.name);
    if let Some(line) = line {
        name.extend_from_slice(format!(":{line}").as_bytes());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::line_of;

    /// Writes a signed number that fits in one byte.
    fn signed(number: i32) -> [u8; 1] {
        [(((number << 1) ^ (number >> 31)) as u8) + 1]
    }

    #[test]
    fn finds_the_line_that_begins_last_before_a_bytecode() {
        // Bytecode 0: line 10; 4: line 11; 3 before that (out of order): line 40.
        let table = [&[255][..], &signed(0), &signed(10), &[4 << 3 | 1, 255], &signed(-1), &signed(29), &[0]].concat();
        let lines = [0, 2, 3, 4, 100].map(|bytecode| line_of(&table, bytecode, 1));
        assert_eq!(lines, [Some(10), Some(10), Some(40), Some(11), Some(11)]);
        assert_eq!(line_of(&table[..2], 0, 1), None);
        assert_eq!(line_of(&[0], 0, 1), None);
    }
}
