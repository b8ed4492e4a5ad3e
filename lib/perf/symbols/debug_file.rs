//! Where debug information may stand when it does not stand in the object: in a file that is found by build-id or by the
//! link to it, in one that several debug files share (as `dwz` makes them), or split, as compilers leave it beside
//! their objects.
//!
//! What is found is believed only if it says that it belongs: by build-id, checksum, or unit id.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::Object as _;

use super::byte_arena::Kept;
use crate::bytes::format_hex;
use crate::perf::objects::mapped_file::{bytes_to_path, map_file};
use crate::perf::objects::object::Bytes;

/// Where distributions put them.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// A search for what belongs to an object.
#[derive(Debug)]
pub struct Search<'a> {
    /// The object's path, as the process saw it.
    path: &'a Path,
    /// The root folder of the process, unless it is ours.
    root: Option<&'a Path>,
    /// Whether `debuginfod-find` is asked for what is not here.
    fetch: bool,
    /// What the user should know.
    remarks: RefCell<Vec<String>>,
    kept: Kept,
}

/// A file that was found.
#[derive(Debug)]
pub struct Found {
    /// Its path.
    pub path: PathBuf,
    /// What stands in it.
    pub bytes: Bytes,
}

impl<'a> Search<'a> {
    /// For an object at a path below the root of its process.
    pub fn new(path: &'a Path, root: Option<&'a Path>, fetch: bool) -> Self {
        Self { path, root, fetch, remarks: RefCell::default(), kept: Kept::default() }
    }

    /// What the user should know.
    pub fn into_remarks(self) -> Vec<String> {
        self.remarks.into_inner()
    }

    /// Keeps bytes as long as the search lasts.
    pub fn keep(&self, bytes: impl std::ops::Deref<Target = [u8]> + 'static) -> &[u8] {
        self.kept.keep(bytes)
    }

    /// Adds to what the user should know.
    pub fn remark(&self, remark: String) {
        self.remarks.borrow_mut().push(remark);
    }

    /// The debug file of an object.
    pub fn debug_file(&self, file: &object::File<'_>) -> Option<Found> {
        let id = file.build_id().ok().flatten();
        let here = id.and_then(|id| self.by_build_id(id)).or_else(|| self.by_link(file));
        here.or_else(|| if self.fetch { self.fetched(id?) } else { None })
    }

    /// The file in which a debug file keeps what it shares with others, if it names one.
    pub fn shared(&self, file: &object::File<'_>, path: &Path) -> Option<Found> {
        let (name, id) = file.gnu_debugaltlink().ok()??;
        let named = path.parent().unwrap_or(Path::new("/")).join(bytes_to_path(name));
        let found = self.open(&named).filter(|found| self.belongs(found, id));
        found.or_else(|| self.by_build_id(id)).or_else(|| {
            self.remark(format!("{}: {} is missing: some names are too", self.path.display(), named.display()));
            None
        })
    }

    /// The package of split debug information beside an object or its debug file.
    pub fn package(&self, debug_file: &Path) -> Option<Found> {
        [self.path, debug_file].into_iter().find_map(|path| {
            let mut path = path.as_os_str().to_owned();
            path.push(".dwp");
            self.open(Path::new(&path))
        })
    }

    /// The files in which split debug information may stand that a compiler, run in `folder`, wrote to `name`.
    pub fn split(&self, folder: &Path, name: &Path) -> impl Iterator<Item = Found> {
        let beside = self.path.parent().unwrap_or(Path::new("/"));
        let file_name = Path::new(name.file_name().unwrap_or_default());
        let candidates = [folder.join(name), beside.join(name), beside.join(file_name)];
        candidates.into_iter().filter_map(|candidate| self.open(&candidate))
    }

    /// `/usr/lib/debug/.build-id/ab/cdef….debug`.
    fn by_build_id(&self, id: &[u8]) -> Option<Found> {
        let (first, rest) = id.split_first()?;
        let path = PathBuf::from(format!("{DEBUG_ROOT}/.build-id/{first:02x}/{}.debug", format_hex(rest)));
        self.open(&path).filter(|found| self.belongs(found, id))
    }

    /// Whether a file has a build-id, or none.
    fn belongs(&self, found: &Found, id: &[u8]) -> bool {
        let Ok(file) = object::File::parse(&*found.bytes) else { return false };
        let belongs = file.build_id().ok().flatten().is_none_or(|its| its == id);
        if !belongs {
            self.ignored(&found.path, "build-id");
        }
        belongs
    }

    fn ignored(&self, path: &Path, what: &str) {
        let (path, object) = (path.display(), self.path.display());
        self.remark(format!("{path} is ignored: its {what} is not that of {object}"));
    }

    /// `.gnu_debuglink`: a file name, looked for beside the object, in `.debug` beside it and in the same folder below the
    /// distribution's; and a checksum by which to know it.
    fn by_link(&self, file: &object::File<'_>) -> Option<Found> {
        let (name, checksum) = file.gnu_debuglink().ok()??;
        let name = Path::new(std::str::from_utf8(name).ok()?);
        if name.components().count() != 1 {
            return None;
        }
        let folder = self.path.parent()?;
        let elsewhere = Path::new(DEBUG_ROOT).join(folder.strip_prefix("/").unwrap_or(folder));
        let candidates = [folder.join(name), folder.join(".debug").join(name), elsewhere.join(name)];
        candidates.iter().filter(|candidate| *candidate != self.path).find_map(|candidate| {
            let found = self.open(candidate)?;
            let mut crc = flate2::Crc::new();
            crc.update(&found.bytes);
            if crc.sum() != checksum {
                self.ignored(candidate, "checksum");
                return None;
            }
            Some(found)
        })
    }

    /// Asks `debuginfod-find`, which prints the path of what it has fetched.
    fn fetched(&self, id: &[u8]) -> Option<Found> {
        let mut find = Command::new("debuginfod-find");
        find.arg("debuginfo").arg(format_hex(id)).stdin(Stdio::null()).stderr(Stdio::null());
        let answer = match find.output() {
            Ok(answer) => answer,
            Err(error) => {
                self.remark(format!("debuginfod-find: {}", crate::io_error_text(&error)));
                return None;
            }
        };
        let path = bytes_to_path(answer.stdout.trim_ascii_end());
        let bytes = open(&path).filter(|_| answer.status.success())?;
        Some(Found { path, bytes }).filter(|found| self.belongs(found, id))
    }

    /// Opens a file as the process saw it, or else as we do.
    fn open(&self, path: &Path) -> Option<Found> {
        let below = self.root.and_then(|root| open(&root.join(path.strip_prefix("/").ok()?)));
        let bytes = below.or_else(|| open(path))?;
        Some(Found { path: path.to_owned(), bytes })
    }
}

fn open(path: &Path) -> Option<Bytes> {
    map_file(
        &crate::perf::objects::mapped_file::open_at_once(path)
            .ok()
            .filter(|file| file.metadata().is_ok_and(|it| it.is_file()))?,
    )
    .ok()
}
