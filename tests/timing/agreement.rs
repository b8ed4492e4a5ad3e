//! Compares what fg-collapse reads in recordings of perf with what perf reads in them.
//!
//! Stacks are compared by weight. They must be equal except for these differences:
//! - `[truncated]`: perf does not report that a stack was cut. Where a copied stack ends, it adds a caller `[unknown]`.
//! - Versions, as in `free@@GLIBC_2.2.5`: linkers write them into symbol tables, and perf prints them.
//! - We name a caller by its call, which is before the return address. perf does so with copied stacks only. Elsewhere
//!   it looks up the return address itself. After a call that never returns, this finds the next function:
//!   `_dl_start_user` instead of `_start`. Such a return address is the first address of a function, where no call
//!   returns to.
//! - perf drops all user frames if a word of the callchain looks like a marker between kernel and user addresses.
//!   Programs without frame pointers may leave such words where the kernel expects frame pointers.
//! - Anonymous memory with generated code: perf names it after the map that it looked for, `[perf-PID.map]`, or after
//!   the name of a memory file, `[memfd:NAME (deleted)]`. We name it `[anon]`.
//! - Suffixes that compilers add, `.warm` or `.llvm.1234.warm`: perf's Rust demangler drops them.
//! - The caller of `execve` is unmapped once the new program is mapped. We name it `[unknown]`. perf still has the
//!   mappings.
//! - Several kernel symbols at one address: perf prints the last. It gives sizes to symbols, but only the last at an
//!   address gets one, and it prefers symbols with a size. Its further rules, which are ours too, would prefer `memcpy`
//!   to `__pi_memcpy`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::statistics::{ensure, statistical};
use crate::support::{command, directory, require, run, run_command, skip};

/// Stands for a name that perf looked up at the wrong address.
const ANY: &str = "*";

type Weights = BTreeMap<Vec<String>, u64>;

/// Records a command with perf. Returns `None` and reports the test as skipped if perf cannot record here.
fn record(folder: &Path, options: &[&str], words: &[&str]) -> Option<PathBuf> {
    if !require("perf") {
        return None;
    }
    let file = folder.join("perf.data");
    let mut perf = command("perf");
    perf.args(["record", "-q"]).args(options).arg("-o").arg(&file).arg("--").args(words);
    let outcome = run_command(perf, b"");
    if outcome.status.success() && file.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        return Some(file);
    }
    skip(&format!("perf cannot record {options:?} here: {}", outcome.stderr));
    None
}

fn parse_weights(folded: &str) -> Weights {
    let mut weights = Weights::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let stack = stack.split(';').filter(|name| *name != "[truncated]").map(str::to_owned).collect();
        *weights.entry(stack).or_default() += weight.parse::<u64>().unwrap();
    }
    // perf script does not print lost samples.
    weights.remove(&vec!["[lost]".to_owned()]);
    weights
}

/// Returns the output of `perf script`.
fn perf_script(file: &Path) -> String {
    let mut perf = command("perf");
    perf.args(["script", "--no-inline", "--max-stack", "512", "-i"]).arg(file);
    String::from_utf8_lossy(&run_command(perf, b"").ok().stdout).into_owned()
}

fn fold(script: &str) -> Weights {
    parse_weights(
        &run("fg-collapse", ["--no-tidy", "--event", "all", "--weight", "samples", "-"], script.as_bytes()).ok().text(),
    )
}

/// Replaces the names of callers that are at the first address of a function by [`ANY`].
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

/// Maps kernel functions that share their address with others to one name for that address.
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

/// Normalizes stacks: one name for all kernel symbols at an address, no versions and compiler suffixes, [`ANY`] if
/// there are no frames, no callers of `execve`.
fn normalize(weights: &Weights, aliases: &BTreeMap<String, String>) -> Weights {
    let mut normalized = Weights::new();
    for (stack, weight) in weights {
        let name = |name: &String| {
            if name.starts_with("[memfd:") || (name.starts_with("[perf-") && name.ends_with(".map]")) {
                return "[anon]".to_owned();
            }
            let name = aliases.get(name).unwrap_or(name).split('@').next().unwrap();
            name.split(".llvm.").next().unwrap().trim_end_matches(".warm").to_owned()
        };
        let mut stack: Vec<String> = stack.iter().map(name).collect();
        if stack.len() > 2 && stack[1] == "[unknown]" {
            stack.remove(1);
        }
        if stack.len() == 1 {
            stack.push(ANY.to_owned());
        }
        if let Some(at) = stack.iter().position(|name| name == "bprm_execve") {
            stack.drain(1..at);
        }
        *normalized.entry(stack).or_default() += weight;
    }
    normalized
}

/// Returns the share of the weight that is in the same stacks.
fn shared_weight(mut ours: Weights, theirs: &Weights) -> f64 {
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

/// Lists the stacks whose weight is not the same in `others`.
fn list_differences(weights: &Weights, others: &Weights) -> String {
    let different = weights.iter().filter(|(stack, weight)| others.get(*stack) != Some(weight));
    different.map(|(stack, weight)| format!("{} {weight}\n", stack.join(";"))).collect()
}

/// Records a command and checks that at least this share of the weight is in the same stacks.
fn check_agreement(kind: &str, options: &[&str], words: &[&str], least: f64) {
    let folder = directory();
    statistical(|| {
        let Some(file) = record(folder.path(), options, words) else { return Ok(()) };
        let arguments = ["--no-tidy", "--no-inline", "--event", "all", "--weight", "samples", file.to_str().unwrap()];
        let ours = parse_weights(&run("fg-collapse", arguments, b"").ok().text());
        let script = perf_script(&file);
        let theirs = fold(&script);
        assert_eq!(ours.values().sum::<u64>(), theirs.values().sum::<u64>(), "{kind}");
        let verbatim = shared_weight(ours.clone(), &theirs);
        let aliases = kernel_aliases();
        let ours = normalize(&ours, &aliases);
        let theirs = normalize(&fold(&without_next_functions(&script)), &aliases);
        let normalized = shared_weight(ours.clone(), &theirs);
        let samples = script.lines().filter(|line| line.is_empty()).count();
        let (verbatim_percent, percent) = (100.0 * verbatim, 100.0 * normalized);
        println!("{kind}: {samples} samples, {verbatim_percent:.2} % equal, {percent:.2} % after normalization");
        let (only_ours, only_theirs) = (list_differences(&ours, &theirs), list_differences(&theirs, &ours));
        ensure!(normalized >= least, "{kind}: {normalized}\nours:\n{only_ours}perf's:\n{only_theirs}");
        Ok(())
    });
}

/// Starts many processes, and a filter that uses the CPU.
const FILES: [&str; 3] = [
    "sh",
    "-c",
    "find /usr/lib -type f -size -200k 2>/dev/null | head -n 1000 | xargs -n 50 cat 2>/dev/null | gzip -1",
];

#[test]
fn agrees_on_stacks_by_frame_pointers() {
    check_agreement("frame pointers", &["-g", "-e", "cpu-clock", "-F", "997"], &FILES, 0.99);
    check_agreement("compressed", &["-z", "-g", "-e", "cpu-clock", "-F", "997"], &FILES, 0.99);
}

#[test]
fn agrees_on_stacks_of_the_whole_system() {
    let options = ["-a", "-g", "-e", "cpu-clock", "-F", "499"];
    check_agreement("whole system, idle", &options, &["sleep", "0.5"], 0.95);
    let busy = format!("for i in $(seq \"$(nproc)\"); do {} & done; wait", FILES[2]);
    check_agreement("whole system, busy", &options, &["sh", "-c", &busy], 0.95);
}

#[test]
fn agrees_on_copied_stacks() {
    // No process that a shell starts: perf 6.1 keeps the mappings from before execve and takes the lowest address of a
    // library. If that is the old one, stacks end at the library's first frame.
    let folder = directory();
    let file = folder.path().join("file");
    std::fs::write(&file, &std::fs::read(std::env::current_exe().unwrap()).unwrap()[..6_000_000]).unwrap();
    let command = ["gzip", "-1", "-c", file.to_str().unwrap()];
    check_agreement("copied stacks", &["--call-graph", "dwarf,16384", "-e", "cpu-clock", "-F", "497"], &command, 0.95);
}

#[test]
fn agrees_on_stacks_of_several_events() {
    check_agreement("two events", &["-g", "-e", "cpu-clock,page-faults", "-F", "997"], &FILES, 0.95);
}

#[test]
fn agrees_on_stacks_at_a_tracepoint() {
    check_agreement("tracepoint", &["-g", "-e", "syscalls:sys_enter_write"], &FILES, 0.95);
}
