//! Functions that grew are found, and those that did not are not, in runs whose functions vary.

use fgkit::diff::Scaling;
use fgkit::stats::sample_weight::WeightOptions;

use super::runs::{FunctionRuns, Runs, Side, significant};

/// The weights of functions in three runs each of a sort that became slower: most functions of the interpreter grew, by
/// different factors.
const MOST_GREW: [FunctionRuns; 12] = [
    ("code", [215, 221, 219], [292, 288, 291]),
    ("call", [55, 68, 74], [158, 136, 154]),
    ("find", [41, 66, 62], [143, 133, 140]),
    ("compare", [42, 41, 51], [60, 65, 59]),
    ("added", [0, 0, 0], [70, 53, 66]),
    ("removed", [57, 52, 68], [0, 0, 0]),
    ("sort", [10, 12, 25], [29, 40, 27]),
    ("same", [18, 18, 21], [20, 20, 21]),
    ("join", [12, 17, 23], [16, 19, 17]),
    ("execute", [10, 10, 10], [19, 19, 21]),
    ("frame", [5, 15, 4], [21, 23, 15]),
    ("destroy", [3, 8, 11], [11, 13, 17]),
];

/// Samples in three runs a side of a program that is steady, but for the samples of small functions.
const SMALL_FUNCTIONS_VARY: [FunctionRuns; 13] = [
    ("code", [243, 250, 276], [371, 364, 339]),
    ("score", [93, 91, 84], [75, 92, 102]),
    ("split", [38, 41, 37], [62, 58, 75]),
    ("random", [31, 29, 23], [22, 17, 24]),
    ("bits", [18, 22, 20], [24, 15, 23]),
    ("coerce", [13, 10, 13], [24, 21, 28]),
    ("canonical", [14, 12, 8], [20, 16, 18]),
    ("network", [14, 7, 5], [14, 29, 11]),
    ("terms", [13, 10, 13], [14, 16, 11]),
    ("join", [7, 4, 11], [14, 16, 13]),
    ("text", [9, 6, 11], [8, 12, 13]),
    ("push", [10, 7, 9], [16, 7, 7]),
    ("rest", [170, 170, 170], [255, 255, 251]),
];

#[test]
fn functions_that_grew_are_found_where_most_did() {
    assert_found(&MOST_GREW, &["call", "find", "added", "removed"], &["same", "join"]);
}

#[test]
fn functions_that_grew_are_found_where_small_ones_vary() {
    assert_found(&SMALL_FUNCTIONS_VARY, &["code"], &["score", "random", "bits", "terms"]);
}

fn assert_found(functions: &[FunctionRuns], different: &[&str], same: &[&str]) {
    let side = |of: &dyn Fn(&FunctionRuns) -> [u64; 3]| -> Side {
        (0..3).map(|run| functions.iter().map(|row| of(row)[run]).collect()).collect()
    };
    let runs = Runs {
        stacks: functions.iter().map(|(name, ..)| vec!["main".to_owned(), (*name).to_owned()]).collect(),
        before: side(&|row| row.1),
        after: side(&|row| row.2),
        scaling: Scaling::Runs,
        weights: WeightOptions::default(),
    };
    let found = runs.functions();
    for name in different {
        assert!(significant(found[*name].self_chance), "{name}: {found:?}");
    }
    for name in same {
        assert!(!significant(found[*name].self_chance), "{name}: {found:?}");
    }
}
