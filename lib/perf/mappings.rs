//! The mappings of a process, at any time of a recording: a mapping that is replaced is retired with the time of its end.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::objects::object::ObjectId;

/// A range of addresses to which an object is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// The offset of the mapping in the file.
    pub offset: u64,
    /// The mapped object.
    pub object: ObjectId,
    /// True if the mapping is writable, as that of generated code may be.
    pub is_writable: bool,
}

/// A value that was valid from `since` until `until`, which it excludes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed<T> {
    pub value: T,
    pub since: u64,
    pub until: u64,
}

impl<T> Timed<T> {
    /// Creates a value that is valid from `since` on.
    pub fn since(since: u64, value: T) -> Self {
        Self { value, since, until: u64::MAX }
    }

    pub fn is_valid_at(&self, time: u64) -> bool {
        self.since <= time && time < self.until
    }
}

/// The mappings of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings {
    /// The mappings that exist now, by their first address.
    pub current: BTreeMap<u64, Timed<Mapping>>,
    /// The mappings that existed before, in the order of their ends.
    pub retired: Vec<Timed<Mapping>>,
    /// The time of the last execve, or of the fork if there was none since.
    pub exec_time: u64,
    /// The time of the fork; 0 if it is not known.
    pub fork_time: u64,
    /// The process that has created this one.
    pub parent: Option<u32>,
    /// For the first address of each mapping that was there at the fork, the time since which the parent had it.
    pub inherited: FxHashMap<u64, u64>,
    pub version: Version,
}

/// Maximum number of retired mappings that are searched. No sample is so late that more have ended since.
const MAX_RETIRED_SEARCHED: usize = 4096;

/// A version of the mappings of a process. Its number is unique among all processes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Version {
    pub number: u32,
    pub since: u64,
}

impl Mappings {
    /// Retires a mapping. If its end is reported late, it ends when the last retired mapping did, to keep the order.
    fn retire(&mut self, mut old: Timed<Mapping>, time: u64) {
        old.until = time.max(self.retired.last().map_or(0, |last| last.until));
        if old.since < old.until {
            self.retired.push(old);
        }
    }

    pub fn retire_all(&mut self, time: u64) {
        for (_, old) in std::mem::take(&mut self.current) {
            self.retire(old, time);
        }
    }

    pub fn map(&mut self, new: Mapping, time: u64) {
        let before = self.current.range(..new.start).next_back().filter(|(_, old)| old.value.end > new.start);
        let overlapped: Vec<u64> = before
            .map(|(start, _)| *start)
            .into_iter()
            .chain(self.current.range(new.start..new.end).map(|(start, _)| *start))
            .collect();
        for start in overlapped {
            let Some(old) = self.current.remove(&start) else { continue };
            self.retire(old, time);
            // The parts that the new mapping does not cover remain.
            for (start, end) in [(old.value.start, new.start), (new.end, old.value.end)] {
                if start < end {
                    let offset = old.value.offset.wrapping_add(start - old.value.start);
                    let rest = Mapping { start, end, offset, ..old.value };
                    self.current.insert(start, Timed::since(time, rest));
                }
            }
        }
        self.current.insert(new.start, Timed::since(time, new));
    }

    /// Returns the time since which a mapping is where it is: in the parent, if the process has inherited it.
    pub fn since(&self, mapping: &Timed<Mapping>) -> u64 {
        let inherited = self.inherited.get(&mapping.value.start).filter(|_| mapping.since == self.fork_time);
        inherited.copied().unwrap_or(mapping.since)
    }

    /// Returns what was mapped at an address, in the parent if that was before the fork.
    pub fn find_in_ancestry(&self, address: u64, time: u64) -> Option<Mapping> {
        if time >= self.fork_time {
            return self.find(address, time);
        }
        let mapping = self.find(address, self.fork_time)?;
        self.inherited.get(&mapping.start).is_some_and(|since| *since <= time).then_some(mapping)
    }

    pub fn find(&self, address: u64, time: u64) -> Option<Mapping> {
        if let Some((_, mapping)) = self.current.range(..=address).next_back()
            && mapping.value.end > address
            && mapping.is_valid_at(time)
        {
            return Some(mapping.value);
        }
        let ended = self.retired.partition_point(|mapping| mapping.until <= time);
        let mut candidates = self.retired[ended..].iter().rev().take(MAX_RETIRED_SEARCHED);
        let found = candidates
            .find(|mapping| (mapping.value.start..mapping.value.end).contains(&address) && mapping.is_valid_at(time));
        found.map(|mapping| mapping.value)
    }
}
