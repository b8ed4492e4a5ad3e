//! Inputs: files and standard input, compressed or not, well-formed or not.

use std::io::Write as _;

use super::{READERS, Workspace, mergers};
#[cfg(target_os = "linux")]
use crate::support::{self, command};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn reads_standard_input_like_a_file() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let expected = workspace.run(["in.folded"]).ok().stdout;
        assert!(!expected.is_empty(), "{program:?}");
        assert_eq!(workspace.run_with(["-"], program.profile.as_bytes()).ok().stdout, expected, "{program:?}");
        if program.merges {
            assert_eq!(workspace.run_with([""; 0], program.profile.as_bytes()).ok().stdout, expected, "{program:?}");
        }
    }
}

#[test]
fn reads_several_files_as_one_stream() {
    for program in mergers() {
        let workspace = Workspace::new(program);
        let late = (program.line)("late");
        workspace.file("half.folded", &late);
        workspace.file("both.folded", [program.profile, &late].concat());
        let expected = workspace.run(["both.folded"]).ok().stdout;
        assert_eq!(workspace.run(["in.folded", "half.folded"]).ok().stdout, expected, "{program:?}");
        assert_eq!(workspace.run_with(["in.folded", "-"], late.as_bytes()).ok().stdout, expected, "{program:?}");
    }
}

#[test]
fn reads_the_files_of_a_list() {
    for program in mergers() {
        let workspace = Workspace::new(program);
        workspace.file("half of it.folded", (program.line)("late"));
        let expected = workspace.run(["in.folded", "half of it.folded"]).ok().stdout;
        workspace.file("list", "in.folded\0half of it.folded\0");
        assert_eq!(workspace.run(["--files0-from", "list"]).ok().stdout, expected, "{program:?}");
        let list = b"in.folded\0half of it.folded";
        assert_eq!(workspace.run_with(["--files0-from=-"], list).ok().stdout, expected, "{program:?}");
        for (list, message) in [
            ("", "the list names no file"),
            ("in.folded\0\0in.folded\0", "name 2 is empty"),
            ("in.folded\nhalf of it.folded\n", "each name must end with a null byte, as `find -print0` writes them"),
            ("-\0", "name 1 is -, but the list is read from standard input"),
        ] {
            let outcome = workspace.run_with(["--files0-from=-"], list.as_bytes());
            assert_eq!(outcome.code(), program.failure, "{outcome:?}");
            assert!(outcome.stderr.contains(&format!("--files0-from stdin: {message}")), "{outcome:?}");
        }
        assert_eq!(workspace.run(["--files0-from=list", "in.folded"]).code(), 2, "{program:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn many_files_take_no_memory_each() {
    // The data structures of each decompressor alone take more than a tenth of this.
    const KILOBYTES: usize = 1_500_000;
    let folder = crate::support::directory();
    let names: Vec<String> = (0..2000).map(|number| format!("{number}.folded.gz")).collect();
    for (number, name) in names.iter().enumerate() {
        std::fs::write(folder.path().join(name), gzip(format!("main;f{number} 1\n").as_bytes())).unwrap();
    }
    std::fs::write(folder.path().join("list"), names.join("\0")).unwrap();
    for options in ["fg-collapse -n 2", "fg-filter"] {
        let (program, options) = options.split_once(' ').unwrap_or((options, ""));
        let line = format!("ulimit -v {KILOBYTES}; exec {} {options} --files0-from list", support::tool(program));
        let mut shell = command("sh");
        shell.args(["-c", &line]).current_dir(folder.path());
        let text = support::run_command(shell, b"").ok().text();
        assert_eq!(text.lines().count(), names.len(), "{program}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn thousands_of_small_files_take_little_memory() {
    // Of these files, at least 66 KB each were once kept: 330 MB.
    const LIMIT: u64 = 64 << 20;
    let folder = crate::support::directory();
    let names: Vec<String> = (0..5000).map(|number| format!("{number}.folded")).collect();
    for (number, name) in names.iter().enumerate() {
        let stacks = (0..3).map(|leaf| format!("main;handle_{number};leaf_{number}_{leaf} {}\n", leaf + 1));
        std::fs::write(folder.path().join(name), stacks.collect::<String>()).unwrap();
    }
    std::fs::write(folder.path().join("list"), names.join("\0")).unwrap();
    for (program, options) in [("fg-collapse", &["-n", "2"][..]), ("fg-filter", &[]), ("fg-csv", &[]), ("fg-svg", &[])]
    {
        let mut command = command(support::tool(program));
        command.current_dir(folder.path()).args(options).args(["--files0-from", "list"]);
        let peak = support::process::memory_at_output(command);
        assert!(peak <= LIMIT, "{program} {options:?}: {} MB", peak / 1_000_000);
    }
}

#[test]
fn reports_an_unreadable_file_and_reads_the_others() {
    for program in mergers() {
        let workspace = Workspace::new(program);
        let expected = workspace.run(["in.folded"]).ok().stdout;
        std::fs::create_dir(workspace.path().join("folder")).unwrap();
        let outcome = workspace.run(["missing", "folder", "in.folded"]);
        assert_eq!((outcome.code(), &outcome.stdout), (program.failure, &expected), "{outcome:?}");
        let name = program.name;
        assert!(outcome.stderr.contains(&format!("{name}: missing: No such file or directory\n")), "{outcome:?}");
        let directory = format!("{name}: folder: is a directory; name the files in it: folder/*\n");
        assert!(outcome.stderr.contains(&directory), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 2, "{outcome:?}");
        std::fs::write(workspace.path().join("folder/perf.data.2026112420000000"), "").unwrap();
        let outcome = workspace.run(["folder", "in.folded"]);
        assert!(outcome.stderr.contains("name the files in it: folder/perf.data.*\n"), "{outcome:?}");
    }
}

#[test]
fn rejects_standard_input_given_twice() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let operands: &[&str] = if program.merges { &["-", "-"] } else { &["-", "-", "-"] };
        let outcome = workspace.run(operands);
        assert_eq!((outcome.code(), &outcome.stdout[..]), (2, &b""[..]), "{outcome:?}");
    }
}

#[test]
fn detects_compression_by_content() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let expected = workspace.run(["in.folded"]).ok().stdout;
        let (first, second) = program.profile.split_at(program.profile.rfind("main").unwrap());
        for pack in [gzip, zstd] {
            let parts = [pack(first.as_bytes()), pack(second.as_bytes())].concat();
            for packed in [pack(program.profile.as_bytes()), parts] {
                workspace.file("misnamed.txt", &packed);
                assert_eq!(workspace.run(["misnamed.txt"]).ok().stdout, expected, "{program:?}");
                assert_eq!(workspace.run_with(["-"], &packed).ok().stdout, expected, "{program:?}");
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn works_with_one_thread_if_the_system_permits_no_more() {
    use std::os::unix::fs::PermissionsExt as _;
    if !support::require("setpriv") || !support::require("prlimit") {
        return;
    }
    for program in READERS {
        let workspace = Workspace::new(program);
        let input = workspace.file("in.gz", gzip(program.profile.as_bytes()));
        let expected = workspace.run([&input]).ok().stdout;
        std::fs::set_permissions(workspace.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        // Another process copies it: a file that is open for writing, here or in a child of another test, cannot be
        // run.
        let copy = workspace.path().join(program.name);
        assert!(command("cp").arg(support::tool(program.name)).arg(&copy).status().unwrap().success());
        // The kernel does not limit the threads of root.
        let as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let is_root = rustix::process::geteuid().is_root();
        let words = as_nobody.into_iter().filter(|_| is_root).chain(["prlimit", "--nproc=1"]);
        let mut command = command("env");
        command.args(words).arg(&copy).args(program.before).arg(&input).current_dir(workspace.path());
        let outcome = support::run_command(command, b"").ok();
        assert!(outcome.stdout == expected && outcome.stderr.is_empty(), "{outcome:?}");
    }
}

#[test]
fn reports_broken_compressed_input_in_one_line() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let text = program.profile.repeat(10_000);
        for (format, packed) in [("gzip", gzip(text.as_bytes())), ("zstd", zstd(text.as_bytes()))] {
            let mut changed = packed.clone();
            changed[packed.len() / 2] ^= 0x55;
            for broken in [&packed[..packed.len() / 2], &packed[..6], &changed] {
                let outcome = workspace.run_with(["-q", "-"], broken);
                assert_eq!(outcome.code(), program.failure, "{outcome:?}");
                let expected = format!("{}: stdin: the {format} data is cut short or corrupt\n", program.name);
                assert_eq!(outcome.stderr, expected);
            }
        }
    }
}

#[test]
fn reports_truncated_compression_before_anything_is_read() {
    for text in ["\n\n  \n", "{ \"cut\": ", "\u{1}\u{2}"] {
        let packed = gzip(text.as_bytes());
        let outcome = crate::support::run("fg-collapse", [""; 0], &packed[..packed.len() - 4]);
        assert_eq!(outcome.code(), 1, "{outcome:?}");
        assert_eq!(outcome.stderr, "fg-collapse: stdin: the gzip data is cut short or corrupt\n");
    }
}

#[test]
fn keeps_what_is_before_the_cut_of_truncated_compression() {
    let text: String = (0..50_000).map(|number| format!("main;f{number:05} {}\n", number + 1)).collect();
    for packed in [gzip(text.as_bytes()), zstd(text.as_bytes())] {
        let outcome = crate::support::run("fg-collapse", ["-q"], &packed[..packed.len() - 1]);
        assert_eq!(outcome.code(), 1, "{outcome:?}");
        let kept = outcome.stdout.len();
        assert!(kept > 0 && text.as_bytes().starts_with(&outcome.stdout), "{kept} bytes of {}", text.len());
    }
}

#[test]
fn accepts_crlf_and_byte_order_marks() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let expected = workspace.run(["in.folded"]).ok().stdout;
        let foreign = format!("\u{feff}{}", program.profile.replace('\n', "\r\n"));
        for text in
            [foreign.as_str(), program.profile.trim_end(), foreign.trim_end(), &format!("{}\n\n", program.profile)]
        {
            let outcome = workspace.run_with(["-"], text.as_bytes()).ok();
            assert_eq!((&outcome.stdout, outcome.stderr.as_str()), (&expected, ""), "{program:?} {text:?}");
        }
    }
}

#[test]
fn output_does_not_depend_on_the_order_of_the_input() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let expected = workspace.run(["in.folded"]).ok().stdout;
        let mut lines: Vec<&str> = program.profile.lines().collect();
        for index in 1..lines.len() {
            lines.rotate_left(1);
            lines.swap(0, index);
            let outcome = workspace.run_with(["-"], (lines.join("\n") + "\n").as_bytes()).ok();
            assert_eq!(outcome.stdout, expected, "{program:?} {lines:?}");
        }
    }
}

#[test]
fn input_without_stacks_is_a_failure_and_says_so_in_one_line() {
    for program in READERS.into_iter().filter(|program| program.merges) {
        let workspace = Workspace::new(program);
        workspace.file("empty.folded", "");
        workspace.file("blank.folded", "\n\n");
        for operands in [&["-"][..], &["empty.folded"], &["empty.folded", "blank.folded"], &["-q", "blank.folded"]] {
            let outcome = workspace.run(operands);
            assert_eq!((outcome.code(), &outcome.stdout[..]), (program.failure, &b""[..]), "{operands:?} {outcome:?}");
            assert!(outcome.stderr.lines().count() == 1, "{operands:?} {outcome:?}");
            assert!(outcome.stderr.contains("no stacks"), "{operands:?} {outcome:?}");
        }
        let expected = workspace.run(["in.folded"]).ok().stdout;
        assert_eq!(workspace.run(["empty.folded", "in.folded", "blank.folded"]).ok().stdout, expected, "{program:?}");
    }
}

#[test]
fn rejects_input_of_no_known_format() {
    for program in READERS {
        let workspace = Workspace::new(program);
        for text in [&b"no profile at all\n"[..], b"\x7fELF\x02\x01\x01\0\0\0\0\0\n\xff\xfe\0"] {
            let outcome = workspace.run_with(["-"], text);
            assert_eq!(outcome.code(), program.failure, "{outcome:?}");
            assert!(!outcome.stderr.is_empty(), "{outcome:?}");
        }
    }
}

#[test]
fn double_dash_ends_the_options() {
    for program in READERS {
        let workspace = Workspace::new(program);
        let expected = workspace.run(["in.folded"]).ok().stdout;
        workspace.file("-q", program.profile);
        workspace.file("-", (program.line)("other"));
        assert_eq!(workspace.run(["--", "-q"]).ok().stdout, expected, "{program:?}");
        assert_ne!(workspace.run(["./-"]).ok().stdout, expected, "{program:?}");
    }
}
