//! Unwinding: from registers and a copy of the stack to return addresses, by the unwind information of the objects.
//!
//! framehop does the work. Three things are added. Objects stand in one address space of our own, each once, whatever
//! process they are mapped into and wherever: what is learned of an object serves all processes, and no exec or fork
//! rebuilds anything. Frames that framehop cannot step (`special`) are stepped here. And where the copy of the stack
//! ends before the stack does, the rest is read from the living thread (`stack`), and believed only after checks.

mod aarch64;
mod arch;
mod code;
mod module;
mod patience;
mod second_look;
mod sightings;
mod special;
mod stack;
mod x86_64;

use std::time::Duration;

use addr2line::gimli;
use framehop::{FrameAddress, Unwinder as _};

pub use self::arch::Registers;
use self::arch::{Architecture, Unwound};
use self::code::Code;
pub use self::code::Moment;
use self::module::Section;
use self::second_look::LATER;
pub use self::special::SpecialFrames;
pub use self::stack::Memory;
use self::stack::{Living, Slot, Stack, Tail};
use super::event::{Address, UserState};
use super::objects::object::ObjectId;
use super::process::Mapping;

#[cfg(target_arch = "aarch64")]
use self::aarch64::Aarch64 as Native;
#[cfg(not(target_arch = "aarch64"))]
use self::x86_64::X86_64 as Native;

/// The registers that unwinding on this machine needs, as a mask for the kernel.
pub const REGISTERS: u64 = Native::REGISTERS;

/// An argument of the function that is about to run, the first being 1.
pub fn argument(user: &UserState<'_>, number: u32) -> Option<u64> {
    let bit = Native::ARGUMENTS.get(number.checked_sub(1)? as usize)?;
    Registers::new(REGISTERS, user.registers).get(*bit)
}

/// No stack is followed deeper.
const DEEPEST: usize = 16 * 1024;

/// How the way up a stack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At its root.
    Root,
    /// The copy of the stack ended, and the rest could not be read.
    DumpTooSmall,
    /// The rest of the stack was read from the thread, but had changed since the sample.
    StaleTail,
    /// There is none: within execve a program has left the old one, and not begun the new one.
    NoStack,
    /// Code without unwind information and without frame pointers.
    NoUnwindInformation,
    /// It goes on, deeper than is followed.
    TooDeep,
}

/// A frame on the way up.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Where the code runs, or returns to.
    pub address: Address,
    /// What is mapped there.
    pub mapping: Option<Mapping>,
    /// Where the stack of its callee ends.
    stack_pointer: u64,
}

impl Step {
    fn frame(&self) -> (u64, u64) {
        (self.address.value, self.stack_pointer)
    }

    /// Where its return address stands, if a call left it there.
    fn slot(&self) -> Slot {
        (self.stack_pointer.wrapping_sub(8), self.address.value)
    }
}

/// Unwinds the stacks of samples.
pub struct Unwinder {
    framehop: <Native as Architecture>::Unwinder,
    rules: Rules,
    /// For each object: its place in our address space, once it was looked at.
    places: Vec<Option<Place>>,
    living: Option<Living>,
    /// No stack is followed further than so many frames.
    pub deepest: usize,
    /// Whether the next thread leaves its CPU: all that is read of it is believed, as is told later when it came back.
    pub is_leaving: bool,
    /// How many of the frames at hand were read of the living thread.
    pub read_of_living: usize,
    /// The frames of the stack at hand.
    pub steps: Vec<Step>,
}

impl std::fmt::Debug for Unwinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinder").field("objects", &self.places.len()).finish_non_exhaustive()
    }
}

/// What unwinding knows of an object.
enum Place {
    /// It has no unwind information.
    Nowhere,
    /// Its addresses stand this much higher in our address space, and this is the first of them.
    At(u64, u64, Box<SpecialFrames>),
}

/// Each object has 2 to this many bytes of our address space.
const PLACE_BITS: u32 = 44;

impl Unwinder {
    /// Knows no object yet. `memory` reads what a living thread has on its stack; `None` to rely on copies alone.
    pub fn new(memory: Option<Box<dyn Memory>>) -> Self {
        Self {
            framehop: Default::default(),
            rules: Rules::default(),
            places: Vec::new(),
            living: memory.map(Living::new),
            deepest: DEEPEST,
            is_leaving: false,
            read_of_living: 0,
            steps: Vec::new(),
        }
    }

    /// A sample is known and will be taken in, before the next look: its thread was there by then.
    pub fn foresee(&mut self, tid: u32, time: u64, user: &UserState<'_>) {
        if let Some(living) = &mut self.living
            && let Some((_, regs)) = Native::start(&Registers::new(user.mask, user.registers))
        {
            living.sightings.add(tid, time, Native::stack_pointer(&regs));
        }
    }

    /// All that was foreseen has been taken in.
    pub fn forget_sightings(&mut self) {
        if let Some(living) = &mut self.living {
            living.sightings.clear();
        }
    }

    /// What is read of living threads from now on is of this time.
    pub fn look_again(&mut self, time: u64) {
        if let Some(living) = &mut self.living {
            living.look_again(time);
        }
    }

    /// How long samples can wait for the rest of their stacks; `None` if each is to be read at once.
    pub fn patience(&self) -> Option<Duration> {
        self.living.as_ref().map_or(Some(Duration::MAX), |living| living.patience.wait())
    }

    /// Whether a thread is to be looked at once more, and how long after the look that was.
    pub fn second_look(&self) -> Option<Duration> {
        self.living.as_ref()?.second_look.as_ref().map(|_| LATER)
    }

    /// Whether the last stack and the one before it of its thread have the same highest return address in their copies,
    /// but other callers: of such stacks some may be taken for each other.
    pub fn has_new_callers(&self) -> bool {
        !self.is_leaving && self.living.as_ref().is_some_and(|living| living.patience.has_new_callers)
    }

    /// An object's number will be given to another one.
    pub fn forget(&mut self, object: ObjectId) {
        if let Some(place) = self.places.get_mut(object.index()).and_then(Option::take)
            && let Place::At(base, start, _) = place
        {
            self.framehop.remove_module(base + start);
            // Its entries are told apart by a short count of such changes, which may come round.
            self.rules = Rules::default();
        }
        if let Some(living) = &mut self.living {
            living.patience.forget();
        }
    }

    /// Finds the frames of a sample's user stack, innermost first, and leaves them in [`Unwinder::steps`].
    pub fn unwind(&mut self, moment: Moment<'_>, user: &UserState<'_>) -> End {
        self.steps.clear();
        let registers = Registers::new(user.mask, user.registers);
        let Some((ip, mut regs)) = Native::start(&registers) else { return End::NoUnwindInformation };
        let start = Native::stack_pointer(&regs);
        let mut living = self.living.take();
        // If another program runs there by now, its memory tells nothing.
        let is_same_program = !moment.processes.has_execed_since(moment.pid, moment.time);
        let seen = living.as_mut().map_or(0, |living| living.sightings.highest_after(moment.tid, moment.time));
        let mut stack = Stack::new(start, user.stack, moment.pid, living.as_mut().filter(|_| is_same_program), seen);
        let mut end = self.climb(moment, ip, &mut regs, &registers, &mut stack);
        if stack.has_returned() {
            end = self.discard_tail(&stack);
        }
        if end != End::Root && user.stack.is_empty() {
            end = End::NoStack;
        }
        let (copied, tail) = (stack.frames_in_dump(), stack.tail());
        if let Some(living) = living.as_mut().filter(|_| !self.is_leaving) {
            end = living.judge(moment, &mut self.steps, (copied, tail), end);
        }
        self.living = living;
        self.read_of_living = self.steps.len().saturating_sub(copied);
        end
    }

    fn climb(
        &mut self,
        moment: Moment<'_>,
        ip: u64,
        regs: &mut <Native as Architecture>::Regs,
        registers: &Registers<'_>,
        stack: &mut Stack<'_>,
    ) -> End {
        let mut address = Address { value: ip, in_kernel: false, exact: true };
        let mut mapping = moment.find(address);
        loop {
            self.steps.push(Step { address, mapping, stack_pointer: Native::stack_pointer(regs) });
            if self.steps.len() >= self.deepest {
                return End::TooDeep;
            }
            let code = mapping.and_then(|mapping| Code::at(mapping, address.lookup(), moment.objects));
            if code.as_ref().is_some_and(Code::is_entry_point) {
                return End::Root;
            }
            let own = if code.is_none() { moment.own_unwinding(address.lookup()) } else { None };
            let unwound = match own.and_then(|special| special.find(address.lookup()).map(|frame| (special, frame))) {
                Some((special, frame)) => {
                    let other = |register, stack: &mut Stack<'_>| self.other(moment, register, registers, stack);
                    special.step::<Native>(frame, address.lookup(), regs, &other, stack)
                }
                None => self.step(moment, address, code.as_ref(), regs, registers, stack),
            };
            let next = match unwound {
                Unwound::Root => return End::Root,
                Unwound::Unreadable => return self.cut(stack),
                Unwound::Lost => return self.lost(stack),
                Unwound::Caller(next) => next,
            };
            let same = mapping.filter(|mapping| (mapping.start..mapping.end).contains(&next.lookup()));
            (address, mapping) = match self.check(moment, next, same.or_else(|| moment.find(next)), stack) {
                Ok(mapping) => (next, Some(mapping)),
                Err(end) => return end,
            };
            stack.passed(Native::stack_pointer(regs), next.value, self.steps.len());
        }
    }

    /// What is mapped at the next address, if a call returns there.
    fn check(
        &mut self,
        moment: Moment<'_>,
        next: Address,
        mapping: Option<Mapping>,
        stack: &mut Stack<'_>,
    ) -> Result<Mapping, End> {
        let follows_call = |mapping: &Mapping| {
            if next.exact || stack.tail() == Tail::Unread {
                return mapping.end > next.value - 1;
            }
            let mut code = [0; Native::LONGEST_CALL];
            moment.read_before(*mapping, next.value, &mut code, stack).is_none_or(|()| Native::follows_call(&code))
        };
        if let Some(mapping) = mapping.filter(follows_call) {
            return Ok(mapping);
        }
        Err(self.lost(stack))
    }

    fn cut(&mut self, stack: &Stack<'_>) -> End {
        match stack.tail() {
            Tail::Unread | Tail::Anchored => End::DumpTooSmall,
            Tail::Adrift | Tail::Gone => self.discard_tail(stack),
        }
    }

    fn lost(&mut self, stack: &Stack<'_>) -> End {
        if stack.tail() == Tail::Unread { End::NoUnwindInformation } else { self.discard_tail(stack) }
    }

    /// Forgets the frames that were found in the part of the stack that did not stand the checks.
    fn discard_tail(&mut self, stack: &Stack<'_>) -> End {
        self.steps.truncate(stack.frames_in_dump());
        End::StaleTail
    }

    /// What a register that framehop does not follow holds in the last frame: what it held in the first, unless one of
    /// those between has saved that.
    fn other(
        &self,
        moment: Moment<'_>,
        register: gimli::Register,
        registers: &Registers<'_>,
        stack: &mut Stack<'_>,
    ) -> Option<u64> {
        let mut value = registers.get(Native::bit(register)?)?;
        for (step, caller) in self.steps.iter().zip(&self.steps[1..]) {
            let code = Code::at(step.mapping?, step.address.lookup(), moment.objects)?;
            let Place::At(_, _, special) = self.place(&code)? else { return None };
            if let Some(offset) = special.saves(register, code.svma)? {
                value = stack.read(caller.stack_pointer.wrapping_add_signed(offset))?;
            }
        }
        Some(value)
    }

    fn step(
        &mut self,
        moment: Moment<'_>,
        address: Address,
        code: Option<&Code<'_>>,
        regs: &mut <Native as Architecture>::Regs,
        registers: &Registers<'_>,
        stack: &mut Stack<'_>,
    ) -> Unwound {
        let mut lookup = FrameAddress::from_instruction_pointer(0);
        match code {
            Some(code) => {
                self.give_place(code);
                let Some(Place::At(base, _, special)) = self.place(code) else {
                    return self.step_by_framehop(lookup, address, regs, stack);
                };
                if let Some(frame) = special.find(code.svma) {
                    let other = |register, stack: &mut Stack<'_>| self.other(moment, register, registers, stack);
                    let unwound = special.step::<Native>(frame, code.svma, regs, &other, stack);
                    if let Some(step) = self.steps.last_mut().filter(|_| frame.is_signal()) {
                        step.address.exact = true;
                    }
                    return unwound;
                }
                let svma = code.svma + u64::from(!address.exact);
                lookup = match address.exact {
                    true => FrameAddress::from_instruction_pointer(base + svma),
                    false => FrameAddress::from_return_address(base + svma).unwrap_or(lookup),
                };
            }
            None => {
                if let Some(next) = Native::step_trampoline(address, regs, stack) {
                    return next;
                }
            }
        }
        self.step_by_framehop(lookup, address, regs, stack)
    }

    fn step_by_framehop(
        &mut self,
        lookup: FrameAddress,
        address: Address,
        regs: &mut <Native as Architecture>::Regs,
        stack: &mut Stack<'_>,
    ) -> Unwound {
        // Outside of our address space framehop follows frame pointers.
        let lookup = match lookup.address() {
            0 if address.exact => FrameAddress::from_instruction_pointer(1),
            0 => FrameAddress::from_return_address(2).unwrap_or(lookup),
            _ => lookup,
        };
        let (mut last, knows_code) = (None, lookup.address() > 2);
        let mut read = |address| {
            last = stack.read(address);
            last.ok_or(())
        };
        let is_first = self.steps.len() == 1;
        match self.framehop.unwind_frame(lookup, regs, self.rules.of(lookup.address_for_lookup()), &mut read) {
            // What was on the stack of a thread that has gone is zero now: code that knows its caller was called.
            Ok(None) if knows_code && last == Some(0) && stack.tail() != Tail::Unread => Unwound::Lost,
            // A register or a word that is zero by chance: what runs was called, but for the entry point.
            Ok(None) if is_first => Unwound::Lost,
            Ok(Some(0)) | Ok(None) | Err(framehop::Error::ReturnAddressIsNull) => Unwound::Root,
            Ok(Some(caller)) => Unwound::Caller(Address { value: caller, in_kernel: false, exact: false }),
            Err(framehop::Error::CouldNotReadStack(_)) if stack.missed_above() => Unwound::Unreadable,
            Err(_) => Unwound::Lost,
        }
    }

    /// The object's place in our address space, if it has one yet.
    fn place(&self, code: &Code<'_>) -> Option<&Place> {
        self.places.get(code.object.index())?.as_ref()
    }

    /// Gives the object its place, if this is the first frame in it.
    fn give_place(&mut self, code: &Code<'_>) {
        let index = code.object.index();
        if self.places.len() <= index {
            self.places.resize_with(index + 1, || None);
        }
        if self.places[index].is_some() {
            return;
        }
        let base = (index as u64 + 1) << PLACE_BITS;
        self.places[index] = Some(match module::load(code.elf, base, 1 << PLACE_BITS) {
            Some((start, module, special)) => {
                self.framehop.add_module(module);
                Place::At(base, start, Box::new(special))
            }
            None => Place::Nowhere,
        });
    }
}

/// What framehop has learned, of many addresses: one of its caches keeps the rules of 509, each in the place that the
/// address's remainder names, and a compiler's stacks lead through many times as many.
struct Rules {
    caches: [Option<Box<<Native as Architecture>::Cache>>; 256],
}

impl Default for Rules {
    fn default() -> Self {
        Self { caches: [const { None }; 256] }
    }
}

impl Rules {
    /// The cache for an address.
    fn of(&mut self, address: u64) -> &mut <Native as Architecture>::Cache {
        let cache = (address / 509) as usize % self.caches.len();
        self.caches[cache].get_or_insert_default()
    }
}

/// The type of module that framehop keeps.
type Module = framehop::Module<Section>;
