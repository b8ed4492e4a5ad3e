//! The samples in packed form, for the script of the page.
//!
//! All numbers are LEB128. The header is: the second of the first sample, the unit of times in nanoseconds, the number of
//! rows in a second, the number of lost samples, of samples and of threads, 1 if weights follow, otherwise 0, and 1 if CPUs
//! follow, otherwise 0.
//!
//! The samples follow in time order, column by column: the time since the previous sample (for the first one, since the
//! start of its second), the index of the stack among those of the graph, the index of the thread, the weight, and the
//! number of the CPU. Then come the names of the threads, one a line.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::io;

use super::SECOND;
use crate::collapse::{TimedSample, Timeline};
use crate::markers;
use crate::profile::Weight;
use crate::svg::{compress, push_number, visible};

/// A sample as it is written. Samples are ordered by all fields, so that the page does not depend on which thread read
/// which samples.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PackedSample {
    time: u64,
    /// The index of the stack among those of the graph.
    stack: u32,
    /// The index of the thread among the names of threads.
    thread: u32,
    weight: Weight,
    /// The number of the CPU, or 0 if it is not known.
    cpu: u32,
}

/// Packs the samples of a timeline. `rows` is the number of rows into which the map divides a second.
///
/// # Errors
/// Fails only if memory is exhausted.
pub(super) fn pack(timeline: &Timeline, rows: u32) -> io::Result<Vec<u8>> {
    let (stacks, (names, threads)) = (stack_ranks(timeline), thread_ranks(timeline));
    let samples = weighted(timeline).map(|sample| PackedSample {
        time: sample.time,
        stack: stacks[sample.stack as usize],
        thread: threads[sample.thread.index()],
        weight: sample.weight,
        cpu: sample.cpu.unwrap_or_default(),
    });
    let has_cpus = timeline.samples.iter().all(|sample| sample.cpu.is_some());
    let mut samples: Vec<PackedSample> = samples.collect();
    samples.sort_unstable();
    let first_second = samples.first().map_or(0, |sample| sample.time / SECOND);
    let unit = if samples.iter().all(|sample| sample.time % 1000 == 0) { 1000 } else { 1 };
    let is_weighted = samples.iter().any(|sample| sample.weight != Weight::ONE);
    let (sample_count, thread_count) = (samples.len() as u64, names.len() as u64);
    let header = [
        first_second,
        unit,
        rows.into(),
        timeline.lost,
        sample_count,
        thread_count,
        is_weighted.into(),
        has_cpus.into(),
    ];
    let mut bytes = Vec::with_capacity(samples.len() * 6);
    header.into_iter().for_each(|number| push_number(number.into(), &mut bytes));
    let mut last = first_second * SECOND;
    for sample in &samples {
        push_number(((sample.time - last) / unit).into(), &mut bytes);
        last = sample.time;
    }
    samples.iter().for_each(|sample| push_number(sample.stack.into(), &mut bytes));
    samples.iter().for_each(|sample| push_number(sample.thread.into(), &mut bytes));
    for sample in samples.iter().filter(|_| is_weighted) {
        push_number(sample.weight.millionths() / Weight::ONE.millionths(), &mut bytes);
    }
    samples.iter().filter(|_| has_cpus).for_each(|sample| push_number(sample.cpu.into(), &mut bytes));
    for name in names {
        // Without a name, a link could not tell it from no thread.
        let name = if name.is_empty() { markers::UNKNOWN } else { name };
        bytes.extend_from_slice(visible(name).as_bytes());
        bytes.push(b'\n');
    }
    compress(&bytes)
}

/// Returns the samples with a weight. The others do not show, and would leave lanes of their threads empty.
fn weighted(timeline: &Timeline) -> impl Iterator<Item = &TimedSample> {
    timeline.samples.iter().filter(|sample| !sample.weight.is_zero())
}

/// Returns for each stack its index in the order of the graph.
fn stack_ranks(timeline: &Timeline) -> Vec<u32> {
    let (mut ranks, mut next) = (vec![0; timeline.profile.len()], 0);
    let ranked = timeline.profile.for_each_sorted(|stack| {
        ranks[stack.number as usize] = next;
        next += 1;
        Ok::<(), Infallible>(())
    });
    match ranked {
        Ok(()) => ranks,
    }
}

/// Returns the names of the threads with samples, those with the most first, and for each thread its index there.
fn thread_ranks(timeline: &Timeline) -> (Vec<&[u8]>, Vec<u32>) {
    let mut threads: Vec<_> = timeline.threads.iter().map(|(id, name)| (0_u64, name, id)).collect();
    let mut ranks = vec![0; threads.len()];
    for sample in weighted(timeline) {
        threads[sample.thread.index()].0 += 1;
    }
    threads.retain(|(sample_count, ..)| *sample_count > 0);
    threads.sort_unstable_by_key(|(sample_count, name, _)| (Reverse(*sample_count), *name));
    for (rank, (_, _, id)) in threads.iter().enumerate() {
        ranks[id.index()] = rank as u32;
    }
    (threads.into_iter().map(|(_, name, _)| name).collect(), ranks)
}
