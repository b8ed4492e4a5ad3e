//! Flame graphs as text: what other programs read in them.

use crate::support::{assert_golden, directory, run, run_command, tool};

const STACKS: &[u8] =
    b"main;parse;read_[k] 30\nmain;f (int);g 1200\nmain;f (int).cold;x 1\nmain;f (int);h 40\n[off-cpu] 9.6\n";

/// The titles of the frames, as scrapers find them: name, count, unit, share, change.
fn titles(svg: &str) -> Vec<(String, String, String, String, Option<String>)> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let frames = document.descendants().find(|node| node.attribute("id") == Some("frames")).unwrap();
    let title = regex::Regex::new(r"^(.*) \(([\d,]+) (.+?), ([\d.]+)%(?:; ([+-]?[\d.]+)%)?\)$").unwrap();
    let groups = frames.children().filter(|node| node.is_element());
    groups
        .map(|group| {
            let first = group.first_element_child().unwrap();
            assert!(group.has_tag_name("g") && first.has_tag_name("title"));
            assert!(first.next_sibling_element().unwrap().has_tag_name("rect"));
            let text = first.text().unwrap();
            let found = title.captures(text).unwrap_or_else(|| panic!("{text}"));
            let part = |i: usize| found.get(i).map(|part| part.as_str().to_owned());
            (part(1).unwrap(), part(2).unwrap(), part(3).unwrap(), part(4).unwrap(), part(5))
        })
        .collect()
}

fn shown(svg: &str) -> Vec<String> {
    let change = |change: Option<String>| change.map(|change| format!(" {change}")).unwrap_or_default();
    titles(svg)
        .into_iter()
        .map(|(name, count, _, share, delta)| format!("{name} {count} {share}{}", change(delta)))
        .collect()
}

#[test]
fn titles_are_as_scrapers_expect_them() {
    let svg = run("fg-svg", ["--minwidth", "0"], STACKS).ok().text();
    assert_eq!(
        shown(&svg),
        [
            "all 1,281 100",
            "[off-cpu] 10 0.75",
            "main 1,271 99.25",
            "f (int) 1,240 96.83",
            "g 1,200 93.71",
            "h 40 3.12",
            "f (int).cold 1 0.08",
            "x 1 0.08",
            "parse 30 2.34",
            "read 30 2.34"
        ]
    );
    for id in ["title", "details", "unzoom", "search", "matched", "frames"] {
        assert_eq!(svg.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
    }
}

#[test]
fn a_small_picture_is_as_it_was() {
    let options =
        ["--title", "A & B", "--subtitle", "of a test", "--width", "600", "--notes", "a -- b", "--minwidth", "1"];
    let svg = run("fg-svg", options, STACKS).ok().text();
    // Style, script and packed profile have tests of their own.
    let (head, rest) = svg.split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    let (body, _) = body.split_once("<metadata").unwrap();
    assert_golden("svg/small.svg", format!("{head}{body}").as_bytes());
}

#[test]
fn differences_are_those_of_the_whole_subtree() {
    let svg = run("fg-svg", [""; 0], b"main;f;g 10 30\nmain;f;h 20 10\nmain;i 70 60\n").ok().text();
    let expected =
        ["all 100 100", "main 100 100.00 0.00", "f 40 40.00 +10.00", "g 30 30.00 +20.00", "h 10 10.00 -10.00"];
    assert_eq!(shown(&svg)[..5], expected);
    let negated = run("fg-svg", ["--negate"], b"main;f;g 10 30\nmain;f;h 20 10\nmain;i 70 60\n").ok().text();
    assert_eq!(shown(&negated)[2], "f 40 40.00 -10.00");
    let fill = |svg: &str, name: &str| {
        let (_, rest) = svg.split_once(&format!("<title>{name} (")).unwrap();
        rest.split_once("fill=\"#").unwrap().1[..6].to_owned()
    };
    assert_eq!(fill(&svg, "main"), "f5f5f5");
    assert_eq!(fill(&svg, "g"), "eb3c32");
    assert_ne!(fill(&svg, "h"), fill(&negated, "h"));
}

#[test]
fn the_order_of_the_input_does_not_matter() {
    let reversed: Vec<u8> = STACKS.split_inclusive(|byte| *byte == b'\n').rev().flatten().copied().collect();
    for options in [&[""; 0][..], &["--reverse"], &["--inverted", "--colors", "java"]] {
        assert!(run("fg-svg", options, STACKS).ok().stdout == run("fg-svg", options, &reversed).ok().stdout);
    }
}

#[test]
fn options_are_those_of_the_scripts_it_replaces() {
    let (a, b) =
        (run("fg-svg", ["--color", "io", "--inv"], STACKS).ok(), run("fg-svg", ["-c", "io", "-i"], STACKS).ok());
    assert!(a.stdout == b.stdout && a.text().contains(">Icicle Graph<"));
    let reversed = run("fg-svg", ["--reverse", "--minwidth", "0"], STACKS).ok().text();
    assert!(shown(&reversed).contains(&"read 30 2.34".to_owned()));
    let scaled = run("fg-svg", ["--factor", "0.5", "--countname", "ms", "--total", "2562"], STACKS).ok().text();
    assert!(titles(&scaled).iter().any(|(name, count, unit, share, _)| {
        (name.as_str(), count.as_str(), unit.as_str(), share.as_str()) == ("g", "600", "ms", "46.84")
    }));
    let wrong = run("fg-svg", ["--colors", "nonesuch"], STACKS);
    assert_eq!((wrong.code(), wrong.stdout.len()), (2, 0));
    assert!(wrong.stderr.contains("hot, mem, io"), "{}", wrong.stderr);
}

#[test]
fn what_is_too_narrow_is_said_with_a_number() {
    let svg = run("fg-svg", ["--minwidth", "1%"], STACKS).ok().text();
    assert_eq!(titles(&svg).len(), 7);
    assert!(svg.contains(">3 frames narrower than 1% not drawn</text>"));
}

#[test]
fn without_stacks_there_is_no_picture() {
    let folder = directory();
    let file = folder.path().join("flame.svg");
    for (input, message) in [(&b""[..], "no stacks"), (b"a;b 0\n", "nothing to draw"), (b"junk\n", "no line")] {
        let mut command = std::process::Command::new(tool("fg-svg"));
        command.arg("-o").arg(&file);
        let outcome = run_command(command, input);
        assert_eq!(outcome.code(), 1);
        assert!(outcome.stderr.contains(message) && !file.exists(), "{}", outcome.stderr);
    }
}
