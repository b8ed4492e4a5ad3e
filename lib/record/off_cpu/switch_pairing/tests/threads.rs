use super::super::{SwitchEvent, SwitchEventKind, SwitchPairing, TimeSelection};
use super::wakers::waits_of;
use super::{ALL, BLOCK, Totals, WALL, charged, every, expect, totals, woken};
use crate::perf::thread_state::ThreadState;

#[test]
fn a_chain_goes_on_through_a_waker_that_exits() {
    let events = [
        (10, 1, every(1)),
        (10, 1, BLOCK),
        (12, 2, every(2)),
        (12, 2, BLOCK),
        (20, 2, woken(None, 30)),
        (21, 2, SwitchEventKind::In),
        (25, 2, SwitchEventKind::Exited),
        (26, 1, woken(Some(2), 31)),
        (30, 1, SwitchEventKind::In),
    ];
    // What thread 2 did before its first event is not known.
    let expected = [(vec![Some(2), Some(30)], 8), (vec![Some(31)], 6), (vec![Some(31), None], 2)];
    assert_eq!(waits_of(1, 2, &events, 40), expected);
}

#[test]
fn a_thread_that_sleeps_already_is_blocked_from_the_start() {
    let sleeper = [(10, SwitchEventKind::Existing), (15, SwitchEventKind::Asleep(Some(3)))];
    let known = expect([(Some(3), ThreadState::Blocked, 90)]);
    assert_eq!(charged(ALL, true, &sleeper, 100), known);
    assert_eq!(charged(WALL, false, &[&sleeper[..], &[(100, SwitchEventKind::In)]].concat(), 100), known);
    let unknown = [(10, SwitchEventKind::Existing), (15, SwitchEventKind::Asleep(None))];
    assert_eq!(charged(ALL, true, &unknown, 100), expect([(None, ThreadState::Asleep, 90)]));
    // Its own switch tells more.
    let switched =
        [(10, SwitchEventKind::Existing), (12, every(4)), (12, BLOCK), (15, SwitchEventKind::Asleep(Some(3)))];
    assert_eq!(charged(ALL, true, &switched, 100), expect([(Some(4), ThreadState::Blocked, 88)]));
}

#[test]
fn a_thread_that_never_switches_has_run_all_the_time() {
    let events = [(10, SwitchEventKind::Existing), (50, SwitchEventKind::RunSample(3))];
    assert_eq!(charged(WALL, true, &events, 100), expect([(Some(3), ThreadState::Running, 90)]));
}

#[test]
fn other_records_than_switches_may_be_of_threads_outside_of_the_target() {
    let charged = |selection, events: &[(u64, SwitchEventKind)]| {
        let mut pairing = SwitchPairing::new(TimeSelection { by_switches: true, ..selection }, true);
        for (time, kind) in events {
            pairing.add(SwitchEvent { time: *time, tid: 1, kind: *kind });
        }
        pairing.finish(900);
        totals(&mut pairing)
    };
    for selection in [WALL, TimeSelection { latency: true, ..ALL }] {
        for foreign in [SwitchEventKind::Created, SwitchEventKind::Exec] {
            assert_eq!(charged(selection, &[(100, foreign)]), Totals::new());
        }
    }
    // A thread that was created outside enters the target while it is blocked, exits, and has a successor with its ID.
    let events = [
        (100, SwitchEventKind::Created),
        (300, SwitchEventKind::In),
        (310, every(7)),
        (310, BLOCK),
        (350, SwitchEventKind::In),
        (350, SwitchEventKind::Exec),
        (360, SwitchEventKind::Exited),
        (400, SwitchEventKind::Created),
        (500, SwitchEventKind::In),
        (505, every(8)),
        (505, BLOCK),
        (555, SwitchEventKind::In),
        (556, SwitchEventKind::Exited),
    ];
    let expected = expect([
        (None, ThreadState::Unsampled, 10 + 10 + 5 + 1),
        (Some(7), ThreadState::Blocked, 40),
        (Some(8), ThreadState::Blocked, 50),
    ]);
    assert_eq!(charged(WALL, &events), expected);
}
