//! Paths of threads with known events.

use proptest::prelude::*;

use super::thread_log::{Activity, BlockEnd};
use super::walk::walk;
use super::{Life, PathCharge, PathThread, ThreadLogs};
use crate::perf::thread_state::ThreadState;
use crate::record::off_cpu::switch_event::{SwitchEvent, SwitchEventKind, SwitchStack};
use crate::record::off_cpu::waker_chains::Waking;

const OUT: SwitchEventKind = SwitchEventKind::Out { preempted: false, selected: true };
const PREEMPTED: SwitchEventKind = SwitchEventKind::Out { preempted: true, selected: true };
const IN: SwitchEventKind = SwitchEventKind::In;

fn stack(stack: u32) -> SwitchEventKind {
    SwitchEventKind::SwitchSample(SwitchStack { stack, from_every_switch: true })
}

/// Returns a wake-up by a thread, or by an interrupt, with the stack 99.
fn woken(waker: Option<u32>) -> SwitchEventKind {
    SwitchEventKind::Woken(Waking { waker, stack: 99 })
}

fn logs(events: &[(u64, u32, SwitchEventKind)]) -> ThreadLogs {
    let mut logs = ThreadLogs::default();
    events.iter().for_each(|(time, tid, kind)| logs.add(SwitchEvent { time: *time, tid: *tid, kind: *kind }));
    logs
}

/// Returns the parts of a path, the last one first: thread, start, end and activity.
fn path(logs: &ThreadLogs, tid: u32, end: u64) -> Vec<(u32, u64, u64, Activity)> {
    let mut parts = Vec::new();
    walk(logs, tid, 0..end, |part, _| parts.push((part.tid, part.time.start, part.time.end, part.activity)));
    parts
}

/// Returns the charges of the path of thread 1.
fn charge_path(logs: &ThreadLogs, start: u64, end: u64) -> Vec<PathCharge> {
    logs.charge_path(logs.life_at(1, end, end).unwrap(), start)
}

#[test]
fn follows_the_thread_that_took_longest() {
    // Thread 1 creates 2 and 3, and joins 2, which takes 100, and then 3, which takes 300.
    let mut logs = ThreadLogs::default();
    logs.add_creation(10, 2, 1);
    logs.add_creation(11, 3, 1);
    for (time, tid, kind) in [
        (0, 1, SwitchEventKind::Exec),
        (10, 2, SwitchEventKind::Created),
        (11, 3, SwitchEventKind::Created),
        (12, 2, IN),
        (13, 3, IN),
        (20, 1, stack(5)),
        (20, 1, OUT),
        (110, 2, SwitchEventKind::Exited),
        (111, 1, woken(Some(2))),
        (112, 2, OUT),
        (113, 1, IN),
        (114, 1, stack(6)),
        (114, 1, OUT),
        (310, 3, SwitchEventKind::Exited),
        (311, 1, woken(Some(3))),
        (312, 3, OUT),
        (315, 1, IN),
    ] {
        logs.add(SwitchEvent { time, tid, kind });
    }
    let expected = [
        (1, 315, 320, Activity::Running),
        (1, 311, 315, Activity::Runnable(Some(6))),
        (3, 13, 311, Activity::Running),
        (3, 11, 13, Activity::Runnable(None)),
        (1, 0, 11, Activity::Running),
    ];
    assert_eq!(path(&logs, 1, 320), expected);
    let charges = charge_path(&logs, 0, 320);
    assert_eq!(charges.iter().map(|charge| charge.amount.nanoseconds).sum::<u64>(), 320);
}

#[test]
fn stays_where_an_interrupt_or_an_unknown_thread_ended_a_block() {
    for (waker, expected) in [(None, 99), (Some(77), 99)] {
        let waking = Waking { waker, stack: expected };
        let events = [(0, 1, IN), (10, 1, stack(5)), (10, 1, OUT), (30, 1, woken(waker)), (32, 1, IN)];
        let expected = [
            (1, 32, 40, Activity::Running),
            (1, 30, 32, Activity::Runnable(Some(5))),
            (1, 10, 30, Activity::Blocked(Some(5), BlockEnd::Woken(waking))),
            (1, 0, 10, Activity::Running),
        ];
        assert_eq!(path(&logs(&events), 1, 40), expected);
    }
}

#[test]
fn a_wait_for_a_thread_that_began_meanwhile_is_that_of_the_waiter() {
    // Who created thread 2 is not known.
    let events =
        [(0, 1, IN), (10, 1, stack(5)), (10, 1, OUT), (20, 2, IN), (30, 1, woken(Some(2))), (30, 1, IN), (31, 2, OUT)];
    let expected = [
        (1, 30, 40, Activity::Running),
        (2, 20, 30, Activity::Running),
        (1, 10, 20, Activity::Blocked(Some(5), BlockEnd::Unseen)),
        (1, 0, 10, Activity::Running),
    ];
    assert_eq!(path(&logs(&events), 1, 40), expected);
}

#[test]
fn threads_that_wake_each_other_at_one_instant_end() {
    let (one, two) = (woken(Some(2)), woken(Some(1)));
    let events =
        [(0, 1, IN), (0, 2, IN), (10, 1, OUT), (10, 2, OUT), (20, 1, one), (20, 2, two), (20, 1, IN), (20, 2, IN)];
    let parts = path(&logs(&events), 1, 30);
    assert_eq!(parts.iter().map(|(_, start, end, _)| end - start).sum::<u64>(), 30);
}

#[test]
fn divides_running_time_among_the_samples_on_the_path() {
    let sample = SwitchEventKind::RunSample;
    let events = [
        (0, 1, IN),
        (1, 1, sample(7)),
        (2, 1, sample(8)),
        (3, 1, sample(7)),
        (10, 1, OUT),
        // On another path.
        (10, 2, IN),
        (11, 2, sample(9)),
    ];
    let charges = charge_path(&logs(&events), 0, 10);
    let running: Vec<_> = charges
        .iter()
        .map(|charge| (charge.stack, charge.state, charge.amount.count, charge.amount.nanoseconds))
        .collect();
    assert_eq!(running, [(Some(7), ThreadState::Running, 2, 6), (Some(8), ThreadState::Running, 1, 4)]);
}

#[test]
fn forgets_the_older_half_of_too_many_steps() {
    let mut logs = ThreadLogs { max_entries: 100, ..ThreadLogs::default() };
    for time in 0..150 {
        logs.add(SwitchEvent { time, tid: 1, kind: if time % 2 == 0 { IN } else { OUT } });
        assert!(logs.entries <= 100);
    }
    let known_since = logs.forgotten_since(0);
    assert!((50..101).contains(&known_since), "{known_since}");
    let charges = charge_path(&logs, 0, 150);
    assert_eq!(charges.iter().map(|charge| charge.amount.nanoseconds).sum::<u64>(), 150);
    assert!(charges.iter().any(|charge| charge.amount.nanoseconds == known_since && charge.waker == Some(None)));
}

#[test]
fn threads_are_named_by_words_and_numbers() {
    let parse = |text: &str| text.parse::<PathThread>().unwrap();
    assert_eq!([parse("main"), parse("12")], [PathThread::Main, PathThread::Id(12)]);
    assert_eq!(parse("render"), PathThread::Named(b"render".to_vec()));
    assert_eq!(
        [parse("spans:a/b"), parse("spans:")],
        [PathThread::Spans("a/b".into()), PathThread::Named(b"spans:".to_vec())]
    );
}

#[test]
fn names_may_be_longer_than_those_of_the_kernel_or_as_printed() {
    let is_named = |wanted: &str, name: &str| wanted.parse::<PathThread>().unwrap().is_named(name.as_bytes());
    for wanted in ["C1 CompilerThread0", "C1_CompilerThread0", "C1 CompilerThre", "C1_CompilerThre"] {
        assert!(is_named(wanted, "C1 CompilerThre"), "{wanted}");
    }
    assert!(!is_named("C1 Compiler", "C1 CompilerThre") && !is_named("main", "main"));
}

#[test]
fn a_block_without_an_end_is_told_from_others() {
    let events = [(0, 1, IN), (10, 1, stack(5)), (10, 1, OUT)];
    let open = logs(&events);
    let life = open.life_at(1, 40, 40).unwrap();
    assert_eq!(life, Life { tid: 1, begin: 0, end: 40 });
    assert_eq!(open.last_block(life), Some(30));
    let over = logs(&[&events[..], &[(30, 1, woken(None)), (32, 1, IN)]].concat());
    assert_eq!(over.last_block(life), None);
    let mut woken_only = logs(&[&events[..], &[(30, 1, woken(None))]].concat());
    woken_only.finish(40);
    assert_eq!(woken_only.last_block(life), None);
    let parts = [
        (1, 30, 40, Activity::Runnable(Some(5))),
        (1, 10, 30, Activity::Blocked(Some(5), BlockEnd::Woken(Waking { waker: None, stack: 99 }))),
    ];
    assert_eq!(path(&woken_only, 1, 40)[..2], parts);
}

/// Returns an event of one of four threads, which may wake each other.
fn any_event() -> impl Strategy<Value = (u64, u32, SwitchEventKind)> {
    let kind = prop_oneof![
        Just(OUT),
        Just(IN),
        Just(PREEMPTED),
        Just(SwitchEventKind::Created),
        Just(SwitchEventKind::Existing),
        Just(SwitchEventKind::Exited),
        (0..4u32).prop_map(stack),
        (0..4u32).prop_map(SwitchEventKind::RunSample),
        prop::option::of(0..4u32).prop_map(woken),
    ];
    (0..3u64, 0..4u32, kind)
}

proptest! {
    #[test]
    fn parts_fill_the_elapsed_time(events in prop::collection::vec(any_event(), 0..60), start in 0..30u64) {
        let (mut logs, mut time) = (ThreadLogs::default(), 0);
        for (delay, tid, kind) in events {
            time += delay;
            if kind == SwitchEventKind::Created {
                logs.add_creation(time, tid, (tid + 1) % 4);
            }
            logs.add(SwitchEvent { time, tid, kind });
        }
        let end = time + 5;
        logs.finish(end);
        let mut before = end;
        walk(&logs, 1, start..end, |part, _| {
            assert_eq!(part.time.end, before);
            assert!(part.time.start < part.time.end);
            before = part.time.start;
        });
        prop_assert_eq!(before, start.min(end));
        if let Some(life) = logs.life_at(1, end, end) {
            let charges = logs.charge_path(life, start);
            let elapsed = life.end.saturating_sub(start.max(life.begin));
            prop_assert_eq!(charges.iter().map(|charge| charge.amount.nanoseconds).sum::<u64>(), elapsed);
            // So do the parts between bounds.
            let begin = start.max(life.begin).min(life.end);
            let bounds = [begin + elapsed / 3, begin + elapsed / 2, life.end + 1];
            let parts = logs.charge_path_by_time(life, start, &bounds);
            let sums = parts.iter().map(|charges| charges.iter().map(|charge| charge.amount.nanoseconds).sum::<u64>());
            let lengths = [elapsed / 3, elapsed / 2 - elapsed / 3, elapsed - elapsed / 2, 0];
            prop_assert_eq!(sums.collect::<Vec<u64>>(), lengths);
        }
    }
}
