//! Frame description entries (FDEs) of `.eh_frame` in the form that nearly all compilers write.
//!
//! An object has up to some hundred thousand of them. They are read here in a third of the time that gimli takes, which reads all
//! others: the state of a function is its rule, and instructions change bits of it.

use std::ops::Range;

use addr2line::gimli::{
    CommonInformationEntry,
    constants::{DW_EH_PE_pcrel, DW_EH_PE_sdata4},
};

use super::rules::kind;
use super::state::State;
use crate::perf::cfi::Slice;

/// The numbers of registers in DWARF.
const RBP: u8 = 6;
const RSP: u8 = 7;
const RETURN_ADDRESS: u8 = 16;

/// Bits of a rule.
const OFFSET: u64 = 0xffff_ffff << 16;
const KIND: u64 = 0xff << 48;

/// An entry whose function has an address of 4 bytes, relative to its own place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlainFde<'a> {
    /// The addresses of the function.
    pub(super) function: Range<u64>,
    instructions: &'a [u8],
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
        let mut rest = Reader(entry.get(16..)?);
        // Data for exception handlers, and how long they are.
        let augmentation = rest.read_uleb()? as usize;
        Some(Self { function: start..end, instructions: rest.0.get(augmentation..)? })
    }

    /// Calls `add` with each rule of the function, and the address from which it holds. `None` if there are instructions of other
    /// forms, which may be after some rules.
    ///
    /// `initial` is the rule at the start of the function.
    #[inline]
    pub(super) fn for_each_rule(&self, initial: PlainRule, mut add: impl FnMut(u64, u64)) -> Option<()> {
        let PlainRule(initial) = initial;
        let (mut reader, mut saved_rules) = (Reader(self.instructions), Vec::new());
        let (mut rule, mut address, mut last) = (initial, self.function.start, None);
        while let Some((&code, rest)) = reader.0.split_first() {
            reader.0 = rest;
            let operand = code & 0x3f;
            let advance = match (code >> 6, operand) {
                (1, _) => u32::from(operand),
                (0, 0x02) => u32::from(reader.read_bytes::<1>()?[0]),
                (0, 0x03) => u32::from(u16::from_le_bytes(reader.read_bytes()?)),
                (0, 0x04) => u32::from_le_bytes(reader.read_bytes()?),
                (2, register) => {
                    let words = reader.read_uleb()?;
                    match register {
                        RBP => {
                            rule = rule & !0xffff
                                | u64::from(0i16.checked_sub_unsigned(words.try_into().ok()?)?.cast_unsigned())
                        }
                        // The program reads the return address right below the CFA.
                        RETURN_ADDRESS if words == 1 => {}
                        RETURN_ADDRESS | RSP => return None,
                        _ => {}
                    }
                    continue;
                }
                (3, RBP) => {
                    rule = rule & !0xffff | initial & 0xffff;
                    continue;
                }
                (3, RETURN_ADDRESS) => return None,
                (3, _) | (0, 0x00) => continue,
                (0, 0x0a) => {
                    saved_rules.push(rule);
                    continue;
                }
                (0, 0x0b) => {
                    rule = saved_rules.pop()?;
                    continue;
                }
                (0, 0x0c) => {
                    rule = rule & !KIND | kind_of(reader.read_uleb()?)?;
                    rule = rule & !OFFSET | u64::from(reader.read_uleb()?) << 16;
                    continue;
                }
                (0, 0x0d) => {
                    rule = rule & !KIND | kind_of(reader.read_uleb()?)?;
                    continue;
                }
                (0, 0x0e) => {
                    rule = rule & !OFFSET | u64::from(reader.read_uleb()?) << 16;
                    continue;
                }
                // The size of arguments on the stack.
                (0, 0x2e) => {
                    reader.read_uleb()?;
                    continue;
                }
                _ => return None,
            };
            if advance > 0 {
                if last.replace(rule) != Some(rule) {
                    add(address, rule);
                }
                address = address.checked_add(advance.into())?;
            }
        }
        if address < self.function.end && last != Some(rule) {
            add(address, rule);
        }
        Some(())
    }
}

/// A rule by a register and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlainRule(u64);

impl PlainRule {
    /// Returns the rule at the start of all functions of a CIE. `None` if it is of another kind, or if the instructions of the
    /// functions have other units.
    pub(super) fn initial(state: &State) -> Option<Self> {
        let rule = state.rule();
        let is_plain = [kind::STACK_POINTER, kind::FRAME_POINTER].contains(&(rule >> 48));
        (is_plain && state.has_usual_units()).then_some(Self(rule))
    }
}

/// Returns the kind of the rules by a register. `None` for other registers than the stack pointer and the frame pointer.
fn kind_of(register: u32) -> Option<u64> {
    match u8::try_from(register).ok()? {
        RSP => Some(kind::STACK_POINTER << 48),
        RBP => Some(kind::FRAME_POINTER << 48),
        _ => None,
    }
}

/// The bytes of an entry that are left to be read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn read_bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    /// Reads a number of up to 28 bits in LEB128.
    #[inline]
    fn read_uleb(&mut self) -> Option<u32> {
        let mut value = 0;
        for (index, byte) in self.0.iter().take(4).enumerate() {
            value |= u32::from(byte & 0x7f) << (7 * index);
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

    use super::super::{kind, rule};
    use super::{PlainFde, PlainRule};
    use crate::perf::cfi::fde_ranges;

    /// At the start of a function, the return address is on top of the stack.
    const INITIAL: PlainRule = PlainRule(rule(kind::STACK_POINTER, 8, 0));

    /// Returns the rules of a function of 256 bytes.
    fn rules(instructions: &[u8]) -> Option<Vec<(u64, u64)>> {
        let fde = PlainFde { function: 0x1000..0x1100, instructions };
        let mut rules = Vec::new();
        fde.for_each_rule(INITIAL, |address, rule| rules.push((address, rule)))?;
        Some(rules)
    }

    #[test]
    fn most_entries_are_plain() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = object::File::parse(&*program).unwrap();
        let section = file.section_by_name(".eh_frame").unwrap();
        let (bytes, bases) = (section.data().unwrap(), BaseAddresses::default().set_eh_frame(section.address()));
        let eh_frame = EhFrame::new(bytes, LittleEndian);
        let (mut plain, mut all) = (0, 0);
        for (range, cie_offset) in fde_ranges(bytes) {
            let cie = eh_frame.cie_from_offset(&bases, cie_offset.into()).unwrap();
            let fde = eh_frame.fde_from_offset(&bases, range.start.into(), |_, _, _| Ok(cie.clone())).unwrap();
            let Some(found) = PlainFde::parse(bytes, section.address(), range, &cie) else { continue };
            assert_eq!(found.function, fde.initial_address()..fde.end_address());
            all += 1;
            plain += usize::from(found.for_each_rule(INITIAL, |_, _| ()).is_some());
        }
        assert!(plain * 100 > all * 98 && plain > 1000, "{plain} of {all}");
    }

    #[test]
    fn instructions_change_the_rule() {
        // push rbp; mov rbp, rsp; …; a part behind `leave`, and the rest of the body.
        let frame =
            [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x40, 0x0a, 0x0c, 7, 8, 0xc6, 0x41, 0x0b, 0x83, 3, 0x2e, 16];
        let expected = [
            (0x1000, rule(kind::STACK_POINTER, 8, 0)),
            (0x1001, rule(kind::STACK_POINTER, 16, -2)),
            (0x1004, rule(kind::FRAME_POINTER, 16, -2)),
            (0x1044, rule(kind::STACK_POINTER, 8, 0)),
            (0x1045, rule(kind::FRAME_POINTER, 16, -2)),
        ];
        assert_eq!(rules(&frame), Some(expected.to_vec()));
        let large = [0x03, 0x10, 0, 0x0e, 0x80, 1, 0x04, 0x10, 0, 0, 0, 0x0e, 0x80, 1, 0];
        let expected = [(0x1000, rule(kind::STACK_POINTER, 8, 0)), (0x1010, rule(kind::STACK_POINTER, 128, 0))];
        assert_eq!(rules(&large), Some(expected.to_vec()));
        assert_eq!(rules(&[]), Some(expected[..1].to_vec()));
    }

    #[test]
    fn what_is_cut_or_rare_is_left_to_gimli() {
        for bytes in [
            &[0x0e, 0x80][..],
            &[0x0e, 0x80, 0x80, 0x80, 0x80, 1],
            &[0x03, 1],
            &[0x16, 1, 1],
            &[0x86],
            &[0x0b],
            // The return address elsewhere, the stack pointer saved, another register.
            &[0x90, 2],
            &[0xd0],
            &[0x87, 2],
            &[0x0d, 2],
        ] {
            assert_eq!(rules(bytes), None, "{bytes:x?}");
        }
    }
}
