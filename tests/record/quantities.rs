//! Flame graphs of what events add up to: bytes that were written, sizes that were asked for, faults.

use std::process::Command;

use crate::folded::{Folded, end, may_record, record, recorder};
use crate::programs::program;
use crate::support::{Outcome, directory, has, run, skip};

/// Whether this machine lets us count such an event.
fn may_count(event: &str) -> bool {
    if !may_record() {
        return false;
    }
    let probe = run("fg-record", ["-e", event, "--", "true"], b"");
    if !probe.status.success() {
        skip(&probe.stderr);
    }
    probe.status.success()
}

fn numbers(outcome: &Outcome) -> Vec<u64> {
    let own = |line: &&str| !line.starts_with("fg-record:");
    outcome.stderr.lines().filter(own).filter_map(|line| line.parse().ok()).collect()
}

#[test]
fn what_a_program_wrote_is_the_sum_of_its_calls_results() {
    let (true, Some(sizes)) = (may_count("syscalls:sys_exit_write"), program("sizes")) else { return };
    // A failed write weighs nothing.
    let outcome = record(["-e", "syscalls:sys_exit_write", "--weight-field", "ret", "--", &sizes, "write"]).ok();
    let profile = Folded::of(&outcome);
    let [written] = numbers(&outcome)[..] else { panic!("{outcome:?}") };
    let big = profile.share(&["main", "write_big"]) * profile.total() as f64;
    let small = profile.share(&["main", "write_small"]) * profile.total() as f64;
    assert!((big - written as f64 * 0.75).abs() < 0.5 && (small - written as f64 * 0.25).abs() < 0.5, "{outcome:?}");
    assert!(outcome.stderr.contains(" of ret in all"), "{outcome:?}");
}

#[test]
fn sizes_that_were_asked_for_are_a_functions_argument() {
    let Some(sizes) = program("sizes") else { return };
    let event = format!("uprobe:{sizes}:grab:2");
    if !may_count(&event) {
        return;
    }
    let outcome = record(["-e", &event, "--", &sizes, "grab"]).ok();
    let profile = Folded::of(&outcome);
    assert_eq!(numbers(&outcome), [profile.total()], "{outcome:?}");
    profile.assert_share(&["main", "grab"], 1.0);
    let by_time = record(["-F", "100", "-e", &event, "--", &sizes, "grab"]);
    assert!(by_time.code() == 2 && by_time.stderr.contains("a sum needs each event"), "{by_time:?}");
    let both = record(["-e", &format!("{event},{event}"), "--", &sizes, "grab"]);
    assert!(both.stderr.contains("stands there twice"), "{both:?}");
    // Without an argument it is calls that are counted.
    let outcome = record(["-e", &format!("uprobe:{sizes}:grab"), "--", &sizes, "grab"]).ok();
    assert_eq!(Folded::of(&outcome).total(), 100, "{outcome:?}");
}

#[test]
fn a_function_that_only_the_debug_file_names_is_found_by_it() {
    let Some(sizes) = program("sizes") else { return };
    if !may_count(&format!("uprobe:{sizes}:grab")) {
        return;
    }
    if !has("objcopy") {
        return skip("needs objcopy");
    }
    let folder = directory();
    let make = |words: &str| {
        let status = Command::new("sh").args(["-c", words]).current_dir(&folder).status();
        assert!(status.unwrap().success(), "{words}");
    };
    make(&format!("objcopy --only-keep-debug {sizes} sizes.debug"));
    make(&format!("objcopy --strip-all --add-gnu-debuglink=sizes.debug {sizes} sizes"));
    let stripped = folder.path().join("sizes").display().to_string();
    let outcome = record(["-e", &format!("uprobe:{stripped}:grab:2"), "--", &stripped, "grab"]).ok();
    assert_eq!(numbers(&outcome), [Folded::of(&outcome).total()], "{outcome:?}");
}

#[test]
fn what_a_program_asked_of_the_disk_is_what_it_wrote() {
    // Of the kernel's queue: it is filled by who writes, while what is issued may be by its own threads.
    let (true, true) = (may_count("block:block_bio_queue"), has("dd")) else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("written").display().to_string();
    let write = |before: &[&str]| {
        let mut words = before.to_vec();
        let to = format!("of={file}");
        words.extend(["dd", "if=/dev/zero", &to, "bs=256K", "count=16", "oflag=direct", "conv=notrunc", "status=none"]);
        Command::new(words[0]).args(&words[1..]).output().unwrap()
    };
    if !write(&[]).status.success() {
        return skip("the file system has no direct input and output");
    }
    let record =
        [crate::support::tool("fg-record"), "-e", "block:block_bio_queue", "--weight-field", "nr_sector", "--"];
    let output = write(&record);
    let profile = Folded::parse(&output.stdout);
    let (bytes, truth) = (profile.share(&["dd"]) * profile.total() as f64 * 512.0, f64::from(16 * 256 * 1024));
    if profile.total() == 0 {
        return skip("the file system has no block device");
    }
    assert!(bytes >= truth && bytes <= truth * 1.02, "{bytes}: {profile:?}");
}

#[test]
fn faults_are_counted_where_they_happen() {
    let (true, Some(sizes)) = (may_record(), program("sizes")) else { return };
    // By frame pointers: so many copies of stacks at once would not fit into the ring.
    let outcome =
        record(["-e", "page-faults", "-c", "1", "--call-graph", "fp", "-m", "4M", "--", &sizes, "touch"]).ok();
    let [pages] = numbers(&outcome)[..] else { panic!("{outcome:?}") };
    let profile = Folded::of(&outcome);
    let faults = profile.share(&["touch"]) * profile.total() as f64;
    assert!((faults - pages as f64).abs() < 20.0, "{faults} of {pages}: {outcome:?}");
}

#[test]
fn what_is_no_quantity_is_refused() {
    let folder = directory();
    let outcome =
        |words: &[&str]| end(recorder([]).args(words).args(["--", "true"]).current_dir(&folder).spawn().unwrap());
    assert_eq!(outcome(&["--weight-field", "ret"]).code(), 2);
    let refusal = outcome(&["-e", "page-faults", "--weight-field", "ret"]);
    assert!(refusal.code() == 2 && refusal.stderr.contains("page-faults has no field ret"), "{refusal:?}");
    assert_eq!(outcome(&["-e", "page-faults,faults", "--weight-field", "ret"]).code(), 2);
    assert_eq!(outcome(&["-e", "uprobe:/bin/true:no_such_function"]).code(), 125);
    assert_eq!(outcome(&["-e", "uprobe:/bin/true"]).code(), 2);
    let refusal = outcome(&["-e", "uprobe:/bin/true:main:1", "--call-graph", "fp"]);
    assert!(refusal.code() != 0, "{refusal:?}");
}
