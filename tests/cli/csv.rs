//! fg-csv: tables of functions, commands, stacks and calls.

use std::collections::BTreeMap;

use crate::support::tables::assert_tables_match_reference;
use crate::support::{assert_golden, corpus, data, directory, run};

fn table(folded: &[u8]) -> String {
    run("fg-csv", [""; 0], folded).ok().text()
}

#[test]
fn lists_functions_by_inclusive_weight() {
    let expected = "\
function,self_samples,self_pct,inclusive_samples,inclusive_pct,category
main,0,0.0000,7,100.0000,other
a,1,14.2857,5,71.4286,other
b,4,57.1429,4,57.1429,other
c,2,28.5714,2,28.5714,other
";
    assert_eq!(table(b"main;a;b 4\nmain;a 1\nmain;c 2\n"), expected);
}

#[test]
fn counts_a_recursive_function_once_per_stack() {
    assert_eq!(
        table(b"f;g;f;g;f 3\nf 1\n"),
        "function,self_samples,self_pct,inclusive_samples,inclusive_pct,category\n\
         f,4,100.0000,4,100.0000,other\ng,0,0.0000,3,75.0000,other\n"
    );
}

#[test]
fn self_time_of_a_state_belongs_to_its_caller() {
    assert_eq!(
        table(b"main;read;[off-cpu] 30\nmain;[runnable] 10\n[unsampled] 5\n"),
        "function,self_samples,self_pct,inclusive_samples,inclusive_pct,category\n\
         main,10,22.2222,40,88.8889,other\n[off-cpu],0,0.0000,30,66.6667,blocked\n\
         read,30,66.6667,30,66.6667,libc\n[runnable],0,0.0000,10,22.2222,blocked\n\
         [unsampled],5,11.1111,5,11.1111,blocked\n"
    );
}

#[test]
fn quotes_names() {
    assert_eq!(
        table(b"std::map<int, \"x\">::at 1\n"),
        "function,self_samples,self_pct,inclusive_samples,inclusive_pct,category\n\
         \"std::map<int, \"\"x\"\">::at\",1,100.0000,1,100.0000,other\n"
    );
}

#[test]
fn tabulates_before_after_and_delta_of_a_comparison() {
    let out = run("fg-csv", [data("diff/plain.folded")], b"").ok();
    assert_golden("csv/differential.csv", &out.stdout);
}

#[test]
fn self_and_inclusive_weights_match_a_reference() {
    let stacks: [(&[&str], u64); 6] = [
        (&["a", "b", "c"], 3),
        (&["a", "b", "b"], 5),
        (&["b", "a"], 7),
        (&["a"], 11),
        (&["c", "c", "a", "c"], 13),
        (&["d", "e f"], 17),
    ];
    let (mut self_weights, mut inclusive) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
    let mut folded = String::new();
    for (frames, weight) in &stacks {
        folded += &format!("{} {weight}\n", frames.join(";"));
        *self_weights.entry(frames.last().unwrap()).or_default() += weight;
        for name in frames.iter().collect::<std::collections::BTreeSet<_>>() {
            *inclusive.entry(name).or_default() += weight;
        }
    }
    let text = table(folded.as_bytes());
    let mut sum = 0;
    for row in text.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        sum += fields[1].parse::<u64>().unwrap();
        assert_eq!(fields[1], self_weights.get(fields[0]).copied().unwrap_or_default().to_string(), "{row}");
        assert_eq!(fields[3], inclusive[fields[0]].to_string(), "{row}");
    }
    assert_eq!((text.lines().count() - 1, sum), (inclusive.len(), 56));
}

const PROFILE: &[u8] = b"sh;main;malloc 4\nsh;main;run;run;malloc 2\nsh;main 1\nls;vfs_read_[k] 3\n";

fn with(options: &[&str]) -> String {
    run("fg-csv", options, PROFILE).ok().text()
}

#[test]
fn tabulates_commands_stacks_and_calls() {
    assert_eq!(with(&["--by=comm"]), "comm,samples,pct\nsh,7,70.0000\nls,3,30.0000\n");
    assert_eq!(
        with(&["--by=stack", "--top=2"]),
        "stack,samples,pct\nsh;main;malloc,4,40.0000\nls;vfs_read_[k],3,30.0000\n"
    );
    assert_eq!(
        with(&["--by=edge"]),
        "caller,callee,samples,pct\nsh,main,7,70.0000\nmain,malloc,4,40.0000\nls,vfs_read_[k],3,30.0000\n\
         main,run,2,20.0000\nrun,malloc,2,20.0000\nrun,run,2,20.0000\n"
    );
}

#[test]
fn tabulates_who_kept_whom_waiting() {
    let waits = "sh;read;--;cat_[w];write_[w];[off-cpu] 5\nsh;read;--;cat_[w];x_[w];--;tee_[w];y_[w];--;[disk]_[w];[off-cpu] 1\n\
                 sh;read;[runnable] 1\nsh;read;--;cat_[w];exit_[w];--;[unknown]_[w];[off-cpu] 1\n\
                 sh;read;--;cat_[w];w_[w];--;[more-wakers]_[w];[off-cpu] 3\n\
                 sh;nap;--;[timer]_[w];[off-cpu] 2\n";
    assert_eq!(
        run("fg-csv", ["--by=waker"], waits.as_bytes()).ok().text(),
        "comm,waker,samples,pct\nsh,cat_[w],6,46.1538\nsh,cat_[w];[more-wakers]_[w],3,23.0769\n\
         sh,[timer]_[w],2,15.3846\nsh,tee_[w],1,7.6923\n"
    );
    // What separates a thread from its waker is no function, and is not called.
    for option in ["--by=function", "--by=edge"] {
        let table = run("fg-csv", [option], waits.as_bytes()).ok().text();
        assert!(table.contains("tee_[w]") && !table.contains("--"), "{table}");
    }
    let without = run("fg-csv", ["--by=waker"], b"sh;read;[off-cpu] 5\n");
    assert_eq!((without.code(), without.text().as_str()), (1, ""));
    assert!(without.stderr.contains("fg-record --off-cpu --wakers"), "{without:?}");
}

#[test]
fn summarizes_categories() {
    assert_eq!(
        with(&["--summary"]),
        "category,self_samples,self_pct\nallocator,6,60.00\nkernel-fs,3,30.00\nother,1,10.00\n"
    );
    let folder = directory();
    let rules = folder.path().join("rules");
    std::fs::write(&rules, "# first wins\nmine ^ma\nrest .\n").unwrap();
    let rules = rules.to_str().unwrap();
    assert_eq!(
        with(&["--summary", "--categories", rules]),
        "category,self_samples,self_pct\nmine,7,70.00\nrest,3,30.00\n"
    );
    std::fs::write(rules, "mine ^ma\nalone\n").unwrap();
    let out = run("fg-csv", ["--summary", "--categories", rules], PROFILE);
    assert_eq!((out.code(), out.text().as_str()), (1, ""));
    assert!(out.stderr.contains("rules:2: expected a category"), "{}", out.stderr);
    let printed = run("fg-csv", ["--print-categories"], b"").ok().text();
    std::fs::write(rules, &printed).unwrap();
    assert_eq!(with(&["--categories", rules]), with(&[]));
}

#[test]
fn writes_tsv_and_json() {
    assert_eq!(with(&["--tsv", "--by=comm"]), "comm\tsamples\tpct\nsh\t7\t70.0000\nls\t3\t30.0000\n");
    assert_eq!(
        with(&["--json", "--by=comm"]),
        "[\n {\"comm\": \"sh\", \"samples\": 7, \"pct\": 70.0000},\n \
         {\"comm\": \"ls\", \"samples\": 3, \"pct\": 30.0000}\n]\n"
    );
    let odd = run("fg-csv", ["--json", "--by=stack"], b"a\"\\\x01\xff\t 1.5\n").ok().text();
    assert_eq!(odd, "[\n {\"stack\": \"a\\\"\\\\\\u0001\\\\xff\", \"samples\": 1.5, \"pct\": 100.0000}\n]\n");
    assert_eq!(run("fg-csv", ["--json", "--top=0"], b"a 1\n").ok().text(), "[]\n");
    assert_eq!(
        run("fg-csv", ["--tsv", "--by=comm"], b"a\tb;c 1\n").ok().text(),
        "comm\tsamples\tpct\na b\t1\t100.0000\n"
    );
}

#[test]
fn keeps_names_apart_that_differ_in_invalid_utf8() {
    let out = run("fg-csv", ["--json", "--by=comm"], b"a\xfe 1\na\xff 1\na\xe2\x82z 1\n").ok().text();
    let names: Vec<&str> = out.split('"').filter(|part| part.starts_with('a')).collect();
    assert_eq!(names, [r"a\\xe2\\x82z", r"a\\xfe", r"a\\xff"]);
}

#[test]
fn sorts_by_any_column() {
    let names = |options: &[&str]| {
        let rows: Vec<String> =
            with(options).lines().skip(1).map(|row| row.split(',').next().unwrap().to_owned()).collect();
        rows.join(" ")
    };
    assert_eq!(names(&[]), "main sh malloc ls vfs_read_[k] run");
    assert_eq!(names(&["--sort=self_samples"]), "malloc vfs_read_[k] main ls run sh");
    assert_eq!(names(&["--sort=function", "--top=3"]), "ls main malloc");
    assert_eq!(names(&["--sort=category", "--top=2"]), "malloc vfs_read_[k]");
    let out = run("fg-csv", ["--sort=nothing"], PROFILE);
    assert_eq!(out.code(), 2);
    assert!(out.stderr.contains("expected one of function, self_samples, self_pct"), "{}", out.stderr);
}

#[test]
fn a_significant_change_has_a_small_probability() {
    let mut folded = String::new();
    for number in 0..30 {
        folded += &format!("main;f{number:02} {} {}\n", 100 + number % 7, 103 - number % 5);
    }
    folded += "main;slow 100 300\nmain;rare 1 3\n";
    let out = run("fg-csv", ["--sort=self_chance", "--top=2"], folded.as_bytes()).ok().text();
    let rows: Vec<&str> = out.lines().collect();
    assert!(rows[1].starts_with("slow,100,300,200,0.00"), "{out}");
    assert!(rows[2].contains(",1.0000,"), "{out}");
    let summed = run("fg-csv", ["--summary"], b"main;malloc 100 301\nmain;read 500 510\nmain;a 400 190\n").ok().text();
    let header = "category,self_before,self_after,self_delta,self_chance\n";
    assert!(
        summed.starts_with(&format!("{header}other,400,190,-210,0.0062\nallocator,100,301,201,0.0017\n")),
        "{summed}"
    );
    assert!(summed.contains("libc,500,510,10,1.0000"), "{summed}");
    // Round counts look like the weight of a sample, which -v reports and an option corrects.
    let round: String = folded.lines().map(|line| line.replace(' ', "0 ") + "0\n").collect();
    let test = |options: &[&str]| {
        run("fg-csv", [&["-v", "--sort=self_chance", "--top=1"], options].concat(), round.as_bytes()).ok()
    };
    let (estimated, given) = (test(&[]), test(&["--per-sample=1"]));
    assert!(
        estimated
            .stderr
            .starts_with("fg-csv: all weights are multiples of 10, taken as the weight of one sample: 3186 before")
    );
    assert!(estimated.stderr.ends_with("fg-csv: one sample weighs 10\n"), "{}", estimated.stderr);
    assert_eq!(given.stderr, "fg-csv: one sample weighs 1\n");
    // Durations have no probability, unless they only may be durations.
    let durations: String =
        (0..30).map(|number| format!("f{number} {} {}\n", 10_007 + 3 * number, 10_009 + number)).collect();
    let out = run("fg-csv", ["--top=1"], durations.as_bytes()).ok();
    assert!(!out.text().contains(",,") && out.stderr.contains("if the weights are durations"), "{out:?}");
    let out = run("fg-csv", ["--top=1"], (durations + "f;[off-cpu] 3 4\n").as_bytes());
    assert!(out.text().contains(",,") && out.stderr.contains("are durations"), "{out:?}");
}

#[test]
fn tables_of_recordings_match_a_reference() {
    for name in ["threads", "inlined", "tracepoints"] {
        let path = data("collapse").join(format!("{name}.perf-script.txt.gz"));
        assert_tables_match_reference(name, &run("fg-collapse", ["-q".as_ref(), path.as_os_str()], b"").ok().stdout);
    }
}

#[test]
fn tables_of_the_corpus_match_a_reference() {
    let profiles = [
        "gregg/example-perf-stacks.txt.gz",
        "gregg/example-dtrace-stacks.txt",
        "gregg/perf-iperf-stacks-pidtid-01.txt",
        "gregg/perf-rust-Yamakaky-dcpu.txt",
        "recorded/java.perf-script.txt.gz",
        "recorded/cpp.perf-script.txt.gz",
    ];
    for name in profiles {
        let Some(path) = corpus(name) else { return };
        assert_tables_match_reference(name, &run("fg-collapse", ["-q".as_ref(), path.as_os_str()], b"").ok().stdout);
    }
}

#[test]
fn counts_a_file_in_parallel_like_a_pipe() {
    let line = |number: u32| {
        let random = number.wrapping_mul(2_654_435_761);
        let frames: Vec<String> =
            (0..1 + random % 7).map(|depth| format!("f{}", (random >> (depth * 3)) % 40)).collect();
        format!("comm{};{} {}\n", random % 3, frames.join(";"), 1 + random % 50)
    };
    let plain: String = (0..40_000).map(line).collect();
    assert!(plain.len() > 3 << 18, "smaller than a few blocks");
    let differential = plain.replace('\n', " 7\n");
    let half = plain.lines().count() / 2;
    let malformed: String = plain
        .lines()
        .enumerate()
        .map(|(at, line)| if at == half { "none\n".to_owned() } else { format!("{line}\n") })
        .collect();
    let folder = directory();
    let file = folder.path().join("profile.folded");
    for text in [&plain, &differential, &malformed, &plain.replace('\n', "\r\n"), &format!("\n{plain}")] {
        std::fs::write(&file, text).unwrap();
        for by in ["--by=function", "--by=comm", "--by=edge", "--by=stack", "--summary"] {
            let piped = run("fg-csv", [by], text.as_bytes()).ok();
            let read = run("fg-csv", [by.as_ref(), file.as_os_str()], b"").ok();
            assert_eq!(read.text(), piped.text(), "{by}");
            assert_eq!(read.stderr.replace(&*file.to_string_lossy(), "stdin"), piped.stderr, "{by}");
        }
    }
}

#[test]
fn a_wait_is_self_time_of_the_function_that_waited() {
    let waits = b"app;main;wait;schedule_[k];--;other;send_[w];[off-cpu] 60\napp;main 40\n";
    let table = run("fg-csv", ["--sort=self", "--top=2"], waits).ok().text();
    assert!(table.contains("\nwait,60,60.0000,60,60.0000,") && table.contains("\nmain,40,40.0000,"), "{table}");
    let rules = ["--self=^wait=50%", "--self=send=1%"];
    let outcome = run("fg-check", rules, waits);
    assert!(outcome.text().contains("wait: 60.00%") && !outcome.text().contains("self send"), "{outcome:?}");
}

#[test]
fn time_in_a_thread_state_has_the_category_of_the_state() {
    let profile = b"app;main;read;[off-cpu] 60\napp;main;malloc 30\napp;main;[unsampled] 10\n";
    let summed = run("fg-csv", ["--summary"], profile).ok().text();
    assert_eq!(summed, "category,self_samples,self_pct\nblocked,70,70.00\nallocator,30,30.00\n");
    let outcome = run("fg-check", ["--category=blocked=50%", "--category=libc=10%"], profile);
    assert!(outcome.code() == 1 && outcome.text().contains("category blocked: 70.00%"), "{outcome:?}");
    // Without a rule for the states, the function decides.
    let folder = directory();
    let rules = folder.path().join("rules");
    std::fs::write(&rules, "io ^read$\n").unwrap();
    let summed = run("fg-csv", ["--summary", "--categories", rules.to_str().unwrap()], profile).ok().text();
    assert_eq!(summed, "category,self_samples,self_pct\nio,60,60.00\nother,40,40.00\n");
}

#[test]
fn growth_of_blocked_time_is_found() {
    let compared = b"app;main;read;[off-cpu] 6000 9000\napp;main;malloc 3000 3000\napp;main 1000 1000\n";
    let outcome = run("fg-check", ["--exact", "--category-growth=blocked=10%"], compared);
    assert!(outcome.code() == 1 && outcome.text().contains("blocked: +30.00%"), "{outcome:?}");
    let table = run("fg-csv", ["--exact", "--summary"], compared).ok().text();
    assert!(table.contains("\nblocked,6000,9000,3000,0.0000\n"), "{table}");
}

#[test]
fn a_profile_without_weight_is_no_table() {
    for options in [&[][..], &["--summary"], &["--by", "stack"], &["--json"]] {
        let outcome = run("fg-csv", options, b"main;parse 0\n");
        assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{outcome:?}");
        assert!(outcome.stderr.ends_with("nothing to tabulate: all stacks have weight 0\n"), "{outcome:?}");
    }
}

#[test]
fn options_for_comparisons_without_effect_are_named_once() {
    let options = ["--exact-names", "--per-sample=5"];
    let outcome = run("fg-csv", options, b"main;parse 5\n").ok();
    let said = "--exact-names, --per-sample have no effect: the input is not a comparison";
    assert_eq!(outcome.stderr.matches(said).count(), 1, "{}", outcome.stderr);
    let outcome = run("fg-csv", ["--per-sample=5"], b"main;parse 5 10\n").ok();
    assert!(!outcome.stderr.contains("no effect"), "{}", outcome.stderr);
}
