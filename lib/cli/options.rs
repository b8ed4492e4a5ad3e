//! Options that several programs share, and parsers for their values.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::Resettable;
use clap::{Args as _, FromArgMatches as _};

use crate::profile::Weight;

/// The heading of the options that programs share.
pub(super) const GENERAL_HEADING: &str = "General options";

/// The options that all programs have.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = GENERAL_HEADING)]
pub struct CommonArgs {
    /// Write to FILE [default: standard output]
    ///
    /// FILE is compressed with gzip if its name ends with `.gz`. It is created or replaced when the output is complete;
    /// until then, the output is a file without a name in the same directory, or with a temporary name where the
    /// file system cannot do that.
    #[arg(short, long, value_name = "FILE", display_order = 900)]
    pub output: Option<PathBuf>,

    /// Print errors only, no warnings
    #[arg(short, long, display_order = 901, overrides_with = "verbose")]
    pub quiet: bool,

    /// Also print notes about what the program does
    #[arg(short, long, action = clap::ArgAction::Count, display_order = 902, overrides_with = "quiet")]
    pub verbose: u8,

    /// Print a man page or a completion script and exit
    #[arg(long, value_name = "KIND", hide = true, exclusive = true)]
    pub generate: Option<Generated>,
}

impl CommonArgs {
    /// Returns how much to report: -1 for errors only, 0 for warnings too, 1 and more for notes too.
    pub fn verbosity(&self) -> i8 {
        if self.quiet { -1 } else { i8::try_from(self.verbose).unwrap_or(i8::MAX) }
    }
}

/// A document that `--generate` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "kebab-case")]
pub enum Generated {
    /// The man page, as roff.
    Man,
    /// A completion script for bash.
    CompleteBash,
    /// A completion script for zsh.
    CompleteZsh,
    /// A completion script for fish.
    CompleteFish,
    /// The options as a table with tabs: name, value, other names, meaning.
    Options,
}

/// The colour of messages, for all programs but fg-svg: its `--color` is the palette, as in flamegraph.pl.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = GENERAL_HEADING)]
pub struct ColorArgs {
    /// Colour messages: `auto`, `always` or `never`
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

/// The input files of programs that read any number of them.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = GENERAL_HEADING)]
pub struct InputArgs {
    /// Input files, plain or compressed [default: `-`, standard input]
    ///
    /// Files compressed with gzip, zstd, xz or bzip2 are recognized by their content.
    #[arg(value_name = "FILE", help_heading = None)]
    pub files: Vec<PathBuf>,

    /// Read the files in LIST; a null byte ends each name
    ///
    /// `find -print0` writes such a list. If LIST is `-`, it is read from standard input.
    #[arg(long, value_name = "LIST", conflicts_with = "files", hide_short_help = true, display_order = 799)]
    pub files0_from: Option<PathBuf>,

    /// Fail at the first malformed line instead of skipping it
    #[arg(long, hide_short_help = true, display_order = 800)]
    pub strict: bool,
}

impl InputArgs {
    /// True if standard input is among the inputs.
    pub(super) fn reads_stdin(&self) -> bool {
        if let Some(list) = &self.files0_from {
            return list.as_os_str() == "-";
        }
        self.files.is_empty() || self.files.iter().any(|file| file.as_os_str() == "-")
    }
}

/// The values of the shared options; defaults for those that the program does not have.
pub(super) struct SharedArgs {
    pub(super) common: CommonArgs,
    pub(super) input: InputArgs,
    pub(super) color: clap::ColorChoice,
}

impl SharedArgs {
    /// Adds the shared options that the program does not define itself.
    pub(super) fn add_to(mut command: clap::Command, has_inputs: bool) -> clap::Command {
        // `augment_args` replaces the program's description with that of the struct.
        let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
        if has_inputs && command.get_positionals().next().is_none() {
            command = InputArgs::augment_args(command);
        }
        if !has_option(&command, "output") {
            command = CommonArgs::augment_args(command);
        }
        if !has_option(&command, "color") {
            command = ColorArgs::augment_args(command);
        }
        command.about(Resettable::from(about)).long_about(Resettable::from(long_about))
    }

    pub(super) fn from_matches(matches: &clap::ArgMatches, command: &clap::Command) -> Result<Self, clap::Error> {
        // In release builds `matches` does not distinguish an undefined option from one that was not given.
        let is_defined = |id| command.get_arguments().any(|argument| argument.get_id() == id);
        Ok(Self {
            common: CommonArgs::from_arg_matches(matches)?,
            input: if is_defined("files") { InputArgs::from_arg_matches(matches)? } else { InputArgs::default() },
            color: match is_defined("color") {
                true => ColorArgs::from_arg_matches(matches)?.color,
                false => clap::ColorChoice::Auto,
            },
        })
    }
}

/// True if the program defines `--name`, or has it as an alias.
fn has_option(command: &clap::Command, name: &str) -> bool {
    command.get_arguments().any(|argument| {
        argument.get_long() == Some(name) || argument.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
    })
}

/// Parses a weight that is not zero.
///
/// # Errors
/// A description of valid values.
pub fn parse_positive_weight(text: &str) -> Result<Weight, &'static str> {
    let weight = Weight::parse(text.as_bytes()).filter(|weight| !weight.is_zero());
    weight.ok_or("expected a positive number, like 2 or 0.25")
}

/// A description of valid durations.
const DURATION: &str = "expected a number of seconds above 0, or a duration like 500ms, 10s, 2m or 1h";

/// Parses a duration that is not zero: `10`, `1.5s`, `500ms`, `50us`, `2m`, `1h`. A number without a unit is in
/// seconds.
///
/// # Errors
/// A description of valid values.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let seconds_per_unit = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "us" => 0.000_001,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(DURATION.to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| DURATION.to_owned())?;
    let duration = Duration::try_from_secs_f64(number * seconds_per_unit).ok().filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| DURATION.to_owned())
}

/// Parses a percentage from 0.01 to 100, with or without a percent sign.
///
/// # Errors
/// A description of valid values.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').trim_end().parse().ok();
    let percent = percent.filter(|percent| (0.01..=100.0).contains(percent));
    percent.ok_or_else(|| "expected a percentage from 0.01 to 100".to_owned())
}

/// Returns a parser for whole numbers in a range.
///
/// Its error is a description of valid values.
pub fn integer_in<N>(
    range: impl RangeBounds<N> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<N, String> + Clone
where
    N: FromStr + PartialOrd + Display,
{
    move |text| text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| describe_range(&range))
}

fn describe_range<N: Display>(range: &impl RangeBounds<N>) -> String {
    match (range.start_bound(), range.end_bound()) {
        (Bound::Included(start), Bound::Included(end)) => format!("expected a whole number from {start} to {end}"),
        (Bound::Included(start), _) => format!("expected a whole number, {start} or more"),
        _ => "expected a whole number".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{integer_in, parse_duration, parse_percent};

    #[test]
    fn integers_outside_the_range_are_rejected_with_the_range() {
        assert_eq!(integer_in(1..=250_u32)("250"), Ok(250));
        for text in ["0", "251", "x", "", "-1", "99999999999"] {
            assert_eq!(integer_in(1..=250_u32)(text).unwrap_err(), "expected a whole number from 1 to 250", "{text}");
        }
        assert_eq!(integer_in(1_u64..)("0").unwrap_err(), "expected a whole number, 1 or more");
        assert_eq!(integer_in::<u32>(..)("x").unwrap_err(), "expected a whole number");
    }

    #[test]
    fn durations_have_units_and_are_not_zero() {
        for (text, milliseconds) in [("10", 10_000), ("1.5s", 1500), ("500ms", 500), ("2m", 120_000), ("1h", 3_600_000)]
        {
            assert_eq!(parse_duration(text).unwrap().as_millis(), milliseconds, "{text}");
        }
        for text in ["", "0", "s", "10d", "-1", "1e400"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_may_have_a_sign_and_are_at_most_100() {
        assert_eq!(["2", "0.5%", "100 %"].map(parse_percent), [Ok(2.0), Ok(0.5), Ok(100.0)]);
        for text in ["0", "101", "x", ""] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }
}
