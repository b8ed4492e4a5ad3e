//! Opening the files that processes have mapped: as the process sees them, and only the very ones that were mapped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::object::{Bytes, Elf};
use crate::perf::event::Mmap;

/// Whether a mapping may be by which a compiler tells where its jitdump is: `jit-PID.dump`, its first page, executable.
pub(in crate::perf) fn is_dump(mmap: &Mmap<'_>) -> bool {
    let name = &mmap.path[memchr::memrchr(b'/', mmap.path).map_or(0, |slash| slash + 1)..];
    mmap.offset == 0 && name.starts_with(b"jit-") && name.ends_with(b".dump")
}

/// Files in name only, in which compilers put their code; unless a program was copied there and is run from it.
pub(in crate::perf) fn is_plain_memory(path: &[u8]) -> bool {
    let names: [&[u8]; 4] = [b"/dev/zero", b"/SYSV", b"/dev/shm/", b"/memfd:"];
    names.iter().any(|name| path.starts_with(name))
}

/// Opens the file of a mapping as the process sees it, and makes sure that it is the very file that was mapped.
pub(in crate::perf) fn open(mmap: &Mmap<'_>) -> Result<(File, (u64, u64, i64)), String> {
    let path = bytes_to_path(mmap.path);
    let end = mmap.start + mmap.length;
    let candidates = [
        path.strip_prefix("/").ok().map(|below| PathBuf::from(format!("/proc/{}/root", mmap.pid)).join(below)),
        Some(path.clone()),
        Some(PathBuf::from(format!("/proc/{}/map_files/{:x}-{end:x}", mmap.pid, mmap.start))),
        // Those may be followed by root alone; this one by whoever may record the process.
        mmap.inode.map(|_| PathBuf::from(format!("/proc/{}/exe", mmap.pid))),
    ];
    let mut why = "not found".to_owned();
    for candidate in candidates.into_iter().flatten() {
        match open_at_once(&candidate).and_then(|file| file.metadata().map(|metadata| (file, metadata))) {
            Ok((file, metadata)) if metadata.is_file() => {
                let identity = identity(&metadata);
                if mmap.inode.is_none_or(|inode| inode == identity.1) {
                    return Ok((file, identity));
                }
                why = "another file stands there now".to_owned();
            }
            Ok(_) => why = "not a regular file".to_owned(),
            Err(_) => {}
        }
    }
    Err(why)
}

/// Opens a file of whatever kind without waiting for anybody: a pipe may stand by now where a program's file was.
#[cfg(unix)]
pub(in crate::perf) fn open_at_once(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

#[cfg(not(unix))]
pub(in crate::perf) fn open_at_once(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> (u64, u64, i64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino(), metadata.mtime_nsec() ^ metadata.mtime().wrapping_mul(1_000_000_007))
}

#[cfg(not(unix))]
fn identity(metadata: &std::fs::Metadata) -> (u64, u64, i64) {
    (0, metadata.len(), 0)
}

#[cfg(unix)]
pub(in crate::perf) fn bytes_to_path(path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    // The kernel says so behind the path of a file that was removed.
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    Path::new(std::ffi::OsStr::from_bytes(path)).to_owned()
}

#[cfg(not(unix))]
pub(in crate::perf) fn bytes_to_path(path: &[u8]) -> PathBuf {
    Path::new(&*String::from_utf8_lossy(path)).to_owned()
}

#[allow(unsafe_code)]
pub(in crate::perf) fn map_file(file: &File) -> Result<Bytes, String> {
    #[cfg(unix)]
    super::sigbus::survive();
    // SAFETY: the mapping is read-only and private; should somebody shorten the file while it is mapped, zeros are read.
    // Nothing that is read is trusted.
    let map = unsafe { memmap2::Mmap::map(file) }.map_err(|error| crate::io_error_text(&error))?;
    Ok(Bytes::Mapped(Arc::new(map)))
}

/// The kernel maps the same code into every process: ours will do.
#[cfg(target_os = "linux")]
pub(in crate::perf) fn open_vdso() -> Option<Elf> {
    use std::os::unix::fs::FileExt as _;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
    Elf::parse(b"[vdso]".to_vec(), Bytes::Copied(bytes.into()))
}

#[cfg(not(target_os = "linux"))]
pub(in crate::perf) fn open_vdso() -> Option<Elf> {
    None
}
