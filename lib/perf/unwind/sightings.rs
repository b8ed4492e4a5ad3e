//! Where the stack pointers of threads were seen: who was seen higher up has returned, whatever still stands below.

/// Samples that are known but not yet taken in.
#[derive(Debug, Default)]
pub struct Sightings {
    /// Thread, time and stack pointer: the highest from then on, once they are in order.
    seen: Vec<(u32, u64, u64)>,
    is_in_order: bool,
}

impl Sightings {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.seen.clear();
        self.is_in_order = true;
    }

    /// A thread was there at a time.
    pub fn add(&mut self, tid: u32, time: u64, stack_pointer: u64) {
        self.seen.push((tid, time, stack_pointer));
        self.is_in_order = false;
    }

    /// The highest place where a thread was seen after a time; 0 if it was not.
    pub fn highest_after(&mut self, tid: u32, time: u64) -> u64 {
        if !self.is_in_order {
            self.put_in_order();
        }
        let next = self.seen.partition_point(|(other, at, _)| (*other, *at) <= (tid, time));
        self.seen.get(next).filter(|(other, ..)| *other == tid).map_or(0, |(.., highest)| *highest)
    }

    fn put_in_order(&mut self) {
        self.seen.sort_unstable();
        let mut later = (0, 0);
        for (tid, _, highest) in self.seen.iter_mut().rev() {
            if later.0 == *tid {
                *highest = later.1.max(*highest);
            }
            later = (*tid, *highest);
        }
        self.is_in_order = true;
    }
}

#[cfg(test)]
mod tests {
    use super::Sightings;

    #[test]
    fn what_was_seen_later_of_the_same_thread_counts() {
        let mut sightings = Sightings::default();
        for (tid, time, stack_pointer) in [(1, 30, 70), (2, 10, 90), (1, 10, 50), (1, 20, 80), (2, 40, 60)] {
            sightings.add(tid, time, stack_pointer);
        }
        let mut after = |tid, time| sightings.highest_after(tid, time);
        assert_eq!([after(1, 0), after(1, 10), after(1, 20), after(1, 30)], [80, 80, 70, 0]);
        assert_eq!([after(2, 9), after(2, 10), after(2, 40), after(3, 0)], [90, 60, 0, 0]);
        sightings.clear();
        assert_eq!(sightings.highest_after(1, 0), 0);
    }
}
