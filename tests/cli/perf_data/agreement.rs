//! Recordings of five kinds, made here by perf: what `fg-collapse` reads in them against what perf reads in them.
//!
//! Stacks are compared by weight. They are to be equal but for what is named here, each with its reason:
//! - `[truncated]`: perf does not say that a stack was cut.
//! - Versions, `free@@GLIBC_2.2.5`: linkers write them into symbol tables, and perf prints what stands there.
//! - A caller is named by its call, which lies before the address of return. With copied stacks perf does so too; elsewhere it
//!   names what lies at that address. Behind a call that never returns this is the next function: `_dl_start_user` and not
//!   `_start`. Such an address is the very first of a function, to which nothing returns.
//! - perf drops a stack wholly if one of its words looks like a mark between kernel and user addresses, as words do that a
//!   program without frame pointers left where they should be: such a sample has no frames.
//! - `.warm` or `.llvm.1234.warm`, which compilers write behind names, is lost by perf's demangler of Rust.
//! - What called `execve` is gone when the new program has been mapped: `[unknown]` here, where perf still has its mappings.
//! - Of several kernel symbols at one address perf names the last: it gives sizes to symbols, none to all but the last, and
//!   then prefers what has a size. By its further rules, which are ours, it would be `memcpy` and not `__pi_memcpy`.

// What was found is worth reading.
#![allow(clippy::print_stderr)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::collapse;
use crate::support::{self, directory, has, run, run_command};

/// Stands for a name that perf looked up at the wrong place.
const ANY: &str = "*";

type Weights = BTreeMap<Vec<String>, u64>;

/// Records a command; `None` where perf may not.
fn record(folder: &Path, options: &[&str], command: &[&str]) -> Option<PathBuf> {
    if !has("perf") {
        return None;
    }
    let file = folder.join("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q"]).args(options).arg("-o").arg(&file).arg("--").args(command);
    let outcome = run_command(perf, b"");
    if outcome.status.success() && file.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        return Some(file);
    }
    support::skip(&format!("perf may not record {options:?} here: {}", outcome.stderr));
    None
}

fn weights(folded: &str) -> Weights {
    let mut weights = Weights::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let stack = stack.split(';').filter(|name| *name != "[truncated]").map(str::to_owned).collect();
        *weights.entry(stack).or_default() += weight.parse::<u64>().unwrap();
    }
    // A busy machine loses samples, of which perf script says nothing.
    weights.remove(&vec!["[lost]".to_owned()]);
    weights
}

/// What perf makes of a file, as text.
fn script(file: &Path) -> String {
    let mut perf = Command::new("perf");
    perf.args(["script", "--no-inline", "--max-stack", "512", "-i"]).arg(file);
    String::from_utf8_lossy(&run_command(perf, b"").ok().stdout).into_owned()
}

fn fold(script: &str) -> Weights {
    weights(&run("fg-collapse", ["--no-tidy", "--event", "all", "-"], script.as_bytes()).ok().text())
}

/// The text, with callers taken out that are named by the first address of a function.
fn without_next_functions(script: &str) -> String {
    let mut text = String::new();
    let mut is_caller = false;
    for line in script.lines() {
        let is_frame = line.starts_with('\t');
        match line.find("+0x0 (").filter(|_| is_frame && is_caller) {
            Some(end) => {
                let name = line.trim_start().find(' ').unwrap() + line.len() - line.trim_start().len() + 1;
                text.extend([&line[..name], ANY, &line[end..]]);
            }
            None => text.push_str(line),
        }
        text.push('\n');
        is_caller = is_frame;
    }
    text
}

/// The kernel's functions that share their address with others, each with the one of fewest underscores.
fn kernel_aliases() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let mut at: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() == 3 && ["T", "t", "W", "w"].contains(&words[1]) && !words[0].trim_matches('0').is_empty() {
            at.entry(words[0]).or_default().insert(words[2]);
        }
    }
    let mut aliases = BTreeMap::new();
    for names in at.values().filter(|names| names.len() > 1) {
        let first = names.iter().next().unwrap();
        aliases.extend(names.iter().map(|name| ((*name).to_owned(), (*first).to_owned())));
    }
    aliases
}

/// With one name for all kernel symbols at an address, without versions and what a compiler added, with any frame
/// where there is none, and without what called `execve`.
fn normal(weights: &Weights, aliases: &BTreeMap<String, String>) -> Weights {
    let mut normal = Weights::new();
    for (stack, weight) in weights {
        let name = |name: &String| {
            let name = aliases.get(name).unwrap_or(name).split('@').next().unwrap();
            name.split(".llvm.").next().unwrap().trim_end_matches(".warm").to_owned()
        };
        let mut stack: Vec<String> = stack.iter().map(name).collect();
        if stack.len() == 1 {
            stack.push(ANY.to_owned());
        }
        if let Some(at) = stack.iter().position(|name| name == "bprm_execve") {
            stack.drain(1..at);
        }
        *normal.entry(stack).or_default() += weight;
    }
    normal
}

/// How much of the weight stands in the same stacks.
fn agreement(mut ours: Weights, theirs: &Weights) -> f64 {
    let fits = |own: &[String], their: &[String]| {
        let is_dropped = their.len() == 2 && their[1] == ANY;
        let are_equal = own.iter().zip(their).all(|(own, their)| own == their || their == ANY);
        are_equal && (own.len() == their.len() || is_dropped)
    };
    let mut same = 0;
    let (open, exact): (Vec<_>, Vec<_>) = theirs.iter().partition(|(stack, _)| stack.iter().any(|name| name == ANY));
    for (stack, weight) in exact {
        if let Some(left) = ours.get_mut(stack) {
            let shared = *weight.min(left);
            *left -= shared;
            same += shared;
        }
    }
    for (stack, weight) in open {
        let mut wanted = *weight;
        for (_, left) in ours.iter_mut().filter(|(own, _)| fits(own, stack)) {
            let shared = wanted.min(*left);
            *left -= shared;
            wanted -= shared;
        }
        same += weight - wanted;
    }
    same as f64 / theirs.values().sum::<u64>().max(1) as f64
}

/// Records a command and compares.
fn assert_agreement(kind: &str, options: &[&str], command: &[&str], at_least: f64) {
    let folder = directory();
    let Some(file) = record(folder.path(), options, command) else { return };
    let ours = weights(&collapse(&file, &["--no-tidy", "--no-inline", "--event", "all"]).ok().text());
    let script = script(&file);
    let theirs = fold(&script);
    assert_eq!(ours.values().sum::<u64>(), theirs.values().sum(), "{kind}");
    let raw = agreement(ours.clone(), &theirs);
    let aliases = kernel_aliases();
    let (ours, theirs) = (normal(&ours, &aliases), normal(&fold(&without_next_functions(&script)), &aliases));
    let named = agreement(ours.clone(), &theirs);
    let samples = script.lines().filter(|line| line.is_empty()).count();
    println!("{kind}: {samples} samples, equal {:.2} %, but for what is named {:.2} %", 100.0 * raw, 100.0 * named);
    let differ = |these: &Weights, others: &Weights| {
        let differ = these.iter().filter(|(stack, weight)| others.get(*stack) != Some(weight));
        differ.map(|(stack, weight)| format!("{} {weight}\n", stack.join(";"))).collect::<String>()
    };
    assert!(named >= at_least, "{kind}: {named}\nours:\n{}perf's:\n{}", differ(&ours, &theirs), differ(&theirs, &ours));
}

/// Many processes that start and end, and a filter that works.
const FILES: [&str; 3] = [
    "sh",
    "-c",
    "find /usr/lib -type f -size -200k 2>/dev/null | head -n 1000 | xargs -n 50 cat 2>/dev/null | gzip -1",
];

#[test]
fn stacks_by_frame_pointers_are_those_of_perf() {
    assert_agreement("frame pointers", &["-g", "-e", "cpu-clock", "-F", "997"], &FILES, 0.99);
    assert_agreement("compressed", &["-z", "-g", "-e", "cpu-clock", "-F", "997"], &FILES, 0.99);
}

#[test]
fn stacks_of_the_whole_system_are_those_of_perf() {
    let options = ["-a", "-g", "-e", "cpu-clock", "-F", "499"];
    assert_agreement("whole system, idle", &options, &["sleep", "0.5"], 0.95);
    let busy = format!("for i in $(seq \"$(nproc)\"); do {} & done; wait", FILES[2]);
    assert_agreement("whole system, busy", &options, &["sh", "-c", &busy], 0.95);
}

#[test]
fn stacks_that_were_copied_are_those_of_perf() {
    // Nothing that a shell starts: perf 6.1 keeps the mappings of what a process was before it became another program, and
    // takes the lowest place of a library for its place. If that is the old one, stacks end at the library's first frame.
    let folder = directory();
    let file = folder.path().join("file");
    std::fs::write(&file, &std::fs::read(std::env::current_exe().unwrap()).unwrap()[..6_000_000]).unwrap();
    let command = ["gzip", "-1", "-c", file.to_str().unwrap()];
    assert_agreement("copied stacks", &["--call-graph", "dwarf,16384", "-e", "cpu-clock", "-F", "497"], &command, 0.95);
}

#[test]
fn stacks_of_several_events_are_those_of_perf() {
    assert_agreement("two events", &["-g", "-e", "cpu-clock,page-faults", "-F", "997"], &FILES, 0.95);
}

#[test]
fn stacks_at_a_tracepoint_are_those_of_perf() {
    assert_agreement("tracepoint", &["-g", "-e", "syscalls:sys_enter_write"], &FILES, 0.95);
}
