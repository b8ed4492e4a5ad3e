//! A table that the program in the kernel fills.

use std::os::fd::{AsFd as _, OwnedFd};

use aya::maps::{HashMap, Map, MapData, MapError};
use aya::{Ebpf, Pod};

use crate::record::sys;

/// A hash table, of which entries are read one by one or all at once.
pub struct Table<K: Pod, V: Pod> {
    pub entries: HashMap<MapData, K, V>,
    file: OwnedFd,
}

impl<K: Pod, V: Pod> Table<K, V> {
    /// The one of that name.
    pub fn of(program: &mut Ebpf, name: &str) -> Result<Self, MapError> {
        let map = map(program, name)?;
        let Map::HashMap(of_table) = &map else {
            return Err(MapError::InvalidName { name: name.to_owned() });
        };
        let file = of_table.fd().as_fd().try_clone_to_owned()?;
        // This looks at the sizes of keys and values.
        Ok(Self { entries: map.try_into()?, file })
    }

    /// All entries, in no order. What was read before a failure comes with it.
    pub fn read(&self) -> (Vec<(K, V)>, Result<(), MapError>) {
        self.batches(false)
    }

    /// Takes all entries out.
    pub fn take(&mut self) -> (Vec<(K, V)>, Result<(), MapError>) {
        self.batches(true)
    }

    fn batches(&self, takes: bool) -> (Vec<(K, V)>, Result<(), MapError>) {
        let mut entries = Vec::new();
        let read = sys::read_hash_map(self.file.as_fd(), takes, &mut entries);
        (entries, read.map_err(MapError::IoError))
    }
}

/// The program's table of that name.
pub fn map(program: &mut Ebpf, name: &str) -> Result<Map, MapError> {
    program.take_map(name).ok_or_else(|| MapError::InvalidName { name: name.to_owned() })
}
