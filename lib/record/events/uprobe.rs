//! Events that are calls of a function: `uprobe:PATH:SYMBOL[:ARGUMENT]`.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::path::Path;

use bstr::ByteSlice as _;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolFlags, SymbolKind, elf};

use crate::perf::symbols::debug_file::DebugFileSearch;
use crate::symbol_name::demangle::demangle;
use crate::{Error, io_error_text};

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
    /// [`Error::Usage`] if it is nothing of that kind, [`Error::Invalid`] if the file has no such function.
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
        let refused = |error: std::io::Error| Error::System(format!("{path}: {}", io_error_text(&error)));
        let path = fs::canonicalize(path).map_err(refused)?;
        let file = fs::read(&path).map_err(refused)?;
        let offset = locate(&path, &file, symbol).map_err(|why| Error::Invalid(format!("{} {why}", path.display())))?;
        let path = CString::new(path.into_os_string().into_encoded_bytes()).map_err(|_| wrong())?;
        Ok(Self { path, offset, argument })
    }
}

/// Where in the file a function's code begins: one of its own, or one that only its debug file names.
fn locate(path: &Path, file: &[u8], symbol: &str) -> Result<u64, String> {
    let file = object::File::parse(file).map_err(|_| "is no program and no library".to_owned())?;
    let address = match symbol.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16)) {
        Some(Ok(address)) => address,
        _ => {
            let found = DebugFileSearch::new(path, None, false).find_debug_file(&file);
            let debug_file = found.as_ref().and_then(|found| object::File::parse(&*found.bytes).ok());
            let mut all = functions(&file);
            all.extend(debug_file.iter().flat_map(functions));
            find(&all, symbol.as_bytes())?
        }
    };
    offset_of(&file, address).ok_or_else(|| format!("does not contain {symbol}"))
}

/// A function: its address and name, and whether what stands there only chooses the function's code.
type Function<'a> = (u64, &'a [u8], bool);

fn functions<'a>(file: &object::File<'a>) -> Vec<Function<'a>> {
    let function = |symbol: object::Symbol<'a, '_>| {
        let is_function = symbol.kind() == SymbolKind::Text && !symbol.is_undefined();
        let name = symbol.name_bytes().ok().filter(|name| is_function && !name.is_empty())?;
        let chooses =
            matches!(symbol.flags(), SymbolFlags::Elf { st_info, .. } if st_info.st_type() == elf::STT_GNU_IFUNC);
        Some((symbol.address(), name, chooses))
    };
    file.symbols().chain(file.dynamic_symbols()).filter_map(function).collect()
}

/// The address of the one function that has this name in the file, or shows it in a picture.
fn find(functions: &[Function<'_>], wanted: &[u8]) -> Result<u64, String> {
    let of = |is_it: &dyn Fn(&[u8]) -> bool| -> BTreeMap<u64, (&[u8], bool)> {
        functions
            .iter()
            .filter(|(_, name, _)| is_it(name))
            .map(|(at, name, chooses)| (*at, (*name, *chooses)))
            .collect()
    };
    let exactly = of(&|name| name == wanted);
    let found = if exactly.is_empty() { of(&|name| *demangle(name) == *wanted) } else { exactly };
    let shown = wanted.as_bstr();
    match Vec::from_iter(&found)[..] {
        [] => Err(format!("has no function {shown}")),
        [(address, (_, false))] => Ok(*address),
        [(_, (_, true))] => {
            let begin = [b"__", wanted, b"_"].concat();
            let variants = of(&|name| name.starts_with(&begin));
            let variants = variants.values().filter(|(_, chooses)| !chooses);
            let variants = listed(variants.map(|(name, _)| name.as_bstr().to_string()));
            let such = if variants.is_empty() { String::new() } else { format!(", such as {variants}") };
            Err(format!("chooses the code of {shown} when it is loaded (IFUNC); name the code{such}"))
        }
        ref several => {
            let each = several.iter().map(|(at, (name, _))| format!("{} at 0x{at:x}", name.as_bstr()));
            Err(format!("has {} functions {shown}: {}", several.len(), listed(each)))
        }
    }
}

/// No more than a few, with commas between them.
fn listed(all: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = all.collect();
    if all.len() > 8 {
        all.truncate(8);
        all.push("…".to_owned());
    }
    all.join(", ")
}

/// Where in the file stands what is loaded to an address.
fn offset_of(file: &object::File<'_>, address: u64) -> Option<u64> {
    file.segments().find_map(|segment| {
        let within = address.checked_sub(segment.address()).filter(|within| *within < segment.size())?;
        Some(segment.file_range().0 + within)
    })
}

#[cfg(test)]
mod tests {
    use super::{Uprobe, find};

    #[inline(never)]
    fn probed(number: u32) -> u32 {
        std::hint::black_box(number) + 721
    }

    #[test]
    fn a_function_is_found_in_its_file() {
        let own = std::env::current_exe().unwrap().display().to_string();
        let probe = Uprobe::parse(&format!("{own}:main:2")).unwrap();
        assert!(probe.offset > 0 && probe.argument == Some(2), "{probe:?}");
        assert_eq!(Uprobe::parse(&format!("{own}:main")).unwrap().argument, None);
        let refusal = |text: &str| Uprobe::parse(text).unwrap_err().to_string();
        assert!(refusal(&format!("{own}:no_such")).ends_with("has no function no_such"));
        assert!(refusal(&format!("{own}:main:7")).contains("arguments are 1 to 6"));
        let probed: fn(u32) -> u32 = probed;
        assert_eq!(std::hint::black_box(probed)(2), 723);
        let demangled = format!("{own}:fgkit::record::events::uprobe::tests::probed:1");
        assert!(Uprobe::parse(&demangled).unwrap().offset > 0);
        assert!(refusal("/no/such:main").contains("/no/such: "));
        assert!(refusal("main").contains("PATH:SYMBOL") && refusal("/x:").contains("PATH:SYMBOL"));
    }

    #[test]
    fn a_name_that_does_not_tell_one_function_is_refused_with_those_that_do() {
        let symbols: [(u64, &str, bool); 9] = [
            (16, "parse", false),
            (32, "parse", false),
            (48, "_ZN3app4readEi", false),
            (48, "app_read", false),
            (64, "_ZN3app5writeEi", false),
            (80, "_ZN3app5writeEl", false),
            (96, "strlen", true),
            (112, "__strlen_avx2", false),
            (128, "__strlen_sse2", false),
        ];
        let functions = symbols.map(|(at, name, chooses)| (at, name.as_bytes(), chooses));
        let find = |name: &str| find(&functions, name.as_bytes());
        assert_eq!((find("app::read"), find("_ZN3app5writeEl")), (Ok(48), Ok(80)));
        for (name, refusal) in [
            ("parse", "has 2 functions parse: parse at 0x10, parse at 0x20"),
            ("app::write", "has 2 functions app::write: _ZN3app5writeEi at 0x40, _ZN3app5writeEl at 0x50"),
            (
                "strlen",
                "chooses the code of strlen when it is loaded (IFUNC); name the code, such as __strlen_avx2, __strlen_sse2",
            ),
            ("none", "has no function none"),
        ] {
            assert_eq!(find(name).unwrap_err(), refusal);
        }
    }
}
