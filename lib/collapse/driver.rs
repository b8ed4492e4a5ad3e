//! Reads inputs, spreads them over threads, and merges.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::document::Document;
use super::events::Lost;
use super::formats::{FormatReader, ReadDocument};
use super::log::{InOrder, Log};
use super::sink::{Keep, Sink};
use super::timeline::Timeline;
use super::{Counts, Options, Parser, Remarks, detect, events};
use crate::Error;
use crate::bytes::BOM;
use crate::diagnostics::Diagnostics;
use crate::folded::Kind;
use crate::input::{Block, BlockSource, Source};
use crate::markers;
use crate::parallel::{self, cores};
use crate::profile::{Profile, Weights};

/// More threads than any machine has use for; each takes memory.
const MOST_THREADS: usize = 1024;

/// Folds all sources, in whatever formats they are, into one profile. A source that cannot be read is reported and the
/// others still count.
///
/// # Errors
/// [`Error::Overflow`]; with strict diagnostics the first malformed line; and if nothing at all could be made of the
/// input.
pub fn collapse(sources: &[Source], options: &Options, diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let (workers, lost) = read_all(sources, options, diagnostics, Keep::Sums, None)?;
    let threads = working(options);
    let mut profile = merged(workers)?;
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

/// Writes the stacks of all samples in the order of the input as folded text, equal neighbours added up.
///
/// # Errors
/// As [`collapse`], and [`Error::Write`].
pub fn collapse_in_order(
    sources: &[Source],
    options: &Options,
    diagnostics: &mut Diagnostics,
    output: &mut crate::output::Output,
) -> Result<(), Error> {
    let mut in_order = InOrder::new(output);
    let (_, lost) = read_all(sources, options, diagnostics, Keep::Order, Some(&mut in_order))?;
    in_order.finish(lost.weight)
}

/// Folds all sources, and keeps each sample's time.
///
/// # Errors
/// As [`collapse`], and [`Error::Invalid`] if no sample has a time.
pub fn collapse_in_time(
    sources: &[Source],
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Result<Timeline, Error> {
    let (workers, lost) = read_all(sources, options, diagnostics, Keep::Times, None)?;
    let mut timeline = Timeline::merged(workers.into_iter().map(|worker| worker.sink))?;
    timeline.lost = lost.samples;
    timeline.tell(diagnostics)?;
    Ok(timeline)
}

/// One thread's own: where its samples go, and what its parsers remember.
#[derive(Default)]
pub(super) struct Worker {
    sink: Sink,
    /// By the format's name.
    parsers: BTreeMap<&'static str, Box<dyn Parser>>,
    block: Block,
}

/// What the threads share while they read one input.
struct Shared<'a> {
    format: &'static str,
    feed: Mutex<Feed>,
    log: Mutex<Log<'a>>,
}

/// Where the blocks come from, one after the other.
struct Feed {
    next: BlockSource,
    handed_out: u64,
    ended: bool,
}

fn read_all(
    sources: &[Source],
    options: &Options,
    diagnostics: &mut Diagnostics,
    keep: Keep,
    mut in_order: Option<&mut InOrder<'_>>,
) -> Result<(Vec<Worker>, Lost), Error> {
    let threads = asked_for(options).unwrap_or_else(|| parsing(sources));
    let worker = || Worker { sink: Sink::new(keep), ..Worker::default() };
    let mut workers: Vec<Worker> = (0..threads).map(|_| worker()).collect();
    let (mut failed, mut counts, mut kind) = (0, Vec::new(), None);
    for source in sources {
        match read(source, options, &mut kind, &mut workers, diagnostics, in_order.as_deref_mut()) {
            Ok(counted) => counts.extend(counted),
            Err(error @ (Error::Read { .. } | Error::Unreadable { .. })) => {
                diagnostics.fail(&error);
                failed += 1;
            }
            Err(other) => return Err(other),
        }
    }
    diagnostics.clear_progress();
    let nothing = workers.iter().all(|worker| worker.sink.is_empty());
    if nothing && failed == sources.len() {
        return Err(Error::AlreadyReported);
    }
    counts.extend(workers.iter().flat_map(|worker| worker.parsers.values()).map(|parser| parser.counts()));
    let lost = events::tell(&counts, options, nothing, diagnostics)?;
    options.spans.iter().for_each(|spans| spans.tell(diagnostics));
    if nothing && diagnostics.skipped_lines() > 0 {
        return Err(Error::Invalid("no line of the input could be read as its format has it".to_owned()));
    }
    Ok((workers, lost))
}

/// How many threads parse, if nothing is asked for: one a core, but for that which decompresses or writes what we read.
fn parsing(sources: &[Source]) -> usize {
    let is_made = |source: &Source| source.is_stream() || source.is_compressed();
    if sources.iter().any(is_made) { (cores() - 1).max(1) } else { cores() }
}

/// How many threads work on what was read.
pub(super) fn working(options: &Options) -> usize {
    asked_for(options).unwrap_or_else(cores)
}

fn asked_for(options: &Options) -> Option<usize> {
    options.threads.map(|threads| threads.get().min(MOST_THREADS))
}

/// Reads one source, which must have as many weights a stack as those before it. What a document counts is returned;
/// parsers go on counting.
fn read(
    source: &Source,
    options: &Options,
    kind: &mut Option<Kind>,
    workers: &mut [Worker],
    diagnostics: &mut Diagnostics,
    in_order: Option<&mut InOrder<'_>>,
) -> Result<Option<Counts>, Error> {
    let mut input = source.open_without_thread()?;
    let found = detect::format(&mut input, options);
    let Ok(Some(format)) = found else {
        // Of what cannot be read further there may be too little.
        input.check_failure()?;
        return found.map(|_| None);
    };
    if let Some(found) = format.weight_kind(input.head()?) {
        found.agrees(*kind, input.name())?;
        *kind = Some(found);
    }
    if options.ask_for_origin() && !format.has_times {
        let what = "samples have no time, thread or CPU here, so that --time, --comm, --span and their like do nothing";
        diagnostics.warn(&format!("{}: {what}", input.name()));
    }
    let log = Log::new(input.name().to_owned(), diagnostics, in_order);
    let Some((first, others)) = workers.split_first_mut() else { return Ok(None) };
    match format.reader {
        FormatReader::Blocks { find_boundary, new_parser } => {
            first.parsers.entry(format.name).or_insert_with(|| new_parser(options));
            let feed = Mutex::new(Feed { next: input.into_block_source(find_boundary), handed_out: 0, ended: false });
            read_samples(&Shared { format: format.name, feed, log: Mutex::new(log) }, first, others).map(|()| None)
        }
        FormatReader::Lines(read) | FormatReader::Bytes(read) => {
            first.read(read, Document::new(source, input.read_ahead(), options, log)).map(Some)
        }
    }
}

fn read_samples(shared: &Shared<'_>, first: &mut Worker, others: &mut [Worker]) -> Result<(), Error> {
    let seen = |first: &Worker, others: &[Worker]| {
        let all = std::iter::once(first).chain(others);
        all.map(|worker| worker.seen(shared.format)).fold(0, u64::saturating_add)
    };
    let before = seen(first, others);
    first.sink.begin();
    others.iter_mut().for_each(|worker| worker.sink.begin());
    read_blocks(shared, first, others)?;
    let idle = first.sink.is_idle() && others.iter().all(|worker| worker.sink.is_idle());
    if idle && seen(first, others) == before { lock(&shared.log).tell_nothing() } else { Ok(()) }
}

fn read_blocks(shared: &Shared<'_>, first: &mut Worker, others: &mut [Worker]) -> Result<(), Error> {
    while !others.is_empty() && !first.share(shared, others) {
        if !first.step(shared)? {
            return Ok(());
        }
    }
    let threads = 1 + others.len();
    let workers = std::iter::once(first).chain(others);
    parallel::map(workers, threads, |worker| worker.run(shared)).into_iter().collect()
}

impl Worker {
    /// Reads a whole document and returns what it counted.
    fn read(&mut self, read: ReadDocument, mut document: Document<'_>) -> Result<Counts, Error> {
        self.sink.begin();
        let result = read(&mut document, &mut self.sink);
        let idle = self.sink.is_idle();
        let result = result.and_then(|()| if idle { document.tell_nothing() } else { Ok(()) });
        self.sink.flush()?;
        let (counts, mut log) = document.finish();
        log.add(0, Remarks::default(), self.sink.take_runs())?;
        result.map(|()| counts)
    }

    /// How many samples its parser of a format knows of, those that were not taken and the lost ones too.
    fn seen(&self, format: &str) -> u64 {
        let Some(counts) = self.parsers.get(format).map(|parser| parser.counts()) else { return 0 };
        counts.events.iter().map(|event| event.samples).fold(counts.lost, u64::saturating_add)
    }

    /// Gives all others a parser, if this one has seen enough for that.
    fn share(&self, shared: &Shared<'_>, others: &mut [Self]) -> bool {
        for other in others {
            if other.parsers.contains_key(shared.format) {
                continue;
            }
            let Some(parser) = self.parsers.get(shared.format).and_then(|parser| parser.fork()) else { return false };
            other.parsers.insert(shared.format, parser);
        }
        true
    }

    /// Parses until the input ends.
    fn run(&mut self, shared: &Shared<'_>) -> Result<(), Error> {
        while self.step(shared).inspect_err(|_| lock(&shared.feed).ended = true)? {}
        Ok(())
    }

    /// Parses one block; `false` at the end.
    fn step(&mut self, shared: &Shared<'_>) -> Result<bool, Error> {
        let Some(number) = lock(&shared.feed).next(&mut self.block)? else { return Ok(false) };
        let text = self.block.strip_prefix(BOM).filter(|_| number == 0).unwrap_or(&self.block);
        let mut remarks = Remarks::default();
        if let Some(parser) = self.parsers.get_mut(shared.format) {
            parser.parse(text, &mut self.sink, &mut remarks)?;
            self.sink.flush()?;
        }
        let mut log = lock(&shared.log);
        log.progress(text.len());
        log.add(number, remarks, self.sink.take_runs())?;
        Ok(true)
    }
}

impl Feed {
    /// Fills the buffer with the next block and says its number.
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

fn merged(workers: Vec<Worker>) -> Result<Profile, Error> {
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
