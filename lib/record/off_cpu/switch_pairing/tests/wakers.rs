use std::collections::BTreeMap;

use super::super::{Charge, SwitchEvent, SwitchEventKind, SwitchPairing, TimeSelection};
use super::{ALL, BLOCK, PREEMPT, any_event, every, some, woken};
use crate::perf::thread_state::ThreadState;
use proptest::prelude::*;

type WakerTotals = BTreeMap<(Option<u32>, ThreadState, Vec<Option<u32>>), u64>;

/// Stands for what follows a chain that was cut.
const CUT: Option<u32> = Some(9999);

/// Returns the charges of events of several threads, with the wakers.
fn charged_with_wakers(
    depth: usize,
    every_switch: bool,
    events: &[(u64, u32, SwitchEventKind)],
    end: u64,
) -> WakerTotals {
    let selection = TimeSelection { waker_depth: Some(depth), ..ALL };
    let mut pairing = SwitchPairing::new(selection, every_switch);
    for (time, tid, kind) in events {
        pairing.add(SwitchEvent { time: *time, tid: *tid, kind: *kind });
    }
    pairing.finish(end);
    let mut totals = WakerTotals::new();
    for Charge { stack, state, wakers, amount, .. } in pairing.take_charges() {
        let mut chain: Vec<_> = pairing.wakers(wakers).collect();
        chain.extend(pairing.is_cut(wakers).then_some(CUT));
        *totals.entry((stack, state, chain)).or_default() += amount.nanoseconds;
    }
    totals
}

#[test]
fn a_block_ends_with_the_last_wake_up_before_the_thread_runs() {
    let events = [
        (5, 1, every(7)),
        (10, 1, BLOCK),
        (40, 1, woken(None, 20)),
        (60, 1, woken(Some(2), 21)),
        (100, 1, SwitchEventKind::In),
        // Without a wake-up, and after one that came before the switch.
        (110, 1, every(8)),
        (110, 1, BLOCK),
        (120, 1, SwitchEventKind::In),
        (128, 1, woken(None, 22)),
        (129, 1, every(9)),
        (130, 1, BLOCK),
        (150, 1, SwitchEventKind::In),
        // Preempted, and blocked until the end.
        (160, 1, every(7)),
        (160, 1, PREEMPT),
        (170, 1, SwitchEventKind::In),
        (180, 1, every(7)),
        (180, 1, BLOCK),
    ];
    let expected = WakerTotals::from([
        // Thread 2 is not recorded.
        ((Some(7), ThreadState::Blocked, vec![Some(21), None]), 50),
        ((Some(7), ThreadState::Runnable, vec![]), 40 + 10),
        ((Some(8), ThreadState::Blocked, vec![None]), 10),
        ((Some(9), ThreadState::Blocked, vec![Some(22)]), 0),
        ((Some(9), ThreadState::Runnable, vec![]), 20),
        ((Some(7), ThreadState::Blocked, vec![]), 20),
    ]);
    assert_eq!(charged_with_wakers(3, true, &events, 200), expected);
}

#[test]
fn what_a_thread_waits_for_when_its_process_ends_has_not_ended() {
    let events = [
        (10, 1, every(7)),
        (10, 1, BLOCK),
        (40, 1, woken(None, 20)),
        (60, 1, SwitchEventKind::Killed),
        (70, 1, SwitchEventKind::In),
    ];
    let expected = WakerTotals::from([
        ((Some(7), ThreadState::Blocked, vec![]), 50),
        ((Some(7), ThreadState::Runnable, vec![]), 10),
    ]);
    assert_eq!(charged_with_wakers(3, true, &events, 200), expected);
}

/// Returns the parts of the waits with a stack, by chain, for chains of at most `depth` wakers.
pub(super) fn waits_of(
    stack: u32,
    depth: usize,
    events: &[(u64, u32, SwitchEventKind)],
    end: u64,
) -> Vec<(Vec<Option<u32>>, u64)> {
    let charged = charged_with_wakers(depth, true, events, end);
    let waits = charged.into_iter().filter(|((of, state, _), _)| (*of, *state) == (Some(stack), ThreadState::Blocked));
    let mut waits: Vec<_> = waits.map(|((_, _, chain), time)| (chain, time)).collect();
    waits.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    waits
}

/// Returns the events of a thread that is blocked with its own number as stack, and is woken with another stack.
fn wait(tid: u32, start: u64, end: u64, waker: Option<u32>, stack: u32) -> [(u64, u32, SwitchEventKind); 4] {
    [(start, tid, every(tid)), (start, tid, BLOCK), (end, tid, woken(waker, stack)), (end, tid, SwitchEventKind::In)]
}

fn in_order(parts: &[&[(u64, u32, SwitchEventKind)]]) -> Vec<(u64, u32, SwitchEventKind)> {
    let mut events: Vec<_> = [(0, 1), (0, 2), (0, 3)].map(|(time, tid)| (time, tid, SwitchEventKind::In)).into();
    events.extend(parts.concat());
    events.sort_by_key(|(time, ..)| *time);
    events
}

#[test]
fn a_wait_is_divided_among_what_its_waker_did() {
    // Thread 1 waits for 2 from 100 to 1000. Thread 2 sleeps from 50 to 150, waits for 3 from 200 to 600, and works. Thread 3
    // sleeps from 100 to 500.
    let events = in_order(&[
        &wait(1, 100, 1000, Some(2), 12),
        &wait(2, 50, 150, None, 90),
        &wait(2, 200, 600, Some(3), 13),
        &wait(3, 100, 500, None, 91),
        // Later than the wait.
        &wait(2, 1010, 1020, None, 92),
    ]);
    let expected = [
        (vec![Some(12)], 50 + 400),
        (vec![Some(2), Some(3), Some(91)], 300),
        (vec![Some(2), Some(13)], 100),
        (vec![Some(2), Some(90)], 50),
    ];
    assert_eq!(waits_of(1, 3, &events, 2000), expected);
    // A chain that is too long ends where the last thread was blocked itself.
    let cut = (vec![Some(2), Some(3), CUT], 300);
    let expected = [(vec![Some(12)], 450), cut, (vec![Some(2), Some(13)], 100), (vec![Some(2), Some(90)], 50)];
    assert_eq!(waits_of(1, 2, &events, 2000), expected);
    assert_eq!(waits_of(1, 1, &events, 2000), [(vec![Some(12)], 900)]);
}

#[test]
fn what_is_not_known_of_a_waker_is_not_guessed() {
    // Thread 7 is not recorded.
    assert_eq!(waits_of(1, 3, &in_order(&[&wait(1, 100, 200, Some(7), 17)]), 900), [(vec![Some(17), None], 100)]);
    // Nobody was seen to wake thread 2, whose stack is missing the second time.
    let events = in_order(&[
        &wait(1, 100, 200, Some(2), 12),
        &[(110, 2, every(2)), (110, 2, BLOCK), (140, 2, SwitchEventKind::In)],
        &[(150, 2, BLOCK), (160, 2, SwitchEventKind::In)],
    ]);
    let expected = [(vec![Some(12)], 60), (vec![Some(2), None], 30), (vec![Some(12), None], 10)];
    assert_eq!(waits_of(1, 2, &events, 900), expected);
    // The switch-out before time 150 was lost.
    let events =
        in_order(&[&wait(1, 100, 200, Some(2), 12), &wait(2, 110, 120, None, 90), &[(150, 2, SwitchEventKind::In)]]);
    let expected = [(vec![Some(12)], 60), (vec![Some(12), None], 30), (vec![Some(2), Some(90)], 10)];
    assert_eq!(waits_of(1, 2, &events, 900), expected);
}

#[test]
fn blocks_without_a_stack_share_the_wakers_of_similar_ones() {
    let mut events = Vec::new();
    for round in 0..10 {
        let start = round * 1000;
        if round == 3 {
            events.extend([(start, 1, some(7)), (start, 1, BLOCK), (start + 75, 1, woken(Some(2), 20))]);
        } else {
            events.push((start, 1, BLOCK));
        }
        events.push((start + 100, 1, SwitchEventKind::In));
    }
    let expected = WakerTotals::from([
        ((Some(7), ThreadState::Blocked, vec![Some(20)]), 750),
        ((Some(7), ThreadState::Runnable, vec![]), 250),
    ]);
    assert_eq!(charged_with_wakers(1, false, &events, 20_000), expected);
}

proptest! {
    #[test]
    fn the_parts_of_waits_add_up(steps in prop::collection::vec(any_event(), 0..300), depth in 2..6usize) {
        let charged = |depth| {
            let mut pairing = SwitchPairing::new(TimeSelection { waker_depth: Some(depth), ..ALL }, true);
            let mut time = 0;
            for (pause, tid, kind) in &steps {
                time += pause;
                pairing.add(SwitchEvent { time, tid: *tid, kind: *kind });
            }
            pairing.finish(time);
            let mut sums = BTreeMap::new();
            for Charge { tid, time, stack, state, amount, wakers, .. } in pairing.take_charges() {
                assert!(pairing.wakers(wakers).count() <= depth);
                let sum: &mut (u64, u64) = sums.entry((tid, time, stack, state)).or_default();
                *sum = (sum.0 + amount.count, sum.1 + amount.nanoseconds);
            }
            sums
        };
        // Counts and nanoseconds of each block.
        prop_assert_eq!(charged(depth), charged(1));
    }
}
