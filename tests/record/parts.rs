//! Recordings in parts: a file for each while.

use std::path::PathBuf;

use crate::folded::{Folded, may_record, record};
use crate::programs::program;
use crate::support::directory;

#[test]
fn a_recording_is_written_part_by_part() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let folder = directory();
    let pattern = folder.path().join("part-%t.folded");
    let script = format!("{busy} 0.3; exec sleep 1.2");
    let outcome = record(["--interval", "1.1", "-o", pattern.to_str().unwrap(), "--", "sh", "-c", &script]).ok();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 2, "{files:?} {outcome:?}");
    let parts: Vec<Folded> = files.iter().map(|path| Folded::parse(&std::fs::read(path).unwrap())).collect();
    parts[0].assert_share(&["busy", "main", "spin", "step"], 0.8);
    let summaries = outcome.stderr.matches(" at 997 Hz in ").count();
    assert_eq!(summaries, files.len(), "{outcome:?}");
    // Each sample is in one of them.
    let told = outcome.stderr.lines().filter_map(|line| line.strip_prefix("fg-record: ")?.split_once(" sample"));
    let told: u64 = told.map(|(count, _)| count.parse::<u64>().unwrap()).sum();
    assert_eq!(parts.iter().map(Folded::total).sum::<u64>(), told, "{outcome:?}");
}

#[test]
fn parts_need_names_that_tell_them_apart() {
    for arguments in [&["--interval", "1", "--", "true"][..], &["--interval", "1", "-o", "x.folded", "--", "true"]] {
        let outcome = crate::support::run("fg-record", arguments, b"");
        assert_eq!(outcome.code(), 2, "{outcome:?}");
        assert!(outcome.stderr.contains("-o 'app-%t.folded'"), "{outcome:?}");
    }
    let outcome = record(["-o", "/no/such/folder/%t.folded", "--", "sh", "-c", "echo ran >&2"]);
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert!(!outcome.stderr.contains("ran"), "{outcome:?}");
}
