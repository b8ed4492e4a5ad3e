//! The errors of reading a `perf.data` file.

/// An error while a `perf.data` file is read.
#[derive(Debug)]
pub enum ReadError {
    /// The system cannot read the input.
    Io(std::io::Error),
    /// The file is cut short or corrupt, as the text says.
    Corrupt(String),
    /// The recording was read, but the file does not end with it, as the text says.
    Trailing(String),
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

/// The advice for a file with several recordings: the events, processes and mappings of each are its own.
const ONE_FILE_EACH: &str = "give each recording as a file of its own";

/// Explains why the rest of a file, behind the end of its recording, is not read.
pub(super) fn explain_trailing(end: u64, length: u64) -> String {
    format!("{} bytes after the recording, from byte {end} on, are not read: {ONE_FILE_EACH}", length - end)
}

/// Explains why data that are no records are not read.
pub(super) fn explain_other(offset: u64) -> String {
    format!("data other than records follows after {offset} bytes of records and is not read: {ONE_FILE_EACH}")
}

/// Explains why records behind the beginning of another recording are not read.
pub(super) fn explain_second(offset: u64) -> String {
    format!("another recording begins after {offset} bytes of records and is not read: {ONE_FILE_EACH}")
}
