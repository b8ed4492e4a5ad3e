//! Symbolizes the code that processes generate: by their jitdumps, and by their perf maps.
//!
//! A compiler writes the perf map to `/tmp/perf-PID.map`. Both `/tmp` and the pid are those that the process itself
//! sees, which differ from ours in a container.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::jitdump::JitDump;
use super::perf_map;
use crate::bytes::read_lossy;
use crate::perf::location::Location;
use crate::perf::objects::mount_namespace::{Folder, ProcessFolders};
use crate::perf::symbols::frame::{AddressFrames, NamedFrame};
use crate::perf::symbols::table::SymbolTable;
use crate::symbol_name::demangle::demangle;

/// The descriptions of the code that each process generates.
#[derive(Clone, Debug, Default)]
pub struct JitCode {
    by_process: FxHashMap<u32, ProcessCode>,
}

/// The descriptions of one process's code.
#[derive(Clone, Debug, Default)]
struct ProcessCode {
    jitdump: Option<JitDump>,
    /// The path of a jitdump that could not be opened, and the reason.
    missing_jitdump: Option<String>,
    /// The location of the perf map of a process that was seen running.
    perf_map: Option<PerfMapLocation>,
    /// True if the process may have written a perf map, or may still do so.
    may_have_perf_map: bool,
}

/// The location of a perf map.
#[derive(Clone, Debug)]
struct PerfMapLocation {
    /// The `/tmp` folder of the process.
    folder: Arc<Folder>,
    /// The pid of the process in its own PID namespace.
    inner_pid: String,
    /// The effective user of the process.
    user: Option<u32>,
}

/// The reason why a perf map has no content.
enum PerfMapError {
    /// It does not exist or cannot be read.
    Unreadable,
    /// It belongs to another user than the process, who may have written it in its name.
    ForeignOwner,
}

impl JitCode {
    /// Adds a running process, which may write a perf map at any time.
    pub fn add_running_process(&mut self, pid: u32, folders: &mut ProcessFolders) {
        let code = self.by_process.entry(pid).or_default();
        code.may_have_perf_map = true;
        let Ok(status) = read_lossy(format!("/proc/{pid}/status")) else { return };
        let inner_pid = status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().next_back());
        let inner_pid = inner_pid.map_or(pid.to_string(), str::to_owned);
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let user = users.and_then(|users| users.split_whitespace().nth(1)?.parse().ok());
        code.perf_map = folders.tmp(pid).map(|folder| PerfMapLocation { folder, inner_pid, user });
    }

    /// Adds a process of a recording that was made before. It will write no perf map that does not exist by now.
    pub fn add_past_process(&mut self, pid: u32) {
        let path = format!("/tmp/perf-{pid}.map");
        self.by_process.entry(pid).or_default().may_have_perf_map = Path::new(&path).exists();
    }

    /// Returns true if a process's code has, or may still get, a jitdump or a perf map. A jitdump that could not be
    /// opened counts: there is a warning if symbols are missing.
    pub fn may_have_symbols(&self, pid: u32) -> bool {
        self.by_process
            .get(&pid)
            .is_some_and(|code| code.may_have_perf_map || code.jitdump.is_some() || code.missing_jitdump.is_some())
    }

    /// Removes all processes but those for which `is_kept` returns true.
    pub fn retain(&mut self, mut is_kept: impl FnMut(u32) -> bool) {
        self.by_process.retain(|pid, _| is_kept(*pid));
    }

    /// Adds the jitdump of a process.
    pub fn add_jitdump(&mut self, pid: u32, dump: JitDump) {
        self.by_process.entry(pid).or_default().jitdump = Some(dump);
    }

    /// Notes that the jitdump of a process could not be opened. `message` has its path and the reason.
    pub fn add_missing_jitdump(&mut self, pid: u32, message: String) {
        self.by_process.entry(pid).or_default().missing_jitdump = Some(message);
    }

    /// Reads what was added to a process's jitdump since the last call.
    pub fn read_jitdump(&mut self, pid: u32) {
        if let Some(dump) = self.by_process.get_mut(&pid).and_then(|code| code.jitdump.as_mut()) {
            dump.read();
        }
    }

    /// Reads what was added to all jitdumps since the last call.
    pub fn read_jitdumps(&mut self) {
        self.by_process.values_mut().filter_map(|code| code.jitdump.as_mut()).for_each(JitDump::read);
    }

    /// Returns the part of a process's jitdump that has been read.
    pub fn jitdump(&self, pid: u32) -> Option<&JitDump> {
        self.by_process.get(&pid)?.jitdump.as_ref()
    }

    /// Returns the frames of `locations` in the code that a process generated, and warnings. The locations must be in
    /// ascending order of address.
    pub fn find_frames(&self, pid: u32, locations: &[Location], with_source: bool) -> (AddressFrames, Vec<String>) {
        let mut warnings = Vec::new();
        let text = self.read_perf_map(pid, &mut warnings);
        let addresses: Vec<u64> = locations.iter().map(|location| location.address).collect();
        let perf_map = perf_map::parse(&text, &addresses);
        let mut frames = AddressFrames::default();
        let mut has_unknown = false;
        for location in locations {
            let frame = self.find_frame(pid, location, &perf_map, with_source);
            has_unknown |= frame.is_none();
            frames.push(frame.into_iter().collect());
        }
        if has_unknown && let Some(missing) = self.by_process.get(&pid).and_then(|code| code.missing_jitdump.as_ref()) {
            warnings.push(format!("code generated at run time has no names: {missing}"));
        }
        (frames, warnings)
    }

    /// Returns the frame of a location: from the jitdump, or else from the perf map.
    fn find_frame(
        &self,
        pid: u32,
        location: &Location,
        perf_map: &SymbolTable<'_>,
        with_source: bool,
    ) -> Option<NamedFrame> {
        let address = location.address;
        // A location without a time was occupied by one function only, so any time will find it.
        let time = if location.loaded_at == 0 { u64::MAX } else { location.loaded_at };
        if let Some(function) = self.jitdump(pid).and_then(|dump| dump.find(address, time)) {
            let source = function.source(address).filter(|_| with_source).map(<[u8]>::to_vec);
            let frame = NamedFrame::from_symbol(demangle(&function.name).into_owned(), function.start);
            return Some(NamedFrame { source, ..frame });
        }
        let symbol = perf_map.find(address)?;
        Some(NamedFrame::from_symbol(demangle(symbol.name).into_owned(), symbol.start))
    }

    /// Reads the perf map of a process; empty if there is none. Warns if it cannot be trusted.
    fn read_perf_map(&self, pid: u32, warnings: &mut Vec<String>) -> Vec<u8> {
        let location = self.by_process.get(&pid).and_then(|code| code.perf_map.as_ref());
        let (folder, name, user) = match location {
            Some(PerfMapLocation { folder, inner_pid, user }) => {
                (folder.path().to_owned(), format!("perf-{inner_pid}.map"), *user)
            }
            None => (PathBuf::from("/tmp"), format!("perf-{pid}.map"), None),
        };
        match read_trusted(&folder.join(&name), user) {
            Ok(text) => text,
            Err(PerfMapError::Unreadable) => Vec::new(),
            Err(PerfMapError::ForeignOwner) => {
                warnings.push(format!(
                    "/tmp/{name} is ignored: its owner is neither root nor you, nor the user of the process"
                ));
                Vec::new()
            }
        }
    }
}

/// The largest perf map that is read; the rest of a larger one is not. A name has about 100 bytes.
#[cfg(unix)]
const MAX_PERF_MAP: u64 = 1 << 30;

/// Reads a file that belongs to root, to us, or to the user of the process: any user may write to `/tmp` in the name of any
/// process.
#[cfg(unix)]
fn read_trusted(path: &Path, user: Option<u32>) -> Result<Vec<u8>, PerfMapError> {
    use std::io::Read as _;
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|_| PerfMapError::Unreadable)?;
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file).ok_or(PerfMapError::Unreadable)?;
    let own_uid = std::fs::metadata("/proc/self").map_or(0, |metadata| metadata.uid());
    if ![Some(0), Some(own_uid), user].contains(&Some(metadata.uid())) {
        return Err(PerfMapError::ForeignOwner);
    }
    let mut text = Vec::new();
    file.take(MAX_PERF_MAP).read_to_end(&mut text).map_err(|_| PerfMapError::Unreadable)?;
    Ok(text)
}

#[cfg(not(unix))]
fn read_trusted(path: &Path, _: Option<u32>) -> Result<Vec<u8>, PerfMapError> {
    std::fs::read(path).map_err(|_| PerfMapError::Unreadable)
}
