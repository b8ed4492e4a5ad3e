//! Computes the position of each frame, in weights rather than pixels.
//!
//! Stacks come in the toolkit's order, and each is given by the frames that the previous stack does not have. Equal
//! prefixes are then adjacent, and a frame is complete as soon as a stack comes without it. A complete frame that is
//! too narrow to draw is dropped at once. Its width is judged by the weight added up to then, a lower bound of the
//! total. Memory therefore grows only with the deepest stack and the drawn frames.

use std::collections::HashMap;

use super::fixed_colours::MARKER_COLOURS;
use crate::Error;
use crate::profile::{FrameId, Frames, Weight, Weights};

/// Number of kept frames at which those that have become too narrow are first removed.
const COMPACT_FROM: usize = 4096;

/// The share of the total below which rows may be left out of a still picture: too narrow for a label, chosen by eye.
const MIN_ROW_SHARE: f64 = 0.005;

/// A frame that is wide enough to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnFrame {
    /// The frame's name in [`Layout::names`].
    pub name: FrameId,
    /// Number of callers: 0 at the root.
    pub depth: usize,
    /// The weight of all stacks to the left of the frame.
    pub start: Weight,
    /// The inclusive weight: all stacks through the frame.
    pub total: Weights,
    /// The self weight: the stacks that end in the frame.
    pub own: Weights,
}

/// The drawn frames of a profile.
#[derive(Debug, Default)]
pub struct Layout {
    /// The frames from left to right, a caller before its callees.
    pub frames: Vec<DrawnFrame>,
    /// The names of the frames.
    pub names: Frames,
    /// The weight of all stacks.
    pub total: Weights,
    /// The largest difference between the inclusive weights of a frame before and after, over all frames, drawn or not.
    pub largest_delta: Weight,
    /// The largest difference between the self weights of a frame before and after, over all frames, drawn or not.
    pub largest_own_delta: Weight,
    /// For each of `MARKER_COLOURS`, the weight of the stacks that contain the marker.
    pub marker_totals: [Weight; MARKER_COLOURS.len()],
    /// For each of `MARKER_COLOURS`, the weight of the stacks that end in the marker.
    pub marker_own: [Weight; MARKER_COLOURS.len()],
}

impl Layout {
    /// Returns the number of frames in the deepest drawn stack.
    pub fn depth(&self) -> usize {
        self.frames.iter().map(|frame| frame.depth + 1).max().unwrap_or(0)
    }

    /// Returns the weights of the first frames by their names. In a layout from the leaves of stacks, they are the self
    /// weights of functions.
    pub fn first_weights(&self) -> HashMap<FrameId, Weights> {
        self.frames.iter().filter(|frame| frame.depth == 0).map(|frame| (frame.name, frame.total)).collect()
    }

    /// Returns the number of rows for a still picture of a packed profile. A few deep stacks of little weight would make it
    /// a high picture of almost nothing: they are left to the viewer if they take more than a third of it.
    pub fn still_rows(&self) -> usize {
        let (rows, depth) = (self.rows_of_share(MIN_ROW_SHARE), self.depth());
        if (depth - rows) * 3 > depth { rows } else { depth }
    }

    /// Returns the number of rows whose frames together have at least this share of the total.
    fn rows_of_share(&self, share: f64) -> usize {
        let mut rows = vec![0; self.depth()];
        for frame in &self.frames {
            rows[frame.depth] += frame.total.after.max(frame.total.before).millionths();
        }
        let least = self.total.after.max(self.total.before).as_f64() * share;
        rows.iter().take_while(|weight| Weight::from_millionths(**weight).as_f64() >= least).count()
    }

    /// Returns the weight of the stacks that end in a frame at this depth or deeper.
    pub fn weight_from(&self, depth: usize) -> Weight {
        let deep = self.frames.iter().filter(|frame| frame.depth >= depth);
        Weight::from_millionths(deep.map(|frame| frame.own.after.millionths()).sum())
    }

    /// Returns the weight of the stacks that end in frames too narrow to be drawn.
    pub fn undrawn(&self) -> Weight {
        let drawn = self.frames.iter().map(|frame| frame.own.after.millionths()).sum();
        self.total.after.saturating_sub(Weight::from_millionths(drawn))
    }

    /// Adds a stack's weight to the total and to its markers.
    fn add_weights(&mut self, weights: Weights, markers: MarkerSet) -> Result<(), Error> {
        self.total.add(weights)?;
        if markers == MarkerSet::default() {
            return Ok(());
        }
        for (sums, bits) in [(&mut self.marker_totals, markers.any), (&mut self.marker_own, markers.leaf)] {
            for (_, sum) in sums.iter_mut().enumerate().filter(|(marker, _)| bits & 1 << marker != 0) {
                *sum = sum.checked_add(weights.after).ok_or(Error::Overflow)?;
            }
        }
        Ok(())
    }
}

/// The markers in a stack. Bit N is set for entry N of [`MARKER_COLOURS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MarkerSet {
    /// The markers anywhere in the stack.
    any: u8,
    /// The marker that is the leaf, or 0.
    leaf: u8,
}

impl MarkerSet {
    /// Returns the markers of the stack with `name` as its new leaf.
    fn with_leaf(self, name: &[u8]) -> Self {
        let leaf = marker_bit(name);
        Self { any: self.any | leaf, leaf }
    }
}

/// Computes the layout of stacks that come in the toolkit's order.
///
/// # Example
/// ```
/// use fgkit::profile::{Weight, Weights};
/// use fgkit::svg::layout::LayoutBuilder;
/// let mut builder = LayoutBuilder::new(0.0, Weight::ZERO);
/// builder.add(0, [&b"main"[..], b"parse"], Weights::plain(Weight::new(3)))?;
/// builder.add(1, [&b"write"[..]], Weights::plain(Weight::new(1)))?;
/// let layout = builder.finish();
/// assert_eq!(layout.frames[0].total.after, Weight::new(4));
/// assert_eq!(layout.frames[2].start, Weight::new(3));
/// # Ok::<(), fgkit::Error>(())
/// ```
#[derive(Debug)]
pub struct LayoutBuilder {
    min_share: f64,
    min_whole: Weight,
    /// The names of the open frames, one after the other.
    path: Vec<u8>,
    open: Vec<OpenFrame>,
    layout: Layout,
    /// The least weight of a drawn frame, computed from the weight that was added.
    min_weight: Weight,
    /// Number of kept frames at which [`compact`](Self::compact) is due.
    compact_at: usize,
}

/// A frame of the current stack. Later stacks can still go through it.
#[derive(Debug)]
struct OpenFrame {
    name_end: usize,
    start: Weight,
    total: Weights,
    own: Weights,
    /// The markers of the stack that ends in this frame.
    markers: MarkerSet,
}

impl LayoutBuilder {
    /// Creates an empty layout. `min_share` is the share of the full width below which a frame is not drawn. The full
    /// width represents the total weight, or `min_whole` if that is more.
    pub fn new(min_share: f64, min_whole: Weight) -> Self {
        let (path, open, layout) = Default::default();
        let mut builder =
            Self { min_share, min_whole, path, open, layout, min_weight: min_whole, compact_at: COMPACT_FROM };
        builder.update_min_weight();
        builder
    }

    /// Adds a stack. Its first `shared` frames are those of the previous stack, the others have the names `new`.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn add<'a>(
        &mut self,
        shared: usize,
        new: impl IntoIterator<Item = &'a [u8]>,
        weights: Weights,
    ) -> Result<(), Error> {
        self.close_to(shared);
        let start = self.layout.total.after;
        let (total, own) = Default::default();
        let mut markers = self.open.last().map(|caller| caller.markers).unwrap_or_default();
        for name in new {
            self.path.extend_from_slice(name);
            markers = markers.with_leaf(name);
            self.open.push(OpenFrame { name_end: self.path.len(), start, total, own, markers });
        }
        self.layout.add_weights(weights, markers)?;
        let Some(leaf) = self.open.last_mut() else { return Ok(()) };
        // These are parts of the total, which did not overflow.
        leaf.own.add(weights)?;
        leaf.total.add(weights)
    }

    /// Computes the least weight of a drawn frame from the weight that was added.
    fn update_min_weight(&mut self) {
        let whole = self.layout.total.after.max(self.min_whole);
        // Slightly less, so that rounding does not drop a frame that is exactly wide enough.
        let min_weight = whole.millionths() as f64 * self.min_share * (1.0 - 1e-9);
        self.min_weight = Weight::from_millionths((min_weight.ceil() as u128).max(1));
    }

    /// Returns the layout of all stacks.
    pub fn finish(mut self) -> Layout {
        self.close_to(0);
        self.compact();
        self.layout.frames.sort_unstable_by_key(|frame| (frame.start, frame.depth));
        self.layout
    }

    /// Closes frames until `depth` are open, and keeps those that are wide enough.
    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            let Some(OpenFrame { start, total, own, .. }) = self.open.pop() else { return };
            let name_start = self.open.last().map_or(0, |caller| caller.name_end);
            if let Some(caller) = self.open.last_mut() {
                // A part of the total, which did not overflow.
                let _ = caller.total.add(total);
            }
            let layout = &mut self.layout;
            layout.largest_delta = layout.largest_delta.max(total.difference());
            layout.largest_own_delta = layout.largest_own_delta.max(own.difference());
            if total.after >= self.min_weight {
                let name = layout.names.intern(&self.path[name_start..]);
                layout.frames.push(DrawnFrame { name, depth: self.open.len(), start, total, own });
            }
            self.path.truncate(name_start);
        }
        if self.layout.frames.len() >= self.compact_at {
            self.compact();
            self.compact_at = COMPACT_FROM.max(self.layout.frames.len() * 2);
        }
    }

    /// Drops the kept frames that have become too narrow as the total grew.
    fn compact(&mut self) {
        self.update_min_weight();
        self.layout.frames.retain(|frame| frame.total.after >= self.min_weight);
    }
}

/// Returns the bit of a marker frame in a [`MarkerSet`], or 0 for other frames. A frame that has only a module's name,
/// `[libc.so.6]`, counts as `[unknown]`.
#[inline]
fn marker_bit(name: &[u8]) -> u8 {
    let [b'[', .., b']'] = name else { return 0 };
    let unknown = MARKER_COLOURS.len() - 1;
    1 << MARKER_COLOURS.iter().position(|(marker, _)| *marker == name).unwrap_or(unknown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DrawnFrame, Layout, LayoutBuilder};
    use crate::profile::{Profile, Weight, Weights};

    fn lay_out(profile: &Profile, min_share: f64, min_whole: Weight) -> Layout {
        let mut builder = LayoutBuilder::new(min_share, min_whole);
        let added = profile.for_each_sorted(|stack| {
            let new = stack.frames[stack.shared..].iter().map(|frame| profile.frames.name(*frame));
            builder.add(stack.shared, new, stack.weights)
        });
        added.unwrap();
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

    fn format_frame(layout: &Layout, frame: &DrawnFrame) -> String {
        let name = String::from_utf8_lossy(layout.names.name(frame.name));
        let DrawnFrame { depth, start, total, own, .. } = frame;
        format!("{name} {depth}+{start} total {}>{} self {}>{}", total.before, total.after, own.before, own.after)
    }

    fn format_frames(layout: &Layout) -> Vec<String> {
        layout.frames.iter().map(|frame| format_frame(layout, frame)).collect()
    }

    fn end(frame: &DrawnFrame) -> Weight {
        frame.start.checked_add(frame.total.after).unwrap()
    }

    #[test]
    fn keeps_siblings_whole_if_one_name_is_a_prefix_of_the_other() {
        let profile = profile(&[("m;foo", 1, 50), ("m;foo.cold;x", 0, 10), ("m;foo;y", 3, 40)]);
        let layout = lay_out(&profile, 0.0, Weight::ZERO);
        assert_eq!(
            format_frames(&layout),
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
    fn drops_narrow_frames_and_sums_their_weight() {
        let profile = profile(&[("a;b", 0, 1), ("a;c", 0, 99), ("gone", 5, 0)]);
        let layout = lay_out(&profile, 0.02, Weight::ZERO);
        assert_eq!(format_frames(&layout), ["a 0+0 total 0>100 self 0>0", "c 1+1 total 0>99 self 0>99"]);
        assert_eq!(layout.undrawn(), Weight::ONE);
        let layout = lay_out(&profile, 0.02, Weight::new(10_000));
        assert!(layout.frames.is_empty());
    }

    #[test]
    fn weighs_markers_by_the_stacks_that_contain_them() {
        let profile = profile(&[
            ("[lost]", 0, 3),
            ("a;[unknown];[libc.so.6];b", 0, 5),
            ("a;[libc.so.6]", 0, 5),
            ("a;[off-cpu]", 0, 7),
        ]);
        let Layout { marker_totals, marker_own, .. } = lay_out(&profile, 0.0, Weight::ZERO);
        assert_eq!(marker_totals.map(Weight::as_f64), [7.0, 0.0, 0.0, 3.0, 0.0, 10.0]);
        assert_eq!(marker_own.map(Weight::as_f64), [7.0, 0.0, 0.0, 3.0, 0.0, 5.0]);
    }

    fn stacks() -> impl Strategy<Value = Vec<(Vec<usize>, u64)>> {
        let stack = prop::collection::vec(0..4usize, 1..5);
        prop::collection::vec((stack, 0..50u64), 1..60)
    }

    proptest! {
        #[test]
        fn a_frame_weighs_as_much_as_its_callees_and_itself(stacks in stacks()) {
            const NAMES: [&str; 4] = ["f", "f.cold", "f2", "A::f"];
            let stacks: Vec<(String, u64)> = stacks
                .into_iter()
                .map(|(stack, weight)| (stack.iter().map(|i| NAMES[*i]).collect::<Vec<_>>().join(";"), weight))
                .collect();
            let all: Vec<(&str, u64, u64)> = stacks.iter().map(|(stack, weight)| (stack.as_str(), 0, *weight)).collect();
            let profile = profile(&all);
            let layout = lay_out(&profile, 0.0, Weight::ZERO);
            for (i, frame) in layout.frames.iter().enumerate() {
                let inside = layout.frames[i + 1..].iter().take_while(|other| other.depth > frame.depth);
                let mut names = std::collections::HashSet::new();
                let mut sum = frame.own.after;
                for other in inside {
                    prop_assert!(other.start >= frame.start && end(other) <= end(frame));
                    if other.depth == frame.depth + 1 {
                        sum = sum.checked_add(other.total.after).unwrap();
                        prop_assert!(names.insert(other.name), "a caller has the same callee twice");
                    }
                }
                prop_assert_eq!(sum, frame.total.after);
            }
        }
    }
}
