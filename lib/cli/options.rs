//! The options that several tools have, each with one meaning.

use std::path::PathBuf;

use clap::builder::Resettable;
use clap::{Args as _, FromArgMatches as _};

use super::generate;
use crate::profile::Weight;

/// Reads a weight that an option names: a positive number.
///
/// # Errors
/// What was expected, in words.
pub fn positive(text: &str) -> Result<Weight, &'static str> {
    let weight = Weight::parse(text.as_bytes()).filter(|weight| !weight.is_zero());
    weight.ok_or("expected a positive number, like 2 or 0.25")
}

/// The options that all tools have.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Common {
    /// Write to FILE, once it is complete [default: stdout]
    #[arg(short, long, value_name = "FILE", display_order = 900)]
    pub output: Option<PathBuf>,

    /// No warnings, only errors
    #[arg(short, long, display_order = 901, overrides_with = "verbose")]
    pub quiet: bool,

    /// Say more about what is done
    #[arg(short, long, action = clap::ArgAction::Count, display_order = 902, overrides_with = "quiet")]
    pub verbose: u8,

    /// Print a man page or a shell's completions, and end
    #[arg(long, value_name = "KIND", hide = true, exclusive = true)]
    pub generate: Option<generate::Kind>,
}

impl Common {
    /// How much is to be said: -1 only errors, 0 warnings too, 1 and up also what was done.
    pub fn verbosity(&self) -> i8 {
        if self.quiet { -1 } else { i8::try_from(self.verbose).unwrap_or(i8::MAX) }
    }
}

/// How messages are coloured; all tools but fg-svg, whose `--color` is the palette, as flamegraph.pl has it.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Color {
    /// Colour messages: auto, always or never
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        hide_short_help = true,
        display_order = 903
    )]
    pub color: clap::ColorChoice,
}

/// The operands of tools that read files, and how they are read.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Reading {
    /// Files to read, plain or compressed (gzip, zstd); `-` or none is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Fail at the first malformed line instead of leaving it out
    #[arg(long, hide_short_help = true, display_order = 800)]
    pub strict: bool,
}

impl Reading {
    /// Whether standard input is among it.
    pub(super) fn reads_stdin(&self) -> bool {
        self.files.is_empty() || self.files.iter().any(|file| file.as_os_str() == "-")
    }
}

/// What a command line says of the options that tools share; as usual where the tool does not have them.
pub(super) struct Shared {
    pub(super) common: Common,
    pub(super) reading: Reading,
    pub(super) color: clap::ColorChoice,
}

impl Shared {
    /// Adds to a tool's own options those that it does not have itself.
    pub(super) fn add_to(mut command: clap::Command) -> clap::Command {
        // What is added would put its own words in the place of the tool's.
        let (about, at_length) = (command.get_about().cloned(), command.get_long_about().cloned());
        if command.get_positionals().next().is_none() {
            command = Reading::augment_args(command);
        }
        if !has(&command, "output") {
            command = Common::augment_args(command);
        }
        if !has(&command, "color") {
            command = Color::augment_args(command);
        }
        command.about(Resettable::from(about)).long_about(Resettable::from(at_length))
    }

    pub(super) fn of(matches: &clap::ArgMatches, command: &clap::Command) -> Result<Self, clap::Error> {
        // In release builds the matches do not tell an option that the tool does not have from one that was not given.
        let has = |id| command.get_arguments().any(|option| option.get_id() == id);
        Ok(Self {
            common: Common::from_arg_matches(matches)?,
            reading: if has("files") { Reading::from_arg_matches(matches)? } else { Reading::default() },
            color: if has("color") { Color::from_arg_matches(matches)?.color } else { clap::ColorChoice::Auto },
        })
    }
}

/// Whether there is an option of this name.
fn has(command: &clap::Command, name: &str) -> bool {
    let is_called = |option: &clap::Arg| {
        option.get_long() == Some(name) || option.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
    };
    command.get_arguments().any(is_called)
}

/// What a span of time looks like.
const DURATION: &str = "a number of seconds, or 500ms, 10s, 2m, 1h";

/// Reads a span of time: `10`, `1.5s`, `500ms`, `2m`, `1h`.
///
/// # Errors
/// What it should look like.
pub fn parse_duration(text: &str) -> Result<std::time::Duration, String> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let scale = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "us" => 0.000_001,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(DURATION.to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| DURATION.to_owned())?;
    let duration = std::time::Duration::try_from_secs_f64(number * scale).ok().filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| DURATION.to_owned())
}

/// Reads a share, in percent.
///
/// # Errors
/// What would be right.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').trim_end().parse().ok();
    percent.filter(|percent| (0.01..=100.0).contains(percent)).ok_or_else(|| "a share such as 2 or 0.5".to_owned())
}
