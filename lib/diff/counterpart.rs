//! A part of names that differs between two copies of a program.

use super::path_name::is_end;

/// Most threads, and most processes, that are named.
const MOST_NAMES: usize = 3;

/// Most pairs of names that are given.
const MOST_PAIRS: usize = 8;

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
    /// The name of threads with the numbers of their process and themselves.
    Thread(Joined),
    /// The name of processes with their number.
    Process(Joined),
}

/// The threads or processes of a name that are compared without their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Joined {
    /// Those with a number of one side.
    Restarted,
    /// All: one side has more, among which those of both sides share the work with others.
    All,
}

/// Returns a text that says what is compared as one; `None` if nothing is.
pub(super) fn describe_all(counterparts: &[Counterpart]) -> Option<String> {
    let of_kind = |kind| {
        let names = counterparts.iter().filter(move |one| one.part.kind() == kind);
        names.map(Counterpart::describe).collect::<Vec<_>>()
    };
    let pairs = of_kind(None);
    let mut texts: Vec<String> = (!pairs.is_empty()).then(|| join_first(&pairs, MOST_PAIRS)).into_iter().collect();
    for kind in ["threads", "processes"] {
        let names = of_kind(Some(kind));
        if !names.is_empty() {
            texts.push(format!("{kind} with other numbers are compared by name: {}", join_first(&names, MOST_NAMES)));
        }
    }
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Joins names, and counts those that are too many.
fn join_first(names: &[String], most: usize) -> String {
    let mut text = names[..names.len().min(most)].join(", ");
    if names.len() > most {
        text.push_str(&format!(" and {} more", names.len() - most));
    }
    text
}

impl NamePart {
    /// Returns the kind of what has a number that is left out.
    fn kind(self) -> Option<&'static str> {
        match self {
            Self::Thread(_) => Some("threads"),
            Self::Process(_) => Some("processes"),
            Self::Whole | Self::Folder | Self::File | Self::Module => None,
        }
    }
}

impl Counterpart {
    /// Returns a text that says what is compared as one; for threads and processes, their name.
    fn describe(&self) -> String {
        let Self { before, after, part } = self;
        match part {
            NamePart::Thread(Joined::All) | NamePart::Process(Joined::All) => {
                format!("{after} (all as one, since there are more on one side)")
            }
            NamePart::Thread(_) | NamePart::Process(_) => after.clone(),
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
            NamePart::Module | NamePart::Thread(_) | NamePart::Process(_) => None,
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

#[cfg(test)]
mod tests {
    use super::{Counterpart, NamePart, describe_all};

    #[test]
    fn many_pairs_are_counted() {
        let pair = |number: usize| {
            let [before, after] = ["a", "b"].map(|name| format!("{name}{number}.py"));
            Counterpart { before, after, part: NamePart::File }
        };
        let describe = |count: usize| describe_all(&(0..count).map(pair).collect::<Vec<_>>()).unwrap_or_default();
        assert_eq!(describe(2), "a0.py is compared as b0.py, a1.py is compared as b1.py");
        assert!(describe(9).ends_with("a7.py is compared as b7.py and 1 more"), "{}", describe(9));
    }
}
