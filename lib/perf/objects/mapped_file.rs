//! Opens the files that processes have mapped, and maps files into our own memory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::object::{Bytes, Elf};
use crate::perf::event::Mmap;

/// The identity of a file. It changes when the file is replaced or modified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    /// The modification time: its seconds and nanoseconds, hashed.
    modified: i64,
}

/// Returns true if a mapping may announce a jitdump: JIT compilers map its first page as executable, and the file is
/// called `jit-PID.dump`.
pub(in crate::perf) fn is_jitdump(mmap: &Mmap<'_>) -> bool {
    let name = &mmap.path[memchr::memrchr(b'/', mmap.path).map_or(0, |slash| slash + 1)..];
    mmap.offset == 0 && name.starts_with(b"jit-") && name.ends_with(b".dump")
}

/// Returns true if a path names memory instead of a file on disk.
///
/// JIT compilers map code from there. A program may have been copied there too, so try to read an ELF file first.
pub(in crate::perf) fn is_memory_backed(path: &[u8]) -> bool {
    let prefixes: [&[u8]; 4] = [b"/dev/zero", b"/SYSV", b"/dev/shm/", b"/memfd:"];
    prefixes.iter().any(|prefix| path.starts_with(prefix))
}

/// The largest number of ancestors whose folders are searched for a file.
const MAX_ANCESTORS: usize = 8;

/// Opens the file of a mapping as the process sees it, or, if that has exited, its ancestors. Checks by the inode that it is the
/// file that was mapped.
///
/// # Errors
/// The reason why none of the paths leads to the file.
pub(in crate::perf) fn open_mapped(
    mmap: &Mmap<'_>,
    ancestors: impl Iterator<Item = u32>,
) -> Result<(File, FileIdentity), String> {
    let mut reason = "not found".to_owned();
    for path in candidate_paths(mmap, ancestors) {
        match open_without_blocking(&path).and_then(|file| file.metadata().map(|metadata| (file, metadata))) {
            Ok((file, metadata)) if metadata.is_file() => {
                let identity = FileIdentity::from_metadata(&metadata);
                if mmap.inode.is_none_or(|inode| inode.number == identity.inode) {
                    return Ok((file, identity));
                }
                reason = "replaced by another file".to_owned();
            }
            Ok(_) => reason = "not a regular file".to_owned(),
            Err(_) => {}
        }
    }
    Err(reason)
}

/// Returns the paths that may lead to the file of a mapping, the best first.
fn candidate_paths(mmap: &Mmap<'_>, ancestors: impl Iterator<Item = u32>) -> impl Iterator<Item = PathBuf> {
    let path = bytes_to_path(mmap.path);
    let end = mmap.start + mmap.length;
    let relative = path.strip_prefix("/").ok().map(Path::to_owned);
    let processes = std::iter::once(mmap.pid).chain(ancestors.take(MAX_ANCESTORS));
    let roots = processes.map(|pid| PathBuf::from(format!("/proc/{pid}/root")));
    let seen_by_processes = roots.filter_map(move |root| Some(root.join(relative.as_ref()?)));
    let candidates = [
        Some(path),
        // Only root may open files in `map_files`; whoever may record the process may open its `exe`.
        Some(PathBuf::from(format!("/proc/{}/map_files/{:x}-{end:x}", mmap.pid, mmap.start))),
        mmap.inode.map(|_| PathBuf::from(format!("/proc/{}/exe", mmap.pid))),
    ];
    seen_by_processes.chain(candidates.into_iter().flatten())
}

/// Opens a file of any kind without blocking: a pipe may have taken the place of a program's file.
#[cfg(unix)]
pub(in crate::perf) fn open_without_blocking(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

#[cfg(not(unix))]
pub(in crate::perf) fn open_without_blocking(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

impl FileIdentity {
    #[cfg(unix)]
    fn from_metadata(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let modified = metadata.mtime_nsec() ^ metadata.mtime().wrapping_mul(1_000_000_007);
        Self { device: metadata.dev(), inode: metadata.ino(), modified }
    }

    #[cfg(not(unix))]
    fn from_metadata(metadata: &std::fs::Metadata) -> Self {
        Self { device: 0, inode: metadata.len(), modified: 0 }
    }
}

/// Converts the path of a mapping, without the ` (deleted)` that the kernel appends to paths of removed files.
#[cfg(unix)]
pub(in crate::perf) fn bytes_to_path(path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    Path::new(std::ffi::OsStr::from_bytes(path)).to_owned()
}

#[cfg(not(unix))]
pub(in crate::perf) fn bytes_to_path(path: &[u8]) -> PathBuf {
    Path::new(&*String::from_utf8_lossy(path)).to_owned()
}

/// Maps a whole file for reading. If the file is truncated later, the missing part reads as zeros.
#[allow(unsafe_code)]
pub(in crate::perf) fn map_file(file: &File) -> Result<Bytes, String> {
    #[cfg(unix)]
    super::sigbus::install_handler();
    // SAFETY: the mapping is read-only and private. Another process may change or truncate the file meanwhile; all
    // parsers of these bytes tolerate arbitrary content.
    let map = unsafe { memmap2::Mmap::map(file) }.map_err(|error| crate::io_error_text(&error))?;
    Ok(Bytes::Mapped(Arc::new(map)))
}

/// Copies the vDSO from our own memory. The kernel maps the same code into every process.
#[cfg(target_os = "linux")]
pub(in crate::perf) fn copy_vdso() -> Option<Elf> {
    use std::os::unix::fs::FileExt as _;
    let maps = crate::bytes::read_lossy("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
    Elf::parse(b"[vdso]".to_vec(), Bytes::Copied(bytes.into()))
}

#[cfg(not(target_os = "linux"))]
pub(in crate::perf) fn copy_vdso() -> Option<Elf> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::ffi::OsStr;
    use std::fs::File;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn copies_the_vdso_whatever_files_are_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(OsStr::from_bytes(b"na\xefve"));
        std::fs::write(&path, "text").unwrap();
        let _mapped = super::map_file(&File::open(&path).unwrap()).unwrap();
        assert!(super::copy_vdso().is_some());
    }
}
