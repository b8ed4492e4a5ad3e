use super::find_renamed;
use crate::diff::differential_profile;

/// Functions by which the two sides are versions of one program.
const COMMON: [&str; 4] = ["main;c1;p1 60 60", "main;c2;p2 60 60", "main;c3;p3 60 60", "main;c4 60 60"];

/// Returns the pairs found in a profile of lines `stack BEFORE AFTER`, and those of common functions.
fn pairs(lines: &[&str]) -> Vec<String> {
    pairs_of_lines(&[&COMMON, lines].concat())
}

fn pairs_of_lines(lines: &[&str]) -> Vec<String> {
    let profile = differential_profile(lines);
    let distinct = profile.frames.iter().map(|(_, name)| name.to_vec()).collect();
    let renamed = find_renamed(&profile, &distinct).unwrap();
    renamed
        .iter()
        .map(|pair| [&pair.before[..], &pair.after].join(&b'>'))
        .map(|text| String::from_utf8(text).unwrap())
        .collect()
}

#[test]
fn pairs_functions_with_equal_relations() {
    assert_eq!(pairs(&["main;old;step 50 0", "main;new;step 0 52", "main;other 30 30"]), ["old>new"]);
    // The caller of the second function was renamed too.
    let chain = ["main;a;b;step 50 0", "main;a;c 20 0", "main;x;y;step 0 50", "main;x;c 0 21"];
    assert_eq!(pairs(&chain), ["a>x", "b>y"]);
    // Most of what they call, others call, too.
    let sharing = |price: &str| {
        let lines =
            ["main;add;db 60 0", "main;add;cost 24 0", "main;put;db 0 60", "main;list;db 55 56", "main;add 9 0"];
        pairs(&[&lines[..], &["main;put 0 9", &format!("main;put;{price} 0 24")]].concat())
    };
    assert_eq!(sharing("cost"), ["add>put"]);
    assert_eq!(sharing("price"), [""; 0]);
}

#[test]
fn pairs_functions_that_call_little_by_their_names() {
    assert_eq!(pairs(&["main;parse_v1 50 0", "main;parse 0 52"]), ["parse_v1>parse"]);
    // Names with a hash of the build.
    let hashed = ["main;app::draw::h0123456789abcdef 50 0", "main;app::draw::hfedcba9876543210 0 52"];
    assert_eq!(pairs(&hashed), ["app::draw::h0123456789abcdef>app::draw::hfedcba9876543210"]);
    // Others are alike, too.
    for others in [&["main;parse_v2 40 41"][..], &["main;parse_v2 9 0"], &["main;parse_v3 0 9"], &["x;parse_v2 1 1"]] {
        let lines = [&["main;parse_v1 50 0", "main;parse 0 52"], others].concat();
        assert_eq!(pairs(&lines), [""; 0], "{others:?}");
    }
    // Another one at the same place is as heavy.
    let two = ["main;parse_v1 50 0", "main;render 49 0", "main;parse 0 52", "main;warm_cache 0 50"];
    assert_eq!(pairs(&two), ["parse_v1>parse"]);
}

#[test]
fn renamed_callees_are_evidence_if_they_have_some() {
    let chain = ["main;a;b;c;read_it 50 0", "main;x;y;z;read_it 0 52", "main;d;read_it 4 4"];
    assert_eq!(pairs(&chain), ["a>x", "b>y", "c>z"]);
    assert_eq!(pairs(&["main;a;b;c 50 0", "main;x;y;z 0 52"]), [""; 0]);
    // What calls itself is no evidence of itself.
    assert_eq!(pairs(&["main;a;a;a 50 0", "main;x;x;x 0 52"]), [""; 0]);
}

#[test]
fn pairs_nothing_in_doubt() {
    for lines in [
        &["main;old;read 50 0", "main;new;write 0 50", "main;read 5 5", "main;write 5 5"][..],
        &["main;old 50 0", "other;new 0 50", "main 5 5", "other 5 5"],
        &["main;old 50 0", "main;new 0 10"],
        &["main;old 50 0", "main;new 0 50", "main;rival 0 48"],
        &["main;[old] 50 0", "main;[new] 0 50"],
        // Programs are no functions, and their functions are not those of each other.
        &["old;main 9 0", "new;main 0 9"],
        &["one;main;f;read 50 0", "two;main;g;read 0 50"],
        &["python3;work (a.py);unicode_split;read 50 0", "python3;work (a.py);split (re.py);read 0 50"],
        // Functions of libraries and of the kernel.
        &["main;sort;std::sort 50 0", "main;sort;std::stable_sort 0 50"],
        &["main;runtime.main;work;strconv.Itoa 50 0", "main;runtime.main;work;fmt.Sprintf 0 50"],
        &["main;work;do_read_[k] 50 0", "main;work;do_write_[k] 0 50"],
        &["main;old 50 1", "main;new 0 50"],
        // They have the callers and the weight in common, but not what they call.
        &["main;render 70 0", "main;render;x 20 0", "main;render;y 20 0", "main;warm_cache 0 110"],
        &["main;render 110 0", "main;warm_cache 0 70", "main;warm_cache;x 0 20", "main;warm_cache;y 0 20"],
        &["main;render;x 60 0", "main;render;y 40 0", "main;warm_cache;z 0 58", "main;warm_cache;q 0 41"],
        &["main;old 50 0", "main;new 0 50"],
        // Others call it as much, or all functions do.
        &["main;old 80 0", "main;old;log_it 20 0", "main;new 0 80", "main;new;log_it 0 20", "main;a;log_it 30 30"],
        &["main;old 50 0", "main;old;log_it 50 0", "main;new 0 50", "main;new;log_it 0 50", "main;a;log_it 30 30"],
        // A library, which they alone call.
        &["main;old 20 0", "main;old;memcpy 50 0", "main;new 0 20", "main;new;memcpy 0 50"],
        &["main;old 50 0", "main;old;qsort 50 0", "main;new 0 50", "main;new;qsort 0 50", "main;a;qsort 99 99"],
        &["main;old 20 0", "main;old;fmt.Sprintf 50 0", "main;new 0 20", "main;new;fmt.Sprintf 0 50"],
        &["main;old 20 0", "main;old;rb_str_append 50 0", "main;new 0 20", "main;new;rb_str_append 0 50"],
        &["main;old;do_fault_[k] 50 0", "main;new;do_fault_[k] 0 50"],
        // Their callers are not the same.
        &["main;a;old 50 0", "main;a;b 99 0", "init;x;new 0 50", "init;x;c 0 300", "main;b 5 5", "init;c 5 5"],
    ] {
        assert_eq!(pairs(lines), [""; 0], "{lines:?}");
    }
}

#[test]
fn pairs_nothing_in_two_programs() {
    for lines in [
        // Half of the functions are others.
        &["main;old;read 50 0", "main;new;read 0 52", "main;other 60 60"][..],
        &[
            "main;old 50 0",
            "main;new 0 50",
            "main;a;read 99 0",
            "main;b 70 0",
            "main;x;read;y 0 40",
            "main;z;read 0 20",
        ],
        // Two programs: one of three functions is alike, and what the interpreter calls is none of theirs.
        &[
            "p;main (a.py);load (a.py);eval 50 0",
            "p;main (a.py);total (a.py);eval 20 0",
            "p;main (a.py);group (a.py);eval 8 0",
            "p;main (a.py);matrix (a.py);eval 0 51",
            "p;main (a.py);tokens (a.py);eval 0 9",
            "p;main (a.py);count (a.py);eval 0 3",
            "p;main (a.py);eval 9 9",
        ],
        // They share a framework, whose functions cost more in one of them.
        &[
            "main;f;g;a 50 0",
            "main;f;g;b 9 0",
            "main;f;g;x 0 52",
            "main;f;g;y 0 8",
            "main;f 7 9",
            "main;f;g 3 40",
            "main;h 2 9",
        ],
    ] {
        assert_eq!(pairs_of_lines(lines), [""; 0], "{lines:?}");
    }
}

#[test]
fn most_of_the_program_may_have_another_name() {
    let rest = ["main;a 60 61", "main;b 50 52", "main;c 9 8"];
    let with_rest = |lines: &[&'static str]| [&rest[..], lines].concat();
    // More than half of the weight.
    assert_eq!(pairs_of_lines(&with_rest(&["main;old;step 200 0", "main;new;step 0 204"])), ["old>new"]);
    assert_eq!(pairs_of_lines(&with_rest(&["main;old 200 0", "main;new 0 204"])), [""; 0], "by weight alone");
    assert_eq!(pairs_of_lines(&with_rest(&["main;join_v1 200 0", "main;join 0 204"])), ["join_v1>join"]);
    let leaves = ["main;f 200 0", "main;g 90 0", "main;h 30 0", "main;x 0 204", "main;y 0 91", "main;z 0 29"];
    assert_eq!(pairs_of_lines(&with_rest(&leaves)), [""; 0], "by weight alone");
    // Most functions, if all are alike.
    let others =
        ["main;fold_v1;read 80 0", "main;gather_v1;write 40 0", "main;fold;read 0 79", "main;gather;write 0 42"];
    let three = [&others[..], &["main;hop_v1;malloc 20 0", "main;hop;malloc 0 19", "main;a 60 61"]].concat();
    assert_eq!(pairs_of_lines(&three), ["fold_v1>fold", "gather_v1>gather", "hop_v1>hop"]);
    assert_eq!(pairs_of_lines(&[&others[..], &rest[..1]].concat()), [""; 0], "three functions may be chance");
    // Some functions of two programs are alike.
    let chance =
        [&others[..2], &["main;h 70 0", "main;fold;read 0 79", "main;y;memcpy 0 45", "main;z;malloc 0 66"]].concat();
    assert_eq!(pairs_of_lines(&[&rest[..2], &chance].concat()), [""; 0]);
    let costs = ["main;a 60 61", "main;b 50 9", "main;c 9 80"];
    assert_eq!(pairs_of_lines(&[&costs[..], &others].concat()), [""; 0], "what both have costs other than before");
}

#[test]
fn all_threads_tell_if_two_sides_are_versions() {
    let threads = ["w0;load;read 30 31", "w1;rank;memcpy 40 39", "w2;pack 35 34"];
    let with_threads = |lines: &[&'static str]| pairs_of_lines(&[&threads[..], lines].concat());
    assert_eq!(with_threads(&["w3;dump_v1;write 50 0", "w3;dump;write 0 51"]), ["dump_v1>dump"]);
    assert_eq!(with_threads(&["w3;dump_v1;write 50 0", "w4;dump;write 0 51"]), [""; 0], "another thread");
    let other = ["w3;dump_v1;write 50 0", "w3;dump;write 0 51", "w3;f;read 90 0", "w3;g;write 0 70"];
    assert_eq!(with_threads(&other), [""; 0], "most of the thread is another");
    let lines = ["w0;load 30 0", "w1;rank 40 39", "w2;pack 0 34", "w3;dump_v1;write 50 0", "w3;dump;write 0 51"];
    assert_eq!(pairs_of_lines(&lines), [""; 0], "two programs");
}

#[test]
fn only_functions_of_the_program_make_two_sides_versions() {
    let lines = ["main;old;step 100 0", "main;new;step 0 102", "main;a 60 61", "main;b 50 52", "main;c 9 8"];
    assert_eq!(pairs_of_lines(&lines), ["old>new"]);
    // Functions of libraries, of run times and of allocators are none of the program.
    let libraries =
        ["operator new", "je_malloc", "tokio::runtime::task::raw::poll", "_PyEval_EvalFrameDefault", "std::sort"];
    for library in libraries {
        let common = [1, 2, 3].map(|number| format!("main;{library}{} 60 60", ["", "_aligned", "(int)"][number - 1]));
        let lines = [common.each_ref().map(String::as_str).as_slice(), &lines[..2]].concat();
        assert_eq!(pairs_of_lines(&lines), [""; 0], "{library}");
    }
}
