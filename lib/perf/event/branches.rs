//! The branch records of the CPU, as a call stack (`--call-graph lbr`).

use super::callchain::Address;

/// The calls that have not returned yet, the latest first.
///
/// Each is a branch record of three words or more, which starts with the addresses of the call and of its target.
#[derive(Clone, Copy, Debug, Default)]
pub struct Branches<'a> {
    bytes: &'a [u8],
    /// Number of bytes per record.
    size: usize,
}

impl<'a> Branches<'a> {
    pub(super) fn new(bytes: &'a [u8], words: usize) -> Self {
        Self { bytes, size: words * 8 }
    }

    /// Number of calls.
    pub fn len(self) -> usize {
        self.bytes.len() / self.size.max(1)
    }

    /// True if there are none.
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// Iterates over the addresses of the user stack, innermost first.
    ///
    /// If `innermost` is `None`, the innermost frame is the target of the latest call. The addresses are those of call
    /// instructions, not return addresses.
    pub fn stack(self, innermost: Option<u64>) -> impl Iterator<Item = Address> + 'a {
        let calls = self.bytes.chunks_exact(self.size.max(24));
        let innermost = innermost.or_else(|| calls.clone().next().map(|call| word(call, 1)));
        let innermost = innermost.filter(|_| !self.is_empty());
        let addresses = innermost.into_iter().chain(calls.map(|call| word(call, 0)));
        addresses.filter(|value| *value != 0).map(|value| Address { value, in_kernel: false, exact: true })
    }
}

/// Returns a word of a branch record.
fn word(record: &[u8], index: usize) -> u64 {
    let bytes = record.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::Branches;

    #[test]
    fn calls_that_have_not_returned_are_a_stack() {
        let words = [0x300, 0x400, 0, 0x200, 0x280, 0, 0x100, 0x180, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let branches = Branches::new(&bytes, 3);
        // A sample in the kernel does not have the user instruction pointer: the function called last takes its place.
        let stacks = [Some(0x444), None]
            .map(|innermost| branches.stack(innermost).map(|address| address.lookup()).collect::<Vec<_>>());
        assert_eq!(stacks, [[0x444, 0x300, 0x200, 0x100], [0x400, 0x300, 0x200, 0x100]]);
        assert_eq!((branches.len(), Branches::default().stack(Some(0x444)).count()), (3, 0));
    }
}
