//! Functions that have another name after are no growth on the page.

use std::path::PathBuf;

use crate::support::{command, directory, run, run_command, tool};

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
fn a_function_in_the_place_of_another_one_is_none_with_another_name() {
    let text = |lines: &[(&str, usize)]| {
        let rest = [("handle;check", 830), ("handle;load;decode", 1310), ("store;encode", 1050), ("store;flush", 720)];
        stacks("app;main", &[&rest[..], lines].concat())
    };
    let before = text(&[("handle;render", 1100), ("handle;render;x", 230), ("handle;render;y", 250)]);
    for after in [
        &[("handle;warm_cache", 1590)][..],
        &[("handle;warm_cache", 1110), ("handle;warm_cache;u", 220), ("handle;warm_cache;w", 250)],
    ] {
        let (page, status) = compare(&before, &text(after));
        assert!(!page.contains("renamed?") && status == Some(1), "{page}");
        assert!(page.contains(" appeared") && page.contains(" vanished"), "{page}");
    }
    let other = [("handle;paint", 1110), ("handle;paint;x", 220), ("handle;paint;y", 260)];
    let (page, status) = compare(&before, &text(&other));
    assert!(page.contains("renamed?  render -> paint") && status == Some(0), "{page}");
}

#[test]
fn two_names_of_a_function_are_shown_with_what_tells_them_apart() {
    let text = |name: &str| stacks("app;main", &[("load", 600), ("rank;hash", 610), ("dump", 590), (name, 500)]);
    for (before, after) in [("sort_row(int)", "sort_row(int, int)"), ("sort_all_the_rows", "sort_all_the_rows.cold")] {
        let (page, _) = compare(&text(before), &text(after));
        assert!(page.contains(&format!("renamed?  {before} -> {after} 0.0%")), "{page}");
    }
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

/// Returns the page of two profiles, and how `fg-diff --match-renames --significant --exit-code` exits.
fn compare(before: &str, after: &str) -> (String, Option<i32>) {
    let folder = directory();
    let files = [("old", before), ("new", after)].map(|(name, text)| {
        std::fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name)
    });
    let sides = ["--before".into(), files[0].clone(), "--after".into(), files[1].clone()];
    let page = run("fg-report", sides, b"").ok().text();
    let options = ["--match-renames", "--significant", "--exit-code"].map(PathBuf::from);
    let status = run("fg-diff", options.into_iter().chain(files).collect::<Vec<_>>(), b"").status;
    (page, status.code())
}

#[test]
fn a_renamed_module_of_python_is_found_in_a_copied_folder() {
    let text = |folder: &str, module: &str, weight: usize| {
        let start = format!("python3;<module> (/srv/{folder}/app.py)");
        let stack = |name: &str, weight: usize| format!("{start};{name} (/srv/{folder}/{module}.py) {weight}\n");
        format!("{start} {}\n", weight / 9)
            + &stack("load", weight)
            + &stack("rank", weight + 20)
            + &stack("join", weight + 50)
    };
    let (page, status) = compare(&text("v1", "shelf", 401), &text("v2", "vault", 397));
    assert!(
        page.contains("/srv/v1/shelf.py is compared as /srv/v2/vault.py, /srv/v1/ is compared as /srv/v2/"),
        "{page}"
    );
    assert!(page.contains("nothing changed beyond noise") && status == Some(0), "{page}");
}

#[test]
fn a_renamed_type_is_renamed_within_all_names() {
    // Rust: the code that the compiler adds for a type has its name in brackets.
    let rust = |name: &str, weight: usize| {
        let run = "app;main;app::run_once";
        format!(
            "{run};app::shelf::{name}::add_all 4{weight}\n{run};app::shelf::{name}::scan_all 3{weight}\n\
             {run};core::ptr::drop_in_place<app::shelf::{name}>;cfree 2{weight}\n{run};app::rank_ids 3{weight}\n"
        )
    };
    let (page, status) = compare(&rust("Index", 21), &rust("Catalog", 17));
    assert!(page.contains("names     app::shelf::Index:: is compared as app::shelf::Catalog::\n"), "{page}");
    assert!(page.contains("nothing changed beyond noise") && status == Some(0), "{page}");
    assert!(!page.contains("drop_in_place<app::shelf::Index>"), "{page}");
    // C++: constructors and destructors have it twice.
    let cpp = |name: &str, other: &str, weight: usize| {
        let copy =
            format!("inv;main;{other}::snapshot;std::vector<{name}>::operator=;std::_Construct<{name}>;{name}::{name}");
        let destroy = format!("inv;main;{other}::~{other};std::_Destroy<{name}>;{name}::~{name};cfree");
        format!(
            "{copy};malloc 4{weight}\n{destroy} 2{weight}\ninv;main;quote 5{weight}\ninv;main;{other}::find 2{weight}\n"
        )
    };
    for (after, expected) in [
        (cpp("Article", "Catalog", 20), "Item:: is compared as Article::"),
        (cpp("Item", "Store", 20), "Catalog:: is compared as Store::"),
        (cpp("Article", "Store", 20), "Catalog:: is compared as Store::, Item:: is compared as Article::"),
    ] {
        let (page, status) = compare(&cpp("Item", "Catalog", 12), &after);
        assert!(page.contains(&format!("names     {expected}\n")), "{page}");
        assert!(page.contains("nothing changed beyond noise") && status == Some(0), "{page}");
        assert!(!page.contains("renamed?") && !page.contains("Store::~Catalog"), "{page}");
    }
}

#[test]
fn functions_keep_their_names_in_a_renamed_package_though_one_grew_much() {
    let text = |package: &str, rank: usize| {
        let run = format!("java;{package}.Index.main;{package}.Index.run_once;{package}.Index");
        let names = [("add_all", 502), ("scan_all", 411), ("join_ids", 642), ("rank_ids", rank)];
        names.map(|(name, weight)| format!("{run}.{name} {weight}\n")).concat()
    };
    let (page, status) = compare(&text("acme", 882), &text("zed", 5136));
    assert!(page.contains("names     acme. is compared as zed.\n"), "{page}");
    assert!(page.contains("of the own functions 1 grew") && !page.contains("vanished"), "{page}");
    assert_eq!(status, Some(1));
}

#[test]
fn two_programs_that_start_alike_are_not_paired() {
    let text = |folder: &str, functions: [(&str, usize); 3]| {
        let main = format!("python3;<module> (/srv/{folder}/app.py);main (/srv/{folder}/app.py)");
        let stacks = functions
            .map(|(name, weight)| format!("{main};{name} (/srv/{folder}/app.py);PyObject_Call;dict_get {weight}\n"));
        stacks.concat() + &format!("{main};dumps (json/__init__.py) 40\npython3;PyObject_Call 20\n")
    };
    let before = text("a", [("load", 812), ("total", 131), ("group", 77)]);
    for folder in ["a", "b"] {
        let after = text(folder, [("matrix", 803), ("tokens", 52), ("histogram", 190)]);
        let (page, status) = compare(&before, &after);
        assert!(!page.contains("names ") && !page.contains("renamed?"), "{page}");
        assert!(page.contains(" appeared, ") && page.contains(" vanished") && status == Some(1), "{page}");
    }
    // A version has one other name, which tells more than what all functions of scripts call.
    let [before, after] = [("load", 161), ("parse", 155)].map(|one| text("a", [one, ("total", 140), ("group", 81)]));
    let (page, _) = compare(&before, &after);
    assert!(!page.contains("renamed?") && page.contains("1 appeared, 1 vanished"), "{page}");
    let [before, after] = [("load", 161), ("load_v2", 155)].map(|one| text("a", [one, ("total", 140), ("group", 81)]));
    let (page, _) = compare(&before, &after);
    assert!(page.contains("renamed?  load -> load_v2"), "{page}");
    assert!(page.contains("nothing changed beyond noise"), "{page}");
}

/// Returns lines of stacks that begin with some frames.
fn stacks(start: &str, functions: &[(&str, usize)]) -> String {
    functions.iter().map(|(name, weight)| format!("{start};{name} {weight}\n")).collect()
}

/// Checks that nothing is paired in two profiles, in either order.
fn assert_nothing_is_paired(before: &str, after: &str) {
    for (before, after) in [(before, after), (after, before)] {
        let (page, status) = compare(before, after);
        assert!(!page.contains("names  ") && !page.contains("renamed?"), "{page}");
        assert!(page.contains("beyond noise") && !page.contains("nothing changed"), "{page}");
        assert_eq!(status, Some(1), "{page}");
    }
}

#[test]
fn types_with_equal_methods_of_two_programs_are_two() {
    let go = |name: &str, own: &[(&str, usize)], methods: [usize; 3]| {
        let sort = format!("svc;runtime.main;main.main;sort.Sort;sort.pdqsort;main.{name}");
        let [less, swap, len] = methods;
        stacks("svc;runtime.main;main.main", own)
            + &format!("{sort}.Less {less}\n{sort}.Swap {swap}\n{sort}.Len {len}\n")
    };
    assert_nothing_is_paired(
        &go("byAge", &[("main.makeUsers", 196), ("main.greet", 158)], [132, 118, 40]),
        &go("bySum", &[("main.hashAll", 378), ("main.dedup", 101)], [129, 111, 38]),
    );
    let python = |class: &str, functions: &[(&str, usize)]| {
        let line = |(name, weight): &(&str, usize)| {
            format!("python3;<module> (/srv/app.py);main (/srv/app.py);{class}.{name} (/srv/app.py) {weight}\n")
        };
        functions.iter().map(line).collect::<String>()
    };
    assert_nothing_is_paired(
        &python("Cart", &[("add", 111), ("total", 64), ("find", 5), ("save", 43)]),
        &python("Ledger", &[("add", 118), ("total", 4), ("find", 73), ("audit", 41)]),
    );
}

#[test]
fn a_module_that_was_split_is_compared_whole_in_both_directions() {
    let names = ["load", "scan", "join", "pack", "sort", "rank"];
    let one = names.map(|name| format!("c::{name}"));
    let two = names.map(|name| format!("{}::{name}", if "pack sort rank".contains(name) { "b" } else { "a" }));
    for weights in [[503, 411, 307, 511, 423, 330], [903, 811, 707, 311, 223, 130]] {
        let text = |names: &[String; 6], more: usize| {
            let functions: Vec<_> =
                names.iter().zip(weights).map(|(name, weight)| (name.as_str(), weight + more)).collect();
            stacks("app;main", &functions) + &format!("app;main;d::x {}\n", 97 + more)
        };
        for (before, after, pairs) in [
            (text(&one, 0), text(&two, 4), ["c:: is compared as a::", "c:: is compared as b::"]),
            (text(&two, 4), text(&one, 0), ["a:: is compared as c::", "b:: is compared as c::"]),
        ] {
            let (page, status) = compare(&before, &after);
            assert!(pairs.iter().all(|pair| page.contains(pair)), "{page}");
            assert!(page.contains("nothing changed beyond noise") && status == Some(0), "{page}");
        }
    }
}

#[test]
fn functions_of_libraries_and_frameworks_make_two_programs_no_versions() {
    for library in ["operator new", "tokio::runtime::task::raw::poll", "github.com/gin-gonic/gin.(*Context).Next"] {
        let text = |names: [&str; 2], more: usize| {
            let [one, other] = names;
            format!(
                "app;main;{one};{library} {}\napp;main;{one} 111\napp;main;{other} {}\napp;main;{library} 90\n",
                303 + more,
                522 - more
            )
        };
        assert_nothing_is_paired(&text(["alpha", "beta"], 0), &text(["gamma", "delta"], 6));
    }
    // A framework of the same house, with other handlers.
    let text = |handlers: &[(&str, usize)]| {
        let framework = [("fw::decode", 60), ("fw::log", 31), ("fw::route;fw::check", 42), ("fw::route", 25)];
        stacks("svc;main;fw::serve", &framework) + &stacks("svc;main;fw::serve;fw::route", handlers)
    };
    assert_nothing_is_paired(
        &text(&[("split_edges", 203), ("apply_lines", 140), ("store_blocks", 81), ("pack_cells", 30)]),
        &text(&[("apply_order", 199), ("rank_order", 144), ("fetch_cart", 78), ("draw_rows", 33)]),
    );
}

#[test]
fn the_largest_function_of_a_copied_folder_may_have_been_renamed() {
    let text = |folder: &str, largest: &str| {
        let line = |(name, weight): (&str, usize)| {
            let name = name.replace(')', &format!(" (/srv/{folder}/app.py)"));
            format!("python3;<module> (/srv/{folder}/app.py);{name} {weight}\n")
        };
        let largest = [(format!("{largest})"), 150), (format!("{largest});next_row)"), 100)];
        let largest = largest.each_ref().map(|(name, weight)| (name.as_str(), *weight));
        [&largest[..], &[("total)", 140), ("group)", 81), ("write)", 66)]]
            .concat()
            .into_iter()
            .map(line)
            .collect::<String>()
    };
    let (page, status) = compare(&text("v1", "load"), &text("v2", "parse"));
    assert!(page.contains("/srv/v1/ is compared as /srv/v2/"), "{page}");
    assert!(
        page.contains("renamed?  load (app.py) -> parse (app.py)") || page.contains("renamed?  load -> parse"),
        "{page}"
    );
    assert!(page.contains("nothing changed beyond noise") && status == Some(0), "{page}");
}

#[test]
fn a_thread_with_a_name_of_its_own_belongs_to_its_process() {
    let text = |function: &str, extra: usize| {
        let threads = [("w0", "load;read_it"), ("w1", "rank;qsort"), ("w2", "pack;deflate_it"), ("w3", function)];
        let lines = threads.iter().zip([300, 400, 350, 500]);
        lines.map(|((thread, stack), weight)| format!("{thread};start_thread;{stack} {}\n", weight + extra)).collect()
    };
    let [before, after]: [String; 2] = [text("dump;fmt_it", 0), text("emit;fmt_it", 7)];
    let (page, status) = compare(&before, &after);
    assert!(page.contains("renamed?  dump -> emit") && page.contains("nothing changed beyond noise"), "{page}");
    assert_eq!(status, Some(0));
}

#[test]
fn threads_with_numbers_are_compared_by_name() {
    let text = |process: usize, numbers: [usize; 4], dump: usize| {
        let thread = |number: &usize| {
            let functions = [("load;malloc", 70), ("rank", 90), ("pack", 80), ("dump", dump + number % 10)];
            stacks(&format!("pool-{process}/{number};start_thread;work"), &functions)
        };
        numbers.iter().map(thread).collect::<String>()
    };
    let before = text(7, [11, 12, 13, 14], 60);
    let (page, status) = compare(&before, &text(9, [21, 22, 23, 24], 60));
    assert!(page.contains("names     threads with other numbers are compared by name: pool\n"), "{page}");
    assert!(page.contains("nothing changed beyond noise") && status == Some(0), "{page}");
    // Growth is said of the function.
    let (page, status) = compare(&before, &text(9, [21, 22, 23, 24], 160));
    assert!(page.contains("1 grew") && page.contains("grew at   pool > ") && status == Some(1), "{page}");
    // Neither the same threads nor those with a number in their own name are joined.
    let (page, _) = compare(&before, &text(7, [11, 12, 13, 14], 62));
    assert!(!page.contains("threads are"), "{page}");
    let (page, _) = compare(&before.replace("pool-7/", "w"), &before.replace("pool-7/", "w"));
    assert!(!page.contains("threads are"), "{page}");
}

#[test]
fn a_pool_that_grows_while_a_thread_restarts_has_not_changed() {
    let text = |numbers: &[usize], weight: usize| {
        let thread = |number: &usize| {
            let functions = [("load;malloc", 7), ("rank", 9), ("pack", 8), ("dump", 6)];
            let functions = functions.map(|(function, part)| (function, part * weight + number * 7 % 5));
            stacks(&format!("pool-7/{number};start_thread;work"), &functions)
        };
        numbers.iter().map(thread).collect::<String>()
    };
    let before = text(&[11, 12, 13, 14], 40);
    let (page, status) = compare(&before, &text(&[11, 12, 13, 25, 26, 27, 28, 29], 20));
    let said = "compared by name: pool (all as one, since there are more on one side)";
    assert!(page.split_whitespace().collect::<Vec<_>>().join(" ").contains(said), "{page}");
    assert!(page.contains("nothing changed beyond noise") && status == Some(0), "{page}");
    // One of the threads of both sides works for all others now.
    let shifted = text(&[11], 130) + &text(&[12, 13, 25, 26, 27, 28, 29], 5);
    let (page, status) = compare(&before, &shifted);
    assert!(page.contains("pool-7/11 ") && !page.contains("all as one") && status == Some(1), "{page}");
    // All threads but the first restarted, as more.
    let first = stacks("pool-7/1;main;wait", &[("poll", 900), ("read", 300)]);
    let pools = [text(&[11, 12, 13, 14], 40), text(&[21, 22, 23, 24, 25, 26, 27, 28], 20)];
    let [before, after] = pools.map(|pool| first.clone() + &pool);
    let (page, status) = compare(&before, &after);
    assert!(page.contains("nothing changed beyond noise") && status == Some(0), "{page}");
}

/// py-spy writes lines into names: after an edit above, each function has another one.
#[test]
fn functions_on_other_lines_are_said_with_a_command() {
    let text = |shift: usize| {
        let functions = [("load", 10, 70), ("rank", 20, 90), ("pack", 30, 80), ("dump", 40, 60)];
        let lines = functions.map(|(name, line, weight)| {
            format!(
                "<module> (app.py:90);{name} (app.py:{});<lambda> (app.py:{}) {weight}\n",
                line + shift,
                line + shift + 1
            )
        });
        lines.concat()
    };
    let folder = directory();
    for (name, shift) in [("it's old", 0), ("new", 4)] {
        std::fs::write(folder.path().join(name), text(shift)).unwrap();
    }
    let run = |program: &str, options: &[&str]| {
        let mut command = command(tool(program));
        command.current_dir(folder.path()).args(options).args(["--before", "it's old", "--after", "new"]);
        run_command(command, b"")
    };
    let said = "4 functions differ in nothing but a line in their names";
    for (program, options) in [
        ("fg-diff", &[][..]),
        ("fg-diff", &["--significant", "--exact-names"]),
        ("fg-report", &[]),
        ("fg-check", &["--growth=50%"]),
    ] {
        assert!(run(program, options).stderr.contains(said), "{program} {options:?}");
    }
    let page = run("fg-report", &[]).text();
    assert!(page.contains(said), "{page}");
    let line = page.lines().find_map(|line| line.trim().strip_prefix("fg-diff --rename")).unwrap();
    let mut shell = command("bash");
    let folders = std::path::Path::new(tool("fg-diff")).parent().unwrap().display().to_string();
    let script = format!("PATH={folders}:$PATH; fg-diff --rename{line}");
    shell.current_dir(folder.path()).args(["-c", &script]);
    let without = run_command(shell, b"").ok();
    assert!(!without.text().contains("appeared") && !without.stderr.contains(said), "{without:?}");
}

/// The first threads of a container have the same numbers in every run, whatever their names are.
#[test]
fn threads_of_containers_are_compared_by_name() {
    let work = [("load;malloc", 70), ("rank", 90), ("pack", 80), ("dump", 60)];
    let text = |threads: [&str; 4], extra: usize| {
        let thread = |(number, name): (usize, &&str)| {
            let functions = work.map(|(function, weight)| (function, weight + (number * 3 + extra) % 5));
            stacks(&format!("{name};start_thread;work"), &functions)
        };
        threads.iter().enumerate().map(thread).collect::<String>()
    };
    let before = text(["app-1/1", "app-1/7", "db-1/1", "db-1/5"], 0);
    let (page, status) = compare(&before, &text(["app-1/1", "app-1/9", "db-1/1", "db-1/6"], 2));
    assert!(page.contains("names     threads with other numbers are compared by name: app, db\n"), "{page}");
    assert!(page.contains("nothing changed beyond noise") && status == Some(0), "{page}");
    // A thread that is gone and one that is new have other names.
    let (page, status) = compare(&before, &text(["app-1/1", "db-1/6", "db-1/1", "db-1/5"], 2));
    assert!(!page.contains("names ") && page.contains("beyond noise, app-1/7 ") && status == Some(1), "{page}");
}

#[test]
fn names_without_a_common_start_are_compared() {
    let before = "main;/.><y/.:7;.]3]<2(:7;ap <[:)aé:(1/;éa.3>.y >2é(éé (:1) 22\n";
    let (page, _) = compare(before, "main;))[(p._1>.(><:;[y2pa.;ap <[:)aé:(1/:;é/:7 12\n");
    assert!(page.contains("verdict  "), "{page}");
}

/// A number in the name of a file is a version only behind a hyphen, and not if there are more of them.
#[test]
fn files_with_numbers_are_not_compared_as_versions() {
    let text = |files: &[(&str, usize)]| {
        let file = |(file, weight): &(&str, usize)| {
            let stack = |name: &str, weight: usize| format!("app;{name} ({file}) {weight}\n");
            stack("load", *weight) + &stack("process", weight * 2 + 1)
        };
        let common = ["parse", "render", "store"].map(|name| format!("app;{name}_rows (app.py) 3001\n"));
        common.concat() + &files.iter().map(file).collect::<String>()
    };
    for (before, after) in [
        (&[("sha256.py", 701)][..], &[("sha512.py", 701)][..]),
        (&[("stage-1.py", 701), ("stage-2.py", 307)], &[("stage-2.py", 307), ("stage-3.py", 701)]),
    ] {
        let (page, status) = compare(&text(before), &text(after));
        assert!(!page.contains("is compared as") && page.contains("beyond noise, ") && status == Some(1), "{page}");
    }
    let (page, _) = compare(&text(&[("stage-1.2.py", 701)]), &text(&[("stage-1.3.py", 701)]));
    assert!(page.contains("stage-1.2.py is compared as stage-1.3.py"), "{page}");
}

#[test]
fn a_function_whose_lines_are_counted_by_themselves_is_named() {
    let lines = (10..22).map(|line| format!("app;serve (app.py:80);mix (app.py:{line}) 60\n"));
    let profile = lines.collect::<String>() + "app;serve (app.py:81);render (app.py:40) 160\n";
    let page = run("fg-report", [""; 0], profile.as_bytes()).ok().text();
    assert!(
        page.contains("lines     mix (app.py) has 81.8% on 12 lines, each counted as a function of its own\n"),
        "{page}"
    );
    let command = page.lines().find_map(|line| line.trim().strip_prefix("fg-filter --rename ")).unwrap();
    let pattern = command.strip_suffix(" | fg-report").unwrap().trim_matches('\'');
    let without = run("fg-filter", ["--rename", pattern], profile.as_bytes()).ok();
    let page = run("fg-report", [""; 0], without.stdout.as_slice()).ok().text();
    assert!(!page.contains("lines  ") && page.contains("81.8%  mix (app.py)"), "{page}");
}

/// Functions without names, with those of interfaces, or with hardly any weight tell nothing about their files.
#[test]
fn scripts_are_compared_under_another_name_only_if_their_functions_tell() {
    let text = |file: &str, functions: &[(&str, usize)]| {
        let own = functions.iter().map(|(name, weight)| format!("app;{name} ({file}) {weight}\n"));
        let common = ["parse", "render", "store"].map(|name| format!("app;{name}_rows (app.py) 3001\n"));
        common.concat() + &own.collect::<String>()
    };
    for (functions, is_one) in [
        (&[("cart_total", 1503), ("line_tax", 701)][..], true),
        (&[("<lambda>", 1503), ("<listcomp>", 701)], false),
        (&[("fit", 1503), ("predict", 701)], false),
        (&[("Cart.get", 1503), ("run.<locals>.<listcomp>", 701)], false),
        (&[("block in index -", 1503), ("initialize -", 701)], false),
        (&[("process", 2203), ("parse_args", 2), ("usage_text", 2)], false),
    ] {
        let [before, after] = ["cart.py", "basket.py"].map(|file| text(file, functions));
        let (page, status) = compare(&before, &after);
        assert_eq!(page.contains("cart.py is compared as basket.py"), is_one, "{page}");
        assert_eq!(status, Some(i32::from(!is_one)), "{page}");
        // The same whether the profiles are merged as they are read or not.
        let folder = directory();
        let files = [("old", before), ("new", after)].map(|(name, text)| {
            std::fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name)
        });
        let plain = run("fg-diff", &files, b"").ok().text();
        let options = [PathBuf::from("--strip-hex")];
        assert_eq!(plain, run("fg-diff", options.iter().chain(&files), b"").ok().text());
        assert_eq!(plain.contains("cart.py"), !is_one, "{plain}");
    }
}
