//! The folded format through real pipes.

use crate::support::run;

#[test]
fn equal_stacks_are_merged_and_sorted() {
    let merged = run("fg-collapse", [""; 0], b"main;b 1\nmain;a 2.5\r\nmain;b 3\n").ok();
    assert_eq!(merged.text(), "main;a 2.5\nmain;b 4\n");
}

#[test]
fn long_first_lines_and_zeros_in_names_are_folded_text_too() {
    for name in ["x".repeat(400_000), "a\0b".to_owned()] {
        let line = format!("main;{name} 1\n");
        assert_eq!(run("fg-collapse", [""; 0], line.as_bytes()).ok().text(), line);
    }
}
