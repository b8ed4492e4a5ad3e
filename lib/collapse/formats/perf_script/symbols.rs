//! What each symbol is called: found out once, and then found again by its text.

use super::frame::Frame;
use super::name::Naming;
use super::{two_parts, usual};
use crate::collapse::sink::Sink;
use crate::markers;
use crate::profile::FrameId;
use crate::profile::byte_map::{ByteMap, Key};

/// The symbols met so far.
pub(super) struct Symbols {
    pub(super) naming: Naming,
    /// By symbol in threads that run Java, by symbol in others, and by module where there is no symbol.
    memos: [ByteMap<Symbol>; 3],
    /// What the last look-up was by, if it is made of two parts.
    key: Vec<u8>,
    /// `[unknown]`
    unknown: Option<FrameId>,
    /// The frames of symbols that list inlined functions, root first.
    inlined: Vec<FrameId>,
}

/// Where there is no symbol.
const MODULES: usize = 2;

/// What a symbol is called: one frame, or if it lists inlined functions several.
#[derive(Clone, Copy)]
enum Symbol {
    Frame(FrameId),
    Inlined {
        start: u32,
        end: u32,
    },
    /// What calls it is left out.
    Root(FrameId),
}

impl Symbols {
    pub(super) fn new(naming: Naming) -> Self {
        Self { naming, memos: Default::default(), key: vec![], unknown: None, inlined: vec![] }
    }

    /// The symbol in a frame's line that is as nearly all are, empty for `[unknown]`; and what follows the line.
    #[inline]
    pub(super) fn usual<'a>(&self, text: &'a [u8]) -> Option<(Key<'a>, &'a [u8])> {
        if !self.naming.by_symbol() {
            return None;
        }
        let (symbol, rest) = usual::symbol(text)?;
        Some((Key::new(symbol), rest))
    }

    /// The frame of such a symbol, if it was met before and is one frame with callers.
    #[inline]
    pub(super) fn known(&self, key: Key<'_>, java: bool) -> Option<FrameId> {
        if key.bytes().is_empty() {
            return self.unknown;
        }
        match self.memos[usize::from(java)].get(key) {
            Some(Symbol::Frame(id)) => Some(id),
            _ => None,
        }
    }

    /// Puts what the frame is called onto a stack, leaf first; `true` if that is to be the stack's root.
    pub(super) fn push(&mut self, frame: &Frame<'_>, java: bool, stack: &mut Vec<FrameId>, sink: &mut Sink) -> bool {
        let inlined = self.inlined.len();
        let symbol = self.symbol(frame, java, sink);
        match symbol {
            Symbol::Frame(id) | Symbol::Root(id) => stack.push(id),
            Symbol::Inlined { start, end } => {
                stack.extend(self.inlined[start as usize..end as usize].iter().rev());
            }
        }
        if self.naming.is_single(frame) {
            self.inlined.truncate(inlined);
        }
        matches!(symbol, Symbol::Root(_))
    }

    /// What the frame is called: found out, or remembered.
    fn symbol(&mut self, frame: &Frame<'_>, java: bool, sink: &mut Sink) -> Symbol {
        if self.naming.is_single(frame) {
            return self.name(frame, java, sink);
        }
        let module = frame.module.unwrap_or_default();
        let mut parts = std::mem::take(&mut self.key);
        let (memo, key) = match frame.is_unknown() {
            true => (MODULES, module),
            false if self.naming.by_symbol() => (usize::from(java), frame.symbol),
            false => (usize::from(java), two_parts(&mut parts, frame.symbol, module)),
        };
        let key = Key::new(key);
        let symbol = self.memos[memo].get(key).unwrap_or_else(|| {
            let symbol = self.name(frame, java, sink);
            self.memos[memo].insert(key, symbol);
            symbol
        });
        if let Symbol::Frame(id) = symbol
            && frame.is_unknown()
            && frame.module.is_none_or(|module| *module == *markers::UNKNOWN)
        {
            self.unknown = Some(id);
        }
        self.key = parts;
        symbol
    }

    fn name(&mut self, frame: &Frame<'_>, java: bool, sink: &mut Sink) -> Symbol {
        let names = self.naming.names(frame, java);
        match &names[..] {
            [name] if self.naming.is_skipped_after(frame) => Symbol::Root(sink.intern(name)),
            [name] => Symbol::Frame(sink.intern(name)),
            names => {
                let start = self.inlined.len() as u32;
                self.inlined.extend(names.iter().map(|name| sink.intern(name)));
                Symbol::Inlined { start, end: self.inlined.len() as u32 }
            }
        }
    }
}
