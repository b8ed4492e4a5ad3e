//! Call frame information of an object, for the frames that framehop cannot step.
//!
//! These are signal frames, functions that realign their stack, and functions without a caller. The CFA of the former is an
//! expression that reads memory (`DW_CFA_def_cfa_expression`), or an offset from a register that framehop does not follow. They are
//! few (8 in glibc, 84 in OpenSSL, 16 in rustc), so the unwind information of an object is searched for them once. The unwinder steps
//! them by the rules of DWARF 5, section 6.4.

use std::ops::{Deref, Range};
use std::sync::Arc;

use addr2line::gimli::{
    self, BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CfaRule, CommonInformationEntry, EhFrame,
    EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian, RegisterRule, UnwindContext, UnwindSection as _,
};

use super::objects::object::Bytes;

/// The bytes of a section, as gimli reads them.
pub(super) type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The bytes of a section.
#[derive(Clone, Debug)]
pub enum Section {
    /// A range of the mapped file.
    Part(Bytes, Range<usize>),
    /// Bytes that were decompressed or read from elsewhere.
    Owned(Arc<[u8]>),
}

impl Default for Section {
    fn default() -> Self {
        Self::Owned(Arc::from([]))
    }
}

impl Deref for Section {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Part(bytes, range) => &bytes[range.clone()],
            Self::Owned(bytes) => bytes,
        }
    }
}

/// The frame description entries (FDEs) of an object that are stepped without framehop.
#[derive(Clone, Debug, Default)]
pub struct CfiTable {
    eh_frame: Section,
    /// The sorted table of all FDEs (`.eh_frame_hdr`); empty if the object has none.
    index: Section,
    bases: BaseAddresses,
    /// The selected entries, sorted by address.
    entries: Vec<CfiEntry>,
}

/// A function that is stepped without framehop.
#[derive(Clone, Copy, Debug)]
pub struct CfiEntry {
    pub(super) start: u64,
    end: u64,
    /// The offset of the FDE in `.eh_frame`.
    offset: usize,
    is_signal: bool,
}

impl CfiEntry {
    /// True for the frame to which a signal handler returns. The kernel created this frame; no function called it.
    pub fn is_signal(&self) -> bool {
        self.is_signal
    }
}

/// The opcode of `DW_OP_deref`, which reads memory.
const DEREF: u8 = 0x06;

impl CfiTable {
    /// Selects the entries of an `.eh_frame` section that framehop cannot step.
    ///
    /// `address` and `text` are the addresses of `.eh_frame` and `.text`. framehop follows the registers `followed`,
    /// the stack pointer and the frame pointer.
    pub(super) fn select(address: u64, section: &Section, text: u64, followed: [gimli::Register; 2]) -> Self {
        Self::read(address, section, text, Some(followed))
    }

    /// Reads all entries of an `.eh_frame` section.
    pub fn read_all(address: u64, eh_frame: Vec<u8>, text: u64) -> Self {
        Self::read(address, &Section::Owned(eh_frame.into()), text, None)
    }

    /// Reads the entries that framehop cannot step if it follows these registers, or all entries.
    fn read(address: u64, section: &Section, text: u64, followed: Option<[gimli::Register; 2]>) -> Self {
        let bases = BaseAddresses::default().set_eh_frame(address).set_text(text);
        let eh_frame = EhFrame::new(section, LittleEndian);
        let (mut entries, mut last_cie) = (Vec::new(), None::<(usize, CommonInformationEntry<_>, bool)>);
        for (range, cie_offset) in fde_ranges(section) {
            // Nearly all FDEs of an object have the same CIE.
            if last_cie.as_ref().is_none_or(|(offset, ..)| *offset != cie_offset) {
                last_cie = eh_frame.cie_from_offset(&bases, cie_offset.into()).ok().map(|cie| {
                    // What a CIE says holds at the start of all its FDEs.
                    let is_wanted = cie.is_signal_trampoline()
                        || followed.is_none_or(|followed| {
                            is_unsupported(&eh_frame, &cie, cie.instructions(&eh_frame, &bases), followed)
                        });
                    (cie_offset, cie, is_wanted)
                });
            }
            let Some((_, cie, is_wanted)) = &last_cie else { continue };
            if !is_wanted && !may_be_unsupported(&section[range.clone()], cie) {
                continue;
            }
            let fde = eh_frame.fde_from_offset(&bases, range.start.into(), |_: &EhFrame<_>, _, _| Ok(cie.clone()));
            let Ok(fde) = fde else { continue };
            let is_wanted = *is_wanted
                || followed.is_some_and(|followed| {
                    is_unsupported(&eh_frame, cie, fde.instructions(&eh_frame, &bases), followed)
                });
            if is_wanted {
                let (start, end) = (fde.initial_address(), fde.end_address());
                entries.push(CfiEntry { start, end, offset: range.start, is_signal: cie.is_signal_trampoline() });
            }
        }
        entries.sort_unstable_by_key(|entry| entry.start);
        Self { eh_frame: section.clone(), index: Section::default(), bases, entries }
    }

    /// Adds the `.eh_frame_hdr` section at an address.
    pub(super) fn with_index(self, address: u64, index: Section) -> Self {
        Self { index, bases: self.bases.set_eh_frame_hdr(address), ..self }
    }

    /// Returns true if an entry covers an address.
    ///
    /// Without a sorted table of the entries, all are read.
    pub(super) fn covers(&self, address: u64) -> bool {
        // Such an object has another form of unwind information.
        self.eh_frame.is_empty() || self.find_fde(address).is_some()
    }

    /// True if the FDE of a function begins at an address.
    pub(super) fn begins_at(&self, address: u64) -> bool {
        self.find_fde(address).is_some_and(|fde| fde.initial_address() == address)
    }

    fn find_fde(&self, address: u64) -> Option<FrameDescriptionEntry<Slice<'_>>> {
        let eh_frame = self.eh_frame();
        let header = EhFrameHdr::new(&self.index, LittleEndian).parse(&self.bases, 8).ok();
        if let Some(table) = header.as_ref().and_then(|header| header.table()) {
            return table.fde_for_address(&eh_frame, &self.bases, address, EhFrame::cie_from_offset).ok();
        }
        eh_frame.fde_for_address(&self.bases, address, EhFrame::cie_from_offset).ok()
    }

    /// Returns where the code at an address has saved a register, as an offset from its CFA.
    ///
    /// `Some(None)` if the code did not change the register, `None` if the unwind information does not say.
    pub(super) fn saved_register(&self, register: gimli::Register, address: u64) -> Option<Option<i64>> {
        let header = EhFrameHdr::new(&self.index, LittleEndian).parse(&self.bases, 8).ok()?;
        let (eh_frame, mut context) = (self.eh_frame(), UnwindContext::new());
        let get_cie = EhFrame::cie_from_offset;
        let row =
            header.table()?.unwind_info_for_address(&eh_frame, &self.bases, &mut context, address, get_cie).ok()?;
        match row.register(register) {
            None | Some(RegisterRule::SameValue) => Some(None),
            Some(RegisterRule::Offset(offset)) => Some(Some(offset)),
            Some(_) => None,
        }
    }

    /// Returns the entry that covers an address.
    pub fn find(&self, address: u64) -> Option<CfiEntry> {
        let after = self.entries.partition_point(|entry| entry.start <= address);
        let entry = *self.entries.get(after.checked_sub(1)?)?;
        (address < entry.end).then_some(entry)
    }

    /// Returns the address from which on the CFA of an entry is in rcx: there, the stack pointer is that of an exception's handler.
    pub(super) fn handler_call(&self, entry: CfiEntry) -> Option<u64> {
        let (eh_frame, mut context) = (self.eh_frame(), UnwindContext::new());
        let fde = self.parse_fde(entry)?;
        let mut rows = fde.rows(&eh_frame, &self.bases, &mut context).ok()?;
        while let Some(row) = rows.next_row().ok()? {
            if matches!(row.cfa(), CfaRule::RegisterAndOffset { register: gimli::X86_64::RCX, .. }) {
                return Some(row.start_address());
            }
        }
        None
    }

    /// Parses the FDE of an entry.
    pub(super) fn parse_fde(&self, entry: CfiEntry) -> Option<FrameDescriptionEntry<Slice<'_>>> {
        self.eh_frame().fde_from_offset(&self.bases, entry.offset.into(), EhFrame::cie_from_offset).ok()
    }

    /// The `.eh_frame` section.
    pub(super) fn eh_frame(&self) -> EhFrame<Slice<'_>> {
        EhFrame::new(&self.eh_frame, LittleEndian)
    }

    /// The addresses to which encoded pointers are relative.
    pub(super) fn bases(&self) -> &BaseAddresses {
        &self.bases
    }
}

/// Iterates over the FDEs of an `.eh_frame` section: the range of each and the offset of its CIE.
///
/// An entry starts with its length, in 4 bytes, or in 8 after 4 bytes of ones. Then comes the distance back to its CIE,
/// which is 0 in CIEs.
pub(super) fn fde_ranges(section: &[u8]) -> impl Iterator<Item = (Range<usize>, usize)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        loop {
            let start = next;
            let (body, length) = match u32::from_le_bytes(read_bytes(section, start)?) {
                u32::MAX => (start + 12, usize::try_from(u64::from_le_bytes(read_bytes(section, start + 4)?)).ok()?),
                length => (start + 4, length as usize),
            };
            next = body.checked_add(length)?;
            if length < 4 {
                continue;
            }
            let distance = u32::from_le_bytes(read_bytes(section, body)?) as usize;
            if distance > 0 && next <= section.len() {
                return Some((start..next, body.checked_sub(distance)?));
            }
        }
    })
}

fn read_bytes<const N: usize>(section: &[u8], offset: usize) -> Option<[u8; N]> {
    section.get(offset..)?.first_chunk().copied()
}

/// True if any byte of an FDE may be an instruction that framehop does not support.
///
/// Most FDEs contain no such byte, and are not parsed.
fn may_be_unsupported(fde: &[u8], cie: &CommonInformationEntry<Slice<'_>>) -> bool {
    use gimli::constants::{
        DW_CFA_def_cfa, DW_CFA_def_cfa_expression, DW_CFA_def_cfa_register, DW_CFA_def_cfa_sf, DW_CFA_register,
        DW_CFA_undefined, DW_EH_PE_sdata4,
    };
    // After the length and the CIE distance, and after the address and size of the function if both have 4 bytes.
    let is_short = cie.fde_address_encoding().is_some_and(|encoding| encoding.format() == DW_EH_PE_sdata4);
    let instructions = fde.get(if is_short { 16 } else { 8 }..).unwrap_or_default();
    memchr::memchr3(DW_CFA_def_cfa.0, DW_CFA_def_cfa_expression.0, DW_CFA_def_cfa_register.0, instructions)
        .or_else(|| memchr::memchr2(DW_CFA_def_cfa_sf.0, DW_CFA_register.0, instructions))
        // The number of `DW_CFA_undefined` is that of a register, too, which many entries name.
        .or_else(|| memchr::memmem::find(instructions, &[DW_CFA_undefined.0, cie.return_address_register().0 as u8]))
        .is_some()
}

/// True if instructions of a CIE, or of one of its FDEs, have a CFA that framehop cannot compute.
fn is_unsupported(
    eh_frame: &EhFrame<Slice<'_>>,
    cie: &CommonInformationEntry<Slice<'_>>,
    mut instructions: CallFrameInstructionIter<'_, Slice<'_>>,
    followed: [gimli::Register; 2],
) -> bool {
    let return_address = cie.return_address_register();
    while let Ok(Some(instruction)) = instructions.next() {
        let is_unsupported = match instruction {
            CallFrameInstruction::DefCfaExpression { expression } => {
                expression.get(eh_frame).is_ok_and(|expression| expression.0.slice().contains(&DEREF))
            }
            CallFrameInstruction::DefCfa { register, .. }
            | CallFrameInstruction::DefCfaSf { register, .. }
            | CallFrameInstruction::DefCfaRegister { register } => !followed.contains(&register),
            // The caller's return address is in a register, as in vfork, which must not leave it on the stack.
            CallFrameInstruction::Register { dest_register, .. } => dest_register == return_address,
            // The function has no caller, which framehop says of words that are zero by chance, too.
            CallFrameInstruction::Undefined { register } => register == return_address,
            _ => false,
        };
        if is_unsupported {
            return true;
        }
    }
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use gimli::{AArch64, CieOrFde, X86_64};
    use object::{Object as _, ObjectSection as _};

    use super::*;

    #[test]
    fn the_byte_search_misses_no_unsupported_entry() {
        let followed = match cfg!(target_arch = "aarch64") {
            true => [AArch64::SP, AArch64::X29],
            false => [X86_64::RSP, X86_64::RBP],
        };
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut files: Vec<&str> = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).collect();
        files.dedup();
        let mut found = 0;
        for bytes in files.iter().filter_map(|file| std::fs::read(file).ok()) {
            let Ok(file) = object::File::parse(&*bytes) else { continue };
            let Some(section) = file.section_by_name(".eh_frame") else { continue };
            let bases = BaseAddresses::default().set_eh_frame(section.address());
            let section = Section::Owned(section.uncompressed_data().unwrap().into());
            let eh_frame = EhFrame::new(&section, LittleEndian);
            let mut ours = fde_ranges(&section).map(|(range, _)| range);
            let mut theirs = eh_frame.entries(&bases);
            while let Ok(Some(entry)) = theirs.next() {
                let CieOrFde::Fde(partial) = entry else { continue };
                let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
                let range = ours.next().unwrap();
                assert_eq!(range.start, fde.offset());
                let cie = fde.cie();
                if is_unsupported(&eh_frame, cie, fde.instructions(&eh_frame, &bases), followed) {
                    assert!(may_be_unsupported(&section[range], cie), "{:x}", fde.initial_address());
                    found += 1;
                }
            }
            assert_eq!(ours.next(), None);
        }
        // glibc has at least one: the frame to which signal handlers return.
        assert!(found > 0 || !maps.contains("/libc.so.6"));
    }
}
