//! Tells messages of programs from stacks of one frame, if a file has both: sums, counts of samples and lines of logs also
//! end in a number.

use rustc_hash::FxHashSet;

use super::grammar::{LineKind, parse_line};
use super::log_line::is_log_line;
use crate::bytes::split_words;

/// Last words of messages before the number: `lost samples 5`, `Sampling process 1234`.
const COUNTED: [&[u8]; 7] = [b"process", b"pid", b"tid", b"samples", b"events", b"stacks", b"total"];

/// What `time -p` prints after `real`.
const TIMES: [&[u8]; 2] = [b"user", b"sys"];

/// Returns true for a line that is a sum, a count or a line of a log, given without its number.
pub(crate) fn is_message(name: &[u8]) -> bool {
    let is_word = |word: &[u8]| word.iter().all(u8::is_ascii_alphabetic);
    let last = split_words(name).last().unwrap_or_default();
    let first = split_words(name).next().unwrap_or_default();
    if let Some(key) = name.strip_suffix(b":") {
        // Names of threads may end in a colon; those of sums are words.
        return split_words(key).next().is_some() && split_words(key).all(is_word);
    }
    if first == last {
        return [&b"total"[..], b"pid"].iter().any(|word| name.eq_ignore_ascii_case(word)) || name == b"real";
    }
    let begins_with_total = first.eq_ignore_ascii_case(b"total");
    let ends_with_counted = COUNTED.iter().any(|word| last.eq_ignore_ascii_case(word));
    split_words(name).all(is_word) && (begins_with_total || ends_with_counted) || is_log_line(&[name, b" 0"].concat())
}

/// The message about such a line.
pub(crate) const NO_MESSAGE: &str = "expected a stack and its weight, not a sum or a line of a log";

/// The stacks of a block, by which messages are told from stacks of one frame.
#[derive(Debug)]
pub(crate) struct Messages<'a> {
    block: &'a [u8],
    /// The frames of the stacks with callers, after the first message was seen.
    frames: Option<FxHashSet<&'a [u8]>>,
    /// True if a stack has callers, after the first stack of one frame was seen.
    has_callers: Option<bool>,
    has_real: bool,
}

impl<'a> Messages<'a> {
    pub(crate) fn new(block: &'a [u8]) -> Self {
        Self { block, frames: None, has_callers: None, has_real: false }
    }

    /// Returns true if a line without callers is a message: it looks like one, and the stacks of the block have callers, but no
    /// frame of this name.
    pub(crate) fn contains(&mut self, name: &[u8]) -> bool {
        let block = self.block;
        if !*self.has_callers.get_or_insert_with(|| memchr::memchr(b';', block).is_some()) {
            return false;
        }
        if !(is_message(name) || self.has_real && TIMES.contains(&name)) {
            return false;
        }
        let frames = self.frames.get_or_insert_with(|| find_frames(block));
        let is_message = !frames.is_empty() && !frames.contains(name);
        self.has_real |= is_message && name == b"real";
        is_message
    }
}

/// Returns the frames of all stacks with callers.
fn find_frames(block: &[u8]) -> FxHashSet<&[u8]> {
    let lines = block.split(|byte| *byte == b'\n').filter(|line| memchr::memchr(b';', line).is_some());
    let stacks = lines.map(|line| {
        let line = line.trim_ascii_end();
        // Austin writes other weights, behind the last blank as well.
        let before_blank = || &line[..memchr::memrchr(b' ', line).unwrap_or(line.len())];
        parse_line(line, LineKind::Plain).map_or_else(before_blank, |line| line.stack)
    });
    let stacks = stacks.filter(|stack| has_callers(stack));
    stacks.flat_map(|stack| stack.split(|byte| *byte == b';')).collect()
}

/// Returns true for several frames. Text has a blank after a semicolon.
fn has_callers(stack: &[u8]) -> bool {
    stack.windows(2).any(|pair| pair[0] == b';' && pair[1] != b' ')
}

#[cfg(test)]
mod tests {
    use super::Messages;

    #[test]
    fn messages_are_told_from_stacks() {
        let block = b"main;total;f 3\nWeb Content;lost samples 4\n";
        for name in [
            "Total:",
            "Total",
            "Total samples:",
            "Sampling process",
            "pid",
            "real",
            "lost events",
            "2026-11-27T10:00:00Z INFO lost samples",
            "[INFO] lost",
            "WARNING: lost events",
        ] {
            assert!(Messages::new(block).contains(name.as_bytes()), "{name}");
            assert!(!Messages::new(b"main 3\n").contains(name.as_bytes()), "{name}");
        }
        for name in [
            "total",
            "Web Content",
            "lost samples",
            "GC Thread#3",
            "C2 CompilerThre",
            "swapper",
            "user",
            "sys",
            "a::",
            "-:",
            "VM Periodic Tas",
            "Signal Dispatch",
            "[main tid=1] run",
            "f(int): a.c:12",
        ] {
            assert!(!Messages::new(block).contains(name.as_bytes()), "{name}");
        }
        let mut messages = Messages::new(block);
        assert!(messages.contains(b"real") && messages.contains(b"user"));
    }
}
