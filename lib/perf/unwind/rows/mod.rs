//! Rows: the unwind information of an object in the form that the BPF program searches (`record/bpf/sampler.bpf.c`).
//!
//! A row holds from an address up to the next row, and names a rule: how the caller's registers are found. Rows are
//! sorted, and grouped by blocks of 256 bytes of code, so that a look-up touches few cache lines: the block's first row
//! comes from an array, and the rest is a search among few neighbors. Every block begins with a row.
//!
//! They are made from `.eh_frame` by the rules of DWARF 5, section 6.4, and from the function tables of Go programs
//! (`go`); in runtimes that generate code also from the code of some functions that neither describes (`framed`). A
//! function, or a part of one, that needs more than the stack pointer and the frame pointer has rule 0: then the recorder
//! unwinds the stack with the complete unwind information.

mod compiled;
mod framed;
mod go;
mod plain_fde;
mod rules;
mod state;
mod writer;

use std::ops::Range;

use addr2line::gimli::{
    self, BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CommonInformationEntry, EhFrame, LittleEndian,
    UnwindSection as _,
};
use object::{Object as _, ObjectSection as _, ObjectSegment as _};

use self::compiled::RULE_MASK;
pub use self::compiled::{CompiledRows, Rows};
use self::plain_fde::{PlainFde, PlainRule};
pub use self::rules::{MAX_RULES, Rules};
use self::rules::{kind, rule};
use self::state::{Cfa, State};
use self::writer::RowWriter;
use super::code::ENTRY_FUNCTION_SIZE;
use super::go::GoUnwindInfo;
use super::handlers;
use crate::perf::cfi::{Slice, fde_ranges};
use crate::perf::objects::object::Elf;
use crate::perf::runtimes::contains_generated_code;

/// Number of bytes of code in a block.
pub const BLOCK_SIZE: u64 = 256;

/// The size from which code without unwind information is that of a runtime. The builtins of V8 have 1.2 MiB or more.
const MIN_GENERATED: u64 = 1 << 19;

/// The largest span of code of one object. Larger objects have no rows.
const MAX_CODE_SIZE: u64 = 1 << 30;

/// The code around the instruction that sets the stack pointer to that of an exception's handler (`__builtin_eh_return`): it, and the
/// function that it has called last, write over saved registers and return addresses (see `handlers`). In the functions of
/// GCC 12's libgcc, that call returns 117 to 126 bytes before, and the one before it 137 or more.
const BEFORE_HANDLER: u64 = 128;

/// The smallest number of bytes of `.eh_frame` for each change of rules. In rustc, LLVM and glibc, 5.4 to 6 bytes describe a
/// function or advance in one (`readelf --debug-dump=frames`), and not all of these change the rule. To reserve too much costs
/// nothing, to grow costs a copy.
const BYTES_PER_CHANGE: usize = 5;

/// The size of most of the smallest entries of `.eh_frame`.
const MIN_ENTRY_SIZE: usize = 20;

/// Makes the rows of an object. `None` if it has no unwind information, or is not for x86-64.
fn compile(elf: &Elf, rules: &mut Rules) -> Option<Rows> {
    if elf.architecture() != object::Architecture::X86_64 {
        return None;
    }
    let file = object::File::parse(&**elf.bytes()).ok()?;
    let code = code_range(&file)?;
    let mut functions = Functions { rules, code, changes: Vec::new(), ranges: Vec::new(), handler_call: None };
    if let Some(section) = file.section_by_name(".eh_frame") {
        let bytes = section.uncompressed_data().ok()?;
        let text = file.section_by_name(".text").map_or(0, |text| text.address());
        functions.read(&bytes, section.address(), text);
    }
    let go = GoUnwindInfo::load(elf);
    if let Some(go) = &go {
        functions.read_go(go);
    }
    if functions.ranges.is_empty() {
        return None;
    }
    let entry = (elf.entry() != 0).then(|| elf.entry()..elf.entry().saturating_add(ENTRY_FUNCTION_SIZE));
    let text = file.section_by_name(".text").filter(|_| contains_generated_code(&file));
    let generated = text.map(|text| text.address()..text.address().saturating_add(text.size()));
    if generated.is_some() {
        functions.read_framed(elf, &file);
    }
    Some(Rows { switches_stacks: go.is_some(), ..functions.into_rows(entry, generated) })
}

/// Returns the range of all executable segments, in whole blocks.
fn code_range(file: &object::File<'_>) -> Option<Range<u64>> {
    let is_code =
        |flags| matches!(flags, object::SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_X));
    let segments = file.segments().filter(|segment| is_code(segment.flags()));
    // The kernel maps whole pages.
    let ranges = segments.map(|segment| {
        let end = segment.address().saturating_add(segment.size());
        segment.address() & !4095..end.checked_next_multiple_of(4096).unwrap_or(end)
    });
    let range = ranges.reduce(|all, range| all.start.min(range.start)..all.end.max(range.end))?;
    (range.end - range.start <= MAX_CODE_SIZE).then_some(range)
}

/// The functions of an object, in the order of their entries in `.eh_frame`.
struct Functions<'r> {
    rules: &'r mut Rules,
    /// The addresses of all code. What is elsewhere is left out.
    code: Range<u64>,
    /// The addresses from which rules hold, relative to the start of the code, with the numbers of the rules. There are millions.
    changes: Vec<(u32, u32)>,
    /// For each function its addresses, and its part of `changes`.
    ranges: Vec<(Range<u64>, Range<usize>)>,
    /// The instruction of the last function that sets the stack pointer to that of an exception's handler.
    handler_call: Option<u64>,
}

impl Functions<'_> {
    fn read(&mut self, section: &[u8], address: u64, text: u64) {
        let bases = BaseAddresses::default().set_eh_frame(address).set_text(text);
        let eh_frame = EhFrame::new(section, LittleEndian);
        self.changes.reserve(section.len() / BYTES_PER_CHANGE);
        self.ranges.reserve(section.len() / MIN_ENTRY_SIZE);
        let mut last_cie = None::<(usize, CommonInformationEntry<_>, Option<State>, Option<PlainRule>)>;
        for (range, cie_offset) in fde_ranges(section) {
            if last_cie.as_ref().is_none_or(|(offset, ..)| *offset != cie_offset) {
                let cie = eh_frame.cie_from_offset(&bases, cie_offset.into()).ok();
                last_cie = cie.map(|cie| {
                    let initial = State::initial(&eh_frame, &bases, &cie);
                    let plain = initial.as_ref().filter(|_| !cie.is_signal_trampoline()).and_then(PlainRule::initial);
                    (cie_offset, cie, initial, plain)
                });
            }
            let Some((_, cie, initial, plain)) = &last_cie else { continue };
            if let Some(initial) = *plain
                && let Some(fde) = PlainFde::parse(section, address, range.clone(), cie)
                && self.is_in_code(&fde.function)
                && self.read_plain(fde, initial)
            {
                continue;
            }
            let fde = eh_frame.fde_from_offset(&bases, range.start.into(), |_, _, _| Ok(cie.clone()));
            let Ok(fde) = fde else { continue };
            let first = self.changes.len();
            let function = fde.initial_address()..fde.end_address();
            if !self.is_in_code(&function) {
                continue;
            }
            let is_known = match initial {
                _ if cie.is_signal_trampoline() => self.push(function.start, rule(kind::SIGNAL, 0, 0)),
                Some(initial) => self.run(fde.instructions(&eh_frame, &bases), &eh_frame, *initial, function.clone()),
                None => None,
            };
            if is_known.is_none() {
                self.changes.truncate(first);
                self.push(function.start, 0);
                self.handler_call = None;
            }
            self.add_function(function, first);
        }
    }

    /// Adds the rules of a function. Returns false, and adds nothing, if it has instructions that are read otherwise.
    fn read_plain(&mut self, fde: PlainFde<'_>, initial: PlainRule) -> bool {
        let first = self.changes.len();
        let is_plain = fde.for_each_rule(initial, |address, rule| _ = self.push(address, rule)).is_some();
        if is_plain {
            self.add_function(fde.function, first);
        } else {
            self.changes.truncate(first);
        }
        is_plain
    }

    /// Adds a function, whose changes begin at `first`.
    fn add_function(&mut self, function: Range<u64>, first: usize) {
        if let Some(address) = self.handler_call.take() {
            let Range { start, end } = function;
            self.forget(
                first,
                address.saturating_sub(BEFORE_HANDLER).max(start)..(address + handlers::AFTER_HANDLER).min(end - 1),
            );
        }
        self.ranges.push((function, first..self.changes.len()));
    }

    fn is_in_code(&self, function: &Range<u64>) -> bool {
        self.code.start <= function.start && function.start < function.end && function.end <= self.code.end
    }

    /// Returns an address of the code relative to its start.
    fn offset_of(&self, address: u64) -> u32 {
        (address - self.code.start) as u32
    }

    /// Takes the rules of a range away from a function, whose changes begin at `first`.
    fn forget(&mut self, first: usize, range: Range<u64>) {
        let range = self.offset_of(range.start)..self.offset_of(range.end);
        let changes = &self.changes[first..];
        let from = first + changes.partition_point(|(address, _)| *address < range.start);
        let to = first + changes.partition_point(|(address, _)| *address <= range.end);
        let next = self.changes[first..to].last().map_or(0, |(_, number)| *number);
        self.changes.splice(from..to, [(range.start, 0), (range.end, next)]);
    }

    /// Adds a rule from an address on, unless that is beyond the code: instructions may lead anywhere.
    fn push(&mut self, address: u64, rule: u64) -> Option<()> {
        if address >= self.code.end {
            return None;
        }
        let number = self.rules.intern(rule);
        self.changes.push((self.offset_of(address), number));
        Some(())
    }

    /// Runs the instructions of a function, and adds its rules. `None` if they cannot be read.
    fn run(
        &mut self,
        mut instructions: CallFrameInstructionIter<'_, Slice<'_>>,
        eh_frame: &EhFrame<Slice<'_>>,
        initial: State,
        function: Range<u64>,
    ) -> Option<()> {
        let (mut state, mut saved_states, mut address, mut last) = (initial, Vec::new(), function.start, None);
        while let Some(instruction) = instructions.next().ok()? {
            let next = match instruction {
                CallFrameInstruction::AdvanceLoc { delta } => {
                    address.checked_add(u64::from(delta).checked_mul(state.code_alignment)?)?
                }
                CallFrameInstruction::SetLoc { address } => address,
                CallFrameInstruction::RememberState => {
                    saved_states.push(state);
                    continue;
                }
                CallFrameInstruction::RestoreState => {
                    state = saved_states.pop()?;
                    continue;
                }
                instruction => {
                    state.apply(&instruction, &initial, eh_frame);
                    continue;
                }
            };
            if next < address {
                return None;
            }
            if next > address {
                self.add_state(&state, address..next, &mut last);
                address = next;
            }
        }
        if address < function.end {
            self.add_state(&state, address..function.end, &mut last);
        }
        Some(())
    }

    /// Adds the rule of a state that holds in a range, unless it is the one before.
    fn add_state(&mut self, state: &State, range: Range<u64>, last: &mut Option<u64>) {
        if let Cfa::Plt { boundary } = state.cfa {
            // Each entry of 16 bytes pushes a word.
            for start in range.step_by(16) {
                self.push(start, rule(kind::STACK_POINTER, 8, state.saved_word()));
                self.push(start + u64::from(boundary), rule(kind::STACK_POINTER, 16, state.saved_word()));
            }
            *last = None;
            return;
        }
        if let Cfa::Register(gimli::X86_64::RCX, _) = state.cfa {
            self.handler_call = Some(range.start);
        }
        let rule = state.rule();
        if last.replace(rule) != Some(rule) {
            self.push(range.start, rule);
        }
    }

    /// Sorts the rules into blocks. `entry` is the code at which the program starts, which has no caller. Large parts of
    /// `generated` without unwind information are those of a runtime.
    fn into_rows(mut self, entry: Option<Range<u64>>, generated: Option<Range<u64>>) -> Rows {
        let root = self.rules.intern(rule(kind::ROOT, 0, 0));
        let runtime = generated.as_ref().map_or(0, |_| self.rules.intern(rule(kind::RUNTIME, 0, 0)));
        let generated = generated.unwrap_or_default();
        self.ranges.sort_unstable_by_key(|(range, _)| range.start);
        let mut writer = RowWriter::new(&self.code, self.changes.len());
        for (index, (range, changes)) in self.ranges.iter().enumerate() {
            for (offset, number) in &self.changes[changes.clone()] {
                writer.add(self.code.start + u64::from(*offset), *number);
            }
            let next = self.ranges.get(index + 1).map(|(next, _)| next.start);
            if next.is_none_or(|next| next > range.end) {
                let is_large = next.is_some_and(|next| next - range.end >= MIN_GENERATED && generated.contains(&next));
                writer.add(range.end, if is_large { runtime } else { 0 });
            }
        }
        writer.finish(entry.map(|entry| (entry, root)))
    }
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use std::sync::Arc;

    use addr2line::gimli::{
        BaseAddresses, CfaRule, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection as _, X86_64,
    };
    use object::{Object as _, ObjectSection as _};

    use super::*;
    use crate::perf::objects::object::Bytes;

    /// The rule of a row of gimli's, or 0 if it cannot be expressed. `None` for expressions.
    fn expected(row: &gimli::UnwindTableRow<usize>) -> Option<u64> {
        let saved = match row.register(X86_64::RBP) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => Some(0),
            Some(RegisterRule::Offset(offset)) if offset % 8 == 0 => Some((offset / 8) as i16),
            _ => None,
        };
        match row.register(X86_64::RA) {
            Some(RegisterRule::Undefined) => return Some(rule(kind::ROOT, 0, 0)),
            Some(RegisterRule::Offset(-8)) => {}
            _ => return Some(0),
        }
        match (row.cfa(), saved) {
            (_, None) => Some(0),
            (CfaRule::RegisterAndOffset { register: X86_64::RSP, offset }, Some(saved)) => {
                Some(rule(kind::STACK_POINTER, *offset as u32, saved))
            }
            (CfaRule::RegisterAndOffset { register: X86_64::RBP, offset }, Some(saved)) => {
                Some(rule(kind::FRAME_POINTER, *offset as u32, saved))
            }
            (CfaRule::RegisterAndOffset { .. }, _) => Some(0),
            (CfaRule::Expression(_), _) => None,
        }
    }

    #[test]
    fn rows_say_what_gimli_says() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut files: Vec<&str> = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).collect();
        files.dedup();
        let (mut compared, mut rules) = (0, Rules::default());
        for path in files {
            let Ok(bytes) = std::fs::read(path) else { continue };
            let bytes = Bytes::Copied(Arc::from(bytes));
            let Some(elf) = Elf::parse(path.as_bytes().to_vec(), bytes) else { continue };
            let Some(rows) = compile(&elf, &mut rules) else { continue };
            let file = object::File::parse(&**elf.bytes()).unwrap();
            let section = file.section_by_name(".eh_frame").unwrap();
            let (data, bases) = (section.uncompressed_data().unwrap(), BaseAddresses::default());
            let bases = bases.set_eh_frame(section.address());
            let eh_frame = EhFrame::new(&data, LittleEndian);
            let mut entries = eh_frame.entries(&bases);
            let mut context = UnwindContext::new();
            while let Ok(Some(entry)) = entries.next() {
                let gimli::CieOrFde::Fde(partial) = entry else { continue };
                let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
                if fde.is_signal_trampoline() {
                    assert_eq!(rules.all()[rows.find(fde.initial_address()) as usize], rule(kind::SIGNAL, 0, 0));
                    continue;
                }
                let mut table = fde.rows(&eh_frame, &bases, &mut context).unwrap();
                let mut calls_handler = false;
                while let Ok(Some(row)) = table.next_row() {
                    let is_by_rcx = matches!(row.cfa(), CfaRule::RegisterAndOffset { register: X86_64::RCX, .. });
                    calls_handler |= is_by_rcx;
                    // The rules right before are taken away.
                    let is_after = rows.find(row.start_address().saturating_sub(1).max(fde.initial_address())) == 0;
                    assert!(!is_by_rcx || is_after, "{path} {:x}", row.start_address());
                }
                let mut table = fde.rows(&eh_frame, &bases, &mut context).unwrap();
                while let Ok(Some(row)) = table.next_row() {
                    let (start, end) = (row.start_address(), row.end_address().min(fde.end_address()));
                    let is_entry = start.wrapping_sub(elf.entry()) < ENTRY_FUNCTION_SIZE;
                    let Some(expected) = expected(row).filter(|_| start < end && !is_entry) else { continue };
                    for address in [start, end - 1] {
                        let found = rules.all()[rows.find(address) as usize];
                        if found == 0 && calls_handler {
                            continue;
                        }
                        assert_eq!(found, expected, "{path} {address:x}");
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 1000, "{compared}");
    }
}
