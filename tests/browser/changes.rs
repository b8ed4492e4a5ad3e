//! Other views of the same profile: callers, callees, without some frames, sorted, turned upside down.

use serde_json::{Value, json};

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
fn kept_and_dropped_stacks_change_shares() {
    Page::graph(STACKS, &[]).run(CASES, "keepsAndDropsStacks");
}

#[test]
fn hidden_frames_leave_their_callees() {
    Page::graph(STACKS, &[]).run(CASES, "hidesFrames");
}

#[test]
fn escape_removes_the_last_filter_first() {
    Page::graph(STACKS, &[]).run(CASES, "removesLastFilterFirst");
}

#[test]
fn arrow_keys_reach_frames_too_narrow_to_draw() {
    let mut stacks: String = (0..50).map(|narrow| format!("main;narrow{narrow:02} 1\n")).collect();
    stacks.push_str("main;other;tiny 1\nmain;other 949\nmain;wide 9000\n");
    Page::graph(stacks.as_bytes(), &["--width", "1200"]).run(CASES, "reachesNarrowFramesWithArrowKeys");
}

#[test]
fn weights_before_that_may_be_scaled_are_no_samples() {
    Page::graph(b"main;f 30 10\nmain;g 10 30\nmain;h 10 10\n", &[]).run(CASES, "saysWhatIsScaled");
}

#[test]
fn inverts_stacks() {
    Page::graph(STACKS, &[]).run(CASES, "invertsStacks");
}

#[test]
fn sorts_by_weight_and_turns_upside_down() {
    Page::graph(STACKS, &[]).run(CASES, "sortsAndTurns");
}

#[test]
fn a_flame_chart_has_a_time_axis_and_lanes() {
    let stacks = b"web;main;parse 2000\ndb;query 1000\nweb;main;write 3000\ndb;query;sort 4500\n";
    Page::graph(stacks, &["--flamechart", "--countname", "us"]).run(CASES, "drawsLanesOfChart");
    let stacks = b"app;sleep 12345678\napp;blink 90\napp;sleep 5\n";
    Page::graph(stacks, &["--flamechart", "--countname", "us", "--minwidth", "0"]).run(CASES, "tellsTicksApart");
}

#[test]
fn marks_judged_differences() {
    let stacks = b"main;f;g 100 300\nmain;f;h 200 210\nmain;i 700 690\n";
    let table = "function,self_chance,inclusive_chance\ng,0.001,0.001\nf,1,0.04\nh,0.6,0.7\nmain,1,1\ni,0.3,0.3\n";
    let folder = directory();
    let file = folder.path().join("table.csv");
    std::fs::write(&file, table).unwrap();
    Page::graph(stacks, &["--chances", file.to_str().unwrap()]).run_with(CASES, "marksJudged", &json!([true]));
    Page::graph(stacks, &[]).run_with(CASES, "marksJudged", &json!([false]));
}

#[test]
fn what_was_flattened_did_not_change() {
    let flattened = b"[flattened] 0 0\nmain;f 100 300\nmain;g 900 900\n";
    Page::graph(flattened, &[]).run(CASES, "showsSignificantDifferencesOnly");
    let stacks = b"main;f 100 300\nmain;g 900 900\n";
    Page::graph(stacks, &[]).run(CASES, "showsAllDifferences");
}

/// Eight frames of the standard library, as Rust programs have them between a thread and its code.
const RUNTIME: &str = "start_thread;std::a;std::b;std::c;std::d;std::e;std::f;clone";

#[test]
fn folds_chains_of_runtime_frames() {
    let stacks = format!("app;{RUNTIME};app::main;app::run 30\napp;{RUNTIME};app::main;malloc;free 10\n");
    Page::graph(stacks.as_bytes(), &[]).run(CASES, "foldsRuntimeFrames");
    Page::graph(stacks.as_bytes(), &["--colors", "hot"]).run(CASES, "foldsNothing");
}

#[test]
fn a_call_too_narrow_to_draw_does_not_break_a_chain() {
    let stacks = b"app;std::a;std::b;std::c;std::d;std::e;app::run 99999\napp;std::a;std::b;other 1\n";
    Page::graph(stacks, &[]).run(CASES, "foldsPastNarrowCalls");
}

#[test]
fn the_legend_follows_the_filters() {
    Page::graph(b"json::parse 30\nhttp::read 70\n", &[]).run(CASES, "legendFollowsFilters");
}

#[test]
fn folds_frames_of_schedulers() {
    let stacks = b"app;std::thread::start;tokio::runtime::run;tokio::task::poll;tokio::task::raw::poll;\
        tokio::task::with;app::main;serde::a;serde::b;serde::c;serde::d 30\napp;x 2\n";
    Page::graph(stacks, &[]).run(CASES, "foldsSchedulers");
}

#[test]
fn a_long_chain_is_summarized() {
    let chain: String = (0..60).map(|number| format!("std::f{number};")).collect();
    Page::graph(format!("app;{chain}app::main 30\n").as_bytes(), &[]).run(CASES, "summarizesLongChain");
}

#[test]
fn a_function_that_is_gone_is_shown_as_it_was() {
    Page::graph(b"app;main;old;helper 50 0\napp;main;stays 50 90\n", &[]).run(CASES, "showsGoneFunction");
}

#[test]
fn the_legend_explains_colours_of_callers() {
    let stacks = b"app;app::main;json::parse;malloc 400\napp;app::main;rare::f;malloc 1\napp;app::main 9\n";
    Page::graph(stacks, &["--countname", "us"]).run(CASES, "explainsColoursOfCallers");
}

#[test]
fn functions_of_the_kernel_too_narrow_for_the_still_picture_count_as_such() {
    let stacks = b"app;main;parse 980\napp;main;write;do_syscall_64;vfs_write 20\n";
    Page::graph(stacks, &["--minwidth", "10%"]).run(CASES, "countsNarrowKernel");
}

#[test]
fn draws_wakers_in_their_colour_below_a_divider() {
    let stacks =
        b"app;main;read;schedule_[k];--;[timer]_[w];try_to_wake_up_[k]_[w];[libpq.so]_[w];net_rx_[w];irq_[w] 70\n\
        app;main;--;other 30\n";
    Page::graph(stacks, &[]).run(CASES, "drawsWakers");
}

#[test]
fn arrow_keys_move_the_focus() {
    Page::graph(STACKS, &[]).fragment("#sort=name").run(CASES, "movesFocusWithArrowKeys");
}

#[test]
fn shows_what_changed_and_both_sides() {
    let stacks = b"main;f;g 10 30\nmain;f;h 20 10\nmain;i 70 60\nmain;gone 9 0\n";
    for (options, is_negated) in [(&[][..], false), (&["--negate"], true)] {
        Page::graph(stacks, options).run_with(CASES, "coloursDifferences", &json!([is_negated]));
    }
}

#[test]
fn draws_the_frames_of_the_static_graph() {
    let stacks = b"main;a::b::parse;read_[k] 30\nmain;a::b::parse 3\n[lost] 2\nmain;[off-cpu] 7.25\nx;y;z 1000\n";
    for (options, has_own_colours) in [
        (&["--width", "1200"][..], false),
        (&["--width", "900", "--inverted", "--colors", "java", "--factor", "2.5"], true),
        (&["--width", "1200", "--colordiffusion"], true),
    ] {
        let svg = run("fg-svg", options, stacks).ok().text();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let frames = document.descendants().find(|node| node.attribute("id") == Some("frames")).unwrap();
        let number = |group: roxmltree::Node<'_, '_>, name: &str| {
            let rect = group.children().find(|node| node.has_tag_name("rect")).unwrap();
            rect.attribute(name).unwrap().parse::<f64>().unwrap()
        };
        let root = frames.children().find(roxmltree::Node::is_element).unwrap();
        let (left, whole) = (number(root, "x"), number(root, "width"));
        let frames = frames.children().filter(roxmltree::Node::is_element).map(|group| {
            let child = |name: &str| group.children().find(|node| node.has_tag_name(name)).unwrap();
            let place = [(number(group, "x") - left) / whole, number(group, "width") / whole];
            json!({ "title": child("title").text(), "fill": child("rect").attribute("fill"), "place": place })
        });
        let frames: Value = frames.collect();
        Page::svg(svg).fragment("#sort=name").run_with(CASES, "drawsStaticFrames", &json!([frames, has_own_colours]));
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

#[test]
fn long_work_is_done_in_order_and_reported() {
    let stacks: String = (0..100_001).map(|number| format!("f{};f{number};f{} 1\n", number % 7, number % 9)).collect();
    Page::graph(stacks.as_bytes(), &[]).run(CASES, "queuesLongWork");
    Page::graph(stacks.as_bytes(), &[]).run(CASES, "reportsLongWork");
}
