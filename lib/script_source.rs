//! Source files of script functions, and the packages that their paths tell.

use bstr::ByteSlice as _;

use crate::markers;

/// The origin of the source file of a script function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceOrigin<'a> {
    /// The package of this name.
    Package(&'a str),
    /// The standard library of the language, or its interpreter.
    StandardLibrary,
    /// A file of this name that is in neither.
    Own(&'a str),
}

/// Sources of code that is in no file: of the command line, or of standard input.
const INLINE: [&str; 7] =
    ["<string>", "<stdin>", "[eval]", "[stdin]", "-e", "Command line code", "Standard input code"];

/// Extensions of the files of scripts.
pub const SCRIPT_EXTENSIONS: [&str; 6] = [".py", ".js", ".mjs", ".ts", ".rb", ".php"];

/// True for a function of a script that is in no file, but given on the command line: `main ([eval]:1)`.
pub fn is_inline_code(name: &[u8]) -> bool {
    let source = markers::strip_suffix(name).to_str().ok().and_then(source_of);
    source.is_some_and(is_inline)
}

fn is_inline(source: &str) -> bool {
    INLINE.contains(&without_line(source))
}

/// Returns a source without its line and column: `app.js` for `app.js:3:7`.
pub fn without_line(source: &str) -> &str {
    let mut file = source;
    while let Some((rest, number)) = file.rsplit_once(':')
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        file = rest;
    }
    file
}

/// Splits a name to which `--srcline` appended a source line: `main:src/main.rs:3` into `main` and `src/main.rs:3`. Java has
/// only the number: `Thread.run:840`.
pub fn split_source_line(name: &str) -> Option<(&str, &str)> {
    let (rest, line) = name.rsplit_once(':')?;
    if rest.is_empty() || rest.ends_with(':') || line.is_empty() || !line.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // `JS:*run` is a name of V8.
    let mut colons = rest.match_indices(':').map(|(index, _)| index);
    let file = colons.find(|index| {
        let (before, after) = (&rest[..*index], &rest[index + 1..]);
        !before.is_empty() && !before.ends_with(':') && !after.starts_with([':', '*', '~', '^', '+'])
    });
    let end = file.filter(|index| rest[*index..].contains(['.', '/', '<', '>'])).unwrap_or(rest.len());
    Some((&name[..end], &name[end + 1..]))
}

/// Returns the source file that a name of Python or JavaScript contains: `parse (app.py:1)`, `run /app/x.js:3`.
pub fn source_of(name: &str) -> Option<&str> {
    // PHP: `display (template.php(359) : eval()'d code)`.
    let name_of_eval = name.split_once(".php(").filter(|(_, rest)| rest.ends_with("eval()'d code)"));
    let name = name_of_eval.map_or(name, |(start, _)| &name[..start.len() + ".php".len()]);
    let in_parentheses = match name_of_eval {
        Some(_) => name.rsplit_once(" (").map(|(_, source)| source),
        None => name.strip_suffix(')').and_then(|name| name.rsplit_once(" (")).map(|(_, source)| source),
    };
    if in_parentheses.is_some_and(is_inline) {
        return in_parentheses;
    }
    let after_blank = || name.rsplit_once(' ').map(|(_, source)| source);
    let source = in_parentheses.or_else(after_blank).or_else(|| split_source_line(name).map(|(_, source)| source))?;
    let file = without_line(source);
    let is_source = SCRIPT_EXTENSIONS.iter().any(|extension| file.ends_with(extension));
    let is_internal = file.starts_with('<') || source.starts_with("node:") || matches!(source, "v8" | "php");
    // A script that is a program has no extension.
    let is_program = name.starts_with("<module> (") || name.starts_with("{main} (");
    (is_source || is_internal || is_program).then_some(source)
}

/// Returns the origin of the source file that a function's name contains, if it contains one.
pub fn find_origin(name: &[u8]) -> Option<SourceOrigin<'_>> {
    let name = markers::strip_suffix(name).to_str().ok()?;
    source_of(name).map(origin_of_source)
}

/// Folders of packages. The first parts below them are a package's name: two for composer's, and for scoped ones of npm.
const PACKAGES: [&str; 7] =
    ["site-packages/", "dist-packages/", "node_modules/", "gems/", "vendor_ruby/", "/share/php/", "/vendor/"];

/// Modules of Python's standard library that servers, commands and threads run in. fg-record writes their paths from the
/// library on.
const PYTHON_LIBRARY: &str = "\
    threading asyncio concurrent socketserver socket selectors ssl http email urllib json re sre_compile \
    sre_parse logging contextlib functools importlib inspect typing copy collections queue multiprocessing \
    subprocess encodings datetime decimal runpy unittest traceback xml ast";

/// Returns the origin of a source file, which may have a line.
pub fn origin_of_source(source: &str) -> SourceOrigin<'_> {
    let file = without_line(source);
    if is_inline(source) {
        return SourceOrigin::Own(file);
    }
    for folder in PACKAGES {
        let is_composer = folder == "/vendor/";
        if let Some((_, rest)) = file.rsplit_once(folder).filter(|_| !is_composer || file.ends_with(".php")) {
            return SourceOrigin::Package(package_of_path(rest, is_composer));
        }
    }
    let is_python_library = file.ends_with(".py") && is_python_module(file);
    let is_library = source.starts_with('<')
        || source.starts_with("node:")
        || matches!(source, "v8" | "php")
        || ["/lib/python", "/lib/ruby/"].iter().any(|folder| source.contains(folder));
    if is_library || is_python_library {
        return SourceOrigin::StandardLibrary;
    }
    // fg-record writes the paths of packages from the package on.
    let is_relative = file.starts_with(|first: char| first.is_ascii_alphanumeric() || matches!(first, '_' | '@'));
    if is_relative && file.contains('/') && [".py", ".js", ".mjs"].iter().any(|extension| file.ends_with(extension)) {
        return SourceOrigin::Package(package_of_path(file, false));
    }
    SourceOrigin::Own(file.rsplit(['/', '\\']).next().unwrap_or_default())
}

/// Returns the package that a path begins with. Names of Composer and names that begin with `@` are pairs.
fn package_of_path(path: &str, is_pair: bool) -> &str {
    let parts = if is_pair || path.starts_with('@') { 2 } else { 1 };
    path.match_indices('/').nth(parts - 1).map_or(path, |(end, _)| &path[..end])
}

/// True for a file of a module that is in [`PYTHON_LIBRARY`].
fn is_python_module(file: &str) -> bool {
    let module = file.split('/').next().unwrap_or_default().trim_end_matches(".py");
    PYTHON_LIBRARY.split_whitespace().any(|known| known == module)
}
