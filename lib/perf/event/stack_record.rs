//! The records in which the BPF program writes user stacks (`record/bpf/sampler.bpf.c`).
//!
//! A record is the raw data of a sample of the output counter. It precedes the sample that it belongs to in the same
//! ring. A stack that is larger than a record comes in several parts.

use super::Fields;
use crate::perf::runtimes::interpreter::{ScriptFrame, SentName};
use crate::perf::stop_reason::StopReason;

/// The walk reached the root: the words are return addresses, innermost first.
const ROOTED: u32 = 1;
/// There is no stack: the thread was within execve.
const NO_STACK: u32 = 2;
/// More words than fit.
const FULL: u32 = 8;
/// The stack is larger than what is scanned.
const LIMIT: u32 = 16;

/// The outermost script frames are missing.
const SCRIPT_CUT: u32 = 64;
/// The innermost interpreter loop has no script frame.
const SCRIPT_ENTERING: u32 = 128;

/// The walk met generated code that is known, and ended before the root.
const WALK_CUT: u32 = 256;

/// The thread may have a context that was not read.
const CONTEXT_UNKNOWN: u32 = 512;

/// The thread may run a task that was not read.
const TASK_UNKNOWN: u32 = 1024;

/// The program did not know the process.
const UNKNOWN_PROCESS: u32 = 2048;
const OUTDATED: u32 = 4096;
const SCRIPT_DEEP: u32 = 8192;

/// The bits of the address in the first word of a script frame. The index of its native frame is behind them.
const CODE_BITS: u32 = 48;

/// Marks the outermost script frame of an interpreter loop.
const OUTERMOST: u64 = 1 << 63;

/// Marks a script frame whose name follows.
const WITH_NAME: u64 = 1 << 62;

/// Number of bytes in which a name or a path is sent.
const MAX_STRING: usize = 128;

/// A word whose lower 16 bits are this represents the rest of a page that was not in memory.
pub const HOLE: u64 = 1;

/// Marks an address that is no return address, in a walked stack.
const EXACT: u64 = 1 << 63;

/// A part of a record, which repeats the head.
#[derive(Clone, Copy, Debug)]
pub struct StackRecordPart<'a> {
    /// The record with the words of this part only.
    pub record: StackRecord<'a>,
    /// The index of the part.
    pub part: u16,
    /// Number of parts.
    pub parts: u16,
}

/// A user stack that the BPF program took.
#[derive(Clone, Copy, Debug)]
pub struct StackRecord<'a> {
    /// The instruction pointer.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The time up to which the program knew the mappings of the process; 0 if it did not know those of the sample.
    pub published: u64,
    /// The time up to which the program had been told of mappings, if others were made since or not; 0 if it was never.
    pub told: u64,
    /// The start of the second stack, and its first word: that on which a signal came that is handled on another stack.
    pub second: Option<(u64, usize)>,
    /// The address at which the walk ended because the program had no rows of the code there.
    pub rowless: Option<u64>,
    /// The place of the probed instruction of which the thread executes a copy.
    pub probed: Option<u64>,
    flags: u32,
    /// The number of bytes of the stack that were scanned.
    scanned: u32,
    /// The number of words that are script frames, before the thread's context.
    script_words: u16,
    /// The number of words that are the thread's context, before those of its task.
    context_words: u16,
    /// The number of words at the end that are the name of the thread's task.
    task_words: u16,
    /// The words, of 8 bytes each.
    words: &'a [u8],
}

/// The context of a thread, or its task, as far as the program read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentContext<'a> {
    /// The thread had none.
    Absent,
    /// The thread may have had one, if its process has any.
    Unknown,
    /// The thread had the one in this record.
    Record(&'a [u8]),
}

impl<'a> SentContext<'a> {
    fn new(record: &'a [u8], is_unknown: bool) -> Self {
        match record {
            _ if is_unknown => Self::Unknown,
            [] => Self::Absent,
            record => Self::Record(record),
        }
    }
}

impl<'a> StackRecord<'a> {
    /// The record with the words of all its parts.
    pub fn with_words(self, words: &[u8]) -> StackRecord<'_> {
        StackRecord { words, ..self }
    }

    /// The words of the native stack, of 8 bytes each.
    pub fn words(&self) -> impl ExactSizeIterator<Item = u64> + 'a {
        words_of(self.split().0)
    }

    /// The bytes of all words.
    pub fn bytes(&self) -> &'a [u8] {
        self.words
    }

    /// The frames of script functions, innermost first, and the names that were sent with them.
    pub fn script_frames(&self) -> impl Iterator<Item = (ScriptFrame, Option<SentName<'a>>)> + 'a {
        let mut fields = Fields::new(self.split().1);
        std::iter::from_fn(move || {
            let (code, position, hash) = (fields.u64()?, fields.u64()?, fields.u64()?);
            let frame = ScriptFrame {
                code: code & ((1 << CODE_BITS) - 1),
                instruction: ((position >> 32) as u32).cast_signed(),
                first_line: position as u32,
                hash,
                is_outermost: code & OUTERMOST != 0,
                native: ((code & !(OUTERMOST | WITH_NAME)) >> CODE_BITS) as u16,
            };
            let mut sent = None;
            if code & WITH_NAME != 0 {
                let (file_length, name_length) = (fields.u32()? as usize, fields.u32()? as usize);
                let class_length = usize::try_from(fields.u64()?).unwrap_or(usize::MAX);
                let [name, file, class] =
                    [fields.take(MAX_STRING)?, fields.take(MAX_STRING)?, fields.take(MAX_STRING)?];
                sent = Some(SentName {
                    name: &name[..name_length.min(MAX_STRING)],
                    file: &file[..file_length.min(MAX_STRING)],
                    class: &class[..class_length.min(MAX_STRING)],
                    is_name_cut: name_length > MAX_STRING,
                    is_file_cut: file_length > MAX_STRING,
                    is_class_cut: class_length > MAX_STRING,
                });
            }
            Some((frame, sent))
        })
    }

    /// Returns why the outermost script frames are missing, if they are.
    pub fn script_cut(&self) -> Option<StopReason> {
        let reason = if self.flags & SCRIPT_DEEP != 0 { StopReason::TooDeep } else { StopReason::NotResident };
        (self.flags & SCRIPT_CUT != 0).then_some(reason)
    }

    /// True if the innermost interpreter loop has no script frame.
    pub fn is_entering_script(&self) -> bool {
        self.flags & SCRIPT_ENTERING != 0
    }

    /// The context of the thread.
    pub fn context(&self) -> SentContext<'a> {
        SentContext::new(self.split_context().1, self.flags & CONTEXT_UNKNOWN != 0)
    }

    /// The name of the task that the thread runs.
    pub fn task(&self) -> SentContext<'a> {
        SentContext::new(self.split_task().1, self.flags & TASK_UNKNOWN != 0)
    }

    /// Returns the bytes of the native stack, and those of the script frames.
    fn split(&self) -> (&'a [u8], &'a [u8]) {
        split_last_words(self.split_context().0, self.script_words)
    }

    /// Returns the bytes of the stack, and those of the thread's context.
    fn split_context(&self) -> (&'a [u8], &'a [u8]) {
        split_last_words(self.split_task().0, self.context_words)
    }

    /// Returns the bytes before the name of the thread's task, and those of the name.
    fn split_task(&self) -> (&'a [u8], &'a [u8]) {
        split_last_words(self.words, self.task_words)
    }

    /// True if the program did not know the process at all.
    pub fn is_of_unknown_process(&self) -> bool {
        self.flags & UNKNOWN_PROCESS != 0
    }

    /// True if the stack was walked, false if the words are those that the program kept.
    pub fn is_walked(&self) -> bool {
        self.flags & (ROOTED | WALK_CUT) != 0
    }

    /// True if a walk ended before the root.
    pub fn is_walk_cut(&self) -> bool {
        self.flags & WALK_CUT != 0
    }

    /// True if the thread had no stack, because it was within execve.
    pub fn has_no_stack(&self) -> bool {
        self.flags & NO_STACK != 0
    }

    /// True if no page of the stack was in memory.
    pub fn is_unreadable(&self) -> bool {
        self.words().all(|word| word & 0xffff == HOLE)
    }

    /// The address after the part of the stack that was scanned.
    pub fn scanned_end(&self) -> u64 {
        self.sp.saturating_add(self.scanned.into())
    }

    /// Iterates over the frames of a walked stack: each address, and whether it is exact, not a return address.
    pub fn frames(&self) -> impl Iterator<Item = (u64, bool)> + 'a {
        self.words().map(|word| (word & !EXACT, word & EXACT != 0))
    }

    /// Returns the reason why unwinding the words stopped, given that it stopped for `stop`.
    pub fn explain(&self, stop: StopReason) -> StopReason {
        match stop {
            StopReason::DumpTooSmall if self.is_unreadable() => StopReason::NotResident,
            StopReason::DumpTooSmall if self.flags & (FULL | LIMIT) != 0 => StopReason::StackTooLarge,
            StopReason::DumpTooSmall => StopReason::NoUnwindInformation,
            _ => stop,
        }
    }
}

impl<'a> StackRecordPart<'a> {
    /// Parses the raw data of a sample. `None` if it is too short.
    pub fn parse(raw: &'a [u8]) -> Option<Self> {
        let mut fields = Fields::new(raw);
        let (ip, sp, told) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (second, rowless, probed) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (flags, second_word, scanned, words) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
        let (part, parts) = (fields.u16()?, fields.u16()?);
        let (script_words, context_words, task_words) = (fields.u16()?, fields.u16()?, fields.u16()?);
        let _unused = fields.take(6)?;
        let second = (second != 0).then_some((second, second_word as usize));
        let words = fields.take((words as usize).checked_mul(8)?)?;
        let (rowless, probed) = ((rowless != 0).then_some(rowless), (probed != 0).then_some(probed));
        let record = StackRecord {
            ip,
            sp,
            published: if flags & OUTDATED == 0 { told } else { 0 },
            told,
            second,
            rowless,
            probed,
            flags,
            scanned,
            script_words,
            context_words,
            task_words,
            words,
        };
        Some(Self { record, part, parts })
    }
}

fn split_last_words(bytes: &[u8], count: u16) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len().saturating_sub(usize::from(count) * 8))
}

fn words_of(bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")))
}

#[cfg(test)]
mod tests {
    use super::{FULL, HOLE, LIMIT, StackRecordPart};
    use crate::perf::stop_reason::StopReason;

    #[test]
    fn only_a_walk_that_needs_more_says_what_is_missing() {
        let explain_word = |word: u64, flags: u32, stop| {
            let mut raw: Vec<u8> = [0x4000, 0x7000_0000, 0, 0, 0, 0].into_iter().flat_map(u64::to_le_bytes).collect();
            raw.extend([flags, 0, 128, 1].into_iter().flat_map(u32::to_le_bytes));
            raw.extend([0, 1, 0, 0, 0, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes));
            raw.extend(word.to_le_bytes());
            StackRecordPart::parse(&raw).unwrap().record.explain(stop)
        };
        let explain = |flags, stop| explain_word(0x4010, flags, stop);
        for flags in [FULL, LIMIT] {
            assert_eq!(explain(flags, StopReason::DumpTooSmall), StopReason::StackTooLarge);
            assert_eq!(explain(flags, StopReason::NoUnwindInformation), StopReason::NoUnwindInformation);
            assert_eq!(explain(flags, StopReason::OtherStack), StopReason::OtherStack);
        }
        assert_eq!(explain(0, StopReason::DumpTooSmall), StopReason::NoUnwindInformation);
        assert_eq!(explain_word(HOLE, 0, StopReason::DumpTooSmall), StopReason::NotResident);
        assert_eq!(explain_word(HOLE, 0, StopReason::NoUnwindInformation), StopReason::NoUnwindInformation);
    }
}
