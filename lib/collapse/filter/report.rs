//! Reports which events were counted and which were left out, and sums up lost samples.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::Error;
use crate::collapse::filter::args::EventChoice;
use crate::collapse::input_summary::{EventCounts, InputSummary};
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
/// [`Error::Overflow`], and [`Error::Invalid`] if the input has no sample of the chosen event.
pub(in crate::collapse) fn report_selection(
    summaries: &[InputSummary],
    options: &Options,
    is_empty: bool,
    diagnostics: &mut Diagnostics,
) -> Result<LostSamples, Error> {
    report_units(summaries, diagnostics);
    let events = merge_events(summaries);
    check_units(&events, options, diagnostics)?;
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
/// [`Error::Invalid`] with `--event all` if they do not. Events that were selected by name or by default in different
/// inputs are only reported.
fn check_units(events: &[EventCounts], options: &Options, diagnostics: &mut Diagnostics) -> Result<(), Error> {
    let mut counted = events.iter().filter(|event| event.is_selected && event.counted_samples > 0);
    let Some(first) = counted.next() else { return Ok(()) };
    if counted.all(|event| event.unit() == first.unit()) {
        return Ok(());
    }
    let what = format!("the weights of the events have different units: {}", list_events(events, true));
    if options.event == EventChoice::All {
        let remedy = "name one of them with --event, or count samples with --weight samples";
        return Err(Error::Invalid(format!("--event all: {what}; {remedy}")));
    }
    diagnostics.warn(&format!("{what}; use --event to select, or --weight samples"));
    Ok(())
}

/// Merges equal events; the one with the most samples comes first.
fn merge_events(summaries: &[InputSummary]) -> Vec<EventCounts> {
    let mut events: BTreeMap<&[u8], EventCounts> = BTreeMap::new();
    for event in summaries.iter().flat_map(|summary| &summary.events) {
        let sum = events.entry(&event.name).or_insert_with(|| event.without_samples());
        sum.samples += event.samples;
        sum.counted_samples += event.counted_samples;
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

/// Warns once if weights of different units are added up. The units of events are compared with those that inputs name, and
/// with each other by [`check_units`].
fn report_units(summaries: &[InputSummary], diagnostics: &mut Diagnostics) {
    let mut units = summaries.iter().filter_map(|summary| summary.unit.as_ref());
    let Some(first) = units.next() else { return };
    let other = units.find(|unit| unit.name != first.name).map(|unit| format!("{} in {}", unit.name, unit.input));
    let other = other.or_else(|| describe_other_event(&first.name, summaries));
    if let Some(other) = other {
        diagnostics.warn(&format!("adding up different units: {} in {}, {other}", first.name, first.input));
    }
}

/// Describes the first event whose weights have another unit than an input without events names.
fn describe_other_event(unit: &str, summaries: &[InputSummary]) -> Option<String> {
    let has_counted = |event: &&EventCounts| event.is_selected && event.counted_samples > 0;
    if summaries.iter().any(|summary| summary.unit.is_some() && summary.events.iter().any(|event| has_counted(&event)))
    {
        return None;
    }
    let mut events = summaries.iter().flat_map(|summary| &summary.events).filter(has_counted);
    let event = events.find(|event| match event.unit() {
        b"" => unit != "samples",
        other => other != unit.as_bytes(),
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
