//! Switches as off-CPU time, and directories of `perf record`.

use super::collapse;
use super::handmade::{Handmade, comm, sample, switch_sample};
use crate::support::directory;

#[test]
fn reads_switches_as_off_cpu_time() {
    let folder = directory();
    let mut file = Handmade::with_tracepoint("sched:sched_switch");
    file.push(&comm(7, 7, 1_000, "a"));
    file.push(&comm(8, 8, 1_000, "b"));
    // a sleeps for 2.5 µs, b is preempted for 1 µs, and a waits until the last switch.
    file.push(&switch_sample(7, 2_000, 1, 8));
    file.push(&switch_sample(8, 3_500, 0x100, 0));
    file.push(&switch_sample(0, 4_500, 0, 8));
    file.push(&switch_sample(8, 4_500, 1, 7));
    file.push(&switch_sample(7, 5_000, 2, 0));
    file.push(&switch_sample(0, 6_000, 0, 9));
    file.push(&switch_sample(9, 9_000, 0x10, 0));
    let path = file.write(folder.path());
    let expected = "a;[unknown];[off-cpu] 6.5\nb;[unknown];[off-cpu] 4.5\nb;[unknown];[runnable] 1\n";
    assert_eq!(collapse(&path, &["--format=perf-sched"]).ok().text(), expected);
    assert_eq!(collapse(&path, &["--weight=samples"]).ok().text().lines().count(), 4, "without --format: switches");
}

/// Makes a recording in which thread 7 waits 2.5 µs and then 1.5 µs, and thread 8 3 µs on another CPU.
fn waits_of_two_threads() -> Handmade {
    let mut file = Handmade::with_tracepoint("sched:sched_switch");
    file.push(&comm(7, 7, 1_000, "a"));
    file.push(&comm(8, 8, 1_000, "b"));
    for (thread, time, state, next) in
        [(7, 2_000, 1, 0), (8, 3_000, 1, 0), (0, 4_500, 0, 7), (0, 6_000, 0, 8), (7, 7_500, 1, 0), (0, 9_000, 0, 7)]
    {
        file.push(&switch_sample(thread, time, state, next));
    }
    file
}

#[test]
fn selects_waits_by_their_beginning() {
    let folder = directory();
    let path = waits_of_two_threads().write(folder.path());
    let text = "a 7/7 [000] 0.000002000: sched:sched_switch: a:7 [120] S ==> swapper/0:0 [120]\n\
                b 8/8 [000] 0.000003000: sched:sched_switch: b:8 [120] S ==> swapper/0:0 [120]\n\
                swapper 0/0 [000] 0.000004500: sched:sched_switch: swapper/0:0 [120] R ==> a:7 [120]\n\
                swapper 0/0 [000] 0.000006000: sched:sched_switch: swapper/0:0 [120] R ==> b:8 [120]\n\
                a 7/7 [000] 0.000007500: sched:sched_switch: a:7 [120] S ==> swapper/0:0 [120]\n\
                swapper 0/0 [000] 0.000009000: sched:sched_switch: swapper/0:0 [120] R ==> a:7 [120]\n";
    let script = folder.path().join("switches.txt");
    std::fs::write(&script, text).unwrap();
    let spans = folder.path().join("spans").to_str().unwrap().to_owned();
    std::fs::write(&spans, "{\"name\":\"work\",\"tid\":7,\"start\":1000,\"end\":5000}\n").unwrap();
    for (options, expected) in [
        (&[][..], "a;[off-cpu] 4\nb;[off-cpu] 3\n"),
        (&["--weight=samples"], "a;[off-cpu] 2\nb;[off-cpu] 1\n"),
        (&["--event=sched:sched_switch", "-t8"], "b;[off-cpu] 3\n"),
        (&["-p7", "--tid"], "a-7/7;[off-cpu] 4\n"),
        (&["--comm=b", "--cpu=0"], "b;[off-cpu] 3\n"),
        (&["--cpu=1"], ""),
        (&["--time=+0.000005,+1"], "a;[off-cpu] 1.5\n"),
        (&["--in-order"], "a;[off-cpu] 2.5\nb;[off-cpu] 3\na;[off-cpu] 1.5\n"),
        (&["--span", &spans], "[no span];a;[off-cpu] 1.5\n[no span];b;[off-cpu] 3\nwork;a;[off-cpu] 2.5\n"),
    ] {
        let options = [&["--format=perf-sched"], options].concat();
        for file in [&path, &script] {
            let folded = collapse(file, &options).ok();
            let mut lines: Vec<String> =
                folded.text().lines().map(|line| line.replace("[unknown];", "") + "\n").collect();
            if options.contains(&"--in-order") && file == &script {
                // Text is read as it comes: a wait is added at its end.
                lines.sort_by_key(|line| line.contains("1.5"));
            }
            assert_eq!(lines.concat(), expected, "{file:?} {options:?}: {}", folded.stderr);
            assert!(!folded.stderr.contains("no effect"), "{}", folded.stderr);
        }
    }
    for event in ["sched:sched_wakeup", "all"] {
        let refused = collapse(&path, &["--format=perf-sched", "--event", event]);
        assert!(refused.code() == 2 || refused.code() == 1, "{refused:?}");
        assert!(refused.stderr.contains("reads the waits between samples of sched:sched_switch only"), "{refused:?}");
    }
}

#[test]
fn recognizes_switches_of_a_file_without_the_names_of_events() {
    let folder = directory();
    let file = waits_of_two_threads();
    let path = folder.path().join("cut.data");
    let whole = file.bytes();
    // The names come last.
    std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    let folded = collapse(&path, &["--format=perf-sched"]).ok();
    assert_eq!(folded.text(), "a;[unknown];[off-cpu] 4\nb;[unknown];[off-cpu] 3\n");
    assert!(folded.stderr.contains("cut short after its records: names may be missing"), "{}", folded.stderr);
    let all = u64::from_le_bytes(whole[48..56].try_into().unwrap());
    std::fs::write(&path, &whole[..whole.len() - 500]).unwrap();
    let folded = collapse(&path, &["--format=perf-sched"]).ok();
    assert!(folded.text().starts_with("a;[unknown];[off-cpu] 2.5\n"), "{folded:?}");
    assert!(folded.stderr.contains(&format!(" of {all} bytes of records")), "{}", folded.stderr);
}

#[test]
fn says_what_switches_lack() {
    let folder = directory();
    let mut file = Handmade::with_tracepoint("sched:sched_switch");
    file.push(&switch_sample(7, 2_000, 1, 8));
    file.push(&switch_sample(7, 3_000, 1, 8));
    file.push(&switch_sample(7, 4_000, 1, 8)[..80].iter().copied().chain([0; 8]).collect::<Vec<_>>());
    let path = file.write(folder.path());
    let folded = collapse(&path, &["--format=perf-sched"]);
    assert!(folded.stderr.contains("left out 1 of 1 waits"), "{folded:?}");
    let mut other = Handmade::with_tracepoint("sched:sched_wakeup");
    other.push(&switch_sample(7, 2_000, 1, 8));
    let other = collapse(&other.write(folder.path()), &["--format=perf-sched"]);
    assert!(other.stderr.contains("no samples of sched:sched_switch"), "{other:?}");
}

#[test]
fn reads_a_directory_of_perf_record() {
    let folder = directory();
    let mut file = Handmade::default();
    file.push(&comm(7, 7, 5, "early"));
    let first = [sample(7, 7, 30, 0, 100), sample(7, 7, 50, 0, 10)].concat();
    // The name is in another file than the sample.
    let second = [sample(7, 7, 10, 0, 100), comm(7, 7, 20, "late")].concat();
    let path = file.write_directory(folder.path(), &[&first, &second]);
    assert_eq!(collapse(&path, &[]).ok().text(), "early;[unknown] 100\nlate;[unknown] 110\n");
    let cut = file.write_directory(&directory().keep(), &[&first, &second[..30]]);
    assert!(collapse(&cut, &[]).stderr.contains("cut short"), "{cut:?}");
}
