//! Which event's samples count, and how many of each there were.

use super::{Event, EventChoice};
use crate::profile::Weight;
use crate::profile::byte_map::{ByteMap, Key};

/// All events seen so far.
pub(super) struct Events {
    choice: EventChoice,
    seen: Vec<Event>,
    numbers: ByteMap<usize>,
    last: usize,
}

impl Events {
    pub(super) fn new(choice: EventChoice) -> Self {
        Self { choice, seen: Vec::new(), numbers: ByteMap::default(), last: 0 }
    }

    /// The same choice for another thread, if it is made.
    pub(super) fn fork(&self) -> Option<Self> {
        if self.choice == EventChoice::First && self.seen.is_empty() {
            return None;
        }
        let mut fork = Self::new(self.choice.clone());
        for event in &self.seen {
            fork.numbers.insert(Key::new(&event.name), fork.seen.len());
            fork.seen.push(Event { samples: 0, counted: 0, weight: Weight::ZERO, ..event.clone() });
        }
        Some(fork)
    }

    pub(super) fn seen(&self) -> &[Event] {
        &self.seen
    }

    /// Counts a sample of the event, and says whether it is to be taken.
    pub(super) fn takes(&mut self, name: &[u8]) -> bool {
        self.takes_all(name, 1)
    }

    /// As [`takes`](Self::takes), for so many samples.
    pub(super) fn takes_all(&mut self, name: &[u8], samples: u64) -> bool {
        if self.seen.get(self.last).is_none_or(|event| event.name != name) {
            self.last = self.number(name);
        }
        let event = &mut self.seen[self.last];
        event.samples = event.samples.saturating_add(samples);
        event.taken
    }

    /// Adds the weight of the sample that was seen last.
    pub(super) fn counts(&mut self, weight: Weight) {
        let event = &mut self.seen[self.last];
        event.counted += 1;
        event.weight = event.weight.checked_add(weight).unwrap_or(event.weight);
    }

    fn number(&mut self, name: &[u8]) -> usize {
        let key = Key::new(name);
        self.numbers.get(key).unwrap_or_else(|| {
            let taken = match &self.choice {
                EventChoice::First => self.seen.is_empty(),
                EventChoice::All => true,
                EventChoice::Named(wanted) => name == wanted || without_modifiers(name) == &wanted[..],
            };
            self.numbers.insert(key, self.seen.len());
            let name = name.to_vec();
            self.seen.push(Event { name, taken, samples: 0, counted: 0, weight: Weight::ZERO });
            self.seen.len() - 1
        })
    }
}

/// The event's name without what follows it after a colon, such as `ppp` or `u`. A tracepoint's colon is its own.
fn without_modifiers(name: &[u8]) -> &[u8] {
    match memchr::memrchr(b':', name) {
        Some(colon) if name[colon + 1..].iter().all(|byte| b"ukhGHIpPSDeWb".contains(byte)) => &name[..colon],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::{EventChoice, Events};

    #[test]
    fn an_event_is_named_with_or_without_modifiers() {
        let mut events = Events::new(EventChoice::Named(b"cycles".to_vec()));
        assert!(events.takes(b"cycles:ppp") && events.takes(b"cycles") && !events.takes(b"instructions:u"));
        let mut events = Events::new(EventChoice::Named(b"cycles:u".to_vec()));
        assert!(events.takes(b"cycles:u") && !events.takes(b"cycles:ppp") && !events.takes(b"cycles"));
        let mut events = Events::new(EventChoice::Named(b"sched".to_vec()));
        assert!(!events.takes(b"sched:sched_switch"));
    }

    #[test]
    fn the_first_event_is_the_one() {
        let mut events = Events::new(EventChoice::First);
        assert!(events.fork().is_none());
        assert!(events.takes(b"a:u") && !events.takes(b"a") && events.takes(b"a:u"));
        let mut fork = events.fork().expect("the first event is known");
        assert!(!fork.takes(b"a") && fork.takes(b"a:u"));
        assert_eq!(events.seen().iter().map(|event| event.samples).collect::<Vec<_>>(), [2, 1]);
    }
}
