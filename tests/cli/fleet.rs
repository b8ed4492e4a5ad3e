//! The merge of a fleet's profiles in scripts/fleet, without Spark, which distributes files and collects results.

use std::path::Path;

use crate::support::{command, directory, require, run_command, tool};

/// Stands in for Spark: two files for each task, and another task for the results of a group.
const SPARK: &str = r#"
import sys, zlib, merge
collapse, labels, *files = sys.argv[1:]
labels, groups = labels.split(","), {}
for at in range(0, len(files), 2):
    task = [(path, open(path, "rb").read()) for path in files[at:at + 2]]
    for group, part in merge.merge_partition(collapse, labels, task):
        groups.setdefault(group, []).append(part)
for group in sorted(groups, key=str):
    content, notes = merge.merge_group(collapse, group, groups[group])
    print(group, zlib.decompress(content, 31).decode().split("\n")[:-1] if content else None)
    for is_left_out, note in notes:
        print("left out" if is_left_out else "reported", note)
"#;

/// Merges files of a directory by labels and returns the report.
fn merged(folder: &Path, labels: &str, files: &[&str]) -> String {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/fleet");
    let mut python = command("python3");
    python.current_dir(folder).env("PYTHONPATH", scripts).args(["-B", "-c", SPARK, tool("fg-collapse"), labels]);
    run_command(
        {
            python.args(files);
            python
        },
        b"",
    )
    .ok()
    .text()
}

/// Writes files and returns their paths.
fn put(folder: &Path, files: &[(&'static str, &[u8])]) -> Vec<&'static str> {
    for (path, content) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    files.iter().map(|(path, _)| *path).collect()
}

#[test]
fn merges_groups_by_directory_names() {
    if !require("python3") {
        return;
    }
    let folder = directory();
    let files = put(
        folder.path(),
        &[
            ("service=a%2Fb/host=1/x.folded", b"main;a 1\n"),
            ("service=my web/host=1/service=no.folded", b"main;c 1\n"),
            ("service=a%2Fb/host=2/x.folded", b"main;b 2\nmain;a 3\n"),
            ("service=a%2Fb/host=2/core", b"\0\x01"),
            ("service=a%2Fb/host=2/x.folded.txt", b"not;this 1\n"),
            ("service=my web/host=3/empty.folded", b""),
        ],
    );
    let expected = "service=a%2Fb ['main;a 4', 'main;b 2']\nservice=my web ['main;c 1']\n";
    assert_eq!(merged(folder.path(), "service", &files), expected);
    let by_host = merged(folder.path(), "host,service", &files);
    assert!(by_host.contains("host=2/service=a%2Fb ['main;a 3', 'main;b 2']\n"), "{by_host}");
}

#[test]
fn leaves_out_and_reports_files_that_cannot_be_merged() {
    if !require("python3") {
        return;
    }
    let folder = directory();
    let files = put(
        folder.path(),
        &[
            ("service=a/1.folded.gz", b"\x1f\x8bnot gzip"),
            ("service=a/2.folded", b"main;a 1\nbad\nbad\nmain;a 0\n"),
            ("service=a/3.folded", b"main;a 1 2\n"),
            ("service=a/4.folded", b"main;a 5\n"),
            ("service=b/5.folded", b"main;b 1\n"),
            ("service=b/6.folded", b"main;b 1 2\n"),
            ("service=c/7.folded.zst", b"\x28\xb5\x2f\xfdnot zstd"),
            ("elsewhere/8.folded", b"main;b 1\n"),
        ],
    );
    let different = "has two weights per line (fg-diff), but the inputs before it have one; do not mix them";
    let plain = "has one weight per line, but the inputs before it have two (fg-diff); do not mix them";
    let expected = format!(
        "None None\n\
         left out elsewhere/8.folded: the folder names lack service=\n\
         service=a ['main;a 1']\n\
         left out service=a/1.folded.gz: the gzip data is cut short or corrupt\n\
         reported service=a/2.folded: skipped 2 malformed lines\n\
         left out service=a/4.folded: {plain}\n\
         left out service=a: {different}\n\
         service=b ['main;b 1']\n\
         left out service=b/6.folded: {different}\n\
         service=c None\n\
         left out service=c/7.folded.zst: the zstd data is cut short or corrupt\n"
    );
    assert_eq!(merged(folder.path(), "service", &files), expected);
}
