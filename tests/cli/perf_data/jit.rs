//! Recordings of generated code, named by perf maps and jitdumps.

use std::path::Path;

use super::collapse;
use super::handmade::{Handmade, comm, mmap, sample_at};
use crate::support::{self, directory};

/// Returns a pid that no process has: the kernel's maximum is 2^22.
fn unused_pid() -> u32 {
    (1 << 22) + std::process::id()
}

/// Makes a recording with samples at 0x7004 at these times, of a process that has mapped a jitdump.
fn recording(pid: u32, dump: &Path, times: &[u64]) -> Handmade {
    let mut file = Handmade::default();
    file.push(&comm(pid, pid, 1, "jit"));
    file.push(&mmap(pid, 2, 0x10000, 4096, dump.to_str().unwrap(), None));
    times.iter().for_each(|time| file.push(&sample_at(pid, pid, *time, 0, 1, 0x7004)));
    file
}

/// Makes a jitdump with these functions, one after another at 0x7000, each for 100 nanoseconds.
fn jitdump(names: &[&str]) -> Vec<u8> {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut bytes = words(&[0x4a69_5444 | 1 << 32, 40 | 62 << 32, 1 << 32, 5, 0]);
    for (number, name) in (0..).zip(names) {
        let code = [name.as_bytes(), &[0; 17]].concat();
        let size = 16 + 40 + code.len() as u64;
        bytes.extend(words(&[size << 32, 100 * number + 1, 1, 0x7000, 0x7000, 16, number]));
        bytes.extend(code);
    }
    bytes
}

#[test]
fn names_each_sample_by_the_code_of_its_time() {
    let folder = directory();
    let dump = folder.path().join("jit-1.dump");
    std::fs::write(&dump, jitdump(&["first", "second", "third"])).unwrap();
    let file = recording(unused_pid(), &dump, &[5, 50, 150, 250, 251, 252]).write(folder.path());
    let folded = collapse(&file, &[]).ok();
    assert_eq!((folded.text().as_str(), folded.stderr.as_str()), ("jit;first 2\njit;second 1\njit;third 3\n", ""));
    let below = folder.path().join("root");
    let moved = below.join(dump.strip_prefix("/").unwrap());
    std::fs::create_dir_all(moved.parent().unwrap()).unwrap();
    std::fs::rename(&dump, moved).unwrap();
    let symfs = collapse(&file, &["--symfs", below.to_str().unwrap()]).ok();
    assert_eq!((symfs.text(), symfs.stderr), (folded.text(), String::new()));
    let missing = collapse(&file, &[]).ok();
    assert_eq!(missing.text(), "jit;[unknown] 6\n");
    let message = format!("code generated at run time has no names: {}: not found\n", dump.display());
    assert!(missing.stderr.ends_with(&message) && missing.stderr.lines().count() == 1, "{}", missing.stderr);
    std::fs::write(&dump, "something else").unwrap();
    assert!(collapse(&file, &[]).ok().stderr.contains("jit-1.dump: not a jitdump"));
}

#[test]
fn names_code_by_its_perf_map() {
    let folder = directory();
    let pid = unused_pid();
    let map = format!("/tmp/perf-{pid}.map");
    if std::fs::write(&map, "7000 10 first\n8000 10 other\n").is_err() {
        return support::skip("nothing can be written to /tmp here");
    }
    let mut file = Handmade::default();
    file.push(&comm(pid, pid, 1, "jit"));
    file.push(&comm(9, 9, 1, "none"));
    [(pid, 0x7004), (pid, 0x7100), (pid, 0x8004), (9, 0x7004), (9, 0x8004)]
        .iter()
        .for_each(|(pid, address)| file.push(&sample_at(*pid, *pid, 10, 0, 1, *address)));
    let folded = collapse(&file.write(folder.path()), &["--jit"]).ok();
    std::fs::remove_file(&map).unwrap();
    assert_eq!(folded.text(), "jit;[unknown] 1\njit;first_[j] 1\njit;other_[j] 1\nnone;[unknown] 2\n");
}
