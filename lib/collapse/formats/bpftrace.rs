//! Maps of bpftrace that are keyed by `kstack` or `ustack`: the keys in brackets, stacks leaf first, then the value.
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
//! Stacks of `perf` mode have frames as perf prints them, `\tADDRESS read+16 (MODULE)`.
//!
//! The value is the weight; of a `stats()` value, the total. All other keys together become the root frame. A kernel
//! stack goes on top of the user stack, whichever comes first. Each map is an event: the first counts, unless
//! `--event @NAME` names another. Maps without stacks and histograms are left out; a message names these maps. A key that
//! contains a stack, even an empty one, has several lines, as bpftrace begins each stack with a line end.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, function_name, is_address, parse_number, split_once, strip_offset};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::markers;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "bpftrace",
    description: "bpftrace maps keyed by stacks",
    tested_with: "bpftrace 0.17, published files",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

/// Prefixes of the functions at the root of kernel stacks.
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
    first_lines(head).any(|line| line.starts_with(b"Attaching ") && line.ends_with(b"..."))
        && first_lines(head).any(|line| line.starts_with(b"@"))
        || first_lines(head)
            .find(|line| !line.is_empty())
            .is_some_and(|line| parse_opening(line).is_some_and(|(_, keys)| has_more_keys(keys) || is_entry_end(keys)))
        || first_lines(head).any(|line| parse_opening(line).is_some_and(|(_, keys)| has_more_keys(keys)))
}

/// Returns true if the keys of an entry continue after this line.
fn has_more_keys(keys: &[u8]) -> bool {
    matches!(keys.trim_ascii_end(), b"" | [.., b','])
}

/// Returns true if a line ends an entry, with a value or a histogram.
fn is_entry_end(keys: &[u8]) -> bool {
    parse_closing(keys).is_some() || keys.trim_ascii_end().ends_with(b"]:")
}

/// Returns true if a line is a whole entry. Such a line also looks like a folded stack.
pub(super) fn is_one_line_entry(line: &[u8]) -> bool {
    parse_opening(line).is_some_and(|(_, keys)| parse_closing(keys).is_some())
}

/// Returns true for a row of a histogram: `[1, 2)   3 |@@@@   |`.
fn is_histogram_row(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'[' | b'(')) && line.ends_with(b"|")
}

/// Returns the map's name and the text after the opening bracket.
fn parse_opening(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let bracket = memchr::memchr(b'[', line).filter(|_| line.starts_with(b"@"))?;
    let (name, rest) = line.split_at(bracket);
    let is_name = name[1..].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    is_name.then_some((name, &rest[1..]))
}

/// Returns the last keys and the value of a line that ends an entry.
fn parse_closing(line: &[u8]) -> Option<(&[u8], u64)> {
    let end = memchr::memmem::rfind(line, b"]: ")?;
    let value = &line[end + 3..];
    Some((&line[..end], parse_number(parse_total(value).unwrap_or(value))?))
}

/// Returns the total of a value of `stats()`, `count 3, average 5, total 15`.
fn parse_total(value: &[u8]) -> Option<&[u8]> {
    split_once(value, ", total ").filter(|_| value.starts_with(b"count ")).map(|(_, total)| total)
}

/// The message about values of `stats()`.
pub(super) const USES_TOTALS: &str = "values have a count, an average and a total (stats()); using the total";

/// Fewest digits of an address in perf's form.
const MIN_ADDRESS: usize = 6;

/// Returns the name and offset of a frame of `ustack(perf)` and `kstack(perf)`: `ADDRESS NAME+OFFSET (MODULE)`, where kernel
/// frames have no module. `None` for frames in bpftrace's own form, which have no address.
fn parse_perf_frame(frame: &[u8]) -> Option<&[u8]> {
    let (address, rest) = split_once(frame, " ").filter(|(address, _)| address.len() >= MIN_ADDRESS)?;
    address.iter().all(u8::is_ascii_hexdigit).then_some(())?;
    let is_name = |name: &[u8]| is_address(name) || strip_offset(name).len() < name.len();
    // Names, such as those of templates, and modules may contain blanks and parentheses.
    let mut ends = memchr::memmem::find_iter(rest, b" (").chain([rest.len()]);
    ends.find_map(|end| rest.get(..end).filter(|name| is_name(name)))
}

/// The error for input whose maps have no stacks.
const NO_STACKS: &str = "bpftrace output, but no map in it is keyed by a stack";

/// An entry of a map.
#[derive(Default)]
pub(super) struct Entry {
    map: Vec<u8>,
    /// True if a key contains a stack, which may be empty.
    has_stacks: bool,
    keys: Vec<Vec<u8>>,
    /// In the order in which they were printed. The last one is being read.
    stacks: Vec<EntryStack>,
}

/// A kernel or user stack of an entry, leaf first.
#[derive(Default)]
struct EntryStack {
    frames: Stack,
    is_kernel: bool,
}

/// The maps of a text in which an entry was read.
#[derive(Default)]
struct Maps {
    /// The entries of the last map, none of which has a stack so far.
    held: Vec<(Entry, Weight)>,
    /// The last map, if one of its entries has a stack.
    with_stacks: Option<Vec<u8>>,
    without_stacks: PlainMaps,
}

impl Maps {
    /// Adds an entry to its map. It counts if the map is keyed by stacks, as the entry itself or another one shows.
    fn add(&mut self, entry: Entry, weight: Weight, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        if self.held.first().is_some_and(|(held, _)| held.map != entry.map) {
            self.drop_held();
        }
        if entry.has_stacks {
            self.with_stacks = Some(entry.map.clone());
        }
        if self.with_stacks.as_ref() != Some(&entry.map) {
            self.held.push((entry, weight));
            return Ok(());
        }
        self.held.drain(..).try_for_each(|(held, weight)| held.add(weight, document, sink))?;
        entry.add(weight, document, sink)
    }

    /// Leaves out a map that has no stacks.
    fn leave_out(&mut self, map: &[u8]) {
        self.drop_held();
        self.without_stacks.add(map);
    }

    /// Leaves out the entries of a map without stacks.
    fn drop_held(&mut self) {
        self.held.drain(..).for_each(|(entry, _)| self.without_stacks.add(&entry.map));
    }
}

/// The names of maps that are not keyed by stacks.
#[derive(Default)]
pub(super) struct PlainMaps(Vec<Vec<u8>>);

impl PlainMaps {
    /// Adds a map, which may be known already.
    pub(super) fn add(&mut self, name: &[u8]) {
        if self.0.last().is_none_or(|last| last != name) && !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_vec());
        }
    }

    /// Says which maps were left out because they have no stacks.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if no other map was read.
    pub(super) fn report_without_stacks(&self, document: &mut Document<'_>) -> Result<(), Error> {
        if !self.0.is_empty() && document.events.seen().is_empty() {
            return Err(document.unreadable(NO_STACKS));
        }
        self.report("left out maps that are not keyed by stacks", document)
    }

    /// Says which maps were left out.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if no other map was read.
    pub(super) fn report(&self, what: &str, document: &mut Document<'_>) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let what = format!("{what}: {}", self.0.join(&b", "[..]).to_str_lossy());
        if document.events.seen().is_empty() {
            return Err(document.unreadable(what));
        }
        document.warn(&what);
        Ok(())
    }
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut entry, mut maps) = (Vec::new(), None::<Entry>, Maps::default());
    let mut has_totals = false;
    while document.read_line(&mut line)? {
        let (mut rest, mut is_opening) = (&line[..], false);
        if let Some((map, keys)) = parse_opening(&line) {
            if entry.is_some() {
                document.report_malformed("an entry begins before the last one has ended")?;
            }
            entry = Some(Entry { has_stacks: has_more_keys(keys), ..Entry::new(map) });
            (rest, is_opening) = (keys, true);
        }
        let Some(current) = &mut entry else {
            if let Some((name, _)) = split_once(&line, ":").filter(|_| line.starts_with(b"@")) {
                maps.leave_out(name);
            } else if line.starts_with(b"Lost ") {
                document.warn("bpftrace reports that it lost events");
            } else if line.starts_with(b"Attaching ") || line == b"^C" || is_histogram_row(&line) {
                document.skip_own_line();
            } else {
                document.skip_line();
            }
            continue;
        };
        match parse_closing(rest) {
            Some((keys, value)) => {
                has_totals |= rest.get(keys.len() + 3..).and_then(parse_total).is_some();
                current.add_keys(keys);
                let last = entry.take().unwrap_or_default();
                maps.add(last, Weight::new(value), document, sink)?;
            }
            None if rest.ends_with(b"]:") || rest.ends_with(b"]: ") => {
                let last = entry.take().unwrap_or_default();
                match last.has_stacks {
                    true => document.report_malformed("expected a number, found a histogram")?,
                    false => maps.leave_out(&last.map),
                }
            }
            None if matches!(rest.first(), Some(b' ' | b'\t')) => {
                current.push_frame(rest.trim_ascii(), document.options, sink)
            }
            None if rest.trim_ascii().is_empty() => current.end_stack(),
            None if is_opening || rest.starts_with(b",") => current.add_keys(rest),
            None => document.report_unindented("expected a frame, or keys and a value")?,
        }
    }
    maps.drop_held();
    if has_totals {
        document.warn(USES_TOTALS);
    }
    maps.without_stacks.report_without_stacks(document)?;
    if entry.is_some() { document.report_malformed("the input ends within a map's entry") } else { Ok(()) }
}

impl Entry {
    /// Creates an entry of the map with this name, without keys.
    pub(super) fn new(map: &[u8]) -> Self {
        Self { map: map.to_vec(), stacks: vec![EntryStack::default()], ..Self::default() }
    }

    /// Adds keys, separated by commas.
    pub(super) fn add_keys(&mut self, text: &[u8]) {
        let keys = text.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|key| !key.is_empty());
        self.keys.extend(keys.map(<[u8]>::to_vec));
    }

    /// Pushes a frame to the current stack.
    pub(super) fn push_frame(&mut self, frame: &[u8], options: &Options, sink: &mut Sink) {
        let name = parse_perf_frame(frame).unwrap_or(frame);
        if let Some(stack) = self.stacks.last_mut() {
            stack.is_kernel |= KERNEL_ROOTS.iter().any(|root| name.starts_with(root));
            // The address itself is printed if there is no symbol, or if the process has ended.
            let name = if is_address(name) { markers::UNKNOWN.into() } else { function_name(name, options) };
            stack.frames.push(&name, sink);
        }
    }

    /// Ends the current stack, as a blank line between two stacks does.
    pub(super) fn end_stack(&mut self) {
        if self.stacks.last().is_some_and(|stack| !stack.frames.is_empty()) {
            self.stacks.push(EntryStack::default());
        }
    }

    /// Adds the entry's stack with this weight, if its map is selected.
    pub(super) fn add(mut self, weight: Weight, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        if !document.events.accept(&self.map) {
            return Ok(());
        }
        self.stacks.retain(|stack| !stack.frames.is_empty());
        // Leaf first, the kernel stack comes before the user stack, whichever of the two the map's key names first.
        if let [first, second] = &self.stacks[..]
            && second.is_kernel
            && !first.is_kernel
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
