//! fg-check: verdicts on profiles.

use crate::support::{Outcome, command, directory, run, run_bounded, run_command, tool};

const PROFILE: &[u8] = b"app;main;parse;malloc 30\napp;main;parse 20\napp;main;write;[libc.so.6] 40\n[lost] 5\n\
    app;[truncated];x 5\n";

fn check(rules: &[&str], profile: &[u8]) -> Outcome {
    run("fg-check", rules, profile)
}

/// The exit status, and what it wrote.
fn verdict(rules: &[&str], profile: &[u8]) -> (i32, String) {
    let outcome = check(rules, profile);
    (outcome.code(), outcome.text())
}

#[test]
fn a_limit_that_is_kept_is_silent() {
    let rules =
        ["--self", "malloc=30%", "--inclusive", "parse=50", "--lost", "5%", "--truncated", "5%", "--unknown", "40%"];
    assert_eq!(verdict(&rules, PROFILE), (0, String::new()));
}

#[test]
fn each_limit_that_is_broken_has_a_line_with_its_worst_stack() {
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
fn growth_is_of_all_before_and_more_than_noise() {
    let diff = b"main;a 5000 5051\nmain;b 4000 4800\nmain;c 1000 149\n";
    let expected = "growth b: +8.00% of all before (4000 -> 4800), more than 2%; most in main;b (4000 -> 4800)\n";
    assert_eq!(verdict(&["--growth", "2%"], diff), (1, expected.to_owned()));
    assert_eq!(verdict(&["--growth", "9%"], diff), (0, String::new()));
    assert_eq!(verdict(&["--growth", "a|c=0"], diff).0, 0);
    assert_eq!(verdict(&["--inclusive-growth", "main=0"], diff).0, 0);
    // Eight in a hundred, but of so few samples that it may be chance.
    assert_eq!(verdict(&["--growth", "2%"], b"main;a 50 51\nmain;b 40 48\nmain;c 10 1\n").0, 0);
}

#[test]
fn several_runs_tell_more_of_a_program_than_one() {
    let diff = b"main;a 5000 5051\nmain;b 4000 4400\nmain;c 11000 10549\n";
    assert_eq!(verdict(&["--growth", "1%"], diff).0, 0);
    assert_eq!(verdict(&["--growth", "1%", "--runs", "20"], diff).0, 1);
    assert_eq!(check(&["--growth", "1%", "--runs", "0"], diff).code(), 2);
    let chances = |options: &[&str]| {
        let table = run("fg-csv", options.iter().copied(), diff).ok().text();
        table.lines().find(|line| line.starts_with("b,")).unwrap().to_owned()
    };
    assert_ne!(chances(&[]), chances(&["--runs", "20"]));
}

#[test]
fn counts_without_a_small_one_are_noisy_too_and_durations_are_said() {
    let counts: String = (0..30).map(|n| format!("main;f{n} {} {}\n", 1000 + n % 7 * 5, 1000 + n % 5 * 9)).collect();
    let outcome = check(&["--growth", "0.05%"], counts.as_bytes()).ok();
    assert!(outcome.stderr.contains("if they are durations") && outcome.stderr.contains("within noise"), "{outcome:?}");
    let durations = check(&["--growth", "2%"], b"main;a;[off-cpu] 5000 9000\nmain;b;[off-cpu] 5 5\n");
    assert!(durations.code() == 1 && durations.stderr.contains("weights are durations"), "{durations:?}");
}

#[test]
fn each_function_may_grow_with_what_it_calls() {
    // Nothing by itself, all in what is called, or was put into it, from two places; and it recurs.
    let diff = b"main;parse;fold;wrap 5000 6000\nmain;parse;next 5000 6000\nmain;parse;parse;next 0 500\nmain;read 9000 6500\n";
    let each = "inclusive-growth parse: +13.16% of all before (10000 -> 12500), more than 6%; \
                most in main;parse;fold;wrap (5000 -> 6000)\n\
                inclusive-growth next: +7.89% of all before (5000 -> 6500), more than 6%; \
                most in main;parse;next (5000 -> 6000)\n";
    assert_eq!(verdict(&["--growth", "8%"], diff), (0, String::new()));
    assert_eq!(verdict(&["--inclusive-growth", "6%"], diff), (1, each.to_owned()));
    let twice = verdict(&["--inclusive-growth", "6%", "--inclusive-growth", "6%"], diff);
    assert_eq!(twice, (1, each.repeat(2)));
}

/// One run a side of a program with three functions, on a machine that interrupts it now more and now less.
fn gated(parse: (u32, u32), render: (u32, u32), store: (u32, u32)) -> String {
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
fn one_thing_that_varies_with_all_its_callers_is_no_noise_of_everything() {
    let slower = gated((1401, 1893), (2223, 1882), (1107, 977));
    let (code, said) = verdict(&["--inclusive-growth", "3%"], slower.as_bytes());
    assert_eq!(code, 1, "{}", check(&["--inclusive-growth", "3%"], slower.as_bytes()).stderr);
    assert!(said.starts_with("inclusive-growth parse: +10.25% of all before (1401 -> 1893), more than 3%"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let same = gated((1401, 1471), (2223, 2192), (1107, 1107));
    assert_eq!(verdict(&["--inclusive-growth", "0.3%"], same.as_bytes()), (0, String::new()));
}

#[test]
fn growth_needs_two_weights() {
    let outcome = check(&["--growth", "2%"], PROFILE);
    assert_eq!(outcome.code(), 2);
    assert!(outcome.stderr.contains("as fg-diff writes it"), "{}", outcome.stderr);
}

#[test]
fn a_runtime_that_does_nothing_is_a_busy_loop() {
    let busy = b"app;tokio::runtime::poll;tracing::span::Span::enter 60\napp;tokio::runtime::poll;epoll_wait 30\n\
        app;tokio::runtime::poll;app::handle 5\napp;main 5\n";
    let (code, said) = verdict(&["--busy-loop"], busy);
    assert_eq!(code, 1);
    assert!(said.starts_with("busy-loop: 94.74% of the runtime (90), more than 80%; most in app;tokio"), "{said}");
    let works = b"app;tokio::runtime::poll;app::handle;parse 60\napp;tokio::runtime::poll;epoll_wait 30\n";
    assert_eq!(verdict(&["--busy-loop"], works).0, 0);
    let elsewhere = b"app;tokio::runtime::poll 10\napp;main;parse 30\n";
    assert_eq!(verdict(&["--busy-loop"], elsewhere).0, 0, "the runtime is not what it spends its time on");
}

#[test]
fn rules_come_from_a_file_too() {
    let folder = directory();
    let rules = folder.path().join("rules");
    std::fs::write(&rules, "# the gate\nself malloc=10%\nbusy-loop 80\n").unwrap();
    assert_eq!(check(&["--rules", rules.to_str().unwrap()], PROFILE).code(), 1);
    std::fs::write(&rules, "self malloc=10%\nself x\n").unwrap();
    let outcome = check(&["--rules", rules.to_str().unwrap()], PROFILE);
    assert_eq!(outcome.code(), 2);
    assert!(outcome.stderr.contains("rules:2: expected WHAT=PERCENT"), "{}", outcome.stderr);
}

#[test]
fn reports_for_machines_hold_any_name() {
    let folder = directory();
    let file = folder.path().join("junit.xml");
    let profile = b"a<b>&\"\x1b[31m\xff 100%;x 9\nmain 1\n";
    let rules = ["--github", "--inclusive", "a<b>=10%", "--self", "main=50", "--junit", file.to_str().unwrap()];
    let (code, said) = verdict(&rules, profile);
    assert_eq!(code, 1);
    assert!(said.starts_with("::error title=fg-check inclusive::inclusive a<b>: 90.00%25 (9)"), "{said}");
    assert!(!said.contains('\x1b'));
    let xml = std::fs::read_to_string(&file).unwrap();
    let document = roxmltree::Document::parse(&xml).unwrap();
    let suite = document.root_element();
    assert_eq!((suite.attribute("tests"), suite.attribute("failures")), (Some("2"), Some("1")));
    let failed: Vec<_> = suite.descendants().filter(|node| node.has_tag_name("failure")).collect();
    assert!(failed.len() == 1 && failed[0].attribute("message").unwrap().contains("a<b>&\""), "{xml}");
}

#[test]
fn what_cannot_be_read_is_no_verdict() {
    for (profile, said) in [(&b""[..], "the profile is empty"), (b"no stack\n", "no line of the input")] {
        let outcome = check(&["--self", "x=1%"], profile);
        assert_eq!(outcome.code(), 2);
        assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    }
    let outcome = check(&["--self", "x=1%", "/nonexistent/a"], b"");
    assert_eq!((outcome.code(), outcome.stderr.lines().count()), (2, 1), "{}", outcome.stderr);
    assert_eq!(check(&[], PROFILE).code(), 2, "no rule");
}

#[test]
fn a_comparison_with_nothing_is_no_verdict() {
    for diff in [&b"a;c 0 50\na;d 0 50\n"[..], b"a;c 50 0\na;d 50 0\n"] {
        let outcome = check(&["--growth", "2%"], diff);
        assert_eq!(outcome.code(), 2, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("nothing to compare"), "{}", outcome.stderr);
    }
}

#[test]
fn few_round_weights_are_counts_all_the_same() {
    assert_eq!(check(&["--growth", "2%"], b"a;c 100 1000\na;d 10000 10000\n").code(), 1);
    let excused = check(&["--growth", "2%"], b"main;a 50 51\nmain;b 40 48\nmain;c 10 1\n");
    assert_eq!(excused.code(), 0);
    assert!(excused.stderr.contains("within noise"), "{}", excused.stderr);
}

/// JUnit's suite after a check: the exit status, tests, failures, errors, and the text of all.
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
fn what_could_not_be_checked_is_an_error_for_junit_and_a_mark_for_github() {
    for (options, profile, said) in [
        (&["--self", "x=1%"][..], &b""[..], "the profile is empty"),
        (&["--self", "x=1%", "/nonexistent/a\u{fffe}"], b"a 1\n", "/nonexistent/a"),
        (&["--growth", "1%"], b"a 1\n", "as fg-diff writes it"),
        (&["--self", "x"], b"a 1\n", "--self x: expected WHAT=PERCENT"),
        (&["--rules", "/nonexistent/rules"], b"a 1\n", "/nonexistent/rules: No such file"),
    ] {
        let (code, counts, xml) = junit(options, profile);
        assert_eq!((code, counts.each_ref().map(String::as_str)), (2, ["1", "0", "1"]), "{xml}");
        assert!(xml.contains("<error message=\"") && xml.contains(said), "{xml}");
        let outcome = check(&[options, &["--github"]].concat(), profile);
        let mark = outcome.text();
        assert!(mark.starts_with("::error title=fg-check::") && mark.contains(said), "{mark}");
        assert_eq!((outcome.code(), outcome.stderr.lines().count()), (2, 1), "{outcome:?}");
    }
}

#[test]
fn a_rule_about_nothing_is_no_secret() {
    let rules = ["--self", "^gone$=1%", "--inclusive", "main=100%", "--category", "async=1%"];
    assert_eq!(verdict(&rules, PROFILE), (0, String::new()), "it may be just right");
    let loud = check(&[&rules[..], &["-v"]].concat(), PROFILE);
    assert!(loud.stderr.contains("fg-check: self ^gone$: matches no frame, limit 1%\n"), "{}", loud.stderr);
    assert_eq!(loud.stderr.matches("matches no frame").count(), 1, "{}", loud.stderr);
    let (code, said) = verdict(&[&rules[..], &["--github"]].concat(), PROFILE);
    assert_eq!((code, &said[..]), (0, "::notice title=fg-check self::self ^gone$: matches no frame, limit 1%25\n"));
    let (_, counts, xml) = junit(&rules, PROFILE);
    assert_eq!(counts.each_ref().map(String::as_str), ["3", "0", "0"]);
    assert!(xml.contains("<system-out>self ^gone$: matches no frame, limit 1%</system-out>"), "{xml}");
}

#[test]
fn a_category_that_there_is_not_is_a_mistake() {
    let outcome = check(&["--category", "alocator=1%"], PROFILE);
    assert_eq!((outcome.code(), outcome.stderr.lines().count()), (2, 1), "{outcome:?}");
    assert!(
        outcome.stderr.contains("unknown category alocator; expected one of blocked, unknown,"),
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
fn a_result_replaces_no_input_and_no_other_result() {
    let folder = directory();
    let path = |name: &str| folder.path().join(name);
    for (name, text) in [("in", &b"a 1\n"[..]), ("rules", b"self a=1%\n"), ("categories", b"x a\n")] {
        std::fs::write(path(name), text).unwrap();
    }
    std::fs::create_dir(path("folder")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../in", path("folder/link")).unwrap();
    let read = ["--rules", "rules", "--categories", "categories", "in"];
    for (written, said) in [
        (&["-o", "in"][..], "in: is read"),
        (&["-o", "folder/../in"], "folder/../in: is read"),
        (&["--junit", "./in"], "./in: is read"),
        (&["--junit", "rules"], "rules: is read"),
        (&["-o", "categories"], "categories: is read"),
        #[cfg(unix)]
        (&["--junit", "folder/link"], "folder/link: is read"),
        (&["-o", "new", "--junit", "folder/../new"], "folder/../new: two results"),
        (&["--junit", "-"], "-: two results"),
        #[cfg(unix)]
        (&["-o-", "--junit", "/dev/stdout"], "/dev/stdout: two results"),
    ] {
        let mut command = command(tool("fg-check"));
        command.current_dir(folder.path()).args(written).args(read);
        let outcome = run_command(command, b"");
        assert_eq!((outcome.code(), outcome.stdout.len()), (2, 0), "{outcome:?}");
        assert!(outcome.stderr.starts_with(&format!("fg-check: {said}")), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
        assert_eq!(std::fs::read(path("in")).unwrap(), b"a 1\n");
        assert!(!path("new").exists());
    }
    let mut command = command(tool("fg-check"));
    command.current_dir(folder.path()).args(["-o", "said", "--junit", "xml"]).args(read);
    assert_eq!(run_command(command, b"").code(), 1);
    assert!(std::fs::read_to_string(path("said")).unwrap().starts_with("self a: 100.00%"));
    assert!(std::fs::read_to_string(path("xml")).unwrap().contains("failures=\"1\""));
}

#[test]
fn a_reader_that_leaves_does_not_change_the_verdict() {
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
