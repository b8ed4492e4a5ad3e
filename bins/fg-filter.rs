//! `fg-filter`: folded stacks in, those that match out.

use std::process::ExitCode;

use fgkit::cli::{self, Color, Common, Entries, Reading, Session, Tool};
use fgkit::diagnostics::Diagnostics;
use fgkit::filter::{Filter, Judge};
use fgkit::profile::{Profile, Weights};
use fgkit::{Error, folded};

/// Keep the stacks that match
///
/// Reads folded stacks, plain or differential, and writes those that are kept, merged and sorted. A pattern is a regular
/// expression, searched for anywhere in a frame's name; suffixes like `_[k]` belong to the name. A stack is kept if it
/// has a frame in focus and none to ignore. What is kept and what is dropped add up to the whole; -v says both.
#[derive(clap::Parser)]
#[command(name = "fg-filter")]
struct Args {
    /// Keep only stacks with a frame that matches
    #[arg(long, value_name = "REGEX")]
    focus: Option<String>,

    /// Drop stacks with a frame that matches, also those in focus
    #[arg(long, value_name = "REGEX")]
    ignore: Option<String>,

    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    color: Color,
}

impl Args {
    fn filter(&self) -> Result<Filter, Error> {
        let judge = |option: &str, pattern: &Option<String>| {
            let judge = pattern.as_deref().map(Judge::new).transpose();
            judge.map_err(|error| Error::Usage(format!("{option}: {error}")))
        };
        Ok(Filter { focus: judge("--focus", &self.focus)?, ignore: judge("--ignore", &self.ignore)? })
    }
}

impl Tool for Args {
    const EXAMPLES: Entries = &[
        ("fg-collapse perf.txt | fg-filter --focus parse | fg-svg > parse.svg", "Draw only what happens in parsing."),
        ("fg-filter --focus '^parse_' --ignore malloc app.folded", "Parsing without the memory that it takes."),
    ];

    fn common(&self) -> &Common {
        &self.common
    }

    fn color(&self) -> clap::ColorChoice {
        self.color.color
    }

    fn reads_stdin(&self) -> bool {
        self.reading.reads_stdin()
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        let mut filter = self.filter()?;
        session.diagnostics.set_strict(self.reading.strict);
        let profile = folded::gather(&self.reading.sources()?, &mut session.diagnostics)?;
        let filtered = filter.apply(&profile)?;
        report(&filter, &profile, &filtered.profile, filtered.dropped, &mut session.diagnostics);
        session.output.write_with(|mut out| folded::write(&filtered.profile, &mut out))?;
        Ok(0)
    }
}

/// Says what matched nothing, and with `-v` what was kept and dropped.
fn report(filter: &Filter, read: &Profile, kept: &Profile, dropped: Weights, diagnostics: &mut Diagnostics) {
    for (option, judge) in [("--focus", &filter.focus), ("--ignore", &filter.ignore)] {
        if let Some(judge) = judge
            && !judge.matched()
            && !read.is_empty()
        {
            diagnostics.warn(&format!("{option} {}: matches no frame", judge.pattern()));
        }
    }
    let shown = |weights: Weights| match read.is_differential() {
        true => format!("{} {}", weights.before, weights.after),
        false => weights.after.to_string(),
    };
    let (kept, dropped, total) = (shown(kept.total()), shown(dropped), shown(read.total()));
    diagnostics.note(&format!("kept {kept} + dropped {dropped} = {total}"));
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
