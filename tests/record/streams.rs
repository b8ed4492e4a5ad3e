//! Standard streams of recorder and command, and what else the command must not inherit from the recorder.

use std::process::Stdio;

use crate::support::recording::{Profile, can_record, finish, record, recorder};
use crate::support::{command, directory, run, run_bounded, tool};

/// Writes a line to each stream and does some work.
const SCRIPT: &str = "echo printed; echo warned >&2; n=0; while [ $n -lt 50000 ]; do n=$((n + 1)); done; exit 7";

#[test]
fn moves_the_commands_stdout_to_stderr_while_the_profile_goes_to_stdout() {
    if !can_record() {
        return;
    }
    let outcome = record(["--", "sh", "-c", SCRIPT]);
    assert_eq!(outcome.code(), 7, "{outcome:?}");
    assert!(Profile::from_stdout(&outcome).total() > 0, "{outcome:?}");
    assert!(outcome.stderr.starts_with("printed\nwarned\nfg-record: "), "{outcome:?}");
    let quiet = record(["-q", "--", "sh", "-c", SCRIPT]);
    assert_eq!(quiet.stderr, "printed\nwarned\n");
}

#[test]
fn leaves_the_commands_stdout_alone_if_the_profile_goes_to_a_file() {
    if !can_record() {
        return;
    }
    let folder = directory();
    let file = folder.path().join("out.folded");
    let outcome = record(["-o", file.to_str().unwrap(), "--", "sh", "-c", SCRIPT]);
    assert_eq!(outcome.code(), 7, "{outcome:?}");
    assert_eq!(outcome.text(), "printed\n");
    assert!(Profile::parse(&std::fs::read(&file).unwrap()).total() > 0);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn the_command_reads_the_recorders_stdin() {
    if !can_record() {
        return;
    }
    let outcome =
        run("fg-record", ["-q", "--", "sh", "-c", "read line; cat; exit ${line#status }"], b"status 5\nrest\n");
    assert_eq!((outcome.code(), &*outcome.stderr), (5, "rest\n"), "{outcome:?}");
}

#[test]
fn the_command_inherits_no_signal_mask_and_no_files_from_the_recorder() {
    if !can_record() {
        return;
    }
    // Signals up to 31: the others belong to the C library.
    let script = "sed -nE 's/^(Sig(Blk|Ign):).*(.{8})$/\\1 \\3/p' /proc/self/status; ls /proc/self/fd";
    let recorded = record(["-q", "--", "sh", "-c", script]).ok().stderr;
    let mut alone = command("sh");
    alone.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let alone = run_bounded(&mut alone).ok().text().replace("SigIgn: 8", "SigIgn: 0");
    assert_eq!(recorded.replace("SigIgn: 8", "SigIgn: 0"), alone);
    assert!(recorded.starts_with("SigBlk: 00000000\nSigIgn: "), "{recorded}");
    // SIGPIPE too has its default action, as without the recorder.
    let outcome = record(["--", "sh", "-c", "{ yes; echo $? > /dev/stderr; } | head -n 1 > /dev/null"]).ok();
    assert!(outcome.stderr.starts_with("141\n"), "{outcome:?}");
}

#[test]
fn reports_a_full_disk() {
    if !can_record() {
        return;
    }
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let outcome = run_bounded(recorder(["--", "sh", "-c", SCRIPT]).stdout(full()));
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert!(outcome.stderr.ends_with("fg-record: stdout: cannot write: No space left on device\n"), "{outcome:?}");
}

#[test]
fn rejects_an_output_that_cannot_be_created_before_the_command_runs() {
    let folder = directory();
    let outcome =
        finish(recorder(["-o", "no/such", "--", "sh", "-c", ": > ran"]).current_dir(&folder).spawn().unwrap());
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert_eq!(outcome.stderr, "fg-record: no/such: cannot write: No such file or directory\n");
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn a_closed_stdout_does_not_disturb_the_command() {
    if !can_record() {
        return;
    }
    let mut recording = recorder(["-q", "--", "sh", "-c", SCRIPT]).spawn().unwrap();
    drop(recording.stdout.take());
    let outcome = finish(recording);
    assert_eq!((outcome.code(), &*outcome.stderr), (7, "printed\nwarned\n"), "{outcome:?}");
}

#[test]
fn records_with_closed_standard_streams() {
    if !can_record() {
        return;
    }
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let script = format!("\"$0\" -q -- sh -c 'echo printed; exit 7' {closed}");
        let outcome = run_bounded(
            command("sh").args(["-c", &script, tool("fg-record")]).stdout(Stdio::piped()).stderr(Stdio::piped()),
        );
        // Without standard output, the profile cannot be written.
        let expected = if closed.contains(">&- ") || closed == ">&-" { 125 } else { 7 };
        assert_eq!(outcome.code(), expected, "{closed}: {outcome:?}");
    }
}

#[test]
fn an_empty_recording_makes_an_empty_profile() {
    if !can_record() {
        return;
    }
    // The first sample is due after a second of CPU time.
    let outcome = record(["-F", "1", "--", "true"]).ok();
    assert_eq!(outcome.text(), "");
    assert!(outcome.stderr.contains("\nfg-record: nothing was recorded"), "{outcome:?}");
    let script = record(["-F", "1", "--script", "--", "true"]).ok();
    assert_eq!(script.text(), "");
}
