//! The table of functions.

use crate::browser::Page;

const CASES: &str = include_str!("cases/table.js");

const STACKS: &[u8] = b"main;parse;read 30\nmain;parse;scan;next 20\nmain;write;read 10\nmain;write 40\nidle 100\n";

#[test]
fn lists_functions_with_self_and_total() {
    Page::graph(STACKS, &[]).run(CASES, "listsFunctions");
}

#[test]
fn long_types_leave_room_for_functions() {
    let stacks = b"main;btree::search::<impl btree::node::NodeRef<BorrowType,Key,Value,marker::LeafOrInternal>>::search_tree 9\n";
    Page::graph(stacks, &[]).run(CASES, "showsFunctionsOfLongTypes");
}

#[test]
fn counts_recursion_once() {
    Page::graph(b"f;g;f 6\nf;g 4\n", &[]).run(CASES, "countsRecursionOnce");
}

#[test]
fn a_row_selects_highlights_and_opens_a_function() {
    Page::graph(STACKS, &[]).run(CASES, "selectsFunctions");
}

#[test]
fn a_double_click_on_a_low_row_opens_its_function() {
    let stacks: String = (0..200).map(|number| format!("main;f{number:03} {}\n", 300 - number)).collect();
    Page::graph(stacks.as_bytes(), &[]).run(CASES, "opensSandwichOfLowRow");
}

#[test]
fn names_are_sorted_as_they_are_shown() {
    let stacks = b"main;<tokio::net::TcpStream as io::Read>::poll 4\nmain;alloc::string::String::push 3\n\
        main;zeta::Alpha::run 2\nmain;core::mem::swap 1\n";
    Page::graph(stacks, &[]).run(CASES, "sortsByShownNames");
}

#[test]
fn keys_move_through_the_table() {
    Page::graph(STACKS, &[]).run(CASES, "movesWithKeys");
}

#[test]
fn keys_sort_the_table_and_open_its_menu() {
    Page::graph(STACKS, &[]).run(CASES, "sortsAndOpensMenuWithKeys");
}

#[test]
fn only_visible_rows_are_elements() {
    let stacks: String = (0..5000).map(|number| format!("main;f{number:04} {}\n", number + 1)).collect();
    Page::graph(stacks.as_bytes(), &[]).run(CASES, "drawsVisibleRowsOnly");
}

#[test]
fn copies_the_table_as_csv() {
    Page::graph(b"main;a \"b\" 3\nmain 1\n", &[]).run(CASES, "copiesCsv");
}

#[test]
fn the_runtime_is_charged_to_its_callers() {
    let stacks = b"app;main;shop::price;core::num::wrapping_mul 60\napp;main;shop::price 5\napp;main;shop::load;read;vfs_read_[k] 20\n\
        app;std::rt::start 10\napp;main;std::sort;shop::compare 5\n";
    Page::graph(stacks, &[]).run(CASES, "chargesRuntimeToCallers");
}

#[test]
fn waits_are_charged_to_functions() {
    let stacks = b"app;main;wait;futex_[k];schedule_[k];[off-cpu] 25000000\nkswapd0;kthread_[k];schedule_[k];[off-cpu] 5000000\n\
        app;main;wait;futex_[k];--;irq_[w];wake_[w];[off-cpu] 55000000\n\
        app;main;[off-cpu] 10000000\napp;main;run;read_[k] 5000000\n";
    Page::graph(stacks, &[]).run(CASES, "chargesWaitsToFunctions");
}
