//! Laying out stacks that come in any order: only what is drawn is put in order.
//!
//! Of each stack the frames are kept as numbers. From the root on, the stacks are divided by their next frame, and those
//! of a frame that is wide enough are divided further. What is too narrow is never looked at again.

use super::drawing::Drawing;
use super::layout::{Drawn, Layout, least, state_in};
use super::options::Options;
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::{self, Kind, Target};
use crate::input::Source;
use crate::profile::{FrameId, Frames, Weight, Weights};

impl Drawing {
    /// Draws a plain picture of folded texts in any order.
    ///
    /// # Errors
    /// [`Error::Overflow`], and with strict diagnostics [`Error::Malformed`].
    pub fn of_unsorted(sources: &[Source], options: &Options, diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let mut heap = Heap::default();
        folded::read_all(sources, &mut heap, diagnostics)?;
        let (stacks, differential) = (heap.stacks.len() as u64, heap.differential);
        let layout = Division::new(heap, options).finish()?;
        Ok(Self { layout, payload: None, differential, stacks })
    }
}

/// Behind a stack's last frame.
const END: u32 = u32::MAX;

/// The stacks as they come.
#[derive(Default)]
struct Heap {
    frames: Frames,
    /// The frames of all stacks, after each an `END`.
    ids: Vec<u32>,
    stacks: Vec<Stack>,
    /// Weights that do not fit into a stack.
    large: Vec<Weights>,
    /// Of each frame of the last stack, which states stand up to it, a bit each.
    states: Vec<u8>,
    layout: Layout,
    differential: bool,
}

/// What of a stack is still to be divided.
#[derive(Clone, Copy)]
struct Stack {
    /// Where its next frame stands.
    at: usize,
    /// What it weighs, in millionths; or `LARGE`, and where that stands.
    before: u64,
    after: u64,
}

const LARGE: u64 = u64::MAX;

impl Heap {
    fn weights(&self, stack: &Stack) -> Weights {
        if stack.before == LARGE {
            return self.large[stack.after as usize];
        }
        let [before, after] = [stack.before, stack.after].map(|weight| Weight::from_millionths(weight.into()));
        Weights { before, after }
    }

    /// A stack whose frames stand there.
    fn stack(&mut self, at: usize, weights: Weights) -> Stack {
        let short = |weight: Weight| u64::try_from(weight.millionths()).ok().filter(|short| *short != LARGE);
        if let (Some(before), Some(after)) = (short(weights.before), short(weights.after)) {
            return Stack { at, before, after };
        }
        self.large.push(weights);
        Stack { at, before: LARGE, after: self.large.len() as u64 - 1 }
    }
}

impl Target for Heap {
    fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    fn begin(&mut self, kind: Kind) {
        self.differential = kind == Kind::Differential;
    }

    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        self.states.truncate(shared);
        for frame in &stack[shared..] {
            let state = state_in(self.frames.name(*frame)).map_or(0, |state| 1 << state);
            self.states.push(self.states.last().unwrap_or(&0) | state);
        }
        self.layout.weigh(weights, self.states.last().copied().unwrap_or(0))?;
        let at = self.ids.len();
        self.ids.extend(stack.iter().map(|frame| frame.index() as u32));
        self.ids.push(END);
        let stack = self.stack(at, weights);
        self.stacks.push(stack);
        Ok(())
    }
}

/// Stacks of which all have the same frames so far.
struct Group {
    stacks: Vec<Stack>,
    /// The last of these frames in the layout; none at the root.
    frame: Option<usize>,
    depth: usize,
    start: Weight,
}

/// Divides groups until nothing wide is left.
struct Division {
    heap: Heap,
    least: Weight,
    ranks: Vec<u32>,
    /// Of each frame what it weighs in the present group and in how many stacks it comes next.
    sums: Vec<(Weights, usize)>,
    /// Those that come next in any.
    next: Vec<u32>,
    layout: Layout,
}

impl Division {
    fn new(mut heap: Heap, options: &Options) -> Self {
        let layout = std::mem::take(&mut heap.layout);
        let least = least(layout.total.after.max(options.total), options.narrowest_share());
        let (ranks, sums) = (heap.frames.ranks(), vec![Default::default(); heap.frames.len()]);
        Self { heap, least, ranks, sums, next: Vec::new(), layout }
    }

    fn finish(mut self) -> Result<Layout, Error> {
        let stacks = std::mem::take(&mut self.heap.stacks);
        let mut waiting = vec![Group { stacks, frame: None, depth: 0, start: Weight::ZERO }];
        while let Some(group) = waiting.pop() {
            self.divide(group, &mut waiting)?;
        }
        self.layout.sort();
        Ok(self.layout)
    }

    fn divide(&mut self, group: Group, waiting: &mut Vec<Group>) -> Result<(), Error> {
        let own = self.weigh(&group.stacks)?;
        if let Some(frame) = group.frame {
            self.layout.frames[frame].own = own;
        }
        self.layout.largest_own_delta = self.layout.largest_own_delta.max(own.difference());
        let mut start = group.start.checked_add(own.after).ok_or(Error::Overflow)?;
        let mut next = std::mem::take(&mut self.next);
        next.sort_unstable_by_key(|id| self.ranks[*id as usize]);
        let first = waiting.len();
        // Where the stacks of each frame go; nowhere, if it is too narrow.
        for id in next.drain(..) {
            let (total, count) = std::mem::take(&mut self.sums[id as usize]);
            self.layout.largest_delta = self.layout.largest_delta.max(total.difference());
            let is_drawn = total.after >= self.least;
            let frame = is_drawn.then_some(self.layout.frames.len());
            if is_drawn {
                let name = self.layout.names.intern(self.heap.frames.name(FrameId::from_index(id)));
                self.layout.frames.push(Drawn { name, depth: group.depth, start, total, own: Weights::default() });
            }
            // The largest difference is looked for among all.
            if is_drawn || self.heap.differential {
                self.sums[id as usize].1 = waiting.len() + 1 - first;
                waiting.push(Group { stacks: Vec::with_capacity(count), frame, depth: group.depth + 1, start });
            }
            start = start.checked_add(total.after).ok_or(Error::Overflow)?;
        }
        self.next = next;
        self.hand_on(&group.stacks, &mut waiting[first..]);
        Ok(())
    }

    /// Sums up by next frame. Returns what the stacks weigh that have none.
    fn weigh(&mut self, stacks: &[Stack]) -> Result<Weights, Error> {
        let mut own = Weights::default();
        for stack in stacks {
            let weights = self.heap.weights(stack);
            match self.heap.ids[stack.at] {
                END => own.add(weights)?,
                id => {
                    let (sum, count) = &mut self.sums[id as usize];
                    if *count == 0 {
                        self.next.push(id);
                    }
                    *count += 1;
                    sum.add(weights)?;
                }
            }
        }
        Ok(own)
    }

    /// Gives each stack to the group of its next frame.
    fn hand_on(&mut self, stacks: &[Stack], groups: &mut [Group]) {
        for stack in stacks {
            let id = self.heap.ids[stack.at];
            let place = self.sums.get(id as usize).map_or(0, |(_, place)| *place);
            if let Some(group) = place.checked_sub(1).and_then(|place| groups.get_mut(place)) {
                group.stacks.push(Stack { at: stack.at + 1, ..*stack });
            }
        }
        for group in groups {
            if let Some(stack) = group.stacks.first() {
                self.sums[self.heap.ids[stack.at - 1] as usize].1 = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Division, Heap};
    use crate::folded::{Kind, Target as _};
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
        shown + &format!("{:?}", layout.states)
    }

    proptest! {
        #[test]
        fn in_any_order_the_layout_is_that_of_the_sorted_stacks(
            stacks in prop::collection::vec((prop::collection::vec(0..5usize, 1..6), 0..40u128, 0..40u128), 1..80),
            percent in 0.0..9.0,
            differential: bool,
            large: bool,
        ) {
            const NAMES: [&[u8]; 5] = [b"f", b"f.cold", b"[lost]", b"A::f", b"[libc.so]"];
            let (mut heap, mut profile) = (Heap::default(), Profile::new(differential));
            heap.begin(if differential { Kind::Differential } else { Kind::Plain });
            let mut last: Vec<FrameId> = Vec::new();
            for (stack, before, after) in &stacks {
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
            let options = Options { plain: true, min_width: MinWidth::Percent(percent), ..Options::default() };
            let divided = Division::new(heap, &options).finish().unwrap();
            prop_assert_eq!(shown(&divided, differential), shown(&Drawing::of(&profile, &options).unwrap().layout, differential));
        }
    }
}
