//! Finds the threads that run an interpreter or a virtual machine, as `python3` does: their native functions are those of the
//! run time, or of its extensions, although the stack shows no function of a script above them.

use std::sync::LazyLock;

use hashbrown::HashMap;
use regex::bytes::RegexSet;
use rustc_hash::FxBuildHasher;

use super::Origins;
use super::by_name::{Calls, INTERPRETER, Origin};
use super::run_time_names::may_be_of_run_time;
use crate::pattern_list::compile_list as patterns;
use crate::profile::is_at_least;
use crate::profile::{FrameId, Profile};

/// Patterns of the programs that run interpreters, as roots of stacks, with a version and the number of a process: those of which
/// fg-record shows the functions of scripts, and others.
static PROGRAMS: LazyLock<RegexSet> = LazyLock::new(|| {
    let end = r"[\d.]*(/\d+|-\d+(/\d+)?)?( \[\d+\])?$";
    patterns(&format!(
        "^(.*/)?(python|ruby|irb|node|nodejs|java|php|php-fpm|php-cgi){end}\n^(.*/)?(pypy|deno|bun|perl|lua|luajit|Rscript){end}"
    ))
});

/// Patterns of the libraries of interpreters, as code without a symbol is named.
static LIBRARIES: LazyLock<RegexSet> =
    LazyLock::new(|| patterns(r"^\[(libpython|libruby|libphp|libjvm|libnode|libperl|liblua)[\d.-]"));

/// Number of frames, from the root on, among which a stack has the start of its process or thread.
const START_FRAMES: usize = 4;

/// A thread runs an interpreter if this part of the weight whose start is known begins in its functions.
const MIN_STARTS: (u128, u128) = (19, 20);

/// The stacks of one root.
#[derive(Default)]
struct Root {
    /// True if a stack has a function of a script or a run time.
    has_evidence: bool,
    /// The weight of stacks that have functions of a run time, and none of the program before them.
    begins_in_run_time: u128,
    /// The weight of stacks that begin with a function of the program.
    begins_in_program: u128,
}

impl Root {
    /// True if nearly all stacks begin in the run time.
    fn begins_in_run_time(&self) -> bool {
        let all = self.begins_in_run_time.saturating_add(self.begins_in_program);
        all > 0 && is_at_least(self.begins_in_run_time, MIN_STARTS, all)
    }
}

/// The roots of the stacks of interpreters.
pub(super) struct Interpreters {
    /// True for threads that run an interpreter.
    pub(super) threads: Vec<bool>,
    /// True for those of them that have the name of an interpreter: all that they do is its work.
    pub(super) processes: Vec<bool>,
    /// True if fg-record shows the functions of the scripts that one of these processes runs.
    pub(super) can_record_scripts: bool,
}

impl Interpreters {
    /// Finds the threads of a profile that run an interpreter.
    ///
    /// The name of a process alone says nothing: a program may be called `node`. Neither do functions of a run time: a game may call
    /// them. Both together do, and stacks of which no function of a program comes before those of the run time.
    pub(super) fn find(origins: &Origins<'_>, profile: &Profile) -> Self {
        let mut roots = HashMap::<FrameId, Root, FxBuildHasher>::default();
        let _ = profile.for_each(|stack, weights| {
            let Some((first, callees)) = stack.split_first() else { return Ok::<(), ()>(()) };
            let root = roots.entry(*first).or_default();
            root.has_evidence |= callees.iter().any(|frame| is_evidence(origins, profile, *frame));
            let weight = weights.before.millionths().saturating_add(weights.after.millionths());
            let sum = match begins_in_run_time(origins, profile, callees) {
                Some(true) => &mut root.begins_in_run_time,
                Some(false) => &mut root.begins_in_program,
                None => return Ok(()),
            };
            *sum = sum.saturating_add(weight);
            Ok(())
        });
        let none = vec![false; profile.frames.len()];
        let mut found = Self { threads: none.clone(), processes: none, can_record_scripts: false };
        for (frame, root) in roots {
            let programs = PROGRAMS.matches(profile.frames.name(frame));
            let is_process = root.has_evidence && programs.matched_any();
            found.can_record_scripts |= is_process && programs.matched(0);
            found.processes[frame.index()] = is_process;
            // Where roots are no names of threads, the first function may be missing.
            found.threads[frame.index()] = is_process || origins.has_thread_names && root.begins_in_run_time();
        }
        found
    }

    /// Returns for each frame true if it is in stacks of interpreters only. Threads that an extension starts for itself are not the
    /// interpreter's.
    pub(super) fn find_only_inside(&self, origins: &Origins<'_>, profile: &Profile) -> Vec<bool> {
        let (mut inside, mut outside) = (vec![false; profile.frames.len()], vec![false; profile.frames.len()]);
        let run_time_threads = find_run_time_threads(origins, profile);
        let _ = profile.for_each(|stack, _| {
            let Some((root, callees)) = stack.split_first() else { return Ok::<(), ()>(()) };
            let is_of_extension = native_entry(origins, stack).is_some_and(|entry| !run_time_threads[entry.index()]);
            let seen = if self.threads[root.index()] && !is_of_extension { &mut inside } else { &mut outside };
            callees.iter().for_each(|frame| seen[frame.index()] = true);
            // A function may be called as a thread is.
            outside[root.index()] = true;
            Ok(())
        });
        inside.into_iter().zip(outside).map(|(inside, outside)| inside && !outside).collect()
    }
}

/// Returns for each frame true if threads that begin with it run functions of a run time.
fn find_run_time_threads(origins: &Origins<'_>, profile: &Profile) -> Vec<bool> {
    let mut found = vec![false; profile.frames.len()];
    let _ = profile.for_each(|stack, _| {
        if let Some(entry) = native_entry(origins, stack) {
            let mut below = stack.iter().skip_while(|frame| **frame != entry);
            let is_of_run_time = |frame: &FrameId| {
                let known = &origins.known[frame.index()];
                known.kind == INTERPRETER
                    || is_evidence(origins, profile, *frame)
                    || may_be_of_run_time(profile.frames.name(*frame))
            };
            found[entry.index()] |= below.any(is_of_run_time);
        }
        Ok::<(), ()>(())
    });
    found
}

/// Returns the function of the program below the start of a thread.
fn native_entry(origins: &Origins<'_>, stack: &[FrameId]) -> Option<FrameId> {
    origins.is_in_thread(stack).then_some(())?;
    let below = stack.iter().skip(1).find(|frame| !origins.is_start(**frame))?;
    (origins.origin(*below) == Origin::Own).then_some(*below)
}

/// True for a function of a script, one that runs scripts, and a library of an interpreter.
fn is_evidence(origins: &Origins<'_>, profile: &Profile, frame: FrameId) -> bool {
    let known = &origins.known[frame.index()];
    known.calls == Calls::Scripts || known.has_script_file || LIBRARIES.is_match(profile.frames.name(frame))
}

/// True if a stack has functions of a run time, and none of the program before them; `None` if it has neither, or if
/// the start of its process or thread is not in it.
fn begins_in_run_time(origins: &Origins<'_>, profile: &Profile, callees: &[FrameId]) -> Option<bool> {
    let is_start = |frame: &FrameId| origins.is_start(*frame);
    callees.iter().take(START_FRAMES).any(is_start).then_some(())?;
    let mut functions = callees.iter().filter(|frame| profile.frames.name(**frame) != b"main");
    let first = functions.find(|frame| {
        let known = &origins.known[frame.index()];
        known.origin == Origin::Own || known.calls == Calls::Scripts || known.has_script_file
    })?;
    let known = &origins.known[first.index()];
    Some(known.calls == Calls::Scripts || known.has_script_file)
}
