//! Events that are calls of a function: `uprobe:PATH:SYMBOL[:ARGUMENT]`.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use bstr::ByteSlice as _;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolFlags, SymbolKind, elf};

use crate::perf::symbols::debug_file::DebugFileSearch;
use crate::symbol_name::demangle::demangle;
use crate::{Error, io_error_text};

/// The largest number of functions that a message lists.
const MAX_LISTED: usize = 8;

/// A probe at the first instruction of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uprobe {
    /// The file that contains the function.
    pub path: CString,
    /// The offset of the function's code in the file.
    pub offset: u64,
    /// The argument to sum up, the first being 1.
    pub argument: Option<u32>,
}

impl Uprobe {
    /// Parses `PATH:SYMBOL[:ARGUMENT]` and looks the symbol up in the file.
    ///
    /// # Errors
    /// [`Error::Usage`] if the text is malformed, [`Error::Invalid`] if the file cannot be read or has no such
    /// function.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (path, rest) = split_path(text).ok_or_else(|| malformed(text))?;
        let (symbol, argument) = match rest.rsplit_once(':') {
            Some((symbol, number)) if number.parse::<u32>().is_ok() => {
                let argument = number.parse().ok().filter(|number| (1..=6).contains(number));
                let Some(argument) = argument else {
                    let what = format!("-e uprobe:{text}: argument {number} is not between 1 and 6");
                    return Err(Error::Usage(what));
                };
                (symbol, Some(argument))
            }
            _ => (rest, None),
        };
        if path.is_empty() || symbol.is_empty() {
            return Err(malformed(text));
        }
        let (path, file) = read_program(Path::new(path))
            .map_err(|error| Error::Invalid(format!("-e uprobe:{text}: {path}: {}", io_error_text(&error))))?;
        let offset = find_offset(&path, &file, symbol)
            .map_err(|what| Error::Invalid(format!("-e uprobe:{text}: {} {what}", path.display())))?;
        let path = CString::new(path.into_os_string().into_encoded_bytes()).map_err(|_| malformed(text))?;
        Ok(Self { path, offset, argument })
    }
}

/// True for the name of an event that is a function's call or return.
pub fn is_function(event: &str) -> bool {
    event.starts_with("uprobe:") || event.starts_with("uretprobe:")
}

/// Splits a list of events after the first one, `uprobe:…` or `uretprobe:…`. Its path and the name of a function may contain commas,
/// as in `parse<int, char>`: it is the shortest one that exists. If none does, it is the shortest one that looks like an event, in a
/// file if one has such a path, and else the whole list: the message shows it.
pub fn split_list(list: &str) -> (&str, Option<&str>) {
    let ends = || list.match_indices(',').map(|(comma, _)| comma).chain([list.len()]);
    let probe = |end: usize| list[..end].split_once(':').map_or("", |(_, probe)| probe);
    let is_complete = |end: &usize| is_complete(&list[..*end]);
    let end = ends()
        .find(|end| Uprobe::parse(probe(*end)).is_ok())
        .or_else(|| ends().filter(is_complete).find(|end| find_path(probe(*end)).is_some()))
        .or_else(|| ends().find(is_complete))
        .unwrap_or(list.len());
    (&list[..end], list.get(end + 1..))
}

/// True if an event has a path and a function, and closes all brackets.
fn is_complete(event: &str) -> bool {
    let count = |bracket| event.matches(bracket).count();
    event.matches(':').count() >= 2 && count('<') == count('>') && count('(') == count(')')
}

fn malformed(text: &str) -> Error {
    Error::Usage(format!("-e uprobe:{text}: expected uprobe:PATH:SYMBOL[:ARGUMENT], such as uprobe:./app:parse:1"))
}

/// Splits a path from what follows the colon after it. Both may contain colons: the path is the shortest one that is a file.
fn split_path(text: &str) -> Option<(&str, &str)> {
    find_path(text).or_else(|| text.split_once(':'))
}

/// Returns the shortest path that is a file, before a colon, and what follows.
fn find_path(text: &str) -> Option<(&str, &str)> {
    let mut parts = text.match_indices(':').map(|(colon, _)| (&text[..colon], &text[colon + 1..]));
    parts.find(|(path, _)| Path::new(path).is_file())
}

/// Returns the absolute path and the content of a file.
fn read_program(path: &Path) -> io::Result<(PathBuf, Vec<u8>)> {
    let path = fs::canonicalize(path)?;
    let file = fs::read(&path)?;
    Ok((path, file))
}

/// Returns the offset of a function's code in a file. The symbol may be `0xADDRESS`, or only be known to the debug
/// file.
fn find_offset(path: &Path, file: &[u8], symbol: &str) -> Result<u64, String> {
    let file = object::File::parse(file).map_err(|_| "is not an ELF program or library".to_owned())?;
    let address = match symbol.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16)) {
        Some(Ok(address)) => address,
        _ => {
            let found = DebugFileSearch::new(path, None, false).find_debug_file(&file);
            let debug_file = found.as_ref().and_then(|found| object::File::parse(&*found.bytes).ok());
            let mut functions = list_functions(&file);
            functions.extend(debug_file.iter().flat_map(list_functions));
            find_address(&functions, symbol.as_bytes())?
        }
    };
    address_to_offset(&file, address).ok_or_else(|| format!("has no segment that contains {symbol}"))
}

#[derive(Clone, Copy, Debug)]
struct Function<'a> {
    address: u64,
    name: &'a [u8],
    /// True if the code only selects the function's code at load time (`STT_GNU_IFUNC`).
    is_ifunc: bool,
}

fn list_functions<'a>(file: &object::File<'a>) -> Vec<Function<'a>> {
    file.symbols().chain(file.dynamic_symbols()).filter_map(|symbol| to_function(&symbol)).collect()
}

fn to_function<'a>(symbol: &object::Symbol<'a, '_>) -> Option<Function<'a>> {
    let is_function = symbol.kind() == SymbolKind::Text && !symbol.is_undefined();
    let name = symbol.name_bytes().ok().filter(|name| is_function && !name.is_empty())?;
    let is_ifunc =
        matches!(symbol.flags(), SymbolFlags::Elf { st_info, .. } if st_info.st_type() == elf::STT_GNU_IFUNC);
    Some(Function { address: symbol.address(), name, is_ifunc })
}

/// Returns the address of the one function that has this symbol name, or, if none has, this demangled name.
fn find_address(functions: &[Function<'_>], wanted: &[u8]) -> Result<u64, String> {
    let exact = functions_by_address(functions, |name| name == wanted);
    let found =
        if exact.is_empty() { functions_by_address(functions, |name| *demangle(name) == *wanted) } else { exact };
    let shown = wanted.as_bstr();
    match Vec::from_iter(found.values())[..] {
        [] => Err(format!("has no function {shown}")),
        [Function { address, is_ifunc: false, .. }] => Ok(*address),
        [Function { is_ifunc: true, .. }] => {
            let prefix = [b"__", wanted, b"_"].concat();
            let variants = functions_by_address(functions, |name| name.starts_with(&prefix));
            let variants = variants.values().filter(|function| !function.is_ifunc);
            let variants = join_names(variants.map(|function| function.name.as_bstr().to_string()));
            let examples = if variants.is_empty() { String::new() } else { format!(", such as {variants}") };
            Err(format!("selects the code of {shown} at load time (IFUNC); name a variant{examples}"))
        }
        ref several => {
            let each = several.iter().map(|function| format!("{} at {:#x}", function.name.as_bstr(), function.address));
            let (count, names) = (several.len(), join_names(each));
            Err(format!("has {count} functions {shown}; use a full symbol name or address of these: {names}"))
        }
    }
}

/// Returns the functions whose names match, one for each address.
fn functions_by_address<'a>(
    functions: &[Function<'a>],
    is_match: impl Fn(&[u8]) -> bool,
) -> BTreeMap<u64, Function<'a>> {
    functions.iter().filter(|function| is_match(function.name)).map(|function| (function.address, *function)).collect()
}

/// Joins the first few names with commas.
fn join_names(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    if names.len() > MAX_LISTED {
        names.truncate(MAX_LISTED);
        names.push("…".to_owned());
    }
    names.join(", ")
}

/// Returns the file offset of what is loaded to an address.
fn address_to_offset(file: &object::File<'_>, address: u64) -> Option<u64> {
    file.segments().find_map(|segment| {
        let within = address.checked_sub(segment.address()).filter(|within| *within < segment.size())?;
        Some(segment.file_range().0 + within)
    })
}

#[cfg(test)]
mod tests {
    use super::{Function, Uprobe, find_address, split_list};

    #[inline(never)]
    fn probed(number: u32) -> u32 {
        std::hint::black_box(number) + 721
    }

    fn error(text: &str) -> String {
        Uprobe::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn finds_a_function_in_its_file() {
        let own = std::env::current_exe().unwrap().display().to_string();
        let probe = Uprobe::parse(&format!("{own}:main:2")).unwrap();
        assert!(probe.offset > 0 && probe.argument == Some(2), "{probe:?}");
        assert_eq!(Uprobe::parse(&format!("{own}:main")).unwrap().argument, None);
        assert!(error(&format!("{own}:no_such")).ends_with("has no function no_such"));
        assert!(error(&format!("{own}:main:7")).contains("argument 7 is not between 1 and 6"));
        let probed: fn(u32) -> u32 = probed;
        assert_eq!(std::hint::black_box(probed)(2), 723);
        let demangled = format!("{own}:fgkit::record::events::uprobe::tests::probed:1");
        assert!(Uprobe::parse(&demangled).unwrap().offset > 0);
        assert!(error("/no/such:main").contains("/no/such: "));
        assert!(error("main").contains("PATH:SYMBOL") && error("/x:").contains("PATH:SYMBOL"));
    }

    #[test]
    fn finds_a_file_whose_path_contains_colons() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        std::fs::create_dir_all(folder.path().join("lib:1")).unwrap();
        std::fs::create_dir_all(folder.path().join("lib")).unwrap();
        std::os::unix::fs::symlink(&own, folder.path().join("lib:1/app:main")).unwrap();
        let path = folder.path().join("lib:1/app:main").display().to_string();
        let (with, without) = (format!("{path}:main:2"), format!("{}:main:2", own.display()));
        assert_eq!(Uprobe::parse(&with).unwrap(), Uprobe::parse(&without).unwrap());
        assert!(error(&format!("{path}:app::no_such")).ends_with("has no function app::no_such"));
    }

    #[test]
    fn finds_the_end_of_a_name_with_commas() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a,b");
        std::os::unix::fs::symlink(std::env::current_exe().unwrap(), &path).unwrap();
        let event = format!("uprobe:{}:main:1", path.display());
        assert_eq!(split_list(&event), (&event[..], None));
        assert_eq!(split_list(&format!("{event},faults,uprobe:/b:c")), (&event[..], Some("faults,uprobe:/b:c")));
        assert_eq!(split_list("uprobe:/no/such:f<a, b>,c"), ("uprobe:/no/such:f<a, b>", Some("c")));
        assert_eq!(split_list("uprobe:/no,such:f,c"), ("uprobe:/no,such:f", Some("c")));
        assert_eq!(split_list("uprobe:/no,such"), ("uprobe:/no,such", None));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a:b,c:1").display().to_string();
        std::fs::write(&path, "").unwrap();
        let event = format!("uprobe:{path}:f");
        assert_eq!(split_list(&format!("{event},d")), (&event[..], Some("d")));
    }

    #[test]
    fn rejects_an_ambiguous_name_and_lists_the_functions() {
        let functions = [
            (16, "parse", false),
            (32, "parse", false),
            (48, "_ZN3app4readEi", false),
            (48, "app_read", false),
            (64, "_ZN3app5writeEi", false),
            (80, "_ZN3app5writeEl", false),
            (96, "strlen", true),
            (112, "__strlen_avx2", false),
            (128, "__strlen_sse2", false),
        ]
        .map(|(address, name, is_ifunc)| Function { address, name: name.as_bytes(), is_ifunc });
        let find = |name: &str| find_address(&functions, name.as_bytes());
        assert_eq!((find("app::read"), find("_ZN3app5writeEl")), (Ok(48), Ok(80)));
        for (name, error) in [
            (
                "parse",
                "has 2 functions parse; use a full symbol name or address of these: parse at 0x10, parse at 0x20",
            ),
            (
                "app::write",
                "has 2 functions app::write; use a full symbol name or address of these: \
                 _ZN3app5writeEi at 0x40, _ZN3app5writeEl at 0x50",
            ),
            (
                "strlen",
                "selects the code of strlen at load time (IFUNC); name a variant, such as __strlen_avx2, __strlen_sse2",
            ),
            ("none", "has no function none"),
        ] {
            assert_eq!(find(name).unwrap_err(), error);
        }
    }
}
