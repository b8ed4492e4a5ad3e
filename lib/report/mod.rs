//! One page of text about a profile: where its weight is, or what changed between two.
//!
//! A page is made in three steps. `Survey` sums up the profile in one pass, and
//! `CallTree` keeps its large branches. `plain`, `change` and `focus` choose what is worth a line and
//! return a `Page` of facts, tables and commands. `text`, `markdown` and `json` write it.
//!
//! Weight is charged to the program's own functions: what a library or the kernel does on behalf of a function counts
//! for it (see `own_code`). A stack therefore counts for one own function only, and their weights add up to the total.

mod budget;
mod call_tree;
mod change;
mod commands;
mod context;
mod evidence;
mod facts;
mod focus;
mod json;
mod judgement;
mod markdown;
mod measure;
mod own_code;
mod page;
mod plain;
mod survey;
mod tables;
mod text;
mod waits;

pub use text::TextStyle;

use self::commands::Commands;
use self::context::Context;
use self::evidence::Evidence;
use self::judgement::FunctionJudgement;
use self::own_code::Origins;
use self::page::Page;
use self::survey::Survey;
use self::waits::Waits;
use crate::Error;
use crate::csv::Categories;
use crate::diff::ComparedRuns;
use crate::filter::FrameMatcher;
use crate::profile::Profile;
use crate::stats::sample_weight::WeightOptions;

/// The options of a report.
#[derive(Debug)]
pub struct Options {
    /// Number of lines of the page.
    pub lines: usize,
    /// Report on the functions that match: their callers and callees.
    pub focus: Option<FrameMatcher>,
    /// The program's own functions; by default those that are in no known library.
    pub own: Option<FrameMatcher>,
    /// Rules for the categories of functions.
    pub categories: Categories,
    /// The options for the kind of weights of a profile.
    pub weights: WeightOptions,
}

/// The format of a report.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// Lines of a limited width.
    Text(TextStyle),
    /// Markdown.
    Markdown,
    /// A JSON object.
    Json,
}

/// The subject of a report.
#[derive(Debug)]
pub enum Subject {
    /// A profile, or a comparison that was read.
    Profile(Profile),
    /// The runs of two sides.
    Runs(ComparedRuns),
}

/// The inputs as the report names them.
#[derive(Clone, Debug)]
pub enum Inputs {
    /// The files of one profile, or a comparison that was read.
    Files(Vec<String>),
    /// The files of the runs before and after.
    Runs(Vec<String>, Vec<String>),
}

/// Returns the report on a profile, or on a comparison of two.
///
/// # Errors
/// [`Error::Overflow`], and [`Error::Invalid`] if the profile is empty, a side of a comparison has no weight, or no function
/// matches the focus.
///
/// # Example
/// ```
/// use fgkit::{csv::Categories, profile::{Profile, Weight, Weights}, report};
/// let mut profile = Profile::new(false);
/// let stack = [profile.frames.intern(b"main"), profile.frames.intern(b"memmove")];
/// profile.add(&stack, Weights::plain(Weight::new(5)))?;
/// let categories = Categories::load(None)?;
/// let options = report::Options { lines: 40, focus: None, own: None, categories, weights: Default::default() };
/// let inputs = report::Inputs::Files(vec!["app.folded".to_owned()]);
/// let text = report::report(report::Subject::Profile(profile), &inputs, options, report::Format::Markdown)?;
/// assert!(text.contains("| 100.0% | `main` | `memmove` 100.0% |"));
/// # Ok::<(), fgkit::Error>(())
/// ```
pub fn report(subject: Subject, inputs: &Inputs, mut options: Options, format: Format) -> Result<String, Error> {
    let (mut profile, mut evidence) = match subject {
        Subject::Profile(profile) => (profile, Evidence::Sums(options.weights)),
        Subject::Runs(compared) => Evidence::of_runs(compared)?,
    };
    check_weight(&profile)?;
    let judged = if profile.is_differential() { Some(FunctionJudgement::new(&profile, &evidence)?) } else { None };
    let waits = Waits::take_from(&mut profile)?;
    evidence.remove_wakers()?;
    profile.presort(crate::parallel::cores());
    let origins = Origins::new(&profile.frames, &options.categories, options.own.take());
    let survey = Survey::new(&profile, &origins)?;
    let context = Context {
        profile: &profile,
        origins: &origins,
        survey: &survey,
        waits: &waits,
        evidence: &evidence,
        judged: judged.as_ref(),
        whole: survey.total,
    };
    let page = page(&context, inputs, options.focus, options.lines)?;
    Ok(match format {
        Format::Text(style) => text::render(&page, style),
        Format::Markdown => markdown::render(&page),
        Format::Json => json::render(&page),
    })
}

fn page(context: &Context<'_>, inputs: &Inputs, focus: Option<FrameMatcher>, lines: usize) -> Result<Page, Error> {
    let (names, [before, after]) = match inputs {
        Inputs::Files(names) => (names.clone(), ["before".to_owned(), "after".to_owned()]),
        Inputs::Runs(before, after) => (vec!["comparison".to_owned()], [before.join(" + "), after.join(" + ")]),
    };
    let commands = Commands::new(inputs);
    match focus {
        Some(mut focus) => focus::page(context, &mut focus, &names, lines),
        None if context.profile.is_differential() => change::page(context, &commands, [&before, &after], lines),
        None => plain::page(context, &commands, &names, lines),
    }
}

/// Checks that there is something to report.
fn check_weight(profile: &Profile) -> Result<(), Error> {
    let total = profile.total();
    if total.after.is_zero() && total.before.is_zero() {
        return Err(Error::Invalid("the profile is empty: there is nothing to report".to_owned()));
    }
    if profile.is_differential() && (total.before.is_zero() || total.after.is_zero()) {
        let side = if total.before.is_zero() { "before" } else { "after" };
        return Err(Error::Invalid(format!("the total weight {side} is 0: there is nothing to compare")));
    }
    Ok(())
}
