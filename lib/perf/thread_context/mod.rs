//! The contexts that OpenTelemetry publishes for each thread (OTEP 4947): the span that the thread works on.
//!
//! `variable.rs` finds the thread-local variable in the files of a process, so that the BPF program can read the thread's
//! `record.rs` at a sample. `attribute_names.rs` reads what the attributes in it are called.

mod attribute_names;
mod record;
mod variable;

use rustc_hash::FxHashMap;

use self::attribute_names::AttributeNames;
pub use self::record::ThreadContext;
use self::variable::Variable;
pub use self::variable::{NAME as VARIABLE_NAME, VariableWords};
use super::event::Event;
use super::mappings::Mapping;
use super::objects::object::{Object, ObjectId};
use super::objects::registry::Objects;
use super::runtimes::interpreter::Memory;

/// A process that has published no names is asked again after this time, in nanoseconds.
const RETRY_NS: u64 = 100_000_000;

/// Number of bytes by which code that is loaded is told from other memory.
const COMPARED: u64 = 4096;

/// The variables and attribute names of processes.
#[derive(Debug, Default)]
pub struct ThreadContexts {
    /// The variable of each object that was looked at.
    by_object: FxHashMap<ObjectId, Option<Variable>>,
    names: FxHashMap<u32, ProcessNames>,
    /// True if a process has the variable.
    pub is_published: bool,
    /// The path of a file that has the variable, but does not export it.
    pub hidden_in: Option<Vec<u8>>,
}

/// The names of a process's attributes.
#[derive(Debug, Default)]
struct ProcessNames {
    names: AttributeNames,
    /// The time from which on the process may be asked again, if it has published none.
    next_attempt: u64,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeValue<'a> {
    /// The value.
    Value(&'a [u8]),
    /// The context has no such attribute.
    Missing,
    /// The context has attributes whose names are not known.
    Unknown,
}

impl ThreadContexts {
    /// Forgets the names of a process that begins, or runs another program.
    pub fn note_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Fork { pid, parent_pid, .. } if pid != parent_pid => drop(self.names.remove(pid)),
            Event::Comm { pid, exec: true, .. } => drop(self.names.remove(pid)),
            _ => {}
        }
    }

    /// Forgets other processes.
    pub fn retain(&mut self, is_kept: impl Fn(u32) -> bool) {
        self.names.retain(|pid, _| is_kept(*pid));
    }

    /// Forgets an object, whose number may be given to another.
    pub fn forget(&mut self, object: ObjectId) {
        self.by_object.remove(&object);
    }

    /// Returns what only says whether a process has the variable.
    pub fn to_report(&self) -> Self {
        Self { is_published: self.is_published, hidden_in: self.hidden_in.clone(), ..Self::default() }
    }

    /// True if a process with these mappings has the variable.
    pub fn has_variable(&mut self, mappings: &[Mapping], objects: &Objects) -> bool {
        mappings.iter().any(|mapping| self.find_in_object(mapping.object, objects).is_some())
    }

    /// Describes for the BPF program where the variable of a process with these mappings is. `None` if it has none.
    ///
    /// A definition in the program comes before those of libraries, as for the dynamic linker. A library that was unloaded is
    /// still among the mappings, since the kernel does not report that, but its code is not there.
    pub fn describe(&mut self, mappings: &[Mapping], objects: &Objects, memory: Memory) -> Option<VariableWords> {
        let found =
            mappings.iter().filter_map(|mapping| Some((*mapping, self.find_in_object(mapping.object, objects)?)));
        let mut found: Vec<(Mapping, Variable)> = found.collect();
        if found.len() > 1 {
            found.retain(|(mapping, _)| is_loaded(mapping, objects, memory));
        }
        let (mapping, variable) = found.into_iter().min_by_key(|(_, variable)| !variable.is_in_program())?;
        self.is_published = true;
        let Object::Elf(elf) = objects.get(mapping.object) else { return None };
        let bias = elf.bias_of_mapping(mapping.start, mapping.offset, mapping.end - mapping.start)?;
        Some(variable.words(bias, mappings.iter().any(|mapping| objects.get(mapping.object).is_musl())))
    }

    fn find_in_object(&mut self, object: ObjectId, objects: &Objects) -> Option<Variable> {
        *self.by_object.entry(object).or_insert_with(|| {
            let Object::Elf(elf) = objects.get(object) else { return None };
            let variable = Variable::find(elf);
            if variable.is_none() && Variable::is_hidden(elf) {
                self.hidden_in = Some(elf.path().to_vec());
            }
            variable
        })
    }

    /// Returns the value of an attribute at a sample. Reads the names of the process again if one of the context's attributes
    /// has none. `find_heads` returns where the process context may be.
    pub fn find_attribute<'a>(
        &mut self,
        context: ThreadContext<'a>,
        name: &str,
        (memory, time): (Memory, u64),
        find_heads: impl FnOnce() -> Vec<u64>,
    ) -> AttributeValue<'a> {
        let process = self.names.entry(memory.pid).or_default();
        if !process.names.has_all(context) && (process.names.is_known() || time >= process.next_attempt) {
            process.names.refresh(memory, find_heads);
            process.next_attempt = time.saturating_add(RETRY_NS);
        }
        let named = context.attributes().filter(|(key, _)| process.names.get(*key) == Some(name.as_bytes()));
        match named.last() {
            Some((_, value)) => AttributeValue::Value(value),
            None if !process.names.has_all(context) && !process.names.is_known() => AttributeValue::Unknown,
            None => AttributeValue::Missing,
        }
    }
}

/// True if the memory of a process begins, where an object is mapped, as the object does.
fn is_loaded(mapping: &Mapping, objects: &Objects, memory: Memory) -> bool {
    let Object::Elf(elf) = objects.get(mapping.object) else { return false };
    let length = COMPARED.min(mapping.end - mapping.start) as usize;
    let start = usize::try_from(mapping.offset).unwrap_or(usize::MAX);
    let code = elf.bytes().get(start..).map(|rest| &rest[..length.min(rest.len())]);
    code.is_some_and(|code| memory.bytes(mapping.start, code.len()).as_deref() == Some(code))
}

#[cfg(test)]
mod tests {
    use super::{AttributeValue, RETRY_NS, ThreadContext, ThreadContexts};
    use crate::perf::event::{Event, Stamp};
    use crate::perf::runtimes::interpreter::Memory;

    /// A valid record with attributes 0 and 1.
    const RECORD: &[u8] = b"0123456789abcdef01234567\x01\x00\x06\x00\x00\x01x\x01\x01y";

    fn read_nothing(_: u32, _: u64, _: &mut [u8]) -> usize {
        0
    }

    #[test]
    fn a_process_without_names_is_asked_again_later() {
        let mut contexts = ThreadContexts::default();
        let context = ThreadContext::parse(RECORD).unwrap();
        let mut asked = Vec::new();
        let memory = Memory { pid: 7, read: read_nothing };
        for time in [1, 2, RETRY_NS, RETRY_NS + 1] {
            let value = contexts.find_attribute(context, "http_route", (memory, time), || {
                asked.push(time);
                Vec::new()
            });
            assert_eq!(value, AttributeValue::Unknown);
        }
        assert_eq!(asked, [1, RETRY_NS + 1]);
        contexts.note_event(&Event::Comm { pid: 7, tid: 7, exec: true, comm: b"other" });
        let mut is_asked = false;
        contexts.find_attribute(context, "a", (memory, Stamp::default().time), || {
            is_asked = true;
            Vec::new()
        });
        assert!(is_asked);
    }
}
