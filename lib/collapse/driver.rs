//! Reads inputs, distributes blocks over threads, and merges the results.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::detect::{self, Detected};
use super::document::{Document, no_events};
use super::filter::args::EventChoice;
use super::filter::report::{self, LostSamples};
use super::filter::sample;
use super::format::{FormatReader, ReadDocument};
use super::formats;
use super::input_summary::InputSummary;
use super::options::Options;
use super::ordered_log::{OrderedLog, OrderedSampleWriter};
use super::parser::{BlockReport, Parser};
use super::sink::{Sink, SinkMode};
use super::timeline::Timeline;
use crate::Error;
use crate::diagnostics::{Diagnostics, plural};
use crate::folded::{LineKind, no_stacks};
use crate::input::{Block, BlockSource, Source};
use crate::markers;
use crate::parallel::{self, cores};
use crate::profile::{Profile, Weights};

/// Highest number of parser threads: each takes memory.
const MAX_THREADS: usize = 1024;

/// Number of inputs that decide the default number of threads.
const SOURCES_FOR_THREADS: usize = 16;

/// Folds all sources, each in its own format, into one profile. A source that cannot be read is reported; the others
/// still count.
///
/// # Errors
/// [`Error::Overflow`]; with strict diagnostics the first malformed line; [`Error::Invalid`] or
/// [`Error::AlreadyReported`] if there is no sample. It is no error if options leave out all samples.
pub fn collapse(sources: &[Source], options: &Options, diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let Collected { workers, lost, .. } = read_all(sources, options, diagnostics, SinkMode::Sums, None)?;
    let threads = worker_threads(options);
    let mut profile = merge_profiles(workers)?;
    let lost = lost.weight;
    if !lost.is_zero() {
        let frame = profile.frames.intern(markers::LOST);
        profile.add(&[frame], Weights::plain(lost))?;
    }
    if threads > 1 {
        profile.presort(threads);
    }
    Ok(profile)
}

/// Writes the stacks of all samples as folded text in the order of the input; equal neighbours are added up.
///
/// # Errors
/// Those of [`collapse`], and [`Error::Write`].
pub fn collapse_in_order(
    sources: &[Source],
    options: &Options,
    diagnostics: &mut Diagnostics,
    output: &mut crate::output::Output,
) -> Result<(), Error> {
    let mut in_order = OrderedSampleWriter::new(output);
    let collected = read_all(sources, options, diagnostics, SinkMode::Order, Some(&mut in_order))?;
    in_order.finish(collected.lost.weight)
}

/// Folds all sources and keeps the time of each sample.
///
/// # Errors
/// Those of [`collapse`], and [`Error::Invalid`] if no sample has a time.
pub fn collapse_in_time(
    sources: &[Source],
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Result<Timeline, Error> {
    let Collected { workers, lost, unit } = read_all(sources, options, diagnostics, SinkMode::Times, None)?;
    let mut timeline = Timeline::merge_all(workers.into_iter().filter_map(|worker| worker.sink.into_timeline()))?;
    timeline.lost = lost.count;
    timeline.unit = unit;
    timeline.report(diagnostics)?;
    Ok(timeline)
}

/// State of one parser thread: its sink and its parsers.
#[derive(Default)]
pub(super) struct Worker {
    sink: Sink,
    /// Parsers by name of the format.
    parsers: BTreeMap<&'static str, Box<dyn Parser>>,
    block: Block,
}

/// State that the threads share while they read one input.
struct Shared<'a> {
    format: &'static str,
    feed: Mutex<BlockFeed>,
    log: Mutex<OrderedLog<'a>>,
}

/// Hands out the blocks of an input in order.
struct BlockFeed {
    next: BlockSource,
    handed_out: u64,
    ended: bool,
}

/// The stacks of all sources in the sinks of the threads, and what the sources say of them.
struct Collected {
    workers: Vec<Worker>,
    lost: LostSamples,
    /// The unit of the weights, if the sources name one and the same.
    unit: Option<String>,
}

/// Reads all sources, and reports what was left out.
fn read_all(
    sources: &[Source],
    options: &Options,
    diagnostics: &mut Diagnostics,
    mode: SinkMode,
    mut in_order: Option<&mut OrderedSampleWriter<'_>>,
) -> Result<Collected, Error> {
    let threads = requested_threads(options).unwrap_or_else(|| default_parser_threads(sources));
    let mut workers: Vec<Worker> =
        (0..threads).map(|_| Worker { sink: Sink::new(mode), ..Worker::default() }).collect();
    let (mut failed, mut blank, mut summaries, mut kind) = (0, 0, Vec::new(), None);
    for source in sources {
        let found = &mut summaries;
        match read_source(source, options, &mut kind, &mut workers, found, diagnostics, in_order.as_deref_mut()) {
            Ok(SourceRead::Blank) => blank += 1,
            Ok(SourceRead::Stacks) => {}
            Err(error @ (Error::Read { .. } | Error::Unreadable { .. })) => {
                diagnostics.fail(&error);
                failed += 1;
            }
            Err(other) => return Err(other),
        }
    }
    diagnostics.clear_progress();
    let is_empty = workers.iter().all(|worker| worker.sink.is_empty());
    if is_empty && failed == sources.len() {
        return Err(Error::AlreadyReported);
    }
    summaries.extend(workers.iter().flat_map(|worker| worker.parsers.values()).map(|parser| parser.summary()));
    let lost = report::report_selection(&summaries, options, is_empty, diagnostics)?;
    let has_left_out = workers.iter().any(|worker| worker.sink.has_ever_left_out());
    let has_selected = summaries.iter().flat_map(|summary| &summary.events).any(|event| event.is_selected);
    if is_empty && (has_left_out || has_selected) {
        diagnostics.warn("no sample matches --time, --comm and similar options");
    }
    options.spans.iter().try_for_each(|spans| spans.report(diagnostics))?;
    if is_empty && diagnostics.skipped_lines() > 0 {
        return Err(Error::Invalid(match options.format {
            Some(format) => {
                format!(
                    "--format {}: no line of the input has this format; omit --format to detect it",
                    format.as_str()
                )
            }
            None => "no line of the input could be parsed; name its format with --format".to_owned(),
        }));
    }
    let has_samples = summaries.iter().flat_map(|summary| &summary.events).any(|event| event.samples > 0);
    if is_empty && !has_samples && !has_left_out && lost.count == 0 {
        // Warnings named the inputs that have no stacks, unless they are blank.
        let is_reported = blank + failed < sources.len() && diagnostics.verbosity() >= 0;
        return Err(if is_reported { Error::AlreadyReported } else { no_stacks(sources) });
    }
    Ok(Collected { unit: InputSummary::common_unit(&summaries), workers, lost })
}

/// Returns the default number of parser threads: one for each core, minus one if another thread decompresses or another
/// program writes the input. Of many inputs the first ones decide: to look at each takes as long as to read a small file.
fn default_parser_threads(sources: &[Source]) -> usize {
    if sources.iter().take(SOURCES_FOR_THREADS).any(|source| source.is_stream() || source.is_compressed()) {
        (cores() - 1).max(1)
    } else {
        cores()
    }
}

/// Returns the number of threads that work on profiles in memory.
pub(super) fn worker_threads(options: &Options) -> usize {
    requested_threads(options).unwrap_or_else(cores)
}

/// Returns the number of threads that the options ask for.
fn requested_threads(options: &Options) -> Option<usize> {
    options.threads.map(|threads| threads.get().min(MAX_THREADS))
}

/// What was read of a source.
enum SourceRead {
    /// Nothing: it is blank.
    Blank,
    Stacks,
}

/// Reads one source, which must be plain or differential like those before it. Adds the summary of a document, also if only
/// its beginning could be read; of an input that is read in blocks, the parser keeps it until the end.
fn read_source(
    source: &Source,
    options: &Options,
    kind: &mut Option<LineKind>,
    workers: &mut [Worker],
    summaries: &mut Vec<InputSummary>,
    diagnostics: &mut Diagnostics,
    in_order: Option<&mut OrderedSampleWriter<'_>>,
) -> Result<SourceRead, Error> {
    let mut input = source.open_without_thread()?;
    let found = detect::detect_format(&mut input, options);
    let Ok(Some(Detected { format, text_before })) = found else {
        // Detection may have failed only because reading did.
        input.check_failure()?;
        return found.map(|_| SourceRead::Blank);
    };
    let found = formats::weight_kind(format, input.head()?);
    if let Some(found) = found {
        found.kind.check_same(*kind, input.name())?;
        *kind = Some(found.kind);
    }
    if let EventChoice::Named(wanted) = &options.event
        && formats::is_folded(format)
    {
        return Err(no_events(input.name(), wanted));
    }
    if sample::filters_samples(options) && !format.has_times {
        let what = "samples of this format have no time, thread or CPU; --time, --comm, --span and similar options have no effect";
        diagnostics.warn(&format!("{}: {what}", input.name()));
    }
    let log = OrderedLog::new(input.name().to_owned(), found, diagnostics, in_order).with_lines(input.skipped_lines());
    let log = log.with_text_before(text_before);
    let span = options.time.filter(|span| span.is_relative() && format.has_times);
    span.iter().for_each(|span| workers.iter_mut().for_each(|worker| worker.sink.hold_samples(*span)));
    let Some((first, others)) = workers.split_first_mut() else { return Ok(SourceRead::Stacks) };
    // An input that is in memory already takes less time than the start of a thread. Samples that are held come in the
    // order of the input from one thread only.
    let is_alone = input.is_read() || span.is_some() && first.sink.is_in_order();
    let others = if is_alone { &mut [] } else { others };
    match format.reader {
        FormatReader::Blocks { find_boundary, new_parser } => {
            first.parsers.entry(format.name).or_insert_with(|| new_parser(options));
            let feed =
                Mutex::new(BlockFeed { next: input.into_block_source(find_boundary), handed_out: 0, ended: false });
            let log = Mutex::new(log.for_blocks(format.name));
            read_samples(&Shared { format: format.name, feed, log }, first, others)?;
        }
        FormatReader::Lines(read) | FormatReader::Bytes(read) => {
            let document = Document::new(format.name, source, input.read_ahead(), options, log);
            first.read_document(read, document, summaries)?;
        }
    }
    Ok(SourceRead::Stacks)
}

/// Reads an input that is parsed in blocks, and reports if it has no sample.
fn read_samples(shared: &Shared<'_>, first: &mut Worker, others: &mut [Worker]) -> Result<(), Error> {
    let before = count_samples(shared.format, first, others);
    first.sink.begin_input();
    others.iter_mut().for_each(|worker| worker.sink.begin_input());
    read_blocks(shared, first, others)?;
    release_samples(shared, first, others)?;
    lock(&shared.log).end_strays(true)?;
    let is_empty = first.sink.is_input_empty() && others.iter().all(|worker| worker.sink.is_input_empty());
    if is_empty && count_samples(shared.format, first, others) == before {
        lock(&shared.log).report_no_stacks()
    } else {
        lock(&shared.log).check_malformed_share()
    }
}

/// Adds the samples of an input that were held until the earliest time of all threads was known.
fn release_samples(shared: &Shared<'_>, first: &mut Worker, others: &mut [Worker]) -> Result<(), Error> {
    let workers = || std::iter::once(&*first).chain(&*others);
    let Some(earliest) = workers().filter_map(|worker| worker.sink.earliest_time()).min() else { return Ok(()) };
    others.iter_mut().try_for_each(|worker| worker.sink.release_samples(earliest))?;
    first.sink.release_samples(earliest)?;
    let number = lock(&shared.feed).handed_out;
    lock(&shared.log).add_block(number, BlockReport::default(), first.sink.take_ordered_samples())
}

/// Returns the number of samples that all parsers of a format have seen.
fn count_samples(format: &str, first: &Worker, others: &[Worker]) -> u64 {
    let workers = std::iter::once(first).chain(others);
    workers.map(|worker| worker.count_samples(format)).fold(0, u64::saturating_add)
}

/// Parses all blocks: by one thread until its parser can be forked, then by all.
fn read_blocks(shared: &Shared<'_>, first: &mut Worker, others: &mut [Worker]) -> Result<(), Error> {
    while !others.is_empty() && !first.share_parser(shared, others) {
        if !first.parse_block(shared)? {
            return Ok(());
        }
    }
    let threads = 1 + others.len();
    let workers = std::iter::once(first).chain(others);
    parallel::map(workers, threads, |worker| worker.run(shared)).into_iter().collect()
}

impl Worker {
    /// Reads a whole document and adds its summary.
    fn read_document(
        &mut self,
        read: ReadDocument,
        mut document: Document<'_>,
        summaries: &mut Vec<InputSummary>,
    ) -> Result<(), Error> {
        self.sink.begin_input();
        let result = read(&mut document, &mut self.sink);
        if let Some(earliest) = self.sink.earliest_time() {
            self.sink.release_samples(earliest)?;
        }
        let is_empty = self.sink.is_input_empty();
        let cut = std::mem::take(&mut self.sink.cut_stacks);
        if cut > 0 {
            let what =
                "have more than 1024 frames; those near the root are left out, and [truncated] is in their place";
            document.warn(&format!("{} {what}", plural(cut, "stack")));
        }
        if result.is_ok() && !is_empty {
            document.report_choice();
        }
        if !is_empty {
            document.report_skipped();
        }
        let result = result.and_then(|()| document.check_malformed_share());
        let result = result.and_then(|()| if is_empty { Ok(()) } else { document.check_event() });
        let result = result.and_then(|()| document.check_whole());
        let result = result.and_then(|()| document.check_line_end());
        let has_no_stacks = is_empty && !self.sink.has_left_out();
        let result = result.and_then(|()| if has_no_stacks { document.report_no_stacks() } else { Ok(()) });
        self.sink.flush()?;
        let (summary, mut log) = document.finish();
        summaries.push(summary);
        log.add_block(0, BlockReport::default(), self.sink.take_ordered_samples())?;
        result
    }

    /// Returns the number of samples that the parser of a format has seen, with unselected and lost ones.
    fn count_samples(&self, format: &str) -> u64 {
        let Some(summary) = self.parsers.get(format).map(|parser| parser.summary()) else { return 0 };
        summary.events.iter().map(|event| event.samples).fold(summary.lost_samples, u64::saturating_add)
    }

    /// Gives the other workers a parser; returns false if this one cannot be forked yet.
    fn share_parser(&self, shared: &Shared<'_>, others: &mut [Self]) -> bool {
        for other in others {
            if other.parsers.contains_key(shared.format) {
                continue;
            }
            let Some(parser) = self.parsers.get(shared.format).and_then(|parser| parser.fork()) else { return false };
            other.parsers.insert(shared.format, parser);
        }
        true
    }

    /// Parses blocks until the input ends.
    fn run(&mut self, shared: &Shared<'_>) -> Result<(), Error> {
        while self.parse_block(shared).inspect_err(|_| lock(&shared.feed).ended = true)? {}
        Ok(())
    }

    /// Parses one block; returns false at the end of the input.
    fn parse_block(&mut self, shared: &Shared<'_>) -> Result<bool, Error> {
        let Some(number) = lock(&shared.feed).next(&mut self.block)? else { return Ok(false) };
        let text = &self.block;
        let mut report = BlockReport::default();
        if let Some(parser) = self.parsers.get_mut(shared.format) {
            parser.parse(text, &mut self.sink, &mut report)?;
            self.sink.flush()?;
        }
        let mut log = lock(&shared.log);
        log.add_progress(text.len());
        log.add_block(number, report, self.sink.take_ordered_samples())?;
        Ok(true)
    }
}

impl BlockFeed {
    /// Reads the next block; returns its number, or `None` at the end.
    fn next(&mut self, block: &mut Block) -> Result<Option<u64>, Error> {
        if self.ended || !(self.next)(block)? {
            return Ok(None);
        }
        self.handed_out += 1;
        Ok(Some(self.handed_out - 1))
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Merges the profiles of all workers.
fn merge_profiles(workers: Vec<Worker>) -> Result<Profile, Error> {
    let mut whole = Profile::default();
    for profile in workers.into_iter().map(|worker| worker.sink.into_profile()) {
        if whole.is_empty() {
            whole = profile;
        } else {
            whole.absorb(profile)?;
        }
    }
    Ok(whole)
}
