//! The tables of a sequence of packets: strings, mappings, frames and stacks, to which samples refer by ID.

use rustc_hash::FxHashMap;

use super::tracks::Names;
use crate::collapse::document_helpers::{count_truncated_frames, function_with_source, module_frame};
use crate::collapse::line_helpers::function_name;
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{MAX_STACK_LENGTH, intern_frame};
use crate::markers;
use crate::profile::FrameId;
use crate::protobuf::{Fields, read_messages, read_numbers};

/// The tables of a sequence.
#[derive(Default)]
pub(super) struct Interned<'a> {
    functions: FxHashMap<u64, &'a [u8]>,
    paths: FxHashMap<u64, &'a [u8]>,
    build_ids: FxHashMap<u64, &'a [u8]>,
    mappings: FxHashMap<u64, Mapping>,
    frames: FxHashMap<u64, Frame>,
    pub(super) event_names: Names<'a>,
    /// The processes and threads of samples.
    pub(super) tasks: FxHashMap<u64, (u64, u64)>,
    /// The CPUs of samples.
    pub(super) cpus: FxHashMap<u64, u64>,
    /// The IDs of the frames of each stack, root first.
    stacks: FxHashMap<u64, Vec<u64>>,
    /// The frames that were named.
    named: FxHashMap<u64, Vec<FrameId>>,
    /// The stack that was built last.
    stack: Vec<FrameId>,
}

struct Mapping {
    build_id: u64,
    path: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Frame {
    function: u64,
    mapping: u64,
    address: u64,
    line: u64,
}

/// Symbols that were added to a trace, by the build ID or path of a file and the address in it.
#[derive(Default)]
pub(super) struct Symbols<'a> {
    lines: FxHashMap<(&'a [u8], u64), Vec<&'a [u8]>>,
}

impl<'a> Symbols<'a> {
    /// Adds the symbols of a file.
    pub(super) fn add(&mut self, message: &'a [u8]) {
        for address in read_messages(message, 3) {
            let Some([number]) = read_numbers(address, [1]) else { continue };
            for key in [read_text(message, 1), read_text(message, 2)] {
                if !key.is_empty() {
                    self.lines.insert((key, number), read_messages(address, 2).collect());
                }
            }
        }
    }
}

impl<'a> Interned<'a> {
    /// Adds the entries of a message.
    pub(super) fn add(&mut self, message: &'a [u8]) {
        for (number, value) in Fields::new(message).flatten() {
            let Some(inner) = value.bytes() else { continue };
            self.add_entry(number, inner);
        }
    }

    /// Adds the tables that heap profiles of Android 10 contain.
    pub(super) fn add_heap_tables(&mut self, message: &'a [u8]) {
        for (number, value) in Fields::new(message).flatten() {
            let Some(inner) = value.bytes() else { continue };
            match number {
                1 => [5, 16, 17].into_iter().for_each(|table| self.add_entry(table, inner)),
                2 => self.add_entry(6, inner),
                3 => self.add_entry(7, inner),
                4 => self.add_entry(19, inner),
                _ => {}
            }
        }
    }

    fn add_entry(&mut self, table: u32, entry: &'a [u8]) {
        let Some([id]) = read_numbers(entry, [1]) else { return };
        match table {
            2 => drop(self.event_names.insert(id, read_text(entry, 2))),
            5 => drop(self.functions.insert(id, read_text(entry, 2))),
            16 => drop(self.build_ids.insert(id, read_text(entry, 2))),
            17 => drop(self.paths.insert(id, read_text(entry, 2))),
            6 => {
                if let Some([function, mapping, address, line]) = read_numbers(entry, [2, 3, 4, 6]) {
                    self.frames.insert(id, Frame { function, mapping, address, line });
                }
            }
            7 => drop(self.stacks.insert(id, read_repeated(entry, 2))),
            19 => {
                let build_id = read_numbers(entry, [2]).map_or(0, |[build_id]| build_id);
                self.mappings.insert(id, Mapping { build_id, path: read_repeated(entry, 7) });
            }
            48 => drop(self.tasks.insert(id, read_numbers(entry, [2, 3]).map_or((0, 0), |[pid, tid]| (pid, tid)))),
            49 => drop(read_numbers(entry, [2]).map(|[cpu]| self.cpus.insert(id, cpu))),
            _ => {}
        }
    }

    /// Returns the frames of a stack, root first, and true if it is not cut.
    pub(super) fn stack(
        &mut self,
        id: u64,
        symbols: &Symbols<'a>,
        options: &Options,
        sink: &mut Sink,
    ) -> (&[FrameId], bool) {
        let frames = self.stacks.remove(&id).unwrap_or_default();
        let left_out = count_truncated_frames(frames.len());
        self.stack.clear();
        for frame in &frames[left_out..] {
            if !self.named.contains_key(frame) {
                let names = self.name_frame(*frame, symbols, options, sink);
                self.named.insert(*frame, names);
            }
            self.stack.extend_from_slice(&self.named[frame]);
        }
        self.stacks.insert(id, frames);
        sink.cut_stacks += u64::from(left_out > 0);
        (&self.stack, left_out == 0)
    }

    /// Returns the names of a frame: several if calls were inlined there.
    fn name_frame(&self, id: u64, symbols: &Symbols<'a>, options: &Options, sink: &mut Sink) -> Vec<FrameId> {
        let Some(frame) = self.frames.get(&id) else { return vec![sink.intern(markers::UNKNOWN)] };
        let mapping = self.mappings.get(&frame.mapping);
        let path = mapping.map_or_else(Vec::new, |mapping| {
            let parts: Vec<&[u8]> = mapping.path.iter().filter_map(|id| self.paths.get(id).copied()).collect();
            parts.join(&b'/')
        });
        let build_id = mapping.and_then(|mapping| self.build_ids.get(&mapping.build_id)).copied().unwrap_or_default();
        let keys = [build_id, &path];
        let lines = keys.iter().find_map(|key| symbols.lines.get(&(*key, frame.address)));
        if let Some(lines) = lines.filter(|lines| !lines.is_empty()) {
            let named = lines.iter().rev().take(crate::collapse::stack::MAX_SHARED_DEPTH).map(|line| {
                let number = read_numbers(line, [3]).and_then(|[number]| i64::try_from(number).ok());
                let name = function_name(read_text(line, 1), options);
                intern_frame(&function_with_source(&name, read_text(line, 2), number, options), sink)
            });
            return named.collect();
        }
        let function = self.functions.get(&frame.function).copied().unwrap_or_default();
        let name = match function {
            b"" => module_frame(&path, format!("{:x}", frame.address).as_bytes(), options),
            name => {
                let line = i64::try_from(frame.line).ok();
                function_with_source(&function_name(name, options), &path, line.filter(|line| *line > 0), options)
            }
        };
        vec![intern_frame(&name, sink)]
    }
}

/// Returns the frames of a stack that an event contains, root first.
pub(super) fn name_inline_stack(message: &[u8], options: &Options, sink: &mut Sink) -> Vec<FrameId> {
    let frames = read_messages(message, 1).take(MAX_STACK_LENGTH).map(|frame| {
        let line = Fields::new(frame).flatten().find(|(number, _)| *number == 3).and_then(|(_, value)| value.number());
        let line = line.and_then(|line| i64::try_from(line).ok());
        let name = function_name(read_text(frame, 1), options);
        intern_frame(&function_with_source(&name, read_text(frame, 2), line, options), sink)
    });
    frames.collect()
}

/// Returns the numbers of a repeated field of a message.
fn read_repeated(message: &[u8], field: u32) -> Vec<u64> {
    let values = Fields::new(message).flatten().filter(|(number, _)| *number == field);
    values.flat_map(|(_, value)| value.numbers()).collect()
}

/// Returns the text in a field of a message, or an empty one.
fn read_text(message: &[u8], field: u32) -> &[u8] {
    read_messages(message, field).next().unwrap_or_default()
}
