//! An arena for bytes that borrowed data structures point into.

use std::ops::Deref;

use elsa::FrozenVec;

/// Owners of bytes that stay at their addresses until the arena is dropped: mapped files and decompressed sections.
#[derive(Default)]
pub struct ByteArena {
    owners: FrozenVec<Box<dyn Deref<Target = [u8]>>>,
}

impl ByteArena {
    /// Takes ownership of `bytes` and lends them for as long as the arena lives.
    pub fn add(&self, bytes: impl Deref<Target = [u8]> + 'static) -> &[u8] {
        self.owners.push_get(Box::new(bytes))
    }
}

impl std::fmt::Debug for ByteArena {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ByteArena").field("owners", &self.owners.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::ByteArena;

    #[test]
    fn keeps_bytes_in_place_while_it_grows() {
        let arena = ByteArena::default();
        let all: Vec<&[u8]> = (0..5000u32).map(|n| arena.add(n.to_le_bytes().to_vec())).collect();
        assert!((0..5000u32).all(|n| all[n as usize] == n.to_le_bytes()));
    }
}
