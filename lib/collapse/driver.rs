//! Reads inputs, spreads them over threads, and merges.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Event, EventChoice, FORMATS, Format, Options, Parser, Remarks, detect};
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::input::{Block, Blocks, Source};
use crate::profile::Profile;

/// How many events are listed one by one.
const SHOWN: usize = 8;

/// Folds all sources, in whatever formats they are, into one profile. A source that cannot be read is reported and the
/// others still count.
///
/// # Errors
/// [`Error::Overflow`]; with strict diagnostics the first malformed line; and if nothing at all could be made of the
/// input.
pub fn collapse(sources: &[Source], options: &Options, diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let threads = options.threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let mut workers: Vec<Worker> = (0..threads).map(|_| Worker::default()).collect();
    let mut failed = 0;
    for source in sources {
        match read(source, options, &mut workers, diagnostics) {
            Err(error @ (Error::Read { .. } | Error::Unreadable { .. })) => {
                diagnostics.fail(&error);
                failed += 1;
            }
            other => other?,
        }
    }
    diagnostics.end_progress();
    let events = merged_events(&workers);
    let profile = merged(workers)?;
    if profile.is_empty() && failed == sources.len() {
        return Err(Error::Said);
    }
    tell_events(&events, &options.event, &profile, diagnostics)?;
    if profile.is_empty() && diagnostics.skipped() > 0 {
        return Err(Error::Refused("no line of the input could be read as its format has it".to_owned()));
    }
    Ok(profile)
}

/// One thread's own: its profile, and what its parsers remember.
#[derive(Default)]
struct Worker {
    profile: Profile,
    parsers: [Option<Box<dyn Parser>>; FORMATS.len()],
    block: Block,
}

/// What the threads share while they read one input.
struct Shared<'a> {
    format: &'static Format,
    index: usize,
    feed: Mutex<Feed>,
    log: Mutex<Log<'a>>,
}

/// Where the blocks come from, one after the other.
struct Feed {
    input: Blocks,
    handed_out: u64,
    ended: bool,
}

/// Where the remarks go, in the order of the blocks.
struct Log<'a> {
    name: String,
    read: usize,
    lines: u64,
    next: u64,
    waiting: BTreeMap<u64, Remarks>,
    diagnostics: &'a mut Diagnostics,
}

fn read(
    source: &Source,
    options: &Options,
    workers: &mut [Worker],
    diagnostics: &mut Diagnostics,
) -> Result<(), Error> {
    let mut input = source.open()?;
    let Some(format) = detect::format(&mut input)? else { return Ok(()) };
    let index = FORMATS.iter().position(|known| std::ptr::eq(*known, format)).unwrap_or_default();
    let name = input.name().to_owned();
    let shared = Shared {
        format,
        index,
        feed: Mutex::new(Feed { input, handed_out: 0, ended: false }),
        log: Mutex::new(Log { name, read: 0, lines: 0, next: 0, waiting: BTreeMap::new(), diagnostics }),
    };
    let Some((first, others)) = workers.split_first_mut() else { return Ok(()) };
    first.parsers[index].get_or_insert_with(|| (format.parser)(options));
    while !others.is_empty() && !first.share(&shared, others) {
        if !first.step(&shared)? {
            return Ok(());
        }
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = others.iter_mut().map(|worker| scope.spawn(|| worker.run(&shared))).collect();
        let mut result = first.run(&shared);
        for thread in running {
            let other = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(other);
        }
        result
    })
}

impl Worker {
    /// Gives all others a parser, if the first one has seen enough for that.
    fn share(&self, shared: &Shared<'_>, others: &mut [Self]) -> bool {
        for other in others {
            if other.parsers[shared.index].is_none() {
                other.parsers[shared.index] = self.parsers[shared.index].as_ref().and_then(|parser| parser.fork());
            }
            if other.parsers[shared.index].is_none() {
                return false;
            }
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
        let Some(number) = lock(&shared.feed).next(&mut self.block, shared.format.cut)? else { return Ok(false) };
        let mut remarks = Remarks::default();
        if let Some(parser) = &mut self.parsers[shared.index] {
            parser.parse(&self.block, &mut self.profile, &mut remarks)?;
        }
        let mut log = lock(&shared.log);
        log.read += self.block.len();
        log.add(number, remarks)?;
        log.tell_progress();
        Ok(true)
    }
}

impl Feed {
    /// Fills the buffer with the next block and says its number.
    fn next(&mut self, block: &mut Block, cut: fn(&[u8]) -> Option<usize>) -> Result<Option<u64>, Error> {
        if self.ended || !self.input.next_into(block, cut)? {
            return Ok(None);
        }
        self.handed_out += 1;
        Ok(Some(self.handed_out - 1))
    }
}

impl Log<'_> {
    fn tell_progress(&mut self) {
        let Self { diagnostics, name, read, .. } = self;
        diagnostics.progress(|| format!("{name}: {} MB read", *read / 1_000_000));
    }

    /// Takes a block's remarks, and tells all those whose turn it is.
    fn add(&mut self, number: u64, remarks: Remarks) -> Result<(), Error> {
        self.waiting.insert(number, remarks);
        while let Some(remarks) = self.waiting.remove(&self.next) {
            for (line, what) in remarks.malformed {
                self.diagnostics.malformed(&self.name, self.lines + line, what)?;
            }
            self.lines += remarks.lines;
            self.next += 1;
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn merged(workers: Vec<Worker>) -> Result<Profile, Error> {
    let mut whole = Profile::default();
    for worker in workers {
        if whole.is_empty() {
            whole = worker.profile;
        } else {
            whole.merge(&worker.profile)?;
        }
    }
    Ok(whole)
}

/// All events, the one with the most samples first.
fn merged_events(workers: &[Worker]) -> Vec<Event> {
    let mut events: BTreeMap<&[u8], Event> = BTreeMap::new();
    for event in workers.iter().flat_map(|worker| &worker.parsers).flatten().flat_map(|parser| parser.events()) {
        let known = events.entry(&event.name).or_insert_with(|| Event { samples: 0, ..event.clone() });
        known.samples += event.samples;
    }
    let mut events: Vec<Event> = events.into_values().collect();
    events.sort_by_key(|event| std::cmp::Reverse(event.samples));
    events
}

/// Says which events were left out: never in silence.
fn tell_events(
    events: &[Event],
    choice: &EventChoice,
    profile: &Profile,
    diagnostics: &mut Diagnostics,
) -> Result<(), Error> {
    let list = |taken: bool| {
        let chosen: Vec<&Event> = events.iter().filter(|event| event.taken == taken).collect();
        let shown = chosen.iter().take(SHOWN).map(|event| format!("{} ({})", name(event), event.samples));
        let more = chosen.len().checked_sub(SHOWN + 1).map(|more| format!("{} more", more + 1));
        shown.chain(more).collect::<Vec<_>>().join(", ")
    };
    if !events.iter().any(|event| !event.taken) {
        return Ok(());
    }
    if let (EventChoice::Named(wanted), true) = (choice, profile.is_empty()) {
        let wanted = String::from_utf8_lossy(wanted);
        return Err(Error::Refused(format!("no sample is of event {wanted}; the input has {}", list(false))));
    }
    let hint = if *choice == EventChoice::First { "; --event chooses" } else { "" };
    diagnostics.warn(&format!("samples taken of event {}, left out: {}{hint}", list(true), list(false)));
    Ok(())
}

fn name(event: &Event) -> std::borrow::Cow<'_, str> {
    match &event.name[..] {
        b"" => "(not named)".into(),
        name => String::from_utf8_lossy(name),
    }
}
