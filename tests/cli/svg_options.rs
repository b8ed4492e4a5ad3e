//! fg-svg: appearance by options, and the description of options and keys in the man page.

use crate::support::run;

const STACKS: &[u8] = b"main;parse;read 30\nmain;write 40\n";

#[test]
fn the_palette_states_distinguishes_functions_and_states() {
    let stacks = b"main;work 30\nmain;work_[k];[off-cpu] 50\nmain;[runnable] 15\n[unsampled] 5\n";
    let svg = run("fg-svg", ["--colors", "states"], stacks).ok().text();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let legend = document.descendants().find(|node| node.attribute("id") == Some("legend")).unwrap();
    let (swatches, words): (Vec<_>, Vec<_>) =
        legend.children().filter(|node| node.is_element()).partition(|node| node.has_tag_name("rect"));
    let words: Vec<_> = words.iter().filter_map(|text| text.text()).collect();
    assert_eq!(words, ["on CPU 30.00%", "[off-cpu] 50.00%", "[runnable] 15.00%", "[unsampled] 5.00%"]);
    let colour = |fill: &str| u32::from_str_radix(&fill[1..], 16).unwrap().to_be_bytes();
    let [[_, red, green, blue], waiting, runnable, _] =
        [0, 1, 2, 3].map(|at| colour(swatches[at].attribute("fill").unwrap()));
    assert!(red > 200 && green < 150 && blue < 150, "on the CPU: red");
    assert!(waiting[3] > waiting[1] && runnable[1] > 200 && runnable[3] < 100, "waiting: blue, runnable: yellow");
    for (name, is_red) in [("main", true), ("work", true), ("[off-cpu]", false), ("[runnable]", false)] {
        let (_, rest) = svg.split_once(&format!("<title>{name} (")).unwrap();
        let [_, red, green, blue] = colour(&rest.split_once("fill=\"").unwrap().1[..7]);
        assert_eq!(red >= 200 && green <= 130 && blue <= 130, is_red, "{name}");
    }
    let only = run("fg-svg", ["--colors", "states"], b"main 1\n").ok().text();
    assert!(only.contains(">on CPU 100.00%<"));
    assert!(!run("fg-svg", [""; 0], stacks).ok().text().contains("on CPU"));
}

#[test]
fn rejects_negative_numbers() {
    for option in ["--minwidth", "--factor", "--fontsize", "--fontwidth", "--width", "--height", "--total"] {
        let outcome = run("fg-svg", [option, "-2"], STACKS);
        assert_eq!(outcome.code(), 2);
        assert!(outcome.stderr.contains(&format!("'-2' for '{option} ")), "{}", outcome.stderr);
    }
    let encoded = run("fg-svg", ["--encoding", "ISO-8859-1"], STACKS).ok();
    assert!(encoded.stdout == run("fg-svg", [""; 0], STACKS).ok().stdout, "always UTF-8");
}

#[test]
fn row_height_follows_the_font_size() {
    let height = |arguments: &[&str]| {
        let svg = run("fg-svg", arguments, STACKS).ok().text();
        let (_, rest) = svg.split_once(" data-frame-height=\"").unwrap();
        rest.split_once('"').unwrap().0.parse::<u32>().unwrap()
    };
    assert_eq!([height(&[]), height(&["--fontsize", "8"]), height(&["--fontsize", "24"])], [18, 16, 36]);
    assert_eq!(height(&["--fontsize", "24", "--height", "20"]), 20);
}

#[test]
fn texts_can_begin_with_a_dash() {
    let options = ["--title", "-5 to 5", "--notes", "-n", "--subtitle", "--", "--countname", "-s", "--nametype", "-f"];
    let svg = run("fg-svg", options, STACKS).ok().text();
    assert!(svg.contains(">-5 to 5</text>") && svg.contains("NOTES: -n"), "{svg}");
}

#[test]
fn the_man_page_has_every_key_of_the_viewer() {
    let page = run("fg-svg", ["--generate", "man"], b"").ok().text();
    let (_, section) = page.split_once(".SH VIEWER\n").unwrap();
    let terms: Vec<_> =
        section.split("\n.SH ").next().unwrap().lines().filter(|line| line.starts_with("\\fB")).collect();
    let actions = include_str!("../../lib/svg/viewer/actions.js");
    let keys = regex::Regex::new(r"\{ keys: \[([^\]]+)\]").unwrap();
    let mut count = 0;
    for key in keys.captures_iter(actions).flat_map(|keys| keys[1].split(", ").map(str::to_owned).collect::<Vec<_>>()) {
        let key = key.trim_matches('"');
        let told = if key.starts_with("Arrow") { "Arrows" } else { key };
        assert!(
            terms.iter().any(|term| term[3..].trim_end_matches("\\fR").split(", ").any(|term| term == told)),
            "{key}"
        );
        count += 1;
    }
    assert!(count > 15, "{count}");
}
