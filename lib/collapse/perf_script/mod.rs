//! `perf script` text: a line that says who ran and which event fired, then the stack, leaf first, then a blank line.
//!
//! ```text
//! V8 WorkerThread 24636/25607 [000] 94564.109216:     100 cycles:u:
//!         7f0123456789 parse(int)+0x1c (/usr/lib/libfoo.so)
//!               401136 main+0x10 (/srv/app)
//! ```
//!
//! The columns vary with perf's `-F`; names, threads and paths may hold anything. Nothing is looked for by its position
//! alone, and what reads as a frame or a sample is never dropped in silence.

mod cut;
mod events;
mod frame;
mod header;
mod name;

use self::events::Events;
use self::frame::Frame;
use self::header::{Header, Line};
use self::name::Naming;
use super::memo::{Key, Memo};
use super::{Event, Format, Options, Parser, Remarks};
use crate::Error;
use crate::profile::{FrameId, Profile, Weight, Weights};

pub(super) static FORMAT: Format = Format {
    name: "perf script text",
    recognises,
    cut: cut::after_last_sample,
    parser: |options| Box::new(PerfScript::new(options)),
};

/// A line says who ran and which event fired, or the file begins as perf's own comments do.
fn recognises(head: &[u8]) -> bool {
    let mut lines = cut::Lines::new(head);
    while let Some(line) = lines.next() {
        match header::parse(line) {
            Some(Line::Record) => return true,
            Some(Line::Sample(header)) if header.event.is_some() || frame::is_frame(lines.rest()) => return true,
            _ if header::bare(line).is_some() && frame::is_frame(lines.rest()) => return true,
            _ => {}
        }
    }
    head.starts_with(b"# ========\n")
}

/// The parser. What a symbol is called is found out once and then found again by its text.
struct PerfScript {
    naming: Naming,
    events: Events,
    roots: Memo<Root>,
    /// The frames of a symbol, in threads that run Java and in others.
    symbols: [Memo<Symbol>; 2],
    /// The frames of symbols that list inlined functions, root first.
    inlined: Vec<FrameId>,
    /// The present sample's frames, leaf first.
    stack: Vec<FrameId>,
}

/// The root frame, which is the thread.
#[derive(Clone, Copy)]
struct Root {
    frame: FrameId,
    java: bool,
}

/// What a symbol is called: one frame, or if it lists inlined functions several.
#[derive(Clone, Copy)]
enum Symbol {
    Frame(FrameId),
    Inlined { start: usize, end: usize },
}

/// Where in the text we are.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// Between samples.
    Outside,
    /// In a sample of an event that is not taken.
    LeftOut,
    /// In a sample; `rest` is what follows the event in its first line.
    Sample { root: Root, weight: Weight, rest: &'a [u8] },
}

impl Parser for PerfScript {
    fn parse(&mut self, text: &[u8], profile: &mut Profile, remarks: &mut Remarks) -> Result<(), Error> {
        let mut lines = cut::Lines::new(text);
        let mut place = Place::Outside;
        while let Some(line) = lines.next() {
            remarks.lines += 1;
            if line.is_empty() || line.trim_ascii().is_empty() {
                // A sample without frames stays open: some versions of perf print a blank line before them.
                if !self.stack.is_empty() {
                    self.finish(&mut place, profile)?;
                }
                continue;
            }
            if line[0] == b'\t' && self.frame(line, place, profile) {
                continue;
            }
            self.other(line, lines.rest(), &mut place, profile, remarks)?;
        }
        self.finish(&mut place, profile)
    }

    fn fork(&self) -> Option<Box<dyn Parser>> {
        Some(Box::new(Self::with(self.naming.clone(), self.events.fork()?)))
    }

    fn events(&self) -> &[Event] {
        self.events.seen()
    }
}

impl PerfScript {
    fn new(options: &Options) -> Self {
        Self::with(Naming::new(options), Events::new(options.event.clone()))
    }

    fn with(naming: Naming, events: Events) -> Self {
        Self { naming, events, roots: Memo::default(), symbols: Default::default(), inlined: vec![], stack: vec![] }
    }

    /// Takes a frame's line; `false` if it is none, or stands outside a sample.
    fn frame(&mut self, line: &[u8], place: Place<'_>, profile: &mut Profile) -> bool {
        match place {
            Place::Outside => false,
            Place::LeftOut => true,
            Place::Sample { root, .. } => {
                let Some(frame) = frame::parse(line) else { return false };
                self.push(&frame, root, profile);
                true
            }
        }
    }

    /// Takes a line that is neither blank nor an ordinary frame.
    fn other<'a>(
        &mut self,
        line: &'a [u8],
        next: &[u8],
        place: &mut Place<'a>,
        profile: &mut Profile,
        remarks: &mut Remarks,
    ) -> Result<(), Error> {
        let outside = matches!(place, Place::Outside);
        let framed = frame::is_frame(line);
        match header::parse(line) {
            // A line that reads as both is a frame, unless it tells the time.
            Some(Line::Sample(header)) if outside || !framed || header.time.is_some() => {
                self.finish(place, profile)?;
                *place = self.begin(&header, profile);
                return Ok(());
            }
            Some(Line::Record) => return self.finish(place, profile),
            _ => {}
        }
        if line[0] == b'#' || self.frame(line, *place, profile) {
            return Ok(());
        }
        if let Some(header) = header::bare(line).filter(|_| (outside || !framed) && frame::is_frame(next)) {
            self.finish(place, profile)?;
            *place = self.begin(&header, profile);
        } else if outside && framed {
            remarks.malformed("a frame that belongs to no sample");
        } else if !frame::is_annotation(line) {
            remarks.malformed("neither the first line of a sample nor a frame");
        }
        Ok(())
    }

    fn begin<'a>(&mut self, header: &Header<'a>, profile: &mut Profile) -> Place<'a> {
        if !self.events.takes(header.event.unwrap_or_default()) {
            return Place::LeftOut;
        }
        let weight = header.period.map_or(Weight::ONE, Weight::new);
        Place::Sample { root: self.root(header, profile), weight, rest: header.rest }
    }

    fn root(&mut self, header: &Header<'_>, profile: &mut Profile) -> Root {
        let key = Key::new(header.comm, self.naming.thread_key(header));
        self.roots.get(key).unwrap_or_else(|| {
            let name = self.naming.thread(header);
            let root = Root { frame: profile.frames.intern(&name), java: name.starts_with(b"java") };
            self.roots.insert(key, root);
            root
        })
    }

    fn push(&mut self, frame: &Frame<'_>, root: Root, profile: &mut Profile) {
        let Some(key) = self.naming.key(frame) else {
            let names = self.naming.names(frame, root.java);
            self.stack.extend(names.iter().rev().map(|name| profile.frames.intern(name)));
            return;
        };
        let known = self.symbols[usize::from(root.java)].get(key);
        match known.unwrap_or_else(|| self.learn(key, frame, root, profile)) {
            Symbol::Frame(id) => self.stack.push(id),
            Symbol::Inlined { start, end } => self.stack.extend(self.inlined[start..end].iter().rev()),
        }
    }

    #[cold]
    fn learn(&mut self, key: Key<'_>, frame: &Frame<'_>, root: Root, profile: &mut Profile) -> Symbol {
        let names = self.naming.names(frame, root.java);
        let symbol = match &names[..] {
            [name] => Symbol::Frame(profile.frames.intern(name)),
            names => {
                let start = self.inlined.len();
                self.inlined.extend(names.iter().map(|name| profile.frames.intern(name)));
                Symbol::Inlined { start, end: self.inlined.len() }
            }
        };
        self.symbols[usize::from(root.java)].insert(key, symbol);
        symbol
    }

    /// Ends the present sample, if there is one. One without frames counts for its thread.
    fn finish(&mut self, place: &mut Place<'_>, profile: &mut Profile) -> Result<(), Error> {
        let Place::Sample { root, weight, rest } = std::mem::replace(place, Place::Outside) else { return Ok(()) };
        if self.stack.is_empty()
            && let Some(frame) = frame::parse(rest).filter(|frame| frame.module.is_some())
        {
            self.push(&frame, root, profile);
        }
        self.stack.push(root.frame);
        self.stack.reverse();
        let added = profile.add(&self.stack, Weights::plain(weight));
        self.stack.clear();
        added
    }
}
