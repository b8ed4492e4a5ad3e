//! Parses the lines of folded text into stacks.

use super::grammar::{Line, LineKind, describe_error, is_comment, parse_line, trim_blanks};
use super::line_filter::LineFilter;
use super::line_kind::{DetectedKind, MixtureCheck, detect_kind, mixture_error};
use super::message::{Messages, NO_MESSAGE};
use super::other_input::check_is_folded;
use super::repeated_stacks::RepeatedStacks;
use super::stack_order::{common_prefix, shares_frame};
use crate::Error;
use crate::bytes::strip_bom;
use crate::diagnostics::Diagnostics;
use crate::input::{Block, Blocks, ReadAhead, last_line_end};
use crate::profile::byte_map::{ByteMap, Key};
use crate::profile::{FrameId, Frames, Weights};

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
    /// Selects the lines that are parsed; `None` for all.
    filter: Option<&'a LineFilter>,
    /// Stacks that were read and not parsed; `None` if stacks are passed on in their order.
    repeated: Option<RepeatedStacks>,
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
    /// Creates a parser of whole texts; `None` accepts both kinds.
    pub(super) fn new(sink: &'a mut dyn StackSink, kind: Option<LineKind>) -> Self {
        let (frame_indexes, text, stack, ends) = (ByteMap::default(), Vec::new(), Vec::new(), Vec::new());
        let lines = LineCheck::default();
        Self { sink, kind, lines, frame_indexes, text, stack, ends, filter: None, repeated: None }
    }

    /// Adds up the weights of equal stacks before they are passed on, and passes them on in any order. The last of them
    /// wait for [`flush`](Self::flush).
    pub(super) fn in_any_order(self) -> Self {
        Self { repeated: Some(RepeatedStacks::default()), ..self }
    }

    /// Parses only the lines with one weight that the filter selects. The others are counted as stacks.
    pub(super) fn with_filter(self, filter: Option<&'a LineFilter>) -> Self {
        Self { filter, ..self }
    }

    /// Returns the kind of the stacks that were read.
    pub(super) fn kind(&self) -> Option<LineKind> {
        self.kind
    }

    /// Creates a parser of blocks from the middle of a text, whose lines are of this kind.
    pub(super) fn of_blocks(sink: &'a mut dyn StackSink, kind: LineKind) -> Self {
        let detected = Some(DetectedKind { kind, line: 1 });
        let lines = LineCheck { detected, stacks: 1, ..LineCheck::default() };
        Self { lines, ..Self::new(sink, Some(kind)) }
    }

    /// Passes on all stacks whose weights were added up. If few were repeated, those after them are parsed as they are.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        let Some(mut repeated) = self.repeated.take() else { return Ok(()) };
        repeated.take_all(|stack, weights| self.add_unordered_stack(stack, weights))?;
        self.repeated = (!repeated.are_rare()).then_some(repeated);
        Ok(())
    }

    /// True if lines may be of the other kind, which only a parser of the whole text can decide.
    pub(super) fn may_be_mixture(&self) -> bool {
        self.lines.mixture.doubtful().is_some()
    }

    /// Parses a whole input, which another thread reads unless it is short.
    pub(super) fn read_input(&mut self, mut input: Blocks, diagnostics: &mut Diagnostics) -> Result<(), Error> {
        input.drop_colours()?;
        check_is_folded(&mut input)?;
        let (name, detected) = (input.name().to_owned(), detect_kind(input.head()?));
        // Searching is faster than passing text from one CPU to another.
        if input.is_read() || (self.filter.is_some() && !input.is_compressed()) {
            return self.read_text(&name, detected, |block| input.read_block(block, last_line_end), diagnostics);
        }
        let mut blocks = ReadAhead::new(move |block: &mut Block| input.read_block(block, last_line_end));
        self.read_text(&name, detected, |block| blocks.next(block), diagnostics)
    }

    /// Parses a whole text.
    pub(super) fn read_text(
        &mut self,
        name: &str,
        detected: Option<DetectedKind>,
        next_block: impl FnMut(&mut Block) -> Result<bool, Error>,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), Error> {
        self.lines = LineCheck { detected, ..LineCheck::default() };
        self.read_blocks(name, next_block, diagnostics)?;
        self.lines.finish(name, diagnostics)
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
            let mut text = &*block;
            if line_number == 0 && self.lines.stacks == 0 {
                text = strip_bom(text);
            }
            line_number = match self.filter.filter(|_| self.lines.are_plain()) {
                Some(filter) => self.read_selected(text, filter, (name, line_number), diagnostics)?,
                None => self.read_all(text, (name, line_number), diagnostics)?,
            };
        }
        Ok(())
    }

    /// Parses all lines of a text. Takes the number of the line before it, and returns that of the last one.
    fn read_all(
        &mut self,
        text: &[u8],
        (name, mut line_number): (&str, u64),
        diagnostics: &mut Diagnostics,
    ) -> Result<u64, Error> {
        let (mut rest, mut messages) = (text, Messages::new(text));
        while !rest.is_empty() {
            // The shared bytes contain no line end, since the last stack has none.
            let shared = common_prefix(&self.text, rest);
            let end = memchr::memchr(b'\n', &rest[shared..]).map_or(rest.len(), |end| shared + end);
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or(b"");
            line_number += 1;
            self.read_line(line, shared, (name, line_number), &mut messages, diagnostics)?;
        }
        Ok(line_number)
    }

    /// Parses the lines of a text that the filter selects. Takes and returns line numbers as [`read_all`](Self::read_all).
    fn read_selected(
        &mut self,
        text: &[u8],
        filter: &LineFilter,
        (name, mut line_number): (&str, u64),
        diagnostics: &mut Diagnostics,
    ) -> Result<u64, Error> {
        let (mut lines, mut messages) = (filter.select(text), Messages::new(text));
        loop {
            let line = lines.next();
            let skipped = lines.take_skipped();
            if skipped > 0 {
                self.begin_stacks(LineKind::Plain, name)?;
                self.lines.add_regular(skipped);
                line_number += skipped;
            }
            let Some(line) = line else { return Ok(line_number) };
            line_number += 1;
            let shared = common_prefix(&self.text, line);
            self.read_line(line, shared, (name, line_number), &mut messages, diagnostics)?;
        }
    }

    /// Parses a line that shares its first `shared_bytes` with the last stack.
    fn read_line(
        &mut self,
        line: &[u8],
        shared_bytes: usize,
        (name, line_number): (&str, u64),
        messages: &mut Messages<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), Error> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if trim_blanks(line).is_empty() || is_comment(line) {
            return Ok(());
        }
        let kind = self.lines.kind_at(line, line_number);
        let Some(Line { stack, weights }) = parse_line(line, kind) else {
            self.lines.add_malformed(line, line_number, name)?;
            return diagnostics.malformed(name, line_number, describe_error(line, kind));
        };
        if memchr::memchr(b';', stack).is_none() && messages.contains(stack) {
            return diagnostics.malformed(name, line_number, NO_MESSAGE);
        }
        self.begin_stacks(kind, name)?;
        self.lines.add_stack(stack, kind, line_number);
        if self.repeated.is_some() {
            return self.add_repeated_stack(stack, weights);
        }
        self.add_stack(stack, shared_bytes.min(stack.len()), weights)
    }

    /// Checks the kind of a text, and tells the sink the kind of the first one.
    #[inline]
    fn begin_stacks(&mut self, kind: LineKind, name: &str) -> Result<(), Error> {
        if self.lines.stacks == 0 {
            kind.check_same(self.kind, name)?;
        }
        if self.kind.is_none() {
            self.kind = Some(kind);
            self.sink.begin(kind);
        }
        Ok(())
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

    /// Adds up the weights of equal stacks.
    fn add_repeated_stack(&mut self, stack: &[u8], weights: Weights) -> Result<(), Error> {
        if self.repeated.as_ref().is_some_and(|repeated| !repeated.has_room(stack.len())) {
            self.flush()?;
        }
        match &mut self.repeated {
            Some(repeated) => repeated.add(stack, weights),
            None => self.add_unordered_stack(stack, weights),
        }
    }

    fn add_unordered_stack(&mut self, stack: &[u8], weights: Weights) -> Result<(), Error> {
        self.add_stack(stack, common_prefix(&self.text, stack), weights)
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

    /// True if the lines are known to have one weight.
    fn are_plain(&self) -> bool {
        self.detected.is_some_and(|detected| detected.kind == LineKind::Plain)
    }

    /// Counts stacks with one weight that do not end in a number.
    fn add_regular(&mut self, count: u64) {
        self.stacks += count;
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
    fn finish(&self, name: &str, diagnostics: &mut Diagnostics) -> Result<(), Error> {
        if let Some((line, detected)) = self.mixture.other_kind().zip(self.detected) {
            return Err(mixture_error(name, line, detected));
        }
        if let Some(doubtful) = self.mixture.doubtful() {
            diagnostics.warn(&format!("{name}:{}: {}", doubtful.line, doubtful.describe()));
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
