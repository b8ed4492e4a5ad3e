//! The place of the thread-local variable by which a program publishes the context of each thread.

use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{
    LittleEndian, Object as _, ObjectSymbol as _, ObjectSymbolTable as _, RelocationFlags, RelocationTarget, elf,
};

use crate::perf::objects::object::Elf;

/// The variable's name.
pub const NAME: &str = "otel_thread_ctx_v1";

/// `struct thread_variable` of the BPF program: the kind, the anchor, the offset, and 1 for musl.
pub type VariableWords = [u64; 4];

/// The kinds of places in the BPF program.
const AT_OFFSET: u64 = 1;
const AT_STORED_OFFSET: u64 = 2;
const IN_STORED_MODULE: u64 = 3;
const IN_OWN_MODULE: u64 = 4;
const BY_DESCRIPTOR: u64 = 5;

/// The place of the variable in a thread, as far as a file tells it. Addresses are of the file (SVMA); the dynamic linker
/// has written there what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// At an offset from the thread pointer: the variable is of the program itself.
    AtOffset(i64),
    /// At an offset from the thread pointer. The offset is stored at this address (initial-exec).
    AtStoredOffset(u64),
    /// In the storage of a module. Its number and the offset are at this address (global dynamic).
    InStoredModule(u64),
    /// In the storage of this file's module, whose number is at an address, at this offset.
    InOwnModule(u64, u64),
    /// Where the descriptor at this address says (TLSDESC).
    ByDescriptor(u64),
}

impl Variable {
    /// Finds the variable in a file that defines it or refers to it.
    pub fn find(file: &Elf) -> Option<Self> {
        let file = ElfFile64::<LittleEndian>::parse(&**file.bytes()).ok()?;
        if file.elf_header().e_machine(LittleEndian) != elf::EM_X86_64 {
            return None;
        }
        let symbols = file.dynamic_symbol_table()?;
        let symbol = symbols.symbols().find(|symbol| symbol.name_bytes() == Ok(NAME.as_bytes()))?;
        // A thread-local variable is no definition in the sense of `object`.
        let own = (!symbol.is_undefined()).then(|| symbol.address());
        if let Some(address) = own
            && is_program(&file)
        {
            return Some(Self::AtOffset(offset_in_program(&file, address)?));
        }
        let relocations = file.dynamic_relocations()?.filter_map(|(address, relocation)| {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { return None };
            // A reference within the file may be bound to the definition when the file is linked. It has no symbol then.
            let (is_named, is_bound) = match relocation.target() {
                RelocationTarget::Symbol(index) => (index == symbol.index(), false),
                _ => (false, own.is_some()),
            };
            let offset = relocation.addend().cast_unsigned();
            match r_type {
                elf::R_X86_64_TLSDESC if is_named || is_bound && own == Some(offset) => {
                    Some(Self::ByDescriptor(address))
                }
                elf::R_X86_64_DTPMOD64 if is_named => Some(Self::InStoredModule(address)),
                elf::R_X86_64_DTPMOD64 if is_bound => own.map(|own| Self::InOwnModule(address, own)),
                elf::R_X86_64_TPOFF64 if is_named || is_bound && own == Some(offset) => {
                    Some(Self::AtStoredOffset(address))
                }
                _ => None,
            }
        });
        relocations.min_by_key(|variable| variable.rank())
    }

    /// True if a file defines the variable, but only its symbol table says so: readers of other processes do not find it.
    pub fn is_hidden(file: &Elf) -> bool {
        let Ok(file) = ElfFile64::<LittleEndian>::parse(&**file.bytes()) else { return false };
        let has_storage = file.elf_program_headers().iter().any(|header| header.p_type(LittleEndian) == elf::PT_TLS);
        has_storage && file.symbols().any(|symbol| symbol.name_bytes() == Ok(NAME.as_bytes()))
    }

    /// Returns the order in which the places are preferred, if a file has several. All lead to the same variable.
    fn rank(self) -> u8 {
        match self {
            Self::AtOffset(_) => 0,
            Self::ByDescriptor(_) => 1,
            Self::InStoredModule(_) => 2,
            Self::AtStoredOffset(_) => 3,
            Self::InOwnModule(..) => 4,
        }
    }

    /// True if the file is the program itself, whose definition comes before that of any library.
    pub fn is_in_program(self) -> bool {
        matches!(self, Self::AtOffset(_))
    }

    /// Describes the place for the BPF program. `bias` is the distance of the file's addresses from those of the process.
    pub fn words(self, bias: u64, is_musl: bool) -> VariableWords {
        let loaded = |address: u64| bias.wrapping_add(address);
        let (kind, anchor, offset) = match self {
            Self::AtOffset(offset) => (AT_OFFSET, 0, offset.cast_unsigned()),
            Self::AtStoredOffset(address) => (AT_STORED_OFFSET, loaded(address), 0),
            Self::InStoredModule(address) => (IN_STORED_MODULE, loaded(address), 0),
            Self::InOwnModule(address, offset) => (IN_OWN_MODULE, loaded(address), offset),
            Self::ByDescriptor(address) => (BY_DESCRIPTOR, loaded(address), 0),
        };
        [kind, anchor, offset, is_musl.into()]
    }
}

type File<'a> = ElfFile64<'a, LittleEndian>;

/// True for the file of a program, false for a library.
fn is_program(file: &File<'_>) -> bool {
    let is_fixed = file.elf_header().e_type(LittleEndian) == elf::ET_EXEC;
    is_fixed
        || file.elf_program_headers().iter().any(|header| header.p_type(LittleEndian) == elf::PT_INTERP)
        || is_pie(file)
}

/// True if the file calls itself a position-independent program. One without a dynamic linker does.
fn is_pie(file: &File<'_>) -> bool {
    let sections = file.elf_section_table();
    let Ok(Some((entries, _))) = sections.dynamic(LittleEndian, file.data()) else { return false };
    entries.iter().any(|entry| {
        let (tag, value) = (entry.d_tag.get(LittleEndian), entry.d_val.get(LittleEndian));
        tag == elf::DT_FLAGS_1 && value & elf::DF_1_PIE.0 != 0
    })
}

/// Returns the offset from the thread pointer of a variable of the program. The program's storage ends at the thread pointer,
/// if the alignment lets it (ELF Handling For Thread-Local Storage, variant II).
fn offset_in_program(file: &File<'_>, address: u64) -> Option<i64> {
    let mut headers = file.elf_program_headers().iter();
    let storage = headers.find(|header| header.p_type(LittleEndian) == elf::PT_TLS)?;
    let (start, size) = (storage.p_vaddr(LittleEndian), storage.p_memsz(LittleEndian));
    let alignment = storage.p_align(LittleEndian).max(1);
    let end = start.wrapping_add(size);
    let padding = end.wrapping_neg() & (alignment - 1);
    Some(address.wrapping_sub(size).wrapping_sub(padding).cast_signed())
}
