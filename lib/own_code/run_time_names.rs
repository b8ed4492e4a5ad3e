//! Names that belong to a run time only where the profile shows that it runs.

use std::sync::LazyLock;

use regex::bytes::RegexSet;

use crate::pattern_list::compile;
use crate::profile::Frames;

/// The patterns of the names of each run time, and of the functions that show that it runs.
static PATTERNS: LazyLock<[RegexSet; 2]> = LazyLock::new(|| {
    let lines = include_str!("run_time_names.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (names, evidence): (Vec<_>, Vec<_>) = lines.filter_map(|line| line.split_once("  ")).unzip();
    [names, evidence].map(compile)
});

/// The run times that no function of a profile shows.
pub(super) struct AbsentRunTimes {
    is_absent: Vec<bool>,
}

impl AbsentRunTimes {
    /// Finds the run times that none of the frames shows.
    pub(super) fn find(frames: &Frames) -> Self {
        let [names, evidence] = &*PATTERNS;
        let mut is_absent = vec![true; names.len()];
        for (_, name) in frames.iter() {
            evidence.matches(name).into_iter().for_each(|index| is_absent[index] = false);
        }
        Self { is_absent }
    }

    /// True for a name that only functions of absent run times have.
    pub(super) fn have(&self, name: &[u8]) -> bool {
        let [names, _] = &*PATTERNS;
        let mut found = names.matches(name).into_iter().peekable();
        found.peek().is_some() && found.all(|index| self.is_absent[index])
    }
}

/// True for a name of a function of any run time, if it runs.
pub(crate) fn may_be_of_run_time(name: &[u8]) -> bool {
    PATTERNS.iter().any(|patterns| patterns.is_match(name))
}
