//! Places in the code, each under a number, and the ones that were met last.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::perf::event::Address;
use crate::perf::object::ObjectId;

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
pub(in crate::perf) struct Locations {
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
