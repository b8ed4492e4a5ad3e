//! PLT stubs: code without symbols through which an object calls functions of other objects.
//!
//! A stub jumps to the address in a slot of the global offset table, and a relocation names the function whose address
//! the dynamic linker writes there. As in perf and objdump, the stub's name is `function@plt`.
//!
//! Linkers lay out stubs in many ways, so this module decodes their instructions and assumes nothing about their order.
//! It knows those of x86-64 and AArch64; on other architectures stubs have no names.

use object::elf::RelocationType;
use object::{Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _};
use rustc_hash::FxHashMap;

/// The PLT stubs that cover a given list of addresses.
#[derive(Debug, Default)]
pub struct Plt<'a> {
    /// In ascending order of their starts.
    stubs: Vec<NamedStub<'a>>,
}

#[derive(Debug)]
struct NamedStub<'a> {
    start: u64,
    end: u64,
    callee: Callee<'a>,
}

/// The function that a stub calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee<'a> {
    /// A function by its mangled name.
    Symbol(&'a [u8]),
    /// A function in the same object, by its address.
    Local(u64),
}

/// The sections that contain stubs.
const SECTIONS: [&str; 4] = [".plt", ".plt.sec", ".plt.got", ".iplt"];

/// The size of an AArch64 instruction in bytes. Stubs of both architectures begin at multiples of it.
const INSTRUCTION: usize = 4;

impl<'a> Plt<'a> {
    /// Reads the stubs that cover `addresses`, which must be in ascending order.
    pub fn read(file: &object::File<'a>, addresses: &[u64]) -> Self {
        let found = find_stubs(file, addresses);
        if found.is_empty() {
            return Self::default();
        }
        let slots = Slots::read(file);
        let mut stubs: Vec<_> = found.into_iter().filter_map(|(start, stub)| slots.name_stub(start, stub)).collect();
        stubs.sort_unstable_by_key(|stub| stub.start);
        Self { stubs }
    }

    /// Returns the addresses of the functions in the same object that stubs call. The object's symbols name them.
    pub fn local_callees(&self) -> impl Iterator<Item = u64> {
        self.stubs.iter().filter_map(|stub| match stub.callee {
            Callee::Local(address) => Some(address),
            Callee::Symbol(_) => None,
        })
    }

    /// Returns the first address and the callee of the stub that covers an address.
    pub fn find(&self, address: u64) -> Option<(u64, Callee<'a>)> {
        let after = self.stubs.partition_point(|stub| stub.start <= address);
        let stub = self.stubs.get(after.checked_sub(1)?)?;
        (address < stub.end).then_some((stub.start, stub.callee))
    }
}

/// Decodes the stubs that cover `addresses`, which must be in ascending order. Returns them with their first addresses.
fn find_stubs(file: &object::File<'_>, addresses: &[u64]) -> Vec<(u64, Stub)> {
    let mut found = Vec::new();
    let Some(decode) = decoder(file.architecture()) else { return found };
    for section in SECTIONS.iter().filter_map(|name| file.section_by_name(name)) {
        if !contains_any(section.address(), section.size(), addresses) {
            continue;
        }
        let code = section.data().unwrap_or_default();
        let mut offset = 0;
        while offset < code.len() {
            let address = section.address().wrapping_add(offset as u64);
            let Some(stub) = decode(&code[offset..], address) else {
                offset += INSTRUCTION;
                continue;
            };
            offset += stub.size;
            if contains_any(address, stub.size as u64, addresses) {
                found.push((address, stub));
            }
        }
    }
    found
}

/// Returns true if any of `addresses`, which must be in ascending order, is in the `size` bytes from `start` on.
fn contains_any(start: u64, size: u64, addresses: &[u64]) -> bool {
    let first = addresses.partition_point(|address| *address < start);
    addresses.get(first).is_some_and(|address| address - start < size)
}

/// A decoded stub.
#[derive(Debug, PartialEq, Eq)]
struct Stub {
    /// The size in bytes, with the padding after it.
    size: usize,
    target: Target,
}

/// The slot whose content a stub jumps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The slot at an address.
    Slot(u64),
    /// The slot that an entry of `.rela.plt` relocates, by the entry's index.
    Relocation(u32),
}

/// Decodes the stub at the start of `code`, which is at an address.
type DecodeStub = fn(code: &[u8], address: u64) -> Option<Stub>;

/// Returns the decoder for an architecture, if its stubs are known.
fn decoder(architecture: Architecture) -> Option<DecodeStub> {
    match architecture {
        Architecture::X86_64 => Some(decode_x86_64),
        Architecture::Aarch64 => Some(decode_aarch64),
        _ => None,
    }
}

/// Decodes `[endbr64] [bnd] jmp *SLOT(%rip)` or `[endbr64] push INDEX; [bnd] jmp …`.
///
/// The first form is padded to a multiple of 8 bytes, or has 16 bytes if `push INDEX` follows.
fn decode_x86_64(code: &[u8], address: u64) -> Option<Stub> {
    const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const BND: &[u8] = &[0xf2];
    const JMP_RIP_RELATIVE: &[u8] = &[0xff, 0x25];
    const PUSH_IMM32: &[u8] = &[0x68];
    let rest = code.strip_prefix(ENDBR64).unwrap_or(code);
    if let Some(index) = rest.strip_prefix(PUSH_IMM32) {
        return Some(Stub { size: 16, target: Target::Relocation(read_u32(index, 0)?) });
    }
    let rest = rest.strip_prefix(BND).unwrap_or(rest);
    let offset = rest.strip_prefix(JMP_RIP_RELATIVE)?;
    let length = code.len() - offset.len() + 4;
    let next_instruction = address.wrapping_add(length as u64);
    let slot = next_instruction.wrapping_add_signed(i64::from(read_u32(offset, 0)?.cast_signed()));
    let size = if offset[4..].starts_with(PUSH_IMM32) || length > 8 { 16 } else { 8 };
    Some(Stub { size, target: Target::Slot(slot) })
}

/// Decodes `[bti c]; adrp x16, PAGE; ldr x17, [x16, OFFSET]; add x16, …; [autia1716]; br x17`.
fn decode_aarch64(code: &[u8], address: u64) -> Option<Stub> {
    const BTI_C: u32 = 0xd503_245f;
    const BR_X17: u32 = 0xd61f_0220;
    let adrp_index = usize::from(read_u32(code, 0)? == BTI_C);
    let (adrp, ldr) = (read_u32(code, adrp_index)?, read_u32(code, adrp_index + 1)?);
    let is_adrp_x16 = adrp & 0x9f00_001f == 0x9000_0010;
    let is_ldr_x17_x16 = ldr & 0xffc0_03ff == 0xf940_0211;
    if !is_adrp_x16 || !is_ldr_x17_x16 {
        return None;
    }
    // `adrp` adds a signed 21-bit number of 4 KiB pages to the page of the instruction.
    let pages = u64::from((adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3);
    let page_offset = ((pages << 43).cast_signed() >> 43) << 12;
    let adrp_address = address.wrapping_add((adrp_index * INSTRUCTION) as u64);
    let page = (adrp_address & !0xfff).wrapping_add_signed(page_offset);
    let slot = page.wrapping_add(u64::from(ldr >> 10 & 0xfff) * 8);
    let br_index = (adrp_index + 2..adrp_index + 6).find(|index| read_u32(code, *index) == Some(BR_X17))?;
    let size = ((br_index + 1) * INSTRUCTION).next_multiple_of(8);
    Some(Stub { size, target: Target::Slot(slot) })
}

/// Reads the 32-bit little-endian word number `index`.
fn read_u32(bytes: &[u8], index: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(index * 4..index * 4 + 4)?.try_into().ok()?))
}

/// The slots of the global offset table, and the functions whose addresses the dynamic linker writes into them.
#[derive(Default)]
struct Slots<'a> {
    by_address: FxHashMap<u64, Callee<'a>>,
    /// The addresses of the slots that `.rela.plt` relocates, in its order.
    in_rela_plt: Vec<u64>,
}

impl<'a> Slots<'a> {
    fn read(file: &object::File<'a>) -> Self {
        let mut slots = Self::default();
        let (Some(relocations), Some(symbols)) = (file.dynamic_relocations(), file.dynamic_symbol_table()) else {
            return slots;
        };
        for (address, relocation) in relocations {
            let object::RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let Some(kind) = SlotKind::from_relocation(file.architecture(), r_type) else { continue };
            if kind != SlotKind::GlobalData {
                slots.in_rela_plt.push(address);
            }
            let callee = match (kind, relocation.target()) {
                (SlotKind::Indirect, _) => Some(Callee::Local(relocation.addend().cast_unsigned())),
                (_, object::RelocationTarget::Symbol(index)) => {
                    let name = symbols.symbol_by_index(index).ok().and_then(|symbol| symbol.name_bytes().ok());
                    name.filter(|name| !name.is_empty()).map(Callee::Symbol)
                }
                _ => None,
            };
            if let Some(callee) = callee {
                slots.by_address.insert(address, callee);
            }
        }
        slots
    }

    /// Adds to a stub the function that it calls; `None` if no relocation names one.
    fn name_stub(&self, start: u64, Stub { size, target }: Stub) -> Option<NamedStub<'a>> {
        let slot = match target {
            Target::Slot(address) => address,
            Target::Relocation(index) => *self.in_rela_plt.get(index as usize)?,
        };
        let callee = *self.by_address.get(&slot)?;
        Some(NamedStub { start, end: start.wrapping_add(size as u64), callee })
    }
}

/// The kind of value that a relocation writes into its slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotKind {
    /// A function's address, on its first call (`R_*_JUMP_SLOT`).
    JumpSlot,
    /// The address that a resolver function of the object returns (`R_*_IRELATIVE`).
    Indirect,
    /// A symbol's address (`R_*_GLOB_DAT`).
    GlobalData,
}

impl SlotKind {
    fn from_relocation(architecture: Architecture, r_type: RelocationType) -> Option<Self> {
        use object::elf::{
            R_AARCH64_GLOB_DAT, R_AARCH64_IRELATIVE, R_AARCH64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE,
            R_X86_64_JUMP_SLOT,
        };
        match architecture {
            Architecture::X86_64 => match r_type {
                R_X86_64_JUMP_SLOT => Some(Self::JumpSlot),
                R_X86_64_IRELATIVE => Some(Self::Indirect),
                R_X86_64_GLOB_DAT => Some(Self::GlobalData),
                _ => None,
            },
            Architecture::Aarch64 => match r_type {
                R_AARCH64_JUMP_SLOT => Some(Self::JumpSlot),
                R_AARCH64_IRELATIVE => Some(Self::Indirect),
                R_AARCH64_GLOB_DAT => Some(Self::GlobalData),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Stub, Target, decode_aarch64, decode_x86_64};

    fn slot(size: usize, slot: u64) -> Option<Stub> {
        Some(Stub { size, target: Target::Slot(slot) })
    }

    fn code(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn decodes_stubs_of_x86_64() {
        let lazy = [0xff, 0x25, 0x10, 0, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0];
        assert_eq!(decode_x86_64(&lazy, 0x1000), slot(16, 0x1016));
        let secure = [0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf6, 0xff, 0xff, 0xff, 0x66, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(decode_x86_64(&secure, 0x1000), slot(16, 0x1000));
        let got = [0xff, 0x25, 0x10, 0, 0, 0, 0x66, 0x90];
        assert_eq!(decode_x86_64(&got, 0x1000), slot(8, 0x1016));
        let pushes = [0xf3, 0x0f, 0x1e, 0xfa, 0x68, 3, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90];
        assert_eq!(decode_x86_64(&pushes, 0x1000), Some(Stub { size: 16, target: Target::Relocation(3) }));
        let head = [0xff, 0x35, 0x10, 0, 0, 0, 0xff, 0x25, 0x10, 0, 0, 0, 0x0f, 0x1f, 0x40, 0];
        assert_eq!(decode_x86_64(&head, 0x1000), None);
        for end in 0..16 {
            let _ = (
                decode_x86_64(&lazy[..end], u64::MAX),
                decode_x86_64(&pushes[..end], u64::MAX),
                decode_aarch64(&lazy[..end], 0),
            );
        }
    }

    #[test]
    fn decodes_stubs_of_aarch64() {
        // adrp x16, 0x20000; ldr x17, [x16, #24]; add x16, x16, #24; br x17
        let plain = [0xf000_0090, 0xf940_0e11, 0x9100_6210, 0xd61f_0220];
        assert_eq!(decode_aarch64(&code(&plain), 0x11230), slot(16, 0x24018));
        let guarded = [&[0xd503_245f][..], &plain].concat();
        assert_eq!(decode_aarch64(&code(&guarded), 0x11230), slot(24, 0x24018));
        // stp x16, x30, [sp, #-16]!
        assert_eq!(decode_aarch64(&code(&[0xa9bf_7bf0, plain[0], plain[1], plain[2]]), 0x11230), None);
    }
}
