//! Putting stacks in order.

use super::stacks::Stacks;
use crate::parallel;

/// Up to how many stacks are sorted by two frames at once: that is faster, but takes twice the memory.
const FEW: usize = 1 << 20;

/// So many stacks are worth a thread.
const WORTH: usize = 1 << 13;

/// Stacks that have their first frames in common: where they stand in the order, and how many frames that are.
struct Group {
    start: usize,
    end: usize,
    depth: usize,
}

/// The numbers of all stacks in the order of their frames, a stack before its extensions; `ranks` is the frames' order.
///
/// SortedReader by the first frame, then within each group by the next, and so on: a comparison of whole stacks would fetch each
/// of them from far memory some twenty times, and this does so but once for every frame or two that it shares with others.
/// Each thread sorts the groups in its part of the order.
pub fn sorted_order(stacks: &Stacks, ranks: &[u32], threads: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..stacks.len() as u32).collect();
    let threads = threads.clamp(1, 1 + order.len() / WORTH);
    let share = order.len().div_ceil(threads);
    let mut groups = vec![Group { start: 0, end: order.len(), depth: 0 }];
    let mut sort = Sort { stacks, ranks, single: Vec::new(), double: Vec::new() };
    while let Some(large) = groups.iter().position(|group| group.end - group.start > share) {
        let group = groups.swap_remove(large);
        sort.divide(&mut order[group.start..group.end], &group, &mut groups);
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
    parallel::map(parts, threads, |(part, offset, mine)| {
        Sort { stacks, ranks, single: Vec::new(), double: Vec::new() }.all(part, offset, mine);
    });
    order
}

/// One thread's sorting.
struct Sort<'a> {
    stacks: &'a Stacks,
    ranks: &'a [u32],
    single: Vec<(u32, u32)>,
    double: Vec<(u64, u32)>,
}

impl Sort<'_> {
    /// Sorts all groups in a part of the order that begins so far behind its start.
    fn all(&mut self, part: &mut [u32], offset: usize, mut groups: Vec<Group>) {
        while let Some(group) = groups.pop() {
            self.divide(&mut part[group.start - offset..group.end - offset], &group, &mut groups);
        }
    }

    /// Sorts a group's stacks by their next frame or two, and leaves those to be sorted further that share these too.
    fn divide(&mut self, order: &mut [u32], group: &Group, groups: &mut Vec<Group>) {
        let (stacks, ranks, depth) = (self.stacks, self.ranks, group.depth);
        let rank = |number: u32, depth: usize| stacks.get(number).get(depth).map_or(0, |id| ranks[*id as usize] + 1);
        if order.len() > FEW {
            self.single.clear();
            self.single.extend(order.iter().map(|number| (rank(*number, depth), *number)));
            self.single.sort_unstable();
            take(order, group.start, &self.single, |key| (key != 0).then_some(depth + 1), groups);
            self.single = Vec::new();
        } else {
            self.double.clear();
            self.double.extend(order.iter().map(|number| {
                let pair = (u64::from(rank(*number, depth)) << 32) | u64::from(rank(*number, depth + 1));
                (pair, *number)
            }));
            self.double.sort_unstable();
            take(order, group.start, &self.double, |key| (key as u32 != 0).then_some(depth + 2), groups);
        }
    }
}

/// Takes over the order of a group that starts there, and finds in it the groups whose keys are equal.
fn take<K: Copy + PartialEq>(
    order: &mut [u32],
    mut start: usize,
    keyed: &[(K, u32)],
    deeper: impl Fn(K) -> Option<usize>,
    groups: &mut Vec<Group>,
) {
    for (place, (_, number)) in order.iter_mut().zip(keyed) {
        *place = *number;
    }
    for run in keyed.chunk_by(|a, b| a.0 == b.0) {
        let end = start + run.len();
        if let Some(depth) = deeper(run[0].0).filter(|_| run.len() > 1) {
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
        fn the_order_is_that_of_the_stacks_frames(stacks in prop::collection::vec(prop::collection::vec(0..5u32, 0..7), 1..80)) {
            let ranks = [3, 0, 4, 1, 2];
            let mut interned = Stacks::default();
            for stack in &stacks {
                interned.intern(stack);
            }
            let ranked = |number: &u32| interned.get(*number).iter().map(|id| ranks[*id as usize]).collect::<Vec<u32>>();
            let mut expected: Vec<u32> = (0..interned.len() as u32).collect();
            expected.sort_by_key(ranked);
            prop_assert_eq!(super::sorted_order(&interned, &ranks, 1), expected);
        }
    }

    #[test]
    fn threads_do_not_change_the_order() {
        let ranks: Vec<u32> = (0..100).rev().collect();
        let mut interned = Stacks::default();
        let mut state = 1u64;
        for _ in 0..super::WORTH * 4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Most have their first frames in common.
            let mut stack = if state >> 60 > 2 { vec![7, 8, 9] } else { vec![] };
            stack.extend((0..state >> 32 & 7).map(|at| (state >> (at * 7) & 63) as u32));
            interned.intern(&stack);
        }
        assert!(interned.len() > super::WORTH * 2);
        let alone = super::sorted_order(&interned, &ranks, 1);
        for threads in [2, 3, 8] {
            assert_eq!(super::sorted_order(&interned, &ranks, threads), alone, "{threads} threads");
        }
    }
}
