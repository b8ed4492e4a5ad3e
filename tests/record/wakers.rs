//! `--wakers`: who ends a block. How long each took is in the target `timing`.

use crate::support::process::Background;
use crate::support::programs::program;
use crate::support::recording::{Profile, Stack, can_record_switches, finish, recorder};
use crate::support::{Outcome, tool};

/// Records the program whose threads wake each other in known ways.
fn record_wakers(options: &[&str], arguments: &[&str]) -> Option<(Profile, Outcome)> {
    let program = program("wakers").filter(|_| can_record_switches(&["--wakers"]))?;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut recorder = recorder([]);
    recorder.args(options).args(["--", &program]).args(arguments).env("WAKERS_FILE", folder.path().join("wakers.disk"));
    let outcome = finish(recorder.spawn().unwrap()).ok();
    Some((Profile::from_stdout(&outcome), outcome))
}

#[test]
fn a_block_is_followed_by_its_waker() {
    let Some((profile, outcome)) = record_wakers(&["--off-cpu", "--wakers"], &[]) else { return };
    for way in ["pipe", "futex", "condvar"] {
        let (wait, wake) = (format!("wait_{way}"), format!("wake_{way}_[w]"));
        profile.assert_contains(&[
            way,
            "waiter",
            &wait,
            "--",
            &format!("{way}_w_[w]"),
            "waker_[w]",
            &wake,
            "[off-cpu]",
        ]);
        profile.assert_contains(&[&format!("{way}_w"), "waker", "pause_ms", "--", "[timer]_[w]", "[off-cpu]"]);
    }
    profile.assert_contains(&["convoy", "acquire", "--", "convoy_[w]", "release_[w]", "[off-cpu]"]);
    profile.assert_contains(&["sink", "take", "--", "middle_[w]", "hand_on_[w]", "[off-cpu]"]);
    // Nobody wakes a thread with two stacks, and what runs behind a wake-up has none.
    let separators = |stack: &Stack| stack.frames.iter().filter(|frame| *frame == "--").count();
    assert!(profile.0.iter().all(|stack| separators(stack) <= 1), "{outcome:?}");
    let is_marked = |stack: &Stack| {
        let wakers = stack.frames.iter().skip_while(|frame| *frame != "--").skip(1);
        wakers.take_while(|frame| *frame != "[off-cpu]").all(|frame| frame.ends_with("_[w]") || frame == "[truncated]")
    };
    assert!(profile.0.iter().all(is_marked), "{outcome:?}");
    profile.assert_lacks(&["--", "[runnable]"]);
    assert!(!outcome.stderr.contains("preemption"), "{outcome:?}");
}

#[test]
fn a_chain_leads_to_what_all_were_waiting_for() {
    let Some((profile, outcome)) = record_wakers(&["--off-cpu", "--wakers", "--waker-depth", "3"], &[]) else { return };
    // Each stack is that in which the thread was blocked itself.
    let chain = [
        "sink",
        "take",
        "--",
        "middle_[w]",
        "take_[w]",
        "--",
        "source_[w]",
        "pause_ms_[w]",
        "--",
        "[timer]_[w]",
        "[off-cpu]",
    ];
    profile.assert_contains(&chain);
    // The rest is the time that the waker ran.
    profile.assert_contains(&["sink", "take", "--", "middle_[w]", "hand_on_[w]", "[off-cpu]"]);
    let is_waker = |pair: &[String]| pair[0] == "--" && pair[1] != "[more-wakers]_[w]";
    let wakers = |stack: &Stack| stack.frames.windows(2).filter(|pair| is_waker(pair)).count();
    assert!(profile.0.iter().all(|stack| wakers(stack) <= 3), "{outcome:?}");
    // A shorter one says that it is cut.
    let Some((profile, _)) = record_wakers(&["--off-cpu", "--wakers", "--waker-depth", "2"], &[]) else { return };
    let cut = ["--", "source_[w]", "pause_ms_[w]", "--", "[more-wakers]_[w]", "[off-cpu]"];
    profile.assert_contains(&[&["sink", "take", "--", "middle_[w]", "take_[w]"], &cut[..]].concat());
}

#[test]
fn a_chain_names_the_first_stage_of_a_pipeline() {
    let Some(program) = program("chains").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let options = ["--off-cpu", "--wakers", "--waker-depth", "4", "--", &program, "pipeline"];
    let profile = Profile::from_stdout(&finish(recorder(options).spawn().unwrap()).ok());
    let middle = ["last", "take_second", "--", "middle_[w]"];
    profile.assert_contains(&[&middle[..], &["work_quickly_[w]", "--", "[timer]_[w]", "[off-cpu]"]].concat());
    let first = ["take_first_[w]", "--", "first_[w]", "work_slowly_[w]", "--", "[timer]_[w]", "[off-cpu]"];
    profile.assert_contains(&[&middle[..], &first[..]].concat());
}

#[test]
fn a_waker_outside_of_the_target_has_its_present_name_and_program() {
    let Some(program) = program("chains").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let pipe = folder.path().join("pipe").to_str().unwrap().to_owned();
    assert!(crate::support::command("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = Background::start(crate::support::command("cat").arg(&pipe).stdout(std::process::Stdio::null()));
    let mut recorder = recorder(["--off-cpu", "--wakers", "--waker-depth", "3", "-p", &reader.pid()]);
    recorder.args(["--", &program, "outsider", &pipe]);
    let profile = Profile::from_stdout(&finish(recorder.spawn().unwrap()).ok());
    for (name, function) in
        [("chains_[w]", "write_first_[w]"), ("renamed_[w]", "write_renamed_[w]"), ("exe_[w]", "write_replaced_[w]")]
    {
        // What it waited for itself is not recorded.
        profile.assert_contains(&["cat", "--", name, "main_[w]", function, "--", "[unknown]_[w]", "[off-cpu]"]);
    }
}

#[test]
fn a_chain_leads_through_a_process_that_exits() {
    if !can_record_switches(&["--wakers"]) {
        return;
    }
    let recorder = recorder(["--off-cpu", "--wakers", "--waker-depth", "2", "--", "sh", "-c", "sleep 0.1; :"]).spawn();
    let outcome = finish(recorder.unwrap()).ok();
    Profile::from_stdout(&outcome).assert_contains(&["sh", "--", "sleep_[w]", "--", "[timer]_[w]", "[off-cpu]"]);
}

/// The kernel takes the ID of such a thread away before it wakes the parent.
#[test]
fn a_chain_leads_through_the_thread_that_exits_last() {
    let Some(program) = program("chains").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let options = ["--off-cpu", "--wakers", "--waker-depth", "2", "--", &program, "exit"];
    let profile = Profile::from_stdout(&finish(recorder(options).spawn().unwrap()).ok());
    let chain = ["wait_for", "--", "exits_last_[w]", "linger_[w]", "--", "[timer]_[w]", "[off-cpu]"];
    profile.assert_contains(&chain);
}

#[test]
fn a_thread_that_sleeps_already_has_a_waker() {
    if !can_record_switches(&["--wakers"]) {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let pipe = folder.path().join("pipe").to_str().unwrap().to_owned();
    assert!(crate::support::command("mkfifo").arg(&pipe).status().unwrap().success());
    let _writer = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
    let reader = Background::start(crate::support::command("cat").arg(&pipe));
    let status = format!("/proc/{}/syscall", reader.pid());
    // It is blocked in read(2).
    assert!(crate::support::eventually(|| std::fs::read_to_string(&status).is_ok_and(|call| call.starts_with("0 "))));
    // It has run when it has waited once more.
    let count = format!("grep ^voluntary /proc/{}/status", reader.pid());
    let script =
        format!("before=$({count}); echo woken >{pipe}; while [ \"$before\" = \"$({count})\" ]; do sleep 0.01; done");
    let recorder = recorder(["--off-cpu", "--wakers", "-p", &reader.pid(), "--", "sh", "-c", &script]).spawn();
    let profile = Profile::from_stdout(&finish(recorder.unwrap()).ok());
    profile.assert_contains(&["cat", "--", "sh_[w]", "[off-cpu]"]);
}

/// The end of a process wakes all its threads: they have not waited for that.
#[test]
fn a_wait_that_the_end_of_the_process_cuts_has_no_waker() {
    let Some(program) = program("chains").filter(|_| can_record_switches(&["--wakers"])) else { return };
    let script = format!("{program} hang & sleep 0.3; kill $!; wait");
    let recorder = recorder(["--off-cpu", "--wakers", "--waker-depth", "2", "--", "sh", "-c", &script]).spawn();
    let profile = Profile::from_stdout(&finish(recorder.unwrap()).ok());
    for (thread, function) in [("stuck", "acquire"), ("chains", "wait_for_ever")] {
        profile.assert_contains(&[thread, function, "[off-cpu]"]);
        profile.assert_lacks(&[thread, function, "--"]);
    }
}

#[test]
fn wall_time_has_wakers_too() {
    let Some((profile, _)) = record_wakers(&["--wall", "--wakers"], &["lock"]) else { return };
    profile.assert_contains(&["convoy", "acquire", "--", "convoy_[w]", "release_[w]", "[off-cpu]"]);
}

#[test]
fn rejects_options_that_wakers_exclude() {
    for options in [
        &["--wakers"][..],
        &["--wakers", "-e", "cycles"],
        &["--off-cpu", "--waker-depth", "2"],
        &["--off-cpu", "--wakers", "--waker-depth", "0"],
        &["--off-cpu", "--wakers", "--call-graph", "fp"],
        &["--off-cpu", "--wakers", "--call-graph", "dwarf,8192"],
        &["--off-cpu", "--wakers", "--bpf"],
        &["--latency", "--off-cpu"],
        &["--latency", "--wakers"],
        &["--latency", "-e", "cycles"],
        &["--latency", "--io-latency"],
    ] {
        let outcome = finish(recorder([]).args(options).args(["--", "true"]).spawn().unwrap());
        assert_eq!(outcome.code(), 2, "{outcome:?}");
    }
}

/// Without the rights for BPF nothing is recorded, rather than a profile without wakers.
#[test]
fn wakers_are_not_left_out_in_silence() {
    let mut command = crate::support::command("setpriv");
    command.args(["--reuid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]);
    if !crate::support::require("setpriv") || !can_record_switches(&["--wakers"]) {
        return;
    }
    let outcome =
        crate::support::run_bounded(command.arg(tool("fg-record")).args(["--off-cpu", "--wakers", "--", "/bin/true"]));
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert_eq!(outcome.text(), "", "{outcome:?}");
}
