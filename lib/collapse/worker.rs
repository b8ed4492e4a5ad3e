//! Parser threads: each has a sink and its parsers, and takes the next block of the input when it is done with one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::document::Document;
use super::format::ReadDocument;
use super::input_summary::InputSummary;
use super::ordered_log::OrderedLog;
use super::parser::{BlockReport, Parser};
use super::sink::{Sink, SinkMode};
use super::strays::RunEnd;
use crate::Error;
use crate::diagnostics::plural;
use crate::input::{Block, BlockSource};
use crate::parallel;

/// State of one parser thread: its sink and its parsers.
#[derive(Default)]
pub(super) struct Worker {
    pub(super) sink: Sink,
    /// Parsers by name of the format.
    pub(super) parsers: BTreeMap<&'static str, Box<dyn Parser>>,
    block: Block,
}

/// State that the threads share while they read one input.
pub(super) struct Shared<'a> {
    pub(super) format: &'static str,
    pub(super) feed: Mutex<BlockFeed>,
    pub(super) log: Mutex<OrderedLog<'a>>,
}

/// Hands out the blocks of an input in order.
pub(super) struct BlockFeed {
    next: BlockSource,
    handed_out: u64,
    ended: bool,
}

impl Worker {
    /// Returns the state of a thread that has read nothing.
    pub(super) fn new(mode: SinkMode) -> Self {
        Self { sink: Sink::new(mode), ..Self::default() }
    }

    /// Reads a whole document and adds its summary.
    pub(super) fn read_document(
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
        let missing = std::mem::take(&mut self.sink.missing_frames);
        let result = result.and_then(|()| {
            document.report_problems(missing, "frame", "not described by the input, shown as [unknown]")
        });
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
        let result = result.and_then(|()| match has_no_stacks {
            true => document.report_no_stacks(self.sink.has_weightless()),
            false => Ok(()),
        });
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
        let mut report = BlockReport::new(text.is_last());
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
    pub(super) fn new(next: BlockSource) -> Self {
        Self { next, handed_out: 0, ended: false }
    }

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

/// Reads an input that is parsed in blocks, and reports if it has no sample.
pub(super) fn read_samples(shared: &Shared<'_>, first: &mut Worker, others: &mut [Worker]) -> Result<(), Error> {
    let before = count_samples(shared.format, first, others);
    first.sink.begin_input();
    others.iter_mut().for_each(|worker| worker.sink.begin_input());
    read_blocks(shared, first, others)?;
    release_samples(shared, first, others)?;
    lock(&shared.log).end_strays(RunEnd::EndOfInput)?;
    let is_empty = first.sink.is_input_empty() && others.iter().all(|worker| worker.sink.is_input_empty());
    if is_empty && count_samples(shared.format, first, others) == before {
        lock(&shared.log).report_no_stacks("no stacks found")
    } else {
        lock(&shared.log).check_malformed_share()
    }
}

/// Adds the samples of an input that were held until the earliest time of all threads was known.
fn release_samples(shared: &Shared<'_>, first: &mut Worker, others: &mut [Worker]) -> Result<(), Error> {
    let workers = std::iter::once(&*first).chain(&*others);
    let Some(earliest) = workers.filter_map(|worker| worker.sink.earliest_time()).min() else { return Ok(()) };
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
