//! Laying out stacks that come in any order: only what is drawn is put in order.
//!
//! Of each stack the frames are kept as numbers. From the root on, the stacks are divided by their next frame, and those
//! of a frame that is wide enough are divided further. What is too narrow is never looked at again.

use std::ops::Range;

use super::drawing::Drawing;
use super::layout::{Drawn, Layout, States, least, state_bit};
use super::options::Options;
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::{self, Kind, StackSink};
use crate::input::Source;
use crate::profile::{FrameId, Frames, Weight, Weights};

impl Drawing {
    /// Draws a plain picture of folded texts in any order.
    ///
    /// # Errors
    /// [`Error::Overflow`], and with strict diagnostics [`Error::Malformed`].
    pub fn of_unsorted(sources: &[Source], options: &Options, diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let heap = Heap::read(sources, diagnostics)?;
        let (stacks, differential) = (heap.stacks.len() as u64, heap.differential);
        let layout = Division::new(heap, options).finish()?;
        Ok(Self { layout, payload: None, differential, stacks })
    }
}

/// Behind a stack's last frame.
pub(super) const END: u32 = u32::MAX;

/// The stacks as they come.
#[derive(Default)]
pub(super) struct Heap {
    pub(super) frames: Frames,
    /// Of each frame which state it is, as a bit.
    state_bits: Vec<u8>,
    /// The frames of all stacks, after each an `END`.
    pub(super) ids: Vec<u32>,
    /// How many there may be of these, if there is a limit.
    most: Option<usize>,
    pub(super) stacks: Vec<Stack>,
    /// Weights that do not fit into a stack.
    others: Vec<Weights>,
    /// Of each frame of the last stack, which states stand up to it.
    states: Vec<States>,
    layout: Layout,
    pub(super) differential: bool,
}

/// What of a stack is still to be divided.
#[derive(Clone, Copy, Default)]
pub(super) struct Stack {
    /// Where its next frame stands.
    pub(super) at: usize,
    /// What it weighs, in millionths; or, with the bit `OTHER`, where that stands.
    pub(super) weight: u64,
}

const OTHER: u64 = 1 << 63;

impl Heap {
    /// One that refuses to hold more frames than so many, counting the ends of stacks.
    pub(super) fn up_to(most: usize) -> Self {
        Self { most: Some(most), ..Self::default() }
    }

    /// One file is read by several threads.
    fn read(sources: &[Source], diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let mut heap = Self::default();
        let parts = if let [source] = sources { folded::read_parallel(source, Self::default) } else { None };
        match parts {
            Some(parts) => parts.into_iter().try_for_each(|part| heap.take(part))?,
            None => folded::read_all(sources, &mut heap, diagnostics)?,
        }
        Ok(heap)
    }

    /// Takes over the stacks of another.
    fn take(&mut self, other: Self) -> Result<(), Error> {
        if self.stacks.is_empty() {
            *self = other;
            return Ok(());
        }
        let ids = self.frames.intern_all(&other.frames);
        let (first_id, first_other) = (self.ids.len(), self.others.len() as u64);
        let new_id = |id: &u32| ids.get(*id as usize).map_or(END, |id| id.index() as u32);
        self.ids.extend(other.ids.iter().map(new_id));
        self.others.extend(other.others);
        self.stacks.extend(other.stacks.iter().map(|stack| {
            let weight = if stack.weight & OTHER == 0 { stack.weight } else { stack.weight + first_other };
            Stack { at: stack.at + first_id, weight }
        }));
        self.layout.total.add(other.layout.total)?;
        let Layout { states, leaves, .. } = &mut self.layout;
        let others = other.layout.states.into_iter().chain(other.layout.leaves);
        for (sum, weight) in states.iter_mut().chain(leaves).zip(others) {
            *sum = sum.checked_add(weight).ok_or(Error::Overflow)?;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn weights(&self, stack: Stack) -> Weights {
        match stack.weight & OTHER {
            0 => Weights::plain(Weight::from_millionths(stack.weight.into())),
            _ => self.others[(stack.weight & !OTHER) as usize],
        }
    }

    /// A stack whose frames stand there.
    fn stack(&mut self, at: usize, weights: Weights) -> Stack {
        let short = u64::try_from(weights.after.millionths()).ok().filter(|weight| weight & OTHER == 0);
        let weight = short.filter(|_| weights.before.is_zero()).unwrap_or_else(|| {
            self.others.push(weights);
            OTHER | (self.others.len() as u64 - 1)
        });
        Stack { at, weight }
    }

    fn state_bit(&mut self, frame: FrameId) -> u8 {
        for index in self.state_bits.len()..=frame.index() {
            self.state_bits.push(state_bit(self.frames.name(FrameId::from_index(index as u32))));
        }
        self.state_bits[frame.index()]
    }
}

impl StackSink for Heap {
    fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    fn begin(&mut self, kind: Kind) {
        self.differential = kind == Kind::Differential;
    }

    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        self.states.truncate(shared);
        for frame in &stack[shared..] {
            let below = self.states.last().copied().unwrap_or_default();
            let states = below.and(self.state_bit(*frame));
            self.states.push(states);
        }
        self.layout.weigh(weights, self.states.last().copied().unwrap_or_default())?;
        let at = self.ids.len();
        self.ids.extend(stack.iter().map(|frame| frame.index() as u32));
        self.ids.push(END);
        if self.most.is_some_and(|most| self.ids.len() > most) {
            return Err(Error::Invalid("more frames than bytes".to_owned()));
        }
        let stack = self.stack(at, weights);
        self.stacks.push(stack);
        Ok(())
    }
}

/// Stacks of which all have the same frames so far.
struct Group {
    /// Where they stand.
    stacks: Range<usize>,
    /// The last of these frames in the layout, if it is drawn; none at the root.
    frame: Option<usize>,
    depth: usize,
    start: Weight,
}

/// Divides groups until nothing wide is left.
struct Division {
    heap: Heap,
    least: Weight,
    ranks: Vec<u32>,
    /// Of each frame what it weighs in the present group.
    sums: Vec<Sum>,
    /// Those that come next in any of its stacks.
    next: Vec<u32>,
    /// The next frame of each of its stacks.
    ids: Vec<u32>,
    /// Stacks on their way to their places.
    moved: Vec<Stack>,
    layout: Layout,
}

#[derive(Clone, Default)]
struct Sum {
    weights: Weights,
    /// How many stacks it is the next frame of; then where the next of these goes, and one more. Nothing if nowhere.
    count: usize,
}

impl Division {
    fn new(mut heap: Heap, options: &Options) -> Self {
        let layout = std::mem::take(&mut heap.layout);
        let least = least(layout.total.after.max(options.total), options.narrowest_share());
        let (ranks, sums) = (heap.frames.ranks(), vec![Sum::default(); heap.frames.len()]);
        let (next, ids, moved) = Default::default();
        Self { heap, least, ranks, sums, next, ids, moved, layout }
    }

    fn finish(mut self) -> Result<Layout, Error> {
        let stacks = 0..self.heap.stacks.len();
        let mut waiting = vec![Group { stacks, frame: None, depth: 0, start: Weight::ZERO }];
        while let Some(group) = waiting.pop() {
            self.divide(group, &mut waiting)?;
        }
        self.layout.sort();
        Ok(self.layout)
    }

    fn divide(&mut self, group: Group, waiting: &mut Vec<Group>) -> Result<(), Error> {
        let own = self.weigh(group.stacks.clone())?;
        if let Some(frame) = group.frame {
            self.layout.frames[frame].own = own;
        }
        self.layout.largest_own_delta = self.layout.largest_own_delta.max(own.difference());
        let mut start = group.start.checked_add(own.after).ok_or(Error::Overflow)?;
        let mut next = std::mem::take(&mut self.next);
        next.sort_unstable_by_key(|id| self.ranks[*id as usize]);
        let mut end = group.stacks.start;
        for id in &next {
            let sum = &mut self.sums[*id as usize];
            let (total, count) = (std::mem::take(&mut sum.weights), std::mem::take(&mut sum.count));
            self.layout.largest_delta = self.layout.largest_delta.max(total.difference());
            let is_drawn = total.after >= self.least;
            let frame = is_drawn.then_some(self.layout.frames.len());
            if is_drawn {
                let name = self.layout.names.intern(self.heap.frames.name(FrameId::from_index(*id)));
                self.layout.frames.push(Drawn { name, depth: group.depth, start, total, own: Weights::default() });
            }
            // The largest difference is looked for among all.
            if is_drawn || self.heap.differential {
                sum.count = end - group.stacks.start + 1;
                waiting.push(Group { stacks: end..end + count, frame, depth: group.depth + 1, start });
                end += count;
            }
            start = start.checked_add(total.after).ok_or(Error::Overflow)?;
        }
        self.hand_on(group.stacks.start, end);
        next.drain(..).for_each(|id| self.sums[id as usize].count = 0);
        self.next = next;
        Ok(())
    }

    /// Sums up by next frame. Returns what the stacks weigh that have none.
    fn weigh(&mut self, stacks: Range<usize>) -> Result<Weights, Error> {
        let mut own = Weights::default();
        self.ids.clear();
        for stack in &self.heap.stacks[stacks] {
            let (id, weights) = (self.heap.ids[stack.at], self.heap.weights(*stack));
            self.ids.push(id);
            if id == END {
                own.add(weights)?;
                continue;
            }
            let sum = &mut self.sums[id as usize];
            if sum.count == 0 {
                self.next.push(id);
            }
            sum.count += 1;
            sum.weights.add(weights)?;
        }
        Ok(own)
    }

    /// Puts the stacks that are divided further, of those from `start` on, together by their next frames, up to `end`.
    fn hand_on(&mut self, start: usize, end: usize) {
        let kept = end - start;
        if self.moved.len() < kept {
            self.moved.resize(kept, Stack::default());
        }
        for (id, stack) in self.ids.iter().zip(&self.heap.stacks[start..]) {
            let Some(sum) = self.sums.get_mut(*id as usize).filter(|sum| sum.count > 0) else { continue };
            self.moved[sum.count - 1] = Stack { at: stack.at + 1, ..*stack };
            sum.count += 1;
        }
        self.heap.stacks[start..end].copy_from_slice(&self.moved[..kept]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Division, Heap};
    use crate::folded::{Kind, StackSink as _};
    use crate::profile::{FrameId, Profile, Weight, Weights};
    use crate::svg::layout::Layout;
    use crate::svg::{Drawing, MinWidth, Options};

    fn shown(layout: &Layout, differential: bool) -> String {
        let deltas = differential.then_some((layout.largest_delta, layout.largest_own_delta));
        let mut shown = format!("{:?} {deltas:?}\n", layout.total);
        for frame in &layout.frames {
            let name = String::from_utf8_lossy(layout.names.name(frame.name));
            shown += &format!("{name} {} {:?} {:?} {:?}\n", frame.depth, frame.start, frame.total, frame.own);
        }
        shown + &format!("{:?} {:?}", layout.states, layout.leaves)
    }

    proptest! {
        #[test]
        fn in_any_order_the_layout_is_that_of_the_sorted_stacks(
            stacks in prop::collection::vec((prop::collection::vec(0..5usize, 1..6), 0..40u128, 0..40u128), 1..80),
            percent in 0.0..9.0,
            differential: bool,
            large: bool,
            part in 0..80usize,
        ) {
            const NAMES: [&[u8]; 5] = [b"f", b"f.cold", b"[lost]", b"A::f", b"[libc.so]"];
            let (mut heap, mut other, mut profile) = (Heap::default(), Heap::default(), Profile::new(differential));
            for heap in [&mut heap, &mut other] {
                heap.begin(if differential { Kind::Differential } else { Kind::Plain });
            }
            let mut last: Vec<FrameId> = Vec::new();
            for (number, (stack, before, after)) in stacks.iter().enumerate() {
                if number == part {
                    std::mem::swap(&mut heap, &mut other);
                    last.clear();
                }
                let scale = if large { u128::from(u64::MAX) / 20 } else { 1_000_000 };
                let [before, after] = [before, after].map(|weight| Weight::from_millionths(weight * scale));
                let weights = Weights { before: if differential { before } else { Weight::ZERO }, after };
                let ids: Vec<_> = stack.iter().map(|name| heap.frames().intern(NAMES[*name])).collect();
                let shared = ids.iter().zip(&last).take_while(|(a, b)| a == b).count();
                heap.add(&ids, shared, weights).unwrap();
                last = ids;
                let ids: Vec<_> = stack.iter().map(|name| profile.frames.intern(NAMES[*name])).collect();
                profile.add(&ids, weights).unwrap();
            }
            heap.take(other).unwrap();
            let options = Options { plain: true, min_width: MinWidth::Percent(percent), ..Options::default() };
            let divided = Division::new(heap, &options).finish().unwrap();
            prop_assert_eq!(shown(&divided, differential), shown(&Drawing::of(&profile, &options).unwrap().layout, differential));
        }
    }
}
