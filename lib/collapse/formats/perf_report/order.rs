//! The order of the frames of a report's stacks: with `-g caller` the outermost function is the first, else the last one.

use super::Entry;

/// Functions with which threads, processes and entries into the kernel begin.
const OUTERMOST: [&[u8]; 17] = [
    b"_start",
    b"__libc_start_call_main",
    b"__libc_start_main",
    b"main",
    b"_dl_start_user",
    b"start_thread",
    b"thread_start",
    b"clone",
    b"__clone3",
    b"runtime.goexit",
    b"entry_SYSCALL_64_after_hwframe",
    b"asm_",
    b"ret_from_fork",
    b"secondary_startup_64",
    b"cpu_startup_entry",
    b"el0t_64_",
    b"do_syscall_64",
];

/// The order of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    LeafFirst,
    RootFirst,
    /// Nothing tells it.
    Unknown,
}

/// Returns the order of all stacks: where the functions of their rows are, or else functions that have no callers.
pub(super) fn find_order(entries: &[Entry]) -> Order {
    let stacks = || entries.iter().flat_map(|entry| entry.stacks.iter().map(move |stack| (&entry.leaf[..], stack)));
    let ends = || stacks().filter_map(|(leaf, stack)| Some((leaf, stack.first()?, stack.last()?)));
    let by_leaf = compare(ends().map(|(leaf, first, last)| (first == leaf, last == leaf)));
    match by_leaf {
        Order::Unknown => compare(ends().map(|(_, first, last)| (is_outermost(last), is_outermost(first)))),
        order => order,
    }
}

/// Returns the order for which more stacks speak than against it: those of leaf first and those of root first.
fn compare(votes: impl Iterator<Item = (bool, bool)>) -> Order {
    let (leaf_first, root_first) = votes.fold((0, 0), |(leaf_first, root_first), (for_leaf, for_root)| {
        (leaf_first + u64::from(for_leaf), root_first + u64::from(for_root))
    });
    match leaf_first.cmp(&root_first) {
        std::cmp::Ordering::Greater => Order::LeafFirst,
        std::cmp::Ordering::Less => Order::RootFirst,
        std::cmp::Ordering::Equal => Order::Unknown,
    }
}

fn is_outermost(name: &[u8]) -> bool {
    OUTERMOST.iter().any(|outermost| name.starts_with(outermost))
}
