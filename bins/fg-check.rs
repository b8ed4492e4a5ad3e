//! `fg-check`: a profile in, a verdict out.

use std::path::PathBuf;
use std::process::ExitCode;

use fgkit::Error;
use fgkit::check::{Measure, Rule, Style, check, junit, line};
use fgkit::cli::{self, Entries, Session, Tool};
use fgkit::csv::{Categories, DEFAULT_CATEGORIES};

/// Check a profile against limits: a gate for CI
///
/// Reads folded stacks, plain or differential, and writes a line for each limit that is broken, with the stack that
/// contributes most. Shares are of all weight, of a differential profile of that after. Growth is of all weight before,
/// and where the weights are counts it must be more than noise. One run each does not tell how much a program varies by
/// itself: set limits above that, or give fg-diff several runs and --significant.
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
    /// Growth of stacks with a match, at most
    #[arg(long, value_name = "RE=N%", hide_short_help = true)]
    inclusive_growth: Vec<String>,
    /// Lost samples, at most
    #[arg(long, value_name = "N%")]
    lost: Option<String>,
    /// Stacks cut before their root, at most
    #[arg(long, value_name = "N%")]
    truncated: Option<String>,
    /// Stacks whose leaf has no name, at most
    #[arg(long, value_name = "N%", hide_short_help = true)]
    unknown: Option<String>,
    /// Idle polling in an async runtime, at most
    ///
    /// Nothing is polling, tracing and what they call of the kernel and the C library, with no function of the program
    /// beneath. It counts only where more than half of all weight is in the runtime.
    #[arg(long, value_name = "N%", num_args = 0..=1, default_missing_value = "80", require_equals = true)]
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
    #[arg(long)]
    github: bool,
    /// Write all rules as JUnit's test cases to FILE
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

    fn categories(&self) -> Result<Categories, Error> {
        let Some(path) = self.categories.as_deref() else { return Categories::parse(DEFAULT_CATEGORIES, "categories") };
        Categories::read(path)
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-diff -n before.folded after.folded | fg-check --growth 2%", "Which functions became heavier."),
        ("fg-check --lost 1% --truncated 5% --self '^malloc$=10%' app.folded", "Limits for one profile."),
    ];

    const EXIT_STATUS: Entries =
        &[("0", "All rules are kept."), ("1", "A rule is broken."), ("2", "Anything else: nothing was checked.")];

    fn failure(_: &Error) -> u8 {
        2
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let (rules, categories) = (self.rules()?, self.categories()?);
        let findings = check(&session.sources, &rules, &categories, &mut session.diagnostics)?;
        let style = if self.github { Style::Github } else { Style::Plain };
        for finding in &findings {
            let said = line(finding, &rules[finding.rule], style);
            match finding.violates {
                true => session.output.write_with(|out| writeln!(out, "{said}"))?,
                false if finding.percent > rules[finding.rule].limit && rules[finding.rule].measure.is_growth() => {
                    session.diagnostics.warn(&format!("{said}, exceeded; but that may be noise"));
                }
                false => session.diagnostics.note(&said),
            }
        }
        if let Some(path) = &self.junit {
            let name = path.display().to_string();
            std::fs::write(path, junit(&findings, &rules)).map_err(|error| Error::write(&name, error))?;
        }
        Ok(u8::from(findings.iter().any(|finding| finding.violates)))
    }
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
