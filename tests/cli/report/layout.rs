//! The width of lines.

use std::collections::HashSet;

use fgkit::csv::Categories;
use fgkit::profile::{Profile, Weight, Weights};
use fgkit::report::{Format, Inputs, Options, Subject, TextStyle};

use super::report;
use crate::support::{command, directory, run_command, tool};

/// Returns the page about a profile in this width.
fn page_in_width(stacks: &[(&str, u64)], width: usize, bars: bool) -> String {
    let mut profile = Profile::new(false);
    for (stack, weight) in stacks {
        let frames: Vec<_> = stack.split(';').map(|name| profile.frames.intern(name.as_bytes())).collect();
        profile.add(&frames, Weights::plain(Weight::new(*weight))).unwrap();
    }
    let options = Options {
        lines: Some(50),
        focus: None,
        own: None,
        categories: Categories::load(None).unwrap(),
        weights: Default::default(),
        count_name: None,
        missing: Default::default(),
        repeated: Default::default(),
        exact_names: false,
    };
    let style = TextStyle { width, bars, colours: false };
    let inputs = Inputs::Files(vec!["in.folded".to_owned()]);
    fgkit::report::report(Subject::Profile(profile), &inputs, options, Format::Text(style)).unwrap()
}

/// Wide characters take two columns, so a page of them is no wider than any other.
#[test]
fn wide_characters_fit_the_page() {
    let long = "文字列を結合する関数".repeat(9);
    let profile =
        format!("アプリ;主処理;{long};memmove 500\nアプリ;主処理;読み込み;read 300\nアプリ;主処理;計算 200\n");
    for options in [&[][..], &["--focus=主処理"]] {
        let page = report(options, profile.as_bytes());
        let columns = |line: &str| line.chars().map(|letter| 1 + usize::from(letter > '\u{2e80}')).sum::<usize>();
        let lines = page.lines().take_while(|line| *line != "look closer");
        assert!(lines.map(columns).all(|columns| columns <= 100), "{page}");
    }
}

#[test]
fn a_list_without_room_for_all_of_its_items_ends_in_dots() {
    let kinds = ["malloc", "memcpy", "qsort", "inflate", "fsync", "regexec", "pthread_mutex_lock", "nanosleep"];
    let text: String = kinds
        .iter()
        .enumerate()
        .map(|(number, kind)| format!("app;main;function_{number};{kind} {}\n", 90 - number))
        .collect();
    let work = |page: &str| page.lines().find(|line| line.starts_with("work")).unwrap().to_owned();
    assert!(work(&report(&[], text.as_bytes())).ends_with(", …"), "{}", report(&[], text.as_bytes()));
    let short: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
    assert!(!work(&report(&[], short.as_bytes())).contains('…'));
}

#[test]
fn a_page_about_thousands_of_files_names_few() {
    let folder = directory();
    let names: Vec<String> = (0..200).map(|number| format!("{number}.folded")).collect();
    for name in &names {
        std::fs::write(folder.path().join(name), "app;main;parse 7\napp;main;read_all 3\n").unwrap();
    }
    let mut command = command(tool("fg-report"));
    command.current_dir(folder.path()).args(&names);
    let page = run_command(command, b"").ok().text();
    assert!(page.len() < 2000 && page.contains("fg-report --focus '^parse$' 0.folded 1.folded 2.folded …"), "{page}");
}

#[test]
fn the_code_of_a_thread_that_waits_is_its_state() {
    let page = report(&[], b"app;main;wait;read;do_syscall_64_[k];schedule_[k];[off-cpu] 990\napp;main;run 10\n");
    assert!(page.contains("code      blocked 99.0%, own code 1.0%"), "{page}");
}

#[test]
fn functions_that_differ_by_their_arguments_differ_in_large_markdown() {
    let model = |number| format!("shop::model::{}{number}", "Customer".repeat(20));
    let stacks: Vec<String> = (0..60)
        .map(|number| format!("app;main;shop::sort_all<std::vector<{}>>;memcpy 9\n", model(number % 30)))
        .collect();
    let page = report(&["--markdown", "--budget=20"], stacks.concat().as_bytes());
    let (_, rows) = page.split_once("own functions").unwrap();
    let names: Vec<&str> = rows.lines().filter_map(|row| row.strip_prefix("| 3.3% | `")).collect();
    let distinct: HashSet<&str> = names.iter().filter_map(|name| name.split('`').next()).collect();
    assert!(names.len() > 2 && distinct.len() == names.len(), "{page}");
}

#[test]
fn the_file_of_all_own_functions_is_named_once_without_lines() {
    for (stacks, first_line) in [
        ("app;run (/srv/app.py:3);walk (/srv/app.py:10) 5\n", "in.folded: weight 5, 1 stack, own functions in app.py"),
        ("app;run (/srv/app.py);walk (/srv/tree.py) 5\n", "in.folded: weight 5, 1 stack"),
        ("app;shop::Loop::run 2\napp;shop::Loop::run;run (/srv/app.py) 3\n", "in.folded: 5 samples, 2 stacks"),
    ] {
        let folder = directory();
        std::fs::write(folder.path().join("in.folded"), stacks).unwrap();
        let mut command = command(tool("fg-report"));
        command.arg("in.folded").current_dir(folder.path());
        let page = run_command(command, b"").ok().text();
        assert_eq!(page.lines().next().unwrap().trim_start_matches("profile").trim(), first_line, "{page}");
    }
}

#[test]
fn markdown_is_not_large_for_long_names() {
    let long = |part: &str, number: usize| format!("{part}_{number}_{}", "of_the_code_generator".repeat(4));
    let parts = ["plan", "compile", "link", "optimize", "emit"];
    let stacks: Vec<String> =
        (0..60).map(|number| format!("app_{number};{} 9", parts.map(|part| long(part, number)).join(";"))).collect();
    let large = stacks.join("\n") + "\n";
    for budget in [20, 50, 100] {
        let page = report(&["--markdown", &format!("--budget={budget}")], large.as_bytes());
        assert!(page.len() <= budget * 160, "{budget}: {}", page.len());
        assert!(page.contains("`app_N ×60` 100.0%") && page.contains("emit_0_"), "{page}");
    }
    let small = report(&["--markdown"], stacks[2].as_bytes());
    assert!(parts.iter().all(|part| small.contains(&long(part, 2))), "{small}");
}

#[test]
fn functions_that_differ_by_their_arguments_alone_are_apart() {
    let of = |model: &str| format!("app;main;acme::sort_all<std::vector<std::pair<acme::model::{model}, int> > >;leaf");
    let profile = format!(
        "{}_a 25\n{}_b 25\napp;main;acme::sort_all<acme::text>;leaf_c 10\napp;main;other 40\n",
        of("Customer"),
        of("Invoice")
    );
    let page = report(&[], profile.as_bytes());
    let branches = page.lines().find(|line| line.starts_with("branches")).unwrap_or_default();
    for part in ["other 40.0%", "acme::sort_all<…Customer…> 25.0%", "acme::sort_all<…Invoice…> 25.0%"] {
        assert!(branches.contains(part), "{part}: {page}");
    }
}

#[test]
fn functions_of_libraries_that_differ_by_their_arguments_alone_are_apart_at_every_width() {
    let stack =
        |element: &str| format!("app;main;<alloc::vec::Vec<{element}> as core::ops::index::Index<usize>>::index");
    let [floats, rows] = ["f64", "alloc::vec::Vec<f64>"].map(stack);
    for width in [40, 60, 80, 100, 200] {
        let page = page_in_width(&[(&floats, 50), (&rows, 30), ("app;main;sum", 20)], width, false);
        let names = |share: &str| -> Vec<String> {
            let start = format!("{share}     {share}  ");
            let rows = page.lines().filter_map(|line| line.strip_prefix(&start));
            rows.map(|row| row.trim_start().split("  ").next().unwrap().to_owned()).collect()
        };
        let [floats, rows] = ["50.0%", "30.0%"].map(names);
        assert!(!floats.is_empty() && floats.len() == rows.len(), "{width}: {page}");
        assert!(floats.iter().zip(&rows).all(|(name, other)| name != other), "{width}: {page}");
    }
}

#[test]
fn details_are_in_one_column_beside_bars_and_without() {
    let callees = ["inflate", "regexec", "getaddrinfo", "pthread_mutex_lock", "qsort", "malloc"];
    let stacks: Vec<String> = callees.iter().map(|callee| format!("app;_start;main;handle_request;{callee}")).collect();
    let stacks: Vec<(&str, u64)> = stacks.iter().map(|stack| (stack.as_str(), 10)).collect();
    for bars in [false, true] {
        let page = page_in_width(&stacks, 80, bars);
        let mut lines = page.lines().skip_while(|line| !line.contains("own functions, with")).skip(1);
        let [first, second] = [lines.next().unwrap(), lines.next().unwrap()];
        let details = first.chars().count() - first.split("  ").last().unwrap().chars().count();
        assert_eq!(second.chars().take_while(|letter| *letter == ' ').count(), details, "{page}");
    }
}

#[test]
fn lists_are_no_wider_than_the_page() {
    let thread = |number: u32| {
        format!(
            "qtp-{number}-acceptor-of-connections;clone3;start_thread;a_function_with_a_long_name_{number};leaf_{number}"
        )
    };
    let stacks: Vec<String> = (0..9).map(thread).collect();
    for width in 40..110 {
        for (count, bars) in [(2, true), (9, false)] {
            let stacks: Vec<(&str, u64)> = stacks[..count].iter().map(|stack| (stack.as_str(), 10)).collect();
            let page = page_in_width(&stacks, width, bars);
            let lines = page.lines().take_while(|line| *line != "look closer");
            assert!(lines.map(|line| line.chars().count()).all(|columns| columns <= width), "{width}: {page}");
        }
    }
}
