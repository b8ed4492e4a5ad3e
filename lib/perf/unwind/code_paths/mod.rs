//! Finds the caller of x86-64 code that has no unwind information, by the paths that the code can take.
//!
//! Two facts hold for code of every compiler:
//!
//! - At a function's entry the stack pointer is at the return address. What a path from there to an address pushes and
//!   pops tells where the return address is ([`Paths::follow_from_entry`]).
//! - Where a function returns, the stack pointer is at the return address. What a path from an address to there pushes
//!   and pops tells the same ([`Paths::follow_to_return`]).
//!
//! A path is one that the instructions allow, not one that was taken: every path must lead to the same result. Hence a
//! result is wrong if
//!
//! - a symbol does not begin where calls enter (parts of functions with names such as `f.cold` are left out), and no
//!   path to a return contradicts it;
//! - a path passes a call that never returns, and runs into code that belongs elsewhere. Paths therefore end with the
//!   function's symbol, and those with the fewest calls count. Without a symbol, the result is doubtful;
//! - a callee leaves the stack pointer elsewhere, as JIT compilers' functions do that remove their arguments.
//!
//! The unwinder takes a result only if its two ways agree where both exist, and if the word at the place is an address
//! behind a call instruction. A doubtful one needs a second witness, see [`bare_code`](super::bare_code).

mod instruction;
mod rule;
mod state;

use std::ops::Range;

use iced_x86::{FlowControl, InstructionInfoFactory, Mnemonic};
use rustc_hash::FxHashSet;

pub(super) use self::instruction::{
    MAX_INSTRUCTION, decode, direct_call_target, ends_with_call, find_end_with_frame_pointer, writes_frame_pointer,
};
pub(super) use self::rule::CallerRule;
use self::rule::{rule_from_entry, rule_of_return};
use self::state::State;
pub(super) use self::state::{Place, SP, Value, to_dwarf};

/// Code that can be read.
pub(super) trait ReadInstructions {
    /// Returns the bytes from an address on: at least those of one instruction, unless the code ends before.
    fn read(&mut self, address: u64) -> &[u8];
    /// Returns the range of the function whose symbol covers an address.
    fn find_function(&mut self, address: u64) -> Option<Range<u64>>;
}

/// Maximum number of instructions on all paths of a search.
///
/// glibc's longest function has 4,000; on average a search ends after 30.
const MAX_INSTRUCTIONS: usize = 10_000;

/// Maximum number of branches that wait to be followed. With [`state::MAX_STORES`] it bounds the memory of a search.
const MAX_BRANCHES: usize = 256;

/// Number of returns that must agree.
const MAX_RETURNS: usize = 3;

/// Follows the paths of code.
pub(super) struct Paths<'c> {
    code: &'c mut dyn ReadInstructions,
    info: InstructionInfoFactory,
    /// Number of instructions that may still be followed in this search.
    budget: usize,
    /// Number of instructions that may still be followed in this search and later ones.
    total_budget: &'c mut usize,
}

/// A part of a path that is not followed yet.
struct Path {
    ip: u64,
    /// Number of calls on the path.
    calls: u32,
    /// True if the path has passed a call in code without a symbol.
    is_doubtful: bool,
    /// Number of instructions on the path.
    length: u32,
    /// The function that the path is in, if its symbol is known.
    function: Option<Range<u64>>,
    state: State,
}

/// The end of a path.
enum PathEnd {
    /// The path has arrived at the address that it was to reach, where this rule holds.
    Arrived(Option<CallerRule>),
    /// The function returns.
    Returns(CallerRule),
    /// The thread or the process exits.
    Exits,
}

/// The findings of the paths to a return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Returns {
    /// The rule that all of them give.
    pub(super) rule: Option<CallerRule>,
    /// True if all of them pass calls in code without a symbol.
    pub(super) is_doubtful: bool,
    /// True if no path returns, and one exits without calling anything.
    pub(super) exits: bool,
}

impl<'c> Paths<'c> {
    pub(super) fn new(code: &'c mut dyn ReadInstructions, total_budget: &'c mut usize) -> Self {
        Self { code, info: InstructionInfoFactory::new(), budget: MAX_INSTRUCTIONS, total_budget }
    }

    /// Finds the rule at `address` by the paths from the entry of its function.
    pub(super) fn follow_from_entry(&mut self, function: Range<u64>, address: u64) -> Option<CallerRule> {
        let (entry, mut rule) = (function.start, None);
        self.search(entry, Some(function), Some(address), |_, end| {
            let PathEnd::Arrived(found) = end else { return false };
            rule = found;
            true
        });
        rule
    }

    /// Finds the rule at `address`, which lies in `function` if that is known, by the paths to where it returns.
    pub(super) fn follow_to_return(&mut self, function: Option<Range<u64>>, address: u64) -> Returns {
        let (mut found, mut exits) = (Vec::<(u32, bool, CallerRule)>::new(), false);
        self.search(address, function, None, |(calls, is_doubtful), end| {
            match end {
                PathEnd::Returns(_) if found.first().is_some_and(|(fewest, ..)| *fewest < calls) => return true,
                PathEnd::Returns(rule) => found.push((calls, is_doubtful, rule)),
                PathEnd::Exits => exits |= calls == 0,
                PathEnd::Arrived(_) => {}
            }
            found.len() >= MAX_RETURNS
        });
        let Some((_, is_doubtful, first)) = found.first().copied() else {
            return Returns { exits, ..Returns::default() };
        };
        let is_same = found.iter().all(|(.., rule)| rule.return_address == first.return_address);
        Returns { rule: is_same.then_some(first), is_doubtful, exits: false }
    }

    /// Follows the paths from `start`, those with the fewest calls first, up to `until`. Stops if `is_enough` returns
    /// true for the end of a path, its number of calls, and whether it is doubtful.
    fn search(
        &mut self,
        start: u64,
        function: Option<Range<u64>>,
        until: Option<u64>,
        mut is_enough: impl FnMut((u32, bool), PathEnd) -> bool,
    ) {
        self.budget = MAX_INSTRUCTIONS;
        let mut paths =
            vec![Path { ip: start, calls: 0, is_doubtful: false, length: 0, function, state: State::at_start() }];
        let mut seen = FxHashSet::default();
        while let Some(shortest) = (0..paths.len()).min_by_key(|index| (paths[*index].calls, paths[*index].length)) {
            if paths.len() > MAX_BRANCHES {
                return;
            }
            let path = paths.swap_remove(shortest);
            let passed = (path.calls, path.is_doubtful);
            if seen.insert(path.ip)
                && let Some(end) = self.follow(path, until, &mut paths)
                && is_enough(passed, end)
            {
                return;
            }
        }
    }

    /// Follows a path up to its end, or to where it branches: then adds its branches to `paths`.
    fn follow(&mut self, mut path: Path, until: Option<u64>, paths: &mut Vec<Path>) -> Option<PathEnd> {
        let mut was_system_call = false;
        loop {
            if until == Some(path.ip) {
                return Some(PathEnd::Arrived(rule_from_entry(&path.state)));
            }
            if path.function.as_ref().is_some_and(|function| !function.contains(&path.ip)) {
                return None;
            }
            self.budget = self.budget.checked_sub(1)?;
            *self.total_budget = self.total_budget.checked_sub(1)?;
            if path.state.is_full() {
                return None;
            }
            let instruction = decode(self.code.read(path.ip), path.ip)?;
            let next = instruction.next_ip();
            match instruction.flow_control() {
                FlowControl::Next if instruction.mnemonic() == Mnemonic::Hlt => {
                    return was_system_call.then_some(PathEnd::Exits);
                }
                FlowControl::Next => path.state.apply(&instruction, &mut self.info),
                FlowControl::Call if instruction.mnemonic() == Mnemonic::Syscall => {
                    path.state.apply(&instruction, &mut self.info);
                }
                // The instruction reads its own address.
                FlowControl::Call if instruction.near_branch_target() == next => path.state.push(Value::Unknown),
                FlowControl::Call | FlowControl::IndirectCall => {
                    path.state.call();
                    let is_doubtful = path.is_doubtful || path.function.is_none();
                    paths.push(Path { ip: next, calls: path.calls + 1, is_doubtful, ..path });
                    return None;
                }
                FlowControl::UnconditionalBranch => {
                    paths.push(self.jump(path, instruction.near_branch_target()));
                    return None;
                }
                FlowControl::ConditionalBranch => {
                    let state = path.state.clone();
                    paths.push(Path { ip: next, state, function: path.function.clone(), ..path });
                    paths.push(self.jump(path, instruction.near_branch_target()));
                    return None;
                }
                FlowControl::Return | FlowControl::IndirectBranch => {
                    return rule_of_return(&path.state, &instruction).map(PathEnd::Returns);
                }
                _ => return None,
            }
            was_system_call = instruction.mnemonic() == Mnemonic::Syscall;
            (path.ip, path.length) = (next, path.length + 1);
        }
    }

    /// Returns the path behind a jump: in the same function, in a part of it that lies elsewhere, or in a function that
    /// returns to the caller.
    fn jump(&mut self, path: Path, target: u64) -> Path {
        let is_inside = path.function.as_ref().is_some_and(|function| function.contains(&target));
        let function = if is_inside { path.function } else { self.code.find_function(target) };
        Path { ip: target, function, ..path }
    }
}

#[cfg(test)]
mod tests {
    use addr2line::gimli;

    use super::state::BP;
    use super::*;

    struct Bytes {
        bytes: Vec<u8>,
        functions: Vec<Range<u64>>,
    }

    /// The address of the first byte.
    const START: u64 = 0x1000;

    impl ReadInstructions for Bytes {
        fn read(&mut self, address: u64) -> &[u8] {
            address.checked_sub(START).and_then(|offset| self.bytes.get(offset as usize..)).unwrap_or_default()
        }

        fn find_function(&mut self, address: u64) -> Option<Range<u64>> {
            self.functions.iter().find(|function| function.contains(&address)).cloned()
        }
    }

    /// Returns the distance of the return address from a register, by the paths to a return and from the entry, at an
    /// offset of a function without a symbol.
    fn places(bytes: &[u8], offset: u64) -> [Option<(gimli::Register, i64)>; 2] {
        let mut code = Bytes { bytes: bytes.to_vec(), functions: Vec::new() };
        let returns = Paths::new(&mut code, &mut MAX_INSTRUCTIONS.clone()).follow_to_return(None, START + offset);
        let rules = [
            returns.rule,
            Paths::new(&mut code, &mut MAX_INSTRUCTIONS.clone()).follow_from_entry(START..u64::MAX, START + offset),
        ];
        rules.map(|rule| match rule?.return_address {
            Value::Register(register, offset) => Some((register, offset)),
            _ => None,
        })
    }

    #[test]
    fn finds_the_return_address_at_each_instruction_of_a_trampoline() {
        // sub rsp, 8; call rcx; add rsp, 8; ret: what CPython generates for each function with -X perf.
        let bytes = [0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3];
        for (offset, place) in [(0, 0), (4, 8), (6, 8), (10, 0)] {
            assert_eq!(places(&bytes, offset), [Some((SP, place)); 2], "{offset}");
        }
    }

    #[test]
    fn finds_the_return_address_of_a_frame_pointer() {
        // push rbp; mov rbp, rsp; sub rsp, 32; call rax; leave; ret
        let bytes = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd0, 0xc9, 0xc3];
        assert_eq!(places(&bytes, 0), [Some((SP, 0)); 2]);
        assert_eq!(places(&bytes, 1), [Some((SP, 8)); 2]);
        assert_eq!(places(&bytes, 10), [Some((BP, 8)); 2]);
        assert_eq!(places(&bytes, 11), [Some((SP, 0)); 2]);
    }

    #[test]
    fn paths_end_with_the_function_that_a_symbol_names() {
        // push rbx; call +0; nop; and another function: ret
        let bytes = [0x53, 0xe8, 0x01, 0, 0, 0, 0x90, 0xc3];
        let mut code = Bytes { bytes: bytes.to_vec(), functions: vec![START..START + 7, START + 7..START + 8] };
        let function = code.find_function(START);
        assert_eq!(
            Paths::new(&mut code, &mut MAX_INSTRUCTIONS.clone()).follow_to_return(function.clone(), START + 6),
            Returns::default()
        );
        let rule = Paths::new(&mut code, &mut MAX_INSTRUCTIONS.clone()).follow_from_entry(function.unwrap(), START + 6);
        assert_eq!(rule.map(|rule| rule.return_address), Some(Value::Register(SP, 8)));
    }

    #[test]
    fn a_path_that_calls_is_doubtful_without_a_symbol() {
        // call rax; ret
        let mut code = Bytes { bytes: vec![0xff, 0xd0, 0xc3], functions: Vec::new() };
        assert!(Paths::new(&mut code, &mut MAX_INSTRUCTIONS.clone()).follow_to_return(None, START).is_doubtful);
        assert!(!Paths::new(&mut code, &mut MAX_INSTRUCTIONS.clone()).follow_to_return(None, START + 2).is_doubtful);
        code.functions.push(START..START + 3);
        assert!(
            !Paths::new(&mut code, &mut MAX_INSTRUCTIONS.clone())
                .follow_to_return(Some(START..START + 3), START)
                .is_doubtful
        );
    }

    #[test]
    fn a_jump_to_a_stored_function_is_no_return() {
        // mov rax, [rdx + 72]; jmp rax
        assert_eq!(places(&[0x48, 0x8b, 0x42, 0x48, 0xff, 0xe0], 0)[0], None);
        // pop rcx; lea rsp, [rsp + rax * 8]; push rcx; ret
        assert_eq!(places(&[0x59, 0x48, 0x8d, 0x24, 0xc4, 0x51, 0xc3], 0)[0], None);
        // pop rcx; jmp rcx
        assert_eq!(places(&[0x59, 0xff, 0xe1], 0)[0], Some((SP, 0)));
    }

    #[test]
    fn a_return_address_that_was_popped_is_in_a_register() {
        // pop rdx; mov eax, 58; syscall; push rdx; ret
        let bytes = vec![0x5a, 0xb8, 58, 0, 0, 0, 0x0f, 0x05, 0x52, 0xc3];
        let mut code = Bytes { bytes, functions: Vec::new() };
        let popped = [0, 1, 6, 8, 9].map(|offset| {
            let mut budget = MAX_INSTRUCTIONS;
            Paths::new(&mut code, &mut budget).follow_from_entry(START..u64::MAX, START + offset).unwrap().popped
        });
        let rdx = Some(gimli::X86_64::RDX);
        assert_eq!(popped, [None, rdx, rdx, rdx, None]);
    }

    #[test]
    fn a_thread_that_exits_has_no_caller() {
        // mov edi, eax; mov eax, 60; syscall; hlt
        let mut code = Bytes { bytes: vec![0x89, 0xc7, 0xb8, 60, 0, 0, 0, 0x0f, 0x05, 0xf4], functions: Vec::new() };
        assert_eq!(
            Paths::new(&mut code, &mut MAX_INSTRUCTIONS.clone()).follow_to_return(None, START),
            Returns { exits: true, ..Returns::default() }
        );
    }

    #[test]
    fn code_that_takes_its_stack_pointer_from_its_frame_has_a_frame_pointer() {
        // mov rsp, [rbp - 16]; lea rsp, [rsp + rdx * 8]; jmp [r10 + rbx * 8]
        let bytes = [0x48, 0x8b, 0x65, 0xf0, 0x48, 0x8d, 0x24, 0xd4, 0x41, 0xff, 0x24, 0xda];
        assert_eq!(places(&bytes, 0)[0], Some((BP, 8)));
        assert_eq!(places(&bytes, 4)[0], None);
    }

    #[test]
    fn any_bytes_are_followed_within_bounds() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for length in (1..2000).chain([1 << 16]) {
            // Half of them consist of pushes, jumps and writes to the stack mostly.
            let common = [0x50, 0x75, 0x74, 0x55, 0x5d, 0xc9, 0x48, 0x89, 0x44, 0x24];
            let bytes = (0..length).map(|_| match random() {
                random if length % 2 == 0 && random % 8 > 0 => common[(random >> 8) as usize % common.len()],
                random => (random >> 8) as u8,
            });
            places(&bytes.collect::<Vec<u8>>(), length as u64 / 2);
        }
    }

    #[test]
    fn pushes_and_branches_end_a_search() {
        // push rax; je 0: each branch would keep all words that were pushed.
        let pushes = [0x50; 3000];
        let branches = [0x74, 0x00].repeat(3000);
        assert_eq!(places(&[&pushes[..], &branches, &[0xc3]].concat(), 0), [None, Some((SP, 0))]);
        let mut budget = 10;
        let mut code = Bytes { bytes: vec![0x90; 100], functions: Vec::new() };
        Paths::new(&mut code, &mut budget).follow_to_return(None, START);
        assert_eq!(budget, 0);
    }
}
