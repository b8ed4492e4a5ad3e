//! The prints of bpftrace maps, of which only the last one may count.

use rustc_hash::FxHashMap;

use super::Entry;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

/// The maps that were printed, by name, in the order of their first prints.
#[derive(Default)]
pub(in crate::collapse::formats) struct Prints(Vec<(Vec<u8>, MapPrints)>);

/// All prints of a map.
#[derive(Default)]
struct MapPrints {
    /// The keys by their texts.
    keys: FxHashMap<Vec<u8>, Key>,
    /// Number of values.
    count: usize,
    /// True if a value is smaller than one before it of the same key.
    has_fallen: bool,
}

/// The values of a key.
struct Key {
    stack: Stack,
    sum: Weight,
    last: Weight,
    /// Index of the last value among those of all keys.
    index: usize,
}

impl Prints {
    /// Adds an entry, if its map is selected.
    pub(in crate::collapse::formats) fn add(
        &mut self,
        mut entry: Entry,
        weight: Weight,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) {
        if !document.events.accept(&entry.map) {
            return;
        }
        let map = match self.0.iter().position(|(name, _)| *name == entry.map) {
            Some(index) => index,
            None => {
                self.0.push((std::mem::take(&mut entry.map), MapPrints::default()));
                self.0.len() - 1
            }
        };
        self.0[map].1.add(std::mem::take(&mut entry.text), weight, || entry.into_stack(sink));
    }

    /// Adds the stacks of all maps, and says of which maps the last print alone counts.
    pub(in crate::collapse::formats) fn finish(
        self,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        for (name, map) in self.0 {
            let is_running_total = map.is_running_total();
            if is_running_total {
                let name = String::from_utf8_lossy(&name);
                document
                    .warn(&format!("{name} was printed several times without being cleared; the last print counts"));
            }
            let mut keys: Vec<Key> = map.keys.into_values().collect();
            keys.sort_unstable_by_key(|key| key.index);
            for Key { mut stack, sum, last, .. } in keys {
                stack.add_leaf_first(if is_running_total { last } else { sum }, sink)?;
            }
        }
        Ok(())
    }
}

impl MapPrints {
    fn add(&mut self, text: Vec<u8>, weight: Weight, make_stack: impl FnOnce() -> Stack) {
        let index = self.count;
        self.count += 1;
        match self.keys.get_mut(&text) {
            Some(key) => {
                self.has_fallen |= weight < key.last;
                (key.sum, key.last, key.index) = (key.sum.saturating_add(weight), weight, index);
            }
            None => {
                self.keys.insert(text, Key { stack: make_stack(), sum: weight, last: weight, index });
            }
        }
    }

    /// True if the map was not cleared between its prints: no value has fallen, and the last print has all keys.
    fn is_running_total(&self) -> bool {
        let last_print = self.count - self.keys.len();
        last_print > 0 && !self.has_fallen && self.keys.values().all(|key| key.index >= last_print)
    }
}

#[cfg(test)]
mod tests {
    use super::{MapPrints, Stack, Weight};

    #[test]
    fn a_map_that_was_not_cleared_has_all_keys_in_its_last_print() {
        for (values, is_running_total) in [
            (&[("a", 1), ("b", 2)][..], false),
            (&[("a", 1), ("b", 2), ("a", 1), ("b", 3), ("c", 1)], true),
            (&[("a", 1), ("b", 2), ("b", 3), ("c", 1)], false),
            (&[("a", 5), ("b", 2), ("a", 4), ("b", 3)], false),
            (&[("b", 3), ("b", 4), ("a", 1), ("b", 5)], true),
        ] {
            let mut map = MapPrints::default();
            values
                .iter()
                .for_each(|(key, value)| map.add(key.as_bytes().to_vec(), Weight::new(*value), Stack::default));
            assert_eq!(map.is_running_total(), is_running_total, "{values:?}");
        }
    }
}
