//! fg-check: rules and their verdicts.

use crate::support::{Outcome, command, directory, run, run_bounded, run_command, tool};

const PROFILE: &[u8] = b"app;main;parse;malloc 30\napp;main;parse 20\napp;main;write;[libc.so.6] 40\n[lost] 5\n\
    app;[truncated];x 5\n";

fn check(rules: &[&str], profile: &[u8]) -> Outcome {
    run("fg-check", rules, profile)
}

/// Returns the exit status and standard output.
fn verdict(rules: &[&str], profile: &[u8]) -> (i32, String) {
    let outcome = check(rules, profile);
    (outcome.code(), outcome.text())
}

#[test]
fn prints_nothing_if_all_limits_hold() {
    let rules =
        ["--self", "malloc=30%", "--inclusive", "parse=50", "--lost", "5%", "--truncated", "5%", "--unknown", "40%"];
    assert_eq!(verdict(&rules, PROFILE), (0, String::new()));
}

#[test]
fn prints_a_line_with_the_worst_stack_for_each_exceeded_limit() {
    for (rule, expected) in [
        (
            ["--self", "malloc|parse=49%"],
            "self malloc|parse: 50.00% (50), more than 49%; most in app;main;parse;malloc (30)\n",
        ),
        (
            ["--inclusive", "^parse$=49"],
            "inclusive ^parse$: 50.00% (50), more than 49%; most in app;main;parse;malloc (30)\n",
        ),
        (
            ["--category", "allocator=29"],
            "category allocator: 30.00% (30), more than 29%; most in app;main;parse;malloc (30)\n",
        ),
        (["--lost", "4.9"], "lost: 5.00% (5), more than 4.9%; most in [lost] (5)\n"),
        (["--truncated", "4.9%"], "truncated: 5.00% (5), more than 4.9%; most in app;[truncated];x (5)\n"),
        (["--unknown", "39%"], "unknown: 40.00% (40), more than 39%; most in app;main;write;[libc.so.6] (40)\n"),
    ] {
        assert_eq!(verdict(&rule, PROFILE), (1, expected.to_owned()));
    }
}

#[test]
fn growth_is_relative_to_the_total_and_significant() {
    let diff = b"main;a 5000 5051\nmain;b 4000 4900\nmain;c 1000 149\n";
    let expected = "growth b: +9.00% of all before (4000 -> 4900), more than 2%; most in main;b (4000 -> 4900)\n";
    assert_eq!(verdict(&["--growth", "2%"], diff), (1, expected.to_owned()));
    assert_eq!(verdict(&["--growth", "10%"], diff), (0, String::new()));
    assert_eq!(verdict(&["--growth", "a|c=0"], diff).0, 0);
    assert_eq!(verdict(&["--inclusive-growth", "main=0"], diff).0, 0);
    // 8 % of so few samples may be chance.
    assert_eq!(verdict(&["--growth", "2%"], b"main;a 50 51\nmain;b 40 48\nmain;c 10 1\n").0, 0);
}

#[test]
fn several_runs_detect_smaller_growth() {
    let folder = directory();
    let write = |name: &str, weights: [u32; 6]| {
        let text = ["a", "b", "c", "d", "e", "f"].iter().zip(weights);
        let text = text.map(|(name, weight)| format!("main;{name} {weight}\n"));
        std::fs::write(folder.path().join(name), text.collect::<String>()).unwrap();
    };
    for (name, weights) in [
        ("b1", [5003, 4011, 8020, 1020, 1010, 987]),
        ("b2", [4970, 3987, 7945, 1007, 979, 1011]),
        ("b3", [5031, 4007, 8001, 989, 1003, 1015]),
        ("a1", [5012, 4412, 7990, 1011, 992, 1004]),
        ("a2", [5020, 4391, 8060, 994, 1013, 982]),
        ("a3", [4985, 4403, 7961, 1003, 988, 1006]),
    ] {
        write(name, weights);
    }
    let check = |options: &[&str]| {
        let mut command = command(tool("fg-check"));
        command.current_dir(folder.path()).args(["--growth", "1%"]).args(options);
        let outcome = run_command(command, b"");
        (outcome.code(), outcome.text())
    };
    assert_eq!(check(&["--before", "b1", "--after", "a1"]), (0, String::new()));
    let (code, report) = check(&["--before", "b1", "b2", "b3", "--after", "a1", "a2", "a3"]);
    assert_eq!((code, report.lines().count()), (1, 1), "{report}");
    assert!(report.starts_with("growth b: +2.00% of all before (12005 -> 13206), more than 1%"), "{report}");
    assert_eq!(check(&["-n", "b1"]).0, 2, "there are no runs to scale");
    assert_eq!(check(&["--before", "b1", "--after", "a1", "--", "a2"]).0, 2, "two inputs");
}

#[test]
fn warns_if_weights_are_or_may_be_durations() {
    let counts: String = (0..30).map(|n| format!("main;f{n} {} {}\n", 1000 + n % 7 * 5, 1000 + n % 5 * 191)).collect();
    let outcome = check(&["--growth", "0.05%"], counts.as_bytes()).ok();
    assert!(
        outcome.stderr.contains("if the weights are durations") && outcome.stderr.contains("within noise"),
        "{outcome:?}"
    );
    let durations = check(&["--growth", "2%"], b"main;a;[off-cpu] 5000 9000\nmain;b;[off-cpu] 5 5\n");
    assert!(durations.code() == 2 && durations.stderr.contains("weights are durations"), "{durations:?}");
}

#[test]
fn inclusive_growth_checks_each_function_with_its_callees() {
    // `parse` grows only in its callees, at two call sites, and is recursive.
    let diff = b"main;parse;fold;wrap 5000 6000\nmain;parse;next 5000 6000\nmain;parse;parse;next 0 500\nmain;read 9000 6500\n";
    let each = "inclusive-growth parse: +13.16% of all before (10000 -> 12500), more than 6%; \
                most in main;parse;fold;wrap (5000 -> 6000)\n\
                inclusive-growth next: +7.89% of all before (5000 -> 6500), more than 6%; \
                most in main;parse;next (5000 -> 6000)\n";
    assert_eq!(verdict(&["--growth", "8%"], diff), (0, String::new()));
    assert_eq!(verdict(&["--exact", "--inclusive-growth", "6%"], diff), (1, each.to_owned()));
    let twice = verdict(&["--exact", "--inclusive-growth", "6%", "--inclusive-growth", "6%"], diff);
    assert_eq!(twice, (1, each.repeat(2)));
}

/// Makes a comparison of a program with three functions, on a machine whose interrupts vary between the two runs.
fn compare_with_interrupts(parse: (u32, u32), render: (u32, u32), store: (u32, u32)) -> String {
    let start = "app;_start;__libc_start_main;__libc_start_call_main;main";
    let clock = "clock_gettime;__vdso_clock_gettime;entry_SYSCALL_64;do_syscall_64;__x64_sys_clock_gettime;\
                 posix_cpu_clock_get;task_sched_runtime";
    let interrupt = "asm_sysvec_apic_timer_interrupt;irqentry_exit_to_user_mode;exit_to_user_mode_loop;schedule;\
                     __schedule;finish_task_switch";
    [("parse", parse), ("render", render), ("store", store), (clock, (44, 25)), (interrupt, (27, 8))]
        .map(|(frames, (before, after))| format!("{start};{frames} {before} {after}\n"))
        .concat()
}

#[test]
fn noise_in_a_common_callee_does_not_hide_growth_of_callers() {
    let slower = compare_with_interrupts((1401, 1893), (2223, 1882), (1107, 977));
    let (code, message) = verdict(&["--inclusive-growth", "3%"], slower.as_bytes());
    assert_eq!(code, 1, "{}", check(&["--inclusive-growth", "3%"], slower.as_bytes()).stderr);
    assert!(
        message.starts_with("inclusive-growth parse: +10.25% of all before (1401 -> 1893), more than 3%"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
    let same = compare_with_interrupts((1401, 1471), (2223, 2192), (1107, 1107));
    assert_eq!(verdict(&["--inclusive-growth", "0.3%"], same.as_bytes()), (0, String::new()));
}

#[test]
fn growth_requires_two_weights() {
    let outcome = check(&["--growth", "2%"], PROFILE);
    assert_eq!(outcome.code(), 2);
    assert!(outcome.stderr.contains("a differential profile, which fg-diff writes"), "{}", outcome.stderr);
}

#[test]
fn detects_a_runtime_that_only_polls() {
    let busy = b"app;tokio::runtime::poll;tracing::span::Span::enter 60\napp;tokio::runtime::poll;epoll_wait 30\n\
        app;tokio::runtime::poll;app::handle 5\napp;main 5\n";
    let (code, message) = verdict(&["--busy-loop"], busy);
    assert_eq!(code, 1);
    assert!(
        message.starts_with("busy-loop: 94.74% of the runtime (90), more than 80%; most in app;tokio"),
        "{message}"
    );
    let works = b"app;tokio::runtime::poll;app::handle;parse 60\napp;tokio::runtime::poll;epoll_wait 30\n";
    assert_eq!(verdict(&["--busy-loop"], works).0, 0);
    let elsewhere = b"app;tokio::runtime::poll 10\napp;main;parse 30\n";
    assert_eq!(verdict(&["--busy-loop"], elsewhere).0, 0, "the program spends most time outside of the runtime");
}

#[test]
fn reads_rules_from_a_file() {
    let folder = directory();
    let rules = folder.path().join("rules");
    std::fs::write(&rules, "# a comment\nself malloc=10%\nbusy-loop 80\n").unwrap();
    assert_eq!(check(&["--rules", rules.to_str().unwrap()], PROFILE).code(), 1);
    std::fs::write(&rules, "self malloc=10%\nself x\n").unwrap();
    let outcome = check(&["--rules", rules.to_str().unwrap()], PROFILE);
    assert_eq!(outcome.code(), 2);
    assert!(outcome.stderr.contains("rules:2: expected RE=N%"), "{}", outcome.stderr);
}

#[test]
fn escapes_names_in_machine_readable_reports() {
    let folder = directory();
    let file = folder.path().join("junit.xml");
    let profile = b"a<b>&\"\x1b\xff 100%;x 9\nmain 1\n";
    let rules = ["--github", "--inclusive", "a<b>=10%", "--self", "main=50", "--junit", file.to_str().unwrap()];
    let (code, message) = verdict(&rules, profile);
    assert_eq!(code, 1);
    assert!(message.starts_with("::error title=fg-check inclusive::inclusive a<b>: 90.00%25 (9)"), "{message}");
    assert!(!message.contains('\x1b'));
    let xml = std::fs::read_to_string(&file).unwrap();
    let document = roxmltree::Document::parse(&xml).unwrap();
    let suite = document.root_element();
    assert_eq!((suite.attribute("tests"), suite.attribute("failures")), (Some("2"), Some("1")));
    let failed: Vec<_> = suite.descendants().filter(|node| node.has_tag_name("failure")).collect();
    assert!(failed.len() == 1 && failed[0].attribute("message").unwrap().contains("a<b>&\""), "{xml}");
}

#[test]
fn fails_on_an_unreadable_profile() {
    for (profile, message) in [(&b""[..], "no stacks in the input"), (b"no stack\n", "no line is a folded stack")] {
        let outcome = check(&["--self", "x=1%"], profile);
        assert_eq!(outcome.code(), 2);
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    }
    let outcome = check(&["--self", "x=1%", "/nonexistent/a"], b"");
    assert_eq!((outcome.code(), outcome.stderr.lines().count()), (2, 1), "{}", outcome.stderr);
    assert_eq!(check(&[], PROFILE).code(), 2, "no rule");
}

#[test]
fn checks_a_part_of_a_comparison_that_one_side_lacks() {
    // As fg-filter writes the stacks of a new function.
    let outcome = check(&["--inclusive-growth=^a$=2%"], b"a;c 0 501\na;d 0 700\n");
    assert_eq!(outcome.code(), 1, "{outcome:?}");
    assert!(outcome.text().contains("new, as is all after (0 -> 1201), more than 2%"), "{outcome:?}");
    assert!(outcome.stderr.contains("the total weight before is 0: everything is new"), "{outcome:?}");
    // Nothing is left to check: the runs may have failed.
    for (rule, diff) in [
        ("--inclusive-growth=^a$=2%", &b"a;c 501 0\na;d 700 0\n"[..]),
        ("--lost=1%", b"a;c 501 0\na;d 700 0\n"),
        ("--growth=2%", b"a;c 0 50\n[lost] 50 0\n"),
    ] {
        let outcome = check(&[rule], diff);
        assert!(outcome.code() == 2 && outcome.stderr.contains("nothing to compare"), "{outcome:?}");
    }
    // Of whole runs, one without weight is a mistake.
    let folder = directory();
    let [before, after] = [("before", "a;c 0\n"), ("after", "a;c 50\n")].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let outcome = check(&["--growth=2%", "--before", &before, "--after", &after], b"");
    assert!(outcome.code() == 2 && outcome.stderr.contains("nothing to compare"), "{outcome:?}");
}

#[test]
fn treats_few_weights_as_counts() {
    assert_eq!(check(&["--growth", "2%"], b"a;c 100 1001\na;d 10000 10000\n").code(), 1);
    let insignificant = check(&["--growth", "2%"], b"main;a 50 51\nmain;b 40 48\nmain;c 10 1\n");
    assert_eq!(insignificant.code(), 0);
    assert!(insignificant.stderr.contains("within noise"), "{}", insignificant.stderr);
}

/// Runs a check that writes a JUnit file. Returns the exit status, the numbers of tests, failures and errors, and the
/// XML.
fn junit(options: &[&str], profile: &[u8]) -> (i32, [String; 3], String) {
    let folder = directory();
    let file = folder.path().join("check.xml");
    std::fs::write(&file, "left by an earlier run").unwrap();
    let code = check(&[options, &["--junit", file.to_str().unwrap()]].concat(), profile).code();
    let xml = std::fs::read_to_string(&file).unwrap();
    let document = roxmltree::Document::parse(&xml).unwrap();
    let count = |name| document.root_element().attribute(name).unwrap().to_owned();
    (code, [count("tests"), count("failures"), count("errors")], xml)
}

#[test]
fn reports_failed_checks_as_junit_errors_and_github_annotations() {
    for (options, profile, message) in [
        (&["--self", "x=1%"][..], &b""[..], "no stacks in the input"),
        (&["--self", "x=1%", "/nonexistent/a\u{fffe}"], b"a 1\n", "/nonexistent/a"),
        (&["--growth", "1%"], b"a 1\n", "a differential profile, which fg-diff writes"),
        (&["--self", "x"], b"a 1\n", "--self x: expected RE=N%"),
        (&["--rules", "/nonexistent/rules"], b"a 1\n", "/nonexistent/rules: No such file"),
    ] {
        let (code, counts, xml) = junit(options, profile);
        assert_eq!((code, counts.each_ref().map(String::as_str)), (2, ["1", "0", "1"]), "{xml}");
        assert!(xml.contains("<error message=\"") && xml.contains(message), "{xml}");
        let outcome = check(&[options, &["--github"]].concat(), profile);
        let annotation = outcome.text();
        assert!(annotation.starts_with("::error title=fg-check::") && annotation.contains(message), "{annotation}");
        assert_eq!((outcome.code(), outcome.stderr.lines().count()), (2, 1), "{outcome:?}");
    }
}

#[test]
fn reports_a_rule_that_matches_no_frame() {
    let rules = ["--self", "^gone$=1%", "--inclusive", "main=100%", "--category", "async=1%"];
    let outcome = check(&rules, PROFILE);
    assert_eq!((outcome.code(), &outcome.stderr[..]), (0, "fg-check: self ^gone$: matches no frame, limit 1%\n"));
    let (code, message) = verdict(&[&rules[..], &["--github"]].concat(), PROFILE);
    assert_eq!((code, &message[..]), (0, "::notice title=fg-check self::self ^gone$: matches no frame, limit 1%25\n"));
    let (_, counts, xml) = junit(&rules, PROFILE);
    assert_eq!(counts.each_ref().map(String::as_str), ["3", "0", "0"]);
    assert!(xml.contains("<system-out>self ^gone$: matches no frame, limit 1%</system-out>"), "{xml}");
}

#[test]
fn rejects_an_unknown_category() {
    let outcome = check(&["--category", "alocator=1%"], PROFILE);
    assert_eq!((outcome.code(), outcome.stderr.lines().count()), (2, 1), "{outcome:?}");
    assert!(
        outcome.stderr.contains("category \"alocator\" does not exist; expected one of blocked, unknown,"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.trim_end().ends_with(", other"), "{}", outcome.stderr);
    let folder = directory();
    let own = folder.path().join("own");
    std::fs::write(&own, "hot malloc\nhot parse\ncold x\n").unwrap();
    let own = own.to_str().unwrap();
    assert_eq!(check(&["--categories", own, "--category", "hot=49%"], PROFILE).code(), 1);
    let outcome = check(&["--categories", own, "--category", "allocator=1%"], PROFILE);
    assert!(outcome.stderr.contains("expected one of hot, cold, other\n"), "{}", outcome.stderr);
}

#[test]
fn rejects_outputs_that_would_replace_inputs_or_each_other() {
    let folder = directory();
    let path = |name: &str| folder.path().join(name);
    for (name, text) in [("in", &b"a 1\n"[..]), ("rules", b"self a=1%\n"), ("categories", b"x a\n")] {
        std::fs::write(path(name), text).unwrap();
    }
    std::fs::create_dir(path("folder")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../in", path("folder/link")).unwrap();
    let read = ["--rules", "rules", "--categories", "categories", "in"];
    for (written, message) in [
        (&["-o", "in"][..], "in: is an input file"),
        (&["-o", "folder/../in"], "folder/../in: is an input file"),
        (&["--junit", "./in"], "./in: is an input file"),
        (&["--junit", "rules"], "rules: is an input file"),
        (&["-o", "categories"], "categories: is an input file"),
        #[cfg(unix)]
        (&["--junit", "folder/link"], "folder/link: is an input file"),
        (&["-o", "new", "--junit", "folder/../new"], "folder/../new: two outputs"),
        (&["--junit", "-"], "-: two outputs"),
        #[cfg(unix)]
        (&["-o-", "--junit", "/dev/stdout"], "/dev/stdout: two outputs"),
    ] {
        let mut command = command(tool("fg-check"));
        command.current_dir(folder.path()).args(written).args(read);
        let outcome = run_command(command, b"");
        assert_eq!((outcome.code(), outcome.stdout.len()), (2, 0), "{outcome:?}");
        assert!(outcome.stderr.starts_with(&format!("fg-check: {message}")), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
        assert_eq!(std::fs::read(path("in")).unwrap(), b"a 1\n");
        assert!(!path("new").exists());
    }
    let mut command = command(tool("fg-check"));
    command.current_dir(folder.path()).args(["-o", "report", "--junit", "xml"]).args(read);
    assert_eq!(run_command(command, b"").code(), 1);
    assert!(std::fs::read_to_string(path("report")).unwrap().starts_with("self a: 100.00%"));
    assert!(std::fs::read_to_string(path("xml")).unwrap().contains("failures=\"1\""));
}

#[test]
fn a_closed_pipe_does_not_change_the_verdict() {
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let folder = directory();
    let profile = folder.path().join("in");
    std::fs::write(&profile, PROFILE).unwrap();
    let mut command = command(tool("fg-check"));
    command.args(["--self", "malloc=1%"]).arg(&profile).stdout(closed).stderr(std::process::Stdio::piped());
    let outcome = run_bounded(&mut command);
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (1, ""));
}

#[test]
fn growth_that_nobody_can_judge_is_an_error_everywhere() {
    let folder = directory();
    let [before, after] = [("b", "m;a;[off-cpu] 1000\n"), ("a", "m;a;[off-cpu] 3000\n")].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let reason = "the weights are durations, and one run of a side does not show how much they vary";
    let runs = ["--before", &before, "--after", &after];
    for limit in ["5%", "500%"] {
        let outcome = run("fg-check", [&["--growth", limit][..], &runs].concat(), b"");
        assert!(outcome.code() == 2 && outcome.stderr.contains(reason) && outcome.text().is_empty(), "{outcome:?}");
    }
    let refused = run("fg-diff", ["--significant", "--exit-code", &before, &after], b"");
    assert!(refused.code() == 2 && refused.stderr.contains(reason), "{refused:?}");
    assert!(run("fg-csv", runs, b"").ok().stderr.contains(reason));
    // Several runs of the other side do not show it either.
    let several = ["--growth=5%", "--before", &before, "--after"];
    let copies: Vec<String> =
        (0..3).map(|number| folder.path().join(number.to_string()).display().to_string()).collect();
    for (number, copy) in copies.iter().enumerate() {
        std::fs::write(copy, format!("m;a;[off-cpu] {}\n", 3000 + number)).unwrap();
    }
    let several = [&several[..], &copies.iter().map(String::as_str).collect::<Vec<_>>()].concat();
    let outcome = run("fg-check", several, b"");
    assert!(outcome.code() == 2 && outcome.stderr.contains(reason), "{outcome:?}");
    // Rules without growth need no judgement.
    assert_eq!(run("fg-check", [&["--self=a=50%"][..], &runs].concat(), b"").code(), 1);
}

#[test]
fn a_deep_stack_makes_short_findings() {
    let stack: Vec<String> = (0..2000).map(|number| format!("f{number}")).collect();
    let outcome = run("fg-check", ["--each-inclusive=1%"], (stack.join(";") + " 7\n").as_bytes());
    assert!(outcome.code() == 1 && outcome.text().lines().count() == 2000, "{}", outcome.code());
    assert!(outcome.text().len() < 2000 * 400 && outcome.text().contains("f3;…;f1972;"), "{}", outcome.text().len());
}

#[test]
fn recipes_record_the_sides_in_turns() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/recipes/github-actions.yml");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, recipe) = text.split_once("for run in ").unwrap();
    let (turn, _) = recipe.split_once("done").unwrap();
    // The state of the machine would be a difference if all runs before came first.
    let outputs = turn.split(" -o ").skip(1).map(|rest| rest.trim_start_matches(['"', '.', '/']));
    let sides: Vec<&str> = outputs.map(|output| output.split('.').next().unwrap()).collect();
    assert_eq!(sides, ["before", "after"]);
}
