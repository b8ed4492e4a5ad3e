//! `fg-filter`: folded stacks in, selected and reshaped stacks out.

use std::process::ExitCode;

use fgkit::Error;
use fgkit::cli::{self, Entries, Session, Tool};
use fgkit::diagnostics::Diagnostics;
use fgkit::filter::{Filter, Filtered, FrameMatcher, Names, Recursion, Rename, Reshape, Select, Split, Threshold};
use fgkit::folded::LineKind;
use fgkit::profile::Weights;

/// Keep, drop and reshape stacks
///
/// Reads folded stacks, plain or differential, and writes the resulting stacks, merged and sorted. A REGEX matches
/// anywhere in the name of a frame; suffixes such as `_[k]` are part of the name.
///
/// Options apply in the order in which they are listed here, whatever their order on the command line: first names
/// change, then stacks are selected, then frames are removed, then stacks are selected by weight. If an option other
/// than --rename is given twice, the last one wins: use `--focus 'a|b'` to keep stacks with either. The weights of kept
/// and dropped stacks add up to the total; -v prints them.
#[derive(clap::Parser)]
#[command(name = "fg-filter")]
struct Args {
    #[command(flatten)]
    names: NameArgs,
    #[command(flatten)]
    stacks: StackArgs,
    #[command(flatten)]
    frames: FrameArgs,
    #[command(flatten)]
    weights: WeightArgs,
}

/// Options that change names.
#[derive(clap::Args)]
#[command(next_help_heading = "Names")]
struct NameArgs {
    /// Remove the suffixes `_[k]`, `_[j]`, `_[i]` and `_[w]`
    #[arg(long, hide_short_help = true)]
    strip_suffix: bool,

    /// Shorten names; LEVEL is 0 to 3 [if omitted: 2]
    ///
    /// Level 1 removes what compilers append: Rust's hashes, `.cold`, `.isra.0`, symbol versions and the numbers of
    /// lambdas. Level 2 also removes generic, template and call arguments. Level 3 also reduces a path to its last two
    /// parts: `a::b::c::d` becomes `c::d`, and `f (/srv/app.py)` becomes `f (app.py)`. Level 0 leaves names as they are.
    #[arg(long, value_name = "LEVEL", default_value = "0", default_missing_value = "2", num_args = 0..=1)]
    #[arg(hide_default_value = true, require_equals = true, value_parser = cli::integer_in(0..=3_u8))]
    shorten: u8,

    /// Replace matches of REGEX in names; may be repeated
    ///
    /// In TEXT, `$1` is the first group of REGEX. The last `=` separates REGEX from TEXT; write an equals sign in TEXT
    /// as `\=`.
    #[arg(long, value_name = "REGEX=TEXT")]
    rename: Vec<Rename>,

    /// Split names at matches of REGEX, into a frame for each part
    ///
    /// `--split ::` turns `a::b::c` into `a;b;c`, so that namespaces or packages become frames. Empty parts are left
    /// out. Names are not split within brackets, and not within the file that follows the function of a script.
    #[arg(long, value_name = "REGEX", hide_short_help = true)]
    split: Option<Split>,

    /// Replace thread numbers in the first frame with `*`
    ///
    /// worker-1 and worker-2 both become worker-*, so that their equal stacks are merged.
    #[arg(long, hide_short_help = true)]
    merge_threads: bool,
}

/// Options that select stacks.
#[derive(clap::Args)]
#[command(next_help_heading = "Stacks")]
struct StackArgs {
    /// Keep only stacks whose first frame matches REGEX
    #[arg(long, alias = "comm", value_name = "REGEX")]
    root: Option<FrameMatcher>,

    /// Keep only stacks with a frame that matches REGEX
    #[arg(long, value_name = "REGEX")]
    focus: Option<FrameMatcher>,

    /// Drop stacks with a frame that matches REGEX
    ///
    /// This also drops stacks that --focus would keep.
    #[arg(long, value_name = "REGEX")]
    ignore: Option<FrameMatcher>,
}

/// Options that select frames of a stack.
#[derive(clap::Args)]
#[command(next_help_heading = "Frames")]
struct FrameArgs {
    /// Remove `[unknown]` frames
    #[arg(long, hide_short_help = true)]
    drop_unknown: bool,

    /// Remove the delimiter frames `-` and `--`
    ///
    /// Some profilers write them between kernel and user frames, or between the stack of a sleeper and that of its
    /// waker.
    #[arg(long, hide_short_help = true)]
    no_delimiters: bool,

    /// Remove frames that match REGEX
    ///
    /// If the leaf is removed, its caller becomes the leaf.
    #[arg(long, value_name = "REGEX")]
    hide: Option<FrameMatcher>,

    /// Remove frames that do not match REGEX
    ///
    /// Stacks without a match are dropped. Thread states such as `[off-cpu]` remain in the others.
    #[arg(long, hide_short_help = true, value_name = "REGEX")]
    show: Option<FrameMatcher>,

    /// Start stacks at the first frame that matches REGEX
    ///
    /// The first match is the one nearest to the root. Stacks without a match are dropped.
    #[arg(long, value_name = "REGEX")]
    show_from: Option<FrameMatcher>,

    /// End stacks at the last frame that matches REGEX
    ///
    /// The last match is the one nearest to the leaf. Stacks without a match are unchanged. As in pprof, REGEX is
    /// matched against names without their arguments.
    #[arg(long, hide_short_help = true, value_name = "REGEX")]
    prune_from: Option<FrameMatcher>,

    /// Remove recursive frames; WHICH is `adjacent` or `all` [if omitted: adjacent]
    ///
    /// `adjacent` turns `a;a;b` into `a;b`, and `all` turns `a;b;a;c` into `a;b;c`.
    #[arg(long, value_name = "WHICH", num_args = 0..=1, default_missing_value = "adjacent", require_equals = true)]
    #[arg(hide_possible_values = true, hide_short_help = true)]
    collapse_recursion: Option<Recursion>,
}

/// Options that select stacks by weight.
#[derive(clap::Args)]
#[command(next_help_heading = "Weights")]
struct WeightArgs {
    /// Drop stacks below this weight, like 250 or 0.5%
    ///
    /// A percentage refers to the total weight of the input.
    #[arg(long, hide_short_help = true, value_name = "WEIGHT|%", allow_hyphen_values = true)]
    min: Option<Threshold>,

    /// Keep only the N heaviest stacks
    #[arg(long, value_name = "N", value_parser = cli::integer_in::<usize>(..))]
    top: Option<usize>,
}

impl Args {
    fn filter(&self) -> Filter {
        let Self { names, stacks, frames, weights } = self;
        Filter {
            names: Names::new(names.strip_suffix, names.shorten, names.rename.clone(), names.merge_threads),
            split: names.split.clone(),
            select: Select { root: stacks.root.clone(), focus: stacks.focus.clone(), ignore: stacks.ignore.clone() },
            reshape: Reshape {
                drop_unknown: frames.drop_unknown,
                no_delimiters: frames.no_delimiters,
                hide: frames.hide.clone(),
                show: frames.show.clone(),
                show_from: frames.show_from.clone(),
                prune_from: frames.prune_from.clone().map(FrameMatcher::without_arguments),
                recursion: frames.collapse_recursion,
            },
            min: weights.min,
            top: weights.top,
        }
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-collapse perf.data | fg-filter --focus parse | fg-svg > parse.svg", "Draw only what happens in parsing:"),
        (
            "fg-filter --focus '^parse_' --ignore malloc -o parse.folded app.folded",
            "Keep parsing, but leave out memory allocation:",
        ),
        ("fg-filter --root '^nginx' host.folded | fg-report", "Report on the threads whose names start with nginx:"),
        (
            "fg-filter --shorten --merge-threads app.folded | fg-svg > short.svg",
            "Shorten C++ and Rust names, and merge the threads of a pool:",
        ),
        ("fg-filter --rename '^v[0-9]+::=' app.folded", "Remove version numbers from names:"),
        ("fg-filter --strip-suffix app.folded", "Merge functions that differ only in the suffix `_[j]` or `_[i]`:"),
        (
            "fg-filter --shorten --split '::|[.]' app.folded | fg-svg > packages.svg",
            "Draw namespaces and packages as frames:",
        ),
        (
            "fg-filter --show-from '^handle_request$' --hide '^tokio::' app.folded",
            "Start at a function, and leave out the frames of a library:",
        ),
        ("fg-filter --show '^myapp::' app.folded", "Keep only the frames of the program itself:"),
        ("fg-filter --prune-from '^malloc$' app.folded", "End stacks at malloc, whatever it calls:"),
        ("fg-filter --drop-unknown --no-delimiters app.folded", "Leave out [unknown] and delimiter frames:"),
        ("fg-filter --collapse-recursion=all app.folded", "Draw a recursive function once in each stack:"),
        ("fg-filter --min 0.5% app.folded | fg-svg > large.svg", "Leave out small stacks:"),
        ("fg-filter --top 20 app.folded", "Keep the 20 heaviest stacks:"),
        (
            "find /var/profiles -name '*.folded' -print0 | fg-filter --files0-from - --focus lock",
            "Filter the sum of any number of files:",
        ),
    ];

    fn completions() -> Vec<(&'static str, Vec<&'static str>)> {
        vec![("shorten", vec!["1", "2", "3"])]
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let mut filter = self.filter();
        let Session { sources, output, diagnostics } = session;
        let filtered = filter.apply(sources, diagnostics.verbosity() > 0, diagnostics)?;
        report(&filter, &filtered, diagnostics);
        let name = output.name().to_owned();
        filter.write(filtered, sources, &name, output)?;
        Ok(0)
    }
}

/// Warns about patterns that match nothing and about stacks of which nothing is left, and with `-v` reports the kept and the
/// dropped weight.
fn report(filter: &Filter, filtered: &Filtered<'_>, diagnostics: &mut Diagnostics) {
    if filtered.kind.is_some() {
        let unmatched = filter.unmatched(filtered);
        unmatched.iter().for_each(|unmatched| diagnostics.warn(&unmatched.to_string()));
        if unmatched.is_empty() && filtered.is_empty() {
            diagnostics.warn("no stack is left: the options drop all stacks, or all of their frames");
        }
    }
    let is_differential = filtered.kind == Some(LineKind::Differential);
    let format = |weights: Weights| match is_differential {
        true => format!("{} {}", weights.before, weights.after),
        false => weights.after.to_string(),
    };
    let Filtered { total, dropped, emptied, .. } = *filtered;
    if emptied != Weights::default() && !filtered.is_empty() && !filter.drops_without_match() {
        diagnostics.warn(&format!("stacks with weight {} are left out: they have no frame left", format(emptied)));
    }
    let [kept, dropped, total] = [total.saturating_sub(dropped), dropped, total].map(format);
    diagnostics.note(&format!("kept {kept} + dropped {dropped} = {total}"));
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
