//! What the formats counted: samples of each event, and lost ones; and what is said of it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Counts, Event, EventChoice, Options};
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::profile::Weight;

/// How many events are listed one by one.
const SHOWN: usize = 8;

/// The lost samples, and what they weigh: each as much as the others in the mean.
pub(super) struct Lost {
    pub(super) samples: u64,
    pub(super) weight: Weight,
}

/// Says which events were left out: never in silence. Returns what was lost.
pub(super) fn tell(
    counts: &[Counts],
    options: &Options,
    nothing: bool,
    diagnostics: &mut Diagnostics,
) -> Result<Lost, Error> {
    tell_units(counts, diagnostics);
    let events = merged(counts);
    tell_left_out(&events, &options.event, nothing, diagnostics)?;
    if nothing && events.iter().any(|event| event.taken) {
        diagnostics.warn("no sample is left by --time, --comm and their like");
    }
    let samples = counts.iter().map(|counts| counts.lost).fold(0, u64::saturating_add);
    let counted: u64 = events.iter().map(|event| event.counted).sum();
    let weight = events.iter().try_fold(Weight::ZERO, |sum, event| sum.checked_add(event.weight));
    let mean = weight.ok_or(Error::Overflow)?.millionths() / 1_000_000 / u128::from(counted.max(1));
    let mean = mean.max(u128::from(counted == 0));
    let lost = mean.checked_mul(samples.into()).and_then(|lost| lost.checked_mul(1_000_000)).ok_or(Error::Overflow)?;
    Ok(Lost { samples, weight: Weight::from_millionths(lost) })
}

/// All events, the one with the most samples first.
fn merged(counts: &[Counts]) -> Vec<Event> {
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

fn tell_left_out(
    events: &[Event],
    choice: &EventChoice,
    nothing: bool,
    diagnostics: &mut Diagnostics,
) -> Result<(), Error> {
    if !events.iter().any(|event| !event.taken) {
        return Ok(());
    }
    let (taken, left_out) = (list(events, true), list(events, false));
    match choice {
        EventChoice::Named(wanted) if nothing && taken.is_empty() => {
            let wanted = String::from_utf8_lossy(wanted);
            return Err(Error::Invalid(format!("no sample is of event {wanted}; the input has {left_out}")));
        }
        EventChoice::First if taken.is_empty() => {
            diagnostics.warn(&format!("nothing is taken; the input has {left_out}; --event chooses"));
        }
        EventChoice::First => {
            diagnostics.warn(&format!("samples taken of event {taken}, left out: {left_out}; --event chooses"));
        }
        _ => diagnostics.warn(&format!("samples taken of event {taken}, left out: {left_out}")),
    }
    Ok(())
}

/// Says once that what is added up is not of one kind.
fn tell_units(counts: &[Counts], diagnostics: &mut Diagnostics) {
    let mut units = counts.iter().filter_map(|counts| counts.unit.as_ref());
    let Some(first) = units.next() else { return };
    if let Some(other) = units.find(|unit| unit.name != first.name) {
        diagnostics.warn(&format!(
            "{} weighs {} and {} weighs {}: their sum is neither",
            first.input, first.name, other.input, other.name
        ));
    }
}

fn list(events: &[Event], taken: bool) -> String {
    let chosen: Vec<&Event> = events.iter().filter(|event| event.taken == taken).collect();
    let shown = chosen.iter().take(SHOWN).map(|event| format!("{} ({})", name(event), event.samples));
    let more = chosen.len().checked_sub(SHOWN + 1).map(|more| format!("{} more", more + 1));
    shown.chain(more).collect::<Vec<_>>().join(", ")
}

fn name(event: &Event) -> Cow<'_, str> {
    match &event.name[..] {
        b"" => "(not named)".into(),
        name => String::from_utf8_lossy(name),
    }
}
