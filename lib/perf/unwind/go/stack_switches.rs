//! The rules of Go functions that write the stack pointer, by their code.

use std::ops::Range;

use memchr::memmem::{self, Finder};
use object::{Object as _, ObjectSegment as _};

use super::rule::{GoRule, RuleChange, add_deltas};
use crate::perf::go::table::{Function, FunctionTable};

/// Returns the rules of functions that write the stack pointer, by the functions' first addresses, and the places of a
/// goroutine's description.
pub(super) fn find_special_functions(
    file: object::File<'_>,
    table: &FunctionTable<'_>,
) -> (Vec<(u64, Vec<RuleChange>)>, Option<GoroutineOffsets>) {
    let mut special = SpecialFunctions { file, schedulers: Vec::new(), goroutine: None, found: Vec::new() };
    special.read(table);
    (special.found, special.goroutine)
}

/// Finds the rules of functions that write the stack pointer.
struct SpecialFunctions<'a> {
    file: object::File<'a>,
    /// The functions that `runtime.newstack` calls to run another goroutine.
    schedulers: Vec<u64>,
    goroutine: Option<GoroutineOffsets>,
    found: Vec<(u64, Vec<RuleChange>)>,
}

impl SpecialFunctions<'_> {
    fn read(&mut self, table: &FunctionTable<'_>) {
        for function in table.functions() {
            match function.name() {
                Some(b"runtime.gopreempt_m" | b"runtime.goschedImpl" | b"runtime.preemptPark") => {
                    self.schedulers.push(function.start);
                }
                Some(b"runtime.systemstack") if function.writes_stack_pointer() => {
                    self.goroutine = self.code(&function).and_then(GoroutineOffsets::read);
                }
                _ => {}
            }
        }
        for function in table.functions() {
            if let Some(changes) = self.find_rules(&function) {
                self.found.push((function.start, changes));
            }
        }
    }

    /// Returns the rules of a function that switches stacks. `None` if the rules of the table hold.
    fn find_rules(&self, function: &Function<'_>) -> Option<Vec<RuleChange>> {
        let name = function.name()?;
        let is_newstack = name == b"runtime.newstack";
        if function.is_top_frame() || !is_newstack && !function.writes_stack_pointer() {
            return None;
        }
        let mut deltas = Vec::new();
        add_deltas(function, &mut deltas);
        let rules = if name.starts_with(b"runtime.cgocallback") {
            Some(rules_of_callback(deltas))
        } else if is_newstack {
            self.rules_of_newstack(function, &deltas)
        } else {
            let range = function.start..function.end;
            self.code(function).and_then(|code| rules_of_switch(name, range, code, &deltas))
        };
        // Without its code, nothing is known of the function.
        Some(rules.unwrap_or_else(|| vec![(function.start, GoRule::Unknown)]))
    }

    /// Returns the rules of `runtime.newstack`. `deltas` are those of the table.
    fn rules_of_newstack(&self, function: &Function<'_>, deltas: &[RuleChange]) -> Option<Vec<RuleChange>> {
        let (code, mut changes) = (self.code(function)?, vec![(function.start, GoRule::Resumed)]);
        for call in memchr::memchr_iter(CALL, code) {
            let Some(distance) = code.get(call + 1..).and_then(|rest| rest.first_chunk::<4>()) else { break };
            let after = function.start + call as u64 + CALL_SIZE;
            if self.schedulers.contains(&after.wrapping_add_signed(i32::from_le_bytes(*distance).into())) {
                let next = deltas.partition_point(|(address, _)| *address < after);
                let rule = next.checked_sub(1).map_or(GoRule::Unknown, |last| deltas[last].1);
                replace(&mut changes, after - 1..after, rule);
            }
        }
        Some(changes)
    }

    /// Returns the machine code of a function.
    fn code(&self, function: &Function<'_>) -> Option<&[u8]> {
        let size = usize::try_from(function.end - function.start).ok()?;
        self.file.segments().find_map(|segment| {
            let start = usize::try_from(function.start.checked_sub(segment.address())?).ok()?;
            segment.data().ok()?.get(start..start.checked_add(size)?)
        })
    }
}

/// Returns the rules of `runtime.cgocallback`. Its frame on the goroutine's stack is as large as that on the other one.
fn rules_of_callback(deltas: Vec<RuleChange>) -> Vec<RuleChange> {
    let rules = deltas.into_iter().map(|(address, rule)| match rule {
        GoRule::StackPointer(offset) => (address, GoRule::Callback(offset)),
        rule => (address, rule),
    });
    rules.collect()
}

/// Gives a range of addresses a rule.
fn replace(changes: &mut Vec<RuleChange>, range: Range<u64>, rule: GoRule) {
    let first = changes.partition_point(|(address, _)| *address < range.start);
    let after = changes.partition_point(|(address, _)| *address <= range.end);
    let next = after.checked_sub(1).map_or(GoRule::Unknown, |last| changes[last].1);
    changes.splice(first..after, [(range.start, rule), (range.end, next)]);
}

/// Returns the rules of a function that switches stacks. `deltas` are those of the table, which hold up to the switch.
fn rules_of_switch(name: &[u8], function: Range<u64>, code: &[u8], deltas: &[RuleChange]) -> Option<Vec<RuleChange>> {
    let address = |index: usize| function.start + index as u64;
    // The instructions that switch.
    let mut switches =
        (0..code.len()).filter_map(|index| Some(address(index)..address(index + stack_pointer_write(&code[index..])?)));
    let mut changes = deltas.to_vec();
    match name {
        b"runtime.systemstack" | b"runtime.asmcgocall" => {
            let (to, back) = (switches.next()?.end, switches.next()?.end);
            let before = changes.partition_point(|(start, _)| *start < to);
            let Some((_, GoRule::StackPointer(offset))) = changes[..before].last().copied() else { return None };
            replace(&mut changes, to..back, GoRule::SavedStackPointer(offset));
            if name == b"runtime.asmcgocall" {
                // It aligns the stack pointer, which the table does not have.
                replace(&mut changes, back..function.end, GoRule::Unknown);
            }
        }
        b"runtime.mcall" | b"runtime.morestack" => {
            replace(&mut changes, switches.next()?.end..function.end, GoRule::Root)
        }
        // A branch leads there in the new thread alone.
        b"runtime.clone" => replace(&mut changes, switches.next()?.start..function.end, GoRule::Root),
        b"runtime.gogo" => replace(&mut changes, switches.next()?.end..function.end, GoRule::Unknown),
        _ => {
            let frame_pointer = FramePointerUse::find(code)?;
            replace(&mut changes, address(frame_pointer.set)..function.end, GoRule::FramePointer);
            // Between the instruction that restores the frame pointer and the return, it is the caller's.
            for restored in frame_pointer.restored(code) {
                let end = memchr::memchr(RETURN, &code[restored..]).map_or(code.len(), |found| restored + found + 1);
                replace(&mut changes, address(restored)..address(end), GoRule::Unknown);
            }
        }
    }
    Some(changes)
}

/// `ret`
const RETURN: u8 = 0xc3;

/// `call`, whose target follows as a distance of 4 bytes from the next instruction.
const CALL: u8 = 0xe8;
const CALL_SIZE: u64 = 5;

/// Returns the length of the instruction at the start of `code`, if it writes the stack pointer: `mov 0x38(REG), %rsp`,
/// which loads the saved stack pointer of a goroutine, or `mov REG, %rsp`.
fn stack_pointer_write(code: &[u8]) -> Option<usize> {
    match code {
        [0x48 | 0x49, 0x8b, operand, 0x38, ..] if operand & 0xf8 == 0x60 && *operand != 0x64 => Some(4),
        [0x48 | 0x4c, 0x89, operand, ..] if operand & 0xc7 == 0xc4 => Some(3),
        _ => None,
    }
}

/// The instructions of a function that set and restore the frame pointer.
struct FramePointerUse<'a> {
    /// The offset of the instruction after that which sets it.
    set: usize,
    /// The instructions that restore it.
    restore: Finder<'a>,
    /// The size of the first of them.
    restore_size: usize,
}

impl<'a> FramePointerUse<'a> {
    /// Number of bytes at the start of a function in which the frame pointer is set.
    const PROLOGUE_SIZE: usize = 32;

    fn find(code: &'a [u8]) -> Option<Self> {
        let prologue = &code[..code.len().min(Self::PROLOGUE_SIZE)];
        // `push %rbp; mov %rsp, %rbp`, and at the end `pop %rbp; ret`.
        if let Some(start) = memmem::find(prologue, &[0x55, 0x48, 0x89, 0xe5]) {
            return Some(Self { set: start + 4, restore: Finder::new(&[0x5d, RETURN]), restore_size: 1 });
        }
        // Before Go 1.21: `lea OFFSET(%rsp), %rbp`, and at the end `mov OFFSET(%rsp), %rbp`.
        let start = memmem::find(prologue, &[0x48, 0x8d, 0x6c, 0x24])?;
        let restore = [0x48, 0x8b, 0x6c, 0x24, *code.get(start + 4)?];
        Some(Self { set: start + 5, restore: Finder::new(&restore).into_owned(), restore_size: restore.len() })
    }

    /// Returns the offsets after the instructions that restore the frame pointer.
    fn restored(&self, code: &[u8]) -> impl Iterator<Item = usize> {
        self.restore.find_iter(code).map(|found| found + self.restore_size)
    }
}

/// The places of a goroutine's description on x86-64 that depend on the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::perf) struct GoroutineOffsets {
    /// The offset of the address of the thread's running goroutine (`g`) from the thread's storage (`%fs`).
    pub(in crate::perf) thread_storage: i16,
    /// The offset of the current goroutine of a thread (`m.curg`) in the thread's description.
    pub(in crate::perf) current: u16,
}

impl GoroutineOffsets {
    /// Reads the offsets from the code of `runtime.systemstack`.
    fn read(code: &[u8]) -> Option<Self> {
        // `mov %fs:OFFSET, %rax`, or `mov $OFFSET, %rcx; mov %fs:(%rcx), %rax`.
        let direct = find_operand(code, &[0x64, 0x48, 0x8b, 0x04, 0x25]);
        let indirect =
            memmem::find(code, &[0x64, 0x48, 0x8b, 0x01]).and_then(|_| find_operand(code, &[0x48, 0xc7, 0xc1]));
        // `cmp OFFSET(%rbx), %rax`
        let current = find_operand(code, &[0x48, 0x3b, 0x83]).or_else(|| find_operand(code, &[0x48, 0x39, 0x83]))?;
        let thread_storage = i16::try_from(direct.or(indirect)?).ok()?;
        Some(Self { thread_storage, current: u16::try_from(current).ok()? })
    }
}

/// Returns the operand of 4 bytes behind the first bytes of an instruction.
fn find_operand(code: &[u8], instruction: &[u8]) -> Option<i32> {
    let start = memmem::find(code, instruction)? + instruction.len();
    Some(i32::from_le_bytes(*code.get(start..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `runtime.systemstack` of Go 1.27.
    const SYSTEMSTACK: &[u8] = &[
        0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x7c, 0x24, 0x10, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff,
        0x48, 0x8b, 0x58, 0x30, 0x48, 0x3b, 0x43, 0x48, 0x74, 0x65, 0x48, 0x8b, 0x13, 0x48, 0x39, 0xd0, 0x74, 0x5d,
        0x48, 0x3b, 0x83, 0xb8, 0x00, 0x00, 0x00, 0x75, 0x5d, 0xe8, 0xae, 0xf8, 0xff, 0xff, 0x64, 0x48, 0x89, 0x14,
        0x25, 0xf8, 0xff, 0xff, 0xff, 0x49, 0x89, 0xd6, 0x48, 0x8b, 0x62, 0x38, 0x48, 0x89, 0xfa, 0x48, 0x8b, 0x3f,
        0xff, 0xd7, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x58, 0x30, 0x48, 0x8b, 0x83,
        0xb8, 0x00, 0x00, 0x00, 0x64, 0x48, 0x89, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x60, 0x38, 0x48,
        0x8b, 0x68, 0x60, 0x48, 0xc7, 0x40, 0x38, 0x00, 0x00, 0x00, 0x00, 0x48, 0xc7, 0x40, 0x60, 0x00, 0x00, 0x00,
        0x00, 0x5d, 0xc3, 0x48, 0x89, 0xfa, 0x48, 0x8b, 0x3f, 0x5d, 0xff, 0xe7, 0x48, 0x8d, 0x05, 0x0f, 0x3d, 0x00,
        0x00, 0xff, 0xd0, 0xcd, 0x03,
    ];

    /// The same in a position-independent executable, up to the comparison with the current goroutine.
    const SYSTEMSTACK_PIE: &[u8] = &[
        0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x7c, 0x24, 0x10, 0x48, 0xc7, 0xc1, 0xf8, 0xff, 0xff, 0xff, 0x64, 0x48,
        0x8b, 0x01, 0x48, 0x8b, 0x58, 0x30, 0x48, 0x3b, 0x43, 0x48, 0x74, 0x5d, 0x48, 0x8b, 0x13, 0x48, 0x39, 0xd0,
        0x74, 0x55, 0x48, 0x3b, 0x83, 0xb8, 0x00, 0x00, 0x00,
    ];

    fn find(changes: &[RuleChange], address: u64) -> GoRule {
        changes[changes.partition_point(|(start, _)| *start <= address) - 1].1
    }

    #[test]
    fn finds_goroutines_by_the_code_that_switches_to_them() {
        let offsets = Some(GoroutineOffsets { thread_storage: -8, current: 0xb8 });
        assert_eq!((GoroutineOffsets::read(SYSTEMSTACK), GoroutineOffsets::read(SYSTEMSTACK_PIE)), (offsets, offsets));
        for end in 0..SYSTEMSTACK_PIE.len() {
            assert_eq!(GoroutineOffsets::read(&SYSTEMSTACK_PIE[..end]), None);
        }
    }

    #[test]
    fn the_caller_of_systemstack_is_on_the_stack_of_the_goroutine() {
        let (start, size) = (0x47_e660, SYSTEMSTACK.len() as u64);
        let deltas = [(0, 8), (1, 16), (0x80, 8), (0x81, 16), (0x88, 8), (0x8a, 16)];
        let deltas = deltas.map(|(offset, cfa)| (start + offset, GoRule::StackPointer(cfa)));
        let changes = rules_of_switch(b"runtime.systemstack", start..start + size, SYSTEMSTACK, &deltas).unwrap();
        // At the call of `gosave_systemstack_switch`; where the stack pointer is loaded, and after that; where the
        // called function returns to; where the stack pointer is loaded again, and after that; at `ret`.
        let rules = [0x2d, 0x3e, 0x42, 0x49, 0x67, 0x6b, 0x80].map(|offset| find(&changes, start + offset));
        let (own, saved) = (GoRule::StackPointer(16), GoRule::SavedStackPointer(16));
        assert_eq!(rules, [own, own, saved, saved, saved, own, GoRule::StackPointer(8)]);
        // Code that is not understood has no rules.
        assert_eq!(rules_of_switch(b"runtime.systemstack", start..start + 0x40, &SYSTEMSTACK[..0x40], &deltas), None);
    }

    #[test]
    fn a_new_thread_begins_where_it_loads_its_stack_pointer() {
        // `syscall; cmp $0, %rax; je 11; mov %eax, 0x30(%rsp); ret; mov %rsi, %rsp; call *%r12`
        let code = [
            0x0f, 0x05, 0x48, 0x83, 0xf8, 0x00, 0x74, 0x05, 0x89, 0x44, 0x24, 0x30, 0xc3, 0x48, 0x89, 0xf4, 0x41, 0xff,
            0xd4,
        ];
        let own = GoRule::StackPointer(8);
        let changes = rules_of_switch(b"runtime.clone", 0x1000..0x1013, &code, &[(0x1000, own)]).unwrap();
        assert_eq!([0x1000, 0x100c].map(|address| find(&changes, address)), [own; 2]);
        assert_eq!([0x100d, 0x1010, 0x1012].map(|address| find(&changes, address)), [GoRule::Root; 3]);
    }

    #[test]
    fn calls_of_the_vdso_keep_the_frame_pointer() {
        // `push %rbp; mov %rsp, %rbp; sub $16, %rsp; nop; add $16, %rsp; pop %rbp; ret; nop`
        let new = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x90, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3, 0x90];
        // `sub $24, %rsp; mov %rbp, 16(%rsp); lea 16(%rsp), %rbp; mov 16(%rsp), %rbp; add $24, %rsp; ret`
        let old = [
            0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10, 0x48, 0x8d, 0x6c, 0x24, 0x10, 0x48, 0x8b, 0x6c, 0x24,
            0x10, 0x48, 0x83, 0xc4, 0x18, 0xc3,
        ];
        let (own, unknown, frame) = (GoRule::StackPointer(8), GoRule::Unknown, GoRule::FramePointer);
        for (code, expected) in [
            (&new[..], &[(0, own), (3, own), (4, frame), (13, frame), (14, unknown), (15, frame), (16, unknown)][..]),
            (&old, &[(13, own), (14, frame), (18, frame), (19, unknown), (23, unknown), (24, unknown)]),
        ] {
            let end = code.len() as u64;
            let changes = rules_of_switch(b"runtime.nanotime1", 0..end, code, &[(0, own), (end, unknown)]).unwrap();
            for (address, rule) in expected {
                assert_eq!(find(&changes, *address), *rule, "{address} {changes:?}");
            }
        }
        assert!(FramePointerUse::find(&[]).is_none());
    }

    #[test]
    fn a_range_of_addresses_gets_a_rule() {
        let mut changes = vec![(0, GoRule::StackPointer(8)), (4, GoRule::StackPointer(16)), (8, GoRule::Unknown)];
        replace(&mut changes, 2..6, GoRule::Root);
        let expected =
            [(0, GoRule::StackPointer(8)), (2, GoRule::Root), (6, GoRule::StackPointer(16)), (8, GoRule::Unknown)];
        assert_eq!(changes, expected);
    }
}
