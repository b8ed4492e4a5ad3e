//! The file that holds a stripped file's symbols and debug information: found by build-id, or by the link to it.

use std::path::{Path, PathBuf};

use object::Object as _;

use super::object::{Bytes, map_file};

/// Where distributions put them.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// Finds and opens the debug file of an object at `path`, if there is one and it belongs to it.
pub fn find(file: &object::File<'_>, path: &Path) -> Option<Bytes> {
    by_build_id(file).or_else(|| by_link(file, path))
}

/// `/usr/lib/debug/.build-id/ab/cdef….debug`: the name says that it belongs.
fn by_build_id(file: &object::File<'_>) -> Option<Bytes> {
    let id = file.build_id().ok()??;
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    open(&PathBuf::from(format!("{DEBUG_ROOT}/.build-id/{first:02x}/{rest}.debug")))
}

/// `.gnu_debuglink`: a file name, looked for beside the object, in `.debug` beside it and in the same folder below the
/// distribution's; and a checksum by which to know it.
fn by_link(file: &object::File<'_>, path: &Path) -> Option<Bytes> {
    let (name, checksum) = file.gnu_debuglink().ok()??;
    let name = Path::new(std::str::from_utf8(name).ok()?);
    if name.components().count() != 1 {
        return None;
    }
    let folder = path.parent()?;
    let elsewhere = Path::new(DEBUG_ROOT).join(folder.strip_prefix("/").unwrap_or(folder));
    let candidates = [folder.join(name), folder.join(".debug").join(name), elsewhere.join(name)];
    candidates.iter().filter(|candidate| *candidate != path).find_map(|candidate| {
        let bytes = open(candidate)?;
        let mut crc = flate2::Crc::new();
        crc.update(&bytes);
        (crc.sum() == checksum).then_some(bytes)
    })
}

fn open(path: &Path) -> Option<Bytes> {
    map_file(&std::fs::File::open(path).ok()?).ok()
}
