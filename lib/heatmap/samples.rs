//! The samples, packed for the page's script.
//!
//! Numbers are LEB128. First: the second on the clock in which the first sample was taken, the unit of times in
//! nanoseconds, how many rows a second has, how many samples were lost, how many there are, how many threads, and whether
//! weights follow. Then column by column, in the order of time: how long after the sample before (the first: after the
//! beginning of its second), which stack (by its place in the graph's), which thread, and what it weighs. Then the
//! threads' names, a line each.

use std::io;

use crate::collapse::{TimedSample, Timeline};
use crate::profile::Weight;
use crate::svg::{compress, push_number, visible};

/// In nanoseconds.
pub(super) const SECOND: u64 = 1_000_000_000;

/// Packs them.
pub(super) fn pack(timeline: &Timeline, rows: u32) -> io::Result<Vec<u8>> {
    let (stacks, (order, threads)) = (stack_ranks(timeline), thread_ranks(timeline));
    let rank = |sample: &TimedSample| (stacks[sample.stack as usize], threads[sample.thread.index()]);
    let mut samples = timeline.samples.clone();
    // In full: which thread read what must not show.
    samples.sort_unstable_by_key(|sample| (sample.time, rank(sample), sample.weight));
    let base = samples.first().map_or(0, |sample| sample.time / SECOND);
    let unit = if samples.iter().all(|sample| sample.time % 1000 == 0) { 1000 } else { 1 };
    let is_weighted = samples.iter().any(|sample| sample.weight != Weight::ONE);
    let mut bytes = Vec::with_capacity(samples.len() * 6);
    let head = [base, unit, rows.into(), timeline.lost, samples.len() as u64, order.len() as u64, is_weighted.into()];
    let mut push = |number: u128| push_number(number, &mut bytes);
    head.iter().for_each(|number| push((*number).into()));
    let mut last = base * SECOND;
    for sample in &samples {
        push(((sample.time - last) / unit).into());
        last = sample.time;
    }
    samples.iter().for_each(|sample| push(rank(sample).0.into()));
    samples.iter().for_each(|sample| push(rank(sample).1.into()));
    for sample in samples.iter().filter(|_| is_weighted) {
        push(sample.weight.millionths() / Weight::ONE.millionths());
    }
    for name in order {
        bytes.extend_from_slice(visible(name).as_bytes());
        bytes.push(b'\n');
    }
    compress(&bytes)
}

/// For each stack its place in the order in which the graph has them.
fn stack_ranks(timeline: &Timeline) -> Vec<u32> {
    let (mut ranks, mut next) = (vec![0; timeline.profile.len()], 0);
    let ranked = timeline.profile.for_each_sorted(|stack| {
        ranks[stack.number as usize] = next;
        next += 1;
        Ok::<(), std::convert::Infallible>(())
    });
    match ranked {
        Ok(()) => ranks,
    }
}

/// The threads' names, those with the most samples first, and for each thread its place there.
fn thread_ranks(timeline: &Timeline) -> (Vec<&[u8]>, Vec<u32>) {
    let mut threads: Vec<_> = timeline.threads.iter().map(|(id, name)| (0_u64, name, id)).collect();
    for sample in &timeline.samples {
        threads[sample.thread.index()].0 += 1;
    }
    threads.sort_unstable_by_key(|(samples, name, _)| (std::cmp::Reverse(*samples), *name));
    let mut ranks = vec![0; threads.len()];
    for (rank, (_, _, id)) in threads.iter().enumerate() {
        ranks[id.index()] = rank as u32;
    }
    (threads.into_iter().map(|(_, name, _)| name).collect(), ranks)
}
