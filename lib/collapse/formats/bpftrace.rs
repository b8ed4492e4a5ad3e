//! bpftrace maps by `kstack` and `ustack`: keys in brackets, stacks leaf first, then the value. Each map is an event, so
//! that of several the first counts unless `--event @name` chooses another.
//!
//! ```text
//! @[
//!     vfs_read+1
//!     sys_read+86
//!
//!     read+16
//!     main+4
//! , cat, 4242]: 9
//! ```

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::{Options, text};
use crate::markers;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "bpftrace",
    description: "bpftrace maps of stacks",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

/// Functions with which a kernel stack begins.
const KERNEL_ROOTS: [&[u8]; 10] = [
    b"entry_SYSCALL",
    b"do_syscall_64",
    b"asm_",
    b"ret_from_fork",
    b"secondary_startup",
    b"el0",
    b"kthread",
    b"x86_64_start",
    b"start_kernel",
    b"invoke_syscall",
];

fn recognizes(head: &[u8]) -> bool {
    let opens = |line: &[u8]| opening(line).is_some_and(|(_, keys)| goes_on(keys) || ends(keys));
    text::lines(head).any(|line| line.starts_with(b"Attaching ") && line.ends_with(b"..."))
        && text::lines(head).any(|line| line.starts_with(b"@"))
        || text::lines(head).find(|line| !line.is_empty()).is_some_and(opens)
        || text::lines(head).any(|line| opening(line).is_some_and(|(_, keys)| goes_on(keys)))
}

/// Whether a line of a map's keys is not the last.
fn goes_on(keys: &[u8]) -> bool {
    matches!(keys.trim_ascii_end(), b"" | [.., b','])
}

/// Whether a line ends an entry, with a value or a histogram.
fn ends(keys: &[u8]) -> bool {
    closing(keys).is_some() || keys.trim_ascii_end().ends_with(b"]:")
}

/// Whether a line that reads as a stack and its weight is a map's entry.
pub(super) fn is_entry(line: &[u8]) -> bool {
    opening(line).is_some_and(|(_, keys)| closing(keys).is_some())
}

/// The map's name and what follows the bracket.
fn opening(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let bracket = memchr::memchr(b'[', line).filter(|_| line.starts_with(b"@"))?;
    let (name, rest) = line.split_at(bracket);
    let word = name[1..].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    word.then_some((name, &rest[1..]))
}

/// The last keys and the value of a line that ends an entry.
fn closing(line: &[u8]) -> Option<(&[u8], u64)> {
    let end = memchr::memmem::rfind(line, b"]: ")?;
    let value = &line[end + 3..];
    let total = text::split_once(value, "total ").map_or(value, |(_, total)| total);
    Some((&line[..end], text::number(total)?))
}

/// An entry of a map.
#[derive(Default)]
pub(super) struct Entry {
    map: Vec<u8>,
    keys: Vec<Vec<u8>>,
    /// Leaf first, in the order in which they were printed.
    stacks: Vec<Part>,
}

/// A kernel's or a user's stack.
#[derive(Default)]
struct Part {
    frames: Stack,
    kernel: bool,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut entry, mut plain) = (Vec::new(), None::<Entry>, 0u64);
    while document.line(&mut line)? {
        let mut rest = &line[..];
        if let Some((map, keys)) = opening(&line) {
            if entry.is_some() {
                document.malformed("a map's entry begins before the last one has ended")?;
            }
            entry = Some(Entry::of(map));
            rest = keys;
        }
        let Some(current) = &mut entry else {
            plain += u64::from(line.starts_with(b"@"));
            if line.starts_with(b"Lost ") {
                document.warn("bpftrace says that it lost events");
            }
            continue;
        };
        match closing(rest) {
            Some((keys, value)) => {
                current.keys(keys);
                let last = entry.take().unwrap_or_default();
                last.add(Weight::new(value), document, sink)?;
            }
            None if rest.ends_with(b"]:") || rest.ends_with(b"]: ") => {
                entry = None;
                document.malformed("a histogram, which is no weight of a stack")?;
            }
            None if rest.starts_with(b" ") => current.frame(rest.trim_ascii(), document.options, sink),
            None if rest.trim_ascii().is_empty() => current.pause(),
            None => current.keys(rest),
        }
    }
    if document.events.seen().is_empty() && plain > 0 {
        return Err(document.unreadable("bpftrace's output, but no map in it is keyed by a stack"));
    }
    if entry.is_some() { document.malformed("the input ends within a map's entry") } else { Ok(()) }
}

impl Entry {
    /// An entry of a map of that name, without keys as yet.
    pub(super) fn of(map: &[u8]) -> Self {
        Self { map: map.to_vec(), stacks: vec![Part::default()], ..Self::default() }
    }

    pub(super) fn keys(&mut self, text: &[u8]) {
        let keys = text.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|key| !key.is_empty());
        self.keys.extend(keys.map(<[u8]>::to_vec));
    }

    pub(super) fn frame(&mut self, name: &[u8], options: &Options, sink: &mut Sink) {
        if let Some(part) = self.stacks.last_mut() {
            part.kernel |= KERNEL_ROOTS.iter().any(|root| name.starts_with(root));
            part.frames.push(&text::function(name, options), sink);
        }
    }

    /// Between two stacks stands a blank line.
    pub(super) fn pause(&mut self) {
        if self.stacks.last().is_some_and(|part| !part.frames.is_empty()) {
            self.stacks.push(Part::default());
        }
    }

    pub(super) fn add(mut self, weight: Weight, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        if !document.events.accept(&self.map) {
            return Ok(());
        }
        self.stacks.retain(|part| !part.frames.is_empty());
        // The kernel runs on top of the user's stack, whichever of the two the map names first.
        if let [first, second] = &self.stacks[..]
            && second.kernel
            && !first.kernel
        {
            self.stacks.reverse();
        }
        let mut stack = Stack::default();
        for part in &self.stacks {
            stack.extend(part.frames.frames());
        }
        if !self.keys.is_empty() {
            stack.push(&self.keys.join(&b','), sink);
        }
        if stack.is_empty() {
            stack.push(markers::UNKNOWN, sink);
        }
        stack.add_leaf_first(weight, sink)
    }
}
