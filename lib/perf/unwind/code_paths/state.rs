//! The registers and the stack at a place on a path.

use addr2line::gimli;
use iced_x86::{Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, OpKind, Register as Operand};

/// The stack pointer and the frame pointer, by the numbers of DWARF.
pub(in crate::perf::unwind) const SP: gimli::Register = gimli::X86_64::RSP;
pub(in crate::perf::unwind) const BP: gimli::Register = gimli::X86_64::RBP;

/// Stands for a stack pointer that was rounded down by a number that is not known.
const ALIGNED: gimli::Register = gimli::Register(16);

/// Maximum number of words that are written on a path. Compilers' functions write fewer before they return.
pub(super) const MAX_STORES: usize = 512;

/// Number of general-purpose registers.
pub(super) const REGISTERS: usize = 16;

/// A value, by the registers and the memory at the start of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::perf::unwind) enum Value {
    Unknown,
    /// The value that a register had, plus a number.
    Register(gimli::Register, i64),
    /// The word that was at an address, plus a number.
    Word(Place, i64),
}

/// The address of a word: the value that a register had at the start of a path, plus an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::perf::unwind) struct Place {
    pub(in crate::perf::unwind) register: gimli::Register,
    pub(in crate::perf::unwind) offset: i64,
}

/// The registers, and the words that were written on a path.
///
/// A word is known by the register from which its address was computed, and an offset. Writes through other pointers
/// than those into the stack are taken to change no saved register and no return address.
#[derive(Clone, Debug)]
pub(super) struct State {
    registers: [Value; REGISTERS],
    stores: Vec<(Place, Value)>,
    /// True if the stack pointer was taken from the frame that the frame pointer points to.
    has_frame: bool,
}

impl State {
    /// Returns the state at the start of a path.
    pub(super) fn at_start() -> Self {
        let registers = std::array::from_fn(|number| Value::Register(gimli::Register(number as u16), 0));
        Self { registers, stores: Vec::new(), has_frame: false }
    }

    /// Returns the value of a register.
    pub(super) fn get(&self, register: gimli::Register) -> Value {
        self.registers[usize::from(register.0)]
    }

    /// True if the stack pointer was taken from the frame that the frame pointer points to.
    pub(super) fn has_frame(&self) -> bool {
        self.has_frame
    }

    fn set(&mut self, register: gimli::Register, value: Value) {
        let is_in_frame =
            matches!(value, Value::Register(BP, ..=0) | Value::Word(Place { register: BP, offset: ..0 }, _));
        self.has_frame |= register == SP && is_in_frame;
        self.registers[usize::from(register.0)] = value;
    }

    /// Returns the place on the stack in which the first value of a register was saved.
    pub(super) fn find_saved(&self, register: gimli::Register) -> Option<Place> {
        let is_saved =
            |(place, value): &&(Place, Value)| place.register == SP && *value == Value::Register(register, 0);
        self.stores.iter().find(is_saved).map(|(place, _)| *place)
    }

    /// Returns the word at an address.
    pub(super) fn load(&self, address: Value) -> Value {
        let Value::Register(register, offset) = address else { return Value::Unknown };
        let place = Place { register, offset };
        self.stores.iter().find(|(stored, _)| *stored == place).map_or(Value::Word(place, 0), |(_, value)| *value)
    }

    fn store(&mut self, address: Value, value: Value) {
        let Value::Register(register, offset) = address else { return };
        self.stores.retain(|(place, _)| place.register != register || place.offset.abs_diff(offset) >= 8);
        self.stores.push((Place { register, offset }, value));
    }

    /// True if the path has written too many words to be followed.
    pub(super) fn is_full(&self) -> bool {
        self.stores.len() > MAX_STORES
    }

    /// Pushes a value.
    pub(super) fn push(&mut self, value: Value) {
        self.add(SP, -8);
        self.store(self.get(SP), value);
    }

    fn pop(&mut self) -> Value {
        let value = self.load(self.get(SP));
        self.add(SP, 8);
        value
    }

    fn add(&mut self, register: gimli::Register, number: i64) {
        self.set(register, self.get(register).plus(number));
    }

    /// Applies a call that returns. Other registers than these two differ by calling convention.
    pub(super) fn call(&mut self) {
        let (sp, bp) = (self.get(SP), self.get(BP));
        self.registers = [Value::Unknown; REGISTERS];
        self.set(SP, sp);
        self.set(BP, bp);
    }

    /// Applies an instruction that neither jumps, calls nor returns.
    pub(super) fn apply(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) {
        use OpKind::{Immediate8to64, Immediate32to64, Memory, Register};
        let (first, second) = (to_dwarf(instruction.op0_register()), to_dwarf(instruction.op1_register()));
        match (instruction.mnemonic(), instruction.op0_kind(), instruction.op1_kind(), first, second) {
            (Mnemonic::Push, ..) if instruction.stack_pointer_increment() == -8 => {
                let value = if instruction.op0_kind() == Memory {
                    self.load(self.address(instruction))
                } else {
                    self.value(first)
                };
                self.push(value);
            }
            (Mnemonic::Pop, Register, _, Some(register), _) => {
                let value = self.pop();
                self.set(register, value);
            }
            (Mnemonic::Leave, ..) => {
                self.set(SP, self.get(BP));
                let value = self.pop();
                self.set(BP, value);
            }
            (Mnemonic::Mov, Register, Register, Some(to), Some(from)) => self.set(to, self.get(from)),
            (Mnemonic::Mov, Register, Memory, Some(to), _) => self.set(to, self.load(self.address(instruction))),
            (Mnemonic::Mov, Memory, Register, _, Some(from)) => self.store(self.address(instruction), self.get(from)),
            (Mnemonic::Lea, _, _, Some(to), _) => self.set(to, self.address(instruction)),
            (Mnemonic::Add, _, Immediate8to64 | Immediate32to64, Some(to), _) => {
                self.add(to, instruction.immediate(1).cast_signed());
            }
            (Mnemonic::Sub, _, Immediate8to64 | Immediate32to64, Some(to), _) => {
                self.add(to, instruction.immediate(1).cast_signed().wrapping_neg());
            }
            (Mnemonic::And, _, _, Some(SP), _) => self.set(SP, Value::Register(ALIGNED, 0)),
            _ => self.forget_written(instruction, info),
        }
    }

    /// Forgets the registers and words that an instruction writes.
    fn forget_written(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) {
        let info = info.info(instruction);
        for memory in info.used_memory().iter().filter(|memory| is_written(memory.access())) {
            let Some(base) = to_dwarf(memory.base()).filter(|_| memory.index() == Operand::None) else { continue };
            let size = if memory.memory_size() == MemorySize::Unknown { 8 } else { memory.memory_size().size() };
            let address = self.get(base).plus(memory.displacement().cast_signed());
            for offset in (0..size.max(1)).step_by(8) {
                self.store(address.plus(offset as i64), Value::Unknown);
            }
        }
        let increment = instruction.stack_pointer_increment();
        for register in info.used_registers().iter().filter(|register| is_written(register.access())) {
            match to_dwarf(register.register().full_register()) {
                Some(SP) if increment != 0 => self.add(SP, increment.into()),
                Some(register) => self.set(register, Value::Unknown),
                None => {}
            }
        }
    }

    fn value(&self, register: Option<gimli::Register>) -> Value {
        register.map_or(Value::Unknown, |register| self.get(register))
    }

    /// Returns the address of an instruction's operand in memory.
    fn address(&self, instruction: &Instruction) -> Value {
        if instruction.memory_index() != Operand::None || instruction.segment_prefix() != Operand::None {
            return Value::Unknown;
        }
        self.value(to_dwarf(instruction.memory_base())).plus(instruction.memory_displacement64().cast_signed())
    }
}

impl Value {
    pub(super) fn plus(self, number: i64) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::Register(register, offset) => Self::Register(register, offset.wrapping_add(number)),
            Self::Word(place, offset) => Self::Word(place, offset.wrapping_add(number)),
        }
    }
}

/// Returns the number that DWARF gives to a register of 64 bits.
pub(in crate::perf::unwind) fn to_dwarf(register: Operand) -> Option<gimli::Register> {
    /// The DWARF numbers of the registers that machine code numbers from 0 to 7: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi.
    /// The other registers have the same numbers in both.
    const NUMBERS: [u16; 8] = [0, 2, 1, 3, 7, 6, 4, 5];
    let number = register.is_gpr64().then(|| register.number())?;
    Some(gimli::Register(NUMBERS.get(number).map_or(number as u16, |number| *number)))
}

fn is_written(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}
