//! Other views of the same profile: callers, callees, without some frames, sorted, turned upside down.

use serde_json::{Map, Value, json};

use crate::browser::Page;
use crate::support::{directory, run};

const CASES: &str = include_str!("cases/changes.js");

const STACKS: &[u8] =
    b"main;parse;read 30\nmain;parse;scan;next 20\nmain;write;read 10\nmain;write 40\nmain;walk;walk;walk;read 20\nidle 80\n";

#[test]
fn shows_the_callers_of_a_function() {
    Page::graph(STACKS, &[]).run(CASES, "showsCallers");
}

#[test]
fn merges_the_callees_of_a_function() {
    Page::graph(STACKS, &[]).run(CASES, "mergesCallees");
}

#[test]
fn shows_a_function_between_callers_and_callees() {
    let stacks = b"main;a;f;x 3\nmain;a;f;x;g 2\nmain;b;f;y 4\nmain;b;f 1\nmain;f;f;x 6\nz 80\n";
    Page::graph(stacks, &[]).run(CASES, "showsCallersAndCallees");
}

#[test]
fn distinguishes_a_caller_from_a_callee_of_the_same_name() {
    Page::graph(b"x;f;x 5\nx;f 5\n", &[]).run(CASES, "distinguishesCallerFromCalleeOfTheSameName");
}

#[test]
fn hidden_and_kept_frames_change_shares() {
    Page::graph(STACKS, &[]).run(CASES, "hidesAndKeepsFrames");
}

#[test]
fn sorts_by_weight_and_turns_upside_down() {
    Page::graph(STACKS, &[]).run(CASES, "sortsAndTurns");
}

#[test]
fn arrow_keys_move_the_focus() {
    Page::graph(STACKS, &[]).run(CASES, "movesFocusWithArrowKeys");
}

#[test]
fn the_menu_lists_and_runs_actions() {
    Page::graph(STACKS, &[]).run(CASES, "listsActionsInMenu");
}

/// Returns the colour of the first static frame of a function, as `getComputedStyle` writes it.
fn static_fill(svg: &str, name: &str) -> String {
    let (_, rest) = svg.split_once(&format!("<title>{name} (")).unwrap();
    let hex = &rest.split_once("fill=\"#").unwrap().1[..6];
    let channel = |offset: usize| u8::from_str_radix(&hex[offset..offset + 2], 16).unwrap();
    format!("rgb({}, {}, {})", channel(0), channel(2), channel(4))
}

#[test]
fn colours_of_differences_are_those_of_the_static_graph() {
    let stacks = b"main;f;g 10 30\nmain;f;h 20 10\nmain;i 70 60\nmain;gone 9 0\n";
    for options in [&["--width", "1200"][..], &["--width", "1200", "--negate", "--delta", "self"]] {
        let svg = run("fg-svg", options, stacks).ok().text();
        let fills = ["g", "h", "main"].map(|name| (name.to_owned(), Value::from(static_fill(&svg, name))));
        let fills = Map::from_iter(fills);
        Page::svg(svg).run_with(CASES, "coloursDifferences", &json!([fills]));
    }
}

#[test]
fn draws_the_frames_of_the_static_graph() {
    let stacks = b"main;a::b::parse;read_[k] 30\nmain;a::b::parse 3\n[lost] 2\nmain;[off-cpu] 7.25\nx;y;z 1000\n";
    for options in [
        &["--width", "1200"][..],
        &["--width", "900", "--inverted", "--colors", "java", "--factor", "2.5"],
        &["--width", "1200", "--colordiffusion"],
    ] {
        let svg = run("fg-svg", options, stacks).ok().text();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let frames = document.descendants().find(|node| node.attribute("id") == Some("frames")).unwrap();
        let frames = frames.children().filter(|node| node.is_element()).map(|group| {
            let child = |name: &str| group.children().find(|node| node.has_tag_name(name)).unwrap();
            let attribute = |name: &str| child("rect").attribute(name).unwrap();
            let place = ["x", "y", "width"].map(|name| attribute(name).parse::<f64>().unwrap());
            json!({ "title": child("title").text(), "fill": attribute("fill"), "place": place })
        });
        let frames: Value = frames.collect();
        Page::svg(svg).run_with(CASES, "drawsStaticFrames", &json!([frames]));
    }
}

#[test]
fn name_attributes_add_titles_and_links() {
    let folder = directory();
    let file = folder.path().join("names");
    std::fs::write(&file, "parse\thref=#there\tclass=own\nidle\ttitle=nothing to do\n").unwrap();
    Page::graph(STACKS, &["--nameattr", file.to_str().unwrap()]).run(CASES, "appliesNameAttributes");
}

#[test]
fn reports_a_link_to_a_frame_that_is_missing() {
    Page::graph(STACKS, &[]).fragment("#zoom=1a2b.3c4d").run(CASES, "reportsLinkToMissingFrame");
}
