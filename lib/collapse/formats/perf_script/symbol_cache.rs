//! A cache of symbols' frames, by the symbol's text.

use super::fast_path;
use super::frame::Frame;
use super::naming::Naming;
use crate::collapse::sink::Sink;
use crate::markers;
use crate::profile::FrameId;
use crate::profile::byte_map::{ByteMap, Key};

/// The frames of the symbols that were parsed before.
pub(super) struct SymbolCache {
    pub(super) naming: Naming,
    /// By symbol in threads that do not run Java (0) and threads that do (1), and by module if there is no symbol (2).
    maps: [ByteMap<Cached>; 3],
    /// A buffer for keys that consist of two parts.
    key: Vec<u8>,
    /// The frame `[unknown]`.
    unknown: Option<FrameId>,
    /// The frames of symbols that list inlined functions, root first.
    inlined: Vec<FrameId>,
}

/// The index in [`SymbolCache::maps`] of frames without a symbol.
const MODULES: usize = 2;

/// The frames of a symbol.
#[derive(Clone, Copy)]
enum Cached {
    Frame(FrameId),
    /// A range of [`SymbolCache::inlined`].
    Inlined {
        start: u32,
        end: u32,
    },
    /// The root of its stack: its callers are left out.
    Root(FrameId),
}

impl SymbolCache {
    pub(super) fn new(naming: Naming) -> Self {
        Self { naming, maps: Default::default(), key: vec![], unknown: None, inlined: vec![] }
    }

    /// Parses the frame line at the beginning of a text on the [fast path](fast_path). Returns its symbol, empty for
    /// `[unknown]`, and the text after the line.
    #[inline]
    pub(super) fn parse_fast<'a>(&self, text: &'a [u8]) -> Option<(Key<'a>, &'a [u8])> {
        if !self.naming.uses_symbol_only() {
            return None;
        }
        let (symbol, rest) = fast_path::parse_symbol(text)?;
        Some((Key::new(symbol), rest))
    }

    /// Returns the frame of such a symbol, if it is cached, a single frame, and not the root of its stack.
    #[inline]
    pub(super) fn find(&self, key: Key<'_>, is_java: bool) -> Option<FrameId> {
        if key.bytes().is_empty() {
            return self.unknown;
        }
        match self.maps[usize::from(is_java)].get(key) {
            Some(Cached::Frame(id)) => Some(id),
            _ => None,
        }
    }

    /// Pushes a frame's names onto a stack, leaf first. Returns true if the frame is the root of its stack.
    pub(super) fn push(&mut self, frame: &Frame<'_>, is_java: bool, stack: &mut Vec<FrameId>, sink: &mut Sink) -> bool {
        let inlined = self.inlined.len();
        let cached = self.find_or_name(frame, is_java, sink);
        match cached {
            Cached::Frame(id) | Cached::Root(id) => stack.push(id),
            Cached::Inlined { start, end } => {
                stack.extend(self.inlined[start as usize..end as usize].iter().rev());
            }
        }
        if self.naming.is_unique(frame) {
            self.inlined.truncate(inlined);
        }
        matches!(cached, Cached::Root(_))
    }

    /// Returns a frame's names from the cache, or names it.
    fn find_or_name(&mut self, frame: &Frame<'_>, is_java: bool, sink: &mut Sink) -> Cached {
        if self.naming.is_unique(frame) {
            return self.name(frame, is_java, sink);
        }
        let module = frame.module.unwrap_or_default();
        let mut buffer = std::mem::take(&mut self.key);
        let (map, key) = match frame.is_unknown() {
            true => (MODULES, module),
            false if self.naming.uses_symbol_only() => (usize::from(is_java), frame.symbol),
            false => (usize::from(is_java), join_key(&mut buffer, frame.symbol, module)),
        };
        let key = Key::new(key);
        let cached = self.maps[map].get(key).unwrap_or_else(|| {
            let named = self.name(frame, is_java, sink);
            self.maps[map].insert(key, named);
            named
        });
        if let Cached::Frame(id) = cached
            && frame.is_unknown()
            && frame.module.is_none_or(|module| *module == *markers::UNKNOWN)
        {
            self.unknown = Some(id);
        }
        self.key = buffer;
        cached
    }

    fn name(&mut self, frame: &Frame<'_>, is_java: bool, sink: &mut Sink) -> Cached {
        let names = self.naming.frame_names(frame, is_java);
        match &names[..] {
            [name] if self.naming.is_skipped_after(frame) => Cached::Root(sink.intern(name)),
            [name] => Cached::Frame(sink.intern(name)),
            names => {
                let start = self.inlined.len() as u32;
                self.inlined.extend(names.iter().map(|name| sink.intern(name)));
                Cached::Inlined { start, end: self.inlined.len() as u32 }
            }
        }
    }
}

/// Joins two parts to an unambiguous key, with a zero byte between them.
pub(super) fn join_key<'a>(buffer: &'a mut Vec<u8>, first: &[u8], second: &[u8]) -> &'a [u8] {
    buffer.clear();
    buffer.extend_from_slice(first);
    buffer.push(0);
    buffer.extend_from_slice(second);
    buffer
}
