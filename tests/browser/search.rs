//! Searching, and moving from match to match.

use crate::browser::Page;

const CASES: &str = include_str!("cases/search.js");

const STACKS: &[u8] = b"main;parse;read 30\nmain;parse;scan;next 20\nmain;write;read 10\nmain;write 40\nidle 100\n";

#[test]
fn shows_the_share_of_matches_in_the_view() {
    Page::graph(STACKS, &[]).run(CASES, "showsShareOfMatches");
}

#[test]
fn finds_a_name_as_it_is_written() {
    let stacks = b"main;[unknown] 10\nmain;operator()(int) 20\nk 70\n";
    Page::graph(stacks, &[]).run(CASES, "findsTextBeforeExpressions");
}

#[test]
fn reports_an_invalid_pattern_and_still_works() {
    Page::graph(STACKS, &[]).fragment("#search=ba%5B").run(CASES, "reportsInvalidPattern");
}

#[test]
fn moves_from_match_to_match() {
    let stacks = b"main;parse;read 30\nmain;parse;scan;next 20\nmain;write;read 10\nmain;write 40\n\
        main;walk;walk;walk;read 20\nidle 80\n";
    Page::graph(stacks, &[]).run(CASES, "movesFromMatchToMatch");
}

#[test]
fn counts_matches_too_narrow_to_draw_and_zooms_to_them() {
    // One wide function; thirty that are too narrow to draw, also when their callers' caller is zoomed.
    let mut stacks = b"main;wide 1000000\nmain;group;rest 2000\n".to_vec();
    for narrow in 0..30 {
        stacks.extend_from_slice(format!("main;group;many;narrow{narrow:02};leaf 1\n").as_bytes());
    }
    Page::graph(&stacks, &[]).fragment("#sort=name").run(CASES, "showsMatchesTooNarrowToDraw");
}

#[test]
fn moves_through_matches_as_they_are_drawn() {
    Page::graph(b"a;f;x 1\nb;f;x 5\nc;f;y 3\nc;x 2\n", &[]).run(CASES, "movesThroughMatchesAsDrawn");
}
