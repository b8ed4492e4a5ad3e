//! The stack of a sample: the copy that came with it and, where that ends, the thread's own memory.
//!
//! The thread has run on since. What it has on its stack beyond the copy is the sample's only if the highest return address
//! in the copy (the anchor) still stands where it stood; and every return address in it must follow a call.

use super::patience::Patience;
use super::second_look::SecondLook;
use super::{End, Moment, Step};

/// Reads the memory of living processes.
pub trait Memory: Send {
    /// Reads what it can; how many bytes.
    fn read(&mut self, pid: u32, address: u64, into: &mut [u8]) -> usize;
}

/// What is read at once: some pages, as few calls of the kernel cost less than what they bring.
const PIECE: usize = 4 * PAGE as usize;
const PAGE: u64 = 4096;
/// How far beyond the copy the living stack is followed.
const LONGEST_TAIL: u64 = 8 << 20;

/// So many pieces serve the next stack too.
const MOST_KEPT: usize = 16;

/// What living threads have on their stacks. What was read for one sample serves those that are unwound together with it,
/// which mostly come from the same thread.
pub struct Living {
    memory: Box<dyn Memory>,
    /// How long it can wait to be read.
    pub patience: Patience,
    /// What is to be looked at again.
    pub second_look: Option<SecondLook>,
    /// The process that is read.
    pid: u32,
    /// The pieces of its memory that were read, and behind them buffers that stacks before it needed: most need some, and
    /// memory that is new costs more than what is read into it.
    pieces: Vec<Piece>,
    read: usize,
}

impl Living {
    /// What `memory` reads.
    pub fn new(memory: Box<dyn Memory>) -> Self {
        Self { memory, patience: Patience::default(), second_look: None, pid: 0, pieces: Vec::new(), read: 0 }
    }

    /// What a process has on its stacks now, or had when it was read.
    fn of(&mut self, pid: u32) -> &mut Self {
        if self.pid != pid || self.read >= MOST_KEPT {
            self.forget();
        }
        self.pid = pid;
        self
    }

    /// What was read is old: what is read from now on is of this time.
    pub fn look_again(&mut self, time: u64) {
        self.forget();
        self.patience.look_again(time);
        if let Some(look) = self.second_look.take_if(|look| look.is_due(time))
            && let Some(lied) = look.lied(time, |place| self.of(look.pid).word(place))
        {
            self.patience.trust.learn(lied, time);
        }
    }

    /// Judges a sample's stack, of which so many frames stood in the copy: leaves what can be believed of it, and says how
    /// it ends.
    pub fn judge(&mut self, sample: Moment<'_>, steps: &mut Vec<Step>, (copied, tail): (usize, Tail), end: End) -> End {
        if self.second_look.is_none() && end == End::Root && self.patience.trust.is_untested(sample.time) {
            let first = (sample.pid, self.patience.time);
            let parts = (copied, tail == Tail::Anchored);
            self.second_look = SecondLook::at(first, steps, parts, |place| self.of(sample.pid).word(place));
        }
        self.patience.judge(sample, steps, (copied, tail), end)
    }

    fn forget(&mut self) {
        self.read = 0;
    }

    /// The word at an address.
    fn word(&mut self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        if let Some(bytes) = self.from(address)?.get(..word.len()) {
            word.copy_from_slice(bytes);
            return Some(u64::from_le_bytes(word));
        }
        // It goes on in another piece.
        for (index, byte) in word.iter_mut().enumerate() {
            *byte = *self.from(address.checked_add(index as u64)?)?.first()?;
        }
        Some(u64::from_le_bytes(word))
    }

    /// The bytes from an address on, as far as they were read together with it.
    fn from(&mut self, address: u64) -> Option<&[u8]> {
        let known = self.pieces[..self.read].iter().position(|piece| piece.from(address).is_some());
        let piece = known.or_else(|| self.read_piece(address & !(PAGE - 1)))?;
        self.pieces[piece].from(address)
    }

    fn read_piece(&mut self, start: u64) -> Option<usize> {
        if self.read == self.pieces.len() {
            self.pieces.push(Piece { start, length: 0, bytes: vec![0; PIECE].into() });
        }
        let piece = &mut self.pieces[self.read];
        piece.start = start;
        piece.length = self.memory.read(self.pid, start, &mut piece.bytes);
        if piece.length == 0 {
            return None;
        }
        self.read += 1;
        Some(self.read - 1)
    }
}

/// The stack of a sample.
pub struct Stack<'a> {
    start: u64,
    dump: &'a [u8],
    living: Option<&'a mut Living>,
    /// The highest return address in the copy, and where it stands.
    anchor: Option<(u64, u64)>,
    frames_in_dump: usize,
    tail: Tail,
    missed_above: bool,
}

/// A piece of the living stack.
struct Piece {
    start: u64,
    length: usize,
    bytes: Box<[u8]>,
}

impl Piece {
    /// What it holds from an address on, if it holds that.
    fn from(&self, address: u64) -> Option<&[u8]> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        self.bytes[..self.length].get(offset..).filter(|bytes| !bytes.is_empty())
    }
}

/// The part of a stack that is beyond the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing was asked of it.
    Unread,
    /// That of a thread that has not returned from the frames in the copy, as its anchor tells.
    Anchored,
    /// That of a thread of which nothing tells: in the copy was no return address.
    Adrift,
    /// That of a thread that has returned from them: it tells nothing.
    Gone,
}

impl<'a> Stack<'a> {
    /// A copy of the stack that began at `start`, and what reads the rest of it.
    pub fn new(start: u64, dump: &'a [u8], pid: u32, living: Option<&'a mut Living>) -> Self {
        let (living, tail) = (living.map(|living| living.of(pid)), Tail::Unread);
        Self { start, dump, living, anchor: None, frames_in_dump: 1, tail, missed_above: false }
    }

    /// The word at an address.
    pub fn read(&mut self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.start)?;
        if let Ok(offset) = usize::try_from(offset)
            && let Some(bytes) = self.dump.get(offset..offset.saturating_add(8))
        {
            return Some(u64::from_le_bytes(bytes.try_into().ok()?));
        }
        self.missed_above = true;
        if offset > self.dump.len() as u64 + LONGEST_TAIL {
            return None;
        }
        if self.tail == Tail::Unread {
            self.enter_tail()?;
        }
        if self.tail == Tail::Gone { None } else { self.living.as_mut()?.word(address) }
    }

    /// Whether something was asked for that lies beyond the copy.
    pub fn missed_above(&self) -> bool {
        self.missed_above
    }

    /// What was read beyond the copy.
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// How many frames the copy alone vouches for.
    pub fn frames_in_dump(&self) -> usize {
        self.frames_in_dump
    }

    /// A frame was passed: the stack pointer is now here, and its caller's address was read just below.
    pub fn passed(&mut self, stack_pointer: u64, caller: u64, frames: usize) {
        if self.tail != Tail::Unread {
            return;
        }
        self.frames_in_dump = frames + 1;
        if let Some(slot) = stack_pointer.checked_sub(8)
            && self.read_dump(slot) == Some(caller)
        {
            self.anchor = Some((slot, caller));
        }
    }

    fn read_dump(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        Some(u64::from_le_bytes(self.dump.get(offset..offset.checked_add(8)?)?.try_into().ok()?))
    }

    fn enter_tail(&mut self) -> Option<()> {
        let living = self.living.as_mut()?;
        self.tail = match self.anchor {
            None => Tail::Adrift,
            Some((slot, caller)) if living.word(slot) == Some(caller) => Tail::Anchored,
            Some(_) => Tail::Gone,
        };
        Some(())
    }

    /// Reads the process's memory anywhere: its code, say.
    pub fn read_process(&mut self, address: u64, into: &mut [u8]) -> Option<()> {
        let living = self.living.as_mut()?;
        (living.memory.read(living.pid, address, into) == into.len()).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Living, Memory, Stack, Tail};

    /// Memory in which every word holds its own address, but for one.
    struct Words(u64, u64);

    impl Memory for Words {
        fn read(&mut self, _: u32, address: u64, into: &mut [u8]) -> usize {
            for (index, bytes) in into.chunks_exact_mut(8).enumerate() {
                let at = address + index as u64 * 8;
                let word = if at == self.0 { self.1 } else { at };
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            into.len()
        }
    }

    fn dump(start: u64, words: u64) -> Vec<u8> {
        (0..words).flat_map(|index| (start + index * 8).to_le_bytes()).collect()
    }

    #[test]
    fn beyond_the_copy_the_living_stack_is_read() {
        let bytes = dump(0x10000, 4);
        let mut words = Living::new(Box::new(Words(0, 0)));
        let mut stack = Stack::new(0x10000, &bytes, 1, Some(&mut words));
        stack.passed(0x10018, 0x10010, 1);
        assert_eq!((stack.read(0x10008), stack.tail()), (Some(0x10008), Tail::Unread));
        assert_eq!((stack.read(0x10020), stack.tail()), (Some(0x10020), Tail::Anchored));
        assert_eq!(stack.frames_in_dump(), 2);
    }

    #[test]
    fn a_thread_that_has_returned_tells_nothing() {
        let bytes = dump(0x10000, 4);
        let mut words = Living::new(Box::new(Words(0x10010, 7)));
        let mut stack = Stack::new(0x10000, &bytes, 1, Some(&mut words));
        stack.passed(0x10018, 0x10010, 1);
        assert_eq!((stack.read(0x10020), stack.tail()), (None, Tail::Gone));
    }

    #[test]
    fn a_frame_larger_than_the_copy_has_no_anchor() {
        let bytes = dump(0x10000, 4);
        let mut words = Living::new(Box::new(Words(0, 0)));
        let mut stack = Stack::new(0x10000, &bytes, 1, Some(&mut words));
        assert_eq!((stack.read(0x10020), stack.tail()), (Some(0x10020), Tail::Adrift));
    }

    #[test]
    fn samples_that_are_unwound_together_share_what_was_read() {
        let bytes = dump(0x10000, 4);
        let mut words = Living::new(Box::new(Words(0x10028, 7)));
        let read = |words: &mut Living, pid| Stack::new(0x10000, &bytes, pid, Some(words)).read(0x10028);
        assert_eq!(read(&mut words, 1), Some(7));
        words.memory = Box::new(Words(0x10028, 8));
        assert_eq!((read(&mut words, 1), read(&mut words, 2)), (Some(7), Some(8)));
        words.memory = Box::new(Words(0x10028, 9));
        words.look_again(1);
        assert_eq!(read(&mut words, 2), Some(9));
    }

    #[test]
    fn without_memory_the_copy_is_all() {
        let bytes = dump(0x10000, 4);
        let mut stack = Stack::new(0x10000, &bytes, 1, None);
        assert_eq!((stack.read(0x10020), stack.missed_above(), stack.tail()), (None, true, Tail::Unread));
    }
}
