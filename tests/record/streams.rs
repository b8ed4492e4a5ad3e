//! Where the profile goes and where what the command prints; and what else of ours the command must not inherit.

use std::process::{Command, Stdio};

use crate::folded::{Folded, end, may_record, record, recorder};
use crate::support::{directory, run, run_bounded, tool};

/// Some work, and a word on each stream.
const SCRIPT: &str = "echo printed; echo warned >&2; n=0; while [ $n -lt 50000 ]; do n=$((n + 1)); done; exit 7";

#[test]
fn what_the_command_prints_goes_to_stderr_while_the_profile_goes_to_stdout() {
    if !may_record() {
        return;
    }
    let outcome = record(["--", "sh", "-c", SCRIPT]);
    assert_eq!(outcome.code(), 7, "{outcome:?}");
    assert!(Folded::of(&outcome).total() > 0, "{outcome:?}");
    assert!(outcome.stderr.starts_with("printed\nwarned\nfg-record: "), "{outcome:?}");
    let quiet = record(["-q", "--", "sh", "-c", SCRIPT]);
    assert_eq!(quiet.stderr, "printed\nwarned\n");
}

#[test]
fn with_a_file_for_the_profile_the_commands_stdout_is_its_own() {
    if !may_record() {
        return;
    }
    let folder = directory();
    let file = folder.path().join("out.folded");
    let outcome = record(["-o", file.to_str().unwrap(), "--", "sh", "-c", SCRIPT]);
    assert_eq!(outcome.code(), 7, "{outcome:?}");
    assert_eq!(outcome.text(), "printed\n");
    assert!(Folded::parse(&std::fs::read(&file).unwrap()).total() > 0);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn the_command_reads_our_stdin() {
    if !may_record() {
        return;
    }
    let outcome =
        run("fg-record", ["-q", "--", "sh", "-c", "read line; cat; exit ${line#status }"], b"status 5\nrest\n");
    assert_eq!((outcome.code(), &*outcome.stderr), (5, "rest\n"), "{outcome:?}");
}

#[test]
fn the_command_inherits_no_signal_handling_and_no_files_of_ours() {
    if !may_record() {
        return;
    }
    // Of the signals those up to 31: the rest are the C library's own.
    let script = "sed -nE 's/^(Sig(Blk|Ign):).*(.{8})$/\\1 \\3/p' /proc/self/status; ls /proc/self/fd";
    let recorded = record(["-q", "--", "sh", "-c", script]).ok().stderr;
    let mut alone = Command::new("sh");
    alone.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let alone = run_bounded(&mut alone).ok().text().replace("SigIgn: 8", "SigIgn: 0");
    assert_eq!(recorded.replace("SigIgn: 8", "SigIgn: 0"), alone);
    assert!(recorded.starts_with("SigBlk: 00000000\nSigIgn: "), "{recorded}");
    // And so a command whose reader has gone ends as it would alone.
    let outcome = record(["--", "sh", "-c", "{ yes; echo $? > /dev/stderr; } | head -n 1 > /dev/null"]).ok();
    assert!(outcome.stderr.starts_with("141\n"), "{outcome:?}");
}

#[test]
fn a_full_disk_is_a_failure_that_is_said() {
    if !may_record() {
        return;
    }
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let outcome = run_bounded(recorder(["--", "sh", "-c", SCRIPT]).stdout(full()));
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert!(outcome.stderr.ends_with("fg-record: stdout: No space left on device\n"), "{outcome:?}");
}

#[test]
fn a_place_that_cannot_be_written_is_known_before_the_command_runs() {
    let folder = directory();
    let outcome = end(recorder(["-o", "no/such", "--", "sh", "-c", ": > ran"]).current_dir(&folder).spawn().unwrap());
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert_eq!(outcome.stderr, "fg-record: no/such: No such file or directory\n");
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn a_reader_that_has_gone_changes_nothing_for_the_command() {
    if !may_record() {
        return;
    }
    let mut recording = recorder(["-q", "--", "sh", "-c", SCRIPT]).spawn().unwrap();
    drop(recording.stdout.take());
    let outcome = end(recording);
    assert_eq!((outcome.code(), &*outcome.stderr), (7, "printed\nwarned\n"), "{outcome:?}");
}

#[test]
fn closed_streams_are_no_reason_to_fail() {
    if !may_record() {
        return;
    }
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let script = format!("\"$0\" -q -- sh -c 'echo printed; exit 7' {closed}");
        let outcome = run_bounded(
            Command::new("sh").args(["-c", &script, tool("fg-record")]).stdout(Stdio::piped()).stderr(Stdio::piped()),
        );
        assert_eq!(outcome.code(), 7, "{closed}: {outcome:?}");
    }
}

#[test]
fn an_empty_recording_is_an_empty_profile() {
    if !may_record() {
        return;
    }
    // Never as often as once a second do they take that much time.
    let outcome = record(["-F", "1", "--", "true"]).ok();
    assert_eq!(outcome.text(), "");
    assert!(outcome.stderr.contains("\nfg-record: nothing was recorded"), "{outcome:?}");
    let script = record(["-F", "1", "--script", "--", "true"]).ok();
    assert_eq!(script.text(), "");
}
