//! Reads `/proc`: which processes and threads run, what they have mapped, and what their threads are called.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::bytes::read_lossy;
use crate::perf::event::{Inode, Mmap};
use crate::perf::recording::Recording;

/// Returns the IDs of a process's threads.
///
/// # Errors
/// Errors of reading `/proc`: not found if the process has exited.
pub fn list_threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Returns the IDs of all processes.
pub fn list_processes() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the path of a process's cgroup: that of cgroup2, else the first one.
pub fn cgroup(pid: u32) -> Option<Vec<u8>> {
    let text = fs::read(format!("/proc/{pid}/cgroup")).ok()?;
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let line = lines.clone().find(|line| line.starts_with(b"0::")).or_else(|| lines.next())?;
    line.splitn(3, |byte| *byte == b':').nth(2).map(<[u8]>::to_vec)
}

/// Returns the size of the machine's memory in bytes; `u64::MAX` if it is not known.
pub fn total_memory() -> u64 {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.strip_suffix("kB")?.trim().parse().ok());
    kib.map_or(u64::MAX, |kib: u64| kib.saturating_mul(1024))
}

/// True if there is a thread with this ID, even one that is exiting.
pub fn thread_exists(tid: u32) -> bool {
    Path::new("/proc").join(tid.to_string()).exists()
}

/// Returns the process that a thread belongs to (`Tgid` of its `status`); `None` if `status` does not say.
///
/// # Errors
/// Errors of reading `/proc`: not found if there is no such thread.
pub fn thread_group(tid: u32) -> io::Result<Option<u32>> {
    let status = read_lossy(format!("/proc/{tid}/status"))?;
    Ok(status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok()))
}

/// True if a thread has begun to exit, or is gone (`PF_EXITING` in its `stat`).
pub fn is_exiting(tid: u32) -> bool {
    const PF_EXITING: u64 = 4;
    let stat = read_lossy(thread_stat(tid)).unwrap_or_default();
    // The flags are field 9, as in proc(5), and the name, field 2, may contain anything.
    let flags = stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(9 - 3)?.parse::<u64>().ok());
    flags.is_none_or(|flags| flags & PF_EXITING != 0)
}

/// Returns the path of a process's `stat`.
pub fn process_stat(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/stat"))
}

/// Returns the path of a thread's `stat`. That of its own directory in `/proc` is of all threads of its process.
pub fn thread_stat(tid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{tid}/task/{tid}/stat"))
}

/// Returns how often the threads have gone to sleep that are in a directory of `/proc`, and have not ended: all of a process, or the
/// one of a thread.
pub fn count_sleeps(directory: &Path) -> Option<u64> {
    let threads = match fs::read_dir(directory.join("task")) {
        Ok(threads) => threads.filter_map(|thread| Some(thread.ok()?.path())).collect(),
        Err(_) => vec![directory.to_owned()],
    };
    let counts = threads.iter().filter_map(|thread| {
        let status = read_lossy(thread.join("status")).ok().filter(|status| !status.contains("\nState:\tZ"))?;
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        count.trim().parse::<u64>().ok()
    });
    counts.reduce(|one, other| one + other)
}

/// Returns the CPU time in nanoseconds that a thread has used.
pub fn thread_cpu_time(tid: u32) -> Option<u64> {
    fs::read_to_string(format!("/proc/{tid}/task/{tid}/schedstat")).ok()?.split(' ').next()?.parse().ok()
}

/// Returns how often a thread has left its CPU, if it sleeps, or is stopped. `None` if it runs, or could.
pub fn switches_of_sleeper(tid: u32) -> Option<u64> {
    parse_switches_of_sleeper(&read_lossy(format!("/proc/{tid}/status")).ok()?)
}

/// Parses the `status` of a thread. The state is read first by the kernel, too.
fn parse_switches_of_sleeper(status: &str) -> Option<u64> {
    let mut values = status.lines().filter_map(|line| line.split_once(":\t"));
    values.find(|(key, value)| *key == "State" && value.starts_with(['S', 'D', 'T', 't', 'I']))?;
    let counts = values.filter(|(key, _)| key.ends_with("voluntary_ctxt_switches"));
    counts.map(|(_, count)| count.parse::<u64>()).sum::<Result<u64, _>>().ok()
}

/// Returns the addresses of the mappings of a process that are named as those of a process context of OpenTelemetry. What
/// is named so need not be one.
pub fn process_contexts(pid: u32) -> Vec<u64> {
    let maps = read_maps(pid);
    let named = maps.split(|byte| *byte == b'\n').filter_map(|line| parse_mapping(pid, line)).filter(|mapping| {
        let names: [&[u8]; 3] = [b"[anon_shmem:OTEL_CTX]", b"[anon:OTEL_CTX]", b"/memfd:OTEL_CTX"];
        names.iter().any(|name| mapping.path.starts_with(name))
    });
    named.map(|mapping| mapping.start).collect()
}

/// Adds the mappings and the thread names of a running process to a recording. They are dated 0, the beginning of time,
/// so that everything that the kernel reports itself is newer.
pub fn load_process(pid: u32, recording: &mut Recording) {
    for tid in list_threads(pid).unwrap_or_default() {
        if let Ok(comm) = fs::read(format!("/proc/{pid}/task/{tid}/comm")) {
            recording.set_initial_comm(tid, comm.strip_suffix(b"\n").unwrap_or(&comm));
        }
    }
    if !recording.knows_process(pid) {
        load_mappings(pid, 0, recording);
        let is_denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        recording.counts.denied_mappings += u64::from(fs::File::open(maps_file(pid)).is_err_and(is_denied));
    }
}

/// Adds the mappings of a running process to a recording, as if they had been made at `time`.
pub fn load_mappings(pid: u32, time: u64, recording: &mut Recording) {
    let maps = read_maps(pid);
    for line in maps.split(|byte| *byte == b'\n') {
        if let Some(mmap) = parse_mapping(pid, line) {
            recording.map(&mmap, time);
        }
    }
}

/// Adds the code that a running process has mapped to a recording, as far as that does not know it, as if it had been mapped at
/// `time`.
pub fn load_missing_mappings(pid: u32, time: u64, recording: &mut Recording) {
    let maps = read_maps(pid);
    for mmap in maps.split(|byte| *byte == b'\n').filter_map(|line| parse_mapping(pid, line)) {
        let is_known = recording.mappings(pid).any(|known| (known.start..known.end).contains(&mmap.start));
        if !is_known {
            recording.map(&mmap, time);
        }
    }
}

fn maps_file(pid: u32) -> String {
    format!("/proc/{pid}/maps")
}

/// Reads the mappings of a process. If its first thread has exited, only the other threads tell them.
fn read_maps(pid: u32) -> Vec<u8> {
    let threads = list_threads(pid).unwrap_or_default().into_iter().map(|tid| format!("/proc/{pid}/task/{tid}/maps"));
    let files = std::iter::once(maps_file(pid)).chain(threads);
    files.filter_map(|file| fs::read(file).ok()).find(|maps| !maps.is_empty()).unwrap_or_default()
}

/// Parses a line of `/proc/PID/maps`: `START-END PERMISSIONS OFFSET DEVICE INODE PATH`.
fn parse_mapping(pid: u32, line: &[u8]) -> Option<Mmap<'_>> {
    let mut rest = line;
    let (start, end) = next_word(&mut rest)?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let permissions = next_word(&mut rest)?;
    let (executable, writable) = (permissions.contains('x'), permissions.contains('w'));
    let offset = u64::from_str_radix(next_word(&mut rest)?, 16).ok()?;
    let (_device, inode) = (next_word(&mut rest)?, next_word(&mut rest)?.parse::<u64>().ok()?);
    // The kernel's own mmap events name anonymous memory like this.
    let path = if rest.is_empty() { b"//anon" } else { rest };
    let length = end.checked_sub(start)?;
    let inode = Some(Inode { device: 0, number: inode, generation: 0 }).filter(|inode| inode.number != 0);
    Some(Mmap { pid, start, length, offset, inode, build_id: None, executable, writable, path })
}

/// Splits the next word and the blanks after it off the line.
fn next_word<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    let word = std::str::from_utf8(&rest[..end]).ok();
    *rest = rest[end..].trim_ascii_start();
    word
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_threads_that_sleep_have_a_number_of_switches() {
        let status = |state| {
            let rest = "Tgid:\t7\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t4\n";
            super::parse_switches_of_sleeper(&format!("Name:\tState\nState:\t{state}\n{rest}"))
        };
        assert_eq!(status("S (sleeping)"), Some(154));
        assert_eq!(status("T (stopped)"), Some(154));
        assert_eq!(status("R (running)"), None);
    }

    #[test]
    fn a_thread_that_runs_is_not_exiting() {
        assert!(!super::is_exiting(std::process::id()));
        assert!(super::is_exiting(u32::MAX));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        // A zombie.
        while !super::is_exiting(child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    fn parses_a_line_of_maps() {
        let line = b"55d0c0a2b000-55d0c0a4c000 r-xp 00002000 fe:00 1234                       /opt/My App/run";
        let mmap = super::parse_mapping(7, line).unwrap();
        assert_eq!((mmap.start, mmap.length, mmap.offset), (0x55d0_c0a2_b000, 0x21000, 0x2000));
        assert_eq!(
            (mmap.inode.map(|inode| inode.number), mmap.executable, mmap.path),
            (Some(1234), true, &b"/opt/My App/run"[..])
        );
        let line = b"7ffc-7ffe rwxp 00000000 00:00 0 ";
        assert_eq!(super::parse_mapping(7, line).unwrap().path, b"//anon");
    }
}
