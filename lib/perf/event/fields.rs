//! Reads the fields of a record.

/// A reader of consecutive little-endian fields: the bytes that are left to read.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Creates a reader at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Number of bytes that are left.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// True if nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Splits `length` bytes off the end.
    pub fn split_end(&mut self, length: usize) -> Option<Self> {
        let (rest, end) = self.0.split_at_checked(self.0.len().checked_sub(length)?)?;
        self.0 = rest;
        Some(Self(end))
    }

    /// Reads the next `length` bytes.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads 2 bytes.
    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    /// Reads 4 bytes.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Reads 8 bytes.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Reads a string up to its terminating zero, and skips all that is left.
    pub fn c_string(&mut self) -> &'a [u8] {
        let bytes = std::mem::take(&mut self.0);
        &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
    }
}
