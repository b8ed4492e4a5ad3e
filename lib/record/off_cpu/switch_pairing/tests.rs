use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Leaving, Ledger, Moment, Wanted, What};
use crate::perf::thread_state::ThreadState;

const ALL: Wanted = Wanted { wall: false, min: 0, max: u64::MAX };
const WALL: Wanted = Wanted { wall: true, ..ALL };
const BLOCK: What = What::Out { preempted: false, wanted: true };
const PREEMPT: What = What::Out { preempted: true, wanted: true };

/// A stack that stood in the copy.
const fn leaving(stack: u32) -> Leaving {
    Leaving { stack, certain: stack, read: 0 }
}

const fn leaves(stack: u32) -> What {
    What::Leaves { stack: leaving(stack), every: true }
}

const fn may_leave(stack: u32) -> What {
    What::Leaves { stack: leaving(stack), every: false }
}

type Totals = BTreeMap<(Option<u32>, ThreadState), u64>;

fn totals(ledger: &mut Ledger) -> Totals {
    let mut totals = Totals::new();
    for charge in ledger.charges() {
        *totals.entry((charge.stack, charge.state)).or_default() += charge.nanoseconds;
    }
    totals
}

/// What is charged of a thread to which this happened, up to the time `end`.
fn charged(wanted: Wanted, every: bool, happened: &[(u64, What)], end: u64) -> Totals {
    let mut ledger = Ledger::new(wanted, every);
    for (time, what) in happened {
        ledger.take(Moment { time: *time, tid: 1, what: *what });
    }
    ledger.finish(end);
    totals(&mut ledger)
}

fn expect<const N: usize>(expected: [(Option<u32>, ThreadState, u64); N]) -> Totals {
    expected.into_iter().map(|(stack, state, nanoseconds)| ((stack, state), nanoseconds)).collect()
}

#[test]
fn a_block_lasts_from_the_switch_out_to_the_switch_in_and_a_preemption_is_apart() {
    let happened = [(10, leaves(7)), (11, BLOCK), (111, What::In), (200, leaves(8)), (201, PREEMPT), (231, What::In)];
    let expected = expect([(Some(7), ThreadState::Blocked, 100), (Some(8), ThreadState::Runnable, 30)]);
    assert_eq!(charged(ALL, true, &happened, 300), expected);
}

#[test]
fn what_was_read_of_a_stack_is_believed_if_its_thread_had_not_come_back() {
    let leaves = |read| What::Leaves { stack: Leaving { stack: 7, certain: 1, read }, every: true };
    let mut ledger = Ledger::new(ALL, true);
    let happened = [
        (10, leaves(50)),
        (11, BLOCK),
        (51, What::In),
        (60, leaves(80)),
        (61, BLOCK),
        (80, What::In),
        (90, leaves(120)),
    ];
    for (time, what) in happened.into_iter().chain([(91, BLOCK)]) {
        ledger.take(Moment { time, tid: 1, what });
    }
    ledger.finish(121);
    assert_eq!(totals(&mut ledger), expect([(Some(7), ThreadState::Blocked, 70), (Some(1), ThreadState::Blocked, 19)]));
    assert_eq!((ledger.take_cut(), ledger.take_cut()), (1, 0));
}

#[test]
fn who_is_still_blocked_at_the_end_counts_up_to_it() {
    assert_eq!(
        charged(ALL, true, &[(10, leaves(7)), (11, BLOCK)], 500),
        expect([(Some(7), ThreadState::Blocked, 489)])
    );
}

#[test]
fn blocks_that_are_too_short_or_too_long_are_left_out() {
    let happened = [
        (0, leaves(1)),
        (0, BLOCK),
        (10, What::In),
        (10, leaves(2)),
        (10, BLOCK),
        (110, What::In),
        (110, leaves(3)),
        (110, BLOCK),
        (1110, What::In),
    ];
    let wanted = Wanted { wall: false, min: 11, max: 999 };
    assert_eq!(charged(wanted, true, &happened, 2000), expect([(Some(2), ThreadState::Blocked, 100)]));
}

#[test]
fn blocks_that_begin_on_other_cpus_are_left_out() {
    let elsewhere = What::Out { preempted: false, wanted: false };
    let happened = [(0, leaves(1)), (0, elsewhere), (10, What::In), (20, leaves(2)), (20, BLOCK), (25, What::In)];
    assert_eq!(charged(ALL, true, &happened, 50), expect([(Some(2), ThreadState::Blocked, 5)]));
}

#[test]
fn a_thread_that_was_found_asleep_is_charged_only_where_lifetimes_are_wanted() {
    let happened = [(100, What::Found), (150, What::In), (180, leaves(1)), (180, BLOCK)];
    assert_eq!(charged(ALL, true, &happened, 200), expect([(Some(1), ThreadState::Blocked, 20)]));
    let expected = expect([
        (None, ThreadState::Asleep, 50),
        (None, ThreadState::Unsampled, 30),
        (Some(1), ThreadState::Blocked, 20),
    ]);
    assert_eq!(charged(WALL, true, &happened, 200), expected);
    assert_eq!(charged(WALL, true, &[(100, What::Found)], 200), expect([(None, ThreadState::Asleep, 100)]));
}

#[test]
fn run_time_is_shared_out_among_its_samples() {
    let happened = [(0, What::Exec), (10, What::Ran(1)), (20, What::Ran(1)), (30, What::Ran(2)), (90, What::Gone)];
    let expected = expect([(Some(1), ThreadState::Running, 60), (Some(2), ThreadState::Running, 30)]);
    assert_eq!(charged(WALL, true, &happened, 1000), expected);
}

#[test]
fn a_new_thread_waits_for_a_cpu_and_the_end_of_one_is_told_once() {
    let happened = [(10, What::Born), (15, What::In), (25, What::Gone), (26, leaves(9)), (27, BLOCK)];
    let expected = expect([(None, ThreadState::Runnable, 5), (None, ThreadState::Unsampled, 10)]);
    assert_eq!(charged(WALL, true, &happened, 1000), expected);
}

#[test]
fn the_number_of_a_thread_that_ended_may_be_given_again() {
    let happened = [
        (0, What::Born),
        (0, What::In),
        (10, What::Gone),
        (50, What::Born),
        (50, What::In),
        (60, leaves(1)),
        (60, BLOCK),
        (80, What::In),
    ];
    let expected = expect([
        (None, ThreadState::Runnable, 0),
        (None, ThreadState::Unsampled, 30),
        (Some(1), ThreadState::Blocked, 20),
    ]);
    assert_eq!(charged(WALL, true, &happened, 90), expected);
}

#[test]
fn a_long_block_is_not_charged_to_frequent_short_ones() {
    let mut happened = Vec::new();
    for turn in 0..100 {
        let time = turn * 20;
        if turn % 10 == 0 {
            happened.push((time, may_leave(1)));
        }
        happened.extend([(time, BLOCK), (time + 10, What::In)]);
    }
    happened.extend([(2000, BLOCK), (1_002_000, What::In)]);
    let expected = expect([(Some(1), ThreadState::Blocked, 1000), (None, ThreadState::UnsampledBlocked, 1_000_000)]);
    assert_eq!(charged(ALL, false, &happened, 1_002_000), expected);
}

#[test]
fn a_block_without_a_stack_is_charged_to_those_of_nearly_its_length() {
    let happened = [
        (0, may_leave(1)),
        (0, BLOCK),
        (100, What::In),
        (100, BLOCK),
        (1000, What::In),
        (1000, may_leave(2)),
        (1000, PREEMPT),
        (2000, What::In),
    ];
    let expected = expect([(Some(1), ThreadState::Blocked, 1000), (Some(2), ThreadState::Runnable, 1000)]);
    assert_eq!(charged(ALL, false, &happened, 2000), expected);
}

#[test]
fn of_two_counters_the_one_that_sees_every_switch_is_believed() {
    for pair in [[leaves(1), may_leave(2)], [may_leave(2), leaves(1)]] {
        let happened = [(0, pair[0]), (0, pair[1]), (0, BLOCK), (9, What::In)];
        assert_eq!(charged(ALL, false, &happened, 9), expect([(Some(1), ThreadState::Blocked, 9)]));
    }
}

#[test]
fn what_was_lost_is_charged_as_lost() {
    // The sample of a switch.
    let happened = [(0, BLOCK), (9, What::In)];
    assert_eq!(charged(ALL, true, &happened, 9), expect([(None, ThreadState::Lost, 9)]));
    // A switch in.
    let happened = [(0, leaves(1)), (0, BLOCK), (9, leaves(2)), (9, BLOCK), (11, What::In)];
    assert_eq!(
        charged(ALL, true, &happened, 11),
        expect([(None, ThreadState::Lost, 9), (Some(2), ThreadState::Blocked, 2)])
    );
    // A switch out: in a block no one knows how long it ran.
    let happened = [(0, What::In), (9, What::In), (10, leaves(1)), (10, BLOCK), (12, What::In)];
    assert_eq!(charged(ALL, true, &happened, 12), expect([(Some(1), ThreadState::Blocked, 2)]));
    let expected =
        expect([(None, ThreadState::Lost, 9), (None, ThreadState::Unsampled, 1), (Some(1), ThreadState::Blocked, 2)]);
    assert_eq!(charged(WALL, true, &happened, 12), expected);
}

fn any_moment() -> impl Strategy<Value = (u64, u32, What)> {
    let what = prop_oneof![
        Just(What::Found),
        Just(What::Exec),
        (0..3u32).prop_map(What::Ran),
        (0..3u32, any::<bool>()).prop_map(|(stack, every)| What::Leaves { stack: leaving(stack), every }),
        any::<bool>().prop_map(|preempted| What::Out { preempted, wanted: true }),
        Just(What::In),
    ];
    (0..1000u64, 0..3u32, what)
}

proptest! {
    #[test]
    fn whatever_is_told_a_threads_charges_are_its_lifetime(
        steps in prop::collection::vec(any_moment(), 0..200), every: bool
    ) {
        let mut ledger = Ledger::new(WALL, every);
        let (mut time, mut born) = (0, BTreeMap::new());
        for (pause, tid, what) in steps {
            time += pause;
            born.entry(tid).or_insert(time);
            ledger.take(Moment { time, tid, what });
        }
        ledger.finish(time);
        let mut sums = BTreeMap::new();
        for charge in ledger.charges() {
            *sums.entry(charge.tid).or_insert(0u64) += charge.nanoseconds;
        }
        for (tid, since) in born {
            // Sharing out rounds down, by less than one for each share.
            let (sum, lifetime) = (sums.get(&tid).copied().unwrap_or(0), time - since);
            prop_assert!(sum <= lifetime && lifetime - sum < 200, "{tid}: {sum} of {lifetime}");
        }
    }
}
