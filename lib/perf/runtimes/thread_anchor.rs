//! The place from which a thread's interpreter state can be found, read from the code of a function that returns it.
//!
//! The place differs between versions and builds of an interpreter, its own code always knows it.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHashMap;

use super::interpreter::InterpreterFile;

/// The place of a thread's interpreter state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadAnchor {
    /// The state is thread-specific data (`pthread_getspecific`), whose key is at this address of the file (SVMA).
    ThreadData(u64),
    /// The state is in thread-local storage, at this distance from the thread pointer.
    ThreadStorage(i64),
    /// The state is in thread-local storage of a library. At this address of the file (SVMA), the dynamic linker writes the
    /// number of the library and the offset in its storage.
    ModuleStorage(u64),
    /// A pointer at this address of the file (SVMA) leads to the state of the main thread. Other threads have none.
    MainThread(u64),
    /// Threads have none: the frames are on the native stack. At this address of the file (SVMA) is what the runtime knows of
    /// the code that it generated.
    Library(u64),
}

/// The content of a register, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Address(u64),
    /// The content of an address.
    LoadedFrom(u64),
}

/// Finds the place of the state that a function returns, by the argument that it passes to `pthread_getspecific` or to
/// `PyThread_tss_get`, or by the thread-local variable that it reads.
pub(super) fn find_anchor(file: &InterpreterFile<'_>, function: &[u8]) -> Option<ThreadAnchor> {
    let range = file.symbol(function)?;
    let code = file.elf.code_from(range.start);
    let code = code.get(..((range.end - range.start) as usize).min(code.len()))?;
    let mut registers: FxHashMap<Register, Value> = FxHashMap::default();
    for instruction in &mut Decoder::with_ip(64, code, range.start, DecoderOptions::NONE) {
        if let Some(anchor) = step(&instruction, &mut registers, file) {
            return Some(anchor);
        }
    }
    None
}

/// Follows an instruction. Returns the anchor if this is what uses it.
fn step(
    instruction: &Instruction,
    registers: &mut FxHashMap<Register, Value>,
    file: &InterpreterFile<'_>,
) -> Option<ThreadAnchor> {
    match instruction.flow_control() {
        FlowControl::Call | FlowControl::IndirectCall => return passed_anchor(registers, file),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => return passed_anchor(registers, file),
        FlowControl::Next => {}
        _ => return None,
    }
    if instruction.op0_kind() != OpKind::Register {
        return None;
    }
    let target = instruction.op0_register().full_register();
    let value = match (instruction.mnemonic(), instruction.op1_kind()) {
        (Mnemonic::Mov, OpKind::Memory) if instruction.segment_prefix() == Register::FS => {
            return storage_offset(instruction).map(ThreadAnchor::ThreadStorage);
        }
        (Mnemonic::Mov, OpKind::Memory) => {
            let address = memory_address(instruction, registers);
            // A word of the global offset table.
            let is_pointer = instruction.op0_register().size() == 8;
            let pointed = address.filter(|_| is_pointer).and_then(|address| file.relocated(address));
            pointed.map(Value::Address).or(address.map(Value::LoadedFrom))
        }
        (Mnemonic::Lea, OpKind::Memory) => memory_address(instruction, registers).map(Value::Address),
        (Mnemonic::Mov, OpKind::Register) => registers.get(&instruction.op1_register().full_register()).copied(),
        (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64) => {
            Some(Value::Address(instruction.immediate(1)))
        }
        (Mnemonic::Add, OpKind::Immediate8to64 | OpKind::Immediate32to64) => match registers.get(&target) {
            Some(Value::Address(address)) => Some(Value::Address(address.wrapping_add(instruction.immediate(1)))),
            _ => None,
        },
        (Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push, _) => return None,
        _ => None,
    };
    match value {
        Some(value) => registers.insert(target, value),
        None => registers.remove(&target),
    };
    None
}

/// Returns the place that the first argument of a call tells: the place of thread-local storage (`__tls_get_addr`), a key, or
/// a pointer to a `Py_tss_t`, which contains a key at byte 4.
fn passed_anchor(registers: &FxHashMap<Register, Value>, file: &InterpreterFile<'_>) -> Option<ThreadAnchor> {
    let key = match registers.get(&Register::RDI)? {
        Value::Address(index) if file.is_module_number(*index) => return Some(ThreadAnchor::ModuleStorage(*index)),
        Value::LoadedFrom(key) => *key,
        Value::Address(structure) => structure.checked_add(4)?,
    };
    file.is_writable(key).then_some(ThreadAnchor::ThreadData(key))
}

/// Returns the address of a memory operand, if it is known.
fn memory_address(instruction: &Instruction, registers: &FxHashMap<Register, Value>) -> Option<u64> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(instruction.ip_rel_memory_address());
    }
    if instruction.memory_index() != Register::None {
        return None;
    }
    let displacement = instruction.memory_displacement64();
    match instruction.memory_base() {
        Register::None => Some(displacement),
        base => match registers.get(&base.full_register())? {
            Value::Address(address) => Some(address.wrapping_add(displacement)),
            Value::LoadedFrom(_) => None,
        },
    }
}

/// Returns the distance from the thread pointer of a thread-local variable that is read.
fn storage_offset(instruction: &Instruction) -> Option<i64> {
    let is_absolute = instruction.memory_base() == Register::None && instruction.memory_index() == Register::None;
    let offset = instruction.memory_displacement64().cast_signed();
    // The thread pointer itself is at distance 0.
    (is_absolute && offset != 0).then_some(offset)
}
