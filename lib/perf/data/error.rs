//! The errors of reading a `perf.data` file.

/// An error while a `perf.data` file is read.
#[derive(Debug)]
pub enum ReadError {
    /// The system cannot read the input.
    Io(std::io::Error),
    /// The file is cut short or corrupt, as the text says.
    Corrupt(String),
    /// The handler of the records failed.
    Handler(crate::Error),
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// Fails with [`ReadError::Corrupt`].
pub(super) fn corrupt<T>(what: impl Into<String>) -> Result<T, ReadError> {
    Err(ReadError::Corrupt(what.into()))
}
