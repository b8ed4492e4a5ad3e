//! `fg-check`: a profile in, a verdict on its limits out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fgkit::Error;
use fgkit::check::{
    DEFAULT_BUSY_LOOP_LIMIT, Finding, Input, Measure, Rule, Style, Verdict, annotation, check, format_line, junit,
    junit_error,
};
use fgkit::cli::{self, Entries, RunArgs, Session, Tool, WeightArgs};
use fgkit::csv::Categories;
use fgkit::input::Source;
use fgkit::output::Output;

/// Check a profile against limits, for continuous integration
///
/// Reads folded stacks, plain or differential, and writes a line for each broken rule, with the stack that contributes
/// most. Each rule limits a weight to N percent of the total. A differential profile from fg-diff(1) has two totals:
/// growth is in percent of the total before, and all other rules apply to the weights after.
///
/// RE is a regular expression that matches anywhere in the name of a frame. In `RE=N%`, the last `=` separates the two.
///
/// Growth breaks a rule only if it is more than noise: if nothing changed, the chance that any rule of a growth option
/// is broken is at most 5% for each of these options. With the runs of both sides (--before and --after), growth is
/// judged by how much each function varies from run to run. A differential profile contains only sums: it is judged as
/// one run per side, which counts as at most 1000 samples and cannot distinguish a slower program from a busy machine.
#[derive(clap::Parser)]
#[command(name = "fg-check", override_usage = "fg-check [OPTIONS] [FILE]... | --before FILE... --after FILE...")]
struct Args {
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    growth: GrowthArgs,
    #[command(flatten)]
    runs: RunArgs,
    #[command(flatten)]
    weights: WeightArgs,
    #[command(flatten)]
    files: RuleFileArgs,
    #[command(flatten)]
    reports: ReportArgs,
}

/// Options that limit weights.
#[derive(clap::Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Limit the self weight of matching functions
    #[arg(long = "self", value_name = "RE=N%")]
    self_share: Vec<String>,
    /// Limit the weight of stacks with a match
    ///
    /// A stack counts once, however many of its frames match.
    #[arg(long, value_name = "RE=N%")]
    inclusive: Vec<String>,
    /// Limit the self weight of each function
    #[arg(long, value_name = "[RE=]N%")]
    each: Vec<String>,
    /// Limit the inclusive weight of each function
    ///
    /// Without RE, this also limits `main`, which usually has nearly all of the weight.
    #[arg(long, value_name = "[RE=]N%", hide_short_help = true)]
    each_inclusive: Vec<String>,
    /// Limit the self weight of a category of functions
    ///
    /// `fg-csv --print-categories` shows the categories.
    #[arg(long, value_name = "NAME=N%", hide_short_help = true)]
    category: Vec<String>,
    /// Limit the share of lost samples
    #[arg(long, value_name = "N%")]
    lost: Option<String>,
    /// Limit the share of stacks that were cut before their root
    #[arg(long, value_name = "N%", hide_short_help = true)]
    truncated: Option<String>,
    /// Limit the share of stacks whose leaf has no symbol
    #[arg(long, value_name = "N%", hide_short_help = true)]
    unknown: Option<String>,
    /// Limit idle polling in an async runtime [if omitted: 80%]
    ///
    /// A stack in a runtime such as tokio is idle if the runtime or the tracing library calls nothing but the kernel,
    /// the C library and the allocator. The rule limits the share of idle stacks among all stacks in a runtime. It
    /// applies only if more than half of the total is in the runtime.
    #[arg(long, value_name = "N%", num_args = 0..=1, require_equals = true, hide_short_help = true)]
    #[arg(default_missing_value = DEFAULT_BUSY_LOOP_LIMIT)]
    busy_loop: Option<String>,
}

/// Options that limit growth.
#[derive(clap::Args)]
#[command(next_help_heading = "Growth limits")]
struct GrowthArgs {
    /// Limit the growth of self weight
    ///
    /// With RE, the matching functions are checked as a whole.
    ///
    /// Without RE, each function is checked by itself. The weight of a function that only one side has is then charged
    /// to its nearest caller that both sides have, or to `[unmatched]` if there is none. So a function that was
    /// extracted, inlined into all of its callers, wrapped or renamed does not count as growth if the cost is the same.
    /// Cost that moved below another caller counts as growth of that caller. Functions with so few samples that they may be on one side
    /// by chance are checked by themselves.
    ///
    /// New functions are also checked by themselves, because the variation of their callers may hide them. A new
    /// function breaks the rule if it exceeds the limit by more than noise, and if the functions to which it is
    /// charged, whoever calls them, have also grown by more than noise, including all that is charged to them.
    /// Otherwise its cost may have moved there from elsewhere: a message says so, and more runs per side can decide. If
    /// no new function breaks the rule alone, all together may, as `[new functions]`. --inclusive-growth treats new
    /// functions in the same way.
    #[arg(long, value_name = "[RE=]N%")]
    growth: Vec<String>,
    /// Limit the growth of inclusive weight
    ///
    /// Unlike --growth, this also detects that the callees of a function became slower, even if the compiler has
    /// inlined them. Without RE, a function that only one side has is charged to its nearest callers that both sides
    /// have, as with --growth. So a new function that is only wrapped around calls has not grown.
    #[arg(long, value_name = "[RE=]N%")]
    inclusive_growth: Vec<String>,
    /// Limit the growth of each call: the weight of stacks in which one function calls another
    ///
    /// With RE, only calls of or by a matching function are checked. A function that only one side has is left out of
    /// the stacks, as if its caller called its callees.
    #[arg(long, value_name = "[RE=]N%", hide_short_help = true)]
    edge_growth: Vec<String>,
    /// Limit the growth of each category of functions, or of one, by self weight
    #[arg(long, value_name = "[NAME=]N%", hide_short_help = true)]
    category_growth: Vec<String>,
}

/// Options that name files with rules.
#[derive(clap::Args)]
#[command(next_help_heading = "Rule files")]
struct RuleFileArgs {
    /// Read rules from FILE, one per line
    ///
    /// A rule is an option for a limit without its dashes, like `growth 2%`. `#` starts a comment line.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    rules: Option<PathBuf>,
    /// Use the category rules in FILE: see fg-csv(1)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    categories: Option<PathBuf>,
}

/// Options for reports to other programs.
#[derive(clap::Args)]
#[command(next_help_heading = "Reports")]
struct ReportArgs {
    /// Write annotations for GitHub Actions
    ///
    /// The annotations show broken rules, growth that exceeds a limit but may be noise (the ten largest of each rule),
    /// patterns that match no frame, and errors.
    #[arg(long)]
    github: bool,
    /// Write a JUnit report to FILE, with a test case for each rule
    ///
    /// If an error prevents the check, the report has a single test case with that error.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    junit: Option<PathBuf>,
}

impl ReportArgs {
    fn style(&self) -> Style {
        if self.github { Style::Github } else { Style::Plain }
    }

    /// Writes a line about a rule that is not broken: an annotation to the output, other text as a message.
    fn write_remark(&self, line: &str, session: &mut Session) -> Result<(), Error> {
        match self.style() {
            Style::Github => session.output.write_with(|out| writeln!(out, "{line}")),
            Style::Plain => {
                session.diagnostics.warn(line);
                Ok(())
            }
        }
    }
}

/// Most findings of a rule that are shown although they are within noise. With a limit of 0%, a program has hundreds.
const MAX_WITHIN_NOISE: usize = 10;

/// The rules with the findings of their check.
type Checked = (Vec<Rule>, Vec<Finding>);

impl Args {
    fn rules(&self) -> Result<Vec<Rule>, Error> {
        let mut rules = Vec::new();
        for (measure, texts) in self.rule_options() {
            for text in texts {
                let rule = Rule::parse(measure, text);
                rules.push(rule.map_err(|what| Error::Usage(format!("--{} {text}: {what}", measure.name())))?);
            }
        }
        if let Some(path) = &self.files.rules {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| Error::read(&name, error))?;
            rules.extend(Rule::parse_all(&text, &name)?);
        }
        if let (true, Some(path)) = (rules.is_empty(), &self.files.rules) {
            let what = "the file has no rule; write one per line, like lost 1%".to_owned();
            return Err(Error::Unreadable { name: path.display().to_string(), what });
        }
        if rules.is_empty() {
            return Err(Error::Usage("no rules: give at least one limit, like --lost 1%, or --rules FILE".to_owned()));
        }
        Ok(rules)
    }

    /// Returns the values of each option that is a rule.
    fn rule_options(&self) -> [(Measure, Vec<&String>); 13] {
        let Self { limits, growth, .. } = self;
        [
            (Measure::SelfShare, limits.self_share.iter().collect()),
            (Measure::Inclusive, limits.inclusive.iter().collect()),
            (Measure::Category, limits.category.iter().collect()),
            (Measure::Growth, growth.growth.iter().collect()),
            (Measure::InclusiveGrowth, growth.inclusive_growth.iter().collect()),
            (Measure::Each, limits.each.iter().collect()),
            (Measure::EachInclusive, limits.each_inclusive.iter().collect()),
            (Measure::EdgeGrowth, growth.edge_growth.iter().collect()),
            (Measure::CategoryGrowth, growth.category_growth.iter().collect()),
            (Measure::Lost, limits.lost.iter().collect()),
            (Measure::Truncated, limits.truncated.iter().collect()),
            (Measure::Unknown, limits.unknown.iter().collect()),
            (Measure::BusyLoop, limits.busy_loop.iter().collect()),
        ]
    }

    /// Fails if an output file is also an input file, or the other output file.
    fn reject_overwriting(&self, session: &Session) -> Result<(), Error> {
        let sources = session.sources.iter().filter_map(|source| match source {
            Source::File(path) => Some(path.as_path()),
            Source::Stdin => None,
        });
        let rules = self.files.rules.as_deref();
        let runs = self.runs.before().iter().chain(self.runs.after()).map(PathBuf::as_path);
        let inputs: Vec<&Path> = sources.chain(rules).chain(self.files.categories.as_deref()).chain(runs).collect();
        session.output.reject_overwriting(self.reports.junit.as_deref(), &inputs)
    }

    fn check(&self, session: &mut Session) -> Result<Checked, Error> {
        let (rules, categories) = (self.rules()?, Categories::load(self.files.categories.as_deref())?);
        let options = self.weights.options();
        let compared = self.runs.compare(&session.sources, options, &mut session.diagnostics)?;
        let input = compared.map_or(Input::Profiles(&session.sources), |runs| Input::Runs(Box::new(runs)));
        let findings = check(input, &rules, &categories, options, &mut session.diagnostics)?;
        Ok((rules, findings))
    }

    /// Writes broken rules to the output, and other findings to the output with `--github`, or else as messages.
    fn write_findings(&self, rules: &[Rule], findings: &[Finding], session: &mut Session) -> Result<(), Error> {
        for findings in findings.chunk_by(|one, next| one.rule == next.rule) {
            let (noisy, others): (Vec<&Finding>, Vec<&Finding>) =
                findings.iter().partition(|finding| finding.verdict == Verdict::WithinNoise);
            let rule = &rules[findings[0].rule];
            for finding in others {
                let line = format_line(finding, rule, self.reports.style());
                match finding.verdict {
                    Verdict::Failed => session.output.write_with(|out| writeln!(out, "{line}"))?,
                    Verdict::Passed => session.diagnostics.note(&format_line(finding, rule, Style::Plain)),
                    _ => self.reports.write_remark(&line, session)?,
                }
            }
            let (shown, left_out) = noisy.split_at(noisy.len().min(MAX_WITHIN_NOISE));
            for finding in shown {
                self.reports.write_remark(&format_line(finding, rule, self.reports.style()), session)?;
            }
            for finding in left_out {
                session.diagnostics.note(&format_line(finding, rule, Style::Plain));
            }
            if !left_out.is_empty() {
                let text = format!(
                    "{}: {} more exceed the limit within noise (-v shows them)",
                    rule.measure.name(),
                    left_out.len()
                );
                let line = match self.reports.style() {
                    Style::Plain => text,
                    Style::Github => annotation("warning", "fg-check", &text),
                };
                self.reports.write_remark(&line, session)?;
            }
        }
        Ok(())
    }

    /// Writes the JUnit report and, with `--github`, an annotation if nothing could be checked.
    fn write_reports(&self, checked: &Result<Checked, Error>, session: &mut Session) -> Result<(), Error> {
        let checked = checked.as_ref().map_err(|error| session.diagnostics.failure_text(error));
        if let Some(path) = &self.reports.junit {
            let report = match &checked {
                Ok((rules, findings)) => junit(findings, rules),
                Err(message) => junit_error(message),
            };
            Output::write_file(path, &report)?;
        }
        match checked {
            Err(message) if self.reports.github => {
                let annotation = annotation("error", "fg-check", &message);
                session.output.write_with(|out| writeln!(out, "{annotation}"))
            }
            _ => Ok(()),
        }
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        (
            "fg-check --inclusive-growth 2% --before before.* --after after.*",
            "Fail if a function grew by more than 2% of the total, and by more than runs vary:",
        ),
        (
            "fg-check --lost 1% --truncated 5% --self '^malloc$=10%' app.folded",
            "Check the quality of a profile, and the share of malloc:",
        ),
        ("fg-check --each 20% app.folded", "Fail if any one function has more than a fifth of the weight:"),
        (
            "fg-check --strict --rules limits.txt --github app.folded",
            "Check the rules in a file in a GitHub workflow, and reject malformed profiles:",
        ),
        ("fg-check --busy-loop --junit report.xml server.folded", "Detect a busy loop, and write a JUnit report:"),
    ];

    fn reads_stdin(&self) -> bool {
        self.runs.before().is_empty()
    }

    const EXIT_STATUS: Entries = &[
        ("0", "No rule is broken."),
        ("1", "At least one rule is broken."),
        ("2", "Invalid command line, or an error that prevented the check."),
    ];

    fn failure(_: &Error) -> u8 {
        2
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        self.reject_overwriting(session)?;
        let checked = self.check(session);
        let reported = self.write_reports(&checked, session);
        let (rules, findings) = match checked {
            Ok(checked) => checked,
            Err(error) => {
                reported.unwrap_or_else(|other| session.diagnostics.fail(&other));
                return Err(error);
            }
        };
        reported?;
        match self.write_findings(&rules, &findings, session) {
            // The reader may leave early: that does not change the verdict.
            Err(error) if error.is_broken_pipe() => {}
            written => written?,
        }
        Ok(u8::from(findings.iter().any(|finding| finding.verdict == Verdict::Failed)))
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
