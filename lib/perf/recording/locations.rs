//! Places in the code, each under a number, and the ones that were met last.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::perf::event::Address;
use crate::perf::location::Location;

/// Every distinct place, once.
#[derive(Debug, Default)]
pub(in crate::perf) struct Locations {
    all: Vec<Location>,
    /// Those that are told by object and address alone: nearly all. What is compared stands in the table itself, since each
    /// look-up waits for memory that is far away. A power of two of slots, or none.
    plain: Vec<Slot>,
    used: usize,
    others: HashTable<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    address: u64,
    object: u32,
    /// The place's number, counted from 1; 0 if the slot is free.
    place: u32,
}

impl Locations {
    /// All of them, by number.
    pub(super) fn all(&self) -> &[Location] {
        &self.all
    }

    /// The place's number; the next one if it was not seen before.
    pub(super) fn intern(&mut self, location: Location) -> u32 {
        if location.ip != 0 || location.since != 0 {
            return self.intern_other(location);
        }
        if self.used * 4 >= self.plain.len() * 3 {
            self.grow();
        }
        let mask = self.plain.len() - 1;
        let mut at = hash(&location) as usize & mask;
        loop {
            let slot = self.plain[at];
            if slot.place == 0 {
                break;
            }
            if (slot.address, slot.object) == (location.address, location.object.0) {
                return slot.place - 1;
            }
            at = (at + 1) & mask;
        }
        let id = self.add(location);
        self.plain[at] = Slot { address: location.address, object: location.object.0, place: id + 1 };
        self.used += 1;
        id
    }

    fn intern_other(&mut self, location: Location) -> u32 {
        let all = &self.all;
        if let Some(id) = self.others.find(hash(&location), |id| all[*id as usize] == location) {
            return *id;
        }
        let id = self.add(location);
        let all = &self.all;
        self.others.insert_unique(hash(&location), id, |id| hash(&all[*id as usize]));
        id
    }

    fn add(&mut self, location: Location) -> u32 {
        let id = u32::try_from(self.all.len()).ok().filter(|id| *id < u32::MAX).expect("fewer than 2^32 places");
        self.all.push(location);
        id
    }

    fn grow(&mut self) {
        let size = (self.plain.len() * 2).max(64);
        for slot in std::mem::replace(&mut self.plain, vec![Slot::default(); size]) {
            if slot.place == 0 {
                continue;
            }
            let mut at = hash(&self.all[slot.place as usize - 1]) as usize & (size - 1);
            while self.plain[at].place != 0 {
                at = (at + 1) & (size - 1);
            }
            self.plain[at] = slot;
        }
    }
}

fn hash(location: &Location) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(location.object.0);
    hasher.write_u64(location.address);
    hasher.write_u64(location.ip);
    hasher.write_u64(location.since);
    hasher.finish()
}

/// Places that were met not long ago, by their addresses: most stacks lead through the same ones again and again.
#[derive(Debug)]
pub(in crate::perf) struct Recent {
    met: Vec<Met>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Met {
    /// The address, shifted to make room for whether it is exact.
    address: u64,
    /// The state of the process's mappings. No state is 0.
    state: u32,
    place: u32,
}

/// A power of two: 1 MiB of them.
const RECENT: usize = 1 << 16;
/// The kernel is the same to all processes.
const KERNEL_STATE: u32 = u32::MAX;

impl Default for Recent {
    fn default() -> Self {
        Self { met: vec![Met::default(); RECENT] }
    }
}

impl Met {
    /// The kernel has the upper half of all addresses, and programs the lower one: others are no code's.
    #[inline]
    fn new(address: Address, state: Option<u32>, place: u32) -> Option<Self> {
        let state = if address.in_kernel { KERNEL_STATE } else { state? };
        let is_upper = address.value >> 63 == 1;
        let met = Self { address: address.value << 1 | u64::from(address.exact), state, place };
        (is_upper == address.in_kernel).then_some(met)
    }

    #[inline]
    fn slot(self) -> usize {
        let mixed = (self.address ^ u64::from(self.state) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 48) as usize % RECENT
    }
}

impl Recent {
    /// The place at an address of a process whose mappings are in a state, if that is known.
    #[inline]
    pub(super) fn get(&self, address: Address, state: Option<u32>) -> Option<u32> {
        let wanted = Met::new(address, state, 0)?;
        let met = self.met[wanted.slot()];
        (met.address == wanted.address && met.state == wanted.state).then_some(met.place)
    }

    /// Remembers the place at an address, in the stead of another.
    #[inline]
    pub(super) fn put(&mut self, address: Address, state: Option<u32>, place: u32) {
        if let Some(met) = Met::new(address, state, place) {
            self.met[met.slot()] = met;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Locations;
    use crate::perf::location::Location;
    use crate::perf::objects::object::ObjectId;

    #[test]
    fn a_place_has_one_number_and_no_other_has_it() {
        let mut locations = Locations::default();
        let location = |n: u64| {
            let (ip, since) = (if n.is_multiple_of(7) { n } else { 0 }, u64::from(n.is_multiple_of(11)));
            Location { object: ObjectId((n % 3) as u32), address: n / 3 * 8, ip, since }
        };
        for _ in 0..2 {
            for n in 0..5000 {
                assert_eq!(u64::from(locations.intern(location(n))), n);
            }
        }
        assert_eq!(locations.all().len(), 5000);
        assert!((0..5000).all(|n| locations.all()[n as usize] == location(n)));
    }
}
