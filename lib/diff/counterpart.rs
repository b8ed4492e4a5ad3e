//! A part of names that differs between two copies of a program.

use super::path_name::is_end;

/// A part of names before, and what replaces it after.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counterpart {
    /// The name of a program, the path of a folder or file, or a module with the separator behind it, before.
    pub before: String,
    /// Its name after.
    pub after: String,
    /// The kind of the part.
    pub part: NamePart,
}

/// A part of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamePart {
    /// The whole name.
    Whole,
    /// The folder of a source file.
    Folder,
    /// A source file.
    File,
    /// A crate, a namespace, a package or a type.
    Module,
    /// The name of a thread with the numbers of its process and itself.
    Thread,
    /// The name of a process with its number.
    Process,
}

impl Counterpart {
    /// Returns a text that says what is compared as one.
    pub(super) fn describe(&self) -> String {
        let Self { before, after, part } = self;
        match part {
            NamePart::Thread => "threads of one name are compared as one".to_owned(),
            NamePart::Process => "processes of one name are compared as one".to_owned(),
            NamePart::Folder => format!("{before}/ is compared as {after}/"),
            NamePart::Whole | NamePart::File | NamePart::Module => format!("{before} is compared as {after}"),
        }
    }

    /// Returns the name after of a frame before; `None` if it is the same. The functions of a module are renamed one by one
    /// (`modules.rs`), and so are threads and processes (`thread_names.rs`).
    pub(super) fn rename(&self, name: &[u8]) -> Option<Vec<u8>> {
        match self.part {
            NamePart::Whole => (name == self.before.as_bytes()).then(|| self.after.clone().into_bytes()),
            NamePart::Folder => self.rename_paths(name, |next| next == Some('/')),
            NamePart::File => self.rename_paths(name, |next| next.is_none_or(is_end)),
            NamePart::Module | NamePart::Thread | NamePart::Process => None,
        }
    }

    /// Replaces the part where it begins a path of a name. `is_whole` says if it ends before the next letter.
    fn rename_paths(&self, name: &[u8], is_whole: impl Fn(Option<char>) -> bool) -> Option<Vec<u8>> {
        let starts = memchr::memmem::find_iter(name, self.before.as_bytes()).filter(|start| {
            let (before, rest) = name.split_at(*start);
            is_whole(rest.get(self.before.len()).copied().map(char::from))
                && before.last().is_none_or(|last| is_end(char::from(*last)))
        });
        let mut starts = starts.peekable();
        starts.peek()?;
        let (mut renamed, mut copied) = (Vec::with_capacity(name.len()), 0);
        for start in starts {
            renamed.extend_from_slice(&name[copied..start]);
            renamed.extend_from_slice(self.after.as_bytes());
            copied = start + self.before.len();
        }
        renamed.extend_from_slice(&name[copied..]);
        Some(renamed)
    }
}
