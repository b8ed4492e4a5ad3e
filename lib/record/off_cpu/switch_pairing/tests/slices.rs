use super::super::{Charge, LongBlock, SwitchEvent, SwitchEventKind, SwitchPairing};
use super::{ALL, BLOCK, PREEMPT, Totals, WALL, every, expect, totals};
use crate::perf::thread_state::ThreadState;

#[test]
fn slices_add_up_to_the_whole() {
    let events = [
        (0, SwitchEventKind::Exec),
        (40, SwitchEventKind::RunSample(5)),
        (100, every(7)),
        (100, BLOCK),
        (300, SwitchEventKind::In),
        (310, SwitchEventKind::RunSample(6)),
        (500, every(7)),
        (500, BLOCK),
        (540, SwitchEventKind::In),
        (550, SwitchEventKind::RunSample(6)),
    ];
    let mut pairing = SwitchPairing::new(WALL, true);
    let (mut sum, mut starts) = (Totals::new(), Vec::new());
    for (time, kind) in events {
        // In the middle of a run, and of a block.
        if [310, 540].contains(&time) {
            pairing.end_slice(time - 200);
        }
        pairing.add(SwitchEvent { time, tid: 1, kind });
        for Charge { stack, state, amount, start, .. } in pairing.take_charges() {
            *sum.entry((stack, state)).or_default() += amount.nanoseconds;
            starts.extend(start.map(|start| (start, amount.nanoseconds)));
        }
    }
    pairing.finish(600);
    totals(&mut pairing).into_iter().for_each(|(key, time)| *sum.entry(key).or_default() += time);
    // Each slice shares its own run time among its own samples.
    let expected = expect([
        (Some(5), ThreadState::Running, 100),
        (Some(6), ThreadState::Running, 200 + 60),
        (Some(7), ThreadState::Blocked, 200 + 40),
    ]);
    assert_eq!(sum, expected);
    assert_eq!(starts, [(100, 200), (500, 40)]);
}

fn add_switch(pairing: &mut SwitchPairing, time: u64, kind: SwitchEventKind) {
    pairing.add(SwitchEvent { time, tid: 1, kind })
}

/// Returns the thread and the length of a long block that is found at this time.
fn find_long_block(pairing: &mut SwitchPairing, now: u64) -> Option<(u32, u64)> {
    pairing.take_long_blocks(now).first().map(|LongBlock { tid, nanoseconds, .. }| (*tid, *nanoseconds))
}

#[test]
fn a_long_block_is_found_once_before_or_after_its_end() {
    let mut pairing = SwitchPairing::new(ALL, true);
    pairing.watch_blocks(50, 80);
    add_switch(&mut pairing, 100, BLOCK);
    assert_eq!(find_long_block(&mut pairing, 180), None);
    assert_eq!(find_long_block(&mut pairing, 181), Some((1, 81)));
    assert_eq!(find_long_block(&mut pairing, 300), None);
    add_switch(&mut pairing, 310, SwitchEventKind::In);
    assert_eq!(find_long_block(&mut pairing, 400), None);
    add_switch(&mut pairing, 400, BLOCK);
    add_switch(&mut pairing, 460, SwitchEventKind::In);
    assert_eq!(find_long_block(&mut pairing, 500), Some((1, 60)));
    // Preempted, and not yet running after a wake-up.
    add_switch(&mut pairing, 500, PREEMPT);
    assert_eq!(find_long_block(&mut pairing, 900), None);
    // Until the end of the recording.
    add_switch(&mut pairing, 901, SwitchEventKind::In);
    add_switch(&mut pairing, 902, BLOCK);
    pairing.finish(960);
    assert_eq!(find_long_block(&mut pairing, 960), Some((1, 58)));
}
