//! Code behind system calls.
//!
//! The function that a thread ends with makes its last system call, and the code behind it may be another function: what a system
//! call interrupts is unwound as the instruction that calls. The same holds for code that a signal interrupts in a system call: the
//! registers that tell it are in the frame of the signal.
//!
//! A system call that creates a thread returns 0 in it, and the code behind branches to where the thread begins: `syscall; test rax,
//! rax; jl error; je start; ret` in glibc's `clone` and `clone3`, `cmp $0, rax; je start` in Go's, and `test eax, eax; jne return` in
//! musl's. Up to the branch, the unwind information is that of the thread that called, whose return address is on another stack. What
//! follows is certain, so the frame is that of the code after the branch. `interrupt_at` of the BPF program does the same.

use iced_x86::{FlowControl, Instruction, Mnemonic, Register};

use super::arch::{Architecture as _, Registers};
use super::code::Code;
use super::code_paths::decode;
use super::native::Native;
use super::stack::Stack;

/// The instruction that calls the kernel.
pub(super) const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// The largest distance of an instruction from the system call before it: a comparison, and a branch with a distance of 4 bytes.
const MAX_DISTANCE: u64 = 10;

/// The largest distance of an address from the start of the code of a new thread.
const MAX_FIRST_CODE: u64 = 32;

/// The kernel's numbers of the registers with the result of a system call, with the address behind it, and with the flags.
const RESULT: u32 = 0;
const RETURN: u32 = 2;
const SAVED_FLAGS: u32 = 19;

/// The kernel's number of the flags.
const FLAGS: u32 = 9;

/// The flag that is set where a fault interrupts.
const RESUME_FLAG: u64 = 1 << 16;

/// The flag that is always set in user space: interrupts are on.
const INTERRUPT_FLAG: u64 = 1 << 9;

/// The registers of a `struct ucontext` begin at byte 40: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, and the flags.
pub(super) const SIGNAL_REGISTERS: u64 = 40;

/// The registers of interrupted code that tell a system call.
pub(super) struct Interrupted {
    ip: u64,
    result: Option<u64>,
    behind: Option<u64>,
    /// True if the flags are those that a system call has saved; `None` if they are not known.
    has_saved_flags: Option<bool>,
}

impl Interrupted {
    /// Returns the registers at a sample, whose code is at `ip`.
    pub(super) fn in_sample(ip: u64, registers: &Registers<'_>) -> Self {
        let changed = registers.get(FLAGS).zip(registers.get(SAVED_FLAGS)).map_or(0, |(flags, saved)| flags ^ saved);
        Self {
            ip,
            result: registers.get(RESULT),
            behind: registers.get(RETURN),
            has_saved_flags: Some(changed & !RESUME_FLAG == 0),
        }
    }

    /// Reads the registers at which a signal came from the frame of the signal, whose context is at `context`. `None` if there is no
    /// such context of code at `ip` with a stack at `sp`.
    pub(super) fn in_signal_frame(context: u64, ip: u64, sp: u64, stack: &mut Stack<'_>) -> Option<Self> {
        let place = |number: u64| context.wrapping_add(SIGNAL_REGISTERS + number * 8);
        if !Native::READS_CODE || stack.read(place(16)) != Some(ip) || stack.read(place(15)) != Some(sp) {
            return None;
        }
        let flags = stack.read(place(17)).filter(|flags| flags & INTERRUPT_FLAG != 0);
        let has_saved_flags = flags.zip(stack.read(place(3))).map(|(flags, saved)| (flags ^ saved) & !RESUME_FLAG == 0);
        Some(Self { ip, result: stack.read(place(13)), behind: stack.read(place(14)), has_saved_flags })
    }
}

impl<'a> Code<'a> {
    /// Returns the code of the system call in which the thread is, or that it has just left.
    ///
    /// The call leaves the address behind it in one register, and the flags in another. After a call of a function by the first of
    /// them, that register has the address, too.
    pub(super) fn at_syscall(&self, interrupted: &Interrupted) -> Option<Self> {
        self.behind_syscall(interrupted).filter(|_| interrupted.has_saved_flags == Some(true))
    }

    /// True if the thread may be in a system call or in a function that was called by the same register, and the flags are not known.
    /// The BPF program does not send them if it has not walked the stack.
    pub(super) fn may_be_at_syscall(&self, interrupted: &Interrupted) -> bool {
        interrupted.has_saved_flags.is_none() && self.behind_syscall(interrupted).is_some()
    }

    /// Returns the code of the system call right before, if its address is where a system call leaves it.
    fn behind_syscall(&self, interrupted: &Interrupted) -> Option<Self> {
        if !Native::READS_CODE || interrupted.behind != Some(interrupted.ip) {
            return None;
        }
        let start = self.svma.checked_sub(SYSCALL.len() as u64)?;
        self.elf.code_from(start).starts_with(&SYSCALL).then_some(Self { svma: start, ..*self })
    }

    /// Returns the code to which an instruction behind a system call leads, if the call has returned 0 and that is compared.
    pub(super) fn after_creation(&self, interrupted: &Interrupted) -> Option<Self> {
        if !Native::READS_CODE || interrupted.result != Some(0) {
            return None;
        }
        let svma = (0..=MAX_DISTANCE).find_map(|distance| {
            let start = self.svma.checked_sub(distance)?;
            let code = self.elf.code_from(start.checked_sub(SYSCALL.len() as u64)?).strip_prefix(&SYSCALL)?;
            find_branch(code, start, self.svma)
        })?;
        Some(Self { svma, ..*self })
    }

    /// True for the start of a thread whose code has no unwind information.
    pub(super) fn starts_thread(&self) -> bool {
        find_first_call(self.elf.code_from(self.svma)).is_some()
    }

    /// True if `address` is in the code of a new thread that calls the thread's function and exits: nobody has called that code.
    pub(super) fn is_first_of_thread(&self, address: u64) -> bool {
        (0..MAX_FIRST_CODE).any(|distance| {
            let Some(start) = address.checked_sub(distance) else { return false };
            passes_until_exit(self.elf.code_from(start), distance) && self.is_after_creation(start)
        })
    }

    /// True if the code right before `start` compares the result of a system call with 0, and goes on to `start` if it is.
    fn is_after_creation(&self, start: u64) -> bool {
        (0..=MAX_DISTANCE).filter_map(|distance| start.checked_sub(distance)).any(|behind| {
            let code = behind.checked_sub(SYSCALL.len() as u64).map(|call| self.elf.code_from(call));
            let code = code.and_then(|code| code.strip_prefix(&SYSCALL));
            code.is_some_and(|code| find_branch(code, behind, behind) == Some(start))
        })
    }
}

/// Iterates over the instructions of code, whose address is 0.
fn instructions(code: &[u8]) -> impl Iterator<Item = Instruction> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let instruction = decode(code.get(next as usize..)?, next)?;
        next = instruction.next_ip();
        Some(instruction)
    })
}

/// Returns the distance of the instruction behind the call of code of a new thread such as musl's: `xor %ebp, %ebp; pop %rdi; call
/// *%r9`. By the ABI, a frame pointer of 0 marks the outermost frame. In a new process, what follows goes on in the frame of the old
/// one.
fn find_first_call(code: &[u8]) -> Option<u64> {
    let mut instructions = instructions(code);
    let is_cleared = instructions.next().is_some_and(|first| {
        first.mnemonic() == Mnemonic::Xor && [first.op0_register(), first.op1_register()] == [Register::EBP; 2]
    });
    let mut after = instructions.skip_while(|next| matches!(next.mnemonic(), Mnemonic::Pop | Mnemonic::Mov));
    after.next().filter(|next| is_cleared && next.is_call_near_indirect()).map(|call| call.next_ip())
}

/// True if the code of a new thread passes a place on its way to `syscall; hlt`, with no other way: `mov %eax, %edi; xor %eax, %eax;
/// mov $60, %al; syscall; hlt`. The function that it has called may have returned or not.
fn passes_until_exit(code: &[u8], place: u64) -> bool {
    let Some(call) = find_first_call(code) else { return false };
    let (mut was_syscall, mut has_passed) = (false, false);
    for instruction in instructions(code) {
        has_passed |= instruction.ip() == place;
        let is_syscall = instruction.mnemonic() == Mnemonic::Syscall;
        match instruction.flow_control() {
            _ if instruction.mnemonic() == Mnemonic::Hlt => return has_passed && was_syscall,
            FlowControl::Next => {}
            FlowControl::IndirectCall if instruction.next_ip() == call => {}
            FlowControl::Call if is_syscall => {}
            _ => return false,
        }
        was_syscall = is_syscall;
    }
    false
}

/// Returns where the code at `start` goes after a branch by rax, which is 0, if it is at `address` on its way.
fn find_branch(code: &[u8], start: u64, address: u64) -> Option<u64> {
    let (mut next, mut is_compared, mut has_passed) = (start, false, false);
    loop {
        has_passed |= next == address;
        let instruction = decode(code.get((next - start) as usize..)?, next)?;
        let is_result = |register| matches!(register, Register::RAX | Register::EAX);
        match instruction.mnemonic() {
            Mnemonic::Test if is_result(instruction.op0_register()) && is_result(instruction.op1_register()) => {
                is_compared = true;
            }
            Mnemonic::Cmp if is_result(instruction.op0_register()) && is_zero(&instruction) => is_compared = true,
            // 0 is not negative.
            Mnemonic::Jl | Mnemonic::Js if is_compared => {}
            Mnemonic::Je if is_compared => return has_passed.then(|| instruction.near_branch_target()),
            Mnemonic::Jne if is_compared => return has_passed.then(|| instruction.next_ip()),
            _ => return None,
        }
        next = instruction.next_ip();
    }
}

/// True if the second operand is the number 0.
fn is_zero(instruction: &Instruction) -> bool {
    instruction.try_immediate(1).is_ok_and(|number| number == 0)
}

#[cfg(test)]
mod tests {
    use super::{find_branch, find_first_call, passes_until_exit};

    #[test]
    fn follows_the_branch_of_a_new_thread() {
        // test rax, rax; jl 0x101d; je 0x1008; ret
        let code = [0x48, 0x85, 0xc0, 0x7c, 0x18, 0x74, 0x01, 0xc3];
        let found = (0x1000..0x1009).map(|address| find_branch(&code, 0x1000, address));
        let branch = Some(0x1008);
        assert!(found.eq([branch, None, None, branch, None, branch, None, None, None]));
        // test eax, eax; js; je with 4 bytes
        let code = [0x85, 0xc0, 0x78, 0x18, 0x0f, 0x84, 0, 1, 0, 0];
        assert_eq!(find_branch(&code, 0x1000, 0x1004), Some(0x110a));
        // cmp $0, rax; je (Go)
        let code = [0x48, 0x83, 0xf8, 0x00, 0x74, 0x05];
        assert_eq!(
            [0x1000, 0x1004, 0x1006].map(|at| find_branch(&code, 0x1000, at)),
            [Some(0x100b), Some(0x100b), None]
        );
        // test eax, eax; jne (musl)
        let code = [0x85, 0xc0, 0x75, 0x11];
        assert_eq!(
            [0x1000, 0x1002, 0x1004].map(|at| find_branch(&code, 0x1000, at)),
            [Some(0x1004), Some(0x1004), None]
        );
    }

    #[test]
    fn other_code_behind_system_calls_is_followed_nowhere() {
        for code in [
            // test rbx, rbx; je
            &[0x48, 0x85, 0xdb, 0x74, 0x01][..],
            // je without a comparison
            &[0x74, 0x01],
            // cmp rax, -4096; ja; ret
            &[0x48, 0x3d, 0, 0xf0, 0xff, 0xff, 0x77, 0x01, 0xc3],
            // cmp $1, rax; je
            &[0x48, 0x83, 0xf8, 0x01, 0x74, 0x05],
            &[],
        ] {
            assert_eq!(find_branch(code, 0x1000, 0x1000), None, "{code:x?}");
        }
    }

    #[test]
    fn a_thread_begins_where_the_frame_pointer_is_cleared_before_a_call() {
        // `xor %ebp, %ebp; pop %rdi; call *%r9`
        assert_eq!(find_first_call(&[0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1]), Some(6));
        // `xor %ebp, %ebp; pop %rbp; ret`, and without the first or the last instruction.
        assert_eq!(find_first_call(&[0x31, 0xed, 0x5d, 0xc3]), None);
        assert_eq!(find_first_call(&[0x5f, 0x41, 0xff, 0xd1]), None);
        assert_eq!(find_first_call(&[0x31, 0xed, 0x5f]), None);
    }

    #[test]
    fn a_thread_exits_behind_its_first_call() {
        // `xor %ebp, %ebp; pop %rdi; call *%r9; mov %eax, %edi; xor %eax, %eax; mov $60, %al; syscall; hlt; ret`
        let call = [0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1];
        let code = [&call[..], &[0x89, 0xc7, 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05, 0xf4, 0xc3]].concat();
        let passed: Vec<u64> = (0..20).filter(|place| passes_until_exit(&code, *place)).collect();
        assert_eq!(passed, [0, 2, 3, 6, 8, 10, 12, 14]);
        // `syscall; ret`, `je` to the next instruction, another call, and `hlt` alone.
        for end in [&[0x0f, 0x05, 0xc3][..], &[0x74, 0x00, 0x0f, 0x05, 0xf4], &[0xff, 0xd0, 0x0f, 0x05, 0xf4], &[0xf4]]
        {
            assert!(!passes_until_exit(&[&call[..], end].concat(), 6), "{end:x?}");
        }
    }
}
