//! The stack of a sample: the copy that came with it and, where that ends, the thread's own memory.
//!
//! The thread has run on since. What it has on its stack beyond the copy is the sample's only if the return addresses at
//! the end of the copy (the anchors) still stand where they stood, before it is read and after; and every return address
//! in it must follow a call. One anchor would not do: a return address outlives its call where another leaves its memory
//! unwritten, in a buffer say, but not every one on a page does.

use super::frame::{Frame, Slot};
use super::patience::Patience;
use super::second_look::SecondLook;
use super::sightings::Sightings;
use super::snapshot::ProcessSnapshot;
use crate::perf::stop_reason::StopReason;

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

/// So far from the end of the copy return addresses are anchors. Of twice as many those that change in a compiler's calls
/// cost more stacks than they prove.
pub const ANCHORAGE: u64 = PAGE;

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
    /// Where threads were seen since.
    pub sightings: Sightings,
    /// The process that is read.
    pid: u32,
    /// The return addresses at the end of the copy at hand, or the highest one.
    anchors: Vec<Slot>,
    /// The pieces of its memory that were read, and behind them buffers that stacks before it needed: most need some, and
    /// memory that is new costs more than what is read into it.
    pieces: Vec<Piece>,
    read: usize,
}

impl Living {
    /// What `memory` reads.
    pub fn new(memory: Box<dyn Memory>) -> Self {
        let (patience, anchors, pieces) = (Patience::default(), Vec::new(), Vec::new());
        let sightings = Sightings::default();
        Self { memory, patience, second_look: None, sightings, pid: 0, anchors, pieces, read: 0 }
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
    pub fn judge(
        &mut self,
        sample: ProcessSnapshot<'_>,
        steps: &mut Vec<Frame>,
        (copied, tail): (usize, Tail),
        end: StopReason,
    ) -> StopReason {
        let stack_pointer = steps.first().map_or(0, |step| step.stack_pointer);
        if let Some(anchors) = self.patience.left(sample, stack_pointer) {
            let stand = anchors.iter().all(|(place, caller)| self.of(sample.pid).word(*place) == Some(*caller));
            self.patience.trust.learn(stand, sample.time);
        }
        if self.second_look.is_none() && end == StopReason::Root && self.patience.trust.is_untested(sample.time) {
            let first = (sample.pid, self.patience.time);
            let anchors = if tail == Tail::Anchored { self.anchors.clone() } else { Vec::new() };
            self.second_look =
                SecondLook::at(first, anchors, &steps[copied..], |place| self.of(sample.pid).word(place));
        }
        self.patience.judge(sample, steps, (copied, tail), end)
    }

    fn forget(&mut self) {
        self.read = 0;
    }

    /// A return address was found in the copy of a stack that ends here, higher than those before it.
    fn add_anchor(&mut self, anchor: Slot, end: u64) {
        if self.anchors.first().is_some_and(|(place, _)| end.saturating_sub(*place) > ANCHORAGE) {
            self.anchors.clear();
        }
        self.anchors.push(anchor);
    }

    /// Whether the anchors stood where they are when their place was read.
    fn stood_by_anchors(&mut self) -> bool {
        let anchors = std::mem::take(&mut self.anchors);
        let stood = anchors.iter().rev().all(|(place, caller)| self.word(*place) == Some(*caller));
        self.anchors = anchors;
        stood
    }

    /// Whether they stand there now.
    fn stands_by_anchors(&mut self) -> bool {
        let mut now = [0; ANCHORAGE as usize];
        let places = self.anchors.iter().map(|(place, _)| *place);
        let (Some(first), Some(last)) = (places.clone().min(), places.max()) else { return true };
        let Some(now) = now.get_mut(..(last - first) as usize + 8) else { return false };
        self.memory.read(self.pid, first, now) == now.len()
            && self
                .anchors
                .iter()
                .all(|(place, caller)| now[(place - first) as usize..].starts_with(&caller.to_le_bytes()))
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
    /// The highest place where the stack pointer was seen since.
    seen: u64,
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

/// Whether a thread whose stack pointer is there has returned from the frame with that place. Further up is another stack.
pub fn has_returned_from(place: u64, stack_pointer: u64) -> bool {
    stack_pointer > place && stack_pointer - place < LONGEST_TAIL
}

/// The part of a stack that is beyond the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing was asked of it.
    Unread,
    /// That of a thread that has not returned from the frames in the copy, as its anchors tell.
    Anchored,
    /// That of a thread of which nothing tells: in the copy was no return address.
    Adrift,
    /// That of a thread that has returned from them: it tells nothing.
    Gone,
}

impl<'a> Stack<'a> {
    /// A copy of the stack that began at `start`, and what reads the rest of it.
    pub fn new(start: u64, dump: &'a [u8], pid: u32, living: Option<&'a mut Living>, seen: u64) -> Self {
        let mut living = living.map(|living| living.of(pid));
        if let Some(living) = &mut living {
            living.anchors.clear();
        }
        Self { start, dump, living, seen, frames_in_dump: 1, tail: Tail::Unread, missed_above: false }
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
        if let Some(place) = stack_pointer.checked_sub(8)
            && self.read_dump(place) == Some(caller)
            && let Some(living) = &mut self.living
        {
            living.add_anchor((place, caller), self.start.saturating_add(self.dump.len() as u64));
        }
    }

    fn read_dump(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        Some(u64::from_le_bytes(self.dump.get(offset..offset.checked_add(8)?)?.try_into().ok()?))
    }

    fn enter_tail(&mut self) -> Option<()> {
        let living = self.living.as_mut()?;
        let end = self.start.saturating_add(self.dump.len() as u64);
        let highest = living.anchors.last().map_or(end, |(place, _)| *place);
        self.tail = match (living.anchors.is_empty(), living.stood_by_anchors()) {
            _ if has_returned_from(highest, self.seen) => Tail::Gone,
            (true, _) => Tail::Adrift,
            (false, true) => Tail::Anchored,
            (false, false) => Tail::Gone,
        };
        Some(())
    }

    /// Whether the thread has returned from the frames in the copy while the rest was read.
    pub fn has_returned(&mut self) -> bool {
        if self.tail == Tail::Anchored && self.living.as_mut().is_some_and(|living| !living.stands_by_anchors()) {
            self.tail = Tail::Gone;
        }
        self.tail == Tail::Gone
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
        let mut stack = Stack::new(0x10000, &bytes, 1, Some(&mut words), 0);
        stack.passed(0x10018, 0x10010, 1);
        assert_eq!((stack.read(0x10008), stack.tail()), (Some(0x10008), Tail::Unread));
        assert_eq!((stack.read(0x10020), stack.tail()), (Some(0x10020), Tail::Anchored));
        assert_eq!(stack.frames_in_dump(), 2);
    }

    #[test]
    fn a_thread_that_has_returned_tells_nothing() {
        let bytes = dump(0x10000, 4);
        let mut words = Living::new(Box::new(Words(0x10010, 7)));
        let mut stack = Stack::new(0x10000, &bytes, 1, Some(&mut words), 0);
        stack.passed(0x10018, 0x10010, 1);
        assert_eq!((stack.read(0x10020), stack.tail()), (None, Tail::Gone));
    }

    #[test]
    fn one_anchor_that_has_changed_on_the_last_page_of_the_copy_is_enough() {
        let bytes = dump(0x10000, 2048);
        let tail = |changed| {
            let mut words = Living::new(Box::new(Words(changed, 7)));
            let mut stack = Stack::new(0x10000, &bytes, 1, Some(&mut words), 0);
            for place in [0x11000, 0x12ff8, 0x13000, 0x13800, 0x13ff8] {
                stack.passed(place + 8, place, 1);
            }
            stack.read(0x14000);
            stack.tail()
        };
        assert_eq!([0x13000, 0x13800, 0x13ff8].map(tail), [Tail::Gone; 3]);
        // Below it a thread may have gone on, and what is no return address may change.
        assert_eq!([0x11000, 0x12ff8, 0x13ff0].map(tail), [Tail::Anchored; 3]);
    }

    #[test]
    fn a_thread_that_returns_while_it_is_read_tells_nothing() {
        let bytes = dump(0x10000, 4);
        let mut words = Living::new(Box::new(Words(0, 0)));
        let mut stack = Stack::new(0x10000, &bytes, 1, Some(&mut words), 0);
        stack.passed(0x10018, 0x10010, 1);
        assert_eq!((stack.read(0x10020), stack.has_returned()), (Some(0x10020), false));
        stack.living.as_mut().unwrap().memory = Box::new(Words(0x10010, 7));
        assert_eq!((stack.has_returned(), stack.tail()), (true, Tail::Gone));
    }

    #[test]
    fn a_thread_that_was_seen_higher_up_has_returned() {
        let bytes = dump(0x10000, 4);
        let tail = |seen| {
            let mut words = Living::new(Box::new(Words(0, 0)));
            let mut stack = Stack::new(0x10000, &bytes, 1, Some(&mut words), seen);
            stack.passed(0x10018, 0x10010, 1);
            stack.read(0x10020);
            stack.tail()
        };
        // Not from the frame that has its return address there, and so far away it is on another stack.
        assert_eq!([0, 0x8000, 0x10010, 0x10000 + (9 << 20)].map(tail), [Tail::Anchored; 4]);
        assert_eq!([0x10018, 0x10100].map(tail), [Tail::Gone; 2]);
    }

    #[test]
    fn a_frame_larger_than_the_copy_has_no_anchor() {
        let bytes = dump(0x10000, 4);
        let mut words = Living::new(Box::new(Words(0, 0)));
        let mut stack = Stack::new(0x10000, &bytes, 1, Some(&mut words), 0);
        assert_eq!((stack.read(0x10020), stack.tail()), (Some(0x10020), Tail::Adrift));
    }

    #[test]
    fn samples_that_are_unwound_together_share_what_was_read() {
        let bytes = dump(0x10000, 4);
        let mut words = Living::new(Box::new(Words(0x10028, 7)));
        let read = |words: &mut Living, pid| Stack::new(0x10000, &bytes, pid, Some(words), 0).read(0x10028);
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
        let mut stack = Stack::new(0x10000, &bytes, 1, None, 0);
        assert_eq!((stack.read(0x10020), stack.missed_above(), stack.tail()), (None, true, Tail::Unread));
    }
}
