//! The critical paths of spans, such as requests: what each was for, from its end back to its start.

use std::ops::Range;
use std::path::Path;

use super::tracker::add_charge;
use super::{Life, ThreadLogs};
use crate::collapse::{RecordedSpan, Spans};
use crate::diagnostics::{Diagnostics, plural};
use crate::input::Source;
use crate::perf::export::perf_script::Clock;
use crate::perf::recording::Recording;
use crate::record::clock;

impl ThreadLogs {
    /// Charges the path of each span in a file that lies within the recording, below a root frame with its name. The charges of a
    /// span add up to its duration. Returns warnings about others.
    ///
    /// # Errors
    /// The reason why there is no path.
    pub fn charge_spans(
        &self,
        file: &Path,
        time: Range<u64>,
        recording: &mut Recording,
    ) -> Result<Vec<String>, String> {
        // It is written while the recording goes on.
        let mut diagnostics = Diagnostics::silent();
        let spans = Spans::load(&Source::File(file.to_owned()), &mut diagnostics).map_err(|error| error.to_string())?;
        let unix_offset = clock::offset_from_monotonic(Clock::Realtime);
        let (mut charged, mut other_threads, mut other_times) = (0_u64, 0_u64, 0_u64);
        for span in spans.recorded(unix_offset) {
            match self.find_life(&span, &time) {
                Some(Some(life)) => {
                    let charges = self.charge_path(life, life.begin);
                    charges.iter().for_each(|charge| add_charge(charge, Some(span.name), recording));
                    charged += 1;
                }
                Some(None) => other_times += 1,
                None => other_threads += 1,
            }
        }
        if charged == 0 {
            return Err(format!(
                "no span lies within the recording of its thread: {} of other threads, {} of other times; tid must be the thread \
                 id that gettid returns, and times those of CLOCK_MONOTONIC, or since 1970 in OpenTelemetry traces",
                plural(other_threads, "span"),
                plural(other_times, "span")
            ));
        }
        let left_out = other_threads + other_times;
        let left_out = (left_out > 0).then(|| {
            format!("{} left out that are not within the recording of their threads", plural(left_out, "span"))
        });
        let malformed = diagnostics.skipped_lines();
        let malformed =
            (malformed > 0).then(|| format!("{}: skipped {}", file.display(), plural(malformed, "malformed line")));
        Ok(left_out.into_iter().chain(malformed).collect())
    }

    /// Returns the time of a span as that of its thread; `None` within if it is not within the recorded life of the thread, and
    /// without if there is no such thread.
    fn find_life(&self, span: &RecordedSpan<'_>, time: &Range<u64>) -> Option<Option<Life>> {
        let life = self.life_at(span.tid, span.end, time.end)?;
        let known = life.begin.max(time.start).max(self.known_since)..=life.end;
        let is_known = known.contains(&span.start) && known.contains(&span.end) && span.start < span.end;
        Some(is_known.then_some(Life { tid: span.tid, begin: span.start, end: span.end }))
    }
}
