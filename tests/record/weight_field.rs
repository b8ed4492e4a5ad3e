//! Profiles weighed by what events carry: bytes written, sizes requested, page faults.

use crate::support::programs::{copy_program, program};
use crate::support::recording::{Profile, can_record, finish, record, recorder};
use crate::support::{Outcome, command, directory, require, run, skip, tool};

/// Returns true if this machine lets us count an event. Otherwise reports the test as skipped.
fn can_count(event: &str) -> bool {
    if !can_record() {
        return false;
    }
    let probe = run("fg-record", ["-e", event, "--", "true"], b"");
    if !probe.status.success() {
        skip(&probe.stderr);
    }
    probe.status.success()
}

/// Returns the numbers that the recorded program printed on standard error.
fn printed_numbers(outcome: &Outcome) -> Vec<u64> {
    let lines = outcome.stderr.lines().filter(|line| !line.starts_with("fg-record:"));
    lines.filter_map(|line| line.parse().ok()).collect()
}

#[test]
fn weighs_writes_by_their_results() {
    let (true, Some(sizes)) = (can_count("syscalls:sys_exit_write"), program("sizes")) else { return };
    // The program also makes a write that fails, which weighs nothing.
    let outcome = record(["-e", "syscalls:sys_exit_write", "--weight-field", "ret", "--", &sizes, "write"]).ok();
    let profile = Profile::from_stdout(&outcome);
    let [written] = printed_numbers(&outcome)[..] else { panic!("{outcome:?}") };
    let (big, small) = (profile.weight(&["main", "write_big"]), profile.weight(&["main", "write_small"]));
    assert_eq!((big, small), (written / 4 * 3, written / 4), "{outcome:?}");
    assert!(outcome.stderr.contains(", sum of ret is "), "{outcome:?}");
}

#[test]
fn weighs_calls_by_an_argument() {
    let Some(sizes) = program("sizes") else { return };
    let event = format!("uprobe:{sizes}:grab:2");
    if !can_count(&event) {
        return;
    }
    let outcome = record(["-e", &event, "--", &sizes, "grab"]).ok();
    let profile = Profile::from_stdout(&outcome);
    assert_eq!(printed_numbers(&outcome), [profile.total()], "{outcome:?}");
    assert_eq!(profile.weight(&["main", "grab"]), profile.total(), "{outcome:?}");
    let by_frequency = record(["-F", "100", "-e", &event, "--", &sizes, "grab"]);
    assert!(by_frequency.code() == 2 && by_frequency.stderr.contains("a sum needs every event"), "{by_frequency:?}");
    let twice = record(["-e", &format!("{event},{event}"), "--", &sizes, "grab"]);
    assert!(twice.stderr.contains("given more than once"), "{twice:?}");
    // Without the number of an argument, calls are counted.
    let outcome = record(["-e", &format!("uprobe:{sizes}:grab"), "--", &sizes, "grab"]).ok();
    assert_eq!(Profile::from_stdout(&outcome).total(), 100, "{outcome:?}");
    // With a period, the events after the last sample are missing.
    for (rate, totals) in [("1", [100, 100]), ("20", [80, 100])] {
        let options = ["-c", rate, "--weight", "period", "-e", &format!("uprobe:{sizes}:grab")];
        let outcome = finish(recorder(options).args(["--", &sizes, "grab"]).spawn().unwrap()).ok();
        assert!(totals.contains(&Profile::from_stdout(&outcome).total()), "{outcome:?}");
    }
    // A path may contain colons, commas and blanks.
    let folder = directory();
    let copy = folder.path().join("sizes:1, 2").display().to_string();
    copy_program(&sizes, &copy);
    let script = record(["--script", "-e", &format!("uprobe:{copy}:grab"), "--", &copy, "grab"]).ok();
    let folded = run("fg-collapse", ["-"], &script.stdout).ok();
    assert_eq!(Profile::from_stdout(&folded).total(), 100, "{folded:?}");
    let outcome = record(["-e", &format!("uprobe:{copy}:grab:2"), "--", &copy, "grab"]).ok();
    assert_eq!(printed_numbers(&outcome), [Profile::from_stdout(&outcome).total()], "{outcome:?}");
}

/// With the BPF program, calls count in every thread from its first instant. Without it, as with a period, those of new threads
/// are missing, which is said. The threads and processes are created either way.
#[test]
fn counts_calls_in_threads_and_processes_that_start_meanwhile() {
    let Some(sizes) = program("sizes") else { return };
    let event = format!("uprobe:{sizes}:grab");
    if !can_count(&event) {
        return;
    }
    let outcome = record(["-v", "-e", &event, "--", &sizes, "apart"]);
    let takes_stacks = outcome.stderr.contains("stacks taken by a BPF program");
    let (profile, note) = (Profile::from_stdout(&outcome), "in threads and processes that start later are missing");
    assert!(outcome.stderr.lines().any(|line| line == "20"), "{outcome:?}");
    assert_eq!(
        (profile.weight(&["grab"]), outcome.stderr.contains(note)),
        if takes_stacks { (200, false) } else { (0, true) }
    );
    assert_eq!(profile.weight(&["grab_apart", "grab"]), profile.total(), "{outcome:?}");
    let outcome = record(["-c", "2", "-e", &event, "--", &sizes, "apart"]);
    assert!(outcome.stderr.lines().any(|line| line == "20") && outcome.stderr.contains(note), "{outcome:?}");
}

#[test]
fn finds_a_probed_function_in_the_debug_file() {
    let Some(sizes) = program("sizes") else { return };
    if !can_count(&format!("uprobe:{sizes}:grab")) || !require("objcopy") {
        return;
    }
    let folder = directory();
    for arguments in [
        &["--only-keep-debug", &sizes, "sizes.debug"][..],
        &["--strip-all", "--add-gnu-debuglink=sizes.debug", &sizes, "sizes"],
    ] {
        let status = command("objcopy").args(arguments).current_dir(&folder).status();
        assert!(status.unwrap().success(), "{arguments:?}");
    }
    let stripped = folder.path().join("sizes").display().to_string();
    let outcome = record(["-e", &format!("uprobe:{stripped}:grab:2"), "--", &stripped, "grab"]).ok();
    assert_eq!(printed_numbers(&outcome), [Profile::from_stdout(&outcome).total()], "{outcome:?}");
}

#[test]
fn weighs_disk_requests_by_their_size() {
    // The event of the kernel's queue: the writing thread fills it, while the kernel's own threads may issue the requests.
    let (true, true) = (can_count("block:block_bio_queue"), require("dd")) else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = format!("of={}", folder.path().join("written").display());
    let dd = ["dd", "if=/dev/zero", &output, "bs=256K", "count=16", "oflag=direct", "conv=notrunc", "status=none"];
    if !command("dd").args(&dd[1..]).output().unwrap().status.success() {
        return skip("the file system has no direct input and output");
    }
    let mut recorder = command(tool("fg-record"));
    recorder.args(["-e", "block:block_bio_queue", "--weight-field", "nr_sector", "--"]).args(dd);
    let profile = Profile::parse(&recorder.output().unwrap().stdout);
    if profile.total() == 0 {
        return skip("the file system has no block device");
    }
    let (bytes, expected) = (profile.weight(&["dd"]) * 512, 16 * 256 * 1024);
    assert!((expected..=expected * 102 / 100).contains(&bytes), "{bytes}: {profile:?}");
}

#[test]
fn counts_faults_where_they_happen() {
    let (true, Some(sizes)) = (can_record(), program("sizes")) else { return };
    // By frame pointers: copied stacks of so many samples in a row do not fit into the ring buffer.
    let outcome =
        record(["-e", "page-faults", "-c", "1", "--call-graph", "fp", "-m", "4M", "--", &sizes, "touch"]).ok();
    let [pages] = printed_numbers(&outcome)[..] else { panic!("{outcome:?}") };
    let faults = Profile::from_stdout(&outcome).weight(&["touch"]);
    assert!(faults.abs_diff(pages) < 20, "{faults} of {pages}: {outcome:?}");
}

#[test]
fn rejects_events_and_fields_that_cannot_be_weighed() {
    let folder = directory();
    let record = |options: &[&str]| {
        finish(recorder([]).args(options).args(["--", "true"]).current_dir(&folder).spawn().unwrap())
    };
    assert_eq!(record(&["--weight-field", "ret"]).code(), 2);
    let refusal = record(&["-e", "page-faults", "--weight-field", "ret"]);
    assert!(
        refusal.code() == 2 && refusal.stderr.contains("--weight-field ret: page-faults is not a tracepoint"),
        "{refusal:?}"
    );
    assert_eq!(record(&["-e", "page-faults,faults", "--weight-field", "ret"]).code(), 2);
    assert_eq!(record(&["-e", "uprobe:/bin/true:no_such_function"]).code(), 125);
    assert_eq!(record(&["-e", "uprobe:/bin/true"]).code(), 2);
    let refusal = record(&["-e", "uprobe:/bin/true:main:1", "--call-graph", "fp"]);
    assert!(refusal.code() != 0, "{refusal:?}");
}
