//! A BPF hash map that the program fills.

use std::os::fd::{AsFd as _, OwnedFd};

use aya::maps::{HashMap, Map, MapData, MapError};
use aya::{Ebpf, Pod};

use crate::record::sys;

/// A BPF hash map whose entries can be read one by one, or all at once.
pub struct BpfHashMap<K: Pod, V: Pod> {
    pub entries: HashMap<MapData, K, V>,
    file: OwnedFd,
}

impl<K: Pod, V: Pod> BpfHashMap<K, V> {
    /// Takes a map out of the program, by its name.
    pub fn open(program: &mut Ebpf, name: &str) -> Result<Self, MapError> {
        let map = take_map(program, name)?;
        let Map::HashMap(data) = &map else {
            return Err(MapError::InvalidName { name: name.to_owned() });
        };
        let file = data.fd().as_fd().try_clone_to_owned()?;
        // The conversion checks the sizes of keys and values.
        Ok(Self { entries: map.try_into()?, file })
    }

    /// Reads all entries, in no order. Entries that were read before an error are returned with it.
    pub fn read(&self) -> (Vec<(K, V)>, Result<(), MapError>) {
        self.read_all(false)
    }

    /// Reads and removes all entries.
    pub fn drain(&mut self) -> (Vec<(K, V)>, Result<(), MapError>) {
        self.read_all(true)
    }

    fn read_all(&self, delete: bool) -> (Vec<(K, V)>, Result<(), MapError>) {
        let mut entries = Vec::new();
        let result = sys::read_hash_map(self.file.as_fd(), delete, &mut entries);
        (entries, result.map_err(MapError::IoError))
    }
}

/// Takes a map out of the program, by its name.
pub fn take_map(program: &mut Ebpf, name: &str) -> Result<Map, MapError> {
    program.take_map(name).ok_or_else(|| MapError::InvalidName { name: name.to_owned() })
}
