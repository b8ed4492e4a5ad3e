mod slices;
mod threads;
mod wakers;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{SwitchEvent, SwitchEventKind, SwitchPairing, SwitchStack, TimeSelection};
use crate::perf::thread_state::ThreadState;
use crate::record::off_cpu::waker_chains::Waking;

const ALL: TimeSelection = TimeSelection {
    wall: false,
    latency: false,
    min_block: 0,
    max_block: u64::MAX,
    waker_depth: None,
    by_switches: false,
};
const WALL: TimeSelection = TimeSelection { wall: true, ..ALL };
/// The stack of a long block that began at 0.
const BLOCK_STACK: SwitchEventKind = SwitchEventKind::BlockStack { since: 0, stack: 1 };
const BLOCK: SwitchEventKind = SwitchEventKind::Out { preempted: false, selected: true };
const PREEMPT: SwitchEventKind = SwitchEventKind::Out { preempted: true, selected: true };

/// A sample of a stack at a switch.
const fn sample(stack: u32, from_every_switch: bool) -> SwitchEventKind {
    SwitchEventKind::SwitchSample(SwitchStack { stack, from_every_switch })
}

/// A sample of the counter that samples every switch.
const fn every(stack: u32) -> SwitchEventKind {
    sample(stack, true)
}

/// A sample of the counter that samples some switches.
const fn some(stack: u32) -> SwitchEventKind {
    sample(stack, false)
}

/// A wake-up by a thread, or by an interrupt.
const fn woken(waker: Option<u32>, stack: u32) -> SwitchEventKind {
    SwitchEventKind::Woken(Waking { waker, stack })
}

type Totals = BTreeMap<(Option<u32>, ThreadState), u64>;

fn totals(pairing: &mut SwitchPairing) -> Totals {
    let mut totals = Totals::new();
    for charge in pairing.take_charges() {
        *totals.entry((charge.stack, charge.state)).or_default() += charge.amount.nanoseconds;
    }
    totals
}

/// Returns the charges of a thread with these events, when the recording ends at `end`.
fn charged(selection: TimeSelection, every_switch: bool, events: &[(u64, SwitchEventKind)], end: u64) -> Totals {
    let mut pairing = SwitchPairing::new(selection, every_switch);
    for (time, kind) in events {
        pairing.add(SwitchEvent { time: *time, tid: 1, kind: *kind });
    }
    pairing.finish(end);
    totals(&mut pairing)
}

fn expect<const N: usize>(expected: [(Option<u32>, ThreadState, u64); N]) -> Totals {
    expected.into_iter().map(|(stack, state, nanoseconds)| ((stack, state), nanoseconds)).collect()
}

#[test]
fn charges_blocks_and_preemptions_from_switch_out_to_switch_in() {
    let events = [
        (10, every(7)),
        (11, BLOCK),
        (111, SwitchEventKind::In),
        (200, every(8)),
        (201, PREEMPT),
        (231, SwitchEventKind::In),
    ];
    let expected = expect([(Some(7), ThreadState::Blocked, 100), (Some(8), ThreadState::Runnable, 30)]);
    assert_eq!(charged(ALL, true, &events, 300), expected);
}

#[test]
fn charges_a_block_that_lasts_until_the_end() {
    assert_eq!(charged(ALL, true, &[(10, every(7)), (11, BLOCK)], 500), expect([(Some(7), ThreadState::Blocked, 489)]));
}

#[test]
fn leaves_out_blocks_that_are_too_short_or_too_long() {
    let events = [
        (0, every(1)),
        (0, BLOCK),
        (10, SwitchEventKind::In),
        (10, every(2)),
        (10, BLOCK),
        (110, SwitchEventKind::In),
        (110, every(3)),
        (110, BLOCK),
        (1110, SwitchEventKind::In),
    ];
    let selection = TimeSelection { min_block: 11, max_block: 999, ..ALL };
    assert_eq!(charged(selection, true, &events, 2000), expect([(Some(2), ThreadState::Blocked, 100)]));
}

#[test]
fn leaves_out_blocks_that_begin_on_other_cpus() {
    let elsewhere = SwitchEventKind::Out { preempted: false, selected: false };
    let events = [
        (0, every(1)),
        (0, elsewhere),
        (10, SwitchEventKind::In),
        (20, every(2)),
        (20, BLOCK),
        (25, SwitchEventKind::In),
    ];
    assert_eq!(charged(ALL, true, &events, 50), expect([(Some(2), ThreadState::Blocked, 5)]));
}

#[test]
fn charges_earlier_sleep_only_with_wall_time() {
    let events = [(100, SwitchEventKind::Existing), (150, SwitchEventKind::In), (180, every(1)), (180, BLOCK)];
    assert_eq!(charged(ALL, true, &events, 200), expect([(Some(1), ThreadState::Blocked, 20)]));
    let expected = expect([
        (None, ThreadState::Asleep, 50),
        (None, ThreadState::Unsampled, 30),
        (Some(1), ThreadState::Blocked, 20),
    ]);
    assert_eq!(charged(WALL, true, &events, 200), expected);
    assert_eq!(
        charged(WALL, true, &[(100, SwitchEventKind::Existing)], 200),
        expect([(None, ThreadState::Asleep, 100)])
    );
}

#[test]
fn shares_run_time_among_its_samples() {
    let events = [
        (0, SwitchEventKind::Exec),
        (10, SwitchEventKind::RunSample(1)),
        (20, SwitchEventKind::RunSample(1)),
        (30, SwitchEventKind::RunSample(2)),
        (90, SwitchEventKind::Exited),
    ];
    let expected = expect([(Some(1), ThreadState::Running, 60), (Some(2), ThreadState::Running, 30)]);
    assert_eq!(charged(WALL, true, &events, 1000), expected);
}

#[test]
fn charges_a_new_thread_as_runnable_and_ignores_events_after_its_exit() {
    let events = [
        (10, SwitchEventKind::Created),
        (15, SwitchEventKind::In),
        (25, SwitchEventKind::Exited),
        (26, every(9)),
        (27, BLOCK),
    ];
    let expected = expect([(None, ThreadState::Runnable, 5), (None, ThreadState::Unsampled, 10)]);
    assert_eq!(charged(WALL, true, &events, 1000), expected);
}

#[test]
fn a_thread_id_may_be_reused() {
    let events = [
        (0, SwitchEventKind::Created),
        (0, SwitchEventKind::In),
        (10, SwitchEventKind::Exited),
        (50, SwitchEventKind::Created),
        (50, SwitchEventKind::In),
        (60, every(1)),
        (60, BLOCK),
        (80, SwitchEventKind::In),
    ];
    let expected = expect([
        (None, ThreadState::Runnable, 0),
        (None, ThreadState::Unsampled, 30),
        (Some(1), ThreadState::Blocked, 20),
    ]);
    assert_eq!(charged(WALL, true, &events, 90), expected);
}

#[test]
fn a_long_block_is_not_charged_to_the_stacks_of_short_ones() {
    let mut events = Vec::new();
    for round in 0..100 {
        let time = round * 20;
        if round % 10 == 0 {
            events.push((time, some(1)));
        }
        events.extend([(time, BLOCK), (time + 10, SwitchEventKind::In)]);
    }
    events.extend([(2000, BLOCK), (1_002_000, SwitchEventKind::In)]);
    let expected = expect([(Some(1), ThreadState::Blocked, 1000), (None, ThreadState::UnsampledBlocked, 1_000_000)]);
    assert_eq!(charged(ALL, false, &events, 1_002_000), expected);
}

#[test]
fn a_block_without_a_stack_is_charged_to_stacks_of_similar_blocks() {
    let events = [
        (0, some(1)),
        (0, BLOCK),
        (100, SwitchEventKind::In),
        (100, BLOCK),
        (1000, SwitchEventKind::In),
        (1000, some(2)),
        (1000, PREEMPT),
        (2000, SwitchEventKind::In),
    ];
    let expected = expect([(Some(1), ThreadState::Blocked, 1000), (Some(2), ThreadState::Runnable, 1000)]);
    assert_eq!(charged(ALL, false, &events, 2000), expected);
}

#[test]
fn prefers_the_counter_that_samples_every_switch() {
    for pair in [[every(1), some(2)], [some(2), every(1)]] {
        let events = [(0, pair[0]), (0, pair[1]), (0, BLOCK), (9, SwitchEventKind::In)];
        assert_eq!(charged(ALL, false, &events, 9), expect([(Some(1), ThreadState::Blocked, 9)]));
    }
}

#[test]
fn a_long_block_gets_its_stack_when_it_ends() {
    let events = [(0, BLOCK), (8, BLOCK_STACK), (9, SwitchEventKind::In)];
    assert_eq!(charged(ALL, false, &events, 9), expect([(Some(1), ThreadState::Blocked, 9)]));
    // It is another block.
    let late = 10 * super::MAX_CLOCK_DIFFERENCE_NS;
    let events = [(late, BLOCK), (late + 8, BLOCK_STACK), (late + 9, SwitchEventKind::In)];
    assert_eq!(charged(ALL, false, &events, late + 9), expect([(None, ThreadState::UnsampledBlocked, 9)]));
    // It has one already, or is over.
    let events = [(0, some(2)), (0, BLOCK), (8, BLOCK_STACK), (9, SwitchEventKind::In)];
    assert_eq!(charged(ALL, false, &events, 9), expect([(Some(2), ThreadState::Blocked, 9)]));
    let events = [(0, BLOCK), (9, SwitchEventKind::In), (9, BLOCK_STACK)];
    assert_eq!(charged(ALL, false, &events, 9), expect([(None, ThreadState::UnsampledBlocked, 9)]));
}

#[test]
fn charges_lost_records_as_lost() {
    // The sample of a switch is lost.
    let events = [(0, BLOCK), (9, SwitchEventKind::In)];
    assert_eq!(charged(ALL, true, &events, 9), expect([(None, ThreadState::Lost, 9)]));
    // A switch-in is lost.
    let events = [(0, every(1)), (0, BLOCK), (9, every(2)), (9, BLOCK), (11, SwitchEventKind::In)];
    assert_eq!(
        charged(ALL, true, &events, 11),
        expect([(None, ThreadState::Lost, 9), (Some(2), ThreadState::Blocked, 2)])
    );
    // A switch-out is lost: how long the thread ran and was blocked is not known.
    let events =
        [(0, SwitchEventKind::In), (9, SwitchEventKind::In), (10, every(1)), (10, BLOCK), (12, SwitchEventKind::In)];
    assert_eq!(charged(ALL, true, &events, 12), expect([(Some(1), ThreadState::Blocked, 2)]));
    let expected =
        expect([(None, ThreadState::Lost, 9), (None, ThreadState::Unsampled, 1), (Some(1), ThreadState::Blocked, 2)]);
    assert_eq!(charged(WALL, true, &events, 12), expected);
}

#[test]
fn latency_shares_time_among_running_threads() {
    let selection = TimeSelection { latency: true, ..ALL };
    let mut pairing = SwitchPairing::new(selection, false);
    // Thread 1 runs from 0 to 300, and thread 2 from 100 to 200, while one waits.
    let events = [
        (0, 1, SwitchEventKind::Exec),
        (100, 1, SwitchEventKind::RunSample(5)),
        (100, 2, SwitchEventKind::Created),
        (100, 2, SwitchEventKind::In),
        (180, 1, SwitchEventKind::RunSample(6)),
        (190, 2, SwitchEventKind::RunSample(7)),
        (200, 2, SwitchEventKind::Exited),
        (290, 1, SwitchEventKind::RunSample(5)),
        (300, 1, BLOCK),
        (5000, 1, SwitchEventKind::In),
    ];
    for (time, tid, kind) in events {
        pairing.add(SwitchEvent { time, tid, kind });
    }
    pairing.finish(5010);
    // The last run, without a sample, is shared among the samples of its thread.
    let expected = expect([
        (Some(5), ThreadState::Running, 100 + 100 + 10 + 8),
        (Some(6), ThreadState::Running, 40 + 1),
        (Some(7), ThreadState::Running, 50),
    ]);
    assert_eq!(totals(&mut pairing), expected);
}

fn any_event() -> impl Strategy<Value = (u64, u32, SwitchEventKind)> {
    let kind = prop_oneof![
        Just(SwitchEventKind::Existing),
        Just(SwitchEventKind::Exec),
        (0..3u32).prop_map(SwitchEventKind::RunSample),
        (0..3u32, any::<bool>()).prop_map(|(stack, from_every_switch)| sample(stack, from_every_switch)),
        (0..3u32, 0..9u64).prop_map(|(stack, since)| SwitchEventKind::BlockStack { since, stack }),
        any::<bool>().prop_map(|preempted| SwitchEventKind::Out { preempted, selected: true }),
        Just(SwitchEventKind::In),
        (0..3u32, 0..3u32).prop_map(|(waker, stack)| woken(Some(waker), stack)),
    ];
    (0..1000u64, 0..3u32, kind)
}

proptest! {
    #[test]
    fn charges_of_a_thread_add_up_to_its_lifetime(
        steps in prop::collection::vec(any_event(), 0..200), every_switch: bool, depth in 0..4usize
    ) {
        let mut pairing =
            SwitchPairing::new(TimeSelection { waker_depth: Some(depth), ..WALL }, every_switch);
        let (mut time, mut first_seen) = (0, BTreeMap::new());
        for (pause, tid, kind) in steps {
            time += pause;
            if !matches!(kind, SwitchEventKind::Woken(_)) {
                first_seen.entry(tid).or_insert(time);
            }
            pairing.add(SwitchEvent { time, tid, kind });
        }
        pairing.finish(time);
        let mut sums = BTreeMap::new();
        for charge in pairing.take_charges() {
            *sums.entry(charge.tid).or_insert(0u64) += charge.amount.nanoseconds;
        }
        for (tid, since) in first_seen {
            // Each share is rounded down, by less than one.
            let (sum, lifetime) = (sums.get(&tid).copied().unwrap_or(0), time - since);
            prop_assert!(sum <= lifetime && lifetime - sum < 200, "{tid}: {sum} of {lifetime}");
        }
    }
}
