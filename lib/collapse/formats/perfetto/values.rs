//! The values that a trace may have, of which one becomes the weight.

use super::packet::field;
use super::tracks::TrackEvent;
use crate::Error;
use crate::collapse::document::Document;

/// Names of the values.
pub(super) const SAMPLES: &str = "samples";
pub(super) const HEAP_VALUES: [&str; 4] =
    ["unreleased-bytes", "allocated-bytes", "unreleased-count", "allocated-count"];
pub(super) const EVENT_STACKS: &str = "event-stacks";
pub(super) const SLICES: &str = "slices";

/// The kinds of data in a trace.
#[derive(Default)]
pub(super) struct Found {
    has_samples: bool,
    has_heaps: bool,
    has_event_stacks: bool,
    pub(super) has_weights: bool,
    has_slices: bool,
}

impl Found {
    pub(super) fn add(&mut self, number: u32, message: &[u8]) {
        match number {
            field::HEAP_PROFILE => self.has_heaps = true,
            field::PERF_SAMPLE | field::STREAMING_PROFILE | field::STACK_SAMPLE => self.has_samples = true,
            field::TRACK_EVENT => {
                let Some(event) = TrackEvent::parse(message) else { return };
                self.has_event_stacks |= event.has_stack();
                self.has_weights |= event.has_stack() && event.weight.is_some();
                self.has_slices |= event.is_slice();
            }
            _ => {}
        }
    }

    /// Returns the value that becomes the weight, or `None` if the trace has none. Without `--event` it is
    /// `default`, or the first one.
    pub(super) fn select_value(
        &self,
        default: Option<&str>,
        document: &mut Document<'_>,
    ) -> Result<Option<&'static str>, Error> {
        let mut names = Vec::new();
        names.extend(self.has_samples.then_some(SAMPLES));
        names.extend(HEAP_VALUES.iter().filter(|_| self.has_heaps));
        names.extend(self.has_event_stacks.then_some(EVENT_STACKS));
        names.extend(self.has_slices.then_some(SLICES));
        match names.is_empty() {
            true => Ok(None),
            false => {
                let default = names.iter().position(|name| Some(*name) == default).unwrap_or(0);
                Ok(Some(names[document.select_value(&names, default)?]))
            }
        }
    }
}
