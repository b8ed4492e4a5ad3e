//! Rules: how the registers of a caller are found.

use rustc_hash::FxHashMap;

/// The distinct rules of all objects. A rule has the kind of its CFA in bits 48 to 55, the CFA's offset in bits 16 to
/// 47, and the place of the saved frame pointer, in words from the CFA, in bits 0 to 15. Rule 0 is that of unknown
/// code.
#[derive(Debug)]
pub struct Rules {
    numbers: FxHashMap<u64, u32>,
    rules: Vec<u64>,
    /// Rules that were looked up lately with their numbers, by a hash. Most functions of an object have the same few rules.
    recent: [(u64, u32); RECENT],
}

/// Number of rules that are looked up without the map. The look-ups took a sixth of the time in which rows are made.
const RECENT: usize = 256;

/// Maximum number of rules: the size of the program's map. Real objects have some hundreds.
pub const MAX_RULES: usize = 1 << 16;

impl Default for Rules {
    fn default() -> Self {
        Self { numbers: FxHashMap::from_iter([(0, 0)]), rules: vec![0], recent: [(0, 0); RECENT] }
    }
}

impl Rules {
    /// The rules by number.
    pub fn all(&self) -> &[u64] {
        &self.rules
    }

    /// Returns the number of a rule; 0 if there are too many.
    pub(super) fn intern(&mut self, rule: u64) -> u32 {
        let place = (rule.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % RECENT;
        if self.recent[place].0 != rule {
            self.recent[place] = (rule, self.find_or_add(rule));
        }
        self.recent[place].1
    }

    fn find_or_add(&mut self, rule: u64) -> u32 {
        if let Some(number) = self.numbers.get(&rule) {
            return *number;
        }
        if self.rules.len() >= MAX_RULES {
            return 0;
        }
        let number = self.rules.len() as u32;
        self.rules.push(rule);
        self.numbers.insert(rule, number);
        number
    }
}

/// Kinds of rules: how the CFA is found, or what else is at the address.
pub mod kind {
    /// The stack pointer plus the offset.
    pub const STACK_POINTER: u64 = 1;
    /// The frame pointer plus the offset, perhaps on another stack.
    pub const FRAME_POINTER: u64 = 2;
    /// The function has no caller.
    pub const ROOT: u64 = 3;
    /// The kernel put a signal frame here, with all registers.
    pub const SIGNAL: u64 = 4;
    /// The word that many bytes below the frame pointer.
    pub const DEREF: u64 = 5;
    /// The stack pointer plus the offset, in a Go function: it may have changed the frame pointer.
    pub const GO: u64 = 6;
    /// The same, but what looks like a return address is the address of an instruction.
    pub const GO_CALLBACK: u64 = 7;
    /// The saved stack pointer of the thread's current goroutine plus an offset.
    pub const GOROUTINE: u64 = 8;
    /// The saved registers that the thread's current goroutine resumes.
    pub const RESUMED: u64 = 9;
    /// A runtime generated the code when the object was built, and knows its frames.
    pub const RUNTIME: u64 = 10;
}

/// Makes a rule.
pub const fn rule(kind: u64, offset: u32, saved: i16) -> u64 {
    kind << 48 | (offset as u64) << 16 | saved.cast_unsigned() as u64
}
