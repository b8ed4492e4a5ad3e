//! The metadata of a chunk, which describe the types of its events and constants, and how to decode their values.

use rustc_hash::FxHashMap;

use super::wire::{Cursor, Text};

/// The types of a chunk, by their ID.
#[derive(Debug, Default)]
pub(super) struct Schema {
    types: FxHashMap<u64, Type>,
}

/// A type of events or constants.
#[derive(Debug, Default)]
pub(super) struct Type {
    pub(super) name: Vec<u8>,
    pub(super) fields: Vec<Field>,
}

impl Type {
    pub(super) fn find_field(&self, name: &[u8]) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A member of a type.
#[derive(Debug, Default)]
pub(super) struct Field {
    pub(super) name: Vec<u8>,
    /// The ID of its type.
    pub(super) kind: u64,
    /// True if the value is the key of a constant of this type.
    pub(super) is_constant: bool,
    is_array: bool,
    /// The unit of a duration.
    pub(super) timespan: Option<Timespan>,
}

/// The unit of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timespan {
    /// Ticks of the chunk's clock.
    Ticks,
    /// This number of nanoseconds.
    Nanoseconds(u64),
}

/// Maximum depth of elements of the metadata, and of types within types.
const MAX_DEPTH: usize = 16;

/// Maximum number of values of a type whose members are types.
const MAX_VALUES: usize = 4096;

impl Schema {
    /// Parses a metadata event. Returns `None` if it is malformed.
    pub(super) fn parse(event: &[u8], has_varints: bool) -> Option<Self> {
        let mut cursor = Cursor::new(event, has_varints);
        // Size, type, start time, duration and the ID of the metadata.
        cursor.read_int()?;
        (0..4).try_for_each(|_| cursor.read_long().map(drop))?;
        let count = usize::try_from(cursor.read_int()?).ok().filter(|count| *count <= cursor.remaining())?;
        let strings = (0..count).map(|_| {
            Some(match cursor.read_text()? {
                Text::Bytes(text) => text.into_owned(),
                Text::Null | Text::Constant(_) => Vec::new(),
            })
        });
        let strings = strings.collect::<Option<Vec<_>>>()?;
        let mut schema = Self::default();
        schema.read_element(&mut cursor, &strings, &mut Type::default(), 0)?;
        Some(schema)
    }

    /// Reads an element and its children: a type, a field of `parent`, or something that contains types.
    fn read_element(
        &mut self,
        cursor: &mut Cursor<'_>,
        strings: &[Vec<u8>],
        parent: &mut Type,
        depth: usize,
    ) -> Option<()> {
        let string = |index: u64| strings.get(usize::try_from(index).ok()?).map(Vec::as_slice);
        let element = string(cursor.read_int()?)?;
        let (mut name, mut id, mut field) = (&b""[..], None, Field::default());
        for _ in 0..cursor.read_int()? {
            let (key, value) = (string(cursor.read_int()?)?, string(cursor.read_int()?)?);
            match key {
                b"name" => name = value,
                b"id" => id = parse_id(value),
                b"class" => field.kind = parse_id(value)?,
                b"constantPool" => field.is_constant = value == b"true",
                b"dimension" => field.is_array = value != b"0",
                b"value" if element == b"annotation" => annotate(parent, value),
                _ => {}
            }
        }
        let mut inner = Type { name: name.to_vec(), fields: Vec::new() };
        let is_field = element == b"field";
        if is_field {
            field.name = name.to_vec();
            inner.fields.push(field);
        }
        for _ in 0..cursor.read_int()? {
            (depth < MAX_DEPTH).then_some(())?;
            self.read_element(cursor, strings, &mut inner, depth + 1)?;
        }
        match id {
            _ if is_field => parent.fields.append(&mut inner.fields),
            Some(id) if element == b"class" => drop(self.types.insert(id, inner)),
            _ => {}
        }
        Some(())
    }

    /// Returns a type by its ID.
    pub(super) fn get(&self, id: u64) -> Option<&Type> {
        self.types.get(&id)
    }

    /// Returns the IDs of all types, and the types.
    pub(super) fn types(&self) -> impl Iterator<Item = (u64, &Type)> {
        self.types.iter().map(|(id, class)| (*id, class))
    }
}

/// Adds the value of an annotation to a field: the unit of a duration.
fn annotate(parent: &mut Type, value: &[u8]) {
    let unit = match value {
        b"TICKS" => Timespan::Ticks,
        b"NANOSECONDS" => Timespan::Nanoseconds(1),
        b"MICROSECONDS" => Timespan::Nanoseconds(1_000),
        b"MILLISECONDS" => Timespan::Nanoseconds(1_000_000),
        b"SECONDS" => Timespan::Nanoseconds(1_000_000_000),
        _ => return,
    };
    if let Some(field) = parent.fields.last_mut() {
        field.timespan = Some(unit);
    }
}

fn parse_id(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A value of a type.
#[derive(Debug)]
pub(super) enum Value<'a> {
    /// An integer, or the key of a constant.
    Number(u64),
    Text(Text<'a>),
    /// The end of an element of an array.
    End,
}

/// The values of a type in their order, with those of its members that are types.
#[derive(Debug, Default)]
pub(super) struct Layout(Vec<Step>);

/// A value of a layout.
#[derive(Debug)]
struct Step {
    encoding: Encoding,
    /// The index of the value among the wanted ones.
    slot: Option<u8>,
}

#[derive(Debug)]
enum Encoding {
    Byte,
    /// An integer of this number of bytes, unless integers have a variable length.
    Integer(u8),
    /// Bytes to be skipped.
    Other(u8),
    Text,
    Array(Layout),
}

impl Layout {
    /// Returns the layout of a type. `wanted` are the paths of the values that [`visit`](Self::visit) returns: names of
    /// fields, with a dot before those of a member's type. Returns `None` if a type is unknown or contains itself.
    pub(super) fn new(schema: &Schema, id: u64, wanted: &[&[u8]]) -> Option<Self> {
        let mut builder = Builder { schema, wanted, values: 0 };
        builder.build_type(id, b"", 0)
    }

    /// Decodes a value and calls `visit` with the wanted values: their index and the value. Returns `None` if the bytes
    /// are malformed.
    #[inline]
    pub(super) fn visit<'a>(&self, cursor: &mut Cursor<'a>, visit: &mut impl FnMut(u8, Value<'a>)) -> Option<()> {
        for step in &self.0 {
            let value = match &step.encoding {
                Encoding::Integer(size) => Value::Number(cursor.read_integer(*size)?),
                Encoding::Byte => Value::Number(cursor.read_byte()?.into()),
                Encoding::Other(size) => {
                    cursor.skip((*size).into())?;
                    continue;
                }
                Encoding::Text => Value::Text(cursor.read_text()?),
                Encoding::Array(element) => {
                    element.visit_elements(cursor, visit, step.slot)?;
                    continue;
                }
            };
            if let Some(slot) = step.slot {
                visit(slot, value);
            }
        }
        Some(())
    }

    /// Skips a value. Returns `None` if the bytes are malformed.
    pub(super) fn skip(&self, cursor: &mut Cursor<'_>) -> Option<()> {
        for step in &self.0 {
            match &step.encoding {
                Encoding::Array(element) if cursor.has_varints() && element.has_only_integers() => {
                    let count = element.read_count(cursor)?;
                    cursor.skip_varints(count.checked_mul(element.0.len() as u64)?)?;
                }
                Encoding::Array(element) => {
                    for _ in 0..element.read_count(cursor)? {
                        element.skip(cursor)?;
                    }
                }
                Encoding::Integer(size) => drop(cursor.read_integer(*size)?),
                Encoding::Byte => drop(cursor.read_byte()?),
                Encoding::Other(size) => cursor.skip((*size).into())?,
                Encoding::Text => drop(cursor.read_text()?),
            }
        }
        Some(())
    }

    /// Returns the layout of the elements if this is that of a byte and an array whose elements have only integers. The
    /// byte must be the value at index 0 of the wanted ones, and the array that at index 1.
    pub(super) fn integer_elements(&self) -> Option<&Self> {
        match &self.0[..] {
            [
                Step { encoding: Encoding::Byte, slot: Some(0) },
                Step { encoding: Encoding::Array(elements), slot: Some(1) },
            ] => Some(elements).filter(|elements| elements.has_only_integers()),
            _ => None,
        }
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the position of the value that has an index among the wanted ones.
    pub(super) fn position(&self, slot: u8) -> Option<usize> {
        self.0.iter().position(|step| step.slot == Some(slot))
    }

    /// Returns true if the first values are integers.
    pub(super) fn begins_with_integers(&self, count: usize) -> bool {
        self.0.iter().take(count).all(|step| matches!(step.encoding, Encoding::Integer(_)))
    }

    fn has_only_integers(&self) -> bool {
        self.begins_with_integers(self.0.len())
    }

    /// Reads the number of elements of an array with this layout.
    pub(super) fn read_count(&self, cursor: &mut Cursor<'_>) -> Option<u64> {
        // Elements without a value would make a short file take long.
        let count = cursor.read_int()?;
        (count == 0 || !self.0.is_empty() && count <= cursor.remaining() as u64).then_some(count)
    }

    fn visit_elements<'a>(
        &self,
        cursor: &mut Cursor<'a>,
        visit: &mut impl FnMut(u8, Value<'a>),
        slot: Option<u8>,
    ) -> Option<()> {
        for _ in 0..self.read_count(cursor)? {
            self.visit_element(cursor, visit)?;
            if let Some(slot) = slot {
                visit(slot, Value::End);
            }
        }
        Some(())
    }

    /// Decodes an element of an array. It is not inlined because a layout may be in itself.
    #[inline(never)]
    fn visit_element<'a>(&self, cursor: &mut Cursor<'a>, visit: &mut impl FnMut(u8, Value<'a>)) -> Option<()> {
        self.visit(cursor, visit)
    }
}

/// Builds the layout of a type.
struct Builder<'s> {
    schema: &'s Schema,
    wanted: &'s [&'s [u8]],
    values: usize,
}

impl Builder<'_> {
    fn build_type(&mut self, id: u64, path: &[u8], depth: usize) -> Option<Layout> {
        let mut layout = Layout::default();
        let class = self.schema.get(id)?;
        let slot = self.wanted.iter().position(|wanted| *wanted == path).and_then(|slot| u8::try_from(slot).ok());
        let encoding = match &class.name[..] {
            b"boolean" | b"byte" => Some(Encoding::Byte),
            b"char" | b"short" => Some(Encoding::Integer(2)),
            b"int" => Some(Encoding::Integer(4)),
            b"long" => Some(Encoding::Integer(8)),
            b"float" => Some(Encoding::Other(4)),
            b"double" => Some(Encoding::Other(8)),
            b"java.lang.String" => Some(Encoding::Text),
            _ => None,
        };
        self.values += 1;
        (depth < MAX_DEPTH && self.values < MAX_VALUES).then_some(())?;
        if let Some(encoding) = encoding {
            layout.0.push(Step { encoding, slot });
            return Some(layout);
        }
        for field in &class.fields {
            self.build_field(field, path, depth, &mut layout)?;
        }
        Some(layout)
    }

    fn build_field(&mut self, field: &Field, path: &[u8], depth: usize, layout: &mut Layout) -> Option<()> {
        let dot = if path.is_empty() { &b""[..] } else { b"." };
        let path = [path, dot, &field.name].concat();
        let slot = self.wanted.iter().position(|wanted| *wanted == path).and_then(|slot| u8::try_from(slot).ok());
        let value = match field.is_constant {
            true => Layout(vec![Step { encoding: Encoding::Integer(8), slot }]),
            false => self.build_type(field.kind, &path, depth + 1)?,
        };
        match field.is_array {
            true => layout.0.push(Step { encoding: Encoding::Array(value), slot }),
            false => layout.0.extend(value.0),
        }
        Some(())
    }
}
