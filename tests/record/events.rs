//! What is counted, how often, and what is said of it.

use crate::folded::{Folded, may_record, record};
use crate::programs::program;

#[test]
fn the_summary_says_what_was_counted_and_how_often() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["--", &busy, "0.2"]).ok();
    assert!(outcome.stderr.lines().count() <= 5, "{outcome:?}");
    let total = Folded::of(&outcome).total();
    let first = outcome.stderr.lines().find(|line| line.contains("samples of")).unwrap();
    assert!(first.starts_with(&format!("fg-record: {total} samples of c")), "{outcome:?}");
    assert!(first.contains(" at 997 Hz in "), "{outcome:?}");
    let outcome = record(["-F", "199", "--", &busy, "0.3"]).ok();
    assert!(outcome.stderr.contains(" at 199 Hz in "), "{outcome:?}");
    let total = Folded::of(&outcome).total();
    assert!((30..=80).contains(&total), "{outcome:?}");
    let outcome = record(["-d", "100ms", "-p", &std::process::id().to_string()]).ok();
    assert!(outcome.stderr.contains(" at 99 Hz in "), "{outcome:?}");
}

#[test]
fn events_have_perfs_names() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    for event in ["cpu-clock", "task-clock", "page-faults", "minor-faults"] {
        let outcome = record(["-e", event, "-F", "2000", "--", &busy, "0.05"]).ok();
        assert!(outcome.stderr.contains(&format!("of {event} at 2000 Hz")), "{outcome:?}");
        assert!(Folded::of(&outcome).total() > 0, "{outcome:?}");
    }
}

#[test]
fn cycles_are_counted_or_it_is_said_that_they_cannot_be() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["-e", "cycles", "--", &busy, "0.2"]);
    match outcome.status.success() {
        true => Folded::of(&outcome).assert_share(&["busy", "main", "spin", "step"], 0.8),
        false => {
            assert_eq!(outcome.code(), 125, "{outcome:?}");
            assert!(outcome.stderr.contains("cannot count cycles") && outcome.stderr.contains("-e cpu-clock"));
        }
    }
}

#[test]
fn an_unknown_event_is_told_with_those_there_are() {
    let outcome = record(["-e", "cykles", "--", "true"]);
    assert_eq!(outcome.code(), 2, "{outcome:?}");
    assert!(outcome.stderr.starts_with("fg-record: no event is called cykles; known are "), "{outcome:?}");
    assert!(outcome.stderr.contains("cpu-clock") && outcome.stderr.contains("cycles"), "{outcome:?}");
}

#[test]
fn a_frequency_above_the_kernels_limit_is_refused_with_the_limit() {
    if !may_record() {
        return;
    }
    let outcome = record(["-F", "100000000", "--", "true"]);
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert!(outcome.stderr.contains("-F 100000000 is above kernel.perf_event_max_sample_rate="), "{outcome:?}");
}

#[test]
fn a_stack_may_weigh_its_period() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["-e", "cpu-clock", "--weight", "period", "--", &busy, "0.3"]).ok();
    let profile = Folded::of(&outcome);
    profile.assert_share(&["busy", "main", "spin", "step"], 0.8);
    // Nanoseconds on the CPU.
    assert!((200_000_000..600_000_000).contains(&profile.total()), "{outcome:?}");
}
