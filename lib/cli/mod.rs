//! The command-line front end that all programs share: options, help, man pages, completions and exit statuses.
//!
//! A program is a type that implements [`Tool`]; its `main` calls [`main`]. Exit status: 0 if the output is complete
//! for every line that could be read, 1 for a failure or a negative verdict, 2 for an invalid command line. A reader
//! that closes our output early is not a failure.

mod command;
mod completions;
mod help;
mod man_page;
mod option_table;
mod options;
mod programs;
mod roff;
mod run;
mod run_args;
mod sample_args;
mod tool;

pub use completions::COMMON_EVENTS;
pub use options::{ColorArgs, CommonArgs, InputArgs, integer_in, parse_duration, parse_percent, parse_positive_weight};
pub use programs::PROGRAMS;
pub use run::main;
pub use run_args::{CopyArgs, RunArgs, WeightArgs, check_runs, read_runs, warn_of_counterparts, warn_of_unused};
pub use sample_args::SampleArgs;
pub use tool::{Entries, Section, Session, Tool};
