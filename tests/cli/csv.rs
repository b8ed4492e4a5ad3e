//! fg-csv: what each function weighs.

use std::collections::BTreeMap;

use crate::support::{assert_golden, data, run};

fn table(folded: &[u8]) -> String {
    run("fg-csv", [""; 0], folded).ok().text()
}

#[test]
fn self_and_inclusive_weights_the_largest_first() {
    let expected = "\
function,self_samples,self_pct,inclusive_samples,inclusive_pct
main,0,0.0000,7,100.0000
a,1,14.2857,5,71.4286
b,4,57.1429,4,57.1429
c,2,28.5714,2,28.5714
";
    assert_eq!(table(b"main;a;b 4\nmain;a 1\nmain;c 2\n"), expected);
}

#[test]
fn recursion_counts_once_a_stack() {
    assert_eq!(
        table(b"f;g;f;g;f 3\nf 1\n"),
        "function,self_samples,self_pct,inclusive_samples,inclusive_pct\n\
         f,4,100.0000,4,100.0000\ng,0,0.0000,3,75.0000\n"
    );
}

#[test]
fn a_state_leaves_the_self_time_to_the_function_beneath() {
    assert_eq!(
        table(b"main;read;[off-cpu] 30\nmain;[runnable] 10\n[unsampled] 5\n"),
        "function,self_samples,self_pct,inclusive_samples,inclusive_pct\n\
         main,10,22.2222,40,88.8889\n[off-cpu],0,0.0000,30,66.6667\nread,30,66.6667,30,66.6667\n\
         [runnable],0,0.0000,10,22.2222\n[unsampled],5,11.1111,5,11.1111\n"
    );
}

#[test]
fn names_are_quoted_as_csv_wants_it() {
    assert_eq!(
        table(b"std::map<int, \"x\">::at 1\n"),
        "function,self_samples,self_pct,inclusive_samples,inclusive_pct\n\
         \"std::map<int, \"\"x\"\">::at\",1,100.0000,1,100.0000\n"
    );
}

#[test]
fn nothing_in_only_a_header_out() {
    assert_eq!(table(b""), "function,self_samples,self_pct,inclusive_samples,inclusive_pct\n");
}

#[test]
fn a_differential_profile_gives_before_after_and_delta() {
    let out = run("fg-csv", [data("diff/plain.folded")], b"").ok();
    assert_golden("csv/differential.csv", &out.stdout);
}

#[test]
fn counts_equal_those_of_a_slow_count_by_names() {
    let stacks: [(&[&str], u64); 6] = [
        (&["a", "b", "c"], 3),
        (&["a", "b", "b"], 5),
        (&["b", "a"], 7),
        (&["a"], 11),
        (&["c", "c", "a", "c"], 13),
        (&["d", "e f"], 17),
    ];
    let (mut own, mut inclusive) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
    let mut folded = String::new();
    for (frames, weight) in &stacks {
        folded += &format!("{} {weight}\n", frames.join(";"));
        *own.entry(frames.last().unwrap()).or_default() += weight;
        for name in frames.iter().collect::<std::collections::BTreeSet<_>>() {
            *inclusive.entry(name).or_default() += weight;
        }
    }
    let text = table(folded.as_bytes());
    let mut sum = 0;
    for row in text.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        sum += fields[1].parse::<u64>().unwrap();
        assert_eq!(fields[1], own.get(fields[0]).copied().unwrap_or_default().to_string(), "{row}");
        assert_eq!(fields[3], inclusive[fields[0]].to_string(), "{row}");
    }
    assert_eq!((text.lines().count() - 1, sum), (inclusive.len(), 56));
}
