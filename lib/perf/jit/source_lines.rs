//! The source lines of a generated function.

use super::fields::{read_string, read_u32, read_u64};

/// The size of the ELF header that `perf inject` writes before the code. Some compilers add it to the addresses of
/// lines.
const ELF_HEADER_SIZE: u64 = 0x40;

/// The source lines of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct SourceLines(Vec<SourceLine>);

/// A source line, and where its code begins.
#[derive(Clone, Debug)]
struct SourceLine {
    /// An address as the file states it, or, after [`SourceLines::relative_to`], the offset from the function's start.
    position: u64,
    /// `FILE:LINE`, without the file's folder.
    source: Vec<u8>,
}

impl SourceLines {
    /// Parses the body of a `JIT_CODE_DEBUG_INFO` record. The positions are addresses.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        /// The file name that means the file of the previous entry.
        const SAME_FILE: &[u8] = &[0xff];
        let mut entries = body.get(16..)?;
        let mut lines = Vec::new();
        let mut file = String::new();
        while !entries.is_empty() && lines.len() < usize::try_from(read_u64(body, 8)?).ok()? {
            let (position, line) = (read_u64(entries, 0)?, read_u32(entries, 8)?);
            let path = read_string(entries.get(16..)?)?;
            entries = &entries[16 + path.len() + 1..];
            if path != SAME_FILE {
                let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
                file = String::from_utf8_lossy(name).replace(char::is_control, "_");
            }
            lines.push(SourceLine { position, source: format!("{file}:{line}").into_bytes() });
        }
        Some(Self(lines))
    }

    /// Converts addresses to offsets from the start of a function. Returns no lines if some are outside of the
    /// function.
    pub(super) fn relative_to(mut self, start: u64, size: u64) -> Self {
        self.0.sort_by_key(|line| line.position);
        let has_elf_header = self.0.iter().all(|line| line.position.wrapping_sub(start) >= ELF_HEADER_SIZE);
        let base = if has_elf_header { start.wrapping_add(ELF_HEADER_SIZE) } else { start };
        for line in &mut self.0 {
            line.position = line.position.wrapping_sub(base);
        }
        if self.0.iter().all(|line| line.position <= size) { self } else { Self::default() }
    }

    /// Returns the source line of the code at an offset from the function's start, as `FILE:LINE`.
    pub(super) fn find(&self, offset: u64) -> Option<&[u8]> {
        let after = self.0.partition_point(|line| line.position <= offset);
        self.0.get(after.checked_sub(1)?).map(|line| &line.source[..])
    }
}
