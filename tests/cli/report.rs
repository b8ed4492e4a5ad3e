//! fg-report: its pages for profiles and comparisons, in all formats.

use crate::support::{assert_golden, data, directory, run};

mod causes;
mod growth;
mod idle;
mod interface;
mod large;
mod layout;
mod long_names;
mod own_functions;
mod quality;
mod renames;
mod threads;
mod wrappers;

/// A server that copies too much, with a kernel part and a second thread.
const PROFILE: &[u8] = b"app;main;serve;encode;alloc::vec::Vec::extend;memmove 410
app;main;serve;encode;crc 61
app;main;serve;parse;malloc;_int_malloc 80
app;main;serve;parse 20
app;main;load;read;vfs_read_[k];copy_user_[k] 200
app;main;load 29
worker;run;[unknown] 15
worker;run;compress 180
[lost] 5
";

fn report(options: &[&str], profile: &[u8]) -> String {
    run("fg-report", options, profile).ok().text()
}

#[test]
fn the_first_lines_name_the_cause() {
    let page = report(&[], PROFILE);
    let first: Vec<&str> = page.lines().take(10).collect();
    assert!(first[0].contains("stdin: 1,000 samples, 8 stacks"), "{page}");
    assert!(page.contains("quality   0.5% of the samples lost, 1.5% in code without a symbol"), "{page}");
    assert!(first[1].starts_with("work      copying 41.0% (encode), own code 29.0% (compress 18.0%"), "{page}");
    assert!(
        first
            .iter()
            .any(|line| line.contains("41.0%  encode") && line.contains("Vec::extend > memmove 41.0% (copying)")),
        "{page}"
    );
    assert!(page.contains("41.0%     41.0%  memmove") && page.contains("encode 41.0%"), "{page}");
}

#[test]
fn pages_are_those_expected() {
    assert_golden("report/plain.txt", report(&[], PROFILE).as_bytes());
    assert_golden("report/small.txt", report(&["--budget=16"], PROFILE).as_bytes());
    assert_golden("report/focus.txt", report(&["--focus=^serve$"], PROFILE).as_bytes());
    assert_golden("report/plain.md", report(&["--markdown"], PROFILE).as_bytes());
    assert_golden("report/plain.json", report(&["--json"], PROFILE).as_bytes());
    let difference = std::fs::read(data("diff/plain.folded")).unwrap();
    assert_golden("report/change.txt", report(&[], &difference).as_bytes());
}

#[test]
fn a_page_has_at_most_the_lines_of_its_budget() {
    let wide: String = (0..400).map(|number| format!("main;f{number};g{};h 7\n", number % 13)).collect();
    for profile in [PROFILE, wide.as_bytes()] {
        for budget in [16, 24, 40, 100] {
            let page = report(&[&format!("--budget={budget}")], profile);
            assert!(page.lines().count() <= budget, "{budget}: {}\n{page}", page.lines().count());
            assert!(page.lines().all(|line| line.chars().count() <= 100 || line.starts_with("  fg-")), "{page}");
        }
    }
}

#[test]
fn the_commands_on_a_page_run() {
    let folder = directory();
    let odd = "it's (odd)";
    let text = String::from_utf8(PROFILE.to_vec()).unwrap().replace("encode", odd);
    std::fs::write(folder.path().join("a b.folded"), text).unwrap();
    let in_folder = |line: &str| {
        let programs = std::path::Path::new(crate::support::tool("fg-report")).parent().unwrap().to_owned();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut shell = crate::support::command("sh");
        shell.args(["-ec", line]).current_dir(folder.path()).env("PATH", path);
        crate::support::run_command(shell, b"").ok()
    };
    let page = in_folder("fg-report 'a b.folded'").text();
    let commands: Vec<&str> = page.lines().filter(|line| line.starts_with("  fg-")).collect();
    assert_eq!(commands.len(), 2, "{page}");
    let outputs: Vec<String> = commands.iter().map(|command| in_folder(command).text()).collect();
    assert!(outputs[0].contains("1 function in 47.1%"), "{outputs:?}");
    assert!(std::fs::read_to_string(folder.path().join("flame.svg")).unwrap().contains("<svg"));
}

#[test]
fn compares_runs_before_and_after() {
    let folder = directory();
    let before = "main;parse 500\nmain;score 300\nmain;join_v1 149\nmain;same 501\nmain;keep 500\n";
    let after = "main;parse 510\nmain;score;regex::Regex::new 900\nmain;score 300\nmain;same 491\nmain;keep 500\nmain;join_v2 199\n";
    std::fs::write(folder.path().join("old"), before).unwrap();
    std::fs::write(folder.path().join("new"), after).unwrap();
    let run_in = |program: &str, options: &[&str], stdin: &[u8]| {
        let mut command = crate::support::command(crate::support::tool(program));
        command.current_dir(folder.path()).args(options);
        crate::support::run_command(command, stdin).ok().text()
    };
    let page = run_in("fg-report", &["--before=old", "--after=new"], b"");
    let row = |name: &str| page.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}\n{page}"));
    assert!(row("score  ").contains("regex::Regex::new +46.2%"), "{page}");
    assert!(page.contains("renamed?  join_v1 -> join_v2 +2.6%"), "{page}");
    let apart = run_in("fg-report", &["--exact-names", "--before=old", "--after=new"], b"");
    assert!(apart.contains("1 grew, 1 appeared, 1 vanished; 2 own functions differ"), "{apart}");
    let row_of = |name: &str| apart.lines().find(|line| line.contains(name)).unwrap();
    assert!(row_of("  join_v2").contains("appeared") && row_of("  join_v1").contains("vanished"), "{apart}");
    assert!(row("profiles").contains("old: weight 1,950; new: weight 2,900 (+48.7%)"), "{page}");
    assert!(page.contains("of the own functions 1 grew; 2 own functions differ"), "{page}");
    assert!(page.contains("fg-diff --match-renames old new | fg-svg > flame.svg"), "{page}");
    let piped = run_in("fg-diff", &["old", "new"], b"");
    let same = run_in("fg-report", &[], piped.as_bytes());
    // The first line names the inputs, and the last ones read them.
    let judged = |page: &str| -> Vec<String> {
        page.lines().skip(1).take_while(|line| *line != "look closer").map(str::to_owned).collect()
    };
    assert_eq!(judged(&same), judged(&page));
}

/// One run does not show how much durations vary.
#[test]
fn weights_in_a_unit_of_time_are_judged_as_durations() {
    let folded = b"main;load 211 209\nmain;rank 303 902\nmain;rare 7 8\n";
    let page = |options: &[&str]| run("fg-report", options, folded).ok().text();
    for unit in ["ms", "seconds"] {
        let text = page(&["--countname", unit]);
        assert!(text.contains("not judged") && text.contains("the weights are durations"), "{text}");
        assert!(page(&["--countname", unit, "--per-sample=1"]).contains("1 grew"), "{unit}");
    }
    assert!(page(&["--countname=hits"]).contains("beyond noise, of the own functions 1 grew"));
}

#[test]
fn says_which_functions_of_libraries_changed_and_if_nothing_did() {
    let folder = directory();
    let callers: Vec<String> = (0..24).map(|number| format!("main;plan_{number}")).collect();
    let write = |name: &str, allocated: u64, run: u64| {
        let lines = callers.iter().enumerate().map(|(number, caller)| {
            let noise = (number as u64 * 7 + run * 5) % 13;
            format!("{caller} {}\n{caller};malloc {}\n", 60 + noise, allocated + (noise + run) % 5)
        });
        std::fs::write(folder.path().join(name), lines.collect::<String>()).unwrap();
    };
    (0..3).for_each(|run| write(&format!("b{run}"), 6, run));
    (0..3).for_each(|run| write(&format!("same{run}"), 6, run + 3));
    (0..3).for_each(|run| write(&format!("slow{run}"), 12, run + 6));
    let page = |after: &str| {
        let mut command = crate::support::command(crate::support::tool("fg-report"));
        command.current_dir(folder.path()).args(["--before", "b0", "b1", "b2", "--after"]);
        command.args((0..3).map(|run| format!("{after}{run}")));
        crate::support::run_command(command, b"").ok().text()
    };
    let same = page("same");
    assert!(same.contains("nothing changed beyond noise; ") && !same.contains("grew at"), "{same}");
    assert!(!same.contains("callees"), "{same}");
    let slow = page("slow");
    assert!(slow.contains("no own function changed, but some that they call; "), "{slow}");
    assert!(slow.contains("callees   malloc +") && slow.contains("grew at"), "{slow}");
}

#[test]
fn rejects_what_it_cannot_report() {
    for (options, profile, message) in [
        (&[][..], &b""[..], "no stacks in the input"),
        (&["--focus=nothing"], PROFILE, "--focus nothing: no frame matches"),
        (&[], b"a 0 0\nb 0 0\n", "the profile is empty"),
    ] {
        let outcome = run("fg-report", options, profile);
        assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{outcome:?}");
        assert!(outcome.stderr.contains(message), "{outcome:?}");
    }
    assert_eq!(run("fg-report", ["--before=x"], b"").code(), 2);
    assert_eq!(run("fg-report", ["--before=x", "--after=y", "z"], b"").code(), 2);
}

#[test]
fn names_are_escaped_and_may_be_deep() {
    let deep = format!("main;{} 5\nmain;a\x1b\x08b 3\n", vec!["f"; 100_000].join(";"));
    let page = report(&[], deep.as_bytes());
    assert!(page.contains(r"a\u{1b}\u{8}b") && !page.contains(['\x1b', '\x08']), "{page}");
}

#[test]
#[cfg(unix)]
fn a_terminal_gets_bars_and_colours() {
    use crate::support::terminal::Terminal;
    let folder = directory();
    let file = folder.path().join("app.folded");
    std::fs::write(&file, PROFILE).unwrap();
    for (no_color, coloured) in [("", true), ("1", false)] {
        let terminal = Terminal::open();
        let mut command = crate::support::command(crate::support::tool("fg-report"));
        command.arg(&file).env("TERM", "xterm").env("NO_COLOR", no_color).env_remove("CI");
        command.stdin(std::process::Stdio::null()).stdout(terminal.stream()).stderr(std::process::Stdio::piped());
        crate::support::run_bounded(&mut command).ok();
        drop(command);
        let shown = terminal.shown();
        assert_eq!(shown.contains("\u{1b}[1m"), coloured, "{shown}");
        assert!(shown.contains('█'), "{shown}");
    }
}

/// Two workers wait for each other's lock, one for a timer, and one for a writer that waited for the disk.
const WAITS: &[u8] = b"worker;main;serve;take_lock;futex_wait;schedule;--;worker_[w];main_[w];serve_[w];give_lock_[w];\
try_to_wake_up_[w];[off-cpu] 600
worker;main;serve;take_lock;futex_wait;schedule;[runnable] 100
worker;main;rest;schedule;--;[timer]_[w];[off-cpu] 50
worker;main;flush;schedule;--;writer_[w];drain_[w];keep_page_[w];finish_page_[w];--;[disk]_[w];[off-cpu] 250
";

#[test]
fn waits_are_named_with_those_that_ended_them() {
    let page = report(&[], WAITS);
    let lines: Vec<&str> = page.lines().skip_while(|line| !line.contains("functions that waited")).skip(1).collect();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let first: Vec<String> = lines.iter().take(3).map(|line| words(line)).collect();
    assert_eq!(
        first,
        [
            "60.0% main > serve > take_lock serve > give_lock 60.0%",
            "25.0% main > flush writer: drain > keep_page > finish_page <- [disk] 25.0%",
            "5.0% main > rest [timer] 5.0%",
        ],
        "{page}"
    );
    // Two threads that ended the same wait make two stacks of it, as in the input.
    let two = report(&[], &[WAITS, b"worker;main;rest;schedule;--;other_[w];[off-cpu] 9\n"].concat());
    assert!(page.contains(", 4 stacks\n") && two.contains(", 5 stacks\n"), "{two}");
    // Wakers are no functions in which time was spent.
    assert!(!page.contains("_[w]"), "{page}");
    assert!(report(&["--json"], WAITS).contains(r#""wakers""#));
}

/// The first of three threads holds a lock while it sleeps, the second holds one that the third wants.
const CHAIN: &[u8] = b"third;run_third;take;--;second_[w];run_second_[w];take_[w];--;first_[w];run_first_[w];nap_[w];--;[timer]_[w];[off-cpu] 300
third;run_third;take;--;second_[w];run_second_[w];give_[w];[off-cpu] 50
second;run_second;take;--;first_[w];run_first_[w];nap_[w];--;[timer]_[w];[off-cpu] 300
second;run_second;take;--;first_[w];run_first_[w];give_[w];[off-cpu] 50
first;run_first;nap;--;[timer]_[w];[off-cpu] 300
other;run_first;flush;--;[disk]_[w];[off-cpu] 100
";

#[test]
fn waits_are_charged_to_the_end_of_their_chain() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = words(&report(&[], CHAIN));
    let expected = "waits for first (through 0 to 1 threads) 59.1%, [timer] 27.3%, [disk] 9.1%, second 4.5%";
    assert!(page.contains(expected), "{page}");
    let expected = "31.8% run_third > take first: run_first > nap <- [timer] (through 1 thread) 27.3%, second: run_second > give 4.5%";
    assert!(page.contains(expected), "{page}");
    // As `fg-csv --by waker` has it: 300 + 300 + 50 of 1,100.
    let table = run("fg-csv", ["--by=waker"], CHAIN).ok().text();
    assert!(table.contains("third,first_[w],300,") && table.contains("second,first_[w],350,"), "{table}");
    // A chain tells what the first one waits for itself.
    assert!(!page.contains("itself waits in"), "{page}");
}

#[test]
fn what_a_waker_waits_for_itself_is_that_of_its_own_thread() {
    let waits = b"app-1;run;take;--;app-2_[w];hold_[w];pthread_mutex_unlock_[w];[off-cpu] 500
app-2;hold;nanosleep;[off-cpu] 300
backup;hold;fsync;[off-cpu] 200
";
    let page = report(&[], waits).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("hold itself waits in nanosleep 30.0% (sleep)"), "{page}");
    assert!(!page.contains("waits in nanosleep 30.0% (sleep), fsync"), "{page}");
}

#[test]
fn the_page_of_a_function_says_whom_it_waits_for() {
    let page = report(&["--focus=^run_second$"], CHAIN);
    let words: Vec<&str> = page.split_whitespace().collect();
    assert!(words.join(" ").contains("run_second > take first: run_first > nap <- [timer] 27.3%"), "{page}");
    assert!(!page.contains("run_third"), "{page}");
}

#[test]
fn a_closer_look_is_at_the_largest_function_of_the_page() {
    let thread = "node;clone3;start_thread;worker;node::ThreadPoolWork::Run;compress_chunk";
    let script = "node;_start;node::Start;(anonymous) (a.js);serve (a.js)";
    for (profile, expected) in [
        (format!("{thread} 95\n{script} 5\n"), "compress_chunk"),
        (format!("{thread} 55\n{script} 45\n"), "serve"),
        ("go;runtime.goexit;runtime.schedule;[off-cpu] 9999\ngo;runtime.goexit;main.tick 1\n".to_owned(), "runtime"),
    ] {
        let page = report(&[], profile.as_bytes());
        let focus = page.lines().find(|line| line.contains("--focus")).unwrap_or_default();
        assert!(focus.contains(expected), "{profile}{focus}");
    }
}

#[test]
fn a_huge_name_does_not_fill_the_page() {
    let text = format!("main;{} 5\n", "x".repeat(1 << 20));
    let page = run("fg-report", [""; 0], text.as_bytes()).ok().text();
    assert!(page.len() < 8192 && page.contains("look closer"), "{}", page.len());
}

#[test]
fn time_without_a_stack_is_stated_whatever_the_thread_did() {
    let page = report(&[], b"app;main;[unsampled];[off-cpu] 60\napp;main;[unsampled] 10\napp;main;[off-cpu] 30\n");
    assert!(page.contains("70.0% without a stack"), "{page}");
}

#[test]
fn many_inputs_and_long_markdown_fit_the_budget() {
    let folder = directory();
    let files: Vec<String> = (0..300)
        .map(|number| {
            let path = folder.path().join(format!("host-{number}.folded"));
            std::fs::write(&path, PROFILE).unwrap();
            path.to_str().unwrap().to_owned()
        })
        .collect();
    let runs: Vec<&str> = ["--before"].into_iter().chain(files.iter().take(40).map(|file| &file[..])).collect();
    let runs = [runs, ["--after"].into_iter().chain(files.iter().skip(40).map(|file| &file[..])).collect()].concat();
    let plain: Vec<&str> = files.iter().map(|file| &file[..]).collect();
    for inputs in [&plain, &runs, &vec![]] {
        for budget in [10, 16, 40] {
            for format in [&[][..], &["--markdown"], &["--focus=serve"], &["--focus=serve", "--markdown"]] {
                let budget_option = format!("--budget={budget}");
                let page = report(&[&[&budget_option[..]], format, inputs].concat(), PROFILE);
                assert!(page.lines().count() <= budget, "{budget} {format:?}: {}\n{page}", page.lines().count());
                assert!(page.contains("uality"), "{page}");
            }
        }
    }
    assert!(report(&plain, b"").contains("host-2.folded, 297 more"), "{}", report(&plain, b""));
}

#[test]
fn what_could_not_be_read_is_stated() {
    let outcome = run("fg-report", [""; 0], b"main;a 5\nmain;b 6\nmain;c\n");
    let page = outcome.ok().text();
    assert!(page.contains("1 malformed line skipped") && !page.contains("nothing lost"), "{page}");
    let folder = directory();
    let path = folder.path().join("-dash");
    std::fs::write(&path, PROFILE).unwrap();
    let missing = folder.path().join("missing");
    let page = run("fg-report", [&path, &missing], b"").text();
    assert!(page.contains("an input could not be read") && !page.contains("nothing lost"), "{page}");
}

#[test]
fn deep_stacks_take_no_longer_by_the_square_of_their_depth() {
    let stack: Vec<String> = (0..20_000).map(|number| format!("f{number}")).collect();
    let deep = stack.join(";") + " 7\n";
    // The test would not end in time otherwise.
    for options in [&[][..], &["--markdown"], &["--json"]] {
        let page = report(options, deep.as_bytes());
        assert!(page.contains("f19999") && page.len() < 100_000, "{}", page.len());
    }
}

#[test]
fn the_unit_is_what_the_user_says() {
    let profile = b"app;read 1200\napp;write 345\napp;write;flush 1\n";
    let first = |options: &[&str]| report(options, profile).lines().next().unwrap_or_default().to_owned();
    assert!(first(&[]).contains("1,546 samples"), "{}", first(&[]));
    assert!(first(&["--countname=us"]).contains(" 1.5 ms, "), "{}", first(&["--countname=us"]));
    assert!(first(&["--countname=bytes"]).contains(" 1,546 bytes, "), "{}", first(&["--countname=bytes"]));
}

#[test]
fn lost_samples_did_not_run() {
    let page = report(&[], b"app;main;read;[off-cpu] 90\n[lost] 10\n");
    assert!(page.contains("[off-cpu] 90.0%, [lost] 10.0%") && !page.contains("running"), "{page}");
}

#[test]
fn commands_repeat_the_options_of_the_call() {
    let folder = directory();
    for (name, weight) in [("old", 300), ("new", 600)] {
        std::fs::write(folder.path().join(name), format!("main;parse {weight}\nmain;same 1000\n")).unwrap();
    }
    let [old, new] = ["old", "new"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let options =
        ["--before", &old, "--after", &new, "--scale=2", "--exact", "--own=^(main|parse)$", "--countname=bytes"];
    let page = run("fg-report", options, b"").ok().text();
    assert!(page.contains("fg-report --scale=2 --exact '--own=^(main|parse)$' --countname=bytes --focus"), "{page}");
    assert!(page.contains(&format!("fg-diff --scale=2 {old} {new} | fg-svg > flame.svg")), "{page}");
    assert!(page.contains(&format!(" --before {old} --after {new}")), "{page}");
}

/// Of a function that is small in the whole profile, the branches that are large in it are shown.
#[test]
fn a_focus_on_a_small_function_shows_its_callers_and_callees() {
    let page = report(&["--focus=^parse$"], b"main;run;parse;lex 3\nmain;parse;fold 2\nmain;rest 9995\n");
    for line in ["lex", "fold", "run > main"] {
        assert!(page.lines().any(|row| row.contains(line)), "{line}: {page}");
    }
}

#[test]
fn a_focus_on_a_comparison_has_one_base() {
    let page = report(&["--focus=^parse$"], b"main;parse 10 60\nmain;rest 90 90\n");
    assert!(page.contains("1 function in 10.0% before and 60.0% after") && page.contains("parse +50.0%"), "{page}");
    assert!(page.contains("    10    60 +50.0%") && !page.contains("40.0%"), "{page}");
}

#[test]
fn a_tree_of_changes_shows_branches_whose_changes_cancel_out() {
    let page = report(&[], b"main;left;slower 100 400\nmain;left;faster 400 100\nmain;right 500 500\n");
    let tree: Vec<&str> = page.lines().skip_while(|line| !line.contains("call tree")).collect();
    assert!(
        tree.iter().any(|line| line.contains("slower")) && tree.iter().any(|line| line.contains("faster")),
        "{page}"
    );
}

#[test]
fn a_chain_of_calls_keeps_its_weight() {
    // Each call does a little work itself: together that is much.
    let depth = 40;
    let stacks = (1..=depth).map(|calls| {
        let weight = if calls == depth { 600 } else { 10 };
        format!("main;{} {weight}\n", vec!["walk"; calls].join(";"))
    });
    let page = report(&[], stacks.collect::<String>().as_bytes());
    let tree = page.lines().skip_while(|line| !line.contains("call tree")).nth(1).unwrap();
    assert!(tree.contains("9") && !tree.contains("60."), "{page}");
}

#[test]
fn large_weights_are_not_called_samples() {
    let profile = b"main;a 12345678\nmain;b 7654321\n";
    assert!(report(&[], profile).contains("weight 19,999,999"), "{}", report(&[], profile));
    assert!(report(&["--per-sample=1"], profile).contains("19,999,999 samples"), "{}", report(&[], profile));
}
