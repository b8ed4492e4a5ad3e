//! `fg-diff`: two profiles in, one with two weights a stack out.

use std::path::PathBuf;
use std::process::ExitCode;

use fgkit::cli::{self, Color, Common, Session, Tool};
use fgkit::diagnostics::Diagnostics;
use fgkit::diff::{Options, diff};
use fgkit::input::Source;
use fgkit::profile::Profile;
use fgkit::{Error, folded};

/// Compare two profiles: every stack of either with its weight before and after
///
/// Reads two folded profiles and writes `stack BEFORE AFTER` for each stack of either, sorted; a stack that stands in
/// one only weighs 0 in the other. fg-svg draws that in the widths of AFTER, red where it grew and blue where it shrank.
#[derive(clap::Parser)]
#[command(name = "fg-diff")]
struct Args {
    /// The profile before, plain or compressed; `-` is standard input
    before: PathBuf,

    /// The profile after, plain or compressed; `-` is standard input
    after: PathBuf,

    /// Scale BEFORE to the total of AFTER, so that shares are compared
    ///
    /// What rounding takes from one stack is carried to the next, so both sides have the same total to the unit.
    #[arg(short, long)]
    normalize: bool,

    /// Make every 0x address in a frame `0x...`, so that stacks which differ by an address meet
    #[arg(short, long)]
    strip_hex: bool,

    /// Fail at the first malformed line instead of leaving it out
    #[arg(long, display_order = 800)]
    strict: bool,

    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    color: Color,
}

impl Tool for Args {
    const EXAMPLES: cli::Entries = &[
        ("fg-diff -n before.folded after.folded | fg-svg > diff.svg", "Draw what grew, in red, and shrank, in blue."),
        ("fg-diff -n before.folded after.folded | fg-csv | head", "The functions that changed most."),
        ("fg-collapse new.perf | fg-diff -n old.folded - > diff.folded", "Compare with what comes through a pipe."),
    ];

    fn common(&self) -> &Common {
        &self.common
    }

    fn color(&self) -> clap::ColorChoice {
        self.color.color
    }

    fn reads_stdin(&self) -> bool {
        [&self.before, &self.after].iter().any(|file| file.as_os_str() == "-")
    }

    fn run(self, session: &mut Session) -> Result<u8, Error> {
        session.diagnostics.set_strict(self.strict);
        let operands = Source::from_operands(&[self.before, self.after])?;
        let before = read(&operands[0], &mut session.diagnostics)?;
        let after = read(&operands[1], &mut session.diagnostics)?;
        if self.normalize && before.total().after.is_zero() != after.total().after.is_zero() {
            session.diagnostics.warn("one of the profiles weighs nothing: -n has nothing to scale");
        }
        let both = diff(&before, &after, Options { normalize: self.normalize, strip_hex: self.strip_hex })?;
        session.output.write_with(|mut out| folded::write(&both, &mut out))?;
        Ok(0)
    }
}

/// Reads one side. Half a comparison is none, so a side that cannot be read ends it.
fn read(source: &Source, diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let profile = folded::gather(std::slice::from_ref(source), diagnostics)?;
    if diagnostics.failed() {
        return Err(Error::Said);
    }
    if profile.is_differential() {
        let what = "has two weights a line, so it is a comparison already; fg-diff takes profiles".to_owned();
        return Err(Error::Unreadable { name: source.name(), what });
    }
    Ok(profile)
}

fn main() -> ExitCode {
    cli::main::<Args>()
}
