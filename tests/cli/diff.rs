//! fg-diff: comparisons of two profiles.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::support::{assert_golden, data, directory, run};

/// Writes both sides into files of a folder.
pub fn files(before: &str, after: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = directory();
    let (a, b) = (folder.path().join("before"), folder.path().join("after"));
    std::fs::write(&a, before).unwrap();
    std::fs::write(&b, after).unwrap();
    (folder, a, b)
}

fn diff(options: &[&str], before: &str, after: &str) -> String {
    let (_folder, before, after) = files(before, after);
    let arguments = options.iter().map(PathBuf::from).chain([before, after]);
    run("fg-diff", arguments, b"").ok().text()
}

#[test]
fn prints_every_stack_with_both_weights() {
    let sides = [data("diff/before.folded"), data("diff/after.folded")];
    assert_golden("diff/plain.folded", &run("fg-diff", &sides, b"").ok().stdout);
    for options in ["-n", "-s", "-ns", "--normalize", "--strip-hex"] {
        let arguments = [PathBuf::from(options)].into_iter().chain(sides.clone());
        let out = run("fg-diff", arguments, b"").ok();
        let name = options.trim_start_matches('-').replace("normalize", "n").replace("strip-hex", "s");
        assert_golden(&format!("diff/{name}.folded"), &out.stdout);
    }
}

#[test]
fn normalize_keeps_the_total_despite_rounding() {
    let out = diff(&["-n"], "a;b 10\na;c 1000001\n", "a;b 3\n");
    assert_eq!(out, "a;b 0 3\na;c 3 0\n");
    assert_eq!(diff(&["-n"], "a 1\nb 1\nc 1\n", "a 4\n"), "a 1 4\nb 2 0\nc 1 0\n");
    assert_eq!(diff(&["-n"], "a 0.5\nb 0.25\n", "a 3\n"), "a 2 3\nb 1 0\n");
    assert_eq!(diff(&["-n"], "a 0.5\nb 1\n", "a 1\n"), "a 0.333333 1\nb 0.666667 0\n");
}

#[test]
fn compares_with_an_empty_profile() {
    assert_eq!(diff(&[], "", "a 1\n"), "a 0 1\n");
    assert_eq!(diff(&[], "a 1\n", ""), "a 1 0\n");
    assert_eq!(diff(&["-n"], "", "a 1\n"), "a 0 1\n");
}

#[test]
fn a_side_without_stacks_is_reported() {
    let (_folder, before, after) = files("", "a 1\n");
    let compare = |operands: &[&OsStr]| run("fg-diff", operands, b"");
    let (before, after) = (before.as_os_str(), after.as_os_str());
    let warning = format!("fg-diff: {}: no stacks in the input", before.display());
    assert!(compare(&[before, after]).ok().stderr.starts_with(&warning));
    let none = compare(&[before, before]);
    assert_eq!((none.code(), none.text().as_str(), none.stderr.lines().count()), (2, "", 1), "{none:?}");
    // A run without stacks would hide each difference of the others.
    for options in [&["--significant"][..], &[]] {
        let mut operands: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
        operands.extend(["--before".as_ref(), before, after, "--after".as_ref(), after]);
        let refused = compare(&operands);
        assert_eq!((refused.code(), refused.text().as_str()), (2, ""), "{refused:?}");
        assert!(refused.stderr.contains("no stacks in this run"), "{refused:?}");
    }
}

#[test]
fn reports_an_empty_side_that_cannot_be_scaled() {
    for (before, after, side) in [("", "a 1\n", "before"), ("a 1\n", "", "after")] {
        let (_folder, before, after) = files(before, after);
        let out = run("fg-diff", ["-n".as_ref(), before.as_os_str(), after.as_os_str()], b"").ok();
        assert!(
            out.stderr.contains(&format!("fg-diff: --normalize has no effect: the total weight {side} is 0")),
            "{}",
            out.stderr
        );
    }
}

#[test]
fn rejects_incomplete_or_negative_options() {
    for (options, message) in [
        (&["--before", "a"][..], "--after <FILE>"),
        (&["--after", "a"], "--before <FILE>"),
        (
            &["--min-change", "-5", "a", "b"],
            "invalid value '-5' for '--min-change <WEIGHT|%>': expected a weight or a share",
        ),
        (&["--min-change", "-5%", "a", "b"], "invalid value '-5%'"),
        (&["--scale", "-2", "a", "b"], "invalid value '-2' for '--scale <FACTOR>'"),
    ] {
        let out = run("fg-diff", options, b"");
        assert_eq!(out.code(), 2);
        assert!(out.stderr.contains(message) && !out.stderr.contains("<BEFORE>"), "{}", out.stderr);
    }
}

#[test]
fn reads_one_side_from_standard_input() {
    let (_folder, before, _) = files("a 1\n", "");
    let out = run("fg-diff", [before.as_os_str(), "-".as_ref()], b"a 2\n").ok();
    assert_eq!(out.text(), "a 1 2\n");
    let twice = run("fg-diff", ["-", "-"], b"a 2\n");
    assert_eq!(twice.code(), 2);
    assert!(twice.stderr.contains("only once"), "{}", twice.stderr);
}

#[test]
fn fails_without_output_if_one_side_is_unreadable() {
    let (_folder, before, _) = files("a 1\n", "");
    let out = run("fg-diff", [before.as_os_str(), "/nonexistent/after".as_ref()], b"");
    assert_eq!((out.code(), out.text().as_str()), (2, ""));
    assert!(out.stderr.contains("/nonexistent/after: No such file"), "{}", out.stderr);
    let one = run("fg-diff", [before], b"");
    assert_eq!(one.code(), 2);
}

#[test]
fn rejects_a_comparison_as_input() {
    let (_folder, before, after) = files("a 1 2\n", "a 1\n");
    let out = run("fg-diff", [&before, &after], b"");
    assert_eq!((out.code(), out.text().as_str()), (2, ""));
    assert!(out.stderr.contains("two weights per line"), "{}", out.stderr);
}

/// Makes a profile with a function for each weight.
fn counts(weights: &[u32]) -> String {
    weights.iter().enumerate().map(|(number, weight)| format!("main;f{number:03} {weight}\n")).collect()
}

#[test]
fn scales_before_by_a_factor() {
    assert_eq!(diff(&["--scale", "2.5"], "a 3\nb 1\n", "a 1\n"), "a 8 1\nb 2 0\n");
    assert_eq!(diff(&["--scale=0.5"], "a 0.5\n", "a 1\n"), "a 0.25 1\n");
}

#[test]
fn strip_makes_renamed_frames_equal() {
    let out = diff(&["--strip", "^v[0-9]+::=", "--strip=<.*>=<_>"], "main;v1::run<u8> 3\n", "main;v2::run<i8> 4\n");
    assert_eq!(out, "main;run<_> 3 4\n");
    assert_eq!(run("fg-diff", ["--strip", "x", "a", "b"], b"").code(), 2);
}

#[test]
fn min_change_flattens_small_changes() {
    let (before, after) = ("a 100\nb 100\nc 10\n", "a 101\nb 90\n");
    assert_eq!(diff(&["--min-change", "10"], before, after), "[flattened] 0 0\na 101 101\nb 100 90\nc 10 0\n");
    assert_eq!(diff(&["--min-change", "5.3%"], before, after), "[flattened] 0 0\na 101 101\nb 90 90\nc 0 0\n");
    let noted = {
        let (_folder, before, after) = files(before, after);
        run("fg-diff", [PathBuf::from("-v"), "--min-change=10".into(), before, after], b"").ok().stderr
    };
    assert!(noted.contains("3 stacks: 1 only before, 0 only after, 2 different, 1 difference ignored"), "{noted}");
}

/// Lost samples belong to no function, so the runs are scaled by the others.
#[test]
fn lost_samples_scale_nothing() {
    let folder = directory();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let before = write("before", "[lost] 51\nmain;a 30\nmain;b 23\n");
    let after = write("after", "[lost] 7\nmain;a 61\nmain;b 47\n");
    let unsorted = write("unsorted", "main;b 23\nmain;a 30\n[lost] 51\n");
    for before in [&before, &unsorted] {
        let out = run("fg-diff", [Path::new("-n"), before, &after], b"").ok().text();
        assert_eq!(out, "[lost] 104 7\nmain;a 61 61\nmain;b 47 47\n");
    }
}

#[test]
fn significant_flattens_noise() {
    let mut before = [400, 380, 410, 395, 1, 0, 2, 12].repeat(10);
    let mut after = [385, 402, 398, 421, 0, 1, 1, 18].repeat(10);
    assert!(diff(&["--significant"], &counts(&before), &counts(&after)).lines().all(|line| {
        let weights: Vec<&str> = line.rsplitn(3, ' ').take(2).collect();
        weights[0] == weights[1]
    }));
    (before[3], after[3]) = (400, 1200);
    (before[4], after[4]) = (0, 400);
    // Two runs of one program may differ this much.
    (before[8], after[8]) = (400, 600);
    let out = diff(&["--significant"], &counts(&before), &counts(&after));
    assert!(out.contains("main;f003 400 1200\n") && out.contains("main;f004 0 400\n"), "{out}");
    assert!(out.starts_with("[flattened] 0 0\n"), "fg-svg is told: {out}");
    let different = out.lines().filter(|line| {
        let weights: Vec<&str> = line.rsplitn(3, ' ').take(2).collect();
        weights[0] != weights[1]
    });
    assert_eq!(different.count(), 2);
}

#[test]
fn judged_differences_are_not_judged_again() {
    let flattened = b"[flattened] 0 0\nmain;f 100 300\nmain;g 900 900\n";
    for (program, options) in [("fg-report", &[][..]), ("fg-csv", &[]), ("fg-check", &["--growth=5%"])] {
        let out = run(program, options, flattened);
        assert!(out.code() != 0 && out.text().is_empty(), "{program}: {}", out.text());
        assert!(
            out.stderr.contains("fg-diff --significant or --min-change has replaced weights before"),
            "{program}: {}",
            out.stderr
        );
    }
    // Other rules apply to the weights after, which are those that were measured.
    assert_eq!(run("fg-check", ["--self=f=20%"], flattened).code(), 1);
    assert_eq!(run("fg-check", ["--self=f=30%"], flattened).code(), 0);
}

#[test]
fn distinguishes_an_empty_side_from_a_malformed_one() {
    let (_folder, before, after) = files("main;a 10\nmain;a 5\nc\n", "");
    let out = run("fg-diff", [&before, &after], b"").ok();
    assert_eq!(out.text(), "main;a 15 0\n");
    assert!(out.stderr.contains("before:3") && out.stderr.contains("1 malformed"), "{}", out.stderr);
}

#[test]
fn several_runs_of_each_side_show_the_noise() {
    // Durations: one run of each side does not show the noise. A few short durations do not make counts of them, with a thread state
    // or without.
    let durations: Vec<u32> = (0..40).map(|number| 10_007 + 1003 * number).collect();
    let longer: Vec<u32> = durations.iter().map(|weight| weight + weight % 7 * 2003).collect();
    let compare = |state: &str| {
        let text = |weights: &[u32]| counts(weights) + &format!("short{state} 3\n");
        let (_folder, before, after) = files(&text(&durations), &text(&longer));
        run("fg-diff", ["--significant".as_ref(), before.as_os_str(), after.as_os_str()], b"")
    };
    let refused = compare(";[off-cpu]");
    assert_eq!((refused.code(), refused.text().as_str()), (2, ""));
    assert!(refused.stderr.contains("are durations") && refused.stderr.contains("--per-sample"), "{}", refused.stderr);
    let warned = compare("").ok();
    assert!(warned.stderr.contains("because few weights are small; if the weights are durations"), "{}", warned.stderr);
    // Weights that only may be durations are compared, with a warning.
    let (_folder, before, after) = files(&counts(&durations), &counts(&longer));
    let warned = run("fg-diff", ["--significant".as_ref(), before.as_os_str(), after.as_os_str()], b"").ok();
    assert!(warned.stderr.contains("if the weights are durations"), "{}", warned.stderr);

    let folder = directory();
    let write = |name: &str, shift: &dyn Fn(u32) -> u32| {
        let path = folder.path().join(name);
        let weights: Vec<u32> = (0..40).map(|number| 10_007 + 1003 * number + shift(number)).collect();
        std::fs::write(&path, counts(&weights)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let noise = |run: u32| move |number: u32| (number * 7919 + run * 104_729) % 701;
    let slower = |run: u32| move |number: u32| noise(run)(number) + if number == 7 { 9000 } else { 0 };
    let mut arguments = vec!["--significant".to_owned()];
    for run in 0..3 {
        arguments.extend(["--before".to_owned(), write(&format!("b{run}"), &noise(run))]);
        arguments.extend(["--after".to_owned(), write(&format!("a{run}"), &slower(run + 3))]);
    }
    let out = run("fg-diff", &arguments, b"").ok();
    let text = out.text();
    let different = text.lines().filter(|line| {
        let weights: Vec<&str> = line.rsplitn(3, ' ').take(2).collect();
        weights[0] != weights[1]
    });
    let different: Vec<&str> = different.collect();
    assert!(matches!(&different[..], [one] if one.starts_with("main;f007 ")), "{different:?}\n{}", out.stderr);
}

#[test]
fn adds_runs_up_and_scales_by_their_number() {
    let (folder, before, after) = files("a 10\nb 5\n", "a 12\n");
    let other = folder.path().join("other");
    std::fs::copy(&after, &other).unwrap();
    let [before, after, other] = [before, after, other].map(|path| path.to_str().unwrap().to_owned());
    let out = run("fg-diff", ["--before", &before, "--after", &after, "--after", &other], b"").ok();
    assert_eq!(out.text(), "a 20 24\nb 10 0\n");
    let mixed = run("fg-diff", ["--before", &before, &after], b"");
    assert_eq!(mixed.code(), 2);
}

#[test]
fn exit_code_reports_differences() {
    let (_folder, before, after) = files("a 10\nb 5\n", "a 12\n");
    let exit_status = |options: &[&str], files: [&PathBuf; 2]| {
        run("fg-diff", options.iter().map(PathBuf::from).chain(files.map(PathBuf::clone)), b"").code()
    };
    assert_eq!(exit_status(&["--exit-code"], [&before, &after]), 1);
    assert_eq!(exit_status(&["--exit-code"], [&before, &before]), 0);
    assert_eq!(exit_status(&["--exit-code", "--significant"], [&before, &after]), 0);
    assert_eq!(exit_status(&[], [&before, &after]), 0);
}

#[test]
fn verbose_summarizes_the_comparison() {
    let messages = |options: &[&str]| {
        let (_folder, before, after) = files("a 10\nb 5\n", "a 12\n");
        run("fg-diff", options.iter().map(PathBuf::from).chain([before, after]), b"").ok().stderr
    };
    let expected = "before 15 (scaled by 0.800000), after 12; 2 stacks: 1 only before, 0 only after, 2 different";
    assert_eq!(messages(&["-vn"]), format!("fg-diff: {expected}\n"));
    assert_eq!(messages(&["-n"]), "");
}

/// Makes stacks in a fixed pseudorandom order, some of them twice.
fn stacks(seed: u32, fraction: &str) -> String {
    let line = |number: u32| {
        let random = number.wrapping_mul(2_654_435_761).wrapping_add(seed.wrapping_mul(40_503));
        let frames: Vec<String> =
            (0..1 + random % 5).map(|depth| format!("f{}", (random >> (depth * 3)) % 4)).collect();
        format!("{} {}{fraction}\n", frames.join(";"), random % 1000)
    };
    (0..300).map(line).collect()
}

#[test]
fn merges_sorted_files_with_the_same_result() {
    for fraction in ["", ".25"] {
        let (_folder, before, after) = files(&stacks(1, ""), &stacks(7, fraction));
        let sorted = [&before, &after].map(|path| run("fg-collapse", [path], b"").ok().text());
        let (_sorted, sorted_before, sorted_after) = files(&sorted[0], &sorted[1]);
        for options in [&[][..], &["-n"], &["--scale=1.7"], &["-n", "--min-change=0.4%"], &["--min-change=100"]] {
            let compared = |before: &PathBuf, after: &PathBuf| {
                let options = ["-v"].iter().chain(options).map(PathBuf::from);
                let out = run("fg-diff", options.chain([before.clone(), after.clone()]), b"").ok();
                (out.text(), out.stderr)
            };
            let unsorted = compared(&before, &after);
            assert!(unsorted.0.lines().count() > 100);
            assert_eq!(compared(&sorted_before, &sorted_after), unsorted, "{options:?}");
            assert_eq!(compared(&sorted_before, &after), unsorted, "{options:?}");
        }
    }
}

#[test]
fn accepts_names_that_begin_like_compressed_data() {
    let folder = directory();
    let [before, after] = ["before", "after"].map(|name| folder.path().join(name));
    std::fs::write(&before, "main;b 1\nmain;a 2\n").unwrap();
    for name in [&b"\x1f\x8b\x08"[..], b"(\xb5/\xfd", b"\xef\xbb\xbfmain;a", b"\xff\xfea", b" a", b""] {
        let text = [b"main;b 1\nmain;a 2\n", name, b";x 3\n"].concat();
        std::fs::write(&after, &text).unwrap();
        let file = run("fg-diff", [&before, &after], b"").ok();
        let pipe = run("fg-diff", [before.as_os_str(), "-".as_ref()], &text).ok();
        assert_eq!(file.stdout, pipe.stdout, "{}", name.escape_ascii());
        assert!(file.stdout.windows(name.len() + 6).any(|part| part == [name, b";x 0 3"].concat()), "{}", file.text());
    }
}

#[test]
fn reads_the_names_of_runs_from_lists() {
    let (folder, before, after) = files("a 1\nb 2\n", "a 3\n");
    let list = |name: &str, files: &[&PathBuf]| {
        let path = folder.path().join(name);
        let names: Vec<_> = files.iter().flat_map(|file| [file.as_os_str().as_encoded_bytes(), b"\0"]).collect();
        std::fs::write(&path, names.concat()).unwrap();
        path
    };
    let other = folder.path().join("other");
    std::fs::copy(&before, &other).unwrap();
    let lists = [list("list-before", &[&before, &other]), list("list-after", &[&after])];
    let option = |name: &str, list: &PathBuf| [PathBuf::from(name), list.clone()];
    let arguments = [option("--before0-from", &lists[0]), option("--after0-from", &lists[1])].concat();
    assert_eq!(run("fg-diff", &arguments, b"").ok().text(), "a 1 3\nb 2 0\n");
    assert_eq!(run("fg-diff", &arguments[..2], b"").code(), 2, "a side is missing");
    for program in ["fg-csv", "fg-report"] {
        let by_name = [&PathBuf::from("--before"), &before, &other, &"--after".into(), &after];
        let expected = run(program, by_name, b"").ok().stdout;
        assert_eq!(run(program, &arguments, b"").ok().stdout, expected, "{program}");
    }
    let empty = list("empty", &[]);
    for (options, named) in [
        ([option("--before0-from", &empty), option("--after0-from", &lists[1])].concat(), "--before0-from"),
        ([option("--before0-from", &lists[0]), option("--after0-from", &empty)].concat(), "--after0-from"),
    ] {
        let said = run("fg-report", &options, b"").stderr;
        assert!(said.contains(named) && said.contains("names no file") && !said.contains("files0"), "{said}");
    }
    let said = run("fg-report", option("--files0-from", &empty), b"").stderr;
    assert!(said.contains("--files0-from") && said.contains("names no file"), "{said}");
}
