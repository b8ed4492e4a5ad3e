//! The locations of a recording, each with an ID, and a cache of those that were used last.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::perf::event::Address;
use crate::perf::location::Location;

/// The distinct locations of a recording.
#[derive(Clone, Debug, Default)]
pub(in crate::perf) struct Locations {
    all: Vec<Location>,
    /// An open-addressing table of the locations that have only an object and an address: nearly all.
    ///
    /// It contains what is compared, because every look-up waits for memory that is not in the cache of the CPU. Its
    /// length is a power of two, or 0.
    plain: Vec<Slot>,
    /// Number of slots of `plain` that are used.
    used: usize,
    /// The IDs of all other locations.
    others: HashTable<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    address: u64,
    object: u32,
    /// The ID of the location plus 1; 0 if the slot is free.
    id_plus_1: u32,
}

impl Locations {
    /// All locations, by ID.
    pub(super) fn all(&self) -> &[Location] {
        &self.all
    }

    /// Returns the ID of a location: the next free one if the location is new.
    pub(super) fn intern(&mut self, location: Location) -> u32 {
        if location.ip != 0 || location.loaded_at != 0 {
            return self.intern_other(location);
        }
        if self.used * 4 >= self.plain.len() * 3 {
            self.grow();
        }
        let mask = self.plain.len() - 1;
        let mut index = hash(&location) as usize & mask;
        loop {
            let slot = self.plain[index];
            if slot.id_plus_1 == 0 {
                break;
            }
            if (slot.address, slot.object) == (location.address, location.object.0) {
                return slot.id_plus_1 - 1;
            }
            index = (index + 1) & mask;
        }
        let id = self.add(location);
        self.plain[index] = Slot { address: location.address, object: location.object.0, id_plus_1: id + 1 };
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
        let id = u32::try_from(self.all.len()).ok().filter(|id| *id < u32::MAX).expect("fewer than 2^32 locations");
        self.all.push(location);
        id
    }

    fn grow(&mut self) {
        let size = (self.plain.len() * 2).max(64);
        for slot in std::mem::replace(&mut self.plain, vec![Slot::default(); size]) {
            if slot.id_plus_1 == 0 {
                continue;
            }
            let mut index = hash(&self.all[slot.id_plus_1 as usize - 1]) as usize & (size - 1);
            while self.plain[index].id_plus_1 != 0 {
                index = (index + 1) & (size - 1);
            }
            self.plain[index] = slot;
        }
    }
}

fn hash(location: &Location) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(location.object.0);
    hasher.write_u64(location.address);
    hasher.write_u64(location.ip);
    hasher.write_u64(location.loaded_at);
    hasher.finish()
}

/// A cache of the locations at addresses. Most stacks lead through the same ones again and again.
///
/// An address means the same as long as the version of the process's mappings is the same.
#[derive(Debug)]
pub(in crate::perf) struct LocationCache {
    entries: Vec<CacheEntry>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CacheEntry {
    /// The address, shifted left by one; the lowest bit is set if the address is exact.
    address: u64,
    /// The version of the process's mappings. No version is 0.
    version: u32,
    location: u32,
}

/// Number of entries of the cache, a power of two. They take 1 MiB.
const CACHE_SIZE: usize = 1 << 16;
/// The version for kernel addresses, which mean the same in all processes.
const KERNEL_VERSION: u32 = u32::MAX;

impl Default for LocationCache {
    fn default() -> Self {
        Self { entries: vec![CacheEntry::default(); CACHE_SIZE] }
    }
}

impl CacheEntry {
    /// Creates an entry. `None` for user addresses in the upper half and kernel addresses in the lower half: they are
    /// not code, and a shifted address could not be told from another.
    #[inline]
    fn new(address: Address, version: Option<u32>, location: u32) -> Option<Self> {
        let version = if address.in_kernel { KERNEL_VERSION } else { version? };
        let is_upper = address.value >> 63 == 1;
        let entry = Self { address: address.value << 1 | u64::from(address.exact), version, location };
        (is_upper == address.in_kernel).then_some(entry)
    }

    #[inline]
    fn index(self) -> usize {
        let mixed = (self.address ^ u64::from(self.version) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 48) as usize % CACHE_SIZE
    }
}

impl LocationCache {
    /// Returns the location at an address, if it is cached for this version of the process's mappings.
    #[inline]
    pub(super) fn get(&self, address: Address, version: Option<u32>) -> Option<u32> {
        let wanted = CacheEntry::new(address, version, 0)?;
        let entry = self.entries[wanted.index()];
        (entry.address == wanted.address && entry.version == wanted.version).then_some(entry.location)
    }

    /// Caches the location at an address. It replaces the entry that was in its place.
    #[inline]
    pub(super) fn put(&mut self, address: Address, version: Option<u32>, location: u32) {
        if let Some(entry) = CacheEntry::new(address, version, location) {
            self.entries[entry.index()] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Locations;
    use crate::perf::location::Location;
    use crate::perf::objects::object::ObjectId;

    fn location(n: u64) -> Location {
        let (ip, loaded_at) = (if n.is_multiple_of(7) { n } else { 0 }, u64::from(n.is_multiple_of(11)));
        Location { object: ObjectId((n % 3) as u32), address: n / 3 * 8, ip, loaded_at }
    }

    #[test]
    fn gives_each_location_one_id() {
        let mut locations = Locations::default();
        for _ in 0..2 {
            for n in 0..5000 {
                assert_eq!(u64::from(locations.intern(location(n))), n);
            }
        }
        assert_eq!(locations.all().len(), 5000);
        assert!((0..5000).all(|n| locations.all()[n as usize] == location(n)));
    }
}
