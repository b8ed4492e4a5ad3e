//! Options that are given twice.

use crate::support::{directory, run};

#[test]
fn a_second_file_never_replaces_the_first() {
    let folder = directory();
    let files = ["one", "two"].map(|name| {
        let path = folder.path().join(name);
        std::fs::write(&path, "a\0").unwrap();
        path.to_str().unwrap().to_owned()
    });
    let [one, two] = &files;
    for (program, option) in [
        ("fg-check", "--rules"),
        ("fg-check", "--junit"),
        ("fg-check", "--categories"),
        ("fg-csv", "--categories"),
        ("fg-csv", "--files0-from"),
        ("fg-diff", "--before0-from"),
        ("fg-diff", "--after0-from"),
        ("fg-svg", "--chances"),
        ("fg-svg", "--nameattr"),
        ("fg-collapse", "--span"),
        ("fg-collapse", "--kallsyms"),
        ("fg-collapse", "--symfs"),
    ] {
        let outcome = run(program, [option, one, option, two], b"");
        assert_eq!(outcome.code(), 2, "{outcome:?}");
        assert!(outcome.stderr.contains(option) && outcome.stderr.contains("multiple times"), "{outcome:?}");
    }
    let outcome = run("fg-csv", ["--top=1", "--top=2"], b"a 1\nb 2\nc 3\n");
    assert_eq!(outcome.ok().text().lines().count(), 3, "of other options, the last one wins");
}

#[test]
fn two_lists_cannot_be_read_from_standard_input() {
    let folder = directory();
    let path = folder.path().join("one");
    std::fs::write(&path, "a 1\n").unwrap();
    let list = format!("{}\0", path.to_str().unwrap());
    let outcome = run("fg-diff", ["--before0-from", "-", "--after0-from", "-"], list.as_bytes());
    assert!(outcome.code() == 2 && outcome.stderr.contains("can have one list only"), "{outcome:?}");
}
