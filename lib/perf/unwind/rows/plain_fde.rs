//! Frame description entries (FDEs) of `.eh_frame` in the form that nearly all compilers write.
//!
//! An object has up to some hundred thousand of them. They are read here in half the time that gimli takes, which reads all
//! others.

use std::ops::Range;

use addr2line::gimli::{
    CallFrameInstruction, CommonInformationEntry, Register,
    constants::{DW_EH_PE_pcrel, DW_EH_PE_sdata4},
};

use crate::perf::cfi::Slice;

/// An entry whose function has an address of 4 bytes, relative to its own place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlainFde<'a> {
    /// The addresses of the function.
    pub(super) function: Range<u64>,
    pub(super) instructions: PlainInstructions<'a>,
}

impl<'a> PlainFde<'a> {
    /// Parses the entry in a range of a section at an address. `None` if it has another form.
    pub(super) fn parse(
        section: &'a [u8],
        section_address: u64,
        range: Range<usize>,
        cie: &CommonInformationEntry<Slice<'_>>,
    ) -> Option<Self> {
        let encoding = cie.fde_address_encoding()?;
        if encoding.0 != DW_EH_PE_pcrel.0 | DW_EH_PE_sdata4.0 {
            return None;
        }
        let entry = section.get(range.clone())?;
        // The length, which is longer in large entries, the distance of the CIE, the address and the size of the function.
        let [length, _, distance, size] = std::array::from_fn(|index| number(entry, index * 4));
        if length? == u32::MAX {
            return None;
        }
        let start =
            section_address.wrapping_add(range.start as u64 + 8).wrapping_add_signed(distance?.cast_signed().into());
        let end = start.checked_add(size?.cast_signed().try_into().ok()?)?;
        let mut rest = PlainInstructions(entry.get(16..)?);
        // Data for exception handlers, and how long they are.
        let augmentation = usize::try_from(rest.read_uleb()?).ok()?;
        rest.0 = rest.0.get(augmentation..)?;
        Some(Self { function: start..end, instructions: rest })
    }
}

/// The instructions of an entry that are left to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlainInstructions<'a>(&'a [u8]);

impl PlainInstructions<'_> {
    /// Reads the next instruction. `Some(None)` at the end, `None` if it is a rare or malformed one.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Option<CallFrameInstruction<usize>>> {
        use CallFrameInstruction as I;
        let Some((&code, rest)) = self.0.split_first() else { return Some(None) };
        self.0 = rest;
        let operand = code & 0x3f;
        let instruction = match code >> 6 {
            1 => I::AdvanceLoc { delta: operand.into() },
            2 => I::Offset { register: Register(operand.into()), factored_offset: self.read_uleb()? },
            3 => I::Restore { register: Register(operand.into()) },
            _ => match operand {
                0x00 => I::Nop,
                0x02 => I::AdvanceLoc { delta: self.read_bytes::<1>()?[0].into() },
                0x03 => I::AdvanceLoc { delta: u16::from_le_bytes(self.read_bytes()?).into() },
                0x04 => I::AdvanceLoc { delta: u32::from_le_bytes(self.read_bytes()?) },
                0x0a => I::RememberState,
                0x0b => I::RestoreState,
                0x0c => I::DefCfa { register: self.read_register()?, offset: self.read_uleb()? },
                0x0d => I::DefCfaRegister { register: self.read_register()? },
                0x0e => I::DefCfaOffset { offset: self.read_uleb()? },
                0x2e => I::ArgsSize { size: self.read_uleb()? },
                _ => return None,
            },
        };
        Some(Some(instruction))
    }

    fn read_bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn read_register(&mut self) -> Option<Register> {
        self.read_uleb()?.try_into().ok().map(Register)
    }

    /// Reads a number of up to 28 bits in LEB128.
    #[inline]
    fn read_uleb(&mut self) -> Option<u64> {
        let mut value = 0;
        for (index, byte) in self.0.iter().take(4).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.0 = &self.0[index + 1..];
                return Some(value);
            }
        }
        None
    }
}

/// Reads a little-endian number of 4 bytes.
fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use addr2line::gimli::{BaseAddresses, EhFrame, LittleEndian, UnwindSection as _};
    use object::{Object as _, ObjectSection as _};

    use super::PlainFde;
    use crate::perf::cfi::fde_ranges;

    #[test]
    fn entries_are_those_that_gimli_reads() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = object::File::parse(&*program).unwrap();
        let section = file.section_by_name(".eh_frame").unwrap();
        let (bytes, bases) = (section.data().unwrap(), BaseAddresses::default().set_eh_frame(section.address()));
        let eh_frame = EhFrame::new(bytes, LittleEndian);
        let (mut plain, mut all) = (0, 0);
        for (range, cie_offset) in fde_ranges(bytes) {
            let cie = eh_frame.cie_from_offset(&bases, cie_offset.into()).unwrap();
            let fde = eh_frame.fde_from_offset(&bases, range.start.into(), |_, _, _| Ok(cie.clone())).unwrap();
            let Some(mut found) = PlainFde::parse(bytes, section.address(), range, &cie) else { continue };
            assert_eq!(found.function, fde.initial_address()..fde.end_address());
            let mut expected = fde.instructions(&eh_frame, &bases);
            let is_plain = loop {
                let Some(instruction) = found.instructions.next() else { break false };
                assert_eq!(instruction, expected.next().unwrap());
                if instruction.is_none() {
                    break true;
                }
            };
            all += 1;
            plain += usize::from(is_plain);
        }
        assert!(plain * 100 > all * 98 && plain > 1000, "{plain} of {all}");
    }

    #[test]
    fn numbers_that_are_cut_or_long_are_left_to_gimli() {
        use super::PlainInstructions;
        for bytes in [&[0x0e, 0x80][..], &[0x0e, 0x80, 0x80, 0x80, 0x80, 1], &[0x03, 1], &[0x16, 1, 1], &[0x86]] {
            assert_eq!(PlainInstructions(bytes).next(), None, "{bytes:?}");
        }
        assert_eq!(PlainInstructions(&[]).next(), Some(None));
    }
}
