//! Putting stacks in order.

use super::stacks::Stacks;

/// Up to how many stacks are sorted by two frames at once: that is faster, but takes twice the memory.
const FEW: usize = 1 << 20;

/// The numbers of all stacks in the order of their frames, a stack before its extensions; `ranks` is the frames' order.
///
/// Sorted by the first frame, then within each group by the next, and so on: a comparison of whole stacks would fetch each
/// of them from far memory some twenty times, and this does so but once for every frame or two that it shares with others.
pub fn sorted(stacks: &Stacks, ranks: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..stacks.len() as u32).collect();
    let rank = |number: u32, depth: usize| stacks.get(number).get(depth).map_or(0, |id| ranks[*id as usize] + 1);
    let mut waiting = vec![(0, order.len(), 0)];
    let (mut single, mut double) = (Vec::new(), Vec::new());
    while let Some((start, end, depth)) = waiting.pop() {
        let group = &mut order[start..end];
        if group.len() > FEW {
            single.clear();
            single.extend(group.iter().map(|number| (rank(*number, depth), *number)));
            single.sort_unstable();
            take(group, start, &single, |key| (key != 0).then_some(depth + 1), &mut waiting);
            single = Vec::new();
        } else {
            double.clear();
            double.extend(group.iter().map(|number| {
                let pair = (u64::from(rank(*number, depth)) << 32) | u64::from(rank(*number, depth + 1));
                (pair, *number)
            }));
            double.sort_unstable();
            take(group, start, &double, |key| (key as u32 != 0).then_some(depth + 2), &mut waiting);
        }
    }
    order
}

/// Takes over the order of a group, and leaves those to be sorted further whose keys are equal.
fn take<K: Copy + PartialEq>(
    group: &mut [u32],
    start: usize,
    keyed: &[(K, u32)],
    deeper: impl Fn(K) -> Option<usize>,
    waiting: &mut Vec<(usize, usize, usize)>,
) {
    for (place, (_, number)) in group.iter_mut().zip(keyed) {
        *place = *number;
    }
    let mut at = start;
    for run in keyed.chunk_by(|a, b| a.0 == b.0) {
        if let Some(depth) = deeper(run[0].0).filter(|_| run.len() > 1) {
            waiting.push((at, at + run.len(), depth));
        }
        at += run.len();
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
            prop_assert_eq!(super::sorted(&interned, &ranks), expected);
        }
    }
}
