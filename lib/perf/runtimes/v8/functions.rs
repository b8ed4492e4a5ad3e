//! Names of functions: what their descriptions (`SharedFunctionInfo`) tell.

use super::heap::{FlatString, Heap, is_object};
use crate::perf::runtimes::hash::{NO_TEXT, hash_length, hash_text, mix};
use crate::perf::runtimes::interpreter::Function;

/// The place of the number of variables in a `ScopeInfo`.
const LOCAL_COUNT: u64 = 24;
/// The number of variables from which on their names are in a table.
const MAX_LOCALS: u64 = 75;
/// The place of the name in a script.
const SCRIPT_NAME: u64 = 16;
/// Number of slots behind the variables of a `ScopeInfo` that may have the name.
const NAME_SLOTS: u64 = 4;
/// The longest name that is read.
const MAX_NAME: u64 = 1 << 14;

/// Stands for what the BPF program sends as the class of functions in scripts without a name: any byte.
const IN_SCRIPT: &[u8] = b"s";

/// What is known of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Described {
    /// The strings of the name and of the script's name; 0 if there is none.
    pub(super) name: u64,
    pub(super) file: u64,
    /// The script; 0 if it is a function of V8.
    pub(super) script: u64,
    /// The number of the function in its script.
    literal: u32,
}

impl Described {
    /// Reads a description.
    pub(super) fn read(heap: Heap<'_>, shared: u64) -> Option<Self> {
        let offsets = heap.offsets;
        heap.of_type(shared, offsets.types.shared)?;
        let name = find_name(heap, heap.field(shared, offsets.name.into())?)?;
        let script = heap.field(shared, offsets.script.into())?;
        if heap.type_of(script)? != offsets.types.script {
            return Some(Self { name, ..Self::default() });
        }
        let file = heap.field(script, SCRIPT_NAME)?;
        let file = if is_object(file) && heap.string_type(file).is_some() { file } else { 0 };
        Some(Self { name, file, script, literal: heap.field_u32(shared, offsets.literal.into())? })
    }

    /// True if the hash of the BPF program is of this function. A string may have been brought into one piece since.
    pub(super) fn has_hash(&self, heap: Heap<'_>, hash: u64) -> bool {
        let start = mix(self.literal.into(), 1);
        [[true, true], [true, false], [false, true], [false, false]].into_iter().any(|[is_name_flat, is_file_flat]| {
            let name = hash_string(heap, self.name, is_name_flat).map(|name| mix(start, name));
            name.and_then(|name| Some(mix(name, hash_string(heap, self.file, is_file_flat)?))) == Some(hash)
        })
    }

    /// Returns the function, whose class is not empty if it is one of a script. `None` if a string cannot be read.
    pub(super) fn function(&self, heap: Heap<'_>) -> Option<Function> {
        let class = if self.script == 0 { Vec::new() } else { IN_SCRIPT.to_vec() };
        Some(Function { name: self.name(heap)?, class, file: self.file(heap)?, first_line: 0, lines: None })
    }

    /// Returns the name as UTF-8. Empty if there is none.
    pub(super) fn name(&self, heap: Heap<'_>) -> Option<Vec<u8>> {
        if self.name == 0 { Some(Vec::new()) } else { heap.text(self.name, MAX_NAME) }
    }

    /// Returns the name of the script as UTF-8. Empty if there is none.
    pub(super) fn file(&self, heap: Heap<'_>) -> Option<Vec<u8>> {
        if self.file == 0 { Some(Vec::new()) } else { heap.text(self.file, MAX_NAME) }
    }
}

/// Returns the hash of a string. With `is_flat` false, as if it were not in one piece.
fn hash_string(heap: Heap<'_>, string: u64, is_flat: bool) -> Option<u64> {
    if string == 0 {
        return Some(NO_TEXT);
    }
    let FlatString { start, length } = heap.flat_string(string)?;
    if is_flat && start != 0 { hash_text(heap.memory, start, length) } else { Some(hash_length(length)) }
}

/// Returns the name of a function: the object itself, or the first string behind the variables of a `ScopeInfo` that is not
/// empty. 0 if there is none.
fn find_name(heap: Heap<'_>, object: u64) -> Option<u64> {
    if !is_object(object) {
        return Some(0);
    }
    let offsets = heap.offsets;
    if heap.type_of(object)? != offsets.types.scope {
        return Some(if heap.string_type(object).is_some() { object } else { 0 });
    }
    let count = heap.field(object, LOCAL_COUNT)? >> 32;
    let slots = if count < MAX_LOCALS { 2 * count } else { count + 1 };
    let first = u64::from(offsets.locals) + 8 * slots;
    for slot in 0..NAME_SLOTS {
        let word = heap.field(object, first + 8 * slot)?;
        if is_object(word) && heap.string_type(word).is_some() && heap.string_length(word)? > 0 {
            return Some(word);
        }
    }
    Some(0)
}
