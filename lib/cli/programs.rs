//! The list of programs.

/// All programs, in the order in which man pages and documents list them.
///
/// This is the list to extend when a program is added. `Cargo.toml` must declare a binary for each entry, and a test
/// compares the two; `scripts/install` installs what is in `bins/`.
pub const PROGRAMS: [&str; 11] = [
    "fg-record",
    "fg-collapse",
    "fg-filter",
    "fg-diff",
    "fg-csv",
    "fg-check",
    "fg-report",
    "fg-bench",
    "fg-pprof",
    "fg-svg",
    "fg-heatmap",
];

#[cfg(test)]
mod tests {
    use super::PROGRAMS;

    #[test]
    fn cargo_declares_a_binary_for_each_program() {
        let manifest = include_str!("../../Cargo.toml");
        let names: Vec<&str> = manifest
            .split("[[bin]]")
            .skip(1)
            .filter_map(|table| table.lines().find_map(|line| line.strip_prefix("name = ")))
            .map(|name| name.trim_matches('"'))
            .collect();
        assert_eq!(names, PROGRAMS);
    }
}
