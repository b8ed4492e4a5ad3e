//! Recognizes lists of stacks as programs write them that add stacks up: sorted, each stack once.
//!
//! `fg-collapse`, `fg-filter`, the `stackcollapse` scripts and inferno write such lists. Of other texts whose lines end in a
//! number, few are sorted. If some names are those of functions, too, a list is one of stacks although none has a caller.

use bstr::ByteSlice as _;

use super::{has_callers, parse, stack_lines};
use crate::folded::LineKind;

/// Fewest lines of a list. Short texts need not be sorted.
const MIN_LINES: usize = 3;

/// Maximum number of lines for each name of a function, and for each stack with a caller.
const MAX_LINES_PER_SYMBOL: usize = 4;
const MAX_LINES_PER_CALLER: usize = 16;

/// Returns true if the first lines are sorted stacks, each once, with one blank before its weight, and enough of them have
/// callers or names that only functions have.
pub(super) fn is_list_of_stacks(head: &[u8]) -> bool {
    let (mut lines, mut symbols, mut callers) = (0, 0, 0);
    let mut orders = [Order::default(), Order::default(), Order::default()];
    for line in stack_lines(head) {
        let Some(stack) = split_stack(line) else { return false };
        let without_weight = parse(stack, LineKind::Plain).map_or(stack, |line| line.stack);
        orders[0].add(stack, <[u8]>::cmp);
        orders[1].add(stack, compare_frames);
        orders[2].add(without_weight, compare_frames);
        if orders.iter().all(|order| order.is_broken) {
            return false;
        }
        lines += 1;
        symbols += usize::from(is_of_function(without_weight));
        callers += usize::from(has_callers(stack));
    }
    lines >= MIN_LINES && (symbols * MAX_LINES_PER_SYMBOL >= lines || callers * MAX_LINES_PER_CALLER >= lines)
}

/// Returns the stack of a line as programs write it: no blank before it, and one behind it.
fn split_stack(line: &[u8]) -> Option<&[u8]> {
    let stack = parse(line, LineKind::Plain)?.stack;
    let is_exact = line.get(stack.len()) == Some(&b' ') && line[stack.len() + 1..].iter().all(|byte| *byte != b' ');
    (is_exact && !stack.starts_with(b" ") && !stack.starts_with(b"\t")).then_some(stack)
}

/// Finds out if stacks are sorted.
#[derive(Default)]
struct Order<'a> {
    last: Option<&'a [u8]>,
    is_broken: bool,
}

impl<'a> Order<'a> {
    fn add(&mut self, stack: &'a [u8], compare: fn(&[u8], &[u8]) -> std::cmp::Ordering) {
        self.is_broken |= self.last.is_some_and(|last| compare(last, stack).is_ge());
        self.last = Some(stack);
    }
}

/// Compares stacks by frames: the end of a frame is lower than any byte.
fn compare_frames(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let rank = |byte: &u8| if *byte == b';' { 0 } else { u16::from(*byte) + 1 };
    a.iter().map(rank).cmp(b.iter().map(rank))
}

/// Returns true for a name with characters that names of functions have and those of files, hosts and packages do not.
fn is_of_function(name: &[u8]) -> bool {
    let has_mark = name.iter().any(|byte| b"([<`#$@{\\!".contains(byte));
    let has_scope = name.windows(2).any(|pair| pair[0] == b':' && (pair[1] == b':' || pair[1].is_ascii_alphabetic()));
    has_mark || has_scope || name.contains_str("->") || name.contains_str("operator")
}

#[cfg(test)]
mod tests {
    use super::is_list_of_stacks;

    #[test]
    fn sorted_names_of_functions_are_stacks() {
        for (text, expected) in [
            ("Foo.bar.getter 3\nclosure #1 in A.b() 12\nstatic String.+ infix(_:_:) 4\n", true),
            ("#foo#12 12\n(::var\"#1#2\")() 3\n* 4\n+(::Int, ::Int) 3\n", true),
            ("[main tid=1] run 5\n[main tid=2] run 7\n[worker-1] loop() 3\n", true),
            ("[clone]foo 3\nfunc1(int): a.c:12 3\nmain 5\n", true),
            ("<0.123.0> 3\n<0.124.0> 3\nlists:map/2 4\n", true),
            ("main.(*T).Method 4\nmain.main 12\nruntime.mallocgc 3\nsyscall.Syscall 4\n", true),
            ("a.b() 1 2\na.c() 3 4\na.d() 12 5\n", true),
            ("adduser 686\nadwaita-icon-theme 20899\nlibc6 420\n", false),
            ("lib/a.rs 12\nlib/b.rs 5\nlib/c.rs 6\n", false),
            ("f() 1\nf() 2\ng() 3\n", false),
            ("g() 1\nf() 2\nh() 3\n", false),
            ("f()  1\ng()  2\nh()  3\n", false),
        ] {
            assert_eq!(is_list_of_stacks(text.as_bytes()), expected, "{text}");
        }
    }
}
