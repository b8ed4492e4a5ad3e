//! Branches that the CPU has kept. Where they are the calls that have not returned yet, they are a stack: that of
//! `--call-graph lbr`.

use super::Address;

/// The calls that have not returned yet, the youngest first: three words each, or more, of which the first two are where
/// it stands and where it goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Branches<'a> {
    bytes: &'a [u8],
    /// How many bytes each has.
    size: usize,
}

impl<'a> Branches<'a> {
    pub(super) fn new(bytes: &'a [u8], words: usize) -> Self {
        Self { bytes, size: words * 8 }
    }

    /// How many.
    pub fn len(self) -> usize {
        self.bytes.len() / self.size.max(1)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// The program's stack, innermost first. Where its innermost frame is not known it is the function that was called
    /// last. Of the others it is known where the call stands, not where it returns to.
    pub fn stack(self, innermost: Option<u64>) -> impl Iterator<Item = Address> + 'a {
        let word = |call: &[u8], index: usize| {
            let bytes = call.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        let calls = self.bytes.chunks_exact(self.size.max(24));
        let innermost = innermost.or_else(|| calls.clone().next().map(|call| word(call, 1)));
        let innermost = innermost.filter(|_| !self.is_empty());
        let addresses = innermost.into_iter().chain(calls.map(move |call| word(call, 0)));
        addresses.filter(|value| *value != 0).map(|value| Address { value, in_kernel: false, exact: true })
    }
}

#[cfg(test)]
mod tests {
    use super::Branches;

    #[test]
    fn calls_that_have_not_returned_are_a_stack() {
        let words = [0x300, 0x400, 0, 0x200, 0x280, 0, 0x100, 0x180, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let branches = Branches::new(&bytes, 3);
        let stack = |innermost| branches.stack(innermost).map(|address| address.lookup()).collect::<Vec<_>>();
        assert_eq!(stack(Some(0x444)), [0x444, 0x300, 0x200, 0x100]);
        // In the kernel the program's own place is not told, but the function that it called last.
        assert_eq!(stack(None), [0x400, 0x300, 0x200, 0x100]);
        assert_eq!((branches.len(), Branches::default().stack(Some(0x444)).count()), (3, 0));
    }
}
