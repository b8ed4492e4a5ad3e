//! The parts of a function: compilers move rarely used code behind other functions.
//!
//! Symbols name the other parts (`NAME.cold`), but not in stripped files. Unwind information tells them from other
//! functions: at its first instruction, a function has only a return address on the stack.

use std::ops::Range;

use addr2line::gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, UnwindContext, UnwindSection as _, X86_64,
};
use iced_x86::{Decoder, DecoderOptions, FlowControl, OpKind, Register};
use rustc_hash::FxHashMap;

use super::interpreter::InterpreterFile;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The first byte of a call to an address at a distance.
const NEAR_CALL: u8 = 0xe8;

/// Maximum number of parts of a function.
const MAX_PARTS: usize = 8;

/// Returns the address ranges of a function: the given one, and those of its other parts, which it jumps to.
pub(super) fn find_parts(file: &InterpreterFile<'_>, function: Range<u64>) -> Vec<Range<u64>> {
    let mut parts = vec![function];
    let Some(table) = UnwindTable::open(file) else { return parts };
    let mut next = 0;
    while next < parts.len() {
        for target in jump_targets(file, parts[next].clone()) {
            if parts.len() < MAX_PARTS
                && !parts.iter().any(|part| part.contains(&target))
                && let Some(part) = table.find_part(target)
            {
                parts.push(part);
            }
        }
        next += 1;
    }
    parts
}

/// Fewer such jumps than this, or less than twice as many as another function has, do not make a dispatcher. Debian's Ruby 3.1 has
/// 123, its 3.3 has 127, and one that is built from source 130. Another function has one.
const MIN_JUMPS: usize = 64;

/// Finds the function that runs the instructions of an interpreter: each ends with a jump to the next one, whose address it reads
/// behind the instruction's, so this function has by far the most of them. Those of a `switch` read a table, and jump to a register
/// or an indexed place. `None` if there is no such function.
pub(super) fn find_dispatcher(file: &InterpreterFile<'_>) -> Option<Range<u64>> {
    let table = UnwindTable::open(file)?;
    let (start, code) = file.section(".text")?;
    let mut functions: FxHashMap<u64, (Range<u64>, usize)> = FxHashMap::default();
    let mut current = 0..0;
    for instruction in &mut Decoder::with_ip(64, code, start, DecoderOptions::NONE) {
        let is_indexed = instruction.memory_base() == Register::None || instruction.memory_index() != Register::None;
        let is_next = instruction.flow_control() == FlowControl::IndirectBranch
            && instruction.op0_kind() == OpKind::Memory
            && !instruction.is_ip_rel_memory_operand()
            && !is_indexed;
        if !is_next {
            continue;
        }
        if !current.contains(&instruction.ip()) {
            let Some(found) = table.find_function(instruction.ip()) else { continue };
            current = found;
        }
        functions.entry(current.start).or_insert_with(|| (current.clone(), 0)).1 += 1;
    }
    let mut counts: Vec<usize> = functions.values().map(|(_, jumps)| *jumps).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let most = *counts.first().filter(|most| **most >= MIN_JUMPS)?;
    let is_clear = counts.get(1).is_none_or(|next| next * 2 <= most);
    functions.into_values().find(|(_, jumps)| is_clear && *jumps == most).map(|(range, _)| range)
}

/// Finds the functions that call one at an address, with all of their parts.
pub(super) fn find_callers(file: &InterpreterFile<'_>, address: u64) -> Vec<Range<u64>> {
    let (Some(table), Some((start, code))) = (UnwindTable::open(file), file.section(".text")) else {
        return Vec::new();
    };
    let mut callers: Vec<Range<u64>> = Vec::new();
    for place in memchr::memchr_iter(NEAR_CALL, code) {
        let Some(distance) = code.get(place + 1..).and_then(|operand| operand.first_chunk()) else { break };
        let next = start + place as u64 + 5;
        if next.wrapping_add_signed(i32::from_le_bytes(*distance).into()) == address
            && !callers.iter().any(|part| part.contains(&(next - 1)))
            && let Some(caller) = table.find_function(next - 1)
        {
            callers.extend(find_parts(file, caller));
        }
    }
    callers
}

/// Returns where the jumps of a piece of code lead to outside of it.
fn jump_targets(file: &InterpreterFile<'_>, range: Range<u64>) -> Vec<u64> {
    let code = file.elf.code_from(range.start);
    let code = &code[..code.len().min((range.end - range.start) as usize)];
    let instructions = Decoder::with_ip(64, code, range.start, DecoderOptions::NONE).into_iter();
    let jumps = instructions.filter(|instruction| {
        matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch)
    });
    let mut targets: Vec<u64> = jumps.map(|jump| jump.near_branch_target()).collect();
    targets.retain(|target| *target != 0 && !range.contains(target));
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// The unwind information of a file, with its search table.
struct UnwindTable<'a> {
    header: addr2line::gimli::ParsedEhFrameHdr<Slice<'a>>,
    frames: EhFrame<Slice<'a>>,
    bases: BaseAddresses,
}

impl<'a> UnwindTable<'a> {
    fn open(file: &InterpreterFile<'a>) -> Option<Self> {
        let (header_address, header) = file.section(".eh_frame_hdr")?;
        let (frames_address, frames) = file.section(".eh_frame")?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(header_address).set_eh_frame(frames_address);
        let header = EhFrameHdr::new(header, LittleEndian).parse(&bases, 8).ok()?;
        Some(Self { header, frames: EhFrame::new(frames, LittleEndian), bases })
    }

    /// Returns the range of the function at an address.
    fn find_function(&self, address: u64) -> Option<Range<u64>> {
        let table = self.header.table()?;
        let fde = table.fde_for_address(&self.frames, &self.bases, address, EhFrame::cie_from_offset).ok()?;
        Some(fde.initial_address()..fde.initial_address().checked_add(fde.len())?)
    }

    /// Returns the range of the part of a function at an address. `None` if the address is the start of a function.
    fn find_part(&self, address: u64) -> Option<Range<u64>> {
        let table = self.header.table()?;
        let fde = table.fde_for_address(&self.frames, &self.bases, address, EhFrame::cie_from_offset).ok()?;
        let range = fde.initial_address()..fde.initial_address().checked_add(fde.len())?;
        let mut context = UnwindContext::new();
        let row = fde.unwind_info_for_address(&self.frames, &self.bases, &mut context, range.start).ok()?;
        let is_function_start = matches!(row.cfa(), CfaRule::RegisterAndOffset { register: X86_64::RSP, offset: 8 });
        (!is_function_start).then_some(range)
    }
}
