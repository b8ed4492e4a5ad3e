//! Stubs of the procedure linkage table: code without symbols by which an object calls functions of others. A stub jumps
//! to wherever a slot points to, and a relocation says whose address goes there: it is named `function@plt`.
//!
//! What a stub looks like is the linker's choice, so its instructions are read, and nothing is concluded from its place.

use object::{Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _};
use rustc_hash::FxHashMap;

/// The stubs of an object at some addresses.
#[derive(Debug, Default)]
pub struct Plt<'a> {
    /// First address, the one behind the last, what is called.
    stubs: Vec<(u64, u64, Callee<'a>)>,
}

/// What a stub calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee<'a> {
    /// A function of this name, mangled.
    Named(&'a [u8]),
    /// A function of the object's own, at this address.
    Own(u64),
}

/// The sections in which linkers put them.
const SECTIONS: [&str; 4] = [".plt", ".plt.sec", ".plt.got", ".iplt"];

impl<'a> Plt<'a> {
    /// Reads the stubs of an object at addresses, in ascending order.
    pub fn read(file: &object::File<'a>, addresses: &[u64]) -> Self {
        let Some(stub_at) = reader(file) else { return Self::default() };
        let mut found = Vec::new();
        for section in SECTIONS.iter().filter_map(|name| file.section_by_name(name)) {
            if !is_hit(addresses, section.address(), section.size()) {
                continue;
            }
            let code = section.data().unwrap_or_default();
            let mut at = 0;
            while at < code.len() {
                let address = section.address().wrapping_add(at as u64);
                let Some(stub) = stub_at(&code[at..], address) else {
                    at += 4;
                    continue;
                };
                at += stub.size;
                if is_hit(addresses, address, stub.size as u64) {
                    found.push((address, stub));
                }
            }
        }
        if found.is_empty() {
            return Self::default();
        }
        let slots = Slots::read(file);
        let named = |(start, Stub { size, target }): (u64, Stub)| {
            Some((start, start.wrapping_add(size as u64), slots.callee(target)?))
        };
        let mut stubs: Vec<_> = found.into_iter().filter_map(named).collect();
        stubs.sort_unstable_by_key(|stub| stub.0);
        Self { stubs }
    }

    /// The functions of the object's own that are called: they are named by its symbols.
    pub fn own_functions(&self) -> impl Iterator<Item = u64> {
        self.stubs.iter().filter_map(|(_, _, callee)| match callee {
            Callee::Own(address) => Some(*address),
            Callee::Named(_) => None,
        })
    }

    /// The stub that covers an address: its first address and what it calls.
    pub fn find(&self, address: u64) -> Option<(u64, Callee<'a>)> {
        let after = self.stubs.partition_point(|stub| stub.0 <= address);
        let (start, end, callee) = self.stubs.get(after.checked_sub(1)?)?;
        (address < *end).then_some((*start, *callee))
    }
}

/// Whether one of the addresses lies there.
fn is_hit(addresses: &[u64], start: u64, size: u64) -> bool {
    let first = addresses.partition_point(|address| *address < start);
    addresses.get(first).is_some_and(|address| address - start < size)
}

/// A stub as its instructions tell.
#[derive(Debug, PartialEq, Eq)]
struct Stub {
    size: usize,
    target: Target,
}

/// Where a stub goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// To where the slot at an address points.
    Slot(u64),
    /// To whatever the table's relocation of this number is for.
    Relocation(u32),
}

/// What finds a stub at the beginning of some code that stands at an address.
type StubAt = fn(&[u8], u64) -> Option<Stub>;

fn reader(file: &object::File<'_>) -> Option<StubAt> {
    match file.architecture() {
        Architecture::X86_64 => Some(x86_64),
        Architecture::Aarch64 => Some(aarch64),
        _ => None,
    }
}

/// `[endbr64] [bnd] jmp *SLOT(%rip)`, and what follows until the next multiple of 8 or, for those that go on to push
/// their number, 16; or `[endbr64] push NUMBER; [bnd] jmp …`.
fn x86_64(code: &[u8], address: u64) -> Option<Stub> {
    let rest = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
    let word = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?));
    let lazy = |rest: &[u8]| rest.first() == Some(&0x68);
    if lazy(rest) {
        return Some(Stub { size: 16, target: Target::Relocation(word(&rest[1..])?) });
    }
    let rest = rest.strip_prefix(&[0xf2]).unwrap_or(rest);
    let jump = rest.strip_prefix(&[0xff, 0x25])?;
    let length = code.len() - jump.len() + 4;
    let next = address.wrapping_add(length as u64);
    let slot = next.wrapping_add_signed(i64::from(word(jump)?.cast_signed()));
    let size = if lazy(&jump[4..]) || length > 8 { 16 } else { 8 };
    Some(Stub { size, target: Target::Slot(slot) })
}

/// `[bti c]; adrp x16, PAGE; ldr x17, [x16, OFFSET]; add x16, …; [autia1716]; br x17`.
fn aarch64(code: &[u8], address: u64) -> Option<Stub> {
    let word = |index: usize| Some(u32::from_le_bytes(code.get(index * 4..index * 4 + 4)?.try_into().ok()?));
    let first = usize::from(word(0)? == 0xd503_245f);
    let (adrp, ldr) = (word(first)?, word(first + 1)?);
    if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = u64::from((adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3);
    // Of 21 bits, signed.
    let pages = ((pages << 43).cast_signed() >> 43) << 12;
    let page = (address.wrapping_add(first as u64 * 4) & !0xfff).wrapping_add_signed(pages);
    let words = (first + 2..first + 6).find(|index| word(*index) == Some(0xd61f_0220))? + 1;
    let target = Target::Slot(page.wrapping_add(u64::from(ldr >> 10 & 0xfff) * 8));
    Some(Stub { size: (words * 4).next_multiple_of(8), target })
}

/// Whose addresses go into which slots.
#[derive(Default)]
struct Slots<'a> {
    by_address: FxHashMap<u64, Callee<'a>>,
    /// The addresses of the slots of `.rela.plt`, in its order.
    in_order: Vec<u64>,
}

impl<'a> Slots<'a> {
    fn read(file: &object::File<'a>) -> Self {
        let mut slots = Self::default();
        let (Some(relocations), Some(names)) = (file.dynamic_relocations(), file.dynamic_symbol_table()) else {
            return slots;
        };
        for (address, relocation) in relocations {
            let object::RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let Some(kind) = kind(file.architecture(), r_type.0) else { continue };
            if kind != Kind::GlobalData {
                slots.in_order.push(address);
            }
            let callee = match (kind, relocation.target()) {
                (Kind::Indirect, _) => Some(Callee::Own(relocation.addend().cast_unsigned())),
                (_, object::RelocationTarget::Symbol(index)) => {
                    let name = names.symbol_by_index(index).ok().and_then(|symbol| symbol.name_bytes().ok());
                    name.filter(|name| !name.is_empty()).map(Callee::Named)
                }
                _ => None,
            };
            if let Some(callee) = callee {
                slots.by_address.insert(address, callee);
            }
        }
        slots
    }

    fn callee(&self, target: Target) -> Option<Callee<'a>> {
        let address = match target {
            Target::Slot(address) => address,
            Target::Relocation(number) => *self.in_order.get(number as usize)?,
        };
        self.by_address.get(&address).copied()
    }
}

/// What a relocation puts into its slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A function's address, when it is first called.
    JumpSlot,
    /// What a function of the object itself returns.
    Indirect,
    /// A symbol's address.
    GlobalData,
}

fn kind(architecture: Architecture, number: u32) -> Option<Kind> {
    match (architecture, number) {
        (Architecture::X86_64, 7) | (Architecture::Aarch64, 1026) => Some(Kind::JumpSlot),
        (Architecture::X86_64, 37) | (Architecture::Aarch64, 1032) => Some(Kind::Indirect),
        (Architecture::X86_64, 6) | (Architecture::Aarch64, 1025) => Some(Kind::GlobalData),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Stub, Target, aarch64, x86_64};

    #[test]
    fn reads_the_stubs_of_x86_64() {
        let slot = |size, slot| Some(Stub { size, target: Target::Slot(slot) });
        let lazy = [0xff, 0x25, 0x10, 0, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0];
        assert_eq!(x86_64(&lazy, 0x1000), slot(16, 0x1016));
        let secure = [0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf6, 0xff, 0xff, 0xff, 0x66, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(x86_64(&secure, 0x1000), slot(16, 0x1000));
        let got = [0xff, 0x25, 0x10, 0, 0, 0, 0x66, 0x90];
        assert_eq!(x86_64(&got, 0x1000), slot(8, 0x1016));
        let pushes = [0xf3, 0x0f, 0x1e, 0xfa, 0x68, 3, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90];
        assert_eq!(x86_64(&pushes, 0x1000), Some(Stub { size: 16, target: Target::Relocation(3) }));
        let head = [0xff, 0x35, 0x10, 0, 0, 0, 0xff, 0x25, 0x10, 0, 0, 0, 0x0f, 0x1f, 0x40, 0];
        assert_eq!(x86_64(&head, 0x1000), None);
        for end in 0..16 {
            let _ = (x86_64(&lazy[..end], u64::MAX), x86_64(&pushes[..end], u64::MAX), aarch64(&lazy[..end], 0));
        }
    }

    #[test]
    fn reads_the_stubs_of_aarch64() {
        let code = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        // adrp x16, 0x20000; ldr x17, [x16, #24]; add x16, x16, #24; br x17
        let plain = [0xf000_0090, 0xf940_0e11, 0x9100_6210, 0xd61f_0220];
        let target = Target::Slot(0x24018);
        assert_eq!(aarch64(&code(&plain), 0x11230), Some(Stub { size: 16, target }));
        let guarded = [&[0xd503_245f][..], &plain].concat();
        assert_eq!(aarch64(&code(&guarded), 0x11230), Some(Stub { size: 24, target }));
        // stp x16, x30, [sp, #-16]!
        assert_eq!(aarch64(&code(&[0xa9bf_7bf0, plain[0], plain[1], plain[2]]), 0x11230), None);
    }
}
