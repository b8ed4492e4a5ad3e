//! What programs read of fg-report: the keys of its JSON object, and how much of the profile it has.

use std::fmt::Write as _;

use serde_json::Value;

use super::report;
use crate::support::{data, run};

fn json(options: &[&str], profile: &str) -> Value {
    let options: Vec<&str> = ["--json"].iter().chain(options).copied().collect();
    serde_json::from_str(&report(&options, profile.as_bytes())).unwrap()
}

/// Returns a profile of this many functions, of which the last have less than a hundredth of a percent.
fn wide(functions: u32) -> String {
    let mut text = String::new();
    for number in 0..functions {
        writeln!(text, "main;f{number};memmove {}", 1 + 100_000 / (number + 1).pow(2)).unwrap();
    }
    text
}

#[test]
fn json_has_the_depth_of_callers() {
    let page = json(&["--focus=^f$"], "main;a;f 3\nmain;b;f 2\n");
    let callers = page["callers"].as_array().unwrap();
    let depths: Vec<_> = callers.iter().map(|row| row["depth"].as_u64().unwrap()).collect();
    assert!(depths.contains(&0) && depths.contains(&1), "{page}");
}

#[test]
fn json_is_whole_unless_there_is_a_budget() {
    let whole = json(&[], &wide(300));
    assert_eq!(whole["own"].as_array().unwrap().len(), 300);
    assert!(whole.get("left_out").is_none(), "{}", whole["left_out"]);
    let cut = json(&["--budget=20"], &wide(300));
    let shown = cut["own"].as_array().unwrap().len() as u64;
    assert_eq!(cut["left_out"]["own"].as_u64(), Some(300 - shown));
    assert_eq!(json(&["--budget=20"], "main;f 1\n").get("left_out"), None);
}

#[test]
fn json_of_a_comparison_has_all_changes() {
    let lines = (0..200).map(|number| format!("main;f{number} 400001 {}\n", 400_001 + number % 3 * 90_000));
    let text: String = lines.collect();
    let whole = json(&["--exact"], &text);
    assert_eq!(whole["grew"].as_array().unwrap().len(), 133, "{whole:#}");
    let cut = json(&["--exact", "--budget=20"], &text);
    let shown = cut["grew"].as_array().unwrap().len() as u64;
    assert_eq!(cut["left_out"]["grew"].as_u64(), Some(133 - shown));
}

/// `total` is the sum of all weights, `inclusive` a function with its callees, `share` what counts for a function alone.
#[test]
fn a_key_has_one_meaning() {
    let profile = json(&[], "main;a;b 30\nmain;a 20\nmain 50\n");
    assert_eq!(profile["profile"]["total"].as_f64(), Some(100.0));
    let find = |table: &str, name: &str| {
        let mut rows = profile[table].as_array().unwrap().iter();
        rows.find(|row| row["names"].as_array().unwrap().iter().any(|found| found == name)).unwrap().clone()
    };
    assert_eq!(find("own", "a")["share_pct"].as_f64(), Some(20.0));
    assert_eq!(find("self", "a")["self_pct"].as_f64(), Some(20.0));
    assert_eq!(find("self", "a")["inclusive_pct"].as_f64(), Some(50.0));
    assert_eq!(find("tree", "a")["inclusive_pct"].as_f64(), Some(50.0));
    assert!(!profile.to_string().contains("total_pct"));
    let focused = json(&["--focus=^a$"], "main;a;b 30\nmain;a 20\nmain 50\n");
    assert_eq!(focused["focus"]["inclusive_pct"].as_f64(), Some(50.0));
}

#[test]
fn totals_that_differ_widely_are_doubted() {
    for (after, said) in
        [(900, None), (9_000, Some("fg-diff -n compares shares")), (9_000_000, Some("that the units may"))]
    {
        let page = report(&[], format!("main;a 500 {after}\nmain;b 501 7\n").as_bytes());
        assert_eq!(page.contains("the totals differ"), said.is_some(), "{page}");
        assert!(said.is_none_or(|said| page.split_whitespace().collect::<Vec<_>>().join(" ").contains(said)), "{page}");
    }
}

#[test]
fn the_option_for_exact_names_is_repeated_or_refused() {
    use crate::support::{directory, run};
    let folder = directory();
    let [before, after] = ["before", "after"].map(|name| folder.path().join(name));
    std::fs::write(&before, "main;a 400\nmain;b 801\n").unwrap();
    std::fs::write(&after, "main;a 1200\nmain;b 801\n").unwrap();
    let sides = ["--exact-names", "--before", before.to_str().unwrap(), "--after", after.to_str().unwrap()];
    let page = run("fg-report", sides, b"").ok().text();
    assert!(page.contains("fg-report --exact-names --focus") && page.contains("fg-diff --exact-names /"), "{page}");
    let plain = run("fg-report", ["--exact-names"], b"main;a 4\n").ok();
    assert!(plain.stderr.contains("--exact-names has no effect"), "{}", plain.stderr);
}

#[test]
fn names_for_programs_are_whole_and_exact() {
    let deep: String = (0..150).map(|number| format!("f{number};")).collect();
    let page = json(&[], &format!("main;{deep}a;a;a;x\u{202e}y 30\nmain;lib::call<T>;worker 1\n"));
    let text = page.to_string();
    assert!(!text.contains('×') && !text.contains('…') && text.contains("x\u{202e}y"), "{page:#}");
    let chain = page["tree"][1]["names"].as_array().unwrap();
    assert!(chain.len() >= 150, "{page:#}");
    assert_eq!(page["hot_path"]["path"].as_array().unwrap().len(), 153, "{page:#}");
    let focus = &json(&["--focus=^a$"], "main;a 200 120\nmain;b 600 600\n")["focus"];
    assert_eq!(focus["items"][0]["name"], "a");
    // In percent of the total before, as on the page.
    assert_eq!((focus["before_pct"].as_f64(), focus["after_pct"].as_f64()), (Some(25.0), Some(15.0)));
}

#[test]
fn json_has_the_hot_path_of_a_pool_and_the_tree_of_each_thread() {
    let stack = |thread: u32| format!("worker-{thread};start_thread;serve;encode;memcpy 10\n");
    let page = json(&[], &(0..5).map(stack).collect::<String>());
    assert_eq!(page["hot_path"]["path"][0]["name"], "worker-N ×5", "{page:#}");
    assert_eq!(page["tree"].as_array().unwrap().len(), 5, "{page:#}");
    assert_eq!(page["tree"][0]["names"][0], "worker-0", "{page:#}");
}

/// The page, and all programs that judge, say that a divisor was taken for a sample where the verdict depends on it.
#[test]
fn what_is_taken_for_a_sample_is_said() {
    use crate::support::{directory, run};
    let folder = directory();
    let [before, after] = ["before", "after"].map(|name| folder.path().join(name));
    std::fs::write(&before, "main;a 400\nmain;b 800\n").unwrap();
    std::fs::write(&after, "main;a 1200\nmain;b 2400\n").unwrap();
    let sides = ["--before", before.to_str().unwrap(), "--after", after.to_str().unwrap()];
    let run_with = |program: &str, options: &[&str]| {
        let outcome = run(program, options.iter().chain(&sides), b"");
        (outcome.text() + &outcome.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = "multiples of 400, taken as the weight of one sample: 3 before, 9 after";
    for (program, options) in
        [("fg-report", &[][..]), ("fg-csv", &[]), ("fg-check", &["--growth=2%"]), ("fg-diff", &["--significant"])]
    {
        let text = run_with(program, options);
        assert!(text.contains(said) && text.contains("--per-sample") && text.contains("--exact"), "{program}: {text}");
        for option in ["--per-sample=400", "--per-sample=1", "--exact"] {
            let text = run_with(program, &[options, &[option]].concat());
            assert!(!text.contains("multiples of"), "{program} {option}: {text}");
        }
    }
    // With plenty of samples, it makes no difference.
    std::fs::write(&before, "main;a 4000000\nmain;b 8000400\n").unwrap();
    std::fs::write(&after, "main;a 4400400\nmain;b 8000000\n").unwrap();
    assert!(!run_with("fg-csv", &[]).contains("multiples of"));
}

#[test]
fn tables_without_a_shown_row_are_counted_as_left_out() {
    let count = |page: &Value, key: &str| page[key].as_array().map_or(0, Vec::len) as u64;
    let text = wide(30);
    for (options, keys) in [(&[][..], &["own", "self"][..]), (&["--focus=^main$"], &["self", "tree"])] {
        let whole = json(options, &text);
        let cut = json(&[options, &["--budget=20"]].concat(), &text);
        for key in keys {
            let left_out = cut["left_out"][key].as_u64().unwrap_or(0);
            assert_eq!(count(&cut, key) + left_out, count(&whole, key), "{key} {options:?}: {cut:#}");
        }
    }
    assert!(json(&["--focus=^main$", "--budget=12"], &text)["left_out"]["self"].as_u64() > Some(0));
    // Pages for people have no heading without a row.
    assert!(!report(&["--focus=^main$", "--budget=12"], text.as_bytes()).contains("by self weight"));
}

/// One run a side whose weights have no small ones, and vary: 78 is the smallest.
fn without_small_weights(factor: u64) -> String {
    (0..30_u64).fold(String::new(), |text, number| {
        text + &format!("main;f{number} {}\n", 78 + number * (35 + factor * (number * 7 % 5)))
    })
}

#[test]
fn a_sample_that_is_taken_for_the_smallest_weight_is_stated() {
    let folder = crate::support::directory();
    let paths = [("old", 0), ("new", 8)].map(|(name, factor)| {
        let path = folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(&path, without_small_weights(factor)).unwrap();
        path
    });
    let sides = ["--before", &paths[0], "--after", &paths[1]];
    let run_with = |program: &str, options: &[&str]| {
        let outcome = crate::support::run(program, options.iter().chain(&sides), b"");
        // Lines of a page break anywhere.
        (outcome.text() + &outcome.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = "one sample is taken to weigh 78, unless --per-sample says otherwise, because few weights are small; if the weights \
                are durations or periods, compare several runs";
    for (program, options) in
        [("fg-report", &[][..]), ("fg-csv", &[]), ("fg-check", &["--growth=50%"]), ("fg-diff", &["--significant"])]
    {
        let text = run_with(program, options);
        assert!(text.contains(said), "{program}: {text}");
        let text = run_with(program, &[options, &["--per-sample=1"]].concat());
        assert!(!text.contains("one sample is taken"), "{program}: {text}");
    }
}

#[test]
fn commands_and_sizes_are_readable() {
    let page = report(&[], "main;a\u{202e}b 5\n".as_bytes());
    assert!(page.contains("weight 5, 1 stack\n"), "{page}");
    assert!(page.contains(r"fg-report --focus '^a\x{202e}b$' FILE") && !page.contains('\u{202e}'), "{page}");
    let focused = report(&[r"--focus=^a\x{202e}b$"], "main;a\u{202e}b 5\n".as_bytes());
    assert!(focused.contains("1 function in 100.0%"), "{focused}");
    let outcome = crate::support::run("fg-report", ["--countname", ""], b"main 5\n");
    assert!(outcome.stderr.contains("--countname"), "{}", outcome.stderr);
}

#[test]
fn a_file_is_named_with_visible_characters() {
    let folder = crate::support::directory();
    let name = "it's\\ \u{202e}.folded";
    std::fs::write(folder.path().join(name), "main;f 5\n").unwrap();
    let in_folder = |line: &str| {
        let programs = std::path::Path::new(crate::support::tool("fg-report")).parent().unwrap().to_owned();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut shell = crate::support::command("sh");
        shell.args(["-ec", line]).current_dir(folder.path()).env("PATH", path);
        crate::support::run_command(shell, b"").ok().text()
    };
    let page = in_folder("fg-report *.folded");
    let command = page.lines().find(|line| line.starts_with("  fg-report --focus")).unwrap();
    assert!(!command.contains('\u{202e}'), "{page}");
    assert!(in_folder(command).contains("100.0%"), "{command}");
}

#[test]
fn a_focus_matches_names_as_pages_show_them() {
    let profile = "app;_start;main;wait<std::vector<int> >(shop::lock&);poll 30\napp;_start;main;wait<std::string>(int) 30\n\
        app;_start;main;waiting 20\napp;_start;main;acme::shop::queue::push<int>(int) 20\n";
    let focus = |pattern: &str, profile: &str| {
        json(&[&format!("--focus={pattern}")], profile)["focus"]["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect::<Vec<String>>()
    };
    assert_eq!(focus("^wait$", profile), ["wait<std::string>(int)", "wait<std::vector<int> >(shop::lock&)"]);
    assert_eq!(focus("^queue::push$", profile), ["acme::shop::queue::push<int>(int)"]);
    // What whole names match is not searched for elsewhere.
    assert_eq!(focus("^waiting$", profile), ["waiting"]);
    let whole = format!("{profile}app;_start;main;wait 5\n");
    assert_eq!(focus("^wait$", &whole), ["wait"]);
    let script = "python3;_start;total (/srv/app/c.py);max (/srv/app/c.py) 5\n";
    assert_eq!(focus("^total$", script), ["total (/srv/app/c.py)"]);
    assert_eq!(focus(r"^total \(c\.py\)$", script), ["total (/srv/app/c.py)"]);
    let unmatched = run("fg-report", ["--focus=^sleep$"], profile.as_bytes());
    assert!(unmatched.code() == 1 && unmatched.stderr.contains("--focus ^sleep$: no frame matches"), "{unmatched:?}");
}

#[test]
fn json_has_the_small_kinds_of_code() {
    let page = json(&[], "app;main;work 9999\napp;main;malloc 1\n");
    let kinds = page["code"]["items"].as_array().unwrap();
    assert_eq!(kinds[1]["name"], "allocator");
    assert_eq!(kinds[1]["percent"].as_f64(), Some(0.01));
}

#[test]
fn separators_of_cells_have_a_backslash_in_tables_only() {
    let page = report(&["--markdown"], b"app;main;a|b`c;x 5\napp;main;left|right;y 3\n");
    let (tables, others): (Vec<&str>, Vec<&str>) = page.lines().partition(|line| line.starts_with("| "));
    assert!(others.iter().any(|line| line.contains("`` a|b`c ``")), "{page}");
    assert!(!others.iter().any(|line| line.contains("\\|")), "{page}");
    assert!(tables.iter().any(|line| line.contains("`left\\|right`")), "{page}");
}

#[test]
fn the_commands_of_a_page_find_their_function() {
    let folder = data("collapse/formats");
    let profiles = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut profiles: Vec<_> = profiles.filter(|path| path.extension().is_some_and(|end| end == "folded")).collect();
    profiles.sort();
    assert!(profiles.len() > 100);
    let programs = std::path::Path::new(crate::support::tool("fg-report")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    for profile in profiles {
        let page = run("fg-report", [&profile], b"");
        // Some are empty.
        let Some(command) = page.text().lines().find(|line| line.starts_with("  fg-report --focus")).map(str::to_owned)
        else {
            continue;
        };
        let mut shell = crate::support::command("sh");
        shell.args(["-ec", &command]).env("PATH", &path);
        let focused = crate::support::run_command(shell, b"").ok().text();
        assert!(focused.contains("focus     1 function in "), "{command}: {focused}");
    }
}
