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
