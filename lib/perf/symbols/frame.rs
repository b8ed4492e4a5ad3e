//! The frames that addresses are symbolized to.

use std::ops::Range;

/// The details that [`symbolize`](super::symbolize::symbolize) adds to frames, and where it may look for symbols.
#[derive(Clone, Debug, Default)]
pub struct SymbolizeOptions {
    /// True if inlined calls become frames of their own.
    pub inline: bool,
    /// True if each frame gets its source line.
    pub lines: bool,
    /// True if `debuginfod-find` may download missing debug files.
    pub debuginfod: bool,
}

/// A frame with the name of its function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFrame {
    /// The demangled function name. Without a symbol: the object's file name in brackets, or `[unknown]`.
    pub name: Vec<u8>,
    /// True if `name` comes from a symbol.
    pub has_symbol: bool,
    /// True if the compiler inlined the function into its caller.
    pub is_inlined: bool,
    /// The symbol's start as an address of its object; `None` without a symbol.
    pub start: Option<u64>,
    /// The source line as `FILE:LINE`, if it was asked for and is known.
    pub source: Option<Vec<u8>>,
    /// True if the name is that of a script function, which no linker has mangled.
    pub is_script: bool,
}

impl NamedFrame {
    /// Returns the frame of a symbol that starts at `start`.
    pub(in crate::perf) fn from_symbol(name: Vec<u8>, start: u64) -> Self {
        Self { name, has_symbol: true, is_inlined: false, start: Some(start), source: None, is_script: false }
    }

    /// Returns the frame of a script function. Without a name, `name` is that of its interpreter in brackets.
    pub(in crate::perf) fn from_script(name: Vec<u8>, has_name: bool) -> Self {
        Self { name, has_symbol: has_name, is_inlined: false, start: None, source: None, is_script: true }
    }

    /// Returns the frame of code without a symbol.
    pub(super) fn without_symbol(name: Vec<u8>) -> Self {
        Self { name, has_symbol: false, is_inlined: false, start: None, source: None, is_script: false }
    }
}

/// Indices into a list of frames: those of one address.
pub(super) type FrameRange = Range<u32>;

/// The frames of several addresses of one object, in the order of the addresses.
///
/// Consecutive addresses with equal frames share them.
#[derive(Debug, Default)]
pub struct AddressFrames {
    pub(super) frames: Vec<NamedFrame>,
    pub(super) ranges: Vec<FrameRange>,
}

impl AddressFrames {
    /// Returns a list for `addresses` addresses without frames.
    pub fn without_frames(addresses: usize) -> Self {
        Self { frames: Vec::new(), ranges: vec![0..0; addresses] }
    }

    /// Adds the frames of the next address, outermost first.
    pub fn push(&mut self, frames: Vec<NamedFrame>) {
        let last = self.ranges.last().cloned().unwrap_or(0..0);
        if self.frames[last.start as usize..last.end as usize] == frames {
            self.ranges.push(last);
            return;
        }
        let start = self.frames.len() as u32;
        self.frames.extend(frames);
        self.ranges.push(start..self.frames.len() as u32);
    }

    /// Gives the next address the frame of the last one and returns true, if that is a single frame without a source
    /// line whose symbol starts at `start`.
    pub fn repeat_last(&mut self, start: u64) -> bool {
        let Some(last) = self.ranges.last().cloned() else { return false };
        let repeats = matches!(&self.frames[last.start as usize..last.end as usize],
            [frame] if frame.start == Some(start) && frame.source.is_none());
        if repeats {
            self.ranges.push(last);
        }
        repeats
    }

    /// Gives `frame` to all addresses that have no frames.
    pub(super) fn fill_missing(&mut self, frame: NamedFrame) {
        let index = self.frames.len() as u32;
        for range in self.ranges.iter_mut().filter(|range| range.start == range.end) {
            *range = index..index + 1;
        }
        self.frames.push(frame);
    }
}
