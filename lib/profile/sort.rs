//! Sorts stacks by their frames.

use super::stacks::Stacks;
use crate::parallel;

/// Largest group that is sorted by two frames at once, which is faster but takes twice the memory.
const MAX_PAIRED: usize = 1 << 20;

/// Number of stacks that justifies another thread.
const MIN_PER_THREAD: usize = 1 << 13;

/// Stacks at adjacent positions of the order whose first `depth` frames are equal.
struct Group {
    start: usize,
    end: usize,
    depth: usize,
}

/// Returns the numbers of all stacks in the order of their frames, a stack before its extensions.
///
/// `ranks` contains the rank of each frame. Stacks are sorted by the first frame, then within each group of equal ones
/// by the next frame, and so on. Comparing whole stacks would read each stack from uncached memory about twenty times;
/// this reads it once for every frame or two that it shares with others. The groups are spread over the threads.
pub fn sorted_order(stacks: &Stacks, ranks: &[u32], threads: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..stacks.len() as u32).collect();
    let threads = threads.clamp(1, 1 + order.len() / MIN_PER_THREAD);
    let share = order.len().div_ceil(threads);
    let mut groups = vec![Group { start: 0, end: order.len(), depth: 0 }];
    let mut sorter = Sorter::new(stacks, ranks);
    while let Some(large) = groups.iter().position(|group| group.end - group.start > share) {
        let group = groups.swap_remove(large);
        sorter.split(&mut order[group.start..group.end], &group, &mut groups);
    }
    groups.sort_unstable_by_key(|group| group.start);
    let (mut rest, mut offset) = (order.as_mut_slice(), 0);
    let parts = (1..=threads).map(|thread| {
        let mine: Vec<Group> = groups.drain(..groups.partition_point(|group| group.start < thread * share)).collect();
        let end = mine.last().map_or(offset, |group| group.end);
        let (part, others) = std::mem::take(&mut rest).split_at_mut(end - offset);
        let mine = (part, offset, mine);
        (rest, offset) = (others, end);
        mine
    });
    parallel::map(parts, threads, |(part, offset, groups)| Sorter::new(stacks, ranks).sort(part, offset, groups));
    order
}

/// Stacks, and the rank of each of their frames.
#[derive(Clone, Copy)]
struct RankedStacks<'a> {
    stacks: &'a Stacks,
    ranks: &'a [u32],
}

impl RankedStacks<'_> {
    /// Returns 1 plus the rank of the frame at this depth of a stack. After the last frame it is 0, because a stack
    /// comes before its extensions.
    #[inline]
    fn rank(self, number: u32, depth: usize) -> u32 {
        self.stacks.get(number).get(depth).map_or(0, |id| self.ranks[*id as usize] + 1)
    }
}

/// The sorter of one thread, with its buffers of keys.
struct Sorter<'a> {
    ranked: RankedStacks<'a>,
    single_keys: Vec<(u32, u32)>,
    paired_keys: Vec<(u64, u32)>,
}

impl<'a> Sorter<'a> {
    fn new(stacks: &'a Stacks, ranks: &'a [u32]) -> Self {
        Self { ranked: RankedStacks { stacks, ranks }, single_keys: Vec::new(), paired_keys: Vec::new() }
    }

    /// Sorts groups completely. They are in the part of the order that starts at `offset`.
    fn sort(&mut self, part: &mut [u32], offset: usize, mut groups: Vec<Group>) {
        while let Some(group) = groups.pop() {
            self.split(&mut part[group.start - offset..group.end - offset], &group, &mut groups);
        }
    }

    /// Sorts the stacks of a group by their next frame or two, and appends the groups in which these are equal.
    fn split(&mut self, order: &mut [u32], group: &Group, groups: &mut Vec<Group>) {
        let (ranked, depth) = (self.ranked, group.depth);
        if order.len() > MAX_PAIRED {
            self.single_keys.clear();
            self.single_keys.extend(order.iter().map(|number| (ranked.rank(*number, depth), *number)));
            self.single_keys.sort_unstable();
            apply_order(order, group.start, &self.single_keys, |key| (key != 0).then_some(depth + 1), groups);
            self.single_keys = Vec::new();
        } else {
            self.paired_keys.clear();
            self.paired_keys.extend(order.iter().map(|number| {
                let pair = (u64::from(ranked.rank(*number, depth)) << 32) | u64::from(ranked.rank(*number, depth + 1));
                (pair, *number)
            }));
            self.paired_keys.sort_unstable();
            apply_order(order, group.start, &self.paired_keys, |key| (key as u32 != 0).then_some(depth + 2), groups);
        }
    }
}

/// Copies the order of the sorted keys to a group that starts at `start`, and appends the groups of equal keys.
///
/// `next_depth` returns how many frames the stacks with a key share; `None` if the key includes the end of a stack.
fn apply_order<K: Copy + PartialEq>(
    order: &mut [u32],
    mut start: usize,
    sorted: &[(K, u32)],
    next_depth: impl Fn(K) -> Option<usize>,
    groups: &mut Vec<Group>,
) {
    for (slot, (_, number)) in order.iter_mut().zip(sorted) {
        *slot = *number;
    }
    for run in sorted.chunk_by(|a, b| a.0 == b.0) {
        let end = start + run.len();
        if let Some(depth) = next_depth(run[0].0).filter(|_| run.len() > 1) {
            groups.push(Group { start, end, depth });
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Stacks;

    proptest! {
        #[test]
        fn sorts_by_the_ranks_of_the_frames(stacks in prop::collection::vec(prop::collection::vec(0..5u32, 0..7), 1..80)) {
            let ranks = [3, 0, 4, 1, 2];
            let mut interned = Stacks::default();
            for stack in &stacks {
                interned.intern(stack);
            }
            let mut expected: Vec<u32> = (0..interned.len() as u32).collect();
            expected.sort_by_key(|number| {
                interned.get(*number).iter().map(|id| ranks[*id as usize]).collect::<Vec<u32>>()
            });
            prop_assert_eq!(super::sorted_order(&interned, &ranks, 1), expected);
        }
    }

    #[test]
    fn threads_do_not_change_the_order() {
        let ranks: Vec<u32> = (0..100).rev().collect();
        let mut interned = Stacks::default();
        let mut state = 1u64;
        for _ in 0..super::MIN_PER_THREAD * 4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Most stacks share their first frames.
            let mut stack = if state >> 60 > 2 { vec![7, 8, 9] } else { vec![] };
            stack.extend((0..state >> 32 & 7).map(|index| (state >> (index * 7) & 63) as u32));
            interned.intern(&stack);
        }
        assert!(interned.len() > super::MIN_PER_THREAD * 2);
        let expected = super::sorted_order(&interned, &ranks, 1);
        for threads in [2, 3, 8] {
            assert_eq!(super::sorted_order(&interned, &ranks, threads), expected, "{threads} threads");
        }
    }
}
