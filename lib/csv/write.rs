//! Tables as text.

use std::io::{self, Write};

use bstr::ByteSlice as _;

use super::table::Cell;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Values divided by commas, quoted as RFC 4180 has it.
    Csv,
    /// Values divided by tabs, of which names have none.
    Tsv,
    /// An array of objects.
    Json,
    /// Aligned columns, the numbers first.
    Terminal,
}

/// Writes a table.
///
/// # Errors
/// Those of `out`.
pub fn write<'a>(
    format: Format,
    header: &[&str],
    rows: impl Iterator<Item = Vec<Cell<'a>>>,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        Format::Csv => csv(header, rows, out).map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        }),
        Format::Tsv => tsv(header, rows, out),
        Format::Json => json(header, rows, out),
        Format::Terminal => terminal(header, rows, out),
    }
}

impl Cell<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            Self::Category(name) => name.as_bytes(),
            Self::Number(number) => number.as_bytes(),
            Self::Nothing => b"",
        }
    }

    fn is_name(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Category(_))
    }
}

fn csv<'a>(header: &[&str], rows: impl Iterator<Item = Vec<Cell<'a>>>, out: &mut impl Write) -> Result<(), csv::Error> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(header)?;
    for row in rows {
        table.write_record(row.iter().map(Cell::bytes))?;
    }
    table.flush().map_err(csv::Error::from)
}

fn tsv<'a>(header: &[&str], rows: impl Iterator<Item = Vec<Cell<'a>>>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", header.join("\t"))?;
    for row in rows {
        let cells: Vec<Vec<u8>> = row.iter().map(|cell| cell.bytes().replace(b"\t", b" ")).collect();
        out.write_all(&cells.join(&b'\t'))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn json<'a>(header: &[&str], rows: impl Iterator<Item = Vec<Cell<'a>>>, out: &mut impl Write) -> io::Result<()> {
    let mut before = "[\n";
    for row in rows {
        write!(out, "{before} {{")?;
        for (number, (name, cell)) in header.iter().zip(&row).enumerate() {
            let divider = if number == 0 { "" } else { ", " };
            write!(out, "{divider}\"{name}\": ")?;
            match cell {
                Cell::Number(number) => out.write_all(number.as_bytes())?,
                Cell::Nothing => out.write_all(b"null")?,
                text => string(text.bytes(), out)?,
            }
        }
        out.write_all(b"}")?;
        before = ",\n";
    }
    out.write_all(if before == "[\n" { b"[]\n" } else { b"\n]\n" })
}

/// A JSON string; line separators that JavaScript does not take in one are escaped too. A byte that is no text is spelled
/// out, as `\xff`, so that names which differ in it do so here.
fn string(text: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"\"")?;
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => write!(out, "\\{character}")?,
                '\0'..='\u{1f}' | '\u{7f}' | '\u{2028}' | '\u{2029}' => write!(out, "\\u{:04x}", u32::from(character))?,
                _ => write!(out, "{character}")?,
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\\\x{byte:02x}")?;
        }
    }
    out.write_all(b"\"")
}

/// The numbers first, since names are of any length.
fn terminal<'a>(header: &[&str], rows: impl Iterator<Item = Vec<Cell<'a>>>, out: &mut impl Write) -> io::Result<()> {
    let rows: Vec<Vec<Cell<'a>>> = rows.collect();
    let is_name = |column: &usize| rows.first().is_some_and(|row| row[*column].is_name());
    let (names, numbers): (Vec<usize>, Vec<usize>) = (0..header.len()).partition(is_name);
    // The category before the function: it is the shorter one.
    let columns: Vec<usize> = numbers.into_iter().chain(names.into_iter().rev()).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].bytes().chars().count());
        cells.chain([header[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = columns.iter().map(|column| width(*column)).collect();
    let last = columns.len().saturating_sub(1);
    let header = header.iter().map(|name| Cell::Text(name.as_bytes().to_vec())).collect();
    for row in [header].iter().chain(&rows) {
        for (place, (column, width)) in columns.iter().zip(&widths).enumerate() {
            let text = row[*column].bytes().to_str_lossy();
            match place {
                _ if place == last => writeln!(out, "{text}")?,
                _ if is_name(column) => write!(out, "{text:width$}  ")?,
                _ => write!(out, "{text:>width$}  ")?,
            }
        }
    }
    Ok(())
}
