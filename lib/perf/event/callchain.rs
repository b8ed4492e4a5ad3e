//! The callchain of a sample.

/// A callchain as the kernel wrote it: addresses of 8 bytes, with markers where the context changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Callchain<'a>(&'a [u8]);

/// An address on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The virtual address.
    pub value: u64,
    /// True in the kernel.
    pub in_kernel: bool,
    /// True for an instruction pointer, false for a return address, whose call is before it.
    pub exact: bool,
}

impl Address {
    /// Returns the address by which to look up the function: for a return address, one inside the call instruction.
    pub const fn lookup(self) -> u64 {
        if self.exact { self.value } else { self.value.wrapping_sub(1) }
    }
}

/// Values from here up mark a change of context (`enum perf_callchain_context`).
const CONTEXT_MAX: u64 = -4095i64 as u64;
const CONTEXT_KERNEL: u64 = -128i64 as u64;
const CONTEXT_USER: u64 = -512i64 as u64;

impl<'a> Callchain<'a> {
    /// Creates a callchain of little-endian words: addresses, and the contexts that precede them.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Writes a callchain into `bytes` as the kernel would, from addresses that were recorded by other means than a
    /// sample.
    pub fn write(kernel: &[u64], user: &[u64], bytes: &'a mut Vec<u8>) -> Self {
        bytes.clear();
        for (context, addresses) in [(CONTEXT_KERNEL, kernel), (CONTEXT_USER, user)] {
            bytes.extend_from_slice(&context.to_le_bytes());
            addresses.iter().for_each(|address| bytes.extend_from_slice(&address.to_le_bytes()));
        }
        Self(bytes)
    }

    /// Iterates over the addresses, innermost first. Skips contexts other than kernel and user: guests, hypervisors.
    pub fn addresses(self) -> impl Iterator<Item = Address> + 'a {
        let mut in_kernel = None;
        let mut exact = true;
        self.0.chunks_exact(8).filter_map(move |bytes| {
            let value = u64::from_le_bytes(bytes.try_into().ok()?);
            if value >= CONTEXT_MAX {
                in_kernel = match value {
                    CONTEXT_KERNEL => Some(true),
                    CONTEXT_USER => Some(false),
                    _ => None,
                };
                exact = true;
                return None;
            }
            let address = Address { value, in_kernel: in_kernel?, exact };
            exact = false;
            Some(address)
        })
    }
}
