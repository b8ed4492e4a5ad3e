//! The folded format through real pipes.

use crate::support::run;

#[test]
fn equal_stacks_are_merged_and_sorted() {
    let merged = run("fg-collapse", [""; 0], b"main;b 1\nmain;a 2.5\r\nmain;b 3\n").ok();
    assert_eq!(merged.text(), "main;a 2.5\nmain;b 4\n");
}
