//! `fg-filter`: folded stacks in, those that match out.

use std::process::ExitCode;

use fgkit::cli::{self, Entries, Session, Tool};
use fgkit::diagnostics::Diagnostics;
use fgkit::filter::{Filter, Filtered, FrameMatcher, Names, Recursion, Rename, Reshape, Select, Threshold};
use fgkit::profile::Weights;
use fgkit::{Error, folded};

/// Select and reshape stacks
///
/// Reads folded stacks, plain or differential, and writes what becomes of them, merged and sorted. Patterns are regular
/// expressions, searched for anywhere in a frame's name; suffixes like `_[k]` belong to the name.
///
/// The options are applied in the order in which they stand here, whatever their order on the command line: names first,
/// then which stacks are kept, then which of their frames, then the weights of what became of them. What is kept and
/// what is dropped add up to the whole; -v says both. Of an option that stands there twice the last counts: `--focus 'a|b'`
/// keeps stacks with either.
#[derive(clap::Parser)]
#[command(name = "fg-filter")]
struct Args {
    /// Take off the suffixes _[k], _[j], _[i] and _[w]
    #[arg(long, hide_short_help = true)]
    strip_suffix: bool,

    /// Shorten names: 1, 2 [default] or 3
    ///
    /// 1 leaves out what compilers append (Rust's hashes, .cold, .isra.0, symbol versions, a lambda's number), 2 also generic, template and
    /// call arguments, 3 of every path of names all but the last two.
    #[arg(long, value_name = "LEVEL", default_value = "0", default_missing_value = "2", num_args = 0..=1, hide_default_value = true,
          require_equals = true, value_parser = clap::value_parser!(u8).range(0..=3))]
    shorten: u8,

    /// Replace what matches in names; may be repeated
    ///
    /// The last = that no backslash escapes divides; $1 in TEXT is the first group of REGEX.
    #[arg(long, value_name = "REGEX=TEXT")]
    rename: Vec<Rename>,

    /// In the first frame, put * for a thread's number
    ///
    /// So the threads of one name meet: worker-1 and worker-2 both are worker-*.
    #[arg(long, hide_short_help = true)]
    merge_threads: bool,

    /// Keep only stacks whose first frame matches
    #[arg(long, value_name = "REGEX")]
    comm: Option<FrameMatcher>,

    /// Keep only stacks with a frame that matches
    #[arg(long, value_name = "REGEX")]
    focus: Option<FrameMatcher>,

    /// Drop stacks with a frame that matches
    ///
    /// Also those in focus.
    #[arg(long, value_name = "REGEX")]
    ignore: Option<FrameMatcher>,

    /// Take out frames without a name: [unknown]
    #[arg(long, hide_short_help = true)]
    drop_unknown: bool,

    /// Take out the frames - and --, which divide stacks
    #[arg(long, hide_short_help = true)]
    no_delimiters: bool,

    /// Take out frames that match
    ///
    /// Where that is the leaf, the frame beneath becomes the leaf.
    #[arg(long, value_name = "REGEX")]
    hide: Option<FrameMatcher>,

    /// Take out all other frames; drop stacks without a match
    #[arg(long, hide_short_help = true, value_name = "REGEX")]
    show: Option<FrameMatcher>,

    /// Start at the first frame that matches
    ///
    /// The match nearest to the root; stacks without one are dropped.
    #[arg(long, value_name = "REGEX")]
    show_from: Option<FrameMatcher>,

    /// End at the match nearest to the leaf
    ///
    /// As in pprof, a name is judged without its arguments here.
    #[arg(long, hide_short_help = true, value_name = "REGEX")]
    prune_from: Option<FrameMatcher>,

    /// Take out frames that recur: adjacent [default] or all
    #[arg(long, value_name = "WHICH", num_args = 0..=1, default_missing_value = "adjacent", require_equals = true,
          hide_possible_values = true, hide_short_help = true)]
    collapse_recursion: Option<Recursion>,

    /// Drop stacks that weigh less, like 250 or 0.5% of all read
    #[arg(long, hide_short_help = true, value_name = "WEIGHT|%", allow_hyphen_values = true)]
    min: Option<Threshold>,

    /// Keep the heaviest N stacks
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

impl Args {
    fn filter(&self) -> Filter {
        Filter {
            names: Names::new(self.strip_suffix, self.shorten, self.rename.clone(), self.merge_threads),
            select: Select { comm: self.comm.clone(), focus: self.focus.clone(), ignore: self.ignore.clone() },
            reshape: Reshape {
                drop_unknown: self.drop_unknown,
                no_delimiters: self.no_delimiters,
                hide: self.hide.clone(),
                show: self.show.clone(),
                show_from: self.show_from.clone(),
                prune_from: self.prune_from.clone().map(FrameMatcher::without_arguments),
                recursion: self.collapse_recursion,
            },
            min: self.min,
            top: self.top,
        }
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-collapse perf.txt | fg-filter --focus parse | fg-svg > parse.svg", "Draw only what happens in parsing."),
        ("fg-filter --focus '^parse_' --ignore malloc app.folded", "Parsing without the memory that it takes."),
    ];

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let mut filter = self.filter();
        let filtered = filter.apply(&session.sources, &mut session.diagnostics)?;
        report(&filter, &filtered, &mut session.diagnostics)?;
        session.output.write_with(|mut out| folded::write(&filtered.profile, &mut out))?;
        Ok(0)
    }
}

/// Says what matched nothing, and with `-v` what was kept and dropped.
fn report(filter: &Filter, filtered: &Filtered, diagnostics: &mut Diagnostics) -> Result<(), Error> {
    let mut total = filtered.profile.total();
    total.add(filtered.dropped)?;
    for (verb, matcher) in filter.matchers() {
        if !matcher.has_matched() && total != Weights::default() {
            diagnostics.warn(&format!("--{verb} {}: matches no frame", matcher.pattern()));
        }
    }
    let shown = |weights: Weights| match filtered.profile.is_differential() {
        true => format!("{} {}", weights.before, weights.after),
        false => weights.after.to_string(),
    };
    let (kept, dropped, total) = (shown(filtered.profile.total()), shown(filtered.dropped), shown(total));
    diagnostics.note(&format!("kept {kept} + dropped {dropped} = {total}"));
    Ok(())
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
