//! The values that a trace may have, of which one becomes the weight.

use std::collections::BTreeSet;

use super::packet::field;
use super::tracks::TrackEvent;
use crate::Error;
use crate::collapse::document::Document;
use crate::protobuf::read_messages;

/// Names of the values.
pub(super) const SAMPLES: &str = "samples";
pub(super) const HEAP_VALUES: [&str; 4] =
    ["unreleased-bytes", "allocated-bytes", "unreleased-count", "allocated-count"];
pub(super) const EVENT_STACKS: &str = "event-stacks";
pub(super) const SLICES: &str = "slices";

/// The heap of malloc, which is the default one. Older traces do not name it.
const MALLOC: &[u8] = b"libc.malloc";

/// The kinds of data in a trace.
#[derive(Default)]
pub(super) struct Found {
    has_samples: bool,
    /// The names of the heaps.
    heaps: BTreeSet<Vec<u8>>,
    has_event_stacks: bool,
    pub(super) has_weights: bool,
    has_slices: bool,
}

/// The value that becomes the weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selected {
    pub(super) value: &'static str,
    /// The heap that counts, if there are several.
    pub(super) heap: Option<Vec<u8>>,
}

impl Selected {
    /// Returns true if the stacks of a heap count.
    pub(super) fn has_heap(&self, name: &[u8]) -> bool {
        self.heap.as_ref().is_none_or(|heap| heap == name)
    }

    /// Returns the name that `--event` takes.
    fn name(&self) -> String {
        match &self.heap {
            Some(heap) => format!("{}/{}", self.value, String::from_utf8_lossy(heap)),
            None => self.value.to_owned(),
        }
    }
}

impl Found {
    pub(super) fn add(&mut self, number: u32, message: &[u8]) {
        match number {
            field::HEAP_PROFILE => self.heaps.extend(read_messages(message, 5).map(|dump| heap_name(dump).to_vec())),
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
        default: Option<&Selected>,
        document: &mut Document<'_>,
    ) -> Result<Option<Selected>, Error> {
        let plain = |value| Selected { value, heap: None };
        let mut values = Vec::new();
        values.extend(self.has_samples.then(|| plain(SAMPLES)));
        values.extend(self.heap_values());
        values.extend(self.has_event_stacks.then(|| plain(EVENT_STACKS)));
        values.extend(self.has_slices.then(|| plain(SLICES)));
        if values.is_empty() {
            return Ok(None);
        }
        let names: Vec<String> = values.iter().map(Selected::name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let default = values.iter().position(|value| Some(value) == default).unwrap_or(0);
        let index = document.select_value(&names, default)?;
        Ok(Some(values.swap_remove(index)))
    }

    /// Returns the values of all heaps, those of malloc first.
    pub(super) fn heap_values(&self) -> Vec<Selected> {
        let mut heaps: Vec<Option<Vec<u8>>> = match self.heaps.len() {
            0 => Vec::new(),
            1 => vec![None],
            _ => self.heaps.iter().cloned().map(Some).collect(),
        };
        heaps.sort_by_key(|heap| heap.as_deref() != Some(MALLOC));
        let of_heap = |value| heaps.iter().map(move |heap| Selected { value, heap: heap.clone() });
        HEAP_VALUES.into_iter().flat_map(of_heap).collect()
    }
}

/// Returns the name of the heap of which a message is a dump.
pub(super) fn heap_name(dump: &[u8]) -> &[u8] {
    read_messages(dump, 11).next().filter(|name| !name.is_empty()).unwrap_or(MALLOC)
}
