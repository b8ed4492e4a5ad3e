//! Blocked time that a program in the kernel adds up: the same programs, and the same truths, as without it.

use crate::folded::{end, recorder};

#[cfg(not(feature = "bpf"))]
#[test]
fn a_build_without_it_says_how_to_make_one_with_it() {
    let outcome = end(recorder(["--off-cpu", "--bpf", "--", "true"]).spawn().unwrap());
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert_eq!(
        outcome.stderr,
        "fg-record: this fg-record was built without --bpf: cargo install fgkit --features bpf\n"
    );
}

#[test]
fn what_cannot_go_together_is_refused() {
    for options in [
        &["--bpf"][..],
        &["--bpf", "--wall"],
        &["--bpf", "--off-cpu", "--off-cpu-period", "3"],
        &["--bpf", "--off-cpu", "--call-graph", "dwarf"],
    ] {
        let outcome = end(recorder([]).args(options).args(["--", "true"]).spawn().unwrap());
        assert_eq!(outcome.code(), 2, "{outcome:?}");
    }
}

#[cfg(feature = "bpf")]
mod in_kernel {
    use std::path::Path;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use crate::folded::{Background, Folded, end, record, recorder};
    use crate::off_cpu::{Truth, edges, record_waits, truths, waits_by, weight};
    use crate::support::{directory, has, skip};

    fn waits() -> Option<String> {
        waits_by(&["--bpf"])
    }

    /// The weight of all stacks of threads of that name.
    fn of_thread(profile: &Folded, name: &str) -> f64 {
        profile.0.iter().filter(|(stack, _)| stack[0] == name).map(|(_, weight)| *weight as f64).sum()
    }

    #[test]
    fn each_wait_is_as_long_as_the_program_says() {
        let Some(waits) = waits() else { return };
        let outcome = record_waits(&waits, &["--off-cpu", "--bpf"]);
        let profile = Folded::of(&outcome);
        let truths = truths(&outcome);
        assert_eq!(truths.len(), 6, "{outcome:?}");
        for Truth { name, blocked, most, stolen, .. } in truths {
            // Its function is missing where the C library, which keeps no frame pointer, stands above it; so this is the
            // whole thread, which may also be preempted elsewhere.
            let (all, off_cpu) = (of_thread(&profile, &name), weight(&profile, &[&name, "[off-cpu]"]));
            let said = format!("{name}: {off_cpu} of {all} and not {blocked}, {stolen} stolen: {}", outcome.stderr);
            assert!(all <= most * 1.01, "{said}");
            match &*name {
                "burn" => assert!(off_cpu < 1000.0, "{said}"),
                _ => assert!(all >= blocked * 0.98 - edges(&outcome) - stolen, "{said}"),
            }
            // The mutex's thread also waits for its turn.
            assert!(["burn", "mutex"].contains(&&*name) || off_cpu <= blocked * 1.02 + edges(&outcome), "{said}");
        }
        let leaves = |stack: &[String]| ["[off-cpu]", "[runnable]"].contains(&&**stack.last().unwrap());
        assert!(profile.0.iter().all(|(stack, _)| leaves(stack)), "{profile:?}");
        // Of its own blocks: those of the others take as long as the machine makes them.
        let (read, all) = (["pipe", "work", "vfs_read", "schedule", "[off-cpu]"], ["pipe", "[off-cpu]"]);
        assert!(weight(&profile, &read) >= weight(&profile, &all) * 0.8, "{profile:?}");
        assert!(weight(&profile, &["__schedule"]) == 0.0, "{profile:?}");
    }

    #[test]
    fn the_other_way_tells_the_same_of_the_same_waits() {
        let Some(waits) = waits() else { return };
        let mut process = Command::new(&waits);
        let process = Background::start(process.arg("for-ever"));
        let record = |way: &[&str]| {
            let mut command = recorder(["--off-cpu", "-d", "500ms", "-p", &process.pid()]);
            Folded::of(&end(command.args(way).spawn().unwrap()).ok())
        };
        let (ours, theirs) = (record(&["--bpf"]), record(&["--call-graph", "fp"]));
        let stacks = |profile: &Folded| {
            let mut stacks: Vec<_> =
                profile.0.iter().filter(|(_, weight)| *weight > 200_000).map(|s| s.0.clone()).collect();
            stacks.sort_unstable();
            stacks
        };
        assert_eq!((stacks(&ours), stacks(&ours).len()), (stacks(&theirs), 1));
    }

    #[test]
    fn processes_threads_and_the_whole_system_are_recorded() {
        let Some(waits) = waits() else { return };
        let process = Background::start(Command::new(&waits).arg("for-ever"));
        std::thread::sleep(Duration::from_millis(50));
        for target in [&["-p", &*process.pid()][..], &["-t", &*process.pid()], &["-a"]] {
            let mut command = recorder(["--off-cpu", "--bpf", "-d", "1.5", "--no-inline"]);
            let outcome = end(command.args(target).spawn().unwrap()).ok();
            let profile = Folded::of(&outcome);
            let slept = weight(&profile, &["waits", "do_nanosleep", "[off-cpu]"]);
            let most = if target == ["-a"] { f64::MAX } else { 2_500_000.0 };
            assert!(slept > 700_000.0 && slept < most, "{slept}: {outcome:?}");
            // Nobody else where nobody else was asked for.
            assert!(target == ["-a"] || of_thread(&profile, "waits") == profile.total() as f64, "{outcome:?}");
        }
    }

    #[test]
    fn what_a_command_starts_is_recorded_and_keeps_its_names_when_it_has_ended() {
        let Some(waits) = waits() else { return };
        let script = format!("for n in 1 2 3 4; do sleep 0.4; done; exec {waits} pingpong 0.1");
        let outcome = record(["--off-cpu", "--bpf", "--", "sh", "-c", &script]).ok();
        let profile = Folded::of(&outcome);
        let slept = weight(&profile, &["sleep", "do_nanosleep", "[off-cpu]"]);
        assert!((1_600_000.0..2_400_000.0).contains(&slept), "{slept}: {outcome:?}");
        // The frame below the kernel's: the C library's, by name.
        profile.assert_share(&["sleep", "clock_nanosleep", "do_nanosleep", "[off-cpu]"], 0.3);
        // The shell's own program, in this process before the last one.
        profile.assert_share(&["sh", "do_wait", "[off-cpu]"], 0.4);
        // However often it came to run in its tenth of a second.
        assert!(weight(&profile, &["pong", "[off-cpu]"]) > 0.0, "{profile:?}");
    }

    #[test]
    fn who_is_still_blocked_at_the_end_counts_up_to_it() {
        let Some(_) = waits() else { return };
        let began = Instant::now();
        let outcome = record(["--off-cpu", "--bpf", "-d", "0.7", "--", "sleep", "20"]);
        let most = began.elapsed().as_micros() as f64;
        let slept = weight(&Folded::of(&outcome), &["sleep", "[off-cpu]"]);
        assert!(slept > 0.5e6 && slept < most, "{slept} of {most}: {outcome:?}");
    }

    #[test]
    fn blocks_of_a_wrong_length_are_left_out() {
        let Some(waits) = waits() else { return };
        let process = Background::start(Command::new(&waits).arg("for-ever"));
        // They last five milliseconds, or longer where the machine is busy.
        for (bound, least, most) in [("--max-block", 0.0, 2000.0), ("--min-block", 100_000.0, 900_000.0)] {
            let outcome = record(["--off-cpu", "--bpf", bound, "2ms", "-d", "300ms", "-p", &process.pid()]).ok();
            let slept = weight(&Folded::of(&outcome), &["do_nanosleep", "[off-cpu]"]);
            assert!((least..=most).contains(&slept), "{bound}: {slept}: {outcome:?}");
        }
    }

    #[test]
    fn the_object_is_what_its_source_makes() {
        if !has("clang-14") || !has("llvm-strip-14") || !Path::new("/usr/include/bpf/bpf_helpers.h").exists() {
            return skip("needs clang-14, llvm-14 and libbpf-dev");
        }
        let folder = directory();
        let built = folder.path().join("off_cpu.bpf.o");
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let status = Command::new(package.join("scripts/build-bpf")).arg(&built).status().unwrap();
        assert!(status.success());
        let ours = package.join("lib/record/off_cpu/bpf/off_cpu.bpf.o");
        assert!(std::fs::read(built).unwrap() == std::fs::read(ours).unwrap(), "run scripts/build-bpf");
    }
}
