//! Where each frame stands: pure geometry, in weights rather than pixels.
//!
//! Stacks come in the toolkit's order, each said by what is new in it, so that equal prefixes are adjacent and a frame is
//! complete as soon as a stack does without it. Frames too narrow to draw are dropped at once, against the total so far,
//! which is a lower bound of the total: memory is that of the deepest stack and of what is drawn.

use super::colour::STATES;
use crate::Error;
use crate::profile::{FrameId, Frames, Weight, Weights};

/// From how many kept frames on the narrow ones among them are looked for.
const COMPACT_FROM: usize = 4096;

/// A frame that is wide enough to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Its name in [`Layout::names`].
    pub name: FrameId,
    /// How many frames it stands on: 0 at the root.
    pub depth: usize,
    /// The weight of everything left of it.
    pub start: Weight,
    /// The weight of all stacks through it.
    pub total: Weights,
    /// The weight of the stacks that end in it.
    pub own: Weights,
}

/// The drawn frames of a profile.
#[derive(Debug, Default)]
pub struct Layout {
    /// The frames, from left to right, a caller before what it calls.
    pub frames: Vec<Drawn>,
    /// Their names.
    pub names: Frames,
    /// The weight of everything.
    pub total: Weights,
    /// The largest difference between the weights of a frame, drawn or not.
    pub largest_delta: Weight,
    /// The largest difference between the weights of the stacks that end in a frame.
    pub largest_own_delta: Weight,
    /// For each of [`STATES`] the weight of the stacks that it stands in.
    pub states: [Weight; STATES.len()],
    /// For each of [`STATES`] the weight of the stacks that end in it.
    pub leaves: [Weight; STATES.len()],
}

impl Layout {
    /// How many frames the deepest drawn stack has.
    pub fn depth(&self) -> usize {
        self.frames.iter().map(|frame| frame.depth + 1).max().unwrap_or(0)
    }

    /// The weight of the stacks that end in frames too narrow to be drawn.
    pub fn undrawn(&self) -> Weight {
        let drawn = self.frames.iter().map(|frame| frame.own.after.millionths()).sum();
        self.total.after.saturating_sub(Weight::from_millionths(drawn))
    }

    /// Counts a stack in which some states stand.
    pub(super) fn weigh(&mut self, weights: Weights, states: States) -> Result<(), Error> {
        self.total.add(weights)?;
        if states == States::default() {
            return Ok(());
        }
        for (sums, bits) in [(&mut self.states, states.anywhere), (&mut self.leaves, states.leaf)] {
            for (_, sum) in sums.iter_mut().enumerate().filter(|(state, _)| bits & 1 << state != 0) {
                *sum = sum.checked_add(weights.after).ok_or(Error::Overflow)?;
            }
        }
        Ok(())
    }

    /// Puts the frames in order.
    pub(super) fn sort(&mut self) {
        self.frames.sort_unstable_by_key(|frame| (frame.start, frame.depth));
    }
}

/// Which of [`STATES`] stand in a stack, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct States {
    anywhere: u8,
    leaf: u8,
}

impl States {
    /// Those of this stack with one more frame, which is that state, as a bit, or none.
    pub(super) fn and(self, leaf: u8) -> Self {
        Self { anywhere: self.anywhere | leaf, leaf }
    }
}

/// What a frame must weigh at least to be drawn: that share of the whole.
pub(super) fn least(whole: Weight, narrowest: f64) -> Weight {
    // A hair less, for what the multiplication rounds away.
    let least = whole.millionths() as f64 * narrowest * (1.0 - 1e-9);
    Weight::from_millionths((least.ceil() as u128).max(1))
}

/// Lays out stacks that come in the toolkit's order.
///
/// # Example
/// ```
/// use fgkit::profile::{Weight, Weights};
/// use fgkit::svg::layout::Builder;
/// let mut builder = Builder::new(0.0, Weight::ZERO);
/// builder.add(0, [&b"main"[..], b"parse"], Weights::plain(Weight::new(3)))?;
/// builder.add(1, [&b"write"[..]], Weights::plain(Weight::new(1)))?;
/// let layout = builder.finish();
/// assert_eq!(layout.frames[0].total.after, Weight::new(4));
/// assert_eq!(layout.frames[2].start, Weight::new(3));
/// # Ok::<(), fgkit::Error>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    narrowest: f64,
    scale: Weight,
    path: Vec<u8>,
    open: Vec<Open>,
    layout: Layout,
    /// What a frame must weigh at least, as far as is known.
    least: Weight,
    compact_at: usize,
}

/// A frame of the current stack: more may come through it.
#[derive(Debug)]
struct Open {
    name_end: usize,
    start: Weight,
    total: Weights,
    own: Weights,
    /// Which states stand in the stack up to here.
    states: States,
}

impl Builder {
    /// `narrowest` is the smallest share of the whole width that is drawn. The whole width stands for `scale`, or for the
    /// total if that is more.
    pub fn new(narrowest: f64, scale: Weight) -> Self {
        let layout = Layout::default();
        let mut builder = Self {
            narrowest,
            scale,
            path: Vec::new(),
            open: Vec::new(),
            layout,
            least: scale,
            compact_at: COMPACT_FROM,
        };
        builder.raise_least();
        builder
    }

    /// Adds a stack: its first `shared` frames are those of the stack before, the others are `new`.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn add<'a>(
        &mut self,
        shared: usize,
        new: impl IntoIterator<Item = &'a [u8]>,
        weights: Weights,
    ) -> Result<(), Error> {
        self.close(shared);
        let start = self.layout.total.after;
        let (total, own) = Default::default();
        let mut states = self.open.last().map(|caller| caller.states).unwrap_or_default();
        for name in new {
            self.path.extend_from_slice(name);
            states = states.and(state_bit(name));
            self.open.push(Open { name_end: self.path.len(), start, total, own, states });
        }
        self.layout.weigh(weights, states)?;
        let Some(leaf) = self.open.last_mut() else { return Ok(()) };
        // Parts of the total, which did not overflow.
        leaf.own.add(weights)?;
        leaf.total.add(weights)
    }

    /// Takes the total so far for the total.
    fn raise_least(&mut self) {
        self.least = least(self.layout.total.after.max(self.scale), self.narrowest);
    }

    /// Nothing more comes.
    pub fn finish(mut self) -> Layout {
        self.close(0);
        self.compact();
        self.layout.sort();
        self.layout
    }

    fn close(&mut self, depth: usize) {
        while self.open.len() > depth {
            let Some(Open { start, total, own, .. }) = self.open.pop() else { return };
            let name_start = self.open.last().map_or(0, |caller| caller.name_end);
            if let Some(caller) = self.open.last_mut() {
                // A part of the total, which did not overflow.
                let _ = caller.total.add(total);
            }
            let layout = &mut self.layout;
            layout.largest_delta = layout.largest_delta.max(total.difference());
            layout.largest_own_delta = layout.largest_own_delta.max(own.difference());
            if total.after >= self.least {
                let name = layout.names.intern(&self.path[name_start..]);
                layout.frames.push(Drawn { name, depth: self.open.len(), start, total, own });
            }
            self.path.truncate(name_start);
        }
        if self.layout.frames.len() >= self.compact_at {
            self.compact();
            self.compact_at = COMPACT_FROM.max(self.layout.frames.len() * 2);
        }
    }

    fn compact(&mut self) {
        self.raise_least();
        self.layout.frames.retain(|frame| frame.total.after >= self.least);
    }
}

/// Which of [`STATES`] a frame is, as a bit. A frame that has only a module's name is unknown, too.
#[inline]
pub(super) fn state_bit(name: &[u8]) -> u8 {
    let [b'[', .., b']'] = name else { return 0 };
    1 << STATES.iter().position(|(state, _)| *state == name).unwrap_or(STATES.len() - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Builder, Drawn, Layout};
    use crate::profile::{Profile, Weight, Weights};

    fn lay_out(profile: &Profile, narrowest: f64, scale: Weight) -> Layout {
        let mut builder = Builder::new(narrowest, scale);
        let add = |stack: crate::profile::SortedStack<'_>| {
            let new = stack.frames[stack.shared..].iter().map(|frame| profile.frames.name(*frame));
            builder.add(stack.shared, new, stack.weights)
        };
        profile.for_each_sorted(add).unwrap();
        builder.finish()
    }

    fn profile(stacks: &[(&str, u64, u64)]) -> Profile {
        let mut profile = Profile::new(true);
        for (stack, before, after) in stacks {
            let frames: Vec<_> = stack.split(';').map(|name| profile.frames.intern(name.as_bytes())).collect();
            let weights = Weights { before: Weight::new(*before), after: Weight::new(*after) };
            profile.add(&frames, weights).unwrap();
        }
        profile
    }

    fn shown(layout: &Layout) -> Vec<String> {
        let show = |frame: &Drawn| {
            let name = String::from_utf8_lossy(layout.names.name(frame.name));
            let (total, own) = (frame.total, frame.own);
            format!(
                "{name} {}+{} total {}>{} self {}>{}",
                frame.depth, frame.start, total.before, total.after, own.before, own.after
            )
        };
        layout.frames.iter().map(show).collect()
    }

    #[test]
    fn siblings_whose_names_extend_each_other_stay_whole() {
        let profile = profile(&[("m;foo", 1, 50), ("m;foo.cold;x", 0, 10), ("m;foo;y", 3, 40)]);
        let layout = lay_out(&profile, 0.0, Weight::ZERO);
        assert_eq!(
            shown(&layout),
            [
                "m 0+0 total 4>100 self 0>0",
                "foo 1+0 total 4>90 self 1>50",
                "y 2+50 total 3>40 self 3>40",
                "foo.cold 1+90 total 0>10 self 0>0",
                "x 2+90 total 0>10 self 0>10",
            ]
        );
        assert_eq!(layout.largest_delta, Weight::new(96));
        assert_eq!(layout.depth(), 3);
    }

    #[test]
    fn narrow_frames_are_left_out_and_weighed() {
        let profile = profile(&[("a;b", 0, 1), ("a;c", 0, 99), ("gone", 5, 0)]);
        let layout = lay_out(&profile, 0.02, Weight::ZERO);
        assert_eq!(shown(&layout), ["a 0+0 total 0>100 self 0>0", "c 1+1 total 0>99 self 0>99"]);
        assert_eq!(layout.undrawn(), Weight::ONE);
        let layout = lay_out(&profile, 0.02, Weight::new(10_000));
        assert!(layout.frames.is_empty());
    }

    #[test]
    fn states_are_weighed_by_the_stacks_that_they_stand_in() {
        let profile = profile(&[
            ("[lost]", 0, 3),
            ("a;[unknown];[libc.so.6];b", 0, 5),
            ("a;[libc.so.6]", 0, 5),
            ("a;[off-cpu]", 0, 7),
        ]);
        let Layout { states, leaves, .. } = lay_out(&profile, 0.0, Weight::ZERO);
        assert_eq!(states.map(Weight::as_f64), [7.0, 0.0, 0.0, 3.0, 0.0, 10.0]);
        assert_eq!(leaves.map(Weight::as_f64), [7.0, 0.0, 0.0, 3.0, 0.0, 5.0]);
    }

    fn stacks() -> impl Strategy<Value = Vec<(Vec<usize>, u64)>> {
        let stack = prop::collection::vec(0..4usize, 1..5);
        prop::collection::vec((stack, 0..50u64), 1..60)
    }

    proptest! {
        #[test]
        fn every_level_adds_up(stacks in stacks()) {
            const NAMES: [&str; 4] = ["f", "f.cold", "f2", "A::f"];
            let stacks: Vec<(String, u64)> = stacks
                .into_iter()
                .map(|(stack, weight)| (stack.iter().map(|i| NAMES[*i]).collect::<Vec<_>>().join(";"), weight))
                .collect();
            let all: Vec<(&str, u64, u64)> = stacks.iter().map(|(stack, weight)| (stack.as_str(), 0, *weight)).collect();
            let profile = profile(&all);
            let layout = lay_out(&profile, 0.0, Weight::ZERO);
            for (i, frame) in layout.frames.iter().enumerate() {
                let end = |frame: &Drawn| frame.start.checked_add(frame.total.after).unwrap();
                let inside = layout.frames[i + 1..].iter().take_while(|other| other.depth > frame.depth);
                let mut names = std::collections::HashSet::new();
                let mut below = frame.own.after;
                for other in inside {
                    prop_assert!(other.start >= frame.start && end(other) <= end(frame));
                    if other.depth == frame.depth + 1 {
                        below = below.checked_add(other.total.after).unwrap();
                        prop_assert!(names.insert(other.name), "a frame stands twice beneath the same caller");
                    }
                }
                prop_assert_eq!(below, frame.total.after);
            }
        }
    }
}
