//! The head of a function table: its format, and where its parts are.

use super::{read_pointer, read_u32};

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
    pub(super) version: Version,
    pub(super) pointer_size: usize,
    /// The unit of distances between instructions, in bytes.
    pub(super) quantum: u64,
    pub(super) function_count: usize,
    /// The address to which the addresses of functions are relative.
    pub(super) text: u64,
    pub(super) functions: usize,
    pub(super) names: usize,
    pub(super) units: usize,
    pub(super) files: usize,
    pub(super) values: usize,
}

impl Layout {
    /// Number of bytes at the start of a table that identify it: a magic number, two zeros, the quantum and the size of
    /// pointers.
    const MAGIC_SIZE: usize = 8;

    /// Reads the header of a table. `None` if it is not the table of a version that is known.
    pub(in crate::perf::go) fn read(bytes: &[u8]) -> Option<Self> {
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
    pub(in crate::perf::go) fn text(&self) -> u64 {
        self.text
    }

    /// Returns the layout for functions whose addresses are relative to `text`.
    pub(in crate::perf::go) fn with_text(self, text: u64) -> Self {
        Self { text, ..self }
    }

    /// True if the addresses of functions are relative to the address of the text.
    pub(in crate::perf::go) fn is_relative(&self) -> bool {
        self.version >= Version::Go118
    }

    /// Returns the number of functions and the offset of their list.
    pub(in crate::perf::go) fn functions(&self) -> (usize, usize) {
        (self.function_count, self.functions)
    }

    /// The size of an address in the list of functions.
    pub(super) fn address_size(&self) -> usize {
        if self.is_relative() { 4 } else { self.pointer_size }
    }

    pub(super) fn entry_size(&self) -> usize {
        2 * self.address_size()
    }
}
