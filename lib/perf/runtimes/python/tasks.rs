//! The asyncio task that a thread runs, in CPython 3.14 and later.
//!
//! The module `_asyncio` describes its structures in a section of its file (`Py_AsyncioModuleDebugOffsets` in
//! `Modules/_asynciomodule.c` of CPython). A name that nobody has asked for yet is a number.

use object::{Object as _, ObjectSection as _};

use super::layout::{PythonLayout, TaskNameOffsets, decode};
use crate::perf::objects::object::Elf;

/// The section of the module's description.
const SECTION: &str = ".AsyncioDebug";

/// The places in the description of `task_name` and `task_is_task` of a task, and of `asyncio_running_task` of a thread's
/// state, in numbers of 8 bytes.
const TASK_NAME: usize = 1;
const IS_TASK: usize = 3;
const RUNNING_TASK: usize = 11;

/// The upper half of the first word of a name that is a number, as in the BPF program.
const NUMBER: u32 = u32::MAX;

/// The offsets of tasks, from the file of the module `_asyncio`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskOffsets {
    running_task: u32,
    is_task: u32,
    task_name: u32,
}

impl TaskOffsets {
    /// Reads the offsets from a file. `None` if it does not contain the module.
    pub fn find(file: &Elf) -> Option<Self> {
        let file = object::File::parse(&**file.bytes()).ok()?;
        Self::parse(file.section_by_name(SECTION)?.data().ok()?)
    }

    fn parse(section: &[u8]) -> Option<Self> {
        let [running_task, is_task, task_name] =
            [RUNNING_TASK, IS_TASK, TASK_NAME].map(|index| read_offset(section, index));
        Some(Self { running_task: running_task?, is_task: is_task?, task_name: task_name? })
    }

    /// Returns the fields for the BPF program, from `RUNNING_TASK` on.
    pub(super) fn fields(self, names: TaskNameOffsets) -> [u32; 7] {
        let TaskNameOffsets { object_type, type_flags, int_tag, int_digits } = names;
        [self.running_task, self.is_task, self.task_name, object_type, type_flags, int_tag, int_digits]
    }
}

/// Reads the offset of a field, by its index in the section.
fn read_offset(section: &[u8], index: usize) -> Option<u32> {
    let word = u64::from_le_bytes(*section.get(8 * index..)?.first_chunk()?);
    u32::try_from(word).ok().filter(|offset| *offset > 0)
}

/// Returns the name of a task that the BPF program sent. `None` if it cannot be read.
pub(super) fn task_name(layout: &PythonLayout, sent: &[u8]) -> Option<Vec<u8>> {
    let (head, bytes) = sent.split_at_checked(8)?;
    let (length, state) = (word(head)? as u32 as usize, (word(head)? >> 32) as u32);
    if state == NUMBER {
        return Some(format!("Task-{}", word(bytes)?).into_bytes());
    }
    let (start, size) = layout.strings.characters(state)?;
    let bytes = bytes.get(start..)?;
    let sent = &bytes[..bytes.len().min(length.checked_mul(size)?)];
    let mut name = decode(sent, size);
    if sent.len() < length * size {
        name.push_str("...");
    }
    Some(name.into_bytes())
}

fn word(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::TaskOffsets;

    /// The section of Python 3.14.
    const SECTION: [u64; 13] = [168, 136, 96, 108, 109, 128, 152, 225_864, 10_880, 936, 864, 872, 880];

    #[test]
    fn reads_the_description_of_the_module() {
        let section: Vec<u8> = SECTION.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(TaskOffsets::parse(&section), Some(TaskOffsets { running_task: 872, is_task: 108, task_name: 136 }));
        assert_eq!(TaskOffsets::parse(&section[..90]), None);
        assert_eq!(TaskOffsets::parse(&[0; 104]), None);
    }
}
