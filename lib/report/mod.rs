//! One page of text about a profile: where its weight is, or what changed between two.
//!
//! A page is made in three steps. `Survey` sums up the profile in one pass, and
//! `CallTree` keeps its large branches. `plain`, `change` and `focus` choose what is worth a line and
//! return a `Page` of facts, tables and commands. `text`, `markdown` and `json` write it.
//!
//! Weight is charged to the program's own functions: what a library or the kernel does on behalf of a function counts
//! for it (see `own_code/`). A stack therefore counts for one own function only, and their weights add up to the total.

mod below;
mod budget;
mod call_tree;
mod callers;
mod change;
mod columns;
mod commands;
mod context;
mod details;
mod evidence;
mod facts;
mod fit;
mod focus;
mod growth;
mod idle;
mod json;
mod judgement;
mod lines;
mod lost;
mod markdown;
mod measure;
mod missing_callers;
mod names;
mod overview;
mod page;
mod plain;
mod pools;
mod quality;
mod renamed;
mod survey;
mod tables;
mod text;
mod totals;
mod unexplained;
mod waits;
mod wakes;
mod work;
mod wrappers;

pub use commands::Repeated;
pub use text::TextStyle;

use self::commands::Commands;
use self::context::Context;
use self::evidence::Evidence;
use self::idle::InactiveWeights;
use self::judgement::FunctionJudgement;
use self::lost::Lost;
use self::names::Names;
use self::page::Page;
use self::pools::Pools;
use self::renamed::RenamedFrames;
use self::survey::Survey;
use self::waits::Waits;
use self::work::Work;
use crate::Error;
use crate::csv::Categories;
use crate::diff::ComparedRuns;
use crate::filter::FrameMatcher;
use crate::own_code::Origins;
use crate::profile::{Profile, Weights};
use crate::stats::sample_weight::WeightOptions;
use crate::tally;

/// Lines of the smallest page that is laid out.
const LEAST_LINES: usize = 10;

/// Lines of a page whose tables have all rows.
const UNLIMITED: usize = 10_000_000;

/// Most columns of the name of an input.
const MOST_OF_FILE: usize = 60;

/// Number of inputs that a page names.
const NAMED_INPUTS: usize = 3;

/// The options of a report.
#[derive(Debug)]
pub struct Options {
    /// Number of lines of the page; `None` for one whose tables have all rows.
    pub lines: Option<usize>,
    /// Report on the functions that match: their callers and callees.
    pub focus: Option<FrameMatcher>,
    /// The program's own functions; by default those that are in no known library.
    pub own: Option<FrameMatcher>,
    /// Rules for the categories of functions.
    pub categories: Categories,
    /// Compare names as they are: look for no functions that were renamed.
    pub exact_names: bool,
    /// The options for the kind of weights of a profile.
    pub weights: WeightOptions,
    /// The unit of weights; by default microseconds if there are thread states, else samples.
    pub count_name: Option<String>,
    /// The parts of the inputs that could not be read.
    pub missing: Missing,
    /// The options that the commands of the page repeat.
    pub repeated: Repeated,
}

/// The parts of the inputs that the profile lacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Missing {
    /// Number of malformed lines of a profile, or of a comparison that was read.
    pub lines: u64,
    /// Number of malformed lines of the runs before and after.
    pub lines_of_sides: [u64; 2],
    /// True if an input could not be read.
    pub has_inputs: bool,
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
/// [`Error::Overflow`], and [`Error::Invalid`] if the profile is empty, its differences were judged before, or no function
/// matches the focus.
///
/// # Example
/// ```
/// use fgkit::{csv::Categories, profile::{Profile, Weight, Weights}, report};
/// let mut profile = Profile::new(false);
/// let stack = [profile.frames.intern(b"main"), profile.frames.intern(b"memmove")];
/// profile.add(&stack, Weights::plain(Weight::new(5)))?;
/// let categories = Categories::load(None)?;
/// let options = report::Options {
///     lines: Some(40), focus: None, own: None, categories, weights: Default::default(), count_name: None, missing: Default::default(),
///     repeated: Default::default(), exact_names: false,
/// };
/// let inputs = report::Inputs::Files(vec!["app.folded".to_owned()]);
/// let text = report::report(report::Subject::Profile(profile), &inputs, options, report::Format::Markdown)?;
/// assert!(text.contains("| 100.0% | `main` | `memmove` 100.0% (`copying`) |"));
/// # Ok::<(), fgkit::Error>(())
/// ```
pub fn report(subject: Subject, inputs: &Inputs, mut options: Options, format: Format) -> Result<String, Error> {
    let renamed::Found { subject, functions: renamed, mut counterparts } = renamed::find(subject, &options)?;
    let (mut profile, mut evidence) = match subject {
        Subject::Profile(profile) => {
            tally::check_not_flattened(profile.is_flattened())?;
            (profile, Evidence::Sums(options.weights))
        }
        Subject::Runs(mut compared) => {
            counterparts = std::mem::take(&mut compared.counterparts);
            Evidence::of_runs(compared)?
        }
    };
    check_weight(&profile)?;
    let renamed = RenamedFrames::new(&renamed, &profile.frames);
    let judged = if profile.is_differential() { Some(FunctionJudgement::new(&profile, &evidence)?) } else { None };
    let all_stacks = profile.len();
    let waits = Waits::take_from(&mut profile)?;
    let without_wakers = profile.len();
    let lost = Lost::take_from(&mut profile)?;
    let lost_stacks = without_wakers - profile.len();
    if profile.is_differential() && profile.total() == Weights::default() {
        return Err(Error::Invalid("all weight is lost: there is nothing to compare".to_owned()));
    }
    evidence.remove_wakers()?;
    let pools = Pools::find(&mut profile);
    profile.presort(crate::parallel::cores());
    let origins = Origins::find(&profile, &options.categories, options.own.take());
    let mut survey = Survey::new(&profile, &origins)?;
    // As in the input: the stacks of wakers make different ones of equal waits.
    survey.stacks = all_stacks - lost_stacks;
    survey.add_lost(lost, profile.is_differential())?;
    let work = Work::new(&profile.frames);
    let inactive = InactiveWeights::new(&profile, &origins, &work)?;
    let context = Context {
        profile: &profile,
        origins: &origins,
        survey: &survey,
        work: &work,
        inactive: &inactive,
        names: &Names::default(),
        waits: &waits,
        evidence: &evidence,
        pools: &pools,
        judged: judged.as_ref(),
        counterparts: &counterparts,
        renamed: &renamed,
        missing: options.missing,
        unit: options.count_name.as_deref(),
        is_whole: options.lines.is_none(),
        is_exact: matches!(format, Format::Json),
        scaling_command: match inputs {
            _ if options.repeated.is_scaled() => None,
            Inputs::Files(_) => Some("fg-diff -n"),
            Inputs::Runs(..) => Some("-n"),
        },
        whole: survey.total,
    };
    let lines = options.lines.unwrap_or(UNLIMITED);
    let contents = Contents { inputs, repeated: &options.repeated, focus: options.focus.take() };
    let mut text = String::new();
    for width in widths(format) {
        let names = match width {
            usize::MAX => Names::default(),
            _ => Names::new(&profile, &survey, width),
        };
        let context = Context { names: &names, ..context };
        text = contents.fit_lines(&context, format, width, lines)?;
        if text.len() <= most_bytes(format, lines) {
            break;
        }
    }
    Ok(text)
}

/// Returns the widths of a page to try, from the widest. At `usize::MAX`, names are whole.
fn widths(format: Format) -> Vec<usize> {
    match format {
        Format::Text(style) => vec![style.width],
        Format::Markdown => markdown::WIDTHS.to_vec(),
        Format::Json => vec![usize::MAX],
    }
}

/// Returns the number of bytes that a page of so many lines may have.
fn most_bytes(format: Format, lines: usize) -> usize {
    match format {
        Format::Markdown => lines.saturating_mul(markdown::BYTES_PER_LINE),
        Format::Text(_) | Format::Json => usize::MAX,
    }
}

/// The subject of a page: the inputs, and the function on which it focuses.
struct Contents<'a> {
    inputs: &'a Inputs,
    repeated: &'a Repeated,
    focus: Option<FrameMatcher>,
}

impl Contents<'_> {
    /// Returns a page of this width with as much as fits on its lines.
    fn fit_lines(
        &self,
        context: &Context<'_>,
        format: Format,
        width: usize,
        most_lines: usize,
    ) -> Result<String, Error> {
        let mut lines = most_lines;
        loop {
            let page = self.page(context, lines)?;
            let text = render(&page, format, width);
            let excess = text.lines().count().saturating_sub(most_lines);
            if excess == 0 || matches!(format, Format::Json) {
                return Ok(text);
            }
            if lines <= LEAST_LINES {
                return Ok(cut_page(page, format, width, most_lines));
            }
            lines = lines.saturating_sub(excess).max(LEAST_LINES);
        }
    }

    /// Returns a page of about this many lines.
    fn page(&self, context: &Context<'_>, lines: usize) -> Result<Page, Error> {
        let (names, [before, after]) = match self.inputs {
            Inputs::Files(names) => (display_files(context, names), ["before".to_owned(), "after".to_owned()]),
            Inputs::Runs(before, after) => {
                (vec!["comparison".to_owned()], [before, after].map(|files| name_side(&display_files(context, files))))
            }
        };
        let commands = Commands::new(self.inputs, self.repeated);
        match &self.focus {
            Some(focus) => focus::page(context, focus, &names, lines),
            None if context.profile.is_differential() => change::page(context, &commands, [&before, &after], lines),
            None => plain::page(context, &commands, &names, lines),
        }
    }
}

/// Returns the page as text, of this width if the format has one.
fn render(page: &Page, format: Format, width: usize) -> String {
    match format {
        Format::Text(style) => text::render(&page.without_empty_tables(), style),
        Format::Markdown => markdown::render(&page.without_empty_tables(), width),
        Format::Json => json::render(page),
    }
}

/// Returns a page of at most this many lines without the parts at its end that do not fit.
fn cut_page(mut page: Page, format: Format, width: usize, lines: usize) -> String {
    loop {
        let text = render(&page, format, width);
        if text.lines().count() <= lines || !page.pop_part() {
            return text;
        }
    }
}

/// Returns the names of files as a page shows them: with visible characters, and without the beginning of long paths.
fn display_files(context: &Context<'_>, files: &[String]) -> Vec<String> {
    match context.is_exact {
        true => files.to_vec(),
        false => {
            files.iter().map(|file| fit::cut_path(&context::display_name(file.as_bytes()), MOST_OF_FILE)).collect()
        }
    }
}

/// Returns the first run of a side, and the number of the others.
fn name_side(files: &[String]) -> String {
    match files {
        [first, others @ ..] if !others.is_empty() => {
            format!("{first} + {} more", measure::format_count(others.len()))
        }
        _ => files.concat(),
    }
}

/// Returns the first names, and the number of the others.
fn join_some(names: &[String], separator: &str) -> String {
    let first = names[..names.len().min(NAMED_INPUTS)].join(separator);
    match names.len().saturating_sub(NAMED_INPUTS) {
        0 => first,
        others => format!("{first}{separator}{} more", measure::format_count(others)),
    }
}

/// Checks that there is something to report.
fn check_weight(profile: &Profile) -> Result<(), Error> {
    let total = profile.total();
    if total.after.is_zero() && total.before.is_zero() {
        return Err(Error::Invalid("the profile is empty: there is nothing to report".to_owned()));
    }
    Ok(())
}
