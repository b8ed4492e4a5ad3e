//! Labels of frames.

use serde_json::{Value, json};

use crate::browser::Page;

const CASES: &str = include_str!("cases/labels.js");

#[test]
fn labels_fit_into_their_frames() {
    let stacks = "main;a_function_with_a_long_name 10\nmain;another::function::in::namespaces 12\n\
        main;WWWWWWWWWWWWWW 6\nmain;iiiiiiiiiiiiii 6\nmain;中文中文中文 4\n";
    Page::graph(stacks.as_bytes(), &["--width", "420"]).run(CASES, "fitsLabelsIntoFrames");
}

#[test]
fn a_label_of_a_few_letters_is_left_out() {
    let stacks: String = (3..12).map(|width| format!("main;some_long_name_{width} {width}\n")).collect();
    Page::graph(stacks.as_bytes(), &["--width", "420"]).run(CASES, "leavesOutLabelsOfFewLetters");
}

#[test]
fn truncate_text_right_keeps_the_beginning_of_labels() {
    let stacks = b"main;a::function::in::namespaces 12\nmain;x 90\n";
    Page::graph(stacks, &["--truncate-text-right"]).run(CASES, "keepsBeginningOfLabels");
}

#[test]
fn labels_are_cut_as_in_the_static_graph() {
    let labels = include_str!("../data/svg/labels.tsv").lines().map(|line| {
        let [name, room, label] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        json!([name, room.parse::<usize>().unwrap(), label])
    });
    let code = [include_str!("../../lib/svg/viewer/label.js"), CASES].concat();
    let page = Page::graph(b"main 1\n", &[]);
    page.run_with(&code, "cutsLabelsAsStaticGraph", &json!([labels.collect::<Value>()]));
}

#[test]
fn source_lines_hide_no_library() {
    let stacks = b"app;main:own.c:9;malloc:./malloc/malloc.c:3329 30\napp;main:own.c:9 10\n";
    Page::graph(stacks, &[]).run(CASES, "namesLibrariesWithSourceLines");
}
