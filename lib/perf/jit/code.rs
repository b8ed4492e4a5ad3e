//! The names of the code that processes make themselves: by their jitdumps, and by the maps that their compilers leave in
//! `/tmp/perf-PID.map`, as the process sees that folder and its own number.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::jitdump::JitDump;
use super::perf_map;
use crate::perf::location::Location;
use crate::perf::objects::mount_namespace::{Folder, Views};
use crate::perf::symbols::frame::{AddressFrames, NamedFrame};
use crate::symbol_name::demangle::demangle;

/// What is known of a process's own code.
#[derive(Clone, Debug, Default)]
struct Code {
    dump: Option<JitDump>,
    /// What is said of a dump that is not to be had.
    missing_dump: Option<String>,
    /// Where its map would be: the folder and the process's own number in it.
    map: Option<(Arc<Folder>, String)>,
    /// Whether it may have left a map, or will.
    may_have_map: bool,
}

/// What is known of the processes' own code.
#[derive(Clone, Debug, Default)]
pub struct JitCode {
    by_process: FxHashMap<u32, Code>,
}

impl JitCode {
    /// A process that may leave a map, as it lives.
    pub fn meet(&mut self, pid: u32, views: &mut Views) {
        let code = self.by_process.entry(pid).or_default();
        code.may_have_map = true;
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return };
        let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().next_back());
        let inner = inner.map_or(pid.to_string(), str::to_owned);
        code.map = views.temporary(pid).map(|folder| (folder, inner));
    }

    /// A process of a recording that was made before: it has left a map by now, or never will.
    pub fn meet_traces(&mut self, pid: u32) {
        self.by_process.entry(pid).or_default().may_have_map = Path::new(&format!("/tmp/perf-{pid}.map")).exists();
    }

    /// Whether anything tells, or may tell yet, of the code that a process made.
    pub fn may_tell(&self, pid: u32) -> bool {
        self.by_process
            .get(&pid)
            .is_some_and(|code| code.may_have_map || code.dump.is_some() || code.missing_dump.is_some())
    }

    /// Forgets all processes but those that stay.
    pub fn retain(&mut self, mut stays: impl FnMut(u32) -> bool) {
        self.by_process.retain(|pid, _| stays(*pid));
    }

    /// The jitdump that a process has mapped, to tell that it writes one.
    pub fn add_dump(&mut self, pid: u32, dump: JitDump) {
        self.by_process.entry(pid).or_default().dump = Some(dump);
    }

    /// A process has mapped a jitdump that is not to be had, and why.
    pub fn miss_dump(&mut self, pid: u32, why: String) {
        self.by_process.entry(pid).or_default().missing_dump = Some(why);
    }

    /// Reads what was written to a process's jitdump since, if it has one.
    pub fn read_dump(&mut self, pid: u32) {
        if let Some(dump) = self.by_process.get_mut(&pid).and_then(|code| code.dump.as_mut()) {
            dump.read();
        }
    }

    /// Reads what was written to all jitdumps since.
    pub fn read_dumps(&mut self) {
        self.by_process.values_mut().filter_map(|code| code.dump.as_mut()).for_each(JitDump::read);
    }

    /// A process's jitdump, as far as it was read.
    pub fn dump(&self, pid: u32) -> Option<&JitDump> {
        self.by_process.get(&pid)?.dump.as_ref()
    }

    /// Names places in the code of a process; and what the user should know.
    pub fn frames(&self, pid: u32, places: &[Location], lines: bool) -> (AddressFrames, Vec<String>) {
        let (text, remark) = match self.read_map(pid) {
            Ok(text) => (text, None),
            Err(remark) => (Vec::new(), remark),
        };
        let addresses: Vec<u64> = places.iter().map(|place| place.address).collect();
        let map = perf_map::parse(&text, &addresses);
        let dump = self.dump(pid);
        let frame = |Location { address, since, .. }: Location| {
            // What stands at one time only was there all the time.
            let time = if since == 0 { u64::MAX } else { since };
            let (start, name, source) = match dump.and_then(|dump| dump.find(address, time)) {
                Some(function) => (function.start, &function.name[..], function.source(address)),
                None => map.find(address).map(|symbol| (symbol.start, symbol.name, None))?,
            };
            Some(NamedFrame {
                name: demangle(name).into_owned(),
                has_symbol: true,
                is_inlined: false,
                start: Some(start),
                source: source.filter(|_| lines).map(<[u8]>::to_vec),
            })
        };
        let mut named = AddressFrames::default();
        let mut is_nameless = false;
        for place in places {
            let frame = frame(*place);
            is_nameless |= frame.is_none();
            named.push(frame.into_iter().collect());
        }
        let missing = self.by_process.get(&pid).filter(|_| is_nameless).and_then(|code| code.missing_dump.as_ref());
        let missing = missing.map(|missing| format!("no names for code made at run time from {missing}"));
        (named, remark.into_iter().chain(missing).collect())
    }

    /// The map that a process left; if it may not be believed, why.
    fn read_map(&self, pid: u32) -> Result<Vec<u8>, Option<String>> {
        let (folder, number) = match self.by_process.get(&pid).and_then(|code| code.map.as_ref()) {
            Some((folder, number)) => (folder.path().to_owned(), number.clone()),
            None => (PathBuf::from("/tmp"), pid.to_string()),
        };
        let name = format!("perf-{number}.map");
        read_owned(&folder.join(&name)).map_err(|is_foreign| {
            is_foreign.then(|| format!("/tmp/{name} is ignored: it belongs to neither root nor you"))
        })
    }
}

/// Reads a file that is root's or ours: anybody may write to `/tmp`, in the name of anybody's process. Whether it is
/// somebody else's, if not.
#[cfg(unix)]
fn read_owned(path: &Path) -> Result<Vec<u8>, bool> {
    use std::io::Read as _;
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut file = std::fs::File::options().read(true).custom_flags(flags).open(path).map_err(|_| false)?;
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file).ok_or(false)?;
    let ours = std::fs::metadata("/proc/self").map_or(0, |metadata| metadata.uid());
    if metadata.uid() != 0 && metadata.uid() != ours {
        return Err(true);
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(|_| false)?;
    Ok(text)
}

#[cfg(not(unix))]
fn read_owned(path: &Path) -> Result<Vec<u8>, bool> {
    std::fs::read(path).map_err(|_| false)
}
