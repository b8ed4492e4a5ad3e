//! Which functions changed significantly, as a table of `fg-csv` judges them.

use std::collections::BTreeMap;
use std::path::Path;

use super::colour::without_suffix;
use crate::Error;
use crate::tally::is_significant;

/// The judgement of a function's differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Significance {
    /// True if the self weight changed significantly.
    pub own: bool,
    /// True if the inclusive weight changed significantly.
    pub total: bool,
}

/// Judgements by function.
#[derive(Clone, Debug, Default)]
pub struct Significances {
    functions: BTreeMap<Vec<u8>, Significance>,
    is_given: bool,
}

impl Significances {
    /// Reads a table of functions that `fg-csv` wrote as CSV.
    ///
    /// # Errors
    /// [`Error::Read`], and [`Error::Invalid`] if the file is no such table.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let text = std::fs::read(path).map_err(|error| Error::read(&name, error))?;
        Self::parse(&text).map_err(|what| Error::Invalid(format!("{name}: {what}")))
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        let mut table = csv::Reader::from_reader(text);
        let header = table.byte_headers().map_err(|error| error.to_string())?.clone();
        let columns = ["function", "self_chance", "inclusive_chance"];
        let [function, own, total] = columns.map(|name| find_column(&header, name));
        let (function, own, total) = (function?, own?, total?);
        let mut functions = BTreeMap::new();
        for (number, row) in (2_u64..).zip(table.byte_records()) {
            let row = row.map_err(|error| error.to_string())?;
            let [own, total] = [own, total].map(|column| judge_cell(row.get(column).unwrap_or_default()));
            let both = own.and_then(|own| total.map(|total| Significance { own, total }));
            let significance = both.map_err(|what| format!("row {number}: {what}"))?;
            functions.insert(row.get(function).unwrap_or_default().to_vec(), significance);
        }
        Ok(Self { functions, is_given: true })
    }

    /// True if a table was read.
    pub fn is_given(&self) -> bool {
        self.is_given
    }

    /// Returns the judgement of a function. The differences of functions that are not in the table are not significant.
    pub fn get(&self, name: &[u8]) -> Significance {
        let found = self.functions.get(name).or_else(|| self.functions.get(without_suffix(name)));
        found.copied().unwrap_or_default()
    }
}

/// Returns the index of the column with this name.
fn find_column(header: &csv::ByteRecord, name: &str) -> Result<usize, String> {
    let found = header.iter().position(|cell| cell == name.as_bytes());
    found.ok_or_else(|| format!("no column {name}; write the table with: fg-csv DIFFERENCE > FILE"))
}

/// Returns true for the chance of a significant difference. It is missing where the weights do not allow a judgement.
fn judge_cell(cell: &[u8]) -> Result<bool, String> {
    if cell.is_empty() {
        return Ok(false);
    }
    let text = String::from_utf8_lossy(cell);
    text.parse().map(is_significant).map_err(|_| format!("\"{text}\" is not a chance, like 0.0125"))
}

#[cfg(test)]
mod tests {
    use super::{Significance, Significances};

    #[test]
    fn reads_chances_of_functions() {
        let table = b"function,self_before,self_chance,inclusive_chance\n\"a,b\",1,0.0500,0.3\nread_[k],2,,0.001\n";
        let read = Significances::parse(table).unwrap();
        assert!(read.is_given() && !Significances::default().is_given());
        assert_eq!(read.get(b"a,b"), Significance { own: true, total: false });
        assert_eq!(read.get(b"read_[k]"), Significance { own: false, total: true });
        assert_eq!(read.get(b"other"), Significance::default());
    }

    #[test]
    fn refuses_other_tables() {
        for (table, problem) in [
            (&b"function,self,inclusive\nf,1,2\n"[..], "no column self_chance"),
            (b"", "no column function"),
            (b"function,self_chance,inclusive_chance\nf,high,1\n", "row 2: \"high\" is not a chance"),
            (b"function,self_chance,inclusive_chance\nf,1\n", "found record with 2 fields"),
        ] {
            let error = Significances::parse(table).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
