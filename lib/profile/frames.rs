//! Interned frame names.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// A frame's name within one [`Frames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub(super) u32);

impl FrameId {
    /// The id with a dense index, as [`FrameId::index`] gave it.
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// A dense index, from 0 in order of first appearance.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Every distinct frame name, once.
///
/// A name never holds `;` or a line break: they are replaced as it comes in, so whatever goes out is folded text.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    by_name: HashTable<u32>,
    as_leaf: Vec<u32>,
}

impl Frames {
    /// No frames.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many distinct names there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name's id; new if it was not seen before. `;` becomes `:`, a line break a space.
    ///
    /// # Panics
    /// After 2³² distinct names.
    pub fn intern(&mut self, name: &[u8]) -> FrameId {
        if memchr::memchr3(b';', b'\n', b'\r', name).is_some() {
            let clean: Vec<u8> = name.iter().map(|byte| clean_byte(*byte)).collect();
            return self.intern_clean(&clean);
        }
        self.intern_clean(name)
    }

    /// The ids here of all names of another, each at its index there.
    pub fn intern_all(&mut self, other: &Self) -> Vec<FrameId> {
        other.iter().map(|(_, name)| self.intern_clean(name)).collect()
    }

    fn intern_clean(&mut self, name: &[u8]) -> FrameId {
        let hash = hash_bytes(name);
        let (bytes, ends) = (&self.bytes, &self.ends);
        if let Some(id) = self.by_name.find(hash, |id| name_of(bytes, ends, *id) == name) {
            return FrameId(*id);
        }
        let id = u32::try_from(self.ends.len()).expect("fewer than 2^32 distinct frames");
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
        let (bytes, ends) = (&self.bytes, &self.ends);
        self.by_name.insert_unique(hash, id, |id| hash_bytes(name_of(bytes, ends, *id)));
        self.as_leaf.push(id);
        if let Some(renamed) = leaf_name(name) {
            self.as_leaf[id as usize] = self.intern_clean(&renamed).0;
        }
        FrameId(id)
    }

    /// The frame to use where this one is a leaf: the same, unless its name ends in a space and a number, which would
    /// read as a weight; then the one with `_` for that space. Blanks at its end would be lost and are left out.
    pub fn as_leaf(&self, id: FrameId) -> FrameId {
        FrameId(self.as_leaf[id.index()])
    }

    /// The name's bytes.
    pub fn name(&self, id: FrameId) -> &[u8] {
        name_of(&self.bytes, &self.ends, id.0)
    }

    /// All frames with their names, in order of first appearance.
    pub fn iter(&self) -> impl Iterator<Item = (FrameId, &[u8])> {
        (0..self.ends.len() as u32).map(|id| (FrameId(id), name_of(&self.bytes, &self.ends, id)))
    }

    /// For each frame its place in the bytewise order of the names.
    pub fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.ends.len() as u32).collect();
        order.sort_unstable_by_key(|id| name_of(&self.bytes, &self.ends, *id));
        let mut ranks = vec![0; order.len()];
        for (rank, id) in order.iter().enumerate() {
            ranks[*id as usize] = rank as u32;
        }
        ranks
    }
}

fn clean_byte(byte: u8) -> u8 {
    match byte {
        b';' => b':',
        b'\n' | b'\r' => b' ',
        _ => byte,
    }
}

fn leaf_name(name: &[u8]) -> Option<Vec<u8>> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let kept = name.iter().rposition(|byte| !is_blank(byte)).map_or(0, |last| last + 1);
    let mut renamed = name[..kept].to_vec();
    if let Some(blank) = renamed.iter().rposition(is_blank)
        && super::Weight::parse(&renamed[blank + 1..]).is_some()
    {
        renamed[blank] = b'_';
    }
    (renamed != name).then_some(renamed)
}

fn name_of<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> &'a [u8] {
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
    fn a_name_never_breaks_the_line_format() {
        let mut frames = Frames::new();
        let id = frames.intern(b"<[u8; 4]>::from\nbytes");
        assert_eq!(frames.name(id), b"<[u8: 4]>::from bytes");
        assert_eq!(frames.intern(b"<[u8: 4]>::from bytes"), id);
    }

    #[test]
    fn a_leaf_never_ends_in_what_reads_as_a_weight() {
        let mut frames = Frames::new();
        let line = frames.intern(b"line 12");
        assert_eq!(frames.name(frames.as_leaf(line)), b"line_12");
        let blank = frames.intern(b"f 1  ");
        assert_eq!(frames.name(frames.as_leaf(blank)), b"f_1");
        let plain = frames.intern(b"operator new");
        assert_eq!(frames.as_leaf(plain), plain);
    }

    #[test]
    fn ranks_are_the_bytewise_order() {
        let mut frames = Frames::new();
        for name in ["b", "a.b", "a", "a b"] {
            frames.intern(name.as_bytes());
        }
        assert_eq!(frames.ranks(), [3, 2, 0, 1]);
    }
}
