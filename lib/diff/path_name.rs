//! Names with the path of a source file.

use super::program::is_evidence;
use crate::script_source::{SourceOrigin, origin_of_source, source_of, without_line};

/// A name with the path of a source file, such as `parse (/src/app.py:12)`, or with that of a script alone: `parse (app.py:12)`.
#[derive(Clone, Copy)]
pub(super) struct PathName<'a> {
    pub path: &'a str,
    /// The text before and after the path.
    around: (&'a str, &'a str),
}

/// Returns the last part of a path.
pub(super) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// True for a character that may precede or follow a path.
pub(super) fn is_end(letter: char) -> bool {
    matches!(letter, ' ' | '(' | ')' | ':' | '"')
}

impl<'a> PathName<'a> {
    /// Returns the first path of a name; `None` if it has none.
    pub fn parse(name: &'a str) -> Option<Self> {
        let Some(slash) = name.find('/') else { return Self::parse_script(name) };
        let start = name[..slash].rfind(is_end).map_or(0, |at| at + 1);
        let end = name[slash..].find(is_end).map_or(name.len(), |at| slash + at);
        let path = &name[start..end];
        (!path.ends_with('/')).then_some(Self { path, around: (&name[..start], &name[end..]) })
    }

    /// Returns the script of a name without folders.
    fn parse_script(name: &'a str) -> Option<Self> {
        let path = without_line(source_of(name)?);
        let is_file = path.contains('.') && matches!(origin_of_source(path), SourceOrigin::Own(_));
        let start = name.rfind(path).filter(|_| is_file)?;
        Some(Self { path, around: (&name[..start], &name[start + path.len()..]) })
    }

    /// Returns what is the same in both copies: the name of the file, and the function.
    pub fn key(&self) -> (&'a str, (&'a str, String)) {
        (self.file(), self.function())
    }

    /// Returns the name of the file.
    pub fn file(&self) -> &'a str {
        last_part(self.path)
    }

    /// Returns the text around the path, without the line.
    pub fn function(&self) -> (&'a str, String) {
        (self.around.0, self.around.1.chars().filter(|letter| !letter.is_ascii_digit()).collect())
    }

    /// Returns the function in front of the path; `None` for a program, and for a function of Go, whose package is the path.
    pub fn function_name(&self) -> Option<&'a str> {
        Some(self.around.0.trim_end_matches(is_end)).filter(|function| !function.is_empty())
    }

    /// True unless each program has a function of this name.
    pub fn is_evidence(&self) -> bool {
        self.function_name().is_none_or(is_evidence)
    }

    /// Returns the folder of the file.
    pub fn folder(&self) -> &'a str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// Returns the length of the equal end of two paths, from a `/` on.
pub(super) fn common_end(a: &str, b: &str) -> usize {
    let equal = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    let end = &a.as_bytes()[a.len() - equal..];
    end.iter().position(|byte| *byte == b'/').map_or(0, |at| equal - at)
}
