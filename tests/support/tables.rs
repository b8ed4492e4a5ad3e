//! Compares the tables of fg-csv with a slow reference implementation.

use std::collections::{BTreeMap, BTreeSet};

use super::run;

/// Asserts that fg-csv's tables of a plain profile equal those of a reference that counts by names.
///
/// A function has its self weight, and the inclusive weight of all stacks that contain it, each stack counted once.
/// Percentages have 4 decimals, those of categories have 2.
pub fn assert_tables_match_reference(name: &str, folded: &[u8]) {
    let (mut self_weights, mut inclusive, mut total) = (BTreeMap::new(), BTreeMap::new(), 0);
    for line in folded.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line = String::from_utf8_lossy(line);
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let weight: u64 = weight.parse().unwrap();
        let frames: Vec<&str> = stack.split(';').collect();
        total += weight;
        *self_weights.entry(frames[frames.len() - 1].to_owned()).or_default() += weight;
        for frame in frames.into_iter().collect::<BTreeSet<_>>() {
            *inclusive.entry(frame.to_owned()).or_default() += weight;
        }
    }
    assert!(total > 0, "{name} is empty");
    let percent = |weight: u64, decimals: usize| format!("{:.decimals$}", 100.0 * weight as f64 / total as f64);
    let mut expected: Vec<(&String, u64)> = inclusive.iter().map(|(function, weight)| (function, *weight)).collect();
    expected.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    let out = run("fg-csv", ["--tsv"], folded).ok().text();
    let rows: Vec<Vec<&str>> = out.lines().map(|row| row.split('\t').collect()).collect();
    assert_eq!(rows[0].join(","), "function,self_samples,self_pct,inclusive_samples,inclusive_pct,category");
    assert_eq!(rows.len() - 1, expected.len(), "{name}");
    let mut categories: BTreeMap<&str, u64> = BTreeMap::new();
    for (row, (function, inclusive)) in rows[1..].iter().zip(expected) {
        let self_weight: u64 = self_weights.get(function).copied().unwrap_or_default();
        let numbers = [self_weight.to_string(), percent(self_weight, 4), inclusive.to_string(), percent(inclusive, 4)];
        assert_eq!((row[0], &row[1..5]), (function.as_str(), &numbers.each_ref().map(String::as_str)[..]), "{name}");
        *categories.entry(row[5]).or_default() += self_weight;
    }
    assert_eq!(self_weights.values().sum::<u64>(), total, "{name}");
    categories.retain(|_, weight| *weight > 0);
    let out = run("fg-csv", ["--summary"], folded).ok().text();
    let rows: BTreeSet<&str> = out.lines().skip(1).collect();
    let expected: Vec<String> =
        categories.iter().map(|(name, weight)| format!("{name},{weight},{}", percent(*weight, 2))).collect();
    assert_eq!(rows, expected.iter().map(String::as_str).collect(), "{name}");
}
