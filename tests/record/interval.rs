//! `--interval`: one file for each interval.

use std::path::PathBuf;

use crate::support::programs::program;
use crate::support::recording::{Profile, can_record, record};
use crate::support::{directory, run};

#[test]
fn writes_a_file_for_each_interval() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let folder = directory();
    let pattern = folder.path().join("part-%t.folded");
    let script = format!("{busy} 0.3; exec sleep 1.2");
    let outcome = record(["--interval", "1.1", "-o", pattern.to_str().unwrap(), "--", "sh", "-c", &script]).ok();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 2, "{files:?} {outcome:?}");
    let profiles: Vec<Profile> = files.iter().map(|path| Profile::parse(&std::fs::read(path).unwrap())).collect();
    profiles[0].assert_contains(&["busy", "main", "spin", "step"]);
    let summaries = outcome.stderr.matches(" at 997 Hz in ").count();
    assert_eq!(summaries, files.len(), "{outcome:?}");
    // Each sample is in exactly one file.
    let count = |line: &str| line.strip_prefix("fg-record: ")?.split_once(" sample")?.0.parse::<u64>().ok();
    let samples: u64 = outcome.stderr.lines().filter_map(count).sum();
    assert_eq!(profiles.iter().map(Profile::total).sum::<u64>(), samples, "{outcome:?}");
}

#[test]
fn requires_a_file_name_with_the_time() {
    for arguments in [&["--interval", "1", "--", "true"][..], &["--interval", "1", "-o", "x.folded", "--", "true"]] {
        let outcome = run("fg-record", arguments, b"");
        assert_eq!(outcome.code(), 2, "{outcome:?}");
        assert!(outcome.stderr.contains("-o 'app-%t.folded'"), "{outcome:?}");
    }
    let outcome = record(["-o", "/no/such/folder/%t.folded", "--", "sh", "-c", "echo ran >&2"]);
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert!(!outcome.stderr.contains("ran"), "{outcome:?}");
}
