//! Reading folded text.

use super::grammar::{Kind, Line, expectation, parse_line, trim_blanks};
use super::parallel_files::map_files;
use super::stack_order::shared_bytes;
use crate::Error;
use crate::bytes::strip_bom;
use crate::diagnostics::Diagnostics;
use crate::input::{Block, Blocks, ReadAhead, Source, last_line_end};
use crate::profile::byte_map::{ByteMap, Key};
use crate::profile::{Batch, FrameId, Frames, Profile, Weights};

/// What is said where every line is malformed.
pub const NO_STACK: &str =
    "no line of the input is a folded stack: frame;… WEIGHT; try fg-collapse on what a profiler wrote";

/// What takes stacks as they are read.
pub trait StackSink {
    /// Where the frames' names are kept.
    fn frames(&mut self) -> &mut Frames;

    /// Says, before the first stack, whether all have one weight or two.
    fn begin(&mut self, _kind: Kind) {}

    /// Takes a stack, root first, which is not empty and whose leaf is named as leaves are. It has its first `shared`
    /// frames in common with the one taken before.
    ///
    /// # Errors
    /// Those of the target; reading ends with it.
    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error>;

    /// Says that the last stack of its part was taken, where a file is read in parts.
    ///
    /// # Errors
    /// Those of the target.
    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// Gives every stack of all sources to a target. A source that cannot be read, or has not as many weights a line as those
/// before it, is reported, and the others still count.
///
/// # Errors
/// Those of the target, and with strict diagnostics the first malformed line.
pub fn read_all(sources: &[Source], target: &mut dyn StackSink, diagnostics: &mut Diagnostics) -> Result<(), Error> {
    let mut reader = Reader::new(target, None);
    let skipped_before = diagnostics.skipped_lines();
    for source in sources {
        let result = source.open_without_thread().and_then(|mut input| {
            let name = input.name().to_owned();
            let mut blocks = ReadAhead::new(move |block: &mut Block| input.read_block(block, last_line_end));
            reader.read(&name, |block| blocks.next(block), diagnostics)
        });
        match result {
            Err(error @ (Error::Read { .. } | Error::Unreadable { .. })) => diagnostics.fail(&error),
            other => other?,
        }
    }
    if reader.kind.is_none() && diagnostics.skipped_lines() > skipped_before {
        return Err(Error::Invalid(NO_STACK.to_owned()));
    }
    Ok(())
}

/// Reads all sources into one profile. A source that cannot be read is reported and the others still count.
///
/// # Errors
/// [`Error::Overflow`], and with strict diagnostics the first malformed line.
pub fn read_profile(sources: &[Source], diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let mut gathered = Gathered::default();
    read_all(sources, &mut gathered, diagnostics)?;
    gathered.into_profile()
}

/// Reads each source into a profile of its own. Files are read at once; if there is anything to say of one, they are read
/// one after the other, so that it is said in order.
///
/// # Errors
/// As [`read_profile`], and [`Error::AlreadyReported`] if a source could not be read.
pub fn read_profiles(sources: &[Source], diagnostics: &mut Diagnostics) -> Result<Vec<Profile>, Error> {
    let quietly = |source: &Source| {
        let mut diagnostics = Diagnostics::silent();
        diagnostics.set_strict(true);
        read_profile(std::slice::from_ref(source), &mut diagnostics).ok().filter(|_| !diagnostics.has_failed())
    };
    if let Some(profiles) = map_files(sources, quietly) {
        return Ok(profiles);
    }
    let aloud = |source| {
        let profile = read_profile(std::slice::from_ref(source), diagnostics)?;
        if diagnostics.has_failed() { Err(Error::AlreadyReported) } else { Ok(profile) }
    };
    sources.iter().map(aloud).collect()
}

/// Adds all stacks of one input to a profile that is differential or not.
///
/// # Errors
/// [`Error::Read`], [`Error::Unreadable`], [`Error::Overflow`], and with strict diagnostics the first malformed line.
pub fn read_into(profile: Profile, input: &mut Blocks, diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let kind = if profile.is_differential() { Kind::Differential } else { Kind::Plain };
    let mut gathered = Gathered { profile, batch: Batch::default() };
    let name = input.name().to_owned();
    let next = |block: &mut Block| input.read_block(block, last_line_end);
    Reader::new(&mut gathered, Some(kind)).read(&name, next, diagnostics)?;
    gathered.into_profile()
}

/// A profile in the making.
#[derive(Default)]
struct Gathered {
    profile: Profile,
    batch: Batch,
}

impl Gathered {
    fn into_profile(mut self) -> Result<Profile, Error> {
        self.profile.add_batch(&mut self.batch)?;
        Ok(self.profile)
    }
}

impl StackSink for Gathered {
    fn frames(&mut self) -> &mut Frames {
        &mut self.profile.frames
    }

    fn begin(&mut self, kind: Kind) {
        self.profile = Profile::new(kind == Kind::Differential);
    }

    fn add(&mut self, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        self.batch.push(stack, weights, &self.profile.frames);
        if self.batch.is_full() { self.profile.add_batch(&mut self.batch) } else { Ok(()) }
    }
}

/// Takes lines apart. Neighbours mostly begin alike, in sorted text above all, so only what differs is looked at.
pub(super) struct Reader<'a> {
    target: &'a mut dyn StackSink,
    kind: Option<Kind>,
    /// Whether the present text's first line was seen.
    begun: bool,
    /// Of each frame's text its index.
    names: ByteMap<u32>,
    /// The last stack: as text, its frames, and where each ends in the text.
    text: Vec<u8>,
    stack: Vec<FrameId>,
    ends: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn new(target: &'a mut dyn StackSink, kind: Option<Kind>) -> Self {
        let (names, text, stack, ends) = (ByteMap::default(), Vec::new(), Vec::new(), Vec::new());
        Self { target, kind, begun: false, names, text, stack, ends }
    }

    /// Goes on in the midst of a text.
    pub(super) fn amid(target: &'a mut dyn StackSink, kind: Kind) -> Self {
        Self { begun: true, ..Self::new(target, Some(kind)) }
    }

    fn read(
        &mut self,
        name: &str,
        next: impl FnMut(&mut Block) -> Result<bool, Error>,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), Error> {
        self.begun = false;
        self.blocks(name, next, diagnostics)
    }

    /// Reads blocks of whole lines.
    pub(super) fn blocks(
        &mut self,
        name: &str,
        mut next: impl FnMut(&mut Block) -> Result<bool, Error>,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), Error> {
        let (mut block, mut number) = (Block::default(), 0);
        while next(&mut block)? {
            let mut rest = &*block;
            if number == 0 && !self.begun {
                rest = strip_bom(rest);
            }
            while !rest.is_empty() {
                // What the line shares with the last stack does not hold its end.
                let same = shared_bytes(&self.text, rest);
                let end = memchr::memchr(b'\n', &rest[same..]).map_or(rest.len(), |end| same + end);
                let line = &rest[..end];
                rest = rest.get(end + 1..).unwrap_or(b"");
                number += 1;
                self.line(line.strip_suffix(b"\r").unwrap_or(line), same, (name, number), diagnostics)?;
            }
        }
        Ok(())
    }

    fn line(
        &mut self,
        line: &[u8],
        same: usize,
        (name, number): (&str, u64),
        diagnostics: &mut Diagnostics,
    ) -> Result<(), Error> {
        if trim_blanks(line).is_empty() {
            return Ok(());
        }
        let kind = self.kind.filter(|_| self.begun).unwrap_or_else(|| Kind::of_first_line(line));
        let Some(Line { stack, weights }) = parse_line(line, kind) else {
            return diagnostics.malformed(name, number, expectation(line, kind));
        };
        if !std::mem::replace(&mut self.begun, true) {
            kind.agrees(self.kind, name)?;
        }
        if self.kind.is_none() {
            self.kind = Some(kind);
            self.target.begin(kind);
        }
        let shared = self.take(stack, same.min(stack.len()));
        let Some(leaf) = self.stack.last_mut() else { return Ok(()) };
        let as_leaf = self.target.frames().as_leaf(*leaf);
        let renamed = std::mem::replace(leaf, as_leaf) != as_leaf;
        let result = self.target.add(&self.stack, shared, weights);
        if renamed {
            // The next stack does not share it.
            self.stack.pop();
            self.ends.pop();
        }
        result
    }

    /// Makes this stack the last one, with which it shares so many bytes, and says how many frames.
    fn take(&mut self, text: &[u8], same: usize) -> usize {
        let ends_there = |end: usize| end < same || (end == same && matches!(text.get(same), None | Some(b';')));
        while self.ends.last().is_some_and(|end| !ends_there(*end)) {
            self.ends.pop();
        }
        let shared = self.ends.len();
        self.stack.truncate(shared);
        self.text.truncate(same);
        self.text.extend_from_slice(&text[same..]);
        let mut start = self.ends.last().map_or(0, |end| end + 1);
        if start > text.len() {
            return shared;
        }
        let frames = self.target.frames();
        let from = start;
        for end in memchr::memchr_iter(b';', &text[from..]).map(|at| from + at).chain([text.len()]) {
            let key = Key::new(&text[start..end]);
            let frame = self.names.get(key).map(FrameId::from_index).unwrap_or_else(|| {
                let frame = frames.intern(key.bytes());
                self.names.insert(key, frame.index() as u32);
                frame
            });
            self.stack.push(frame);
            self.ends.push(end);
            start = end + 1;
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::read_profile;
    use crate::diagnostics::Diagnostics;
    use crate::input::{Block, Blocks, last_line_end};
    use crate::profile::{Profile, Weight, Weights};

    fn read(text: &[u8]) -> (Profile, u64) {
        let mut input = Blocks::new("t".to_owned(), Box::new(std::io::Cursor::new(text.to_vec()))).unwrap();
        let mut diagnostics = Diagnostics::silent();
        let mut gathered = super::Gathered::default();
        let next = |block: &mut Block| input.read_block(block, last_line_end);
        super::Reader::new(&mut gathered, None).read("t", next, &mut diagnostics).unwrap();
        (gathered.into_profile().unwrap(), diagnostics.skipped_lines())
    }

    #[test]
    fn reads_crlf_bom_and_a_missing_last_newline() {
        let (profile, skipped) = read(b"\xef\xbb\xbfa;b 1\r\n\r\na;b 2.5\r\na;c 4");
        assert_eq!((profile.len(), skipped), (2, 0));
        assert_eq!(profile.total(), Weights::plain(Weight::parse(b"7.5").unwrap()));
    }

    #[test]
    fn malformed_lines_are_counted_and_the_rest_stands() {
        let (profile, skipped) = read(b"nonsense\na;b 1\na;b\na;b x\n");
        assert_eq!((profile.len(), skipped), (1, 3));
    }

    #[test]
    fn a_missing_file_does_not_hide_the_others() {
        let mut diagnostics = Diagnostics::silent();
        let sources = [crate::input::Source::File("/nonexistent/x".into())];
        assert!(read_profile(&sources, &mut diagnostics).unwrap().is_empty());
        assert!(diagnostics.has_failed());
    }
}
