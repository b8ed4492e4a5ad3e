//! What a program defines: its options, its documentation and its work.

use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::input::Source;
use crate::output::Output;

/// Terms with their descriptions, such as exit statuses, or command lines with what they do.
pub type Entries = &'static [(&'static str, &'static str)];

/// Exit statuses of a program that has no special ones.
const EXIT_STATUS: Entries = &[
    ("0", "Success. Malformed lines, if any, were skipped and reported on standard error."),
    (
        "1",
        "An input could not be read, no input was usable, or the output could not be written. What could be read of \
         several inputs is written to standard output, but not to the FILE of -o.",
    ),
    ("2", "Invalid command line."),
];

/// A section that a program adds to its man page, between OPTIONS and EXIT STATUS.
#[derive(Clone, Debug)]
pub struct Section {
    /// Heading in capitals.
    pub heading: &'static str,
    /// Paragraphs before the entries, separated by blank lines; may be empty.
    pub text: &'static str,
    /// Terms with their descriptions.
    pub entries: Vec<(&'static str, &'static str)>,
}

/// One of the programs: its own options, its documentation, and its work.
///
/// A program also gets the options of [`CommonArgs`](super::CommonArgs), [`ColorArgs`](super::ColorArgs) and, unless it
/// has positional arguments of its own or no inputs, [`InputArgs`](super::InputArgs). An option that the program
/// defines itself is not added again.
pub trait Tool: clap::Parser {
    /// Command lines worth copying, each with what it does. The short help shows the first one.
    const EXAMPLES: Entries;

    /// Exit statuses with their meaning.
    const EXIT_STATUS: Entries = EXIT_STATUS;

    /// Environment variables that only this program uses, with their meaning.
    const ENVIRONMENT: Entries = &[];

    /// Man pages of other projects to refer to, such as `perf-script(1)`.
    const SEE_ALSO: &'static [&'static str] = &[];

    /// True if the program reads files or standard input.
    const HAS_INPUTS: bool = true;

    /// Returns the sections that only this program's man page has.
    fn sections() -> Vec<Section> {
        Vec::new()
    }

    /// Returns values that shells offer for options whose values no type lists, by the long name of the option.
    fn completions() -> Vec<(&'static str, Vec<&'static str>)> {
        Vec::new()
    }

    /// True if the program reads standard input when no file is named, or `-` is. If standard input is then a terminal,
    /// the program prints its usage and exits instead of waiting.
    fn reads_stdin(&self) -> bool {
        true
    }

    /// True if the program opens its output files itself, so that [`Session::output`] is standard output whatever `-o`
    /// names.
    fn opens_outputs(&self) -> bool {
        false
    }

    /// True if the program handles SIGINT, SIGQUIT, SIGTERM and SIGHUP itself. Otherwise a shared handler removes an
    /// unfinished output file and ends the process.
    fn handles_signals(&self) -> bool {
        false
    }

    /// Does the work, and returns the exit status: 0 for success.
    ///
    /// # Errors
    /// Any error ends the program with a message and the exit status of [`Self::failure`], or 2 for [`Error::Usage`].
    fn run(self, session: &mut Session) -> Result<u8, Error>;

    /// Returns the exit status for an error.
    fn failure(_error: &Error) -> u8 {
        1
    }
}

/// The input, output and messages of a running program.
pub struct Session {
    /// Inputs to read, for programs without positional arguments of their own.
    pub sources: Vec<Source>,
    /// Output for the result.
    pub output: Output,
    /// Output for warnings and progress.
    pub diagnostics: Diagnostics,
}
