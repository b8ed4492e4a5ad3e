//! The compressed numbers of HotSpot (UNSIGNED5, `utilities/unsigned5.hpp` of the JDK).

/// The first byte that another one follows.
const HIGH: u32 = 192;

/// The longest number, in bytes.
const MAX_LENGTH: u32 = 5;

/// Reads compressed numbers.
pub(super) struct Compressed<'a> {
    bytes: &'a [u8],
    /// Smallest value of a byte: those below are not used.
    excluded: u8,
}

impl<'a> Compressed<'a> {
    pub(super) fn new(bytes: &'a [u8], excluded: u8) -> Self {
        Self { bytes, excluded }
    }

    /// Reads a byte.
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    /// Reads a number.
    pub(super) fn unsigned(&mut self) -> Option<u32> {
        let mut sum = 0u32;
        for index in 0..MAX_LENGTH {
            let digit = u32::from(self.byte()?.checked_sub(self.excluded)?);
            sum = sum.wrapping_add(digit << (6 * index));
            if digit + u32::from(self.excluded) < HIGH {
                break;
            }
        }
        Some(sum)
    }

    /// Reads a number with a sign, which is in its lowest bit.
    pub(super) fn signed(&mut self) -> Option<i32> {
        let number = self.unsigned()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::Compressed;

    #[test]
    fn reads_numbers_of_one_to_five_bytes() {
        for (excluded, bytes, number) in [
            (0, &[5][..], 5),
            (0, &[191], 191),
            (0, &[192, 0], 192),
            (1, &[1], 0),
            (1, &[191], 190),
            (1, &[192, 1], 191),
            (0, &[255, 255, 255, 255, 255], 255u32.wrapping_mul(1 + 64 + 4096 + 262_144 + 16_777_216)),
        ] {
            assert_eq!(Compressed::new(bytes, excluded).unsigned(), Some(number), "{bytes:?}");
        }
        assert_eq!(Compressed::new(&[192], 0).unsigned(), None);
        let signed = [0, 1, 2, 3].map(|byte| Compressed::new(&[byte], 0).signed());
        assert_eq!(signed, [0, -1, 1, -2].map(Some));
    }
}
