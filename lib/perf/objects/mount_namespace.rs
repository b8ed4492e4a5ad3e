//! Folders as processes see them. In a container, a path may lead to another file than it does for us.
//!
//! The folders are held open, so that they can be reached after the process has exited.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// A folder that is held open.
#[derive(Debug)]
pub struct Folder {
    /// Keeps `path` valid.
    #[cfg(target_os = "linux")]
    _file: std::fs::File,
    path: PathBuf,
}

impl Folder {
    /// Returns a path through which this process can reach the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder. Returns `None` on failure, and on systems other than Linux.
    #[cfg(target_os = "linux")]
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

/// The root and `/tmp` folders of processes, each opened once.
#[derive(Debug, Default)]
pub struct ProcessFolders {
    by_identity: FxHashMap<FolderIdentity, Option<Arc<Folder>>>,
}

/// The identity of a folder and of everything mounted below it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FolderIdentity {
    /// The target of `/proc/PID/ns/mnt`.
    mount_namespace: PathBuf,
    device: u64,
    inode: u64,
}

impl ProcessFolders {
    /// Returns the root folder of a running process, unless it is ours.
    pub fn root(&mut self, pid: u32) -> Option<Arc<Folder>> {
        let theirs = FolderIdentity::read(&pid.to_string(), "root")?;
        if FolderIdentity::read("self", "root").as_ref() == Some(&theirs) {
            return None;
        }
        self.open(theirs, &format!("/proc/{pid}/root"))
    }

    /// Returns the `/tmp` folder of a running process.
    pub fn tmp(&mut self, pid: u32) -> Option<Arc<Folder>> {
        self.open(FolderIdentity::read(&pid.to_string(), "root/tmp")?, &format!("/proc/{pid}/root/tmp"))
    }

    fn open(&mut self, identity: FolderIdentity, path: &str) -> Option<Arc<Folder>> {
        self.by_identity.entry(identity).or_insert_with(|| Folder::open(Path::new(path)).map(Arc::new)).clone()
    }
}

impl FolderIdentity {
    /// Reads the identity of `/proc/PROCESS/FOLDER`.
    #[cfg(unix)]
    fn read(process: &str, folder: &str) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::metadata(format!("/proc/{process}/{folder}")).ok()?;
        let mount_namespace = std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok()?;
        Some(Self { mount_namespace, device: metadata.dev(), inode: metadata.ino() })
    }

    #[cfg(not(unix))]
    fn read(_: &str, _: &str) -> Option<Self> {
        None
    }
}
