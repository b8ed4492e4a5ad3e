//! The maps of the BPF program.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use aya::Ebpf;
use aya::maps::{Map, MapError};

/// Takes a map out of the program, by its name.
pub(super) fn take_map(program: &mut Ebpf, name: &str) -> Result<Map, MapError> {
    program.take_map(name).ok_or_else(|| MapError::InvalidName { name: name.to_owned() })
}

/// Returns the file of a map.
pub(super) fn map_file(map: &Map) -> io::Result<OwnedFd> {
    match map {
        Map::Array(data) | Map::ArrayOfMaps(data) | Map::HashMap(data) | Map::PerfEventArray(data) => {
            data.fd().as_fd().try_clone_to_owned()
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}
