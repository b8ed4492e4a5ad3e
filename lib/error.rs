//! The error type of the toolkit and the texts of system and regex errors.

use std::io;

/// A failure of the toolkit.
///
/// The text is one line that names the input, states what is wrong and, where possible, what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be opened, read or decompressed.
    #[error("{name}: {}", io_error_text(source))]
    Read {
        /// The file name as the user gave it.
        name: String,
        /// The error of the operating system or the decompressor.
        source: io::Error,
    },
    /// The output could not be written. Tools treat a broken pipe as success: see [`Error::is_broken_pipe`].
    #[error("{name}: cannot write: {}", io_error_text(source))]
    Write {
        /// The output name as the user gave it.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A line of the input does not match its format.
    #[error("{name}:{line}: {what}")]
    Malformed {
        /// The file name as the user gave it.
        name: String,
        /// The line number, from 1.
        line: u64,
        /// The syntax that was expected.
        what: String,
    },
    /// The input as a whole cannot be used.
    #[error("{name}: {what}")]
    Unreadable {
        /// The file name as the user gave it.
        name: String,
        /// The reason and what to do.
        what: String,
    },
    /// A sum of weights does not fit.
    #[error("the sum of the weights is too large")]
    Overflow,
    /// The command line is invalid.
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
        /// The exit status that shells use: 127 if the command is not found, 126 if it is not executable.
        status: u8,
        /// The command and the reason.
        what: String,
    },
    /// The message was printed already; the caller only sets the exit status.
    #[error("failed")]
    AlreadyReported,
}

impl Error {
    /// Creates an [`Error::Read`] for the input `name`.
    pub fn read(name: impl Into<String>, source: io::Error) -> Self {
        Self::Read { name: name.into(), source }
    }

    /// Creates an [`Error::Write`] for the output `name`.
    pub fn write(name: impl Into<String>, source: io::Error) -> Self {
        Self::Write { name: name.into(), source }
    }

    /// True if the reader of our output closed its end, as `head` does. Tools then exit without a message.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Returns the text of an I/O error without the `(os error N)` that Rust appends.
pub fn io_error_text(error: &io::Error) -> String {
    if error.raw_os_error() == Some(libc::EMFILE) {
        return "too many open files; raise the limit (ulimit -n)".to_owned();
    }
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Returns the text of a regex error as one line, without the excerpt of the pattern.
pub fn regex_error_text(error: &regex::Error) -> String {
    let text = error.to_string();
    match text.lines().last().and_then(|last| last.strip_prefix("error: ")) {
        Some(what) => format!("regex parse error: {what}"),
        None => text,
    }
}
