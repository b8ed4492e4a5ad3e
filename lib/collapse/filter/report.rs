//! Reports which events were counted and which were left out, and sums up lost samples.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::Error;
use crate::collapse::{Counts, Event, EventChoice, Options};
use crate::diagnostics::Diagnostics;
use crate::profile::Weight;

/// Number of events that a message names.
const LISTED_EVENTS: usize = 8;

/// Lost samples and their weight: the mean weight of the others for each.
pub(in crate::collapse) struct Lost {
    pub(in crate::collapse) samples: u64,
    pub(in crate::collapse) weight: Weight,
}

/// Reports what was left out, and returns what was lost.
///
/// # Errors
/// [`Error::Overflow`], and [`Error::Invalid`] if the input has no sample of the chosen event.
pub(in crate::collapse) fn report(
    counts: &[Counts],
    options: &Options,
    nothing: bool,
    diagnostics: &mut Diagnostics,
) -> Result<Lost, Error> {
    report_units(counts, diagnostics);
    let events = merge_events(counts);
    report_left_out(&events, &options.event, nothing, diagnostics)?;
    if nothing && events.iter().any(|event| event.taken) {
        diagnostics.warn("no sample matches --time, --comm and similar options");
    }
    let samples = counts.iter().map(|counts| counts.lost).fold(0, u64::saturating_add);
    let counted: u64 = events.iter().map(|event| event.counted).sum();
    let weight = events.iter().try_fold(Weight::ZERO, |sum, event| sum.checked_add(event.weight));
    let mean = weight.ok_or(Error::Overflow)?.millionths() / 1_000_000 / u128::from(counted.max(1));
    let mean = mean.max(u128::from(counted == 0));
    let lost = mean.checked_mul(samples.into()).and_then(|lost| lost.checked_mul(1_000_000)).ok_or(Error::Overflow)?;
    Ok(Lost { samples, weight: Weight::from_millionths(lost) })
}

/// Merges equal events; the one with the most samples comes first.
fn merge_events(counts: &[Counts]) -> Vec<Event> {
    let mut events: BTreeMap<&[u8], Event> = BTreeMap::new();
    for event in counts.iter().flat_map(|counts| &counts.events) {
        let nothing = || Event { samples: 0, counted: 0, weight: Weight::ZERO, ..event.clone() };
        let sum = events.entry(&event.name).or_insert_with(nothing);
        sum.samples += event.samples;
        sum.counted += event.counted;
        sum.weight = sum.weight.checked_add(event.weight).unwrap_or(sum.weight);
    }
    let mut events: Vec<Event> = events.into_values().collect();
    events.sort_by_key(|event| std::cmp::Reverse(event.samples));
    events
}

/// Reports the events whose samples were left out.
fn report_left_out(
    events: &[Event],
    choice: &EventChoice,
    nothing: bool,
    diagnostics: &mut Diagnostics,
) -> Result<(), Error> {
    if !events.iter().any(|event| !event.taken) {
        return Ok(());
    }
    let (taken, left_out) = (list_events(events, true), list_events(events, false));
    match choice {
        EventChoice::Named(wanted) if nothing && taken.is_empty() => {
            let wanted = String::from_utf8_lossy(wanted);
            return Err(Error::Invalid(format!("--event: no sample of event {wanted}; the input has {left_out}")));
        }
        EventChoice::First if taken.is_empty() => {
            diagnostics.warn(&format!("no event is selected; the input has {left_out}; use --event to select"));
        }
        EventChoice::First => {
            diagnostics.warn(&format!("using samples of event {taken}; left out: {left_out}; use --event to select"));
        }
        _ => diagnostics.warn(&format!("using samples of event {taken}; left out: {left_out}")),
    }
    Ok(())
}

/// Warns once if weights of different units are added up.
fn report_units(counts: &[Counts], diagnostics: &mut Diagnostics) {
    let mut units = counts.iter().filter_map(|counts| counts.unit.as_ref());
    let Some(first) = units.next() else { return };
    if let Some(other) = units.find(|unit| unit.name != first.name) {
        diagnostics.warn(&format!(
            "adding up different units: {} in {}, {} in {}",
            first.name, first.input, other.name, other.input
        ));
    }
}

/// Lists the events that were taken, or those that were not.
fn list_events(events: &[Event], taken: bool) -> String {
    let chosen: Vec<&Event> = events.iter().filter(|event| event.taken == taken).collect();
    let shown = chosen.iter().take(LISTED_EVENTS).map(|event| format!("{} ({})", event_name(event), event.samples));
    let more = chosen.len().checked_sub(LISTED_EVENTS + 1).map(|more| format!("{} more", more + 1));
    shown.chain(more).collect::<Vec<_>>().join(", ")
}

fn event_name(event: &Event) -> Cow<'_, str> {
    match &event.name[..] {
        b"" => "(unnamed)".into(),
        name => String::from_utf8_lossy(name),
    }
}
