//! The order in which a page is drawn.

use crate::browser::Page;

const CASES: &str = include_str!("cases/load.js");

#[test]
fn the_graph_answers_before_functions_are_summed() {
    Page::graph(b"main;parse;read 30\nmain;write 10\n", &[]).run(CASES, "answersBeforeFunctionsAreSummed");
}
