//! Reads folded text.

use super::grammar::{Line, LineKind, describe_error, is_comment, parse_line, trim_blanks};
use super::line_kind::{DetectedKind, MixtureCheck, detect_kind, mixture_error};
use super::parallel_files::map_files;
use super::stack_order::{common_prefix, shares_frame};
use crate::Error;
use crate::bytes::strip_bom;
use crate::diagnostics::Diagnostics;
use crate::input::{Block, Blocks, ReadAhead, Source, last_line_end};
use crate::profile::byte_map::{ByteMap, Key};
use crate::profile::{Batch, FrameId, Frames, Profile, Weights};

/// The message for input in which every line is malformed.
pub const NO_STACK: &str = "no line is a folded stack (frame;frame;… WEIGHT); convert profiler output with fg-collapse";

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
/// A source that cannot be read, that mixes kinds, whose kind differs from that of the sources before it, or most of whose
/// lines are malformed is reported as a failure. The others still count.
///
/// # Errors
/// Those of the sink, in strict mode the first malformed line, and [`Error::AlreadyReported`] if there are only malformed
/// lines.
pub fn read_all(sources: &[Source], sink: &mut dyn StackSink, diagnostics: &mut Diagnostics) -> Result<(), Error> {
    let mut parser = StackParser::new(sink, None);
    let skipped_before = diagnostics.skipped_lines();
    for source in sources {
        let result = source.open_without_thread().and_then(|input| parser.read_input(input, diagnostics));
        match result {
            Err(error @ (Error::Read { .. } | Error::Unreadable { .. })) => diagnostics.fail(&error),
            other => other?,
        }
    }
    if parser.kind.is_none() && diagnostics.skipped_lines() > skipped_before {
        return Err(Error::AlreadyReported);
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
    let (name, detected) = (input.name().to_owned(), detect_kind(input.head()?));
    let next_block = |block: &mut Block| input.read_block(block, last_line_end);
    StackParser::new(&mut builder, Some(kind)).read_text(&name, detected, next_block, diagnostics)?;
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
    /// The kind of the stacks that were passed on.
    kind: Option<LineKind>,
    lines: LineCheck,
    /// The index of each frame, by its text.
    frame_indexes: ByteMap<u32>,
    /// The text of the last stack.
    text: Vec<u8>,
    /// The frames of the last stack.
    stack: Vec<FrameId>,
    /// End of each of these frames in `text`.
    ends: Vec<usize>,
}

/// The kind of the lines of one text, and counts by which a text is rejected.
#[derive(Default)]
struct LineCheck {
    /// The kind; `None` until a stack is found.
    detected: Option<DetectedKind>,
    /// Number of stacks.
    stacks: u64,
    malformed: u64,
    mixture: MixtureCheck,
}

impl<'a> StackParser<'a> {
    fn new(sink: &'a mut dyn StackSink, kind: Option<LineKind>) -> Self {
        let (frame_indexes, text, stack, ends) = (ByteMap::default(), Vec::new(), Vec::new(), Vec::new());
        Self { sink, kind, lines: LineCheck::default(), frame_indexes, text, stack, ends }
    }

    /// Creates a parser of blocks from the middle of a text, whose lines are of this kind.
    pub(super) fn with_kind(sink: &'a mut dyn StackSink, kind: LineKind) -> Self {
        let detected = Some(DetectedKind { kind, line: 1 });
        let lines = LineCheck { detected, stacks: 1, ..LineCheck::default() };
        Self { lines, ..Self::new(sink, Some(kind)) }
    }

    /// True if lines may be of the other kind, which only a parser of the whole text can decide.
    pub(super) fn may_be_mixture(&self) -> bool {
        self.lines.mixture.is_doubtful()
    }

    /// Parses a whole input, which another thread reads unless it is short.
    fn read_input(&mut self, mut input: Blocks, diagnostics: &mut Diagnostics) -> Result<(), Error> {
        let (name, detected) = (input.name().to_owned(), detect_kind(input.head()?));
        if input.is_read() {
            return self.read_text(&name, detected, |block| input.read_block(block, last_line_end), diagnostics);
        }
        let mut blocks = ReadAhead::new(move |block: &mut Block| input.read_block(block, last_line_end));
        self.read_text(&name, detected, |block| blocks.next(block), diagnostics)
    }

    /// Parses a whole text.
    fn read_text(
        &mut self,
        name: &str,
        detected: Option<DetectedKind>,
        next_block: impl FnMut(&mut Block) -> Result<bool, Error>,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), Error> {
        self.lines = LineCheck { detected, ..LineCheck::default() };
        self.read_blocks(name, next_block, diagnostics)?;
        self.lines.finish(name)
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
            if line_number == 0 && self.lines.stacks == 0 {
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
        if trim_blanks(line).is_empty() || is_comment(line) {
            return Ok(());
        }
        let kind = self.lines.kind_at(line, line_number);
        let Some(Line { stack, weights }) = parse_line(line, kind) else {
            self.lines.add_malformed(line, line_number, name)?;
            return diagnostics.malformed(name, line_number, describe_error(line, kind));
        };
        if self.lines.stacks == 0 {
            kind.check_same(self.kind, name)?;
        }
        self.lines.add_stack(stack, kind, line_number);
        if self.kind.is_none() {
            self.kind = Some(kind);
            self.sink.begin(kind);
        }
        self.add_stack(stack, shared_bytes.min(stack.len()), weights)
    }

    /// Passes on a stack that shares its first `shared_bytes` with the last one.
    fn add_stack(&mut self, stack: &[u8], shared_bytes: usize, weights: Weights) -> Result<(), Error> {
        let shared = self.set_stack(stack, shared_bytes);
        let Some(leaf) = self.stack.last_mut() else { return Ok(()) };
        let as_leaf = self.sink.frames().as_leaf(*leaf);
        if std::mem::replace(leaf, as_leaf) == as_leaf {
            return self.sink.add(&self.stack, shared, weights);
        }
        // Neither the last stack nor the next one shares a renamed leaf.
        let result = self.sink.add(&self.stack, shared.min(self.stack.len() - 1), weights);
        self.stack.pop();
        self.ends.pop();
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

impl LineCheck {
    /// Returns the kind by which a line is read.
    fn kind_at(&mut self, line: &[u8], number: u64) -> LineKind {
        if self.detected.is_none() {
            self.detected = detect_kind(line).map(|detected| DetectedKind { line: number, ..detected });
        }
        self.detected.map_or(LineKind::Plain, |detected| detected.kind)
    }

    #[inline]
    fn add_stack(&mut self, stack: &[u8], kind: LineKind, number: u64) {
        self.stacks += 1;
        if kind == LineKind::Plain {
            self.mixture.add(stack, number);
        }
    }

    /// Counts a malformed line; a line with one weight in a differential text is an error.
    fn add_malformed(&mut self, line: &[u8], number: u64, name: &str) -> Result<(), Error> {
        self.malformed += 1;
        match self.detected {
            Some(detected) if parse_line(line, LineKind::Plain).is_some() => Err(mixture_error(name, number, detected)),
            _ => Ok(()),
        }
    }

    /// Rejects a text that mixes kinds, or most of whose lines are malformed.
    fn finish(&self, name: &str) -> Result<(), Error> {
        if let Some((line, detected)) = self.mixture.other_kind().zip(self.detected) {
            return Err(mixture_error(name, line, detected));
        }
        if self.malformed <= self.stacks {
            return Ok(());
        }
        let what = match self.stacks {
            0 => NO_STACK.to_owned(),
            stacks => {
                let lines = self.malformed + stacks;
                format!(
                    "{} of {lines} lines are not folded stacks; convert profiler output with fg-collapse",
                    self.malformed
                )
            }
        };
        Err(Error::Unreadable { name: name.to_owned(), what })
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
        let detected = super::detect_kind(text);
        super::StackParser::new(&mut builder, None).read_text("t", detected, next_block, &mut diagnostics).unwrap();
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
        let (profile, skipped) = read(b"nonsense\na;b 1\na;b\nc 2\na;b x\nd 3\n# interval : 100\n");
        assert_eq!((profile.len(), skipped), (3, 3));
    }

    #[test]
    fn reports_a_missing_file_and_continues() {
        let mut diagnostics = Diagnostics::silent();
        let sources = [crate::input::Source::File("/nonexistent/x".into())];
        assert!(read_profile(&sources, &mut diagnostics).unwrap().is_empty());
        assert!(diagnostics.has_failed());
    }
}
