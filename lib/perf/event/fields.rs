//! Numbers and names, one after the other.

/// What is left of some bytes that were written one field after the other, little-endian.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// All of them.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// How many bytes are left.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes so many bytes off the end.
    pub fn split_end(&mut self, length: usize) -> Option<Self> {
        let (rest, end) = self.0.split_at_checked(self.0.len().checked_sub(length)?)?;
        self.0 = rest;
        Some(Self(end))
    }

    /// The next bytes.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A name that ends with a zero byte, and all that is left behind it.
    pub fn name(&mut self) -> &'a [u8] {
        let bytes = std::mem::take(&mut self.0);
        &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
    }
}
