//! Places in the code, each under a number, and the ones that were met last.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use super::event::Address;
use super::object::ObjectId;

/// A place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// What the code belongs to.
    pub object: ObjectId,
    /// Its address within the object, as the object counts, by which to look it up.
    pub address: u64,
    /// The address in the process, where that is to be kept; else 0.
    pub ip: u64,
    /// Of code that was made where other code had been: since when it is there; else 0.
    pub since: u64,
}

/// Every distinct place, once.
#[derive(Debug, Default)]
pub(super) struct Locations {
    all: Vec<Location>,
    by_place: HashTable<u32>,
}

impl Locations {
    /// All of them, by number.
    pub(super) fn all(&self) -> &[Location] {
        &self.all
    }

    /// The place's number; the next one if it was not seen before.
    pub(super) fn intern(&mut self, location: Location) -> u32 {
        let all = &self.all;
        if let Some(id) = self.by_place.find(hash(&location), |id| all[*id as usize] == location) {
            return *id;
        }
        let id = u32::try_from(all.len()).expect("fewer than 2^32 places");
        self.all.push(location);
        let all = &self.all;
        self.by_place.insert_unique(hash(&location), id, |id| hash(&all[*id as usize]));
        id
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
pub(super) struct Recent {
    met: Vec<Met>,
}

#[derive(Clone, Copy, Debug)]
struct Met {
    address: u64,
    /// The state of the process's mappings; 0 for the kernel's addresses.
    state: u32,
    exact: bool,
    place: u32,
}

/// A power of two.
const RECENT: usize = 1 << 15;

impl Default for Recent {
    fn default() -> Self {
        // No address is like this one with this state.
        Self { met: vec![Met { address: 0, state: u32::MAX, exact: false, place: 0 }; RECENT] }
    }
}

impl Recent {
    /// The place at an address.
    #[inline]
    pub(super) fn get(&self, address: Address, state: Option<u32>) -> Option<u32> {
        let state = state?;
        let met = self.met[slot(address, state)];
        let found = met.address == address.value && met.state == state && met.exact == address.exact;
        found.then_some(met.place)
    }

    /// Remembers the place at an address, in the stead of another.
    #[inline]
    pub(super) fn put(&mut self, address: Address, state: Option<u32>, place: u32) {
        let Some(state) = state else { return };
        self.met[slot(address, state)] = Met { address: address.value, state, exact: address.exact, place };
    }
}

fn slot(address: Address, state: u32) -> usize {
    let mixed = (address.value ^ u64::from(state) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 49) as usize % RECENT
}
