//! Reports which events were counted and which were left out, and sums up lost samples.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::Error;
use crate::collapse::filter::args::EventChoice;
use crate::collapse::input_summary::{EventCounts, InputSummary, WeightUnit};
use crate::collapse::options::Options;
use crate::diagnostics::Diagnostics;
use crate::profile::Weight;

/// Number of events that a message names.
const LISTED_EVENTS: usize = 8;

/// Lost samples and their weight: the mean weight of the others for each.
pub(in crate::collapse) struct LostSamples {
    pub(in crate::collapse) count: u64,
    pub(in crate::collapse) weight: Weight,
}

/// Reports what was left out, and returns what was lost.
///
/// # Errors
/// [`Error::Overflow`], and [`Error::Invalid`] if the input has no sample of the chosen event, or if weights of different
/// units would be added up.
pub(in crate::collapse) fn report_selection(
    summaries: &[InputSummary],
    options: &Options,
    is_empty: bool,
    diagnostics: &mut Diagnostics,
) -> Result<LostSamples, Error> {
    check_input_units(summaries)?;
    let events = merge_events(summaries);
    check_periods(&events)?;
    check_units(&events, options)?;
    report_left_out(&events, &options.event, is_empty, diagnostics)?;
    let samples = summaries.iter().map(|summary| summary.lost_samples).fold(0, u64::saturating_add);
    let counted: u64 = events.iter().map(|event| event.counted_samples).sum();
    let weight = events.iter().try_fold(Weight::ZERO, |sum, event| sum.checked_add(event.weight));
    let mean = weight.ok_or(Error::Overflow)?.millionths() / 1_000_000 / u128::from(counted.max(1));
    let mean = mean.max(u128::from(counted == 0));
    let lost = mean.checked_mul(samples.into()).and_then(|lost| lost.checked_mul(1_000_000)).ok_or(Error::Overflow)?;
    Ok(LostSamples { count: samples, weight: Weight::from_millionths(lost) })
}

/// Checks that the weights of all selected events have one unit.
///
/// # Errors
/// [`Error::Invalid`] if they do not.
fn check_units(events: &[EventCounts], options: &Options) -> Result<(), Error> {
    let mut counted = events.iter().filter(|event| event.is_selected && event.counted_samples > 0);
    let Some(first) = counted.next() else { return Ok(()) };
    if counted.all(|event| event.unit() == first.unit()) {
        return Ok(());
    }
    let option = if options.event == EventChoice::All { "--event all: " } else { "" };
    let events = list_events(events, true);
    Err(Error::Invalid(format!(
        "{option}the weights of the events have different units: {events}; name one of them with --event, or count samples \
         with --weight samples"
    )))
}

/// Checks that all samples of an event have a period, or none.
///
/// # Errors
/// [`Error::Invalid`] for the first event of which only some have one: the others would weigh 1.
fn check_periods(events: &[EventCounts]) -> Result<(), Error> {
    let Some(event) = events.iter().find(|event| event.has_mixed_periods()) else { return Ok(()) };
    let EventCounts { counted_samples, without_period, .. } = event;
    Err(Error::Invalid(format!(
        "event {}: {without_period} of {counted_samples} samples have no period, the others have; use --weight samples",
        event_name(event)
    )))
}

/// Merges equal events; the one with the most samples comes first.
fn merge_events(summaries: &[InputSummary]) -> Vec<EventCounts> {
    let mut events: BTreeMap<&[u8], EventCounts> = BTreeMap::new();
    for event in summaries.iter().flat_map(|summary| &summary.events) {
        let sum = events.entry(&event.name).or_insert_with(|| event.without_samples());
        sum.samples += event.samples;
        sum.counted_samples += event.counted_samples;
        sum.without_period += event.without_period;
        sum.weight = sum.weight.checked_add(event.weight).unwrap_or(sum.weight);
    }
    let mut events: Vec<EventCounts> = events.into_values().collect();
    events.sort_by_key(|event| std::cmp::Reverse(event.samples));
    events
}

/// Reports the events whose samples were left out.
fn report_left_out(
    events: &[EventCounts],
    choice: &EventChoice,
    is_empty: bool,
    diagnostics: &mut Diagnostics,
) -> Result<(), Error> {
    if !events.iter().any(|event| !event.is_selected) {
        return Ok(());
    }
    let (selected, left_out) = (list_events(events, true), list_events(events, false));
    match choice {
        EventChoice::Named(wanted) if is_empty && selected.is_empty() => {
            let wanted = String::from_utf8_lossy(wanted);
            return Err(Error::Invalid(format!("--event {wanted}: no sample of this event; the input has {left_out}")));
        }
        EventChoice::First if is_empty && selected.is_empty() => {
            return Err(Error::Invalid(format!(
                "no sample is of the default event; the input has {left_out}; use --event to select one, \
                 or all"
            )));
        }
        EventChoice::First if selected.is_empty() => {
            diagnostics.warn(&format!("no event is selected; the input has {left_out}; use --event to select"));
        }
        EventChoice::First => {
            diagnostics
                .warn(&format!("using samples of event {selected}; left out: {left_out}; use --event to select"));
        }
        _ => diagnostics.warn(&format!("using samples of event {selected}; left out: {left_out}")),
    }
    Ok(())
}

/// Checks that the weights of all inputs have one unit. The units of events are compared with those that inputs name, and
/// with each other by [`check_units`].
///
/// # Errors
/// [`Error::Invalid`] if they do not.
fn check_input_units(summaries: &[InputSummary]) -> Result<(), Error> {
    let mut units = summaries.iter().filter_map(|summary| summary.unit.as_ref());
    let Some(first) = units.next() else { return Ok(()) };
    let other = units.find(|unit| !unit.is_same(first)).map(|unit| format!("{} in {}", unit.name, unit.input));
    let Some(other) = other.or_else(|| describe_other_event(first, summaries)) else { return Ok(()) };
    Err(Error::Invalid(format!(
        "weights of different units cannot be added up: {} in {}, {other}; fold each input alone, select values of one unit \
         with --event, or count samples with --weight samples",
        first.name, first.input
    )))
}

/// Describes the first event whose weights have another unit than an input without events names.
fn describe_other_event(unit: &WeightUnit, summaries: &[InputSummary]) -> Option<String> {
    let without_unit = summaries.iter().filter(|summary| summary.unit.is_none());
    let mut events =
        without_unit.flat_map(|summary| &summary.events).filter(|event| event.is_selected && event.counted_samples > 0);
    let event = events.find(|event| match event.unit() {
        b"" => !unit.is_count(),
        other => other != unit.name.as_bytes(),
    })?;
    let of = if event.unit().is_empty() { "samples" } else { "weights" };
    Some(format!("{of} of event {}", event_name(event)))
}

/// Lists the selected events, or those that are not.
fn list_events(events: &[EventCounts], is_selected: bool) -> String {
    let chosen: Vec<&EventCounts> = events.iter().filter(|event| event.is_selected == is_selected).collect();
    let shown = chosen.iter().take(LISTED_EVENTS).map(|event| format!("{} ({})", event_name(event), event.samples));
    let more = chosen.len().checked_sub(LISTED_EVENTS + 1).map(|more| format!("{} more", more + 1));
    shown.chain(more).collect::<Vec<_>>().join(", ")
}

fn event_name(event: &EventCounts) -> Cow<'_, str> {
    match &event.name[..] {
        b"" => "(unnamed)".into(),
        name => String::from_utf8_lossy(name),
    }
}
