//! What is recorded, and what `/proc` knows of processes that run already.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::perf::event::Mmap;
use crate::perf::recording::Recording;
use crate::{Error, io_error_text};

/// What is recorded.
#[derive(Debug)]
pub enum Target {
    /// A process that is about to run a program, and its children.
    Command(u32),
    /// Running processes, their threads, and their children from now on.
    Processes(Vec<u32>),
    /// Running threads, and nothing beside them.
    Threads(Vec<u32>),
    /// The processes of a cgroup, by its folder.
    Cgroup(File),
    /// All CPUs.
    System,
}

impl Target {
    /// Whether threads and processes that it makes are recorded too.
    pub fn follows(&self) -> bool {
        !matches!(self, Self::Threads(_))
    }

    /// Whether each thread that runs already has counters of its own, beside those of the others.
    pub(super) fn is_by_thread(&self) -> bool {
        matches!(self, Self::Threads(_) | Self::Processes(_))
    }

    /// The threads that run already.
    pub fn running(&self) -> Vec<u32> {
        let of_all = |pids: &[u32]| pids.iter().flat_map(|pid| threads(*pid).unwrap_or_default()).collect();
        match self {
            Self::Command(_) | Self::Cgroup(_) => Vec::new(),
            Self::Processes(pids) => of_all(pids),
            Self::Threads(tids) => tids.clone(),
            Self::System => of_all(&processes()),
        }
    }
}

/// The threads that a process has now.
///
/// # Errors
/// Those of `/proc`: not found if the process has gone.
pub fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// All processes.
pub fn processes() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether there is such a thread, though it may be on the last steps of its end.
pub fn is_there(tid: u32) -> bool {
    Path::new("/proc").join(tid.to_string()).exists()
}

/// The process that a thread belongs to.
///
/// # Errors
/// [`Error::Invalid`] if there is no such thread, [`Error::System`] if it cannot be read.
pub fn process_of(tid: u32) -> Result<u32, Error> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Invalid(format!("no such thread: {tid}")),
        _ => Error::System(format!("thread {tid}: {}", io_error_text(&error))),
    })?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    process.ok_or_else(|| Error::Invalid(format!("no such thread: {tid}")))
}

/// The folder of a cgroup, named from the root of its hierarchy or by its path.
///
/// # Errors
/// [`Error::Invalid`] if there is none, [`Error::System`] if it cannot be opened.
pub fn cgroup(path: &Path) -> Result<File, Error> {
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified"];
    let below = path.strip_prefix("/").unwrap_or(path);
    let candidates = roots.iter().map(|root| Path::new(root).join(below)).chain([path.to_owned()]);
    let is_cgroup = |folder: &std::path::PathBuf| folder.join("cgroup.procs").exists();
    let Some(folder) = candidates.into_iter().find(is_cgroup) else {
        return Err(Error::Invalid(format!("no such cgroup: {}", path.display())));
    };
    File::open(&folder).map_err(|error| Error::System(format!("{}: {}", folder.display(), io_error_text(&error))))
}

/// Who a process is, for a message: its program and owner.
pub fn describe(pid: u32) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let owner = fs::metadata(format!("/proc/{pid}")).map_or(0, |metadata| metadata.uid());
    format!("{pid} ({}, owned by uid {owner})", comm.trim_end())
}

/// Makes sure that a process is there, and that the number is not that of a thread: its samples would be its process's.
///
/// # Errors
/// [`Error::Invalid`] if there is no such process, [`Error::System`] if it cannot be read.
pub fn must_exist(pid: u32) -> Result<(), Error> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Invalid(format!("no such process: {pid}")),
        _ => Error::System(format!("process {pid}: {}", io_error_text(&error))),
    })?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    match process {
        Some(process) if process != pid => {
            Err(Error::Invalid(format!("{pid} is a thread of process {}; record that with -p", describe(process))))
        }
        _ => Ok(()),
    }
}

/// The CPUs that are switched on.
pub fn online_cpus() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = parse_cpu_list(&text).unwrap_or_default();
    if cpus.is_empty() {
        (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32)).collect()
    } else {
        cpus
    }
}

/// Reads `0-3,8,10-11`. `None` if it is nothing of that kind.
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.parse().ok()?..=last.parse().ok().filter(|last| *last < MOST_CPUS)?;
        Some(range).filter(|range| !range.is_empty())
    };
    let ranges: Option<Vec<_>> = text.trim().split(',').map(range).collect();
    ranges.map(|ranges| ranges.into_iter().flatten().collect())
}

/// CPUs, as `0-3,8` names them.
#[derive(Clone, Debug)]
pub struct CpuList(pub Vec<u32>);

impl std::str::FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_cpu_list(text).map(Self).ok_or_else(|| "CPUs such as 0-3,8".to_owned())
    }
}

/// More than any machine has.
const MOST_CPUS: u32 = 1 << 16;

/// Tells a recording what a running process has mapped and what its threads are called, as of the beginning of time:
/// what the kernel reports itself is newer.
pub fn introduce(pid: u32, recording: &mut Recording) {
    for tid in threads(pid).unwrap_or_default() {
        if let Ok(comm) = fs::read(format!("/proc/{pid}/task/{tid}/comm")) {
            recording.name_if_new(tid, comm.strip_suffix(b"\n").unwrap_or(&comm));
        }
    }
    if recording.knows_process(pid) {
        return;
    }
    let Ok(maps) = fs::read(format!("/proc/{pid}/maps")) else { return };
    for line in maps.split(|byte| *byte == b'\n') {
        if let Some(mmap) = parse_mapping(pid, line) {
            recording.map(&mmap, 0);
        }
    }
}

/// Reads a line of `/proc/PID/maps`: `START-END PERMISSIONS OFFSET DEVICE INODE PATH`.
fn parse_mapping(pid: u32, line: &[u8]) -> Option<Mmap<'_>> {
    let mut rest = line;
    let mut word = || {
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let word = std::str::from_utf8(&rest[..end]).ok();
        rest = rest[end..].trim_ascii_start();
        word
    };
    let (start, end) = word()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let executable = word()?.contains('x');
    let offset = u64::from_str_radix(word()?, 16).ok()?;
    let (_device, inode) = (word()?, word()?.parse::<u64>().ok()?);
    let path = if rest.is_empty() { b"//anon" } else { rest };
    let length = end.checked_sub(start)?;
    let inode = Some(inode).filter(|inode| *inode != 0);
    Some(Mmap { pid, start, length, offset, inode, build_id: None, executable, path })
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_lists_of_cpus() {
        assert_eq!(super::parse_cpu_list("0-2,5\n").unwrap(), [0, 1, 2, 5]);
        for wrong in ["\n", "a", "1,", "0-4294967295", "-1", "1-0", "0,3-2"] {
            assert_eq!(super::parse_cpu_list(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn reads_a_line_of_maps() {
        let line = b"55d0c0a2b000-55d0c0a4c000 r-xp 00002000 fe:00 1234                       /opt/My App/run";
        let mmap = super::parse_mapping(7, line).unwrap();
        assert_eq!((mmap.start, mmap.length, mmap.offset), (0x55d0_c0a2_b000, 0x21000, 0x2000));
        assert_eq!((mmap.inode, mmap.executable, mmap.path), (Some(1234), true, &b"/opt/My App/run"[..]));
        let line = b"7ffc-7ffe rwxp 00000000 00:00 0 ";
        assert_eq!(super::parse_mapping(7, line).unwrap().path, b"//anon");
    }
}
