//! What is missing from a profile is stated as its quality. Lost samples are no function, thread, path or growth.

use crate::support::run;

fn page(options: &[&str], profile: &[u8]) -> String {
    run("fg-report", options, profile).ok().text()
}

#[test]
fn lost_samples_are_no_part_of_a_comparison() {
    let folded = b"app;main;a 1001 1001\napp;main;b 491 491\napp;main;c 9 9\n[lost] 20 9000\n";
    let text = page(&[], folded);
    assert!(text.contains("before: 1,501 samples; after: 1,501 samples (0.0%)"), "{text}");
    assert!(text.contains("quality   before: 1.3% of the samples lost; after: 85.7% of the samples lost"), "{text}");
    for unwanted in ["[lost]", "grew at", "differ", "grew", "callees"] {
        assert!(!text.contains(unwanted), "{unwanted}\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&page(&["--json"], folded)).unwrap();
    assert_eq!((json["profiles"]["before"].as_f64(), json["profiles"]["after"].as_f64()), (Some(1501.0), Some(1501.0)));
    assert_eq!(json["verdict"]["noise"], 0, "{json}");
    for (key, expected) in [("lost_before_pct", 1.315), ("lost_after_pct", 85.706)] {
        assert!((json["quality"][key].as_f64().unwrap() - expected).abs() < 0.01, "{json}");
    }
    assert!(!json.to_string().contains("[lost]"), "{json}");
}

#[test]
fn scaled_totals_are_equal_whatever_was_lost() {
    let folder = crate::support::directory();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("bl"), "app;main;a 1000\napp;main;b 500\n[lost] 700\n").unwrap();
    std::fs::write(path("al"), "app;main;a 2000\napp;main;b 1000\n[lost] 10\n").unwrap();
    let text = page(&["-n", "--before", &path("bl"), "--after", &path("al")], b"");
    let (first, _) = text.split_once("\nquality").unwrap();
    assert_eq!(first.matches("3,000").count(), 2, "{text}");
    assert!(first.contains("bl: weight 1,500, scaled to 3,000; "), "{text}");
    assert!(text.contains("before: 31.8% of the samples lost; after: 0.3%") && !text.contains("[lost]"), "{text}");
}

#[test]
fn lost_samples_are_no_path_thread_or_row_of_a_profile() {
    let folded = b"app-main;main;a 23\napp-main;main;b 7\n[lost] 70\n";
    let text = page(&[], folded);
    assert!(text.contains("100 samples, 2 stacks") && text.contains("70.0% of the samples lost"), "{text}");
    assert!(!text.contains("[lost]") && !text.contains("threads"), "{text}");
    assert!(text.contains("23.0%  a"), "{text}");
    assert!(!page(&["--json"], folded).contains("[lost]"));
    // A page without anything else says so.
    let all = page(&[], b"[lost] 5\n");
    assert!(all.contains("all weight is lost: no stack was recorded") && !all.contains("code "), "{all}");
    let compared = crate::support::run("fg-report", [""; 0], b"[lost] 5 7\n");
    assert!(compared.code() == 1 && compared.stderr.contains("all weight is lost: there is nothing"), "{compared:?}");
}

/// What one side has lost seems to be growth of the other one.
#[test]
fn programs_that_judge_warn_if_one_side_lost_more() {
    let folder = crate::support::directory();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, part: u64, lost: u64| {
        let text = format!("app;main;a {}\napp;main;b {}\n[lost] {lost}\n", 50 * part + 1, 20 * part + 1);
        std::fs::write(path(name), text).unwrap();
    };
    let warning = "10.0 % of the weight before and 0.0 % after was lost, which biases the comparison";
    write("before", 90, 700);
    write("after", 100, 0);
    let compared = run("fg-diff", [path("before"), path("after")], b"").ok().stdout;
    for (program, options) in
        [("fg-check", &["--growth=1%"][..]), ("fg-csv", &[]), ("fg-report", &[]), ("fg-diff", &["--significant"])]
    {
        let sides = ["--before".to_owned(), path("before"), "--after".to_owned(), path("after")];
        let outputs = |options: &[&str], input: &[u8]| {
            let outcome = run(program, options, input);
            format!("{} {}", outcome.stderr, outcome.text())
        };
        let sides: Vec<&str> = sides.iter().map(String::as_str).collect();
        let runs = outputs(&[options, &sides].concat(), b"");
        assert!(runs.replace('\n', " ").contains("10.0 %") && runs.contains("biases"), "{program}: {runs}");
        let scaled = outputs(&[options, &["-n"], &sides].concat(), b"");
        assert!(!scaled.contains("biases"), "{program}: {scaled}");
        if program != "fg-diff" {
            let piped = outputs(options, &compared);
            assert!(piped.contains("biases"), "{program}: {piped}");
        }
        if program != "fg-report" {
            assert!(runs.contains(warning), "{program}: {runs}");
        }
    }
}

#[test]
fn stacks_that_begin_within_the_program_are_without_callers() {
    let started =
        "app;_start;__libc_start_main;main;parse;memcpy 60\napp;_start;__libc_start_main;main;parse;log;memcpy 10\n";
    let quality = |more: &str| {
        let profile = [started, more].concat();
        let json: serde_json::Value = serde_json::from_str(&page(&["--json"], profile.as_bytes())).unwrap();
        (json["quality"]["without_callers_pct"].as_f64().unwrap(), page(&[], profile.as_bytes()))
    };
    for cut in [
        "app;memcpy 20\napp;[unknown];memcpy 10\n",
        "app;[unknown];[unknown];malloc 30\n",
        // A profiler that names files calls only a wrong address unknown.
        "app;[unknown];parse;[libz.so.1] 30\n",
        "app;[unknown];[libpthread.so.0];entry_SYSCALL_64_after_hwframe;do_syscall_64;sock_write 30\n",
    ] {
        let (share, text) = quality(cut);
        assert!((share - 30.0).abs() < 0.01, "{cut}{text}");
        assert!(text.contains("quality   30.0% or more without their outermost callers"), "{cut}{text}");
    }
    for complete in [
        // Only the start of the process is missing.
        "app;main;parse 30\n",
        "app;[unknown];[unknown];main;parse;[libz.so.1] 30\n",
        // A thread may begin with any function that calls others.
        "app;serve;parse 30\n",
        "app;parse;memcpy 30\n",
        "app;[unknown];[unknown];serve;parse 30\n",
        "app;__clone3;start_thread;memcpy 30\n",
        // What follows the start is none of it.
        "app;[unknown];runtime.execute;runtime.mstart.abi0;runtime.sysmon;[vdso] 30\n",
        // The kernel has a beginning of its own.
        "app;entry_SYSCALL_64_after_hwframe;do_syscall_64;log 30\n",
    ] {
        let (share, text) = quality(complete);
        assert!(share == 0.0 && !text.contains("without their outermost callers"), "{complete}{text}");
    }
    // Nobody is seen to start.
    let text = page(&[], b"iperf;[unknown];__libc_recv;malloc 80\niperf;recv 20\n[libz.so.1] 0\n");
    assert!(text.contains("quality   80.0% or more without their outermost callers"), "{text}");
    // Roots that are functions begin nothing.
    let text = page(&[], b"main;parse;memcpy 60\nmemcpy 20\nmain 20\n");
    assert!(text.contains("quality   nothing lost"), "{text}");
}

#[test]
fn unknown_outermost_callers_are_stated() {
    let started = "app;runtime.goexit.abi0;main.main;main.parse 58\n";
    for (stack, expected) in [
        ("app;[unknown];crypto/sha256.block.abi0 42", 42.0),
        ("app;[unknown];[unknown];serve;parse 42", 42.0),
        ("app;[unknown];runtime.mstart.abi0;runtime.sysmon 42", 0.0),
        ("app;serve;[unknown];parse 42", 0.0),
        ("app;[unknown] 42", 0.0),
    ] {
        let profile = format!("{started}{stack}\n");
        let json: serde_json::Value = serde_json::from_str(&page(&["--json"], profile.as_bytes())).unwrap();
        assert_eq!(json["quality"]["unknown_callers_pct"], expected, "{stack}");
        let text = page(&[], profile.as_bytes());
        assert_eq!(
            text.contains("quality   42.0% with unknown outermost callers\n"),
            expected > 0.0,
            "{stack}: {text}"
        );
    }
}

#[test]
fn the_return_from_a_signal_handler_resolves_no_names() {
    let text = page(&[], b"ap;_start;main;compute;__restore_rt;[libtimer.so] 40\nap;_start;main;compute 60\n");
    assert!(!text.contains("name resolution"), "{text}");
}

/// A profiler that recorded no callers writes a root and a function.
#[test]
fn profiles_without_callers_say_so() {
    let says_so = |profile: &[u8]| page(&[], profile).contains("no stack has more than two frames");
    assert!(says_so(b"app;parse 5\napp;read 3\napp;write 2\n"));
    assert!(says_so(b"parse 5\nread 3\nwrite 2\n"));
    // The state of a thread is no function.
    assert!(says_so(b"app;parse;[off-cpu] 5\napp;read 3\napp;write 2\n"));
    for profile in [&b"app;parse 5\napp;read 3\n"[..], b"app;main;parse 5\napp;read 3\napp;write 2\n"] {
        assert!(!says_so(profile), "{}", String::from_utf8_lossy(profile));
    }
}

/// Unwinding by frame pointers finds neither the functions of a script nor the interpreter's that call a native one.
#[test]
fn an_interpreter_without_functions_of_scripts_says_how_to_record_them() {
    let stacks = "python3;[unknown];Py_INCREF 50\npython3;[unknown];_PyEval_EvalFrameDefault;arena_map_get 30\n\
        python3;[unknown];_PyEval_EvalFrameDefault 20\n";
    let text = page(&[], stacks.as_bytes());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("100.0% in an interpreter or virtual machine, without the functions that it runs"),
        "{text}"
    );
    assert!(words.contains("(fg-record shows them)") && !text.contains("own code"), "{text}");
    assert!(text.contains("100.0%  python3  ") && !text.contains("python3: "), "{text}");
    assert!(text.contains("fg-report --focus '^Py_INCREF$'"), "{text}");
    // fg-record does not show functions of Perl.
    let text = page(&[], b"perl;_start;main;perl_parse 5\nperl;_start;main;perl_run;Perl_runops_standard 95\n");
    assert!(text.contains("without the") && !text.contains("(fg-record"), "{text}");
}

/// Goroutines wait without a thread: off-CPU time shows the scheduler alone.
#[test]
fn waits_of_goroutines_are_known_to_be_missing() {
    let scheduler = "app;runtime.mcall;runtime.park_m;runtime.schedule;runtime.findRunnable;runtime.stopm";
    let go = format!(
        "{scheduler};futex_wait;schedule;[off-cpu] 900000\napp;runtime.goexit;main.run;read;[off-cpu] 100000\n"
    );
    let text = page(&[], go.as_bytes());
    assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("quality   no waits of goroutines")), "{text}");
    for profile in [
        &go.replace(";[off-cpu]", ""),
        &go.replace("runtime.schedule", "schedule_all"),
        "app;_start;main;read;schedule;[off-cpu] 900000\n",
    ] {
        let text = page(&[], profile.as_bytes());
        assert!(!text.contains("goroutines"), "{text}");
    }
}
