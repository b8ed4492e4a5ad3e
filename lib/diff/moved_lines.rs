//! Source files whose lines have moved: an edit moves all lines below it, and each would be another function.

use std::collections::{BTreeMap, BTreeSet};

use super::counterpart::{Counterpart, NamePart};
use super::line_name::LineName;
use super::sources::Functions;
use crate::profile::{Frames, Profile};
use crate::stats::sample_weight::{WeightKind, WeightOptions, WeightSurvey};

/// Fewest samples of a function on each side. Ten that are all on other lines are no chance.
const MIN_SAMPLES: f64 = 10.0;

/// Samples of a profile of durations: their number is not known.
const SAMPLES_OF_DURATIONS: f64 = 100.0;

/// Two shifts differ if the shares that they explain do: by this share, and by so many standard errors.
const MIN_DIFFERENCE: f64 = 0.1;
const STANDARD_ERRORS: f64 = 2.0;

/// The heaviest lines of a function, between which shifts are looked for.
const MOST_LINES: usize = 24;

/// The weights before and after of each line of a function.
type Lines = BTreeMap<u32, [f64; 2]>;

/// Returns the files whose lines have moved. Both sides have functions of the file with other lines, which are equal if they are
/// shifted; and no function below them has kept its lines: after an insertion, none does.
pub(super) fn find_moved_lines(before: &Functions, after: &Functions, sides: [&[Profile]; 2]) -> Vec<Counterpart> {
    let files = lines_by_file([before, after]);
    if files.is_empty() {
        return Vec::new();
    }
    let samples = sides.map(|side| sample_weight(side, sides));
    let moved = files.into_iter().filter(|(_, functions)| have_moved(functions.values(), samples));
    let counterparts =
        moved.map(|(file, _)| Counterpart { before: format!("{file}:LINE"), after: file, part: NamePart::Lines });
    counterparts.collect()
}

/// Returns the lines of the functions that both sides have with other lines, by file and name.
fn lines_by_file(sides: [&Functions; 2]) -> BTreeMap<String, BTreeMap<Vec<u8>, Lines>> {
    let mut files = BTreeMap::<String, BTreeMap<Vec<u8>, Lines>>::new();
    for (side, functions) in sides.into_iter().enumerate() {
        for (name, weight) in functions.iter() {
            let Some(found) = LineName::parse(name.as_bytes()) else { continue };
            let file = String::from_utf8_lossy(found.file).into_owned();
            let lines = files.entry(file).or_default().entry(found.plain()).or_default();
            lines.entry(found.line).or_default()[side] += weight;
        }
    }
    let has_other_lines = |lines: &Lines, side: usize| lines.values().any(|weights| weights[side] == 0.0);
    files.retain(|_, functions| {
        functions.values().any(|lines| (0..2).all(|side| has_other_lines(lines, side) && total(lines, side) > 0.0))
    });
    files
}

fn total(lines: &Lines, side: usize) -> f64 {
    lines.values().map(|weights| weights[side]).sum()
}

/// Returns the weight of a sample of a side.
fn sample_weight(side: &[Profile], sides: [&[Profile]; 2]) -> f64 {
    let (mut survey, mut frames) = (WeightSurvey::default(), Frames::new());
    for run in sides.into_iter().flatten() {
        run.measured_weights().for_each(|weights| survey.add(weights.after));
        frames.intern_all(&run.frames);
    }
    match survey.kind(&frames, WeightOptions::default()) {
        WeightKind::Samples(sample) | WeightKind::LikelySamples(sample) | WeightKind::Periods(sample) => {
            sample.as_f64()
        }
        WeightKind::Exact => 1.0,
        WeightKind::Durations => side.iter().map(|run| run.total().after.as_f64()).sum::<f64>() / SAMPLES_OF_DURATIONS,
    }
}

/// True if the lines of a file have moved. `samples` has the weight of a sample of each side.
fn have_moved<'l>(functions: impl Iterator<Item = &'l Lines>, samples: [f64; 2]) -> bool {
    let (mut moved, mut kept) = (None, None);
    for lines in functions {
        match find_shift(lines, samples) {
            Some(Shift::Moved { last }) => moved = moved.max(Some(last)),
            Some(Shift::Kept { last }) => kept = kept.max(Some(last)),
            None => {}
        }
    }
    moved.is_some() && moved > kept
}

/// A judgement of the lines of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shift {
    /// They are equal to those after if they are shifted. `last` is the last one before.
    Moved { last: u32 },
    /// They are equal as they are. `last` is the last one that both sides have.
    Kept { last: u32 },
}

/// Judges the lines of a function; `None` if either may be so.
fn find_shift(lines: &Lines, samples: [f64; 2]) -> Option<Shift> {
    let totals = [0, 1].map(|side| total(lines, side));
    let counts = [0, 1].map(|side| totals[side] / samples[side]);
    if !counts.iter().all(|count| *count >= MIN_SAMPLES) {
        return None;
    }
    let [before, after] = [0, 1].map(|side| {
        let shares = lines.iter().filter(|(_, weights)| weights[side] > 0.0);
        shares.map(|(line, weights)| (*line, weights[side] / totals[side])).collect::<BTreeMap<u32, f64>>()
    });
    let shifts: BTreeSet<i64> = heaviest(&before)
        .flat_map(|old| heaviest(&after).map(move |new| i64::from(new) - i64::from(old)))
        .filter(|shift| *shift != 0)
        .collect();
    let shifted = shifts.into_iter().map(|shift| common_share(&before, &after, shift)).fold(0.0, f64::max);
    let same = common_share(&before, &after, 0);
    let difference = MIN_DIFFERENCE + STANDARD_ERRORS * (1.0 / counts[0] + 1.0 / counts[1]).sqrt();
    if shifted >= same + difference {
        let last = *before.last_key_value()?.0;
        return Some(Shift::Moved { last });
    }
    if same < shifted + difference {
        return None;
    }
    let last = *before.keys().rev().find(|line| after.contains_key(line))?;
    Some(Shift::Kept { last })
}

/// Returns the heaviest lines of a function.
fn heaviest(shares: &BTreeMap<u32, f64>) -> impl Iterator<Item = u32> {
    let mut lines: Vec<_> = shares.iter().collect();
    lines.sort_by(|a, b| b.1.total_cmp(a.1));
    lines.into_iter().take(MOST_LINES).map(|(line, _)| *line)
}

/// Returns the share of a function that is on equal lines, if those before are shifted.
fn common_share(before: &BTreeMap<u32, f64>, after: &BTreeMap<u32, f64>, shift: i64) -> f64 {
    let shifted = |line: u32| u32::try_from(i64::from(line) + shift).ok();
    let common = before.iter().filter_map(|(line, share)| Some(after.get(&shifted(*line)?)?.min(*share)));
    common.sum()
}

#[cfg(test)]
mod tests {
    use super::{Counterpart, find_moved_lines};
    use crate::diff::sources::Functions;
    use crate::profile::{Profile, Weight, Weights};

    /// Returns the files whose lines have moved, of functions `NAME:LINE` with their weights.
    fn find(before: &[(&str, u64)], after: &[(&str, u64)]) -> Vec<String> {
        let [before, after] = [before, after].map(|functions| {
            let (mut profile, mut side) = (Profile::new(false), Functions::default());
            for (name, weight) in functions {
                let (name, line) = name.split_once(':').unwrap();
                let name = format!("{name} (app.py:{line})");
                side.add(name.clone(), *weight as f64);
                let frame = [profile.frames.intern(name.as_bytes())];
                profile.add(&frame, Weights::plain(Weight::new(*weight))).unwrap();
            }
            // One sample.
            let frame = [profile.frames.intern(b"other")];
            profile.add(&frame, Weights::plain(Weight::new(1))).unwrap();
            (side, [profile])
        });
        let found = find_moved_lines(&before.0, &after.0, [&before.1, &after.1]);
        found.into_iter().map(|Counterpart { after, .. }| after).collect()
    }

    #[test]
    fn lines_below_an_edit_have_moved() {
        for (before, after) in [
            (&[("f:9", 40)][..], &[("f:12", 50)][..]),
            // By one line.
            (&[("f:9", 50), ("f:10", 30), ("f:11", 20)], &[("f:10", 48), ("f:11", 33), ("f:12", 19)]),
            // The lines above are the same, also those of the script itself.
            (&[("f:9", 900), ("g:20", 40)], &[("f:9", 900), ("g:19", 40)]),
            (
                &[("<module>:3", 90), ("f:9", 50), ("<module>:20", 50)],
                &[("<module>:3", 90), ("f:10", 50), ("<module>:21", 50)],
            ),
        ] {
            assert_eq!(find(before, after), ["app.py"], "{before:?} {after:?}");
        }
    }

    #[test]
    fn lines_of_equal_code_stay() {
        for (before, after) in [
            (&[("f:9", 40), ("g:20", 3)][..], &[("f:9", 50), ("g:22", 4)][..]),
            (&[("f:9", 40), ("f:10", 10)], &[("f:9", 10), ("f:10", 40)]),
            // Another branch was taken: what is below did not move.
            (&[("f:9", 40), ("<module>:20", 40)], &[("f:12", 50), ("<module>:20", 50)]),
            // Only one side has the function.
            (&[("f:9", 40)], &[("g:12", 40)]),
            (&[("f:9", 40)], &[("f:9", 40), ("f:12", 40)]),
        ] {
            assert_eq!(find(before, after), [""; 0], "{before:?} {after:?}");
        }
    }
}
