//! Pointing, zooming, links, accessibility.

use serde_json::json;

use crate::browser::Page;
use crate::support::run;

const CASES: &str = include_str!("cases/viewer.js");

const STACKS: &[u8] = b"main;parse;read 30\nmain;parse;scan;next 20\nmain;write;read 10\nmain;write 40\nidle 100\n";

#[test]
fn draws_all_frames_as_wide_as_the_window() {
    Page::graph(STACKS, &[]).run(CASES, "drawsAllFrames");
}

#[test]
fn describes_the_frame_under_the_pointer() {
    Page::graph(STACKS, &[]).run(CASES, "describesFrameUnderPointer");
}

#[test]
fn zooms_to_a_clicked_frame_and_back() {
    Page::graph(STACKS, &[]).run(CASES, "zoomsToClickedFrame");
}

#[test]
fn zooms_with_keys() {
    Page::graph(STACKS, &[]).run(CASES, "zoomsWithKeys");
}

#[test]
fn a_pointer_that_rests_is_no_choice() {
    Page::graph(STACKS, &[]).run(CASES, "ignoresRestingPointer");
}

#[test]
fn keys_act_on_the_frame_under_the_pointer() {
    Page::graph(STACKS, &[]).run(CASES, "keysActOnFrameUnderPointer");
}

#[test]
fn a_key_that_cannot_act_says_why() {
    Page::graph(STACKS, &[]).run(CASES, "saysWhyKeyIsImpossible");
}

#[test]
fn a_right_click_opens_the_menu_of_a_frame() {
    Page::graph(STACKS, &[]).run(CASES, "opensMenuOfFrame");
}

#[test]
fn backspace_does_not_leave_the_page() {
    Page::graph(STACKS, &[]).run(CASES, "staysInPage");
}

#[test]
fn a_click_beside_frames_does_nothing() {
    Page::graph(STACKS, &[]).run(CASES, "clicksBesideFramesDoNothing");
}

#[test]
fn highlights_all_frames_of_a_function() {
    Page::graph(STACKS, &[]).run(CASES, "highlightsFunction");
}

#[test]
fn a_short_touch_zooms_and_a_long_touch_opens_the_menu() {
    Page::graph(STACKS, &[]).run(CASES, "describesTouchedFrame");
}

#[test]
fn the_legend_highlights_a_module_for_pointer_and_keys() {
    Page::graph(b"main;json::parse 3\nmain;http::read 4\n", &[]).run(CASES, "highlightsModule");
}

#[test]
fn numbers_are_rounded_to_even_and_grouped() {
    let stacks = b"a 12.25\nb 3.5\nc 0.5\nd 1234567\ne 999.5\nf 120.5\n";
    Page::graph(stacks, &["--minwidth", "0"]).run(CASES, "roundsToEven");
}

#[test]
fn the_first_action_stops_reading_the_picture() {
    Page::graph(STACKS, &[]).run(CASES, "stopsReadingPicture");
}

#[test]
fn links_lead_to_frames_and_searches() {
    Page::graph(STACKS, &[]).run(CASES, "followsLinks");
}

#[test]
fn a_link_leads_to_the_same_frame_of_another_graph() {
    let stacks =
        b"a;b 9\nmain;aaa 50\nmain;parse 7\nmain;parse;read 35\nmain;parse;scan;next;deeper 20\nmain;write 40\n";
    for options in [&["--height", "20", "--color", "io"][..], &["--inverted", "--width", "800", "--fontsize", "10"]] {
        let page = Page::graph(stacks, options).fragment("#zoom=tj01wf.162nk2d&search=next");
        page.run(CASES, "followsLinkOfAnotherGraph");
    }
}

#[test]
fn has_roles_and_names_for_screen_readers() {
    Page::graph(STACKS, &["--title", "Where the time goes"]).run(CASES, "describesItselfToScreenReaders");
    let html = run("fg-svg", ["--html"], STACKS).ok().text();
    Page::html(html).run_with(CASES, "describesItselfToScreenReaders", &json!(["Flame graph"]));
}

#[test]
fn outlines_thread_states() {
    let stacks = b"main;read;[off-cpu] 30\nmain;work 20\n[lost] 9\n";
    Page::graph(stacks, &[]).run(CASES, "outlinesThreadStates");
}

#[test]
fn draws_a_static_image_without_scripts() {
    let svg = run("fg-svg", ["--width", "1200", "--color", "blue"], STACKS).ok().text();
    let frames = ["idle", "parse", "read"].map(|name| {
        let (_, rest) = svg.split_once(&format!("<title>{name} (")).unwrap();
        let attribute = |name: &str| rest.split_once(&format!(" {name}=\"")).unwrap().1.split_once('"').unwrap().0;
        let number = |name: &str| attribute(name).parse::<f64>().unwrap();
        let (x, y, right) = (number("x"), number("y"), number("x") + number("width"));
        json!({ "name": name, "fill": attribute("fill"), "left": x, "x": right - 3.0, "y": y + 3.0 })
    });
    // Browsers run no scripts of images.
    let page = format!("<!DOCTYPE html><body><img src=\"{}\"></body>", data_url(&svg));
    Page::html(page).run_with(CASES, "drawsStaticImage", &json!([frames]));
}

/// Returns an address that contains an SVG document.
pub fn data_url(svg: &str) -> String {
    let escaped: String = svg.bytes().map(|byte| format!("%{byte:02x}")).collect();
    format!("data:image/svg+xml,{escaped}")
}

#[test]
fn keeps_graphs_of_one_page_apart() {
    let graph = |title: &str| {
        let svg = run("fg-svg", ["--title", title, "--width", "500"], STACKS).ok().text();
        svg.split_once("?>").unwrap().1.to_owned()
    };
    let page = format!("<!DOCTYPE html><body><p id=\"host\">A page</p>{}{}</body>", graph("one"), graph("two"));
    Page::html(page).run(CASES, "keepsGraphsOfOnePageApart");
}

#[test]
fn the_fragment_of_a_page_returns() {
    let svg = run("fg-svg", [""; 0], STACKS).ok().text();
    let page = format!("<!DOCTYPE html><body>{}</body>", svg.split_once("?>").unwrap().1);
    Page::html(page).fragment("#section-2").run(CASES, "keepsFragmentOfPage");
}

#[test]
fn weights_have_units_that_suit_them() {
    for (unit, total, frame) in [
        ("us", "41.4 s", "fTotal41.4 s100 %Self41.4 s100 %"),
        ("ns", "41.4 ms", "fTotal41.4 ms100 %Self41.4 ms100 %"),
        ("bytes", "39.5 MiB", "fTotal39.5 MiB100 %Self39.5 MiB100 %"),
        ("samples", "41,402,816 samples", "fTotal41,402,816 samples100 %Self41,402,816 samples100 %"),
    ] {
        let page = Page::graph(b"f 41402816\n", &["--countname", unit]);
        page.run_with(CASES, "scalesUnits", &json!([[total, frame]]));
    }
    Page::graph(b"f 1\n", &[]).run_with(
        CASES,
        "scalesUnits",
        &json!([["1 sample", "fTotal1 sample100 %Self1 sample100 %"]]),
    );
}

#[test]
fn filters_are_named_in_a_narrow_window() {
    let page = Page::graph(b"main;workload::sort 3\nmain;work;work 4\n", &[]);
    page.fragment("#hide=workload::sort&recursion=merged").run(CASES, "namesFiltersInNarrowWindow");
}

#[test]
fn draws_before_static_frames_are_loaded() {
    let svg = run("fg-svg", [""; 0], STACKS).ok().text();
    let (before, static_frames) = svg.split_once("<g id=\"frames\"").unwrap();
    assert!(static_frames.contains("<title>idle (100 samples, 50.00%)</title>"));
    // The rest of a large file may take long to arrive.
    Page::svg(format!("{before}</svg>")).run(CASES, "drawsBeforeStaticFramesAreLoaded");
}
