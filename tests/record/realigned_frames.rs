//! Stacks of functions that realign their frames.

use crate::support::programs::compiler;
use crate::support::recording::{Profile, Stack, can_record, record};
use crate::support::{directory, require};

/// The callers of a kind of functions of the program `realigned`.
fn callers(kind: &str) -> [String; 3] {
    ["main".to_owned(), format!("{kind}_top"), format!("{kind}_caller")]
}

/// True if a stack is in a function that `odd_caller` or `even_caller` calls, or in what the kernel does there.
fn is_below_caller(stack: &Stack, kind: &str) -> bool {
    ["leaf", "tail", "last"].iter().any(|name| stack.contains(&[&format!("{kind}_{name}")]))
}

#[test]
fn a_realigned_function_has_its_callers_up_to_its_return() {
    if !can_record() || !require("cc") {
        return;
    }
    let folder = directory();
    let path = folder.path().join("realigned");
    // Older versions of GCC address all realigned frames as the option says. Not every compiler knows it.
    for options in [&[][..], &["-mforce-drap"]] {
        let mut compiler = compiler(&path);
        compiler.args(["-O2", "-g", "-fno-ipa-icf", "-fno-ipa-cp", "-fno-ipa-sra", "realigned.c"]).args(options);
        if !compiler.status().unwrap().success() {
            assert!(!options.is_empty(), "{compiler:?}");
            continue;
        }
        for graph in ["dwarf", "dwarf,65528"] {
            let recording = ["--call-graph", graph, "-F", "4999", "--", path.to_str().unwrap(), "1"];
            let profile = Profile::from_stdout(&record(recording).ok());
            let mut all = 0;
            for kind in ["odd", "even"] {
                let callers = callers(kind);
                let callers = callers.each_ref().map(String::as_str);
                for stack in profile.0.iter().filter(|stack| is_below_caller(stack, kind)) {
                    assert!(
                        stack.contains(&["[truncated]"]) || stack.contains(&callers),
                        "{options:?} {graph}: {stack:?}"
                    );
                    all += if stack.contains(&["[truncated]"]) { 0 } else { stack.weight };
                }
            }
            assert!(all * 2 > profile.total(), "{options:?} {graph}: {all} of {}", profile.total());
        }
    }
}
