//! Reports of parser threads, processed in the order of their blocks.

use std::collections::BTreeMap;

use super::appended;
use super::document::SkippedLines;
use super::parser::{BlockReport, CutEnd, LeftOut, LeftOutLine};
use super::sink::OrderedSamples;
use super::strays::{RunEnd, StrayKind, Strays};
use crate::Error;
use crate::diagnostics::{Diagnostics, plural};
use crate::folded::{DetectedKind, MixtureCheck, mixture_error};
use crate::markers;
use crate::output::Output;
use crate::profile::{Weight, Weights};

/// Number of malformed lines from which on their share matters.
const MIN_MALFORMED: u64 = 9;

/// What happens to a last line that is cut.
pub(super) const LAST_LINE_LEFT_OUT: &str = "its last line is left out";

/// Says that an input is cut short; `end` names what its format ends with.
pub(super) fn describe_cut(end: &str) -> String {
    format!("cut short: the input ends before {end}")
}

/// The log of one input: diagnostics and ordered samples of its blocks, in input order.
pub(super) struct OrderedLog<'a> {
    name: String,
    read: usize,
    lines: u64,
    next: u64,
    /// Number of problems that were reported.
    problems: u64,
    /// Number of malformed lines.
    malformed_lines: u64,
    /// The number of weights per line of folded text.
    kind: Option<DetectedKind>,
    mixture: MixtureCheck,
    single_frames: u64,
    has_callers: bool,
    waiting: BTreeMap<u64, (BlockReport, Option<OrderedSamples>)>,
    /// The last malformed lines of an input that is read in blocks.
    strays: Option<Strays>,
    /// The error about the first other document within an input that is read in blocks.
    other_document: Option<Error>,
    diagnostics: &'a mut Diagnostics,
    in_order: Option<&'a mut dyn OrderedSampleReceiver>,
}

/// Fewest stacks of one frame that are mentioned.
const MIN_SINGLE_FRAMES: u64 = 3;

/// Receives the samples of a block, if they are wanted in order.
trait OrderedSampleReceiver: Send {
    fn add_samples(&mut self, samples: &OrderedSamples) -> Result<(), Error>;
}

impl<'a> OrderedLog<'a> {
    pub(super) fn new(
        name: String,
        kind: Option<DetectedKind>,
        diagnostics: &'a mut Diagnostics,
        in_order: Option<&'a mut OrderedSampleWriter<'_>>,
    ) -> Self {
        let in_order = in_order.map(|in_order| in_order as &mut dyn OrderedSampleReceiver);
        Self {
            name,
            read: 0,
            lines: 0,
            next: 0,
            kind,
            problems: 0,
            malformed_lines: 0,
            mixture: MixtureCheck::default(),
            single_frames: 0,
            has_callers: false,
            waiting: BTreeMap::new(),
            strays: None,
            other_document: None,
            diagnostics,
            in_order,
        }
    }

    /// Returns the log for an input whose blocks begin after this number of lines.
    pub(super) fn with_lines(self, lines: u64) -> Self {
        Self { lines, ..self }
    }

    /// Returns the log for an input whose profile begins after these lines of other text, and reports them.
    ///
    /// # Errors
    /// [`Error::Malformed`] with `--strict`.
    pub(super) fn with_text_before(mut self, text: SkippedLines) -> Result<Self, Error> {
        if text.count > 0 && self.is_strict() {
            self.report_left_out(text.first, "no part of the profile that follows")?;
        } else if text.count > 0 {
            self.warn(&format!("{} before the profile left out", plural(text.count, "line")));
        }
        Ok(self)
    }

    /// Returns the log for an input of a format that is read in blocks.
    pub(super) fn for_blocks(self, format: &'static str) -> Self {
        Self { strays: Some(Strays::new(format)), ..self }
    }

    /// Shows progress: `parsed` more bytes are parsed.
    pub(super) fn add_progress(&mut self, parsed: usize) {
        self.read += parsed;
        let Self { diagnostics, name, read, .. } = self;
        diagnostics.show_progress(|| format!("{name}: {} MB read", *read / 1_000_000));
    }

    /// Reports a malformed line.
    pub(super) fn report_malformed(&mut self, line: u64, what: &str) -> Result<(), Error> {
        self.malformed_lines += 1;
        self.report_left_out(line, what)
    }

    /// Returns the number of malformed lines.
    pub(super) fn malformed_lines(&self) -> u64 {
        self.malformed_lines
    }

    /// Reports a line that is left out although it has the right format.
    pub(super) fn report_left_out(&mut self, line: u64, what: &str) -> Result<(), Error> {
        self.problems += 1;
        self.diagnostics.malformed(&self.name, line, what)
    }

    /// Counts problems that the caller reports.
    pub(super) fn add_problems(&mut self, count: u64) {
        self.problems += count;
    }

    /// Reports a line that the parser of a block left out, or keeps it until it is known whether another document begins
    /// with it.
    fn add_left_out(&mut self, line: LeftOutLine) -> Result<(), Error> {
        let number = self.lines + line.number;
        let (text, kind) = match line.kind {
            LeftOut::Malformed(what) => {
                self.end_strays(RunEnd::Taken)?;
                return self.report_malformed(number, what);
            }
            LeftOut::Foreign(what) => {
                self.end_strays(RunEnd::Taken)?;
                return self.report_left_out(number, what);
            }
            LeftOut::Document(format) => {
                let before = self.strays.as_mut().and_then(|strays| strays.take_beginning(number));
                self.end_strays(RunEnd::Taken)?;
                self.set_other_document(before.unwrap_or(number), format);
                return Ok(());
            }
            LeftOut::Stray(_, what) if self.is_strict() => return self.report_malformed(number, what),
            LeftOut::Comment(_) if self.is_strict() => return Ok(()),
            LeftOut::Stray(text, what) => (text, StrayKind::Malformed(what)),
            LeftOut::Comment(text) => (text, StrayKind::Comment),
        };
        let Some(strays) = &self.strays else {
            return match kind {
                StrayKind::Malformed(what) => self.report_malformed(number, what),
                _ => Ok(()),
            };
        };
        if !strays.is_near(number) {
            self.end_strays(RunEnd::Taken)?;
        } else if strays.is_full() {
            self.end_strays(RunEnd::Full)?;
        }
        self.strays.iter_mut().for_each(|strays| strays.add_text(number, &text, kind));
        Ok(())
    }

    /// Reports the malformed lines that were kept. If another document begins within the input, the rest is read all the
    /// same: how much of it other threads have read already is not known.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if they are another document; [`Error::Malformed`] with `--strict`.
    pub(super) fn end_strays(&mut self, end: RunEnd) -> Result<(), Error> {
        let Some(strays) = &mut self.strays else { return Ok(()) };
        let is_taken = end == RunEnd::EndOfInput && !strays.is_near(self.lines + 1);
        match strays.take(&[], if is_taken { RunEnd::Taken } else { end }) {
            // Lines of the other document are no news.
            Ok(_) if self.other_document.is_some() => Ok(()),
            Ok((malformed, _)) => malformed.iter().try_for_each(|(line, what)| self.report_malformed(*line, what)),
            Err((line, format)) => {
                self.set_other_document(line, format);
                Ok(())
            }
        }?;
        self.other_document.take_if(|_| end == RunEnd::EndOfInput).map_or(Ok(()), Err)
    }

    /// Notes that a document of another format begins at a line, unless one has begun before.
    fn set_other_document(&mut self, line: u64, format: &str) {
        let own = self.strays.as_ref().map_or("", Strays::format);
        let what = appended::describe(format, own, "here");
        self.other_document.get_or_insert(Error::Unreadable { name: format!("{}:{line}", self.name), what });
    }

    /// Returns an error if more than half of the lines of an input that was read in blocks are malformed; warns of a line that may
    /// have two weights, and of lines of which none has a caller: other text also ends in numbers.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub(super) fn check_malformed_share(&mut self) -> Result<(), Error> {
        if let Some(doubtful) = self.mixture.doubtful() {
            self.diagnostics.warn(&format!("{}:{}: {}", self.name, doubtful.line, doubtful.describe()));
        }
        if self.malformed_lines * 2 > self.lines {
            return Err(self.share_error(self.lines));
        }
        if self.single_frames >= MIN_SINGLE_FRAMES && !self.has_callers {
            self.warn("each line was read as a stack of one frame, and none has a caller");
        }
        Ok(())
    }

    /// Returns an error if nearly all of this number of lines are malformed: the input has another format.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub(super) fn check_malformed_share_of(&mut self, lines: u64) -> Result<(), Error> {
        let malformed = self.malformed_lines;
        if malformed < MIN_MALFORMED || malformed.saturating_mul(10) < lines.saturating_mul(9) {
            return Ok(());
        }
        Err(self.share_error(lines))
    }

    fn share_error(&self, lines: u64) -> Error {
        let malformed = self.malformed_lines;
        let what = format!("{malformed} of {lines} lines are malformed: the input has another format or is damaged");
        Error::Unreadable { name: self.name.clone(), what }
    }

    /// Warns that the input has no stacks, as a message says, unless a problem was reported.
    ///
    /// # Errors
    /// [`Error::Unreadable`] with `--strict`.
    pub(super) fn report_no_stacks(&mut self, what: &str) -> Result<(), Error> {
        if self.problems > 0 {
            return Ok(());
        }
        self.report_damage(what)
    }

    /// Warns that an input which is read in blocks ends within its last sample.
    fn report_cut(&mut self, end: CutEnd) -> Result<(), Error> {
        self.problems += 1;
        self.report_damage(&match end {
            CutEnd::Certain => format!("{}; {LAST_LINE_LEFT_OUT}", describe_cut("its last sample does")),
            CutEnd::Possible(why) => format!("{why}: the input may be cut short"),
        })
    }

    /// Warns about a problem with the whole input; what was read still counts.
    ///
    /// # Errors
    /// [`Error::Unreadable`] with `--strict`.
    pub(super) fn report_damage(&mut self, what: &str) -> Result<(), Error> {
        if self.is_strict() {
            return Err(Error::Unreadable { name: self.name.clone(), what: what.to_owned() });
        }
        self.warn(what);
        Ok(())
    }

    /// True with `--strict`: the first problem is an error.
    pub(super) fn is_strict(&self) -> bool {
        self.diagnostics.is_strict()
    }

    /// Warns about this input.
    pub(super) fn warn(&mut self, what: &str) {
        self.diagnostics.warn(&format!("{}: {what}", self.name));
    }

    /// Prints a note about this input with `-v`.
    pub(super) fn note(&mut self, what: &str) {
        self.diagnostics.note(&format!("{}: {what}", self.name));
    }

    /// Adds the report and samples of a block, and processes all blocks that are complete in order.
    pub(super) fn add_block(
        &mut self,
        number: u64,
        report: BlockReport,
        samples: Option<OrderedSamples>,
    ) -> Result<(), Error> {
        self.waiting.insert(number, (report, samples));
        while let Some((report, samples)) = self.waiting.remove(&self.next) {
            for line in report.left_out {
                self.add_left_out(line)?;
            }
            if let Some(end) = report.cut_end {
                self.report_cut(end)?;
            }
            self.mixture.add_block(report.mixture, self.lines);
            self.single_frames += report.single_frames;
            self.has_callers |= report.has_callers;
            let other_kind = report.other_kind.map(|line| self.lines + line).or(self.mixture.other_kind());
            if let Some((line, kind)) = other_kind.zip(self.kind) {
                return Err(mixture_error(&self.name, line, kind));
            }
            if let (Some(in_order), Some(samples)) = (&mut self.in_order, samples) {
                in_order.add_samples(&samples)?;
            }
            if report.lines > 0 {
                self.lines += report.lines;
            }
            self.next += 1;
        }
        Ok(())
    }
}

/// Writes samples in the order of the input; equal neighbours are added up.
pub(super) struct OrderedSampleWriter<'a> {
    output: &'a mut Output,
    stack: Vec<u8>,
    weights: Weights,
}

impl<'a> OrderedSampleWriter<'a> {
    pub(super) fn new(output: &'a mut Output) -> Self {
        Self { output, stack: Vec::new(), weights: Weights::default() }
    }

    /// Writes the last sample and the weight of lost ones.
    pub(super) fn finish(mut self, lost: Weight) -> Result<(), Error> {
        self.write()?;
        if !lost.is_zero() {
            self.stack = markers::LOST.to_vec();
            self.weights = Weights::plain(lost);
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), Error> {
        if self.stack.is_empty() {
            return Ok(());
        }
        let mut line = std::mem::take(&mut self.stack);
        line.push(b' ');
        self.weights.after.write_to(&mut line);
        line.push(b'\n');
        self.output.write_with(|out| out.write_all(&line))
    }
}

impl OrderedSampleReceiver for OrderedSampleWriter<'_> {
    fn add_samples(&mut self, samples: &OrderedSamples) -> Result<(), Error> {
        for (stack, weights) in samples.iter() {
            if stack == self.stack {
                self.weights.add(weights)?;
            } else {
                self.write()?;
                self.stack.clear();
                self.stack.extend_from_slice(stack);
                self.weights = weights;
            }
        }
        Ok(())
    }
}
