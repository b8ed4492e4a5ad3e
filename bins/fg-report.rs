//! `fg-report`: folded stacks in, one page of text out.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use fgkit::cli::{self, Entries, RunArgs, Section, Session, Tool, WeightArgs};
use fgkit::csv::Categories;
use fgkit::diagnostics::Diagnostics;
use fgkit::diff::Scaling;
use fgkit::filter::{FrameMatcher, UnmatchedPattern};
use fgkit::input::Source;
use fgkit::report::{self, Format, Inputs, Missing, Options, Repeated, Subject, TextStyle};
use fgkit::{Error, folded};

/// Width of the page if it does not go to a terminal.
const WIDTH: usize = 100;

/// Lines of the page if it does not go to a terminal.
const LINES: usize = 50;

/// Summarize a profile on one page of text
///
/// Reads folded stacks and writes a page for people and programs that read text: the size and the quality of the
/// profile, the hot path, the hottest functions, the call tree without its small branches, and commands for a closer
/// look. For a differential profile from fg-diff(1), or with --before and --after, it reports what grew and what
/// shrank. For a recording with `fg-record --wakers`, it names the functions that waited, and the threads at the end of
/// the chains, which kept them waiting.
///
/// Weight is attributed to the program's own functions, "own functions" below: what a library or the kernel does on
/// behalf of a function is part of that function's weight. Percentages are of the total weight (in a comparison, of the
/// total before) unless the line says otherwise. The same input and the same --budget give the same page.
#[derive(clap::Parser)]
#[command(name = "fg-report", override_usage = "fg-report [OPTIONS] [FILE]... | --before FILE... --after FILE...")]
struct Args {
    #[command(flatten)]
    content: ContentArgs,
    #[command(flatten)]
    runs: RunArgs,
    #[command(flatten)]
    weights: WeightArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// Options for the content of the page.
#[derive(clap::Args)]
#[command(next_help_heading = "Content")]
struct ContentArgs {
    /// Report the callers and callees of functions that match REGEX
    ///
    /// REGEX is searched for in whole names; if none matches, in names without generic and template arguments; then in names as
    /// the page shows them.
    #[arg(long, value_name = "REGEX")]
    focus: Option<FrameMatcher>,

    /// Write at most this many lines [default: height of the terminal, or 50]
    ///
    /// LINES is at least 10. Headings, blank lines and the marks of --markdown count too: a small page of Markdown has fewer rows
    /// than one of text. With --json, the object has the rows that a page of this many lines would have, and
    /// `left_out` has the number of rows left out of each table; names are never cut.
    #[arg(long, value_name = "LINES", value_parser = cli::integer_in(10_usize..=100_000))]
    budget: Option<usize>,

    /// Treat only the functions that match REGEX as the program's own
    ///
    /// By default, all functions are the program's own, except those of the kernel and of well-known libraries and
    /// runtimes. In threads of an interpreter or virtual machine, such as python3 or java, only functions of scripts and
    /// methods are, so that native functions of an extension are shown with the run time's, except in threads that the
    /// extension starts.
    #[arg(long, value_name = "REGEX", hide_short_help = true)]
    own: Option<FrameMatcher>,

    /// Set the unit of weights [default: us if stacks end in thread states, else samples]
    ///
    /// Weights in microseconds (`us`) are shown in a unit that fits, such as ms or s. In a comparison, weights in a unit of time
    /// (`ms`, `seconds`) are durations, not numbers of samples, unless --per-sample or --exact is given, or all are multiples
    /// of one number of 1000 or more.
    #[arg(long, value_name = "TEXT", hide_short_help = true, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    countname: Option<String>,

    /// Use the category rules in FILE
    ///
    /// Each line is a category and a regular expression, as in fg-csv(1).
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    categories: Option<PathBuf>,
}

/// Options for the output format.
#[derive(clap::Args)]
#[command(next_help_heading = "Output format")]
struct FormatArgs {
    /// Write Markdown, for comments in code reviews
    ///
    /// Long names and paths are shortened if the page would have more than 160 bytes for each line of --budget.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Write a JSON object
    ///
    /// Unless --budget is given, its tables have all rows, except branches of the call tree below 1%.
    #[arg(long)]
    json: bool,
}

/// The man page's section about the parts of a page.
const PARTS: &[(&str, &str)] = &[
    (
        "profile",
        "The total weight, its shares by thread state if there are states, and the number of distinct stacks. If the names of \
         all own functions contain the same source file, it is named here without its directories, and left out below. In a \
         comparison, both totals as they were measured, and what the total before was scaled to.",
    ),
    (
        "quality",
        "What is missing: lost samples, stacks that were cut before their root, functions without a symbol, and time \
         without a stack; in a comparison, for each side. Time off the CPU lacks the waits of goroutines. Stacks that begin with a wrong return address ([unknown], \
         where the profile names the files of other code without symbols), or with a function of the C library that \
         calls no function of the program, lack their outermost callers: unwinding by frame pointers ends in code \
         that keeps none. Other stacks that begin with [unknown] have unknown outermost callers: code without a symbol, or a wrong \
         return address. Stacks that begin with other functions may lack them, too; those are not counted. If no \
         stack has more than two frames, the profiler recorded no callers, like perf without -g. If less than 2% are \
         missing, this part comes after the own functions. Lost samples belong to no function, path or thread; the \
         total of a profile includes them, those of a comparison do not.",
    ),
    (
        "lines",
        "The function that has most of the weight if names contain lines, as those of py-spy do, and its lines, each counted as a \
         function of its own, come after others. A command below counts them as one. In a comparison, the number of functions that differ in \
         nothing but a line.",
    ),
    (
        "threads",
        "Shares of threads by name, if several have 1% or more. Those whose names differ only in a number are shown as \
         one, also on the hot path and in the call tree: `worker-N ×8`. In parentheses is the place where a thread spent \
         most of its time; a percentage followed by `of it` is the share of the thread's time. The order is that of the \
         weight without what is idle or waits for the end of threads. If nearly all weight is in one thread, or all \
         other threads only wait for threads to end, this part comes after the own functions. Comparisons have no such \
         part. Neither do profiles whose stacks begin with functions, as those of pprof and py-spy do.",
    ),
    (
        "entries",
        "Shares of the own functions that no other own function called, if several have 1% or more: `main`, functions \
         with which threads begin, tasks of a pool, and what native code calls back. Handlers that the program's own \
         `main` waits for are not among them; see `branches`. In parentheses is the place where most of this weight is \
         spent. Unwinding by frame pointers leaves out callers, and any function may be the outermost then. This part \
         is left out if more than 10% of the weight is in stacks that begin with functions of libraries, and if \
         `threads` or the table of own functions says the same. It comes after that table if threads with several \
         names divide the weight, or if nearly all weight is in one entry. Order and exceptions are those of `threads`.",
    ),
    (
        "work",
        "Shares by kind of work, with the own functions that it is done for: sleep, lock, file sync, allocation, \
         copying, sorting and others. The kind follows from the names of the functions that such a function calls. If \
         there is a system call or wait among them, it decides; otherwise an exception, garbage collection or \
         compilation; otherwise the outermost function whose kind is known. `own code` is the weight of own functions \
         themselves. Allocation and copying are often part of other work: if they are large, all of their weight is \
         shown (`allocation in all`), and the shares add up to more than 100%.",
    ),
    (
        "hot path, branches",
        "The path from the root to the largest callee, its largest callee, and so on, while each has at least three \
         fifths of its caller's weight. The share is shown where it drops. If the path ends in an own function, the \
         branches are the largest callees there; if it ends in a library, they are the own functions that it calls: \
         the handlers of an event loop.",
    ),
    (
        "own functions",
        "Each stack counts for the own function nearest to its leaf. The text beside the function says where it spent \
         this weight: in itself, or in the first function below it that does more than pass the call on. A function \
         after `>` is further down and has at least 70% of that callee's weight. The kinds of work are in \
         parentheses. `calls itself` is followed by the number of its calls in the median stack. `called by` lists \
         the own functions above a large function that is not on the hot path. Threads without an own function are \
         ranked as if they had a quarter of their weight. Here, in the call tree and wherever functions are ranked, \
         only work counts. What waits for the end of threads or processes comes after all work, and what is `idle` \
         comes last: CPUs without work, and threads that wait for some. If a part of a function is, its share \
         follows. Recordings with wakers \
         show who ended the waits of a function and, except for locks, where these threads wait themselves.",
    ),
    (
        "states, code, depth",
        "Shares of the thread states; shares of self weight by kind of code: own code, libraries, and the categories \
         of fg-csv(1), such as allocator or kernel-net; the number of frames of stacks.",
    ),
    ("functions by self weight", "The largest leaves of stacks, own or not, with the own functions above them."),
    (
        "functions by inclusive weight",
        "Functions whose weight is spread over many branches of the tree. Their weight is that of all stacks that \
         contain them.",
    ),
    (
        "call tree",
        "The largest branches. Functions that pass nearly all of their weight to one callee share a line with it. The \
         last line counts the branches that have none. In \
         a comparison, branches are chosen by the sum of the absolute differences of their stacks.",
    ),
    (
        "renamed?",
        "In a comparison: functions that probably have a different name after, found as by fg-diff --match-renames: they have \
         their callers and weight in common, and call the same functions of the program, which hardly any other one calls, or \
         have names that differ only in a version or the way of writing. \
         They count as one function that has neither grown nor shrunk. If a crate, namespace, package or type has a different \
         name, all names that contain it are compared under those after, and the two are listed as `names`. Where most functions are \
         others, or where there are two, it is not known to be one program with other names, and none is paired. --exact-names keeps them apart.",
    ),
    (
        "verdict",
        "In a comparison: how many own functions changed by more than noise. The chance is the probability that noise \
         alone causes such a change, judged together with all functions of the profile. For a function that calls no \
         library, it is the self_chance of fg-csv(1). If a function of a library changed, the change is attributed to \
         the function of the program that called it for at least half of the change. If only functions with all that they \
         call changed, the largest change is given, and one in the other direction of half of it or more. It is also given beside \
         functions that changed by themselves, if it is larger than each of these changes, without what these have of it.",
    ),
    (
        "wrapper",
        "In a comparison: new functions of the program that only call what was there before and called without them, and those \
         that are gone; not functions that took each other's place. Their \
         inclusive weight changed by more than noise, and that of the functions of both sides that they call, which have at \
         least nine tenths of it, did not. Either these are called another way, or they are called more often while all else \
         became less in the same time: the change of all their calls, and how much the program did, tell which.",
    ),
    (
        "grew at",
        "In a comparison in which something grew by more than noise: the path from the root along the callees that \
         grew the most, as long as each has at least three fifths of its caller's growth. Only stacks whose own \
         function grew by more than noise count, and none that wait for the end of threads or processes. The \
         percentage is the net growth: what these functions lost on other paths is subtracted, and what others lost \
         below the last one of the path. If the path ends above the function with most of this growth, or with more \
         than is left of it, that function comes last, with its own change. If no function grew by itself, it is the \
         path to what grew with all that it calls: to a wrapper only if nothing else did.",
    ),
    (
        "callees",
        "In a comparison: functions of libraries and the kernel whose self weight changed by more than noise, with \
         the change.",
    ),
    (
        "before, after, change",
        "In a comparison: both weights, in the unit of the totals, and the change in percent of the total before, or \
         of the total after if the total before is 0. Changes add up to that of the total. The JSON object has both \
         weights in percent of the total before.",
    ),
];

impl Args {
    /// Returns the options that the commands on the page repeat.
    fn repeated(&self) -> Repeated {
        let mut scaling = Vec::new();
        match self.runs.scale {
            _ if self.runs.normalize => scaling.push("-n".to_owned()),
            Some(Scaling::Factor(factor)) => scaling.push(format!("--scale={factor}")),
            Some(Scaling::Median) => scaling.push("--scale=median".to_owned()),
            Some(Scaling::Runs | Scaling::Totals) | None => {}
        }
        scaling.extend(self.runs.copies.exact_names.then(|| "--exact-names".to_owned()));
        let mut others = Vec::new();
        let content = &self.content;
        others.extend(self.weights.per_sample.map(|weight| format!("--per-sample={weight}")));
        others.extend(self.weights.exact.then(|| "--exact".to_owned()));
        others.extend(content.own.as_ref().map(|own| format!("--own={}", own.pattern())));
        others.extend(content.categories.as_ref().map(|path| format!("--categories={}", path.display())));
        others.extend(content.countname.as_ref().map(|unit| format!("--countname={unit}")));
        Repeated { scaling, others }
    }

    fn format(&self, terminal: Option<(usize, usize)>) -> Format {
        let colours = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        match () {
            () if self.format.json => Format::Json,
            () if self.format.markdown => Format::Markdown,
            () => Format::Text(TextStyle {
                width: terminal.map_or(WIDTH, |(width, _)| width),
                bars: terminal.is_some(),
                colours,
            }),
        }
    }
}

/// Returns the width and height of the terminal to which standard output goes.
fn terminal_size() -> (usize, usize) {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or((80, 24), |(width, height)| (width.0.into(), height.0.into()))
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-record -- ./app | fg-report", "Report where a program spends its time:"),
        ("fg-report --focus '^parse$' app.folded", "Show who calls a function, and what it calls:"),
        ("fg-report --before old.folded --after new.folded", "Find out why a program became slower:"),
        (
            "fg-report -n --before b1 --before b2 --after a1 --after a2",
            "Compare shares of the time in two runs per side:",
        ),
        ("fg-report --markdown --budget 30 app.folded > comment.md", "Write a comment for a code review:"),
        (
            "sudo fg-record --io-latency -p 1234 -d 10 | fg-report --countname us",
            "Report which functions issued block I/O, and how long it took:",
        ),
        ("fg-report --json app.folded", "Write the report as JSON, for other programs to read:"),
        ("fg-report --own '^(main|myapp)' app.folded", "Tell fg-report which functions are the program's own:"),
    ];

    fn sections() -> Vec<Section> {
        let text = "A page has these parts; those without content are left out, and those for which there is no room. The \
             JSON object has the same keys; those of the tables are own, self, waits, inclusive, tree, grew, shrank and noise.";
        vec![Section { heading: "PARTS OF THE PAGE", text, entries: PARTS.to_vec() }]
    }

    fn reads_stdin(&self) -> bool {
        let mut runs = self.runs.before().iter().chain(self.runs.after()).peekable();
        runs.peek().is_none() || runs.any(|file| file.as_os_str() == "-")
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let weights = self.weights.options().with_unit(self.content.countname.as_deref());
        let repeated = self.repeated();
        let (subject, inputs) = match self.runs.compare(&session.sources, weights, &mut session.diagnostics)? {
            Some(compared) => {
                let [before, after] = [self.runs.before(), self.runs.after()].map(Source::from_operands);
                (Subject::Runs(compared), Inputs::Runs(list_names(&before?), list_names(&after?)))
            }
            None => {
                let profile = folded::read_profile(&session.sources, &mut session.diagnostics)?;
                if profile.is_empty() && session.diagnostics.has_failed() {
                    return Err(Error::AlreadyReported);
                }
                (Subject::Profile(profile), Inputs::Files(list_names(&session.sources)))
            }
        };
        let frames = match &subject {
            Subject::Profile(profile) => &profile.frames,
            Subject::Runs(compared) => &compared.profile.frames,
        };
        let is_comparison = match &subject {
            Subject::Profile(profile) => profile.is_differential(),
            Subject::Runs(_) => true,
        };
        if !is_comparison {
            cli::warn_of_unused(&[("--exact-names", self.runs.copies.exact_names)], &mut session.diagnostics);
        }
        // A clone, because the frames of the page may have other numbers.
        if let Some(own) = self.content.own.as_ref().filter(|own| !(*own).clone().matches_any(frames)) {
            let unmatched = UnmatchedPattern { option: "own", pattern: own.pattern().to_owned() };
            session.diagnostics.warn(&unmatched.to_string());
        }
        let terminal = session.output.is_terminal().then(terminal_size);
        let format = self.format(terminal);
        let options = Options {
            lines: self.content.budget.or(match format {
                Format::Json => None,
                _ => Some(terminal.map_or(LINES, |(_, height)| height.saturating_sub(1).max(10))),
            }),
            weights,
            exact_names: self.runs.copies.exact_names,
            categories: Categories::load(self.content.categories.as_deref())?,
            focus: self.content.focus,
            own: self.content.own,
            count_name: self.content.countname,
            repeated,
            missing: find_missing(&inputs, &session.diagnostics),
        };
        session.output.write_escaped(&report::report(subject, &inputs, options, format)?)?;
        Ok(0)
    }
}

/// Returns what could not be read. A file that was read for both sides has each malformed line twice.
fn find_missing(inputs: &Inputs, diagnostics: &Diagnostics) -> Missing {
    let has_inputs = diagnostics.has_failed();
    match inputs {
        Inputs::Files(_) => Missing { lines: diagnostics.skipped_lines(), has_inputs, ..Missing::default() },
        Inputs::Runs(before, after) => {
            let readings = |name: &String| before.iter().chain(after).filter(|other| *other == name).count() as u64;
            let count =
                |runs: &[String]| runs.iter().map(|run| diagnostics.skipped_lines_of(run) / readings(run)).sum();
            Missing { lines_of_sides: [count(before), count(after)], has_inputs, ..Missing::default() }
        }
    }
}

fn list_names(sources: &[Source]) -> Vec<String> {
    sources.iter().map(Source::name).collect()
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
