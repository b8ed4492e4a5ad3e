//! Reads inputs, distributes blocks over threads, and merges the results.

use std::sync::Mutex;

use super::detect::{self, Detected};
use super::document::{ALL_WEIGHTLESS, Document};
use super::filter::report::{self, LostSamples};
use super::filter::sample::filters_samples;
use super::format::FormatReader;
use super::formats;
use super::input_summary::{InputSummary, WeightUnit};
use super::options::Options;
use super::ordered_log::{OrderedLog, OrderedSampleWriter};
use super::sink::SinkMode;
use super::timeline::Timeline;
use super::useless_options;
use super::worker::{BlockFeed, Shared, Worker, read_samples};
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::{LineKind, no_stacks};
use crate::input::Source;
use crate::markers;
use crate::parallel::cores;
use crate::profile::{Profile, SampleWeight, Weights};

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
    // A comparison may find nothing on either side.
    if !profile.is_empty() && !profile.is_differential() && profile.total() == Weights::default() {
        return Err(Error::Invalid(ALL_WEIGHTLESS.to_owned()));
    }
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
    let mut workers: Vec<Worker> = (0..threads).map(|_| Worker::new(mode)).collect();
    let (mut failed, mut blank, mut summaries, mut kind) = (0, Vec::new(), Vec::new(), None);
    for source in sources {
        let found = &mut summaries;
        match read_source(source, options, &mut kind, &mut workers, found, diagnostics, in_order.as_deref_mut()) {
            Ok(SourceRead::Blank) => blank.push(source.name()),
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
    for name in blank.iter().filter(|_| !is_empty) {
        diagnostics.warn(&format!("{name}: no stacks found"));
    }
    summaries.extend(workers.iter().flat_map(|worker| worker.parsers.values()).map(|parser| parser.summary()));
    let lost = report::report_selection(&summaries, options, is_empty, diagnostics)?;
    let has_left_out = workers.iter().any(|worker| worker.sink.has_ever_left_out());
    let has_selected = summaries.iter().flat_map(|summary| &summary.events).any(|event| event.is_selected);
    let are_weightless = workers.iter().any(|worker| worker.sink.has_ever_been_weightless());
    if is_empty && are_weightless && !has_left_out && has_selected {
        return Err(Error::Invalid(format!("{ALL_WEIGHTLESS}; --weight samples counts them")));
    }
    let is_selection = filters_samples(options);
    if is_empty && is_selection && (has_left_out || has_selected) {
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
    if is_empty && !(has_samples && is_selection) && !has_left_out && lost.count == 0 {
        // Warnings named the inputs that have no stacks, unless they are blank.
        let is_reported = blank.len() + failed < sources.len() && diagnostics.verbosity() >= 0;
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
    useless_options::report(input.name(), format, options, diagnostics)?;
    let needs_times = workers.iter().any(|worker| worker.sink.needs_times());
    let name = input.name().to_owned();
    useless_options::check_times(&name, format, input.head()?, options, needs_times)?;
    // A heat map weighs samples by 1 unless it is told otherwise.
    let needs_samples = options.weight == SampleWeight::Samples && !needs_times;
    let log = OrderedLog::new(name.clone(), found, diagnostics, in_order).with_lines(input.skipped_lines());
    let log = log.with_text_before(text_before)?;
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
            let feed = Mutex::new(BlockFeed::new(input.into_block_source(find_boundary)));
            let log = Mutex::new(log.for_blocks(format.name));
            read_samples(&Shared { format: format.name, feed, log }, first, others)?;
            if needs_samples && !format.counts_samples {
                useless_options::warn_of_sums(&name, None, diagnostics);
            }
        }
        FormatReader::Lines(read) | FormatReader::Bytes(read) => {
            let document = Document::new(format.name, source, input.read_ahead(), options, log);
            first.read_document(read, document, summaries)?;
            let unit = summaries.last().and_then(|summary| summary.unit.as_ref());
            if needs_samples && !unit.map_or(format.counts_samples, WeightUnit::is_count) {
                useless_options::warn_of_sums(&name, unit, diagnostics);
            }
        }
    }
    Ok(SourceRead::Stacks)
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
