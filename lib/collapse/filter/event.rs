//! Selects samples by event, and counts the samples of each event.

use crate::collapse::filter::args::EventChoice;
use crate::collapse::input_summary::EventCounts;
use crate::profile::Weight;
use crate::profile::byte_map::{ByteMap, Key};

/// The events of an input, with the number of their samples and whether they are selected.
pub(in crate::collapse) struct EventFilter {
    choice: EventChoice,
    /// The names of the selected events, if they do not follow from the choice.
    names: Option<Vec<Vec<u8>>>,
    seen: Vec<EventCounts>,
    numbers: ByteMap<usize>,
    last: usize,
}

impl EventFilter {
    pub(in crate::collapse) fn new(choice: EventChoice) -> Self {
        Self { choice, names: None, seen: Vec::new(), numbers: ByteMap::default(), last: 0 }
    }

    /// Returns a filter that selects the events of these names, whose weights must have one unit.
    pub(in crate::collapse) fn for_names(names: Vec<Vec<u8>>) -> Self {
        Self { names: Some(names), ..Self::new(EventChoice::All) }
    }

    /// Returns a filter with the same choice for another thread. `None` until the first event is known, if the choice
    /// is [`EventChoice::First`].
    pub(in crate::collapse) fn fork(&self) -> Option<Self> {
        if self.choice == EventChoice::First && self.seen.is_empty() {
            return None;
        }
        let mut fork = Self { names: self.names.clone(), ..Self::new(self.choice.clone()) };
        for event in &self.seen {
            fork.numbers.insert(Key::new(&event.name), fork.seen.len());
            fork.seen.push(event.without_samples());
        }
        Some(fork)
    }

    pub(in crate::collapse) fn seen(&self) -> &[EventCounts] {
        &self.seen
    }

    /// Counts a sample of an event; returns true if it is selected.
    pub(in crate::collapse) fn accept(&mut self, name: &[u8]) -> bool {
        self.accept_many(name, 1)
    }

    /// Counts several samples of an event; returns true if they are selected.
    pub(in crate::collapse) fn accept_many(&mut self, name: &[u8], samples: u64) -> bool {
        if self.seen.get(self.last).is_none_or(|event| event.name != name) {
            self.last = self.index_of(name);
        }
        let event = &mut self.seen[self.last];
        event.samples = event.samples.saturating_add(samples);
        event.is_selected
    }

    /// Adds the weight of the sample that was counted last.
    pub(in crate::collapse) fn add_weight(&mut self, weight: Weight) {
        self.add_weights(1, weight);
    }

    /// Notes that the sample that was counted last weighs 1 because it has no period.
    pub(in crate::collapse) fn note_without_period(&mut self) {
        self.seen[self.last].without_period += 1;
    }

    /// Adds the sum of the weights of the samples that were counted last.
    pub(in crate::collapse) fn add_weights(&mut self, samples: u64, weight: Weight) {
        let event = &mut self.seen[self.last];
        event.counted_samples = event.counted_samples.saturating_add(samples);
        event.weight = event.weight.checked_add(weight).unwrap_or(event.weight);
    }

    /// Returns true if an event that was not seen yet is selected.
    pub(in crate::collapse) fn selects(&self, name: &[u8]) -> bool {
        match &self.choice {
            _ if self.names.is_some() => self.names.iter().flatten().any(|wanted| wanted == name),
            EventChoice::First => self.seen.is_empty(),
            EventChoice::All => true,
            EventChoice::Named(wanted) => [name, strip_modifiers(name)].iter().any(|name| is_named(name, wanted)),
        }
    }

    /// Returns the index of an event, which it adds if it is new.
    fn index_of(&mut self, name: &[u8]) -> usize {
        let key = Key::new(name);
        self.numbers.get(key).unwrap_or_else(|| {
            let is_selected = self.selects(name);
            self.numbers.insert(key, self.seen.len());
            let name = name.to_vec();
            let is_unit_checked = self.names.is_some();
            self.seen.push(EventCounts {
                name,
                is_selected,
                is_unit_checked,
                samples: 0,
                counted_samples: 0,
                weight: Weight::ZERO,
                without_period: 0,
            });
            self.seen.len() - 1
        })
    }
}

/// True if an event has the wanted name. The lines of `perf script` separate fields by blanks: `fg-record` writes `_` for those in
/// names, as in `uprobe:./app:parse<int,_char>`.
fn is_named(name: &[u8], wanted: &[u8]) -> bool {
    let is_same = |(name, wanted): (&u8, &u8)| name == wanted || (*name, *wanted) == (b'_', b' ');
    name.len() == wanted.len() && name.iter().zip(wanted).all(is_same)
}

/// Returns the event's name without modifiers such as `:ppp` or `:u`. The colon in a tracepoint's name is no modifier.
pub(in crate::collapse) fn strip_modifiers(name: &[u8]) -> &[u8] {
    match memchr::memrchr(b':', name) {
        Some(colon) if name[colon + 1..].iter().all(|byte| b"ukhGHIpPSDeWb".contains(byte)) => &name[..colon],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::{EventChoice, EventFilter};
    use crate::profile::Weight;

    #[test]
    fn matches_names_with_or_without_modifiers() {
        let mut events = EventFilter::new(EventChoice::Named(b"cycles".to_vec()));
        assert!(events.accept(b"cycles:ppp") && events.accept(b"cycles") && !events.accept(b"instructions:u"));
        let mut events = EventFilter::new(EventChoice::Named(b"cycles:u".to_vec()));
        assert!(events.accept(b"cycles:u") && !events.accept(b"cycles:ppp") && !events.accept(b"cycles"));
        let mut events = EventFilter::new(EventChoice::Named(b"sched".to_vec()));
        assert!(!events.accept(b"sched:sched_switch"));
        let mut events = EventFilter::new(EventChoice::Named(b"uprobe:./a:f<int, char>".to_vec()));
        assert!(events.accept(b"uprobe:./a:f<int,_char>") && events.accept(b"uprobe:./a:f<int, char>"));
        assert!(!events.accept(b"uprobe:./a:f<int,-char>") && !events.accept(b"uprobe:./a:f<int,_char>_"));
    }

    #[test]
    fn selects_the_first_event_by_default() {
        let mut events = EventFilter::new(EventChoice::First);
        assert!(events.fork().is_none());
        assert!(events.accept(b"a:u") && !events.accept(b"a") && events.accept(b"a:u"));
        let mut fork = events.fork().expect("the first event is known");
        assert!(!fork.accept(b"a") && fork.accept(b"a:u"));
        assert_eq!(events.seen().iter().map(|event| event.samples).collect::<Vec<_>>(), [2, 1]);
    }

    /// Returns true if events of different weights have one unit.
    fn have_one_unit(mut events: EventFilter) -> bool {
        for (name, weight) in [(&b"a"[..], 5), (b"b", 7)] {
            assert!(events.accept(name));
            events.add_weight(Weight::new(weight));
        }
        events.seen()[0].unit() == events.seen()[1].unit()
    }

    #[test]
    fn events_that_a_reader_selected_have_one_unit() {
        assert!(have_one_unit(EventFilter::for_names(vec![b"a".to_vec(), b"b".to_vec()])));
        assert!(!have_one_unit(EventFilter::new(EventChoice::All)));
    }
}
