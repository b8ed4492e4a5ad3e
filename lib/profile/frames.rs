//! An interner of frame names.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use super::weight::{Weight, Weights};
use crate::markers::{FLATTENED, LOST, UNKNOWN};

/// The id of a frame name within one [`Frames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub(super) u32);

impl FrameId {
    /// Returns the id with this [`index`](Self::index).
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// Returns the number of the name, from 0 in order of first appearance.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An interner of frame names.
///
/// Names never contain `;` or line breaks, which are replaced when a name is interned, so that they can be written as
/// folded text.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    /// All names, one after another.
    bytes: Vec<u8>,
    /// End of each name in `bytes`.
    ends: Vec<usize>,
    by_name: HashTable<u32>,
    /// For each name the id of its form as a leaf: see [`Self::as_leaf`].
    as_leaf: Vec<u32>,
}

impl Frames {
    /// Creates an interner without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// True for the stack that says of all others that differences which are small or not significant were flattened
    /// ([`FLATTENED`]).
    #[inline]
    pub fn is_flattened_mark(&self, stack: &[FrameId], weights: Weights) -> bool {
        weights == Weights::default() && matches!(stack, [frame] if self.name(*frame) == FLATTENED)
    }

    /// True for the stack of the samples that were lost ([`LOST`]): these say nothing of the program, so they take no part in
    /// scaling and judgement.
    #[inline]
    pub fn is_lost(&self, stack: &[FrameId]) -> bool {
        matches!(stack, [frame] if self.name(*frame) == LOST)
    }

    /// Returns the number of distinct names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are no names.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the name's id; a new name gets the next one. `;` becomes `:` and a line break a space.
    ///
    /// # Panics
    /// After 2³² distinct names.
    pub fn intern(&mut self, name: &[u8]) -> FrameId {
        if memchr::memchr3(b';', b'\n', b'\r', name).is_some() {
            let sanitized: Vec<u8> = name.iter().map(|byte| sanitize_byte(*byte)).collect();
            return self.intern_sanitized(&sanitized);
        }
        self.intern_sanitized(name)
    }

    /// Interns all names of another interner; returns the new ids, by the old ids' indexes.
    pub fn intern_all(&mut self, other: &Self) -> Vec<FrameId> {
        other.iter().map(|(_, name)| self.intern_sanitized(name)).collect()
    }

    fn intern_sanitized(&mut self, name: &[u8]) -> FrameId {
        let hash = hash_bytes(name);
        let (bytes, ends) = (&self.bytes, &self.ends);
        if let Some(id) = self.by_name.find(hash, |id| name_at(bytes, ends, *id) == name) {
            return FrameId(*id);
        }
        let id = u32::try_from(self.ends.len()).expect("fewer than 2^32 distinct frames");
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
        let (bytes, ends) = (&self.bytes, &self.ends);
        self.by_name.insert_unique(hash, id, |id| hash_bytes(name_at(bytes, ends, *id)));
        self.as_leaf.push(id);
        if let Some(renamed) = leaf_name(name) {
            self.as_leaf[id as usize] = self.intern_sanitized(&renamed).0;
        }
        FrameId(id)
    }

    /// Returns the frame to use instead of this one as a leaf.
    ///
    /// A name that ends in a space and a number would be read as a name and a weight: the space becomes `_`. So does
    /// the first space of a name that alone would be read as a comment. Blanks at its end, which would be lost, are
    /// removed, and if nothing is left, the frame is `[unknown]`: a line must have a stack. Any other frame is returned
    /// as it is.
    pub fn as_leaf(&self, id: FrameId) -> FrameId {
        FrameId(self.as_leaf[id.index()])
    }

    /// Returns the name of a frame.
    pub fn name(&self, id: FrameId) -> &[u8] {
        name_at(&self.bytes, &self.ends, id.0)
    }

    /// Returns all frames with their names, in order of first appearance.
    pub fn iter(&self) -> impl Iterator<Item = (FrameId, &[u8])> {
        (0..self.ends.len() as u32).map(|id| (FrameId(id), name_at(&self.bytes, &self.ends, id)))
    }

    /// Returns the rank of each frame in the bytewise order of the names.
    pub fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.ends.len() as u32).collect();
        order.sort_unstable_by_key(|id| name_at(&self.bytes, &self.ends, *id));
        let mut ranks = vec![0; order.len()];
        for (rank, id) in order.iter().enumerate() {
            ranks[*id as usize] = rank as u32;
        }
        ranks
    }
}

fn sanitize_byte(byte: u8) -> u8 {
    match byte {
        b';' => b':',
        b'\n' | b'\r' => b' ',
        _ => byte,
    }
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns the name to use for a leaf, if it differs: see [`Frames::as_leaf`].
fn leaf_name(name: &[u8]) -> Option<Vec<u8>> {
    let length = name.iter().rposition(|byte| !is_blank(byte)).map_or(0, |last| last + 1);
    let mut renamed = name[..length].to_vec();
    if renamed.is_empty() {
        return Some(UNKNOWN.to_vec());
    }
    if let Some(blank) = renamed.iter().rposition(is_blank)
        && Weight::parse(&renamed[blank + 1..]).is_some()
    {
        renamed[blank] = b'_';
    }
    if is_comment_text(&renamed) {
        renamed[1] = b'_';
    }
    (renamed != name).then_some(renamed)
}

/// True for text that readers of folded stacks skip as a comment, whatever weights follow it: `# interval : 100`.
pub(crate) fn is_comment_text(text: &[u8]) -> bool {
    text.starts_with(b"# ") && (text.ends_with(b":") || memchr::memmem::find(text, b" : ").is_some())
}

fn name_at<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> &'a [u8] {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &bytes[start..ends[id]]
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::Frames;

    #[test]
    fn replaces_separators_in_names() {
        let mut frames = Frames::new();
        let id = frames.intern(b"<[u8; 4]>::from\nbytes");
        assert_eq!(frames.name(id), b"<[u8: 4]>::from bytes");
        assert_eq!(frames.intern(b"<[u8: 4]>::from bytes"), id);
    }

    #[test]
    fn renames_leaves_that_end_like_a_weight() {
        let mut frames = Frames::new();
        let line = frames.intern(b"line 12");
        assert_eq!(frames.name(frames.as_leaf(line)), b"line_12");
        let blank = frames.intern(b"f 1  ");
        assert_eq!(frames.name(frames.as_leaf(blank)), b"f_1");
        for (name, leaf) in
            [("", "[unknown]"), (" \t", "[unknown]"), ("n 1e3", "n_1e3"), ("n 5.", "n_5."), ("# a : b", "#_a : b")]
        {
            let frame = frames.intern(name.as_bytes());
            assert_eq!(frames.name(frames.as_leaf(frame)), leaf.as_bytes(), "{name:?}");
        }
        let plain = frames.intern(b"operator new");
        assert_eq!(frames.as_leaf(plain), plain);
    }

    #[test]
    fn ranks_follow_the_bytewise_order() {
        let mut frames = Frames::new();
        for name in ["b", "a.b", "a", "a b"] {
            frames.intern(name.as_bytes());
        }
        assert_eq!(frames.ranks(), [3, 2, 0, 1]);
    }
}
