//! The selection, and the functions that keys and menus act on.

use crate::browser::Page;

const CASES: &str = include_str!("cases/functions.js");

const STACKS: &[u8] =
    b"main;parse;read 30\nmain;parse;scan;next 20\nmain;write;read 10\nmain;write 40\nmain;walk;walk;walk;read 20\nidle 80\n";

#[test]
fn the_place_of_a_selection_is_one_of_the_tree_that_is_shown() {
    Page::graph(STACKS, &[]).run(CASES, "dropsPlaceThatIsGone");
    Page::graph(STACKS, &[]).run(CASES, "keepsPlaceOnTheWayBack");
}

#[test]
fn a_waker_is_another_function_than_one_of_its_name() {
    let stacks = b"app;clone3;main;read;--;clone3_[w];wake_[w] 30\napp;clone3;main 40\napp;exit 30\n";
    Page::graph(stacks, &[]).run(CASES, "tellsWakersApart");
}

#[test]
fn a_divider_is_no_function() {
    let stacks = b"app;main;read;--;irq_[w] 70\napp;main;other 30\n";
    Page::graph(stacks, &[]).run(CASES, "dividersAreNoFunctions");
}

#[test]
fn the_menu_of_a_chain_says_what_it_is() {
    Page::graph(b"app;std::a;std::b;std::c;std::d;std::e;app::run 30\n", &[]).run(CASES, "namesChainsInMenus");
}

#[test]
fn the_view_of_one_function_is_not_inverted() {
    Page::graph(STACKS, &[]).run(CASES, "refusesToInvertOneFunction");
}

#[test]
fn weights_have_fractions() {
    Page::graph(b"half 1.5\none 1\nrest 1.25\n", &[]).run(CASES, "countsFractions");
}

#[test]
fn what_vanished_is_gone() {
    Page::graph(b"a;b 3 0\na;c 2 2\n[truncated];d 1 0\n", &["--elided"]).run(CASES, "showsWhatVanished");
}

#[test]
fn a_message_about_a_view_goes_with_it() {
    Page::graph(b"app;main;old;helper 50 0\napp;main;stays 50 90\n", &[]).run(CASES, "hidesMessageWithItsView");
}

#[test]
fn a_reversed_picture_counts_functions_as_others_do() {
    Page::graph(STACKS, &["--reverse"]).run(CASES, "countsLeavesOfReversedPicture");
    Page::graph(STACKS, &["--reverse", "--inverted"]).run(CASES, "countsLeavesOfReversedPicture");
    Page::graph(STACKS, &["--reverse"]).run(CASES, "turnsReversedPicture");
}

#[test]
fn self_weight_on_callers_is_that_of_the_function() {
    Page::graph(STACKS, &[]).run(CASES, "saysSelfOfFunctionsOnCallers");
}

#[test]
fn the_legend_is_true_for_the_view() {
    let stacks = b"app;app::main;app::own 40\napp;app::main;serde::parse 20\napp;app::main;serde::parse;std::copy 40\n";
    Page::graph(stacks, &[]).run(CASES, "explainsColoursOfView");
    Page::graph(stacks, &["--colordiffusion"]).run(CASES, "explainsColoursOfShares");
}

#[test]
fn a_profile_without_threads_has_no_function_as_its_title() {
    for stacks in [&b"(anonymous);f 3\n"[..], b"<module> (/srv/app.py:1);f 3\n", b"main;f 1\n"] {
        Page::graph(stacks, &[]).run(CASES, "hasTitleOfProcess");
    }
    Page::graph(b"(anonymous);f 3\n", &["--colors", "hot"]).run(CASES, "hasTitleOfProcess");
}
