//! Sums of the events of a chunk by their type, thread and stack.

use rustc_hash::FxHashMap;

use crate::Error;
use crate::profile::Weight;

/// The index of no sum.
const NONE: u32 = u32::MAX;

/// Maximum length of the list of sums of one stack. Most stacks have one, and a list is searched from its start.
const MAX_LISTED: usize = 8;

/// Events with the same type, thread and stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    /// The index of the type.
    pub(super) class: usize,
    /// The key of the thread.
    pub(super) thread: u64,
    /// The number of the stack.
    pub(super) stack: u32,
    /// The index of another sum of this stack.
    next: u32,
    pub(super) count: u64,
    pub(super) weight: Weight,
}

/// The sums of a chunk.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// In the order of the first event of each.
    list: Vec<Sum>,
    /// The index of the last of the first sums of each stack.
    last: Vec<u32>,
    /// The indices of the other sums, by type, thread and stack.
    others: FxHashMap<(usize, u64, u32), u32>,
}

impl Sums {
    /// Returns all sums, in the order of the first event of each.
    pub(super) fn list(&self) -> &[Sum] {
        &self.list
    }

    /// Adds an event.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    #[inline]
    pub(super) fn add(&mut self, class: usize, thread: u64, stack: u32, weight: Weight) -> Result<(), Error> {
        let first = self.last.get(stack as usize).copied().unwrap_or(NONE);
        let (mut index, mut length) = (first, 0);
        while let Some(sum) = self.list.get_mut(index as usize) {
            if sum.thread == thread && sum.class == class {
                return sum.add(weight);
            }
            (index, length) = (sum.next, length + 1);
        }
        let new = u32::try_from(self.list.len()).ok().filter(|new| *new != NONE).ok_or(Error::Overflow)?;
        let mut next = NONE;
        if length < MAX_LISTED {
            if self.last.len() <= stack as usize {
                self.last.resize(stack as usize + 1, NONE);
            }
            self.last[stack as usize] = new;
            next = first;
        } else {
            let known = *self.others.entry((class, thread, stack)).or_insert(new);
            if let Some(sum) = self.list.get_mut(known as usize) {
                return sum.add(weight);
            }
        }
        self.list.push(Sum { class, thread, stack, next, count: 1, weight });
        Ok(())
    }
}

impl Sum {
    fn add(&mut self, weight: Weight) -> Result<(), Error> {
        self.count += 1;
        let Some(weight) = self.weight.checked_add(weight) else { return Err(Error::Overflow) };
        self.weight = weight;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Sums;
    use crate::profile::Weight;

    #[test]
    fn adds_up_equal_events() {
        // Stack 3 has 100 sums, the others one to three.
        let events = (0..5000_u64).map(|index| (index as usize % 2, index * 7 % 50, 3, index));
        let others = (0..900_u64).map(|index| (1, index % 3, (index % 300) as u32 + 4, index));
        let (mut sums, mut expected) = (Sums::default(), BTreeMap::new());
        for (class, thread, stack, weight) in events.chain(others) {
            sums.add(class, thread, stack, Weight::new(weight)).unwrap();
            let sum: &mut (u64, u64) = expected.entry((class, thread, stack)).or_default();
            *sum = (sum.0 + 1, sum.1 + weight);
        }
        let found = sums.list().iter().map(|sum| ((sum.class, sum.thread, sum.stack), (sum.count, sum.weight)));
        let found: BTreeMap<_, _> = found.collect();
        assert_eq!(sums.list().len(), expected.len());
        assert!(expected.iter().all(|(key, (count, weight))| found[key] == (*count, Weight::new(*weight))));
    }
}
