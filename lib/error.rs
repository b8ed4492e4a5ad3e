//! What can go wrong, and how it is said.

use std::io;

/// Any failure of the toolkit. Its text is one line that says what, where, and where possible what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be opened, read or decompressed.
    #[error("{name}: {}", io_error_text(source))]
    Read {
        /// The file as the user named it.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The output could not be written. A broken pipe is no failure: see [`Error::is_broken_pipe`].
    #[error("{name}: {}", io_error_text(source))]
    Write {
        /// The output as the user named it.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// Input that does not have the form of its format.
    #[error("{name}:{line}: {what}")]
    Malformed {
        /// The file as the user named it.
        name: String,
        /// The line, from 1.
        line: u64,
        /// What was expected.
        what: String,
    },
    /// Input of which nothing could be made, as a whole.
    #[error("{name}: {what}")]
    Unreadable {
        /// The file as the user named it.
        name: String,
        /// Why, and what to do.
        what: String,
    },
    /// Weights whose sum does not fit.
    #[error("the weights' sum is too large")]
    Overflow,
    /// The command line asks for something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// The input or the request cannot be used: nothing to draw, no such process, an event that the input lacks.
    #[error("{0}")]
    Invalid(String),
    /// The kernel or the machine refuses: a missing permission, an unsupported event, no more threads.
    #[error("{0}")]
    System(String),
    /// A command could not be started.
    #[error("{what}")]
    Command {
        /// The exit status that shells give for it: 127 not found, 126 not executable.
        status: u8,
        /// Which, and why.
        what: String,
    },
    /// The message was given already; only the exit status is left to set.
    #[error("failed")]
    AlreadyReported,
}

impl Error {
    /// A failure to read `name`.
    pub fn read(name: impl Into<String>, source: io::Error) -> Self {
        Self::Read { name: name.into(), source }
    }

    /// A failure to write `name`.
    pub fn write(name: impl Into<String>, source: io::Error) -> Self {
        Self::Write { name: name.into(), source }
    }

    /// Whether the reader of our output has gone, which is its right.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The system's words without Rust's `(os error N)`.
pub fn io_error_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// What is wrong with a pattern, in one line.
pub fn regex_error_text(error: &regex::Error) -> String {
    let text = error.to_string();
    match text.lines().last().and_then(|last| last.strip_prefix("error: ")) {
        Some(what) => format!("regex parse error: {what}"),
        None => text,
    }
}
