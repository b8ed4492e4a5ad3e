//! A profile with what pages need to name, weigh and choose its functions.

use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

use super::Missing;
use super::call_tree::{CallTree, Node};
use super::evidence::Evidence;
use super::idle::InactiveWeights;
use super::judgement::FunctionJudgement;
use super::measure::{percent, percent_change};
use super::names::Names;
use super::page::Item;
use super::pools::Pools;
use super::renamed::RenamedFrames;
use super::survey::Survey;
use super::waits::Waits;
use super::work::Work;
use crate::diagnostics::printable;
use crate::diff::Counterparts;
use crate::markers;
use crate::own_code::{Origin, Origins};
use crate::profile::{FrameId, Profile, Weight, Weights};
use crate::script_source::{source_of, without_line};

/// A profile with what is needed to name and weigh its functions.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) profile: &'a Profile,
    pub(super) origins: &'a Origins<'a>,
    pub(super) survey: &'a Survey<'a>,
    /// The kinds of work of all frames.
    pub(super) work: &'a Work,
    /// The weight of functions in stacks that do no work.
    pub(super) inactive: &'a InactiveWeights,
    /// The short names of functions.
    pub(super) names: &'a Names,
    /// The blocks of which the waker is known.
    pub(super) waits: &'a Waits,
    /// The evidence of how much weights vary.
    pub(super) evidence: &'a Evidence,
    /// The pools of threads, which call trees show as one thread each.
    pub(super) pools: &'a Pools,
    /// The judgement of all functions of a comparison.
    pub(super) judged: Option<&'a FunctionJudgement>,
    /// Names before that are compared under other names.
    pub(super) counterparts: &'a Counterparts,
    /// Functions that were probably renamed.
    pub(super) renamed: &'a RenamedFrames,
    /// The parts of the inputs that could not be read.
    pub(super) missing: Missing,
    /// The unit of weights, if the user named it.
    pub(super) unit: Option<&'a str>,
    /// True if rows are shown however small they are.
    pub(super) is_whole: bool,
    /// True if names are written whole and exactly: for programs, not for readers.
    pub(super) is_exact: bool,
    /// The option that compares shares instead of weights; `None` if weights are scaled.
    pub(super) scaling_command: Option<&'a str>,
    /// The weight of which shares are taken.
    pub(super) whole: Weights,
}

/// Tells if functions before one on a path are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Omitted {
    None,
    Some,
}

impl Omitted {
    /// Returns the item that replaces the functions that are not shown.
    pub(super) fn item(self) -> Option<Item> {
        (self == Self::Some).then(|| Item::new("…", None))
    }
}

/// The functions of libraries that a path shows below own ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Called {
    /// What each own function calls.
    Each,
    /// What the last one calls.
    Last,
}

impl Context<'_> {
    /// Returns the indices of the program's own functions on a path.
    pub(super) fn own_on_path(&self, path: &[FrameId]) -> Vec<usize> {
        let own_end = self.origins.place(path).own.map_or(0, |own| own + 1);
        let is_own = self.origins.find_own(&path[..own_end]).into_iter().enumerate();
        is_own.filter_map(|(index, is_own)| is_own.then_some(index)).collect()
    }

    /// Returns the indices of the functions of a path, root first, that say where the program is: the root, its own
    /// functions, what these call, and the leaf.
    pub(super) fn shown_on_path(&self, path: &[FrameId], called: Called) -> Vec<(usize, Omitted)> {
        let Some(leaf) = path.len().checked_sub(1) else { return Vec::new() };
        if self.is_exact {
            return (0..path.len()).map(|index| (index, Omitted::None)).collect();
        }
        let own = self.own_on_path(path);
        let mut wanted = vec![0];
        for (number, index) in own.iter().copied().enumerate() {
            let end = own.get(number + 1).copied().unwrap_or(path.len());
            if called == Called::Last && end < path.len() {
                wanted.push(index);
                continue;
            }
            let callee = self.origins.callee(&path[index + 1..end]).map(|callee| index + 1 + callee);
            wanted.push(index);
            wanted.extend(callee.filter(|callee| self.is_worth_a_step(path[*callee])));
        }
        wanted.push(leaf);
        wanted.sort_unstable();
        wanted.dedup();
        // Functions that call each other again and again are shown once.
        let mut seen = HashSet::<FrameId, FxBuildHasher>::default();
        wanted.retain(|index| seen.insert(path[*index]) || *index == leaf);
        let mut next = 0;
        let shown = wanted.into_iter().map(|index| {
            let is_gap = path[next..index].iter().any(|frame| !self.origins.is_start(*frame));
            next = index + 1;
            (index, if is_gap { Omitted::Some } else { Omitted::None })
        });
        shown.collect()
    }

    /// True for a function between two own ones that is worth a place on a path.
    fn is_worth_a_step(&self, frame: FrameId) -> bool {
        self.origins.is_function(frame) && (self.origins.says_something(frame) || self.origins.is_closed(frame))
    }

    /// Returns the path of the most weight without repeated calls, and without what only runs other functions at its
    /// end.
    pub(super) fn hot_path<'t>(&self, tree: &'t CallTree) -> Vec<&'t Node> {
        let mut path = tree.hot_path();
        path.dedup_by_key(|node| node.frame);
        // What happens inside of a system call or of the C library's functions is no path of the program.
        let frames: Vec<FrameId> = path.iter().filter_map(|node| node.frame).collect();
        let closed = self.origins.place(&frames).open;
        let is_entry = frames.get(closed).is_some_and(|frame| closed > 1 && !self.origins.says_something(*frame));
        path.truncate((closed + usize::from(!is_entry)).max(1));
        while path.len() > 1
            && let Some(leaf) = path.last()
            && leaf.frame.is_some_and(|frame| self.origins.is_run_time(frame) || self.is_state(frame))
        {
            path.pop();
        }
        path
    }

    /// Returns the names of functions of which each calls the next, without the start of processes and threads.
    pub(super) fn chain_names(&self, chain: &[FrameId]) -> Vec<String> {
        if self.is_exact {
            return self.shorten_path(chain.iter().map(|frame| self.name(*frame)).collect(), "…".to_owned());
        }
        let mut names: Vec<(FrameId, usize)> = Vec::new();
        for (index, frame) in chain.iter().enumerate() {
            match names.last_mut() {
                Some((last, count)) if last == frame => *count += 1,
                _ if index > 0 && index + 1 < chain.len() && self.origins.is_start(*frame) => {}
                _ => names.push((*frame, 1)),
            }
        }
        let names = names.into_iter().map(|(frame, count)| match count {
            1 => self.name(frame),
            _ => format!("{} ×{count}", self.name(frame)),
        });
        self.shorten_path(names.collect(), "…".to_owned())
    }

    /// Returns the source file of all own functions, if their names say that it is the same.
    pub(super) fn single_source(&self) -> Option<&str> {
        let frames = self.profile.frames.iter().map(|(frame, _)| frame);
        let own = frames.filter(|frame| self.survey.own.contains_key(frame) || self.origins.is_own_script(*frame));
        let mut sources = own.filter(|frame| self.is_own_function(*frame)).map(|frame| {
            let name = std::str::from_utf8(markers::strip_suffix(self.profile.frames.name(frame))).ok()?;
            source_of(name).map(without_line)
        });
        let first = sources.next()??;
        sources.all(|source| source == Some(first)).then_some(first)
    }

    /// True for a frame that states what the thread did.
    pub(super) fn is_state(&self, frame: FrameId) -> bool {
        markers::is_thread_state(self.profile.frames.name(frame))
    }

    /// Returns the total of a profile, or of each side of a comparison, with the samples that were lost.
    pub(super) fn all_samples(&self) -> Weights {
        let Survey { total, quality, .. } = self.survey;
        let mut all = *total;
        // The sum was read as one profile.
        if self.profile.is_differential() && all.add(quality.lost).is_err() {
            return *total;
        }
        all
    }

    /// True if there is weight of threads that ran.
    pub(super) fn has_running(&self) -> bool {
        self.survey.states.contains_key(&None)
    }

    /// Returns the name of a function as it is shown.
    pub(super) fn name(&self, frame: FrameId) -> String {
        let short = self.names.get(frame).map(str::to_owned);
        short.unwrap_or_else(|| self.name_of(self.profile.frames.name(frame)))
    }

    /// Returns a name as it is shown; JSON has its control characters, too.
    pub(super) fn name_of(&self, name: &[u8]) -> String {
        if self.is_exact { String::from_utf8_lossy(name).into_owned() } else { display_name(name) }
    }

    /// Returns a path without the functions after the first, if there are many, and `gap` in their place.
    pub(super) fn shorten_path<T>(&self, mut path: Vec<T>, gap: T) -> Vec<T> {
        let most = if self.is_exact { MAX_EXACT_PATH } else { MAX_PATH };
        if path.len() > most {
            let end = path.len() + 2 - most;
            path.splice(1..end, [gap]);
        }
        path
    }

    /// Returns the share of a weight in the total, in percent.
    pub(super) fn share(&self, weight: Weight) -> f64 {
        percent(weight, self.whole.after)
    }

    /// Returns the change in percent points of [`base`](Self::base).
    pub(super) fn change(&self, weights: Weights) -> f64 {
        percent_change(weights, self.base())
    }

    /// Returns the weight of which the shares of a comparison are taken: the total before or, if that is 0, the one after.
    pub(super) fn base(&self) -> Weight {
        self.whole.base()
    }

    /// Returns the side of [`base`](Self::base).
    pub(super) fn base_side(&self) -> &'static str {
        if self.whole.before.is_zero() { "after" } else { "before" }
    }

    /// True if a frame may name threads or a process: it is a root, and roots are not known to be functions.
    pub(super) fn is_thread(&self, frame: FrameId) -> bool {
        !self.origins.has_function_roots() && self.survey.roots.contains_key(&frame)
    }

    /// True for a function of the program's own code.
    pub(super) fn is_own_function(&self, frame: FrameId) -> bool {
        self.origins.origin(frame) == Origin::Own && !self.is_thread(frame)
    }

    /// Returns the ranks by name: rows of equal weight are in this order.
    pub(super) fn ranks(&self) -> Vec<u32> {
        self.profile.frames.ranks()
    }
}

/// Largest number of functions of a path: more do not fit on two lines.
const MAX_PATH: usize = 100;

/// Largest number of functions of a path in JSON.
const MAX_EXACT_PATH: usize = 500;

/// Returns a name as text without control characters.
pub(super) fn display_name(name: &[u8]) -> String {
    printable(&String::from_utf8_lossy(name)).replace('\t', " ")
}
