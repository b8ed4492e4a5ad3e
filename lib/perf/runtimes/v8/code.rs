//! Generated code: finds the code of an address, and the functions that were inlined there.

use super::heap::{Heap, is_object};
use super::positions::{Position, find_position};

/// The place in instructions of the pointer to the code, if the two are separate.
const CODE_OF_INSTRUCTIONS: u64 = 8;
/// The place in a wrapper of what it points to.
const WRAPPED: u64 = 8;
/// The alignment of code, and the size of the largest code that is found.
const ALIGNMENT: u64 = 32;
const MAX_CODE: u64 = 4 << 20;
/// Number of bytes that are read at once when the start of code is searched.
const BLOCK: u64 = 4096;
/// The bits of the kind of code.
const KIND: u32 = 15;
/// The size of a description of an inlined call: its position, and the number of the function.
const INLINED_CALL: u64 = 16;
/// The largest table that is read, and the deepest inlining.
const MAX_TABLE: u64 = 16 << 20;
const MAX_DEPTH: usize = 64;

/// The kind of generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeKind {
    /// Each instruction of the bytecode, one after the other.
    Baseline,
    /// Several functions: calls were inlined. Maglev notes wrong positions in loops: those after a first iteration that is apart
    /// are the loop's.
    Optimized { has_lines: bool },
    /// A regular expression.
    RegularExpression,
    /// No function of a script.
    Other,
}

/// Code that V8 has generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    object: u64,
    /// The address of the first instruction.
    pub(super) start: u64,
    pub(super) kind: CodeKind,
}

/// A function in a frame, and the position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeFunction {
    pub(super) shared: u64,
    pub(super) position: Option<u32>,
}

/// Finds the code that an address is in. Objects of code are aligned, so those before the address are tried.
pub(super) fn find_code(heap: Heap<'_>, pc: u64) -> Option<Code> {
    let header = u64::from(heap.offsets.code.header);
    let mut candidate = pc & !(ALIGNMENT - 1);
    let lowest = pc.saturating_sub(MAX_CODE);
    // The maps that were met and are not of code.
    let mut others: Vec<u64> = Vec::new();
    while candidate > lowest.max(BLOCK) {
        let from = candidate - header - (BLOCK - ALIGNMENT);
        let block = heap.memory.bytes(from, BLOCK as usize).map(|block| (from, block));
        // The start of a mapping: what is before cannot be read.
        let (from, block) = block.or_else(|| read_page(heap, candidate - header))?;
        while candidate - header >= from && candidate > lowest {
            let at = (candidate - header - from) as usize;
            let map = block.get(at..at + 8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")))?;
            if is_object(map) && map >> 47 == 0 && !others.contains(&map) {
                match is_code_map(heap, map).then(|| code_at(heap, candidate)) {
                    // If the code ends before the address, none contains it.
                    Some(Some((code, size))) => return (pc - candidate < size).then_some(code),
                    Some(None) => {}
                    None => others.push(map),
                }
            }
            candidate -= ALIGNMENT;
        }
    }
    None
}

/// Reads from the start of a page up to the word at an address.
fn read_page(heap: Heap<'_>, address: u64) -> Option<(u64, Vec<u8>)> {
    let page = address & !(BLOCK - 1);
    Some((page, heap.memory.bytes(page, (address + 8 - page) as usize)?))
}

/// True for the map of objects that contain instructions.
fn is_code_map(heap: Heap<'_>, map: u64) -> bool {
    let types = &heap.offsets.types;
    let expected = if heap.offsets.code.is_separate { types.instructions } else { Some(types.code) };
    expected.is_some() && heap.map_type(map) == expected
}

/// Returns the code whose first instruction is at an address, and its size, if the object before it is one of code.
fn code_at(heap: Heap<'_>, start: u64) -> Option<(Code, u64)> {
    let offsets = &heap.offsets.code;
    let instructions = start - u64::from(offsets.header) + 1;
    let object = if offsets.is_separate {
        let code = heap.of_type(heap.field(instructions, CODE_OF_INSTRUCTIONS)?, heap.offsets.types.code)?;
        (heap.field(code, offsets.start.into())? == start).then_some(code)?
    } else {
        instructions
    };
    let kind = heap.field_u32(object, offsets.flags.into())? & KIND;
    let kind = match kind {
        _ if kind == offsets.regular_expression => CodeKind::RegularExpression,
        _ if kind == offsets.baseline => CodeKind::Baseline,
        _ if offsets.optimized.contains(&kind) => CodeKind::Optimized { has_lines: kind == offsets.optimized[1] },
        _ => CodeKind::Other,
    };
    let size = heap.field_u32(object, offsets.size.into())?;
    Some((Code { object, start, kind }, size.into()))
}

impl Code {
    /// Returns the offset in the source of a position, if it is known.
    fn offset_at(self, position: Option<Position>) -> Option<u32> {
        position.filter(|_| self.kind == CodeKind::Optimized { has_lines: true })?.offset()
    }

    /// Returns the functions at an offset of optimized code, innermost first. The last one is that which was compiled. Empty if
    /// the code does not tell it, and nothing was inlined there.
    pub(super) fn functions_at(self, heap: Heap<'_>, offset: u64) -> Option<Vec<CodeFunction>> {
        let (places, indices) = (&heap.offsets.code, &heap.offsets.deoptimization);
        let data = heap.field(self.object, places.deoptimization.into())?;
        let table = heap.field(self.object, places.positions.into())?;
        let table = heap.array_bytes(table, MAX_TABLE).unwrap_or_default();
        let mut position = find_position(&table, heap.offsets.encoding, offset.cast_signed());
        if heap.array_length(data) == Some(0) {
            return position.and_then(Position::inlining).is_none().then(Vec::new);
        }
        let compiled = heap.element(data, indices.shared.into())?;
        let compiled = if indices.is_wrapped { heap.field(compiled, WRAPPED)? } else { compiled };
        let compiled = heap.of_type(compiled, heap.offsets.types.shared)?;
        let mut functions = Vec::new();
        while let Some(call) = position.and_then(Position::inlining) {
            if functions.len() >= MAX_DEPTH {
                return None;
            }
            let (caller, shared) = inlined_call(heap, data, call)?;
            functions.push(CodeFunction { shared: shared.unwrap_or(compiled), position: self.offset_at(position) });
            position = Some(caller);
        }
        functions.push(CodeFunction { shared: compiled, position: self.offset_at(position) });
        Some(functions)
    }
}

/// Returns the position of an inlined call in its caller, and the function. `None` for the function that was compiled: it
/// calls itself.
fn inlined_call(heap: Heap<'_>, data: u64, call: u64) -> Option<(Position, Option<u64>)> {
    let indices = &heap.offsets.deoptimization;
    let calls = heap.element(data, indices.inlining.into())?;
    let at = call * INLINED_CALL;
    if at + INLINED_CALL > heap.array_length(calls)? {
        return None;
    }
    let position = Position::new(heap.field(calls, 16 + at)?);
    let function = heap.field_u32(calls, 16 + at + 8)?.cast_signed();
    let Ok(function) = u64::try_from(function) else { return Some((position, None)) };
    let shared = heap.element(heap.element(data, indices.literals.into())?, function)?;
    Some((position, Some(heap.of_type(shared, heap.offsets.types.shared)?)))
}
