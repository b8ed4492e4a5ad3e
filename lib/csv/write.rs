//! Writes tables as CSV, TSV, JSON or aligned text.

use std::io::{self, Write};

use bstr::ByteSlice as _;

use super::table::Cell;

/// Format of a written table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values, quoted by RFC 4180.
    Csv,
    /// Tab-separated values; tabs in names become spaces.
    Tsv,
    /// A JSON array of objects.
    Json,
    /// Aligned columns, numbers first.
    Terminal,
}

/// Writes a table.
///
/// # Errors
/// Errors of `out`.
pub fn write<'a>(
    format: Format,
    header: &[&str],
    rows: impl Iterator<Item = Vec<Cell<'a>>>,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        Format::Csv => write_csv(header, rows, out).map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        }),
        Format::Tsv => write_tsv(header, rows, out),
        Format::Json => write_json(header, rows, out),
        Format::Terminal => write_aligned(header, rows, out),
    }
}

impl Cell<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            Self::Category(name) => name.as_bytes(),
            Self::Number(number) => number.as_bytes(),
            Self::Empty => b"",
        }
    }

    fn is_name(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Category(_))
    }
}

fn write_csv<'a>(
    header: &[&str],
    rows: impl Iterator<Item = Vec<Cell<'a>>>,
    out: &mut impl Write,
) -> Result<(), csv::Error> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(header)?;
    for row in rows {
        table.write_record(row.iter().map(Cell::bytes))?;
    }
    table.flush().map_err(csv::Error::from)
}

fn write_tsv<'a>(header: &[&str], rows: impl Iterator<Item = Vec<Cell<'a>>>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", header.join("\t"))?;
    for row in rows {
        let cells: Vec<Vec<u8>> = row.iter().map(|cell| cell.bytes().replace(b"\t", b" ")).collect();
        out.write_all(&cells.join(&b'\t'))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn write_json<'a>(header: &[&str], rows: impl Iterator<Item = Vec<Cell<'a>>>, out: &mut impl Write) -> io::Result<()> {
    let mut before = "[\n";
    for row in rows {
        write!(out, "{before} {{")?;
        for (number, (name, cell)) in header.iter().zip(&row).enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            write!(out, "{separator}\"{name}\": ")?;
            match cell {
                Cell::Number(number) => out.write_all(number.as_bytes())?,
                Cell::Empty => out.write_all(b"null")?,
                text => write_string(text.bytes(), out)?,
            }
        }
        out.write_all(b"}")?;
        before = ",\n";
    }
    out.write_all(if before == "[\n" { b"[]\n" } else { b"\n]\n" })
}

/// Writes a JSON string. Line separators that older JavaScript rejects are escaped. Invalid UTF-8 is written as
/// `\\xff`, so that names that differ only in such bytes stay different.
fn write_string(text: &[u8], out: &mut impl Write) -> io::Result<()> {
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

/// Writes aligned columns: numbers first, because names can be long.
fn write_aligned<'a>(
    header: &[&str],
    rows: impl Iterator<Item = Vec<Cell<'a>>>,
    out: &mut impl Write,
) -> io::Result<()> {
    let rows: Vec<Vec<Cell<'a>>> = rows.collect();
    let (names, numbers): (Vec<usize>, Vec<usize>) =
        (0..header.len()).partition(|column| rows.first().is_some_and(|row| row[*column].is_name()));
    let first_name = numbers.len();
    // The category comes before the function because it is shorter.
    let columns: Vec<usize> = numbers.into_iter().chain(names.into_iter().rev()).collect();
    let widths = columns.iter().map(|column| {
        let cells = rows.iter().map(|row| row[*column].bytes().chars().count());
        cells.chain([header[*column].len()]).max().unwrap_or(0)
    });
    let widths: Vec<usize> = widths.collect();
    let last = columns.len().saturating_sub(1);
    let header = header.iter().map(|name| Cell::Text(name.as_bytes().to_vec())).collect();
    for row in [header].iter().chain(&rows) {
        for (position, (column, width)) in columns.iter().zip(&widths).enumerate() {
            let text = row[*column].bytes().to_str_lossy();
            match position {
                _ if position == last => writeln!(out, "{text}")?,
                _ if position >= first_name => write!(out, "{text:width$}  ")?,
                _ => write!(out, "{text:>width$}  ")?,
            }
        }
    }
    Ok(())
}
