//! Files as a process sees them: in a container, paths mean others than ours. The folders are held open, so that they can
//! be reached when the process has gone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// A folder that stays reachable.
#[derive(Debug)]
pub struct Folder {
    // By it the path leads there.
    #[cfg(target_os = "linux")]
    _file: std::fs::File,
    path: PathBuf,
}

impl Folder {
    /// A path that leads there, from this process.
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[cfg(target_os = "linux")]
    /// Opens it.
    pub(in crate::perf) fn open(path: &Path) -> Option<Self> {
        use std::os::fd::AsRawFd as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let file = std::fs::File::options().read(true).custom_flags(flags).open(path).ok()?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Some(Self { _file: file, path })
    }

    #[cfg(not(target_os = "linux"))]
    pub(in crate::perf) fn open(_: &Path) -> Option<Self> {
        None
    }
}

/// The folders of processes, each held once.
#[derive(Debug, Default)]
pub struct Views {
    folders: FxHashMap<Identity, Option<Arc<Folder>>>,
}

/// By which a folder is known: its place, and the mounts by which what is below it is found.
type Identity = (PathBuf, u64, u64);

impl Views {
    /// A living process's root folder, unless it is ours.
    pub fn root(&mut self, pid: u32) -> Option<Arc<Folder>> {
        let theirs = identity(&format!("{pid}"), "root")?;
        if identity("self", "root").as_ref() == Some(&theirs) {
            return None;
        }
        self.held(theirs, &format!("/proc/{pid}/root"))
    }

    /// A living process's folder for temporary files.
    pub fn temporary(&mut self, pid: u32) -> Option<Arc<Folder>> {
        self.held(identity(&format!("{pid}"), "root/tmp")?, &format!("/proc/{pid}/root/tmp"))
    }

    fn held(&mut self, identity: Identity, path: &str) -> Option<Arc<Folder>> {
        self.folders.entry(identity).or_insert_with(|| Folder::open(Path::new(path)).map(Arc::new)).clone()
    }
}

#[cfg(unix)]
fn identity(process: &str, folder: &str) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = std::fs::metadata(format!("/proc/{process}/{folder}")).ok()?;
    let mounts = std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok()?;
    Some((mounts, metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &str, _: &str) -> Option<Identity> {
    None
}
