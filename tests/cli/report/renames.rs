//! Functions that have another name after are no growth on the page.

use std::path::PathBuf;

use crate::support::{directory, run};

#[test]
fn a_renamed_function_has_not_grown() {
    let folder = directory();
    let path = |name: String| folder.path().join(name);
    for number in 0..5 {
        let (load, other, parse) = (401 + number * 3, 303 - number, 200 + number);
        let text = |name: &str| format!("main;load;read {load}\nmain;other {other}\nmain;{name};next {parse}\n");
        std::fs::write(path(format!("b{number}")), text("parse_v1")).unwrap();
        std::fs::write(path(format!("a{number}")), text("parse")).unwrap();
    }
    for count in [1, 3, 5] {
        let runs = |side: &str| (0..count).map(|number| path(format!("{side}{number}"))).collect::<Vec<PathBuf>>();
        let files = [vec!["--before".into()], runs("b"), vec!["--after".into()], runs("a")].concat();
        let joined = run("fg-report", &files, b"").ok().text();
        assert!(joined.contains("renamed?  parse_v1 -> parse 0.0%"), "{joined}");
        assert!(joined.contains("  fg-diff --match-renames "), "{joined}");
        assert!(joined.contains("nothing changed beyond noise") && !joined.contains("grew at"), "{joined}");
        let apart = run("fg-report", [vec!["--exact-names".into()], files].concat(), b"").ok().text();
        assert!(!apart.contains("rename") && apart.contains("parse_v1"), "{apart}");
    }
    // Read from a comparison, as from the runs.
    let both = run("fg-diff", [path("b0".to_owned()), path("a0".to_owned())], b"").ok().text();
    let joined = run("fg-report", [""; 0], both.as_bytes()).ok().text();
    assert!(joined.contains("parse_v1 -> parse 0.0%") && joined.contains("nothing changed"), "{joined}");
    // A function that costs much more is not the same.
    let grown = both.replace("main;parse;next 0 200", "main;parse;next 0 900");
    let page = run("fg-report", [""; 0], grown.as_bytes()).ok().text();
    assert!(!page.contains("renamed") && page.contains("1 grew") && page.contains("-22.1%    parse_v1"), "{page}");
}

#[test]
fn renamed_functions_are_ordered_by_change_and_never_left_out_silently() {
    let folder = directory();
    let name = |number: usize, side: &str| format!("module::{side}_function_{number}");
    let write = |side: &str, changes: [usize; 6]| {
        let stacks = (0..6).map(|number| {
            let (function, weight) = (name(number, side), 3000 + changes[number]);
            format!("app;main;caller_{number};{function};callee_{number} {weight}\n")
        });
        std::fs::write(folder.path().join(side), stacks.collect::<String>()).unwrap();
    };
    write("old", [0; 6]);
    write("new", [5, 50, 10, 40, 20, 30]);
    let files = ["--before", "old", "--after", "new"];
    let run = |options: &[&str]| {
        let mut command = crate::support::command(crate::support::tool("fg-report"));
        command.current_dir(folder.path()).args(files).args(options);
        crate::support::run_command(command, b"").ok().text()
    };
    let json: serde_json::Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let items = json["renamed"]["items"].as_array().unwrap();
    let order: Vec<&str> = items.iter().filter_map(|item| item["name"].as_str()?.rsplit('_').next()).collect();
    assert_eq!(order, ["1", "3", "5", "4", "2", "0"], "{json}");
    let page = run(&[]);
    let fact: Vec<&str> = page.lines().skip_while(|line| !line.starts_with("renamed?")).take(2).collect();
    assert!(fact[0].contains("function_1") && fact[1].starts_with("   ") && fact[1].ends_with(", …"), "{page}");
}

#[test]
fn a_function_that_grew_is_compared_under_the_name_of_its_module() {
    let both = |old: &str, new: &str| {
        let stack = |module: &str, function: &str| format!("app;main;{module}::{function};std::{function}");
        ["parse", "check", "render"].map(|name| format!("{} 0 511\n", stack(new, name))).concat()
            + &["parse", "check", "render"].map(|name| format!("{} 503 0\n", stack(old, name))).concat()
            + &format!("{} 301 0\n{} 0 1502\n", stack(old, "price"), stack(new, "price"))
    };
    let page = run("fg-report", [""; 0], both("shop::cart", "shop::basket").as_bytes()).ok().text();
    assert!(page.contains("names     shop::cart:: is compared as shop::basket::\n"), "{page}");
    assert!(page.contains("1 grew") && page.contains("301 1,502 +66.4% <0.001  shop::basket::price"), "{page}");
    assert!(!page.contains("renamed?") && !page.contains("vanished"), "{page}");
    let apart = run("fg-report", ["--exact-names"], both("shop::cart", "shop::basket").as_bytes()).ok().text();
    assert!(apart.contains("4 appeared, 4 vanished"), "{apart}");
}

#[test]
fn fg_diff_prints_modules_that_were_renamed() {
    let folder = directory();
    let write = |side: &str, module: &str, price: usize| {
        let stacks = ["parse", "check", "render"].map(|name| format!("app;main;{module}::{name};std::{name} 507\n"));
        let text = stacks.concat() + &format!("app;main;{module}::price;std::price {price}\n");
        std::fs::write(folder.path().join(side), text).unwrap();
    };
    write("old", "cart", 301);
    write("new", "basket", 1502);
    let files = ["old", "new"].map(|name| folder.path().join(name));
    let all = |options: &[&str]| {
        let arguments = options.iter().map(PathBuf::from).chain(files.clone());
        run("fg-diff", arguments.collect::<Vec<_>>(), b"").ok()
    };
    let joined = all(&["--match-renames"]);
    assert!(joined.stderr.contains("cart:: is compared as basket::"), "{}", joined.stderr);
    assert!(joined.text().contains("app;main;basket::price;std::price 301 1502\n"), "{}", joined.text());
    for options in [&[][..], &["--match-renames", "--exact-names"]] {
        assert!(!all(options).text().contains("basket::price;std::price 301 1502"), "{options:?}");
    }
}
