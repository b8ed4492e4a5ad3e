//! heaptrack's recordings (`heaptrack.APP.PID.zst`): allocations and deallocations in order, with a tree of stacks.
//!
//! ```text
//! v 10400 3
//! s 4 main
//! s 4 work
//! i 55a7de4f0247 1 2 0 a
//! t 1 0
//! a 4e20 1
//! + 0
//! ```
//! Numbers are hexadecimal. The weight is the bytes in use when the heap was largest (`peak`), unless `--event` names
//! another value: `allocations`, `temporary` (allocations that are freed before the next one) or `leaked` (bytes in use at
//! the end). Files and lines are left out unless `--srcline` asks for them. Recordings that heaptrack has not interpreted
//! yet have no names.
//! heaptrack_print may count more temporary allocations: it notes the number of the last kind of allocation, and 0 if a
//! deallocation came after it. But 0 is also the number of the first kind, so that each of its deallocations that follows
//! another one is counted. Memory depends on the number of distinct stacks, not on the number of allocations.

mod costs;

use self::costs::Costs;
use super::mapped::parse_hex;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, function_name, split_word};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{MAX_SHARED_DEPTH, Stack, intern_frame};
use crate::markers;
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "heaptrack",
    description: "heaptrack (C, C++)",
    tested_with: "heaptrack 1.4",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| {
        let mut lines = first_lines(head);
        lines.next().is_some_and(is_version)
            && lines.next().is_some_and(|line| line.starts_with(b"X ") || line.starts_with(b"x "))
    }),
    reader: FormatReader::Lines(read),
};

/// Returns true for `v 10400 3`: the versions of heaptrack and of the format.
pub(super) fn is_version(line: &[u8]) -> bool {
    let numbers = line.strip_prefix(b"v ").unwrap_or_default();
    let (program, format) = split_word(numbers);
    parse_hex(program).is_some_and(|version| version >= 0x1_0000)
        && (format.is_empty() || parse_hex(format).is_some_and(|version| version < 0x100))
}

/// The tables of a recording. Numbers of strings, instructions and traces begin with 1.
#[derive(Default)]
struct Tables {
    strings: Vec<Vec<u8>>,
    /// The frames of each instruction, leaf first.
    instructions: Vec<Vec<FrameId>>,
    /// The instruction and the caller's number of each trace.
    traces: Vec<(usize, usize)>,
    /// The size and the trace of each kind of allocation.
    allocations: Vec<(u64, usize)>,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let value = document.select_value(&["peak", "allocations", "temporary", "leaked"], 0)?;
    document.set_unit_silently(if matches!(value, 0 | 3) { "bytes" } else { "allocations" });
    let (mut line, mut tables, mut costs) = (Vec::new(), Tables::default(), Costs::default());
    let (mut is_old, mut has_names) = (false, false);
    while document.read_line(&mut line)? {
        let (kind, rest) = line.split_at(line.len().min(2));
        match kind {
            b"v " => is_old = split_word(rest).1.is_empty() || matches!(split_word(rest).1, b"1" | b"2"),
            b"x " | b"m " => {
                return Err(
                    document.unreadable("not interpreted yet; run `heaptrack --interpret FILE`, and give its output")
                );
            }
            _ => {}
        }
        has_names |= kind == b"i ";
        let is_known = match kind {
            b"s " => tables.add_string(rest, is_old),
            b"i " => tables.add_instruction(rest, document.options, sink).is_some(),
            b"t " => tables.add_trace(rest).is_some(),
            b"a " => tables.add_allocation(rest).is_some(),
            b"+ " => tables.allocation(rest).map(|(size, trace)| costs.allocate(size, trace)).is_some(),
            b"- " => tables.allocation(rest).map(|(size, trace)| costs.free(size, trace)).is_some(),
            // Times, memory use, the command, suppressions and comments.
            b"v " | b"X " | b"I " | b"c " | b"R " | b"A" | b"A " | b"S " | b"# " | b"#" | b"" => true,
            _ => false,
        };
        if !is_known {
            document.report_malformed("expected a record of heaptrack")?;
        }
    }
    if !has_names && !tables.traces.is_empty() {
        return Err(document.unreadable("a heaptrack recording without functions"));
    }
    for (trace, weight) in costs.values(value) {
        tables.add_stack(trace, Weight::new(weight), sink)?;
    }
    Ok(())
}

impl Tables {
    /// Adds a string, which is preceded by its length from version 3 on.
    fn add_string(&mut self, text: &[u8], is_old: bool) -> bool {
        let text = if is_old { text } else { split_word(text).1 };
        self.strings.push(text.to_vec());
        true
    }

    /// Adds an instruction: `ADDRESS MODULE [FUNCTION FILE LINE]…`, the function first and its callers, into which it was
    /// inlined, after it.
    fn add_instruction(&mut self, text: &[u8], options: &Options, sink: &mut Sink) -> Option<()> {
        let numbers: Option<Vec<u64>> =
            text.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).map(parse_hex).collect();
        let numbers = numbers.filter(|numbers| numbers.len() >= 2);
        let mut frames = Vec::new();
        if let Some(numbers) = &numbers {
            for call in numbers[2..].chunks(3) {
                let function = function_name(self.string(call[0]), options);
                let mut name = function.into_owned();
                let place = call.get(1).zip(call.get(2)).filter(|(file, _)| options.srcline && **file > 0);
                if let Some((file, line)) = place {
                    name.extend_from_slice(&[b":", self.string(*file), format!(":{line}").as_bytes()].concat());
                }
                frames.push(intern_frame(&name, sink));
            }
            if frames.is_empty() {
                let module = self.string(numbers[1]);
                let file = module.rsplit(|byte| *byte == b'/').next().unwrap_or(module);
                let name = if file.is_empty() { markers::UNKNOWN.to_vec() } else { [b"[", file, b"]"].concat() };
                frames.push(sink.intern(&name));
            }
        }
        self.instructions.push(frames);
        numbers.map(drop)
    }

    fn string(&self, number: u64) -> &[u8] {
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| self.strings.get(index)).map_or(&[], Vec::as_slice)
    }

    fn add_trace(&mut self, text: &[u8]) -> Option<()> {
        let pair = parse_pair(text).and_then(|(instruction, caller)| {
            // A caller comes before its callees, so traces have no cycles.
            let caller = usize::try_from(caller).ok().filter(|caller| *caller <= self.traces.len())?;
            Some((usize::try_from(instruction).ok()?, caller))
        });
        self.traces.push(pair.unwrap_or_default());
        pair.map(drop)
    }

    fn add_allocation(&mut self, text: &[u8]) -> Option<()> {
        let pair = parse_pair(text).and_then(|(size, trace)| Some((size, usize::try_from(trace).ok()?)));
        let pair = pair.filter(|(_, trace)| *trace <= self.traces.len());
        self.allocations.push(pair.unwrap_or_default());
        pair.map(drop)
    }

    /// Returns the size and the trace of a kind of allocation. Their numbers begin with 0.
    fn allocation(&self, number: &[u8]) -> Option<(u64, usize)> {
        self.allocations.get(usize::try_from(parse_hex(number.trim_ascii())?).ok()?).copied()
    }

    fn add_stack(&self, mut trace: usize, weight: Weight, sink: &mut Sink) -> Result<(), Error> {
        let mut stack = Stack::default();
        let mut frames = 0;
        while let Some((instruction, caller)) = trace.checked_sub(1).and_then(|index| self.traces.get(index)) {
            let found = instruction.checked_sub(1).and_then(|index| self.instructions.get(index));
            let found = found.map_or(&[][..], Vec::as_slice);
            frames += found.len().max(1);
            if frames > MAX_SHARED_DEPTH {
                sink.cut_stacks += 1;
                stack.push(markers::TRUNCATED, sink);
                break;
            }
            stack.extend(found);
            // The last caller is 0.
            trace = *caller;
        }
        if stack.is_empty() {
            stack.push(markers::UNKNOWN, sink);
        }
        stack.add_leaf_first(weight, sink)
    }
}

/// Parses two hexadecimal numbers.
fn parse_pair(text: &[u8]) -> Option<(u64, u64)> {
    let (first, second) = split_word(text);
    Some((parse_hex(first)?, parse_hex(second.trim_ascii())?))
}
