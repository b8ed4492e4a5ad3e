//! Where a comparison grew: the path to the functions of the program whose growth counts.

use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

use super::call_tree::{CallTree, Node};
use super::context::{Called, Context};
use super::idle::{Inactivity, InactivityFinder};
use super::measure::Measure;
use super::page::{Fact, Item, Number, PathLines, Value};
use crate::Error;
use crate::profile::is_at_least;
use crate::profile::{FrameId, Profile, Weight, Weights};

/// The function that explains most of the growth is named at the end of the path if it has this part of it.
const LEADING_PART: (u128, u128) = (1, 2);

/// If less than this part of the growth of a path is net growth, the weight has only moved there.
const LEAST_NET_PART: (u128, u128) = (1, 10);

/// The functions that grew.
pub(super) struct Grown {
    /// Own functions, the largest growth first.
    pub(super) own: Vec<(FrameId, Weights)>,
    /// The function that grew with all that it calls, if none grew by itself.
    pub(super) inclusive: Option<FrameId>,
    /// True if some do more than wait for the end of others.
    pub(super) has_work: bool,
}

/// Returns the path from the root to where the growth divides, and the function that has most of it. Only stacks count whose own
/// function grew by more than noise: the rest would lead to threads of run times and to chance. Who waits for the end of a thread or
/// process that grew is not on the path to it. `None` if weight only moved from one path to another.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn path(context: &Context<'_>, profile: &Profile, grown: &Grown) -> Result<Option<Fact>, Error> {
    let counted = Counted::find(context, profile, grown)?;
    let tree = CallTree::new(&counted.leading, Measure::Growth)?;
    let mut path = context.hot_path(&tree);
    let sums = PathSums::new(&counted, profile, &frames_of(&path))?;

    let leading = grown.own.first().filter(|(frame, weights)| {
        let growth = growth(*weights);
        path.iter().all(|node| node.frame != Some(*frame))
            && (is_at_least(growth, LEADING_PART, sums.total) || growth > sums.net_growth(path.len()))
    });
    let end = match leading {
        // What it is called by tells more than the functions of libraries between.
        Some(_) => context.own_on_path(&frames_of(&path)).last().copied(),
        None => last_own_above_others(context, &tree, &path),
    };
    path.truncate(end.map_or(if leading.is_some() { 1 } else { path.len() }, |end| end + 1));
    if path.is_empty() {
        return Ok(None);
    }
    let net = sums.net_growth(path.len());
    let is_little = net == 0 || grown.own.is_empty() && !is_at_least(net, LEAST_NET_PART, sums.all[path.len() - 1]);
    if leading.is_none() && is_little {
        return Ok(None);
    }
    let net = (net > 0).then(|| Weights { before: Weight::ZERO, after: Weight::from_millionths(net) });

    let frames = frames_of(&path);
    let mut items: Vec<Item> = Vec::new();
    for (index, omitted) in context.shown_on_path(&frames, Called::Last) {
        items.extend(omitted.item());
        let number = net.filter(|_| index + 1 == frames.len()).map(|net| Number::Change(context.change(net)));
        items.push(Item::new(context.name(frames[index]), number));
    }
    if let Some((frame, weights)) = leading {
        items.push(Item::new("…", None));
        items.push(Item::new(context.name(*frame), Some(Number::Change(context.change(*weights)))));
    }
    Ok(Some(Fact::new("grew at", Value::Path(context.shorten_path(items, Item::new("…", None)), PathLines::Two))))
}

/// The stacks whose own function is one that grew.
struct Counted {
    /// Those by which the path is found.
    leading: Profile,
    /// All stacks of these own functions, if these are more.
    all: Option<Profile>,
}

impl Counted {
    fn find(context: &Context<'_>, profile: &Profile, grown: &Grown) -> Result<Self, Error> {
        let finder = InactivityFinder::new(&profile.frames, context.origins, context.work);
        let is_left_out = |stack: &[FrameId]| {
            grown.has_work && matches!(finder.find(&profile.frames, stack), Some(Inactivity::Idle | Inactivity::Join))
        };
        let own_function = |stack: &[FrameId]| stack[context.origins.place(stack).own.unwrap_or(0)];
        let select = |is_selected: &dyn Fn(&[FrameId]) -> bool| {
            let mut selected = Profile::new(profile.is_differential());
            selected.frames.intern_all(&profile.frames);
            profile.for_each(|stack, weights| match is_selected(stack) && !is_left_out(stack) {
                true => selected.add(stack, weights),
                false => Ok(()),
            })?;
            Ok::<Profile, Error>(selected)
        };
        let mut own: HashSet<FrameId, FxBuildHasher> = grown.own.iter().map(|(frame, _)| *frame).collect();
        let below = grown.inclusive.filter(|_| own.is_empty());
        let leading = match below {
            Some(function) => select(&|stack| stack.contains(&function))?,
            None => select(&|stack| own.contains(&own_function(stack)))?,
        };
        let all = match below {
            Some(_) => {
                leading.for_each(|stack, _| {
                    own.insert(own_function(stack));
                    Ok::<(), Error>(())
                })?;
                Some(select(&|stack| own.contains(&own_function(stack)))?)
            }
            None => None,
        };
        Ok(Self { leading, all })
    }

    fn stacks(&self) -> &Profile {
        self.all.as_ref().unwrap_or(&self.leading)
    }
}

/// The growth of the stacks that begin with a path, up to each of its functions, in millionths.
struct PathSums {
    /// For all stacks.
    all: Vec<u128>,
    /// For those whose own function is one that grew.
    counted: Vec<u128>,
    /// The same of all paths.
    total: u128,
}

impl PathSums {
    fn new(counted: &Counted, profile: &Profile, path: &[FrameId]) -> Result<Self, Error> {
        let sum_up = |profile: &Profile| {
            let mut sums = vec![Weights::default(); path.len()];
            profile.for_each(|stack, weights| {
                let mut stack = stack.to_vec();
                // As in a path, a function that calls itself is one.
                stack.dedup();
                let common = stack.iter().zip(path).take_while(|(frame, of_path)| frame == of_path).count();
                sums[..common].iter_mut().try_for_each(|sum| sum.add(weights))
            })?;
            Ok::<Vec<u128>, Error>(sums.into_iter().map(growth).collect())
        };
        let stacks = counted.stacks();
        Ok(Self { all: sum_up(profile)?, counted: sum_up(stacks)?, total: growth(stacks.total()) })
    }

    /// Returns the net growth at the end of the first functions of the path: without the weight that these functions had on other paths
    /// before, and without what others below the end lost.
    fn net_growth(&self, length: usize) -> u128 {
        let of_path = self.counted[..length].iter().chain(self.all[..length].last());
        of_path.fold(self.total, |least, growth| least.min(*growth))
    }
}

/// Returns the index of the last own function of a path that ends in a function of a library, through which it calls other own ones.
fn last_own_above_others(context: &Context<'_>, tree: &CallTree, path: &[&Node]) -> Option<usize> {
    let own = context.own_on_path(&frames_of(path)).last().copied().filter(|own| own + 1 < path.len())?;
    let is_own = |frame: &FrameId| context.is_own_function(*frame);
    tree.children(path.last()?).any(|child| tree.chain(child).iter().any(is_own)).then_some(own)
}

fn growth(weights: Weights) -> u128 {
    weights.after.saturating_sub(weights.before).millionths()
}

fn frames_of(path: &[&Node]) -> Vec<FrameId> {
    path.iter().filter_map(|node| node.frame).collect()
}
