//! Reads folded text.

use super::grammar::{Line, LineKind, describe_error, parse_line, trim_blanks};
use super::parallel_files::map_files;
use super::stack_order::{common_prefix, shares_frame};
use crate::Error;
use crate::bytes::strip_bom;
use crate::diagnostics::Diagnostics;
use crate::input::{Block, Blocks, ReadAhead, Source, last_line_end};
use crate::profile::byte_map::{ByteMap, Key};
use crate::profile::{Batch, FrameId, Frames, Profile, Weights};

/// The message for input in which every line is malformed.
pub const NO_STACK: &str =
    "no line of the input is a folded stack (frame;frame;… WEIGHT); convert profiler output with fg-collapse";

/// A consumer of stacks that are read from folded text.
pub trait StackSink {
    /// Returns the interner for the frame names.
    fn frames(&mut self) -> &mut Frames;

    /// Called before the first stack, with the kind of all lines.
    fn begin(&mut self, _kind: LineKind) {}

    /// Adds a stack, root first, which is not empty and whose leaf has its name as a leaf ([`Frames::as_leaf`]).
    ///
    /// It shares its first `shared` frames with the previous stack.
    ///
    /// # Errors
    /// Those of the sink; they end the reading.
    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error>;

    /// Called after the last stack if a file is read in parts.
    ///
    /// # Errors
    /// Those of the sink.
    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// Reads all sources and passes every stack to a sink.
///
/// A source that cannot be read, or whose kind differs from that of the sources before it, is reported and skipped.
///
/// # Errors
/// Those of the sink, in strict mode the first malformed line, and [`Error::Invalid`] if every line is malformed.
pub fn read_all(sources: &[Source], sink: &mut dyn StackSink, diagnostics: &mut Diagnostics) -> Result<(), Error> {
    let mut parser = StackParser::new(sink, None);
    let skipped_before = diagnostics.skipped_lines();
    for source in sources {
        let result = source.open_without_thread().and_then(|mut input| {
            let name = input.name().to_owned();
            let mut blocks = ReadAhead::new(move |block: &mut Block| input.read_block(block, last_line_end));
            parser.read_text(&name, |block| blocks.next(block), diagnostics)
        });
        match result {
            Err(error @ (Error::Read { .. } | Error::Unreadable { .. })) => diagnostics.fail(&error),
            other => other?,
        }
    }
    if parser.kind.is_none() && diagnostics.skipped_lines() > skipped_before {
        return Err(Error::Invalid(NO_STACK.to_owned()));
    }
    Ok(())
}

/// Reads all sources into one profile. A source that cannot be read is reported and skipped.
///
/// # Errors
/// [`Error::Overflow`], and those of [`read_all`].
pub fn read_profile(sources: &[Source], diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let mut builder = ProfileBuilder::default();
    read_all(sources, &mut builder, diagnostics)?;
    builder.into_profile()
}

/// Reads each source into its own profile.
///
/// Files are read in parallel. If there is anything to report about one, all are read again one after another, so that
/// messages appear in order.
///
/// # Errors
/// Those of [`read_profile`], and [`Error::AlreadyReported`] if a source could not be read.
pub fn read_profiles(sources: &[Source], diagnostics: &mut Diagnostics) -> Result<Vec<Profile>, Error> {
    if let Some(profiles) = map_files(sources, read_flawless) {
        return Ok(profiles);
    }
    let profiles = sources.iter().map(|source| {
        let profile = read_profile(std::slice::from_ref(source), diagnostics)?;
        if diagnostics.has_failed() { Err(Error::AlreadyReported) } else { Ok(profile) }
    });
    profiles.collect()
}

/// Reads a source; `None` if there is anything to report.
fn read_flawless(source: &Source) -> Option<Profile> {
    let mut diagnostics = Diagnostics::silent();
    diagnostics.set_strict(true);
    read_profile(std::slice::from_ref(source), &mut diagnostics).ok().filter(|_| !diagnostics.has_failed())
}

/// Adds all stacks of one input to a profile. Lines must have two weights if it is differential, else one.
///
/// # Errors
/// [`Error::Read`], [`Error::Unreadable`], [`Error::Overflow`], and in strict mode the first malformed line.
pub fn read_into(profile: Profile, input: &mut Blocks, diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let kind = if profile.is_differential() { LineKind::Differential } else { LineKind::Plain };
    let mut builder = ProfileBuilder { profile, batch: Batch::default() };
    let name = input.name().to_owned();
    let next_block = |block: &mut Block| input.read_block(block, last_line_end);
    StackParser::new(&mut builder, Some(kind)).read_text(&name, next_block, diagnostics)?;
    builder.into_profile()
}

/// A sink that adds the stacks to a profile.
#[derive(Default)]
struct ProfileBuilder {
    profile: Profile,
    batch: Batch,
}

impl ProfileBuilder {
    fn into_profile(mut self) -> Result<Profile, Error> {
        self.profile.add_batch(&mut self.batch)?;
        Ok(self.profile)
    }
}

impl StackSink for ProfileBuilder {
    fn frames(&mut self) -> &mut Frames {
        &mut self.profile.frames
    }

    fn begin(&mut self, kind: LineKind) {
        self.profile = Profile::new(kind == LineKind::Differential);
    }

    fn add(&mut self, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        self.batch.push(stack, weights, &self.profile.frames);
        if self.batch.is_full() { self.profile.add_batch(&mut self.batch) } else { Ok(()) }
    }
}

/// A parser of stacks. Neighbouring lines usually start alike, so only the bytes that differ are parsed.
pub(super) struct StackParser<'a> {
    sink: &'a mut dyn StackSink,
    kind: Option<LineKind>,
    /// True once the first line of the current text was parsed.
    has_begun: bool,
    /// The index of each frame, by its text.
    frame_indexes: ByteMap<u32>,
    /// The text of the last stack.
    text: Vec<u8>,
    /// The frames of the last stack.
    stack: Vec<FrameId>,
    /// End of each of these frames in `text`.
    ends: Vec<usize>,
}

impl<'a> StackParser<'a> {
    fn new(sink: &'a mut dyn StackSink, kind: Option<LineKind>) -> Self {
        let (frame_indexes, text, stack, ends) = (ByteMap::default(), Vec::new(), Vec::new(), Vec::new());
        Self { sink, kind, has_begun: false, frame_indexes, text, stack, ends }
    }

    /// Creates a parser of blocks from the middle of a text, whose lines are of this kind.
    pub(super) fn with_kind(sink: &'a mut dyn StackSink, kind: LineKind) -> Self {
        Self { has_begun: true, ..Self::new(sink, Some(kind)) }
    }

    /// Parses a whole text.
    fn read_text(
        &mut self,
        name: &str,
        next_block: impl FnMut(&mut Block) -> Result<bool, Error>,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), Error> {
        self.has_begun = false;
        self.read_blocks(name, next_block, diagnostics)
    }

    /// Parses blocks of whole lines.
    pub(super) fn read_blocks(
        &mut self,
        name: &str,
        mut next_block: impl FnMut(&mut Block) -> Result<bool, Error>,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), Error> {
        let (mut block, mut line_number) = (Block::default(), 0);
        while next_block(&mut block)? {
            let mut rest = &*block;
            if line_number == 0 && !self.has_begun {
                rest = strip_bom(rest);
            }
            while !rest.is_empty() {
                // The shared bytes contain no line end, since the last stack has none.
                let shared = common_prefix(&self.text, rest);
                let end = memchr::memchr(b'\n', &rest[shared..]).map_or(rest.len(), |end| shared + end);
                let line = &rest[..end];
                rest = rest.get(end + 1..).unwrap_or(b"");
                line_number += 1;
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                self.read_line(line, shared, (name, line_number), diagnostics)?;
            }
        }
        Ok(())
    }

    /// Parses a line that shares its first `shared_bytes` with the last stack.
    fn read_line(
        &mut self,
        line: &[u8],
        shared_bytes: usize,
        (name, line_number): (&str, u64),
        diagnostics: &mut Diagnostics,
    ) -> Result<(), Error> {
        if trim_blanks(line).is_empty() {
            return Ok(());
        }
        let kind = self.kind.filter(|_| self.has_begun).unwrap_or_else(|| LineKind::of_first_line(line));
        let Some(Line { stack, weights }) = parse_line(line, kind) else {
            return diagnostics.malformed(name, line_number, describe_error(line, kind));
        };
        if !std::mem::replace(&mut self.has_begun, true) {
            kind.check_same(self.kind, name)?;
        }
        if self.kind.is_none() {
            self.kind = Some(kind);
            self.sink.begin(kind);
        }
        let shared = self.set_stack(stack, shared_bytes.min(stack.len()));
        let Some(leaf) = self.stack.last_mut() else { return Ok(()) };
        let as_leaf = self.sink.frames().as_leaf(*leaf);
        let is_renamed = std::mem::replace(leaf, as_leaf) != as_leaf;
        let result = self.sink.add(&self.stack, shared, weights);
        if is_renamed {
            // The next stack cannot share a renamed leaf.
            self.stack.pop();
            self.ends.pop();
        }
        result
    }

    /// Replaces the last stack by one that shares its first `shared_bytes`; returns how many frames both share.
    fn set_stack(&mut self, text: &[u8], shared_bytes: usize) -> usize {
        while self.ends.last().is_some_and(|end| !shares_frame(*end, text, shared_bytes)) {
            self.ends.pop();
        }
        let shared = self.ends.len();
        self.stack.truncate(shared);
        self.text.truncate(shared_bytes);
        self.text.extend_from_slice(&text[shared_bytes..]);
        let mut start = self.ends.last().map_or(0, |end| end + 1);
        if start > text.len() {
            return shared;
        }
        let frames = self.sink.frames();
        let from = start;
        for end in memchr::memchr_iter(b';', &text[from..]).map(|index| from + index).chain([text.len()]) {
            let key = Key::new(&text[start..end]);
            let frame = self.frame_indexes.get(key).map(FrameId::from_index).unwrap_or_else(|| {
                let frame = frames.intern(key.bytes());
                self.frame_indexes.insert(key, frame.index() as u32);
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
        let mut builder = super::ProfileBuilder::default();
        let next_block = |block: &mut Block| input.read_block(block, last_line_end);
        super::StackParser::new(&mut builder, None).read_text("t", next_block, &mut diagnostics).unwrap();
        (builder.into_profile().unwrap(), diagnostics.skipped_lines())
    }

    #[test]
    fn reads_crlf_bom_and_a_missing_last_newline() {
        let (profile, skipped) = read(b"\xef\xbb\xbfa;b 1\r\n\r\na;b 2.5\r\na;c 4");
        assert_eq!((profile.len(), skipped), (2, 0));
        assert_eq!(profile.total(), Weights::plain(Weight::parse(b"7.5").unwrap()));
    }

    #[test]
    fn counts_and_skips_malformed_lines() {
        let (profile, skipped) = read(b"nonsense\na;b 1\na;b\na;b x\n");
        assert_eq!((profile.len(), skipped), (1, 3));
    }

    #[test]
    fn reports_a_missing_file_and_continues() {
        let mut diagnostics = Diagnostics::silent();
        let sources = [crate::input::Source::File("/nonexistent/x".into())];
        assert!(read_profile(&sources, &mut diagnostics).unwrap().is_empty());
        assert!(diagnostics.has_failed());
    }
}
