//! The constants of a chunk: stacks, methods, classes, threads and strings, to which events refer by key.

use crate::symbol_name::java;
use rustc_hash::FxHashMap;

use super::metadata::{Layout, Schema, Value};
use super::stacks::StackTraces;
use super::wire::{Cursor, Text};

/// The constants of a chunk.
#[derive(Default)]
pub(super) struct Constants {
    /// The layouts of the types of constants, by type ID.
    layouts: FxHashMap<u64, (Kind, Layout)>,
    strings: FxHashMap<u64, Box<[u8]>>,
    symbols: FxHashMap<u64, Name>,
    classes: FxHashMap<u64, Name>,
    methods: FxHashMap<u64, Method>,
    frame_kinds: FxHashMap<u64, Name>,
    threads: FxHashMap<u64, Thread>,
    pub(super) stacks: StackTraces,
    /// The names of constants of other types, by type ID and key. Only labels need them.
    others: FxHashMap<(u64, u64), Name>,
    keeps_others: bool,
}

/// A kind of constants that stacks need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    String,
    Symbol,
    Class,
    Method,
    Frame,
    Thread,
    StackTrace,
    Other,
}

/// A name, or the key of the constant that is the name.
#[derive(Clone, Debug, Default)]
enum Name {
    #[default]
    None,
    Text(Box<[u8]>),
    String(u64),
    Symbol(u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Method {
    class: u64,
    /// The key of a symbol.
    name: u64,
}

/// The names and the ID of a thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    java_name: Name,
    os_name: Name,
    os_id: u64,
}

impl Kind {
    /// Returns the kind of a type by its name, of which JDK versions have different packages.
    fn from_type_name(name: &[u8]) -> Self {
        match name {
            b"java.lang.String" => return Self::String,
            b"java.lang.Class" => return Self::Class,
            b"java.lang.Thread" => return Self::Thread,
            _ => {}
        }
        match name.rsplit(|byte| *byte == b'.').next() {
            Some(b"Symbol") => Self::Symbol,
            Some(b"Method") => Self::Method,
            Some(b"FrameType") => Self::Frame,
            Some(b"StackTrace") => Self::StackTrace,
            _ => Self::Other,
        }
    }

    /// Returns the paths of the values that a kind needs.
    fn wanted(self) -> &'static [&'static [u8]] {
        match self {
            Self::String => &[b""],
            Self::Symbol => &[b"string"],
            Self::Class => &[b"name"],
            Self::Method => &[b"type", b"name"],
            Self::Frame => &[b"description", b"name"],
            Self::Thread => &[b"javaName", b"osName", b"osThreadId", b"name"],
            Self::StackTrace => &[],
            Self::Other => &[b"name", b"description", b"string"],
        }
    }
}

impl Constants {
    /// Returns an empty table. With `keeps_others`, it keeps the names of constants of all types.
    pub(super) fn new(stacks: StackTraces, keeps_others: bool) -> Self {
        Self { stacks, keeps_others, ..Self::default() }
    }

    /// Adds the constants of a checkpoint event. Returns `None` if the event is malformed.
    pub(super) fn add_checkpoint(&mut self, event: &[u8], schema: &Schema, has_varints: bool) -> Option<()> {
        let mut cursor = Cursor::new(event, has_varints);
        // Size, type, start time, duration, and the distance to the checkpoint before this one.
        cursor.read_int()?;
        (0..4).try_for_each(|_| cursor.read_long().map(drop))?;
        // The type of the checkpoint.
        cursor.read_byte()?;
        for _ in 0..cursor.read_int()? {
            self.add_pool(&mut cursor, schema)?;
        }
        Some(())
    }

    /// Adds the constants of one type.
    fn add_pool(&mut self, cursor: &mut Cursor<'_>, schema: &Schema) -> Option<()> {
        let id = cursor.read_long()?;
        let count = cursor.read_int()?;
        let (kind, layout) = match self.layouts.remove(&id) {
            Some(known) => known,
            None => {
                let kind = Kind::from_type_name(&schema.get(id)?.name);
                let layout = match kind {
                    Kind::StackTrace => Layout::new(schema, id, &self.stacks.wanted_values()),
                    _ => Layout::new(schema, id, kind.wanted()),
                };
                (kind, layout?)
            }
        };
        let added = (0..count).try_for_each(|_| self.add_constant(cursor, id, kind, &layout));
        self.layouts.insert(id, (kind, layout));
        added
    }

    fn add_constant(&mut self, cursor: &mut Cursor<'_>, id: u64, kind: Kind, layout: &Layout) -> Option<()> {
        let key = cursor.read_long()?;
        match kind {
            Kind::StackTrace => return self.stacks.add(cursor, key, layout),
            Kind::Method => {
                let mut method = Method::default();
                layout.visit(cursor, &mut |slot, value| match (slot, value) {
                    (0, Value::Number(class)) => method.class = class,
                    (1, Value::Number(name)) => method.name = name,
                    _ => {}
                })?;
                self.methods.insert(key, method);
            }
            Kind::Thread => {
                let mut thread = Thread::default();
                layout.visit(cursor, &mut |slot, value| match (slot, value) {
                    (0 | 3, value) => thread.java_name = Name::new(value),
                    (1, value) => thread.os_name = Name::new(value),
                    (2, Value::Number(id)) => thread.os_id = id,
                    _ => {}
                })?;
                self.threads.insert(key, thread);
            }
            Kind::String | Kind::Symbol | Kind::Class | Kind::Frame | Kind::Other => {
                let mut name = Name::None;
                layout.visit(cursor, &mut |_, value| {
                    if matches!(name, Name::None) {
                        name = Name::new(value);
                    }
                })?;
                self.add_name(id, key, kind, name);
            }
        }
        Some(())
    }

    fn add_name(&mut self, id: u64, key: u64, kind: Kind, name: Name) {
        match (kind, name) {
            (Kind::String, Name::Text(text)) => drop(self.strings.insert(key, text)),
            (Kind::Symbol, name) => drop(self.symbols.insert(key, name)),
            (Kind::Class, name) => drop(self.classes.insert(key, name)),
            (Kind::Frame, name) => drop(self.frame_kinds.insert(key, name)),
            (Kind::Other, name) if self.keeps_others => drop(self.others.insert((id, key), name)),
            _ => {}
        }
    }

    fn resolve<'a>(&'a self, name: &'a Name) -> &'a [u8] {
        let (mut name, mut steps) = (name, 0);
        loop {
            match name {
                Name::None => return b"",
                Name::Text(text) => return text,
                Name::String(key) => return self.strings.get(key).map_or(b"", |text| text),
                // A symbol may be a string, but not another symbol.
                Name::Symbol(_) if steps > 0 => return b"",
                Name::Symbol(key) => match self.symbols.get(key) {
                    Some(symbol) => name = symbol,
                    None => return b"",
                },
            }
            steps += 1;
        }
    }

    /// Returns `package.Class.method`, or an empty name.
    pub(super) fn method_name(&self, key: u64) -> Vec<u8> {
        let Some(method) = self.methods.get(&key) else { return Vec::new() };
        let mut name = self.class_name(method.class);
        if !name.is_empty() {
            name.push(b'.');
        }
        name.extend_from_slice(self.resolve(&Name::Symbol(method.name)));
        name
    }

    /// Returns `package.Class`, or an empty name.
    fn class_name(&self, key: u64) -> Vec<u8> {
        let name = self.classes.get(&key).map_or(&b""[..], |name| self.resolve(name));
        java::class_name(name)
    }

    /// Returns the description of a frame's type, such as `JIT compiled`.
    pub(super) fn frame_kind(&self, key: u64) -> &[u8] {
        self.frame_kinds.get(&key).map_or(b"", |name| self.resolve(name))
    }

    /// Returns the name of a thread and its ID in the operating system.
    pub(super) fn thread(&self, key: u64) -> (&[u8], u64) {
        let Some(thread) = self.threads.get(&key) else { return (b"", 0) };
        let java_name = self.resolve(&thread.java_name);
        let name = if java_name.is_empty() { self.resolve(&thread.os_name) } else { java_name };
        (name, thread.os_id)
    }

    /// Returns the name of a constant of any type, for a label.
    pub(super) fn describe(&self, schema: &Schema, id: u64, key: u64) -> Vec<u8> {
        let kind = schema.get(id).map_or(Kind::Other, |class| Kind::from_type_name(&class.name));
        match kind {
            Kind::Class => self.class_name(key),
            Kind::Method => self.method_name(key),
            Kind::Thread => self.thread(key).0.to_vec(),
            Kind::String => self.resolve(&Name::String(key)).to_vec(),
            Kind::Symbol => self.resolve(&Name::Symbol(key)).to_vec(),
            Kind::Frame => self.frame_kind(key).to_vec(),
            Kind::StackTrace => Vec::new(),
            Kind::Other => self.others.get(&(id, key)).map_or(Vec::new(), |name| self.resolve(name).to_vec()),
        }
    }

    /// Returns a string constant.
    pub(super) fn string(&self, key: u64) -> &[u8] {
        self.strings.get(&key).map_or(b"", |text| text)
    }
}

impl Name {
    fn new(value: Value<'_>) -> Self {
        match value {
            Value::Number(symbol) => Self::Symbol(symbol),
            Value::Text(Text::Bytes(text)) => Self::Text(text.into()),
            Value::Text(Text::Constant(string)) => Self::String(string),
            Value::Text(Text::Null) | Value::End => Self::None,
        }
    }
}
