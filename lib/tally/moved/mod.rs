//! Functions whose inclusive weight changed only because they are wrapped around calls, at equal cost.
//!
//! If a call is put into a new function, this function has all the weight of what it calls, and nothing costs more. The same is true
//! of a wrapper that is gone. Such a change is a move if
//!
//! - the function is on one side only, or has at most [`TRACE`] of its weight on the other;
//! - these are functions of the program. All code calls the same functions of libraries and of the kernel;
//! - their weight elsewhere changed the opposite way, by a one-sided test at the error rate of all judgements, and by
//!   [`LEAST_PART`] of what they gained in the function: code that is new and costs more calls what others call as before;
//! - the same functions of the same thread or program call them as before, if one does not count functions on one side only, and hardly
//!   without the wrapper. If another function, request or thread has the cost now, it has grown; and of calls beside others, some may
//!   be new, while all others became fewer in the same time;
//! - the rest of the function did not change by more than noise;
//! - all that it calls changed by at most [`EQUAL_PART`] of what moved and twice the error of counting, or one of these functions
//!   changed by itself, and is said to.
//!
//! New code in a recursive function, which calls it again, cannot be told from a wrapper: there are no moves in recursive functions.
//! Where threads are recorded that do not run, the total is fixed, and what waits in one place waits less in another: there are no
//! moves.

mod nodes;
mod own;
mod sums;

use rustc_hash::FxHashSet;

use self::nodes::{Nodes, Sides, without_nested};
use self::own::find_own;
use self::sums::{Sums, difference};
use super::{Judgement, Row, is_significant};
use crate::Error;
use crate::markers::{is_marker, is_thread_state};
use crate::profile::{FrameId, Frames};
use crate::stats::false_discovery::FALSE_DISCOVERY_RATE;
use crate::stats::judgement::Observation;

/// A function calls another one hardly on one side if it has at most this part of the weight of the other side there. If less than this
/// part of a function's weight moved, it takes no part: what is left elsewhere varies by as much.
const HARDLY: f64 = 0.1;

/// The weight elsewhere changed by at least this part of the weight that moved. A function that moves may be up to four times
/// slower then.
const LEAST_PART: f64 = 0.25;

/// A function is on one side only if it has at most this part of its weight on the other.
const TRACE: f64 = 0.01;

/// The cost of calls that moved is equal if the difference is at most this part of it, beside the error of counting.
const EQUAL_PART: f64 = 0.1;

/// Callees with less than this part of the largest one's weight are not named.
const NAMED_PART: f64 = 0.05;

/// A function on one side only, which is wrapped around calls of functions that both sides have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The caller.
    pub caller: FrameId,
    /// The outermost of the functions that it calls, the largest first, without small ones.
    pub callees: Vec<FrameId>,
    /// True if it calls them on the side after, false if it did on the side before.
    pub is_new: bool,
    /// True if the callees cost as much as before.
    pub is_equal: bool,
}

/// A function that may have a move.
struct Candidate {
    caller: FrameId,
    /// All callees, the largest first.
    callees: Vec<FrameId>,
    /// Number of those that are worth a name.
    named: usize,
    is_new: bool,
}

/// The functions of a comparison with their chances.
#[derive(Clone, Copy)]
pub struct JudgedFunctions<'a> {
    /// Self and inclusive weight of each function.
    pub rows: &'a [Row],
    /// Chances of the changes of both.
    pub chances: &'a [Vec<f64>],
    /// The judgement of which they are part.
    pub judgement: &'a Judgement,
    /// The frames of all rows.
    pub frames: &'a Frames,
}

/// Returns the functions whose inclusive weight changed beyond noise only because calls moved. `stacks` returns all stacks of the
/// comparison, and `observe` their weights in each run. They are not called if no inclusive weight changed.
///
/// # Errors
/// Those of `stacks` and `observe`, and [`Error::Overflow`].
pub fn find_moves(
    functions: JudgedFunctions<'_>,
    stacks: impl FnOnce() -> Result<Vec<Row>, Error>,
    observe: impl FnOnce(&[Row]) -> Result<Vec<Vec<Observation>>, Error>,
) -> Result<Vec<Move>, Error> {
    let frames = functions.frames;
    if functions.rows.iter().any(|row| is_thread_state(frames.name(row.frames[0]))) {
        return Ok(Vec::new());
    }
    let changed =
        |(row, chances): &(&Row, &Vec<f64>)| is_significant(chances[1]) && !is_marker(frames.name(row.frames[0]));
    let changed: Vec<&Row> = functions.rows.iter().zip(functions.chances).filter(changed).map(|(row, _)| row).collect();
    if changed.is_empty() {
        return Ok(Vec::new());
    }
    let stacks = stacks()?;
    let roots: FxHashSet<FrameId> = stacks.iter().filter_map(|stack| stack.frames.first().copied()).collect();
    let nodes = Nodes::new(&stacks);
    let inclusive = inclusive_weights(functions, &find_own(frames, &stacks)?);
    let changed =
        changed.into_iter().filter(|row| !roots.contains(&row.frames[0]) && is_on_one_side(Sides::new(row.weights[1])));
    let candidates: Vec<Candidate> =
        changed.filter_map(|row| find_candidate(row, &nodes, &stacks, &inclusive)).collect();
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let observed = observe(&stacks)?;
    let Some(nothing) = observed.iter().flatten().next().map(|first| first.without(first)) else {
        return Ok(Vec::new());
    };
    let is_one_sided = find_one_sided(functions);
    let sums = Sums { nodes: &nodes, stacks: &stacks, observed: &observed, nothing, is_one_sided };
    Ok(candidates.into_iter().filter_map(|candidate| judge(candidate, functions, &sums)).collect())
}

/// Returns for each frame true if its function is on one side only.
fn find_one_sided(functions: JudgedFunctions<'_>) -> Vec<bool> {
    let mut is_one_sided = vec![false; functions.frames.len()];
    for row in functions.rows {
        is_one_sided[row.frames[0].index()] = is_on_one_side(Sides::new(row.weights[1]));
    }
    is_one_sided
}

fn is_on_one_side(weights: Sides) -> bool {
    weights.before.min(weights.after) <= TRACE * weights.before.max(weights.after)
}

/// Makes the changes of inclusive weight that are moves insignificant.
pub fn set_moves_aside(moves: &[Move], rows: &[Row], chances: &mut [Vec<f64>]) {
    for (row, chances) in rows.iter().zip(chances) {
        if moves.iter().any(|one| one.caller == row.frames[0]) {
            chances[1] = 1.0;
        }
    }
}

/// Returns the inclusive weights of the program's functions by frame; 0 for all other frames.
fn inclusive_weights(functions: JudgedFunctions<'_>, is_own: &[bool]) -> Vec<Sides> {
    let mut inclusive = vec![Sides::default(); is_own.len()];
    for row in functions.rows {
        let frame = row.frames[0].index();
        if is_own[frame] {
            inclusive[frame] = Sides::new(row.weights[1]);
        }
    }
    inclusive
}

/// Returns a function with what it calls on one side only, if others had the weight of these callees on the other side; `None` if
/// there is nothing.
fn find_candidate(row: &Row, nodes: &Nodes, stacks: &[Row], inclusive: &[Sides]) -> Option<Candidate> {
    let (caller, change) = (row.frames[0], row.weights[1]);
    let is_new = change.after > change.before;
    // The side on which the caller has more, and the other one.
    let sort = |sides: Sides| if is_new { (sides.after, sides.before) } else { (sides.before, sides.after) };
    let ranges = nodes.outermost(&[caller]);
    let mut is_called = vec![false; inclusive.len()];
    let below = nodes.weights_below(&ranges);
    // New code in a recursive function, which calls it again, looks like a wrapper.
    let mut is_recursive = false;
    nodes.for_each_stack(&ranges, &[], |stack| {
        let mut above = stacks[stack].frames.iter().take_while(|frame| **frame != caller);
        is_recursive |= above.any(|frame| below.contains_key(frame));
    });
    if is_recursive {
        return None;
    }
    for (frame, weights) in below {
        let (more, less) = sort(weights);
        let elsewhere = sort(inclusive[frame.index()]).1 - less;
        is_called[frame.index()] =
            less <= HARDLY * more && elsewhere >= LEAST_PART * more && more >= HARDLY * elsewhere;
    }
    is_called[caller.index()] = false;
    let callees = nodes.outermost_below(&ranges, |frame| is_called[frame.index()]);
    let mut callees: Vec<(FrameId, f64)> =
        callees.into_iter().map(|(frame, weights)| (frame, sort(weights).0)).collect();
    callees.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let largest = callees.first()?.1;
    let named = callees.iter().filter(|(_, weight)| *weight >= NAMED_PART * largest).count();
    let callees = callees.into_iter().map(|(frame, _)| frame).collect();
    Some(Candidate { caller, callees, named, is_new })
}

/// Returns the candidate if it is a move.
fn judge(mut candidate: Candidate, functions: JudgedFunctions<'_>, sums: &Sums<'_>) -> Option<Move> {
    let JudgedFunctions { judgement, .. } = functions;
    let of_caller = sums.nodes.outermost(&[candidate.caller]);
    let of_callees = sums.nodes.outermost(&candidate.callees);
    let all = sums.of(&of_callees, &[]);
    let by_caller = sums.by_caller(&of_callees, &candidate);
    let elsewhere = sums.of(&without_nested(of_callees, &of_caller), &[candidate.caller]);
    let (rise, fall) = (difference(&all.without(&elsewhere)), difference(&elsewhere));
    let is_moved = rise * fall < 0.0 && fall.abs() >= LEAST_PART * rise.abs();
    if !is_moved || judgement.p_value(&elsewhere, None) / 2.0 > FALSE_DISCOVERY_RATE {
        return None;
    }
    let changed = |sum: &Observation| is_significant(judgement.chance_of_group(sum, None));
    if changed(&sums.of(&of_caller, &candidate.callees)) {
        return None;
    }
    let is_equal = !has_changed(&candidate, functions);
    let (wrapped, beside) = by_caller.values().map(|calls| calls.on_side(candidate.is_new)).fold((0.0, 0.0), add);
    if beside > HARDLY * wrapped {
        return None;
    }
    // What one caller has more another one has less, so that half of the differences moved between callers.
    let between_callers: f64 = by_caller.values().map(|calls| difference(&calls.all).abs()).sum();
    let between_callers = between_callers - difference(&all).abs();
    let noise: f64 = by_caller.values().map(|calls| judgement.counting_error(&calls.all)).sum();
    let least = EQUAL_PART * rise.abs();
    if between_callers / 2.0 > least + noise {
        return None;
    }
    let is_other_cost = difference(&all).abs() > least + 2.0 * judgement.counting_error(&all);
    if is_equal && (is_other_cost || candidate.callees.len() > 1 && changed(&all)) {
        return None;
    }
    let Candidate { caller, is_new, .. } = candidate;
    candidate.callees.truncate(candidate.named);
    Some(Move { caller, callees: candidate.callees, is_new, is_equal })
}

/// True if one of the callees changed by more than noise.
fn has_changed(candidate: &Candidate, functions: JudgedFunctions<'_>) -> bool {
    let mut rows = functions.rows.iter().zip(functions.chances);
    rows.any(|(row, chances)| {
        candidate.callees.contains(&row.frames[0]) && chances.iter().any(|chance| is_significant(*chance))
    })
}

fn add(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    (one.0 + other.0, one.1 + other.1)
}

#[cfg(test)]
mod tests {
    use super::{JudgedFunctions, find_moves};
    use crate::profile::{Profile, Weight, Weights};
    use crate::stats::judgement::Design;
    use crate::stats::sample_weight::WeightKind;
    use crate::tally::{GroupBy, Judgement, observe_sum, observe_sums, tally_profile};

    /// Stacks with their weights before and after.
    type Lines = &'static [(&'static str, u64, u64)];

    /// Returns the moves of a comparison with one run a side, beside equal functions, as text.
    fn moves(lines: Lines) -> Vec<String> {
        let mut profile = Profile::new(true);
        let equal = ["m;a", "m;b", "m;c", "m;d", "m;b;e", "background;f"].map(|stack| (stack, 400, 400));
        for (stack, before, after) in equal.iter().chain(lines) {
            let stack: Vec<_> = stack.split(';').map(|name| profile.frames.intern(name.as_bytes())).collect();
            profile.add(&stack, Weights { before: Weight::new(*before), after: Weight::new(*after) }).unwrap();
        }
        let rows = tally_profile(&profile, GroupBy::Function).unwrap();
        let design = Design::of_sums(WeightKind::Samples(Weight::ONE), 1.0);
        let total = observe_sum(profile.total());
        let judgement = Judgement::new(&rows, &profile.frames, &observe_sums(&rows), &total, design).unwrap();
        let functions = JudgedFunctions {
            rows: &rows,
            chances: &judgement.chances,
            judgement: &judgement,
            frames: &profile.frames,
        };
        let stacks = || tally_profile(&profile, GroupBy::Stack);
        let found = find_moves(functions, stacks, |stacks| Ok(observe_sums(stacks))).unwrap();
        let name = |frame| String::from_utf8_lossy(profile.frames.name(frame)).into_owned();
        let text = found.iter().map(|one| {
            let callees: Vec<String> = one.callees.iter().map(|callee| name(*callee)).collect();
            let (side, cost) =
                (if one.is_new { "now" } else { "before" }, if one.is_equal { "equal" } else { "other" });
            format!("{} {side} {} {cost}", name(one.caller), callees.join(","))
        });
        text.collect()
    }

    #[test]
    fn what_others_call_at_equal_cost_moved() {
        let moved: [(Lines, &[&str]); 6] = [
            // Wrapped, and a wrapper around several functions.
            (&[("m;r", 400, 0), ("m;r;s", 800, 0), ("m;w;r", 0, 410), ("m;w;r;s", 0, 790)], &["w now r equal"]),
            (&[("m;r", 500, 0), ("m;q", 300, 0), ("m;w;r", 0, 490), ("m;w;q", 0, 310)], &["w now r,q equal"]),
            // A wrapper that is gone; two around each other.
            (&[("m;w;r", 800, 0), ("m;r", 0, 810)], &["w before r equal"]),
            (&[("m;r", 800, 0), ("m;v;w;r", 0, 790)], &["v now r equal", "w now r equal"]),
            // Wrapped and slower: that is growth of what was wrapped.
            (&[("m;r", 600, 0), ("m;w;r", 0, 1200)], &["w now r other"]),
            // The wrapper is recursive, and what it calls is called by others as well.
            (&[("m;r", 500, 10), ("m;w;w;r", 0, 500), ("m;b;r", 200, 200)], &["w now r equal"]),
        ];
        for (lines, expected) in moved {
            let mut found = moves(lines);
            found.sort();
            assert_eq!(found, expected, "{lines:?}");
        }
    }

    #[test]
    fn what_costs_more_did_not_move() {
        let grown: [Lines; 14] = [
            // What is called costs a quarter more.
            &[("m;r", 1000, 250), ("m;w;r", 0, 1000)],
            // All code calls functions of libraries and of the kernel, and all waits end in the same functions.
            &[("m;a;memcpy", 1000, 500), ("m;w;memcpy", 0, 500)],
            &[("m;cond_wait_[k];futex_wait_[k]", 3000, 1900), ("m;a;pthread_mutex_lock;futex_wait_[k]", 0, 1100)],
            // Calls through a wrapper beside others: some may be new.
            &[("m;r", 900, 450), ("m;w;r", 0, 440)],
            // A function that both sides have.
            &[("m;r", 900, 10), ("m;w;r", 20, 900)],
            // New code in a recursive function.
            &[("m;eval;x", 900, 500), ("m;eval;w;eval;x", 0, 400)],
            // Another thread does the work now, or another function.
            &[("background;flush;r", 800, 0), ("m;w;r", 0, 800)],
            &[("m;a;f", 90, 90), ("m;c;g", 90, 90), ("m;a;f;r", 700, 0), ("m;c;g;r", 0, 690)],
            &[("m;a;wait", 900, 300), ("m;c;w;wait", 0, 600)],
            // New code that calls what others call as before.
            &[("m;r", 600, 600), ("m;w;r", 0, 600)],
            // The wrapper has a cost of its own.
            &[("m;r", 600, 0), ("m;w", 0, 500), ("m;w;r", 0, 600)],
            // A function that calls more of what it called before, while another one calls less of it.
            &[("m;b;e;r", 300, 900), ("m;d;r", 900, 300)],
            // What was wrapped is ten times as slow.
            &[("m;r", 100, 0), ("m;w;r", 0, 1000)],
            // A little of what is called everywhere.
            &[("m;r", 9000, 8000), ("m;w;r", 0, 300)],
        ];
        for lines in grown {
            assert_eq!(moves(lines), [""; 0], "{lines:?}");
        }
    }
}
