//! Recognizes lists of stacks as programs write them that add stacks up: sorted, each stack once.
//!
//! `fg-collapse`, `fg-filter`, the `stackcollapse` scripts and inferno write such lists. Of other texts whose lines end in a
//! number, few are sorted. If some names are those of functions, too, a list is one of stacks although none has a caller.

use bstr::ByteSlice as _;

use super::{has_callers, parse, stack_lines};
use crate::folded::LineKind;

/// Fewest lines of a list. Short texts need not be sorted.
const MIN_LINES: usize = 3;

/// Maximum number of lines for each name that functions have, for each that only they have, and for each stack with a caller.
const MAX_LINES_PER_SYMBOL: usize = 4;
const MAX_LINES_PER_FUNCTION: usize = 16;
const MAX_LINES_PER_CALLER: usize = 16;

/// Returns true if the first lines are sorted stacks, each once, with one blank before its weight, and enough of them have
/// callers or names that only functions have.
pub(super) fn is_list_of_stacks(head: &[u8]) -> bool {
    let (mut lines, mut symbols, mut functions, mut callers) = (0, 0, 0, 0);
    // Counters mostly have one prefix: `nr_free_pages`, `nr_dirty`.
    let (mut prefix, mut has_prefixes) = (None, false);
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
        let first = without_weight.split(|byte| *byte == b'_').next();
        has_prefixes |= prefix.is_some_and(|prefix| prefix != first);
        prefix = Some(first);
        let is_function = is_plainly_of_function(without_weight);
        functions += usize::from(is_function);
        symbols += usize::from(is_function || is_of_function(without_weight));
        callers += usize::from(has_callers(stack));
    }
    let has_enough = |count: usize, max_lines: usize| count * max_lines >= lines;
    lines >= MIN_LINES
        && (has_prefixes && has_enough(symbols, MAX_LINES_PER_SYMBOL)
            || has_enough(functions, MAX_LINES_PER_FUNCTION)
            || has_enough(callers, MAX_LINES_PER_CALLER))
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

/// Returns true for a name that only a function has.
fn is_plainly_of_function(name: &[u8]) -> bool {
    let is_number_of_colons = name.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b':');
    let has_scope = name.contains_str("::") && !is_number_of_colons;
    let is_reserved = name.starts_with(b"__") && !name.ends_with(b"__") && is_identifier(strip_clone(name));
    let is_call = name.find("(").is_some_and(|open| open > 0 && name[open - 1] != b' ') && name.ends_with(b")");
    let is_kernel = [&b"_[k]"[..], b"_[i]", b"_[j]"].iter().any(|suffix| name.ends_with(suffix));
    has_scope || is_reserved || is_call || is_kernel || strip_clone(name).len() < name.len() || name.contains_str("->")
}

/// Returns true for a name with characters that names of functions have and those of files, hosts and packages do not.
fn is_of_function(name: &[u8]) -> bool {
    let has_mark =
        name.iter().any(|byte| b"([`<${".contains(byte)) || name.contains_str("@@") || name.ends_with(b"@plt");
    // `foo#12` and `ntdll!Read`, but not `#tag`; `App\main`, but not `C:\a`.
    let has_separator = name.windows(2).any(|pair| pair[0].is_ascii_alphanumeric() && b"#!\\".contains(&pair[1]));
    has_mark
        || has_separator && !name.contains_str(":\\")
        || is_function_of_erlang(name)
        || name.contains_str("operator")
        || is_snake_case(name)
        || is_dotted(name)
}

/// Returns true for `lists:map/2`.
fn is_function_of_erlang(name: &[u8]) -> bool {
    let arity = name.rsplit_once_str("/").filter(|(name, _)| name.contains(&b':')).map(|(_, arity)| arity);
    arity.is_some_and(|arity| !arity.is_empty() && arity.iter().all(u8::is_ascii_digit))
}

/// Strips what compilers append to the names of copies of a function.
fn strip_clone(name: &[u8]) -> &[u8] {
    let suffixes = [".isra.", ".part.", ".constprop.", ".cold", ".llvm."];
    let end = suffixes.iter().filter_map(|suffix| name.find(suffix)).min();
    end.map_or(name, |end| &name[..end])
}

fn is_identifier(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Returns true for `vfs_read`. Constants and variables of the environment have no small letters.
fn is_snake_case(name: &[u8]) -> bool {
    let is_inside = name.trim_start_with(|first| first == '_').trim_end_with(|last| last == '_').contains(&b'_');
    is_inside && is_identifier(name) && name.iter().any(u8::is_ascii_lowercase)
}

/// Returns true for `java.util.HashMap.get` and `Data.Map.insert`: a part has a capital letter behind a small one, or a part
/// that begins with a capital letter is between others.
fn is_dotted(name: &[u8]) -> bool {
    let is_name = name.contains(&b'.') && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(byte));
    let has_hump = name.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let mut parts = name.rsplit(|byte| *byte == b'.').skip(1);
    let has_class = name.iter().filter(|byte| **byte == b'.').count() > 1
        && parts.any(|part| part.first().is_some_and(u8::is_ascii_uppercase));
    is_name && (has_hump || has_class)
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
            ("do_syscall_64 12\nksys_read 4\nmain 3\n", true),
            ("app.Main.main 12\njava.util.HashMap.get 4\nx 3\n", true),
            ("alice@example.org 12\nbob@example.org 5\ncarol@corp.example 9\n", false),
            ("2001:db8::1 22\n2001:db8::2 40\n2001:db8::3 5\n", false),
            ("nginx:latest 12\nredis:alpine 5\nuser:1 3\n", false),
            ("#ai 12\n#cats 5\n#dogs 3\n", false),
            ("C:\\a 12\nC:\\b 5\nC:\\c 3\n", false),
            ("HOME 12\nLC_ALL 5\nXDG_DIRS 3\n", false),
            ("Cargo.toml 12\nmy_file.txt 5\nwww.example.org 3\n", false),
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
