//! `fg-check`: a profile in, a verdict out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fgkit::Error;
use fgkit::check::{
    DEFAULT_BUSY_LOOP_LIMIT, Finding, Measure, Rule, Style, Verdict, annotation, check, format_line, junit, junit_error,
};
use fgkit::cli::{self, Entries, Session, Tool};
use fgkit::csv::Categories;
use fgkit::input::Source;
use fgkit::output::Output;
use fgkit::stats::significance::Runs;

/// Check a profile against limits: a gate for CI
///
/// Reads folded stacks, plain or differential, and writes a line for each limit that is broken, with the stack that
/// contributes most. Shares are of all weight, of a differential profile of that after. Growth is of all weight before,
/// and where the weights are counts it must be more than noise. How much a program varies from run to run cannot be seen
/// in one run each, so each counts as at most 1000 samples: to find less, add up several with fg-diff, and say how many with --runs.
///
/// In RE=N% the last = divides; RE is a regular expression, searched for anywhere in a frame's name.
#[derive(clap::Parser)]
#[command(name = "fg-check")]
struct Args {
    /// Self weight of functions that match, at most
    #[arg(long = "self", value_name = "RE=N%")]
    self_share: Vec<String>,
    /// Weight of stacks with a match, at most
    #[arg(long, value_name = "RE=N%")]
    inclusive: Vec<String>,
    /// Self weight of a category, at most
    #[arg(long, value_name = "NAME=N%", hide_short_help = true)]
    category: Vec<String>,
    /// Growth of self weight, of each or of matches
    #[arg(long, value_name = "[RE=]N%")]
    growth: Vec<String>,
    /// The same with what is called
    ///
    /// RE=N%, too. It also finds what became slower in functions that are called, or that the compiler put in their place.
    #[arg(long, value_name = "N%")]
    inclusive_growth: Vec<String>,
    /// Each side of the differential adds up N runs
    ///
    /// As fg-diff does with those that are given it by name. Several find changes that one hides, if they vary as runs do;
    /// how much they vary only fg-diff --significant sees.
    #[arg(long, value_name = "N", default_value = "1", hide_default_value = true, hide_short_help = true)]
    runs: Runs,
    /// Lost samples, at most
    #[arg(long, value_name = "N%")]
    lost: Option<String>,
    /// Stacks cut before their root, at most
    #[arg(long, value_name = "N%", hide_short_help = true)]
    truncated: Option<String>,
    /// Stacks whose leaf has no name, at most
    #[arg(long, value_name = "N%", hide_short_help = true)]
    unknown: Option<String>,
    /// Idle polling in an async runtime, at most
    ///
    /// Nothing is polling, tracing and what they call of the kernel and the C library, with no function of the program
    /// beneath. It counts only where more than half of all weight is in the runtime.
    #[arg(long, value_name = "N%", num_args = 0..=1, default_missing_value = DEFAULT_BUSY_LOOP_LIMIT, require_equals = true)]
    busy_loop: Option<String>,
    /// Read rules from FILE, one a line
    ///
    /// A rule is an option without its dashes: `growth 2%`.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Read the rules of categories from FILE, as fg-csv does
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    categories: Option<PathBuf>,
    /// Write annotations for GitHub's workflows
    ///
    /// Beside what breaks a rule: what would, were it not for noise; patterns that match no frame; and why nothing could be
    /// checked.
    #[arg(long)]
    github: bool,
    /// Write all rules as JUnit's test cases to FILE
    ///
    /// If nothing could be checked there is one, with the error.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    junit: Option<PathBuf>,
}

impl Args {
    fn rules(&self) -> Result<Vec<Rule>, Error> {
        let one = |text: &Option<String>| text.iter().cloned().collect::<Vec<_>>();
        let options = [
            (Measure::SelfShare, self.self_share.clone()),
            (Measure::Inclusive, self.inclusive.clone()),
            (Measure::Category, self.category.clone()),
            (Measure::Growth, self.growth.clone()),
            (Measure::InclusiveGrowth, self.inclusive_growth.clone()),
            (Measure::Lost, one(&self.lost)),
            (Measure::Truncated, one(&self.truncated)),
            (Measure::Unknown, one(&self.unknown)),
            (Measure::BusyLoop, one(&self.busy_loop)),
        ];
        let mut rules = Vec::new();
        for (measure, texts) in options {
            for text in texts {
                let usage = |what| Error::Usage(format!("--{} {text}: {what}", measure.name()));
                rules.push(Rule::parse(measure, &text).map_err(usage)?);
            }
        }
        if let Some(path) = &self.rules {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| Error::read(&name, error))?;
            rules.extend(Rule::parse_all(&text, &name)?);
        }
        if rules.is_empty() {
            return Err(Error::Usage("there is no rule to check: see --help".to_owned()));
        }
        Ok(rules)
    }

    /// Fails if what is to be written would be in the place of what is read, or of one another.
    fn refuse_overwriting(&self, session: &Session) -> Result<(), Error> {
        let files = session.sources.iter().filter_map(|source| match source {
            Source::File(path) => Some(path.as_path()),
            Source::Stdin => None,
        });
        let inputs: Vec<&Path> = files.chain(self.rules.as_deref()).chain(self.categories.as_deref()).collect();
        session.output.reject_overwriting(self.junit.as_deref(), &inputs)
    }

    fn judge(&self, session: &mut Session) -> Result<(Vec<Rule>, Vec<Finding>), Error> {
        let (rules, categories) = (self.rules()?, Categories::load(self.categories.as_deref())?);
        let findings = check(&session.sources, &rules, &categories, self.runs, &mut session.diagnostics)?;
        Ok((rules, findings))
    }

    /// Says what was found: to the output what breaks a rule, and with --github also what else is worth a mark.
    fn tell(&self, rules: &[Rule], findings: &[Finding], session: &mut Session) -> Result<(), Error> {
        let style = if self.github { Style::Github } else { Style::Plain };
        for finding in findings {
            let line = |style| format_line(finding, &rules[finding.rule], style);
            match (finding.verdict, style) {
                (Verdict::Failed, _) | (Verdict::WithinNoise | Verdict::NoMatch, Style::Github) => {
                    session.output.write_with(|out| writeln!(out, "{}", line(style)))?;
                }
                (Verdict::WithinNoise, Style::Plain) => session.diagnostics.warn(&line(Style::Plain)),
                (Verdict::Passed | Verdict::NoMatch, _) => session.diagnostics.note(&line(Style::Plain)),
            }
        }
        Ok(())
    }

    /// Writes what other programs read: the file for JUnit, and GitHub's mark if nothing could be checked.
    fn report(&self, judged: &Result<(Vec<Rule>, Vec<Finding>), Error>, session: &mut Session) -> Result<(), Error> {
        let failure = judged.as_ref().map_err(|error| session.diagnostics.failure_text(error));
        if let Some(path) = &self.junit {
            let report = match &failure {
                Ok((rules, findings)) => junit(findings, rules),
                Err(said) => junit_error(said),
            };
            Output::write_file(path, &report)?;
        }
        match failure {
            Err(said) if self.github => {
                session.output.write_with(|out| writeln!(out, "{}", annotation("error", "fg-check", &said)))
            }
            _ => Ok(()),
        }
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-diff -n before.folded after.folded | fg-check --inclusive-growth 2%", "Which functions became heavier."),
        ("fg-check --lost 1% --truncated 5% --self '^malloc$=10%' app.folded", "Limits for one profile."),
    ];

    const EXIT_STATUS: Entries =
        &[("0", "All rules are kept."), ("1", "A rule is broken."), ("2", "Anything else: nothing was checked.")];

    fn failure(_: &Error) -> u8 {
        2
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        self.refuse_overwriting(session)?;
        let judged = self.judge(session);
        let reported = self.report(&judged, session);
        let (rules, findings) = match judged {
            Ok(judged) => judged,
            Err(error) => {
                reported.unwrap_or_else(|other| session.diagnostics.fail(&other));
                return Err(error);
            }
        };
        reported?;
        match self.tell(&rules, &findings, session) {
            // Who reads it may leave, and the verdict stands.
            Err(error) if error.is_broken_pipe() => {}
            told => told?,
        }
        Ok(u8::from(findings.iter().any(|finding| finding.verdict == Verdict::Failed)))
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
