//! Events that are calls of a function: `uprobe:PATH:SYMBOL[:ARGUMENT]`.

use std::ffi::CString;
use std::fs;

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};

use crate::{Error, plain};

/// A place in a file at which an event is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uprobe {
    /// The file.
    pub path: CString,
    /// Where in it.
    pub offset: u64,
    /// The argument that is added up, the first being 1.
    pub argument: Option<u32>,
}

impl Uprobe {
    /// Reads `PATH:SYMBOL[:ARGUMENT]`.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is nothing of that kind, [`Error::Refused`] if the file has no such function.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::Usage(format!("uprobe:{text} is not uprobe:PATH:SYMBOL[:ARGUMENT], such as uprobe:./app:parse:1"))
        };
        let (path, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (symbol, argument) = match rest.rsplit_once(':') {
            Some((symbol, number)) if number.parse::<u32>().is_ok() => {
                let argument = number.parse().ok().filter(|number| (1..=6).contains(number));
                (symbol, Some(argument.ok_or_else(|| Error::Usage(format!("arguments are 1 to 6, and not {number}")))?))
            }
            _ => (rest, None),
        };
        if path.is_empty() || symbol.is_empty() {
            return Err(wrong());
        }
        let refused = |error: std::io::Error| Error::Refused(format!("{path}: {}", plain(&error)));
        let path = fs::canonicalize(path).map_err(refused)?;
        let file = fs::read(&path).map_err(refused)?;
        let shown = path.display();
        let offset = offset_of(&file, symbol.as_bytes())
            .ok_or_else(|| Error::Refused(format!("{shown} has no function {symbol}")))?;
        let path = CString::new(path.into_os_string().into_encoded_bytes()).map_err(|_| wrong())?;
        Ok(Self { path, offset, argument })
    }
}

/// Where in the file a function's code begins.
fn offset_of(file: &[u8], symbol: &[u8]) -> Option<u64> {
    let file = object::File::parse(file).ok()?;
    let is_it = |known: &object::Symbol<'_, '_>| known.is_definition() && known.name_bytes() == Ok(symbol);
    let address = file.symbols().chain(file.dynamic_symbols()).find(is_it)?.address();
    file.segments().find_map(|segment| {
        let within = address.checked_sub(segment.address()).filter(|within| *within < segment.size())?;
        Some(segment.file_range().0 + within)
    })
}

#[cfg(test)]
mod tests {
    use super::Uprobe;

    #[test]
    fn a_function_is_found_in_its_file() {
        let own = std::env::current_exe().unwrap().display().to_string();
        let probe = Uprobe::parse(&format!("{own}:main:2")).unwrap();
        assert!(probe.offset > 0 && probe.argument == Some(2), "{probe:?}");
        assert_eq!(Uprobe::parse(&format!("{own}:main")).unwrap().argument, None);
        let refusal = |text: &str| Uprobe::parse(text).unwrap_err().to_string();
        assert!(refusal(&format!("{own}:no_such")).ends_with("has no function no_such"));
        assert!(refusal(&format!("{own}:main:7")).contains("arguments are 1 to 6"));
        assert!(refusal("/no/such:main").contains("/no/such: "));
        assert!(refusal("main").contains("PATH:SYMBOL") && refusal("/x:").contains("PATH:SYMBOL"));
    }
}
