//! Summary of an input: samples by event, lost samples, and the unit of the weights.

use super::filter::event::strip_modifiers;
use crate::profile::Weight;

/// The summary of an input.
#[derive(Clone, Debug, Default)]
pub(super) struct InputSummary {
    pub(super) events: Vec<EventCounts>,
    /// Number of samples lost while recording.
    pub(super) lost_samples: u64,
    pub(super) unit: Option<WeightUnit>,
}

/// The unit of the weights of an input.
#[derive(Clone, Debug)]
pub(super) struct WeightUnit {
    /// Name of the input for messages.
    pub(super) input: String,
    pub(super) name: String,
}

/// Number of samples of one event, and weight of those that count.
#[derive(Clone, Debug)]
pub(super) struct EventCounts {
    pub(super) name: Vec<u8>,
    /// True if the event is selected.
    pub(super) is_selected: bool,
    /// True if the reader selected the events, so that all have one unit.
    pub(super) is_unit_checked: bool,
    /// Number of samples of the event.
    pub(super) samples: u64,
    /// Number of samples that all conditions select.
    pub(super) counted_samples: u64,
    /// Weight of those.
    pub(super) weight: Weight,
    /// Number of those that weigh 1 because they have no period.
    pub(super) without_period: u64,
}

impl InputSummary {
    /// Returns the unit of the weights of several inputs, if all that have samples name the same one.
    pub(super) fn common_unit(summaries: &[Self]) -> Option<String> {
        let counted = summaries.iter().filter(|summary| summary.unit.is_some() || summary.counted().next().is_some());
        let mut units = counted.map(Self::unit_name);
        let first = units.next()??;
        units.all(|unit| unit.as_ref() == Some(&first)).then_some(first)
    }

    /// Returns the unit that the input names, or that of its only event.
    fn unit_name(&self) -> Option<String> {
        if let Some(unit) = &self.unit {
            return Some(unit.name.clone());
        }
        let mut units = self.counted().map(EventCounts::unit);
        let first = units.next().filter(|first| units.all(|unit| unit == *first))?;
        match first {
            b"" | b"weights" => None,
            b"nanoseconds" => Some("ns".to_owned()),
            event => Some(String::from_utf8_lossy(event).into_owned()),
        }
    }

    /// Returns the events that have samples which count.
    fn counted(&self) -> impl Iterator<Item = &EventCounts> {
        self.events.iter().filter(|event| event.counted_samples > 0)
    }
}

impl WeightUnit {
    /// Returns true if the weights count samples, or what is as good as one.
    pub(super) fn is_count(&self) -> bool {
        matches!(&self.name[..], "samples" | "threads" | "ticks" | "exceptions")
    }

    /// Returns true if weights of both units can be added up.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name || self.is_count() && other.is_count()
    }
}

impl EventCounts {
    /// Returns the unit of the weights: an empty name if each sample weighs 1, `weights` if the reader has checked that
    /// the events have one unit, else the event without its PMU and its modifiers, which names what is counted.
    pub(super) fn unit(&self) -> &[u8] {
        if self.weight == Weight::new(self.counted_samples) {
            return b"";
        }
        if self.is_unit_checked {
            return b"weights";
        }
        let name = strip_modifiers(&self.name);
        match name.split(|byte| *byte == b'/').nth(1).unwrap_or(name) {
            b"cpu-cycles" => b"cycles",
            b"cpu-clock" | b"task-clock" => b"nanoseconds",
            counted => counted,
        }
    }

    /// Returns true if some samples have a period and others do not, so that the weights are no sum of anything.
    pub(super) fn has_mixed_periods(&self) -> bool {
        (1..self.counted_samples).contains(&self.without_period) && self.weight != Weight::new(self.counted_samples)
    }

    /// Returns the same event with all counts zero.
    pub(super) fn without_samples(&self) -> Self {
        Self { samples: 0, counted_samples: 0, weight: Weight::ZERO, without_period: 0, ..self.clone() }
    }
}
