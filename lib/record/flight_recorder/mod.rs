//! Keeps the last part of a recording, and says when it is to be written: `--ring`.

pub mod condition;
mod function_filter;

use std::collections::VecDeque;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use self::condition::{Condition, ConditionCommand};
use self::function_filter::FunctionFilter;
use super::off_cpu::switch_pairing::LongBlock;
use super::usage::UsageMark;
use crate::perf::recording::Recording;
use crate::{Error, io_error_text};

/// Options of a recording of which only the last part is kept.
#[derive(Clone, Debug)]
pub struct RingOptions {
    /// The time that is kept.
    pub length: Duration,
    /// The condition on which it is written. `None` to write it at the end of the recording.
    pub condition: Option<Condition>,
    /// True if the recording goes on when it has been written.
    pub goes_on: bool,
}

/// The ring is divided into about this many slices.
const SLICES: u32 = 16;
/// The shortest and the longest slice.
const SLICE_BOUNDS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// Files are named by the second.
const FILE_NAME_INTERVAL: Duration = Duration::from_secs(1);

/// Decides when the last part of a recording is written.
#[derive(Debug)]
pub(super) struct FlightRecorder {
    options: RingOptions,
    /// The start of the oldest slice that is kept, and what the target had used then.
    oldest: (u64, UsageMark),
    /// The same of the other slices.
    newer: VecDeque<(u64, UsageMark)>,
    slice_start: Instant,
    /// Becomes readable with each SIGUSR2.
    requests: UnixStream,
    command: Option<ConditionCommand>,
    /// Selects long blocks, if only those in some functions are a reason.
    function_filter: Option<FunctionFilter>,
    /// The first reason to write what is kept. A SIGUSR2 replaces it.
    reason: Option<Reason>,
    last_written: Option<Instant>,
}

/// A reason to write what is kept.
#[derive(Debug)]
struct Reason {
    text: String,
    /// True if somebody asked for it.
    is_request: bool,
}

/// Returns a stream that becomes readable with each SIGUSR2 from now on.
pub(super) fn listen() -> Result<UnixStream, Error> {
    let (requests, sender) = UnixStream::pair().map_err(|error| cannot_listen(&error))?;
    requests.set_nonblocking(true).map_err(|error| cannot_listen(&error))?;
    signal_hook::low_level::pipe::register(libc::SIGUSR2, sender).map_err(|error| cannot_listen(&error))?;
    Ok(requests)
}

fn cannot_listen(error: &std::io::Error) -> Error {
    Error::System(format!("SIGUSR2: {}", io_error_text(error)))
}

impl FlightRecorder {
    /// Begins a recording at `time`. `mark` is the CPU time that the target had used by then.
    pub(super) fn begin(options: RingOptions, requests: UnixStream, time: u64, mark: UsageMark) -> Self {
        let (mut command, mut function_filter) = (None, None);
        match &options.condition {
            Some(Condition::Command(text)) => command = Some(ConditionCommand::new(text.clone())),
            Some(Condition::Block { function, .. }) => function_filter = function.clone().map(FunctionFilter::new),
            None => {}
        }
        let (oldest, newer) = ((time, mark), VecDeque::new());
        let (slice_start, reason, last_written) = (Instant::now(), None, None);
        Self { options, oldest, newer, slice_start, requests, command, function_filter, reason, last_written }
    }

    /// True if the present slice is long enough.
    pub(super) fn is_slice_over(&self) -> bool {
        let (least, most) = SLICE_BOUNDS;
        self.slice_start.elapsed() >= (self.options.length / SLICES).clamp(least, most)
    }

    /// Begins a slice at `time`. `oldest` is the start of the oldest slice that is kept.
    pub(super) fn start_slice(&mut self, time: u64, mark: UsageMark, oldest: u64) {
        self.newer.push_back((time, mark));
        while self.oldest.0 < oldest
            && let Some(next) = self.newer.pop_front()
        {
            self.oldest = next;
        }
        self.slice_start = Instant::now();
    }

    /// Returns the start of the oldest slice that is kept.
    pub(super) fn oldest_start(&self) -> u64 {
        self.oldest.0
    }

    /// Returns the start of the present slice.
    pub(super) fn newest_start(&self) -> u64 {
        self.newer.back().unwrap_or(&self.oldest).0
    }

    /// Returns what the target had used at the start of the oldest slice that is kept.
    pub(super) fn oldest_mark(&self) -> &UsageMark {
        &self.oldest.1
    }

    /// Returns the length from which on a block is a reason, in nanoseconds.
    pub(super) fn block_limit(&self) -> Option<u64> {
        match self.options.condition {
            Some(Condition::Block { limit, .. }) => Some(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)),
            _ => None,
        }
    }

    /// Returns the first of some long blocks that is a reason.
    pub(super) fn select_block(&mut self, blocks: &[LongBlock], recording: &Recording) -> Option<LongBlock> {
        let Some(filter) = &mut self.function_filter else { return blocks.first().copied() };
        blocks.iter().copied().find(|block| block.stack.is_some_and(|stack| filter.is_match(recording, stack)))
    }

    /// Notes that the condition has come true.
    pub(super) fn note(&mut self, text: String) {
        self.reason.get_or_insert(Reason { text, is_request: false });
    }

    /// Polls the pipe of signals and the command.
    pub(super) fn poll(&mut self) -> Result<(), Error> {
        self.read_requests();
        if let Some(command) = &mut self.command
            && command.poll()?
        {
            self.note_success();
        }
        Ok(())
    }

    fn read_requests(&mut self) {
        let mut requests = [0; 64];
        if self.requests.read(&mut requests).is_ok_and(|count| count > 0) {
            self.reason = Some(Reason { text: "SIGUSR2 received".to_owned(), is_request: true });
        }
    }

    /// Polls the command and the pipe of signals for the last time.
    pub(super) fn poll_last(&mut self) {
        self.read_requests();
        if self.reason.is_none() && self.command.as_mut().is_some_and(ConditionCommand::poll_last) {
            self.note_success();
        }
    }

    fn note_success(&mut self) {
        let Some(condition) = &self.options.condition else { return };
        self.note(format!("`{condition}` succeeded"));
    }

    /// Returns the reason to write now what is kept. After a file, a condition waits until `length` has passed, so that each
    /// moment is in one file. A request only waits for a file name of its own.
    pub(super) fn take_reason(&mut self) -> Option<String> {
        let since_last = self.last_written.map_or(Duration::MAX, |written| written.elapsed());
        let length = self.options.length;
        let reason =
            self.reason.take_if(|reason| since_last >= if reason.is_request { FILE_NAME_INTERVAL } else { length })?;
        if self.options.goes_on {
            self.last_written = Some(Instant::now());
        } else {
            // The end of the recording writes it.
            self.reason = Some(Reason { text: reason.text.clone(), ..reason });
        }
        Some(reason.text)
    }

    /// True if the recording goes on when what is kept has been written.
    pub(super) fn goes_on(&self) -> bool {
        self.options.goes_on
    }

    /// Returns the reason to write what is kept at the end of the recording, if there is one, or as an error why it is not to be
    /// written.
    pub(super) fn end(self) -> Result<Option<String>, String> {
        if let Some(last) = self.last_written
            && (self.reason.is_some() || self.options.condition.is_none())
        {
            // The last file needs a name of its own.
            thread::sleep(FILE_NAME_INTERVAL.saturating_sub(last.elapsed()));
        }
        match (self.reason, self.options.condition) {
            (Some(reason), _) => Ok(Some(reason.text)),
            (None, None) => Ok(None),
            (None, Some(condition)) if self.last_written.is_some() => {
                Err(format!("nothing to write at the end: `{condition}` has not come true since the last file"))
            }
            (None, Some(condition)) => Err(format!("nothing to write: `{condition}` did not come true")),
        }
    }
}
