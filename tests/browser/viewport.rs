//! What part of a graph the window shows, on the screen and on paper, and how frames too narrow to draw are counted.

use serde_json::json;

use crate::browser::{Page, count_printed_pages, script_for_svg};
use crate::support::run;
use crate::viewer::data_url;

const CASES: &str = include_str!("cases/viewport.js");

/// Returns a stack of two hundred frames, of which the twentieth has another callee.
fn tall() -> Vec<u8> {
    let stack = |depth: usize| (0..depth).map(|frame| format!("f{frame}")).collect::<Vec<_>>().join(";");
    format!("{} 9\n{};side 1\n{};[off-cpu] 2\n", stack(200), stack(20), stack(3)).into_bytes()
}

#[test]
fn controls_stay_in_the_window() {
    Page::graph(&tall(), &[]).run(CASES, "keepsControlsInWindow");
}

#[test]
fn zooming_draws_frames_that_were_too_narrow() {
    let mut stacks = b"main;wide 100000\n".to_vec();
    for narrow in 0..50 {
        stacks.extend_from_slice(format!("main;many;narrow{narrow:02} 1\n").as_bytes());
    }
    Page::graph(&stacks, &["--width", "1200"]).run(CASES, "drawsFoldedFramesAfterZoom");
}

#[test]
fn a_wide_box_of_narrow_frames_says_what_it_is() {
    let stacks: String = (0..5000).map(|number| format!("main;f{number} 1\n")).collect();
    Page::graph(stacks.as_bytes(), &["--width", "1200"]).run(CASES, "labelsFoldedFrames");
}

#[test]
fn the_current_frame_stays_in_view() {
    Page::graph(&tall(), &[]).run(CASES, "keepsCurrentFrameInView");
}

#[test]
fn a_frame_keeps_the_focus_when_it_is_scrolled_away() {
    Page::graph(&tall(), &[]).run(CASES, "keepsFocusOfFrameThatIsScrolledAway");
}

#[test]
fn fills_a_frame_of_a_page_without_scaling() {
    let svg = run("fg-svg", [""; 0], &tall()).ok().text();
    let script = script_for_svg(CASES, "reportSize", &json!([]));
    let address = data_url(&svg.replacen("<style>", &format!("{script}<style>"), 1));
    for kind in ["iframe", "object"] {
        let page = Page::html("<!DOCTYPE html><body></body>".to_owned());
        page.run_with(CASES, "fitsFrameOfPage", &json!([address, kind]));
    }
}

#[test]
fn a_tapped_frame_stays_in_view_on_a_phone() {
    let svg = run("fg-svg", [""; 0], &tall()).ok().text();
    let script = script_for_svg(CASES, "reportTap", &json!([]));
    let address = data_url(&svg.replacen("<style>", &format!("{script}<style>"), 1));
    let page = Page::html("<!DOCTYPE html><body></body>".to_owned());
    page.run_with(CASES, "keepsTappedFrameInView", &json!([address]));
}

#[test]
fn fits_a_phone() {
    Page::graph(&tall(), &["--title", "A title that is too long for the screen of a phone, however it is held"])
        .run(CASES, "fitsPhone");
}

#[test]
fn a_phone_shows_the_whole_title() {
    let title = "Where the time of the orders service goes between nine and ten";
    Page::graph(&tall(), &["--title", title]).narrow().run(CASES, "wrapsTitleOnPhone");
}

#[test]
fn frames_too_narrow_to_draw_are_counted() {
    // Each stack has a frame that is too narrow, alone among wide ones, and one has many.
    let stacks = b"a;b;c 1\na;d 50000\na;e;f 1\na;g 50000\nh;i;j;k 2\nh;l 100000\n";
    Page::graph(stacks, &[]).run(CASES, "countsFramesTooNarrowToDraw");
}

#[test]
fn a_graph_of_many_frames_has_few_elements() {
    let stacks: String = (0..20_000).map(|number| format!("main;f{};g{number} 1\n", number % 100)).collect();
    Page::graph(stacks.as_bytes(), &["--minwidth", "0"]).run(CASES, "holdsFewElements");
}

#[test]
fn a_phone_shows_the_whole_legend() {
    let stacks: String =
        (0..7).map(|number| format!("main;crate_of_colours_{number}::function {}\n", 9 - number)).collect();
    Page::graph(stacks.as_bytes(), &[]).run(CASES, "showsWholeLegend");
}

#[test]
fn dropped_frames_are_not_counted_as_too_narrow() {
    Page::graph(b"a;b;c;x 1\na;b;y 1\na;d 500000\ne 9\n", &[]).run(CASES, "countsNoDroppedFrames");
}

#[test]
fn prints_the_whole_graph_on_one_page_without_controls() {
    let svg = run("fg-svg", [""; 0], &tall()).ok().text();
    if let Some(pages) = count_printed_pages(&svg) {
        assert_eq!(pages, 1);
    }
    // The browser applies the style for paper only while it prints.
    Page::svg(svg.replace("@media print", "@media all")).run(CASES, "laysOutForPaper");
}
