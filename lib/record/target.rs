//! What is recorded, and what `/proc` knows of processes that run already.

use std::fs;
use std::io;

use crate::perf::event::Mmap;
use crate::perf::recording::Recording;
use crate::{Error, plain};

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A process that is about to run a program, and its children.
    Command(u32),
    /// Running processes, their threads, and their children from now on.
    Processes(Vec<u32>),
    /// All CPUs.
    System,
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
/// [`Error::Refused`].
pub fn must_exist(pid: u32) -> Result<(), Error> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Refused(format!("no such process: {pid}")),
        _ => Error::Refused(format!("process {pid}: {}", plain(&error))),
    })?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    match process {
        Some(process) if process != pid => {
            Err(Error::Refused(format!("{pid} is a thread of process {}; record that with -p", describe(process))))
        }
        _ => Ok(()),
    }
}

/// Tells a recording what a running process has mapped and what its threads are called, as of the beginning of time:
/// what the kernel reports itself is newer.
pub fn introduce(pid: u32, recording: &mut Recording) {
    for tid in threads(pid).unwrap_or_default() {
        if let Ok(comm) = fs::read(format!("/proc/{pid}/task/{tid}/comm")) {
            recording.name_if_new(tid, comm.strip_suffix(b"\n").unwrap_or(&comm));
        }
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
    fn reads_a_line_of_maps() {
        let line = b"55d0c0a2b000-55d0c0a4c000 r-xp 00002000 fe:00 1234                       /opt/My App/run";
        let mmap = super::parse_mapping(7, line).unwrap();
        assert_eq!((mmap.start, mmap.length, mmap.offset), (0x55d0_c0a2_b000, 0x21000, 0x2000));
        assert_eq!((mmap.inode, mmap.executable, mmap.path), (Some(1234), true, &b"/opt/My App/run"[..]));
        let line = b"7ffc-7ffe rwxp 00000000 00:00 0 ";
        assert_eq!(super::parse_mapping(7, line).unwrap().path, b"//anon");
    }
}
