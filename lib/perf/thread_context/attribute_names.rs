//! The names of attributes, which a process publishes in its process context (OTEP 4719) for the contexts of its threads.

use super::record::ThreadContext;
use crate::perf::runtimes::interpreter::Memory;
use crate::protobuf::Fields;

/// The key of the list of names.
const NAMES: &[u8] = b"threadlocal.attribute_key_map";

/// The largest number of names: their indexes are bytes.
const MAX_NAMES: usize = 256;

/// The largest process context that is read.
const MAX_SIZE: u32 = 1 << 20;

/// Number of attempts to read a context that the process changes meanwhile.
const ATTEMPTS: usize = 3;

/// The head of a process context: the signature, the version (4 bytes), the size (4 bytes), the time at which it was
/// published, and the address of the message.
const HEAD_SIZE: usize = 32;
const SIGNATURE: &[u8] = b"OTEL_CTX";
const VERSION: u32 = 2;

/// The names of the attributes of a process. Names are added, but never changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttributeNames {
    /// The address of the head, and the time at which what was read was published. `None` if nothing was found.
    published: Option<(u64, u64)>,
    names: Vec<Box<[u8]>>,
}

impl AttributeNames {
    /// Reads the names again, if the process has published others. `find_heads` returns where the head may be.
    pub fn refresh(&mut self, memory: Memory, find_heads: impl FnOnce() -> Vec<u64>) {
        if let Some((place, time)) = self.published
            && let Some(head) = Head::read(memory, place)
        {
            if head.time != time {
                self.read(memory, place);
            }
            return;
        }
        self.published = None;
        find_heads().into_iter().any(|place| self.read(memory, place));
    }

    /// Returns the name with an index.
    pub fn get(&self, index: u8) -> Option<&[u8]> {
        self.names.get(usize::from(index)).map(|name| &**name)
    }

    /// True if all attributes of a context have names.
    pub fn has_all(&self, context: ThreadContext<'_>) -> bool {
        context.attributes().all(|(key, _)| self.get(key).is_some())
    }

    /// True if the process has published names, so that an index without a name has none.
    pub fn is_known(&self) -> bool {
        self.published.is_some()
    }

    fn read(&mut self, memory: Memory, place: u64) -> bool {
        for _ in 0..ATTEMPTS {
            let Some(head) = Head::read(memory, place) else { return false };
            let message = memory.bytes(head.message, head.size as usize);
            // A process that publishes another message changes the time first.
            if let Some(message) = message.filter(|_| Head::read(memory, place) == Some(head)) {
                self.names = parse_names(&message).unwrap_or_default();
                self.published = Some((place, head.time));
                return true;
            }
        }
        false
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    size: u32,
    time: u64,
    message: u64,
}

impl Head {
    /// Reads a head. `None` if there is none, or if its message is being replaced.
    fn read(memory: Memory, place: u64) -> Option<Self> {
        let bytes = memory.bytes(place, HEAD_SIZE)?;
        let mut fields = crate::perf::event::Fields::new(bytes.strip_prefix(SIGNATURE)?);
        let (version, size, time, message) = (fields.u32()?, fields.u32()?, fields.u64()?, fields.u64()?);
        (version == VERSION && size <= MAX_SIZE && time != 0).then_some(Self { size, time, message })
    }
}

/// Reads the names from a `ProcessContext`: `attributes` are its field 2. `None` if it has none.
fn parse_names(message: &[u8]) -> Option<Vec<Box<[u8]>>> {
    let attributes = find_all(message, 2);
    // `KeyValue` has the key and the value; `AnyValue` a string in field 1, an `ArrayValue` in field 5.
    let mut named = attributes.filter(|attribute| find_all(attribute, 1).next() == Some(NAMES));
    let list = find_all(find_all(named.next()?, 2).next()?, 5).next()?;
    let names = find_all(list, 1).take(MAX_NAMES);
    Some(names.map(|name| find_all(name, 1).next().unwrap_or_default().into()).collect())
}

/// Iterates over the values of a repeated field of strings or messages.
fn find_all(message: &[u8], wanted: u32) -> impl Iterator<Item = &[u8]> {
    let fields = Fields::new(message).map_while(|field| field);
    fields.filter(move |(number, _)| *number == wanted).filter_map(|(_, value)| value.bytes())
}

#[cfg(test)]
mod tests {
    use super::{AttributeNames, parse_names};
    use crate::perf::runtimes::interpreter::Memory;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }

    fn message(names: &[&str]) -> Vec<u8> {
        let list: Vec<u8> = names.iter().flat_map(|name| field(1, &field(1, name.as_bytes()))).collect();
        let version = [field(1, b"threadlocal.schema_version"), field(2, &field(1, b"tls_v1"))].concat();
        let map = [field(1, b"threadlocal.attribute_key_map"), field(2, &field(5, &list))].concat();
        let resource = field(1, &[field(1, b"service.name"), field(2, &field(1, b"shop"))].concat());
        [field(1, &resource), field(2, &version), field(2, &map)].concat()
    }

    #[test]
    fn finds_names_among_other_attributes() {
        let names = parse_names(&message(&["http_route", "", "user_id"])).unwrap();
        assert_eq!(names, [b"http_route".as_slice().into(), b"".as_slice().into(), b"user_id".as_slice().into()]);
        assert_eq!(parse_names(&message(&["a"])[..20]), None);
        assert_eq!(parse_names(b""), None);
    }

    /// A memory of one page at address 4096: a head, and the message behind it.
    fn page(time: u64, version: u32) -> Vec<u8> {
        let message = message(if time == 1 { &["one"] } else { &["one", "two"] });
        let numbers = [version.to_le_bytes(), (message.len() as u32).to_le_bytes()].concat();
        [b"OTEL_CTX".as_slice(), &numbers, &time.to_le_bytes(), &(4096 + 32_u64).to_le_bytes(), &message].concat()
    }

    fn read_page(page: &[u8], address: u64, bytes: &mut [u8]) -> usize {
        let Some(source) = address.checked_sub(4096).and_then(|start| page.get(start as usize..)) else { return 0 };
        let length = bytes.len().min(source.len());
        bytes[..length].copy_from_slice(&source[..length]);
        length
    }

    /// Processes whose IDs are the times at which they published their names.
    const MEMORY: fn(u32) -> Memory =
        |pid| Memory { pid, read: |pid, address, bytes| read_page(&page(pid.into(), 2), address, bytes) };

    #[test]
    fn reads_names_again_when_others_are_published() {
        let mut names = AttributeNames::default();
        names.refresh(MEMORY(0), || vec![4096]);
        assert!(!names.is_known());
        names.refresh(MEMORY(1), || vec![8192, 4096]);
        assert_eq!((names.get(0), names.get(1), names.is_known()), (Some(&b"one"[..]), None, true));
        names.refresh(MEMORY(2), || unreachable!("the place is known"));
        assert_eq!(names.get(1), Some(&b"two"[..]));
    }

    #[test]
    fn ignores_other_versions() {
        let memory = Memory { pid: 1, read: |_, address, bytes| read_page(&page(1, 3), address, bytes) };
        let mut names = AttributeNames::default();
        names.refresh(memory, || vec![4096]);
        assert_eq!(names, AttributeNames::default());
    }
}
