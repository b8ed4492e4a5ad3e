//! fg-svg: the SVG as text. Tests in a browser are in tests/browser.

use crate::support::{assert_golden, command, directory, run, run_command, tool};

const STACKS: &[u8] =
    b"main;parse;read_[k] 30\nmain;f (int);g 1200\nmain;f (int).cold;x 1\nmain;f (int);h 40\n[off-cpu] 9.6\n";

/// Parses the titles of frames as scrapers do: name, count, unit, share, change.
fn parse_titles(svg: &str) -> Vec<(String, String, String, String, Option<String>)> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let frames = document.descendants().find(|node| node.attribute("id") == Some("frames")).unwrap();
    let title = regex::Regex::new(r"^(.*) \(([\d,]+) (.+?), ([\d.]+)%(?:; ([+-]?[\d.]+)%)?\)$").unwrap();
    let groups = frames.children().filter(|node| node.is_element());
    groups
        .map(|group| {
            let first = group.first_element_child().unwrap();
            assert!(group.has_tag_name("g") && first.has_tag_name("title"));
            // A frame too narrow to distinguish is drawn as a stroke.
            let shape = first.next_sibling_element().unwrap();
            let width = shape.attribute("width").map(|width| width.parse::<f64>().unwrap());
            assert!(if shape.has_tag_name("rect") { width >= Some(0.4) } else { shape.has_tag_name("path") });
            let text = first.text().unwrap();
            let found = title.captures(text).unwrap_or_else(|| panic!("{text}"));
            let part = |i: usize| found.get(i).map(|part| part.as_str().to_owned());
            (part(1).unwrap(), part(2).unwrap(), part(3).unwrap(), part(4).unwrap(), part(5))
        })
        .collect()
}

/// Lists the frames as `NAME COUNT SHARE [CHANGE]`.
fn list_frames(svg: &str) -> Vec<String> {
    let change = |change: Option<String>| change.map(|change| format!(" {change}")).unwrap_or_default();
    parse_titles(svg)
        .into_iter()
        .map(|(name, count, _, share, delta)| format!("{name} {count} {share}{}", change(delta)))
        .collect()
}

#[test]
fn titles_have_the_form_that_scrapers_expect() {
    let svg = run("fg-svg", ["--minwidth", "0"], STACKS).ok().text();
    assert_eq!(
        list_frames(&svg),
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
fn a_small_graph_matches_its_golden_file() {
    let options =
        ["--title", "A & B", "--subtitle", "of a test", "--width", "600", "--notes", "a -- b", "--minwidth", "1"];
    let svg = run("fg-svg", options, STACKS).ok().text();
    // Without style, script and embedded profile, which have tests of their own.
    let (head, rest) = svg.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (captions, rest) = rest.split_once("<metadata").unwrap();
    let (_, frames) = rest.rsplit_once("</script>").unwrap();
    assert_golden("svg/small.svg", format!("{head}{captions}{frames}").as_bytes());
}

#[test]
fn a_difference_is_that_of_the_whole_subtree() {
    let svg = run("fg-svg", [""; 0], b"main;f;g 10 30\nmain;f;h 20 10\nmain;i 70 60\n").ok().text();
    let expected =
        ["all 100 100", "main 100 100.00 0.00", "f 40 40.00 +10.00", "g 30 30.00 +20.00", "h 10 10.00 -10.00"];
    assert_eq!(list_frames(&svg)[..5], expected);
    let negated = run("fg-svg", ["--negate"], b"main;f;g 10 30\nmain;f;h 20 10\nmain;i 70 60\n").ok().text();
    assert_eq!(list_frames(&negated)[2], "f 40 40.00 -10.00");
    let fill = |svg: &str, name: &str| {
        let (_, rest) = svg.split_once(&format!("<title>{name} (")).unwrap();
        rest.split_once("fill=\"#").unwrap().1[..6].to_owned()
    };
    assert_eq!(fill(&svg, "main"), "f5f5f5");
    assert_eq!(fill(&svg, "g"), "eb3c32");
    assert_ne!(fill(&svg, "h"), fill(&negated, "h"));
}

#[test]
fn output_does_not_depend_on_the_order_of_the_input() {
    let reversed: Vec<u8> = STACKS.split_inclusive(|byte| *byte == b'\n').rev().flatten().copied().collect();
    for options in [&[""; 0][..], &["--reverse"], &["--inverted", "--colors", "java"]] {
        assert!(run("fg-svg", options, STACKS).ok().stdout == run("fg-svg", options, &reversed).ok().stdout);
    }
}

#[test]
fn accepts_the_options_of_flamegraph_pl() {
    let (a, b) =
        (run("fg-svg", ["--color", "io", "--inv"], STACKS).ok(), run("fg-svg", ["-c", "io", "-i"], STACKS).ok());
    assert!(a.stdout == b.stdout && a.text().contains(">Icicle Graph<"));
    let reversed = run("fg-svg", ["--reverse", "--minwidth", "0"], STACKS).ok().text();
    assert!(list_frames(&reversed).contains(&"read 30 2.34".to_owned()));
    let scaled = run("fg-svg", ["--factor", "0.5", "--countname", "ms", "--total", "2562"], STACKS).ok().text();
    assert!(parse_titles(&scaled).iter().any(|(name, count, unit, share, _)| {
        (name.as_str(), count.as_str(), unit.as_str(), share.as_str()) == ("g", "600", "ms", "46.84")
    }));
    let wrong = run("fg-svg", ["--colors", "nonesuch"], STACKS);
    assert_eq!((wrong.code(), wrong.stdout.len()), (2, 0));
    assert!(wrong.stderr.contains("hot, mem, io"), "{}", wrong.stderr);
}

#[test]
fn reports_the_share_of_frames_too_narrow_to_draw() {
    let svg = run("fg-svg", ["--minwidth", "1%"], STACKS).ok().text();
    assert_eq!(parse_titles(&svg).len(), 7);
    assert!(svg.contains(">0.83% in frames narrower than 1%, not drawn</text>"));
    let all = run("fg-svg", ["--minwidth", "0"], STACKS).ok().text();
    assert!(!all.contains("not drawn"));
}

#[test]
fn draws_very_narrow_frames_as_strokes_with_titles() {
    let svg = run("fg-svg", ["--width", "1200", "--plain"], b"a;b 10000\na;c 1\na;d 2\na;e 9\n").ok().text();
    assert_eq!(list_frames(&svg)[2..], ["b 10,000 99.88", "c 1 0.01", "d 2 0.02", "e 9 0.09"]);
    // A pixel is 8.48 samples.
    for (name, shape) in
        [("b", "<rect x=\"10\""), ("c", "<path d=\"M1188.6 "), ("d", "<path d=\"M1188.7 "), ("e", "<rect")]
    {
        let (_, rest) = svg.split_once(&format!("<title>{name} (")).unwrap();
        assert!(rest.split_once("</title>").unwrap().1.starts_with(shape), "{name}: {}", &rest[..90]);
    }
}

/// The viewer has the narrow frames in the packed profile: an element for each would be most of a large file.
#[test]
fn a_row_has_one_path_for_its_very_narrow_frames() {
    let stacks = b"a;b 10000\na;c 1\na;d 2\na;e 9\na;f;x 1\na;f;y 6\na;g 1\n";
    let svg = run("fg-svg", ["--width", "1200", "--minwidth", "0"], stacks).ok().text();
    assert_eq!(list_frames(&svg)[2..], ["b 10,000 99.80", "e 9 0.09", "f 7 0.07", "y 6 0.06"]);
    let narrow = svg.split_once("<g class=\"still narrow\">\n").unwrap().1.split_once("</g>").unwrap().0;
    // `c` and `d` touch, `g` is behind `e` and `f`; the row above has `x`.
    let paths = ["<path d=\"M1187.6 87h.4m1.9 0h.1\"/>", "<path d=\"M1189.1 69h.1\"/>"];
    assert_eq!(narrow.lines().collect::<Vec<_>>(), paths);
}

#[test]
fn deep_rows_of_little_weight_are_left_to_the_viewer() {
    let deep: String = (0..60).map(|row| format!(";f{row}")).collect();
    let draw = |weight: u32, options: &[&str]| {
        let stacks = format!("a;b 1000\na;b{deep} {weight}\n");
        let mut draw = command(tool("fg-svg"));
        draw.args(options);
        let svg = run_command(draw, stacks.as_bytes()).ok().text();
        (list_frames(&svg).len(), svg.contains(">0.40% in 60 deeper rows, not drawn</text>"))
    };
    assert_eq!(draw(4, &[]), (3, true));
    // Without the viewer nothing would show them.
    assert_eq!(draw(4, &["--plain"]), (63, false));
    assert_eq!(draw(6, &[]), (63, false));
}

#[test]
fn fails_without_stacks() {
    let folder = directory();
    let file = folder.path().join("flame.svg");
    let script = b"app 1 1.0: 1 cycles:\n\tffff main (/bin/app)\n\n";
    for (input, message) in [
        (&b""[..], "no stacks"),
        (b"a;b 0\n", "nothing to draw: all stacks have weight 0"),
        (b"junk\n", "no line is a folded stack"),
        (script, "convert profiler output with fg-collapse"),
    ] {
        for way in [&[][..], &["--plain"], &["--sorted"], &["--flamechart"], &["--reverse"]] {
            let mut command = command(tool("fg-svg"));
            command.arg("-o").arg(&file).args(way);
            let outcome = run_command(command, input);
            assert_eq!(outcome.code(), 1);
            assert!(outcome.stderr.contains(message) && !file.exists(), "{way:?}: {}", outcome.stderr);
        }
    }
}

#[test]
fn draws_what_vanished_if_nothing_else_is_left() {
    let folder = directory();
    let file = folder.path().join("gone.folded");
    for gone in [&b"a;b 3 0\na;c 2 0\n"[..], b"a;c 2 0\na;b 3 0\n"] {
        let elided = run("fg-svg", ["--elided"], gone).ok().stdout;
        let drawn = run("fg-svg", [] as [&str; 0], gone).ok();
        assert_eq!(drawn.stdout, elided);
        assert!(drawn.stderr.contains("the total weight after is 0"), "{drawn:?}");
        std::fs::write(&file, gone).unwrap();
        assert_eq!(run("fg-svg", [&file], b"").ok().stdout, elided);
    }
    assert!(run("fg-svg", [] as [&str; 0], b"a;b 0 3\n").ok().stderr.is_empty(), "what is new has a width");
}

#[test]
fn draws_a_sorted_file_like_a_shuffled_one() {
    let folder = directory();
    let (sorted, shuffled) = (folder.path().join("sorted"), folder.path().join("shuffled"));
    for text in [
        &b"a;b 1\na;b;c 2.5\na;b;c 1\na;b.cold 3\nab 1\n\nab;line_12 4\n"[..],
        b"a;b 1 2\na;c 0 4\r\nb 3 0\n",
        b"a 1\na;line 12 3\nb 1\n",
        b"\xef\xbb\xbfa;b 1\nx\na;c 2\n",
        b";a 1\n;b;;c 2\n",
        b"a;b\rc 1\na;d 1\n",
    ] {
        std::fs::write(&sorted, text).unwrap();
        let mut lines: Vec<&[u8]> =
            text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).split_inclusive(|b| *b == b'\n').collect();
        lines.reverse();
        std::fs::write(&shuffled, lines.concat()).unwrap();
        for options in [&["--minwidth", "0"][..], &["--plain"]] {
            let of = |file: &std::path::Path| {
                let arguments = options.iter().map(std::ffi::OsStr::new).chain([file.as_os_str()]);
                run("fg-svg", arguments, b"").ok().text()
            };
            assert!(of(&sorted) == of(&shuffled), "{options:?} {:?}", String::from_utf8_lossy(text));
        }
    }
}

#[test]
fn reads_a_large_file_in_parallel() {
    const COUNT: usize = 40_000;
    let line =
        |number: usize| format!("main;f{:03};the long name of g{:05} {}\n", number / 500, number / 2, number % 3);
    let folder = directory();
    let files = [("sorted", 1), ("shuffled", 7919)].map(|(name, step)| {
        let file = folder.path().join(name);
        let text: String = (0..COUNT).map(|number| line(number * step % COUNT)).collect();
        std::fs::write(&file, text).unwrap();
        file
    });
    for options in [&[""; 0][..], &["--plain"]] {
        let [sorted, shuffled] = files.each_ref().map(|file| {
            run("fg-svg", options.iter().map(std::ffi::OsStr::new).chain([file.as_os_str()]), b"").ok().text()
        });
        assert!(sorted == shuffled, "{options:?}");
    }
}

#[test]
fn rejects_unsorted_input_with_sorted() {
    let drawn = run("fg-svg", ["--sorted"], b"a;b 1\na;c 2\n").ok();
    assert_eq!(list_frames(&drawn.text()), list_frames(&run("fg-svg", [""; 0], b"a;c 2\na;b 1\n").ok().text()));
    let broken = run("fg-svg", ["--sorted"], b"a;c 1\na;b 2\n");
    assert_eq!((broken.code(), broken.stdout.len()), (1, 0));
    assert!(
        broken.stderr.contains("stdin:2: out of order: --sorted needs input in the order of fg-collapse"),
        "{}",
        broken.stderr
    );
}

#[test]
fn a_flame_chart_keeps_the_order_of_time() {
    let chart = run("fg-svg", ["--flamechart"], b"m;b 1\nm;a 2\nm;a;x 1\nm;b 3\n").ok();
    let expected = ["all 7 100", "m 7 100.00", "b 1 14.29", "a 3 42.86", "x 1 14.29", "b 3 42.86"];
    assert_eq!(list_frames(&chart.text()), expected);
    assert!(chart.text().contains(">Flame Chart<") && chart.stderr.is_empty());
    let sorted = run("fg-svg", ["--flamechart"], b"m;a 2\nm;b 1\n").ok();
    assert!(sorted.stderr.contains("sorted by name, not by time"), "{}", sorted.stderr);
}

#[test]
fn draws_stacks_from_a_base_frame_and_vanished_stacks() {
    let based = run("fg-svg", ["--base", "b", "--base", "c"], b"a;b;x 1\nb 2\na;c;b 4\na;d 8\n").ok().text();
    assert_eq!(list_frames(&based), ["all 7 100", "b 3 42.86", "x 1 14.29", "c 4 57.14", "b 4 57.14"]);
    let vanished = run("fg-svg", ["--elided"], b"a;b 3 0\na;c 2 2\nd 1 0\n").ok().text();
    assert_eq!(list_frames(&vanished), ["all 4 100", "a 3 75.00 -75.00", "b 3 75.00 -75.00", "d 1 25.00 -25.00"]);
    assert!(vanished.contains(">vanished</text>") && !vanished.contains(">grew</text>"));
    let own = run("fg-svg", ["--delta", "self"], b"a 1 2\na;b 5 4\n").ok().text();
    assert_eq!(list_frames(&own), ["all 6 100", "a 6 100.00 +16.67", "b 4 66.67 -16.67"]);
}

#[test]
fn frames_after_a_delimiter_are_wakers() {
    let svg = run("fg-svg", ["--colors", "chain", "--minwidth", "0"], b"app;read;--;irq;wake;--;app 2\napp;write 1\n")
        .ok()
        .text();
    let expected =
        ["all 3 100", "app 3 100.00", "read 2 66.67", "-- 2 66.67", "irq 2 66.67", "wake 2 66.67", "-- 2 66.67"];
    assert_eq!(list_frames(&svg)[..7], expected);
    assert_eq!(list_frames(&svg)[7..], ["app 2 66.67", "write 1 33.33"]);
    let blue_and_green = |name: &str, from: &str| {
        let (_, rest) = svg.split_once(from).unwrap();
        let (_, rest) = rest.split_once(&format!("<title>{name} (")).unwrap();
        let colour = &rest.split_once("fill=\"#").unwrap().1[..6];
        let part = |at: usize| u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
        (part(4), part(2))
    };
    for (name, from, is_waker) in
        [("app", "<g", false), ("irq", "<g", true), ("app", "wake (", true), ("write", "<g", false)]
    {
        let (blue, green) = blue_and_green(name, from);
        assert_eq!(green > 150, is_waker, "{name}: a waker is aqua, others are blue ({blue}, {green})");
    }
}

#[test]
fn plain_has_no_script_and_no_embedded_profile() {
    let svg = run("fg-svg", ["--plain"], STACKS).ok().text();
    assert!(!svg.contains("<script") && !svg.contains("<metadata"));
    let whole = run("fg-svg", [""; 0], STACKS).ok().text();
    assert_eq!(parse_titles(&svg), parse_titles(&whole));
    // Nothing is fetched: the only URLs are names of namespaces.
    let addresses = regex::Regex::new(r#"https?://[^\s"'<]*"#).unwrap();
    let fetched = addresses.find_iter(&whole).find(|address| !address.as_str().starts_with("http://www.w3.org/"));
    assert_eq!(fetched.map(|address| address.as_str()), None);
}

#[test]
fn the_legend_begins_with_warnings_and_ends_in_the_picture() {
    let modules = ["serde", "tokio", "hyper", "rustls", "reqwest", "actix_web", "diesel", "rayon"];
    let stacks = modules.map(|name| format!("app;app::main;{name}::a_module::run 9\n{name}_{name}::other::run 5\n"));
    let stacks = format!("{}[lost] 30\n", stacks.concat());
    let svg = run("fg-svg", ["--width", "600"], stacks.as_bytes()).ok().text();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let legend = document.descendants().find(|node| node.attribute("id") == Some("legend")).unwrap();
    let entries = legend.children().filter(|node| node.has_tag_name("text"));
    let entries = entries.map(|node| (node.text().unwrap(), node.attribute("x").unwrap().parse::<f64>().unwrap()));
    let entries: Vec<(&str, f64)> = entries.collect();
    assert!(entries[0].0.starts_with("[lost] "), "{entries:?}");
    let (note, x) = entries[entries.len() - 1];
    assert!(note.starts_with("… ") && note.ends_with(" more") && x < 540.0, "{entries:?}");
}

/// Returns the entries of the legend.
fn legend_texts(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let legend = document.descendants().find(|node| node.attribute("id") == Some("legend")).unwrap();
    let texts = legend.children().filter_map(|node| node.text()).filter(|text| !text.trim().is_empty());
    texts.map(str::to_owned).collect()
}

#[test]
fn a_reversed_picture_has_the_legend_and_the_colours_of_the_stacks() {
    let stacks =
        b"app;main;do_syscall_64;vfs_read 3\napp;main;serde::de::parse 4\napp;main;read;[off-cpu] 4\nx;[truncated];c 12\n";
    for options in [&[][..], &["--colors", "states"], &["--plain"]] {
        let straight = run("fg-svg", options, stacks).ok().text();
        let reversed = run("fg-svg", [options, &["--reverse"]].concat(), stacks).ok().text();
        assert_eq!(legend_texts(&reversed), legend_texts(&straight), "{options:?}");
        let fill = |svg: &str, name: &str| {
            let (_, rest) = svg.split_once(&format!("<title>{name} (")).unwrap();
            rest.split_once("fill=\"#").unwrap().1[..6].to_owned()
        };
        for name in ["app", "main", "vfs_read", "serde::de::parse", "[off-cpu]"] {
            assert_eq!(fill(&reversed, name), fill(&straight, name), "{name}");
        }
        assert!(reversed.contains("data-count-name=\"us\""), "thread states are the leaves of stacks");
    }
    // The colours of self weights are those of the functions.
    let changed = b"a;f;g 1 9\na;g 2 2\na 5 5\n";
    let svg = run("fg-svg", ["--reverse", "--delta", "self", "--colors", "hot"], changed).ok().text();
    let titles: Vec<_> = list_frames(&svg).into_iter().filter(|title| title.starts_with(['f', 'g'])).collect();
    assert_eq!(titles, ["g 11 68.75 +50.00", "f 9 56.25 0.00"]);
}

#[test]
fn the_legend_shows_the_shares_of_states() {
    let svg =
        run("fg-svg", [""; 0], b"[lost] 1\na;[unknown];b 2\na;[libx.so] 1\na;b;[off-cpu] 4\nx;[truncated];c 12\n")
            .ok()
            .text();
    let texts = legend_texts(&svg);
    let truncated = "[truncated] in 60.00% of time";
    let nameless = "no symbol: self 5.00%, in 15.00% of time";
    assert_eq!(texts, ["[off-cpu] 20.00%", "[lost] 5.00%", truncated, nameless, "program"]);
    let none = run("fg-svg", ["--colors", "hot"], b"a;b 1\n").ok().text();
    assert!(!none.contains("id=\"legend\""));
    // Thread states are leaves of stacks whose weights are microseconds.
    assert!(svg.contains("data-count-name=\"us\"") && none.contains("data-count-name=\"samples\""));
}

#[test]
fn a_palette_map_preserves_colours() {
    let folder = directory();
    let draw = |options: &[&str], stacks: &[u8]| {
        let mut command = command(tool("fg-svg"));
        command.current_dir(folder.path()).args(options);
        run_command(command, stacks).ok().text()
    };
    let map = || std::fs::read_to_string(folder.path().join("palette.map")).unwrap();
    let first = draw(&["--cp"], b"a->b;c_[k] 1\n");
    assert!(map().starts_with("a->b->rgb(") && map().contains("\nc_[k]->rgb("), "{}", map());
    std::fs::write(folder.path().join("palette.map"), map().replace("\nc_[k]->rgb(", "\nc_[k]->rgb(1,2,3)\nold->rgb("))
        .unwrap();
    let second = draw(&["--cp", "--colors", "blue"], b"a->b;c_[k] 1\nnew 1\n");
    assert!(second.contains("fill=\"#010203\"") && !first.contains("fill=\"#010203\""));
    assert!(map().contains("\nnew->rgb(") && map().contains("\nold->rgb("), "{}", map());
}

#[test]
fn options_set_colours_and_background() {
    let colours = ["--bgcolors=#123", "--search-color=#00ff00", "--uicolor=#abcdef", "--stroke-color=#fed"];
    let svg = run("fg-svg", colours, STACKS).ok().text();
    for rule in ["{ fill: #112233; }", "{ --match: #00ff00; }", "{ fill: #abcdef; }", "{ stroke: #ffeedd; }"] {
        assert!(svg.contains(rule), "{rule}");
    }
    let usual = run("fg-svg", [""; 0], STACKS).ok().stdout;
    let seeded = run("fg-svg", ["--random"], STACKS).ok().stdout;
    assert!(seeded != usual && seeded == run("fg-svg", ["--seed=1"], STACKS).ok().stdout);
    assert!(seeded != run("fg-svg", ["--seed=2"], STACKS).ok().stdout);
    let diffusion = run("fg-svg", ["--colordiffusion"], b"a;b 1\na;c 3\n").ok().text();
    assert!(diffusion.contains("fill=\"#ff0000\"") && diffusion.contains("fill=\"#ff8080\""));
    for wrong in ["--bgcolors=pink", "--uicolor=red;}", "--search-color=#12", "--seed=x"] {
        assert_eq!(run("fg-svg", [wrong], STACKS).code(), 2, "{wrong}");
    }
}

#[test]
fn nameattr_adds_titles_links_and_attributes() {
    let folder = directory();
    let file = folder.path().join("names");
    let text = "parse\thref=https://example.org/?a=1&b=2\tid=p\nread_[k]\ttitle=<reads>\tclass=slow\tg_extra=rel=\"x\"\nnobody\n";
    std::fs::write(&file, text).unwrap();
    let draw = |options: &[&str]| {
        let arguments = options.iter().map(std::ffi::OsStr::new).chain(["--nameattr".as_ref(), file.as_os_str()]);
        run("fg-svg", arguments, b"main;parse;read_[k] 3\n[off-cpu] 1\n")
    };
    let svg = draw(&[]).ok().text();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let frames = document.descendants().find(|node| node.attribute("id") == Some("frames")).unwrap();
    let link = frames.children().find(|node| node.has_tag_name("a")).unwrap();
    let href = link.attribute(("http://www.w3.org/1999/xlink", "href"));
    assert_eq!(
        (href, link.attribute("target"), link.attribute("id")),
        (Some("https://example.org/?a=1&b=2"), Some("_top"), Some("p"))
    );
    let slow = frames.children().find(|node| node.attribute("class") == Some("slow")).unwrap();
    assert_eq!((slow.attribute("rel"), slow.first_element_child().unwrap().text()), (Some("x"), Some("<reads>")));
    std::fs::write(&file, "main\tcolour=red\n").unwrap();
    let wrong = draw(&["--strict"]);
    assert_eq!(wrong.code(), 1);
    assert!(wrong.stderr.contains("names:1: expected NAME"), "{}", wrong.stderr);
    std::fs::remove_file(&file).unwrap();
    assert!(draw(&[]).stderr.contains("names: No such file"));
}
