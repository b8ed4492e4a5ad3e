//! Reads little-endian fields at given offsets of a jitdump's records.

/// Reads a string that ends with a zero byte.
pub(super) fn read_string(bytes: &[u8]) -> Option<&[u8]> {
    Some(&bytes[..memchr::memchr(0, bytes)?])
}

pub(super) fn read_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

pub(super) fn read_u64(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
}
