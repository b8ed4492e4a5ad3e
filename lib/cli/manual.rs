//! The manual: what the options say of themselves, and examples, exit statuses and environment around it.

use std::fmt::Write as _;
use std::io;

use super::{Tool, usage};

/// Terms and what they mean, or command lines and what they do.
pub type Entries = &'static [(&'static str, &'static str)];

/// The exit statuses of a tool that has none of its own.
pub(super) const EXIT_STATUS: Entries = &[
    ("0", "The output is complete for every line that could be read. Lines left out were counted on standard error."),
    ("1", "A file could not be read, nothing of the input could be read, or the output could not be written."),
    ("2", "The command line is wrong."),
];

const ENVIRONMENT: Entries = &[
    ("NO_COLOR", "If set and not empty, messages have no colours."),
    ("CLICOLOR_FORCE", "If set and not 0, messages have colours even where they go to no terminal."),
    ("TERM", "If dumb, messages have no colours."),
];

const FAMILY: [&str; 10] = [
    "fg-record(1)",
    "fg-collapse(1)",
    "fg-filter(1)",
    "fg-diff(1)",
    "fg-csv(1)",
    "fg-check(1)",
    "fg-pprof(1)",
    "fg-svg(1)",
    "fg-heatmap(1)",
    "fg-folded(5)",
];

/// When this version was made. No clock: the same source makes the same pages.
const DATE: &str = "2026-11-21";

/// Adds the first example to the short help; all of them, and the exit statuses, to the long one.
pub(super) fn add_examples<T: Tool>(command: clap::Command) -> clap::Command {
    let Some((first, _)) = T::EXAMPLES.first() else { return command };
    let mut long = "Examples:".to_owned();
    for (line, what) in T::EXAMPLES {
        let _ = write!(long, "\n  {line}\n      {what}");
    }
    long.push_str("\n\nExit status:");
    for (status, what) in T::EXIT_STATUS {
        let _ = write!(long, "\n  {status:<3} {what}");
    }
    command.after_help(format!("Example: {first}")).after_long_help(long)
}

/// The man page of a tool.
pub(super) fn page<T: Tool>() -> io::Result<Vec<u8>> {
    let mut command = usage::command::<T>();
    let synopsis = command.render_usage().to_string();
    // Options that only the long help shows are in the manual too, which has all.
    let command = command
        .override_usage(synopsis.trim_start_matches("Usage: ").to_owned())
        .mut_args(|option| option.hide_short_help(false));
    let man = clap_mangen::Man::new(command)
        .title(usage::name::<T>().to_uppercase())
        .date(DATE)
        .source(concat!("fgkit ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    Ok((tidy(&String::from_utf8_lossy(&page)) + &sections::<T>()).into_bytes())
}

/// The generator's text with what it writes before each section left out, apostrophes that need no such preamble,
/// paragraphs that stay in their option's indentation, and commands in `backquotes` bold.
fn tidy(page: &str) -> String {
    let (mut text, mut gap) = (String::new(), "");
    for line in page.lines().filter(|line| !line.starts_with(".ie ") && !line.starts_with(".el ")) {
        // Between paragraphs the generator writes any number of breaks and empty lines, where one break does.
        if line.is_empty() || line == ".br" {
            gap = if line.is_empty() || gap == ".sp\n" { ".sp\n" } else { ".br\n" };
            continue;
        }
        text.push_str(std::mem::take(&mut gap));
        let line = line.replace("\\*(Aq", "\\(aq");
        match line.matches('`').count() {
            quotes if quotes % 2 == 0 => {
                for (number, part) in line.split('`').enumerate() {
                    text.push_str(match number {
                        0 => "",
                        _ if number % 2 == 1 => "\\fB",
                        _ => "\\fR",
                    });
                    text.push_str(part);
                }
            }
            _ => text.push_str(&line),
        }
        text.push('\n');
    }
    text
}

fn sections<T: Tool>() -> String {
    let mut text = String::new();
    let common = [("EXIT STATUS", T::EXIT_STATUS.to_vec()), ("ENVIRONMENT", ENVIRONMENT.to_vec())];
    for (heading, entries) in T::sections().into_iter().chain(common) {
        let _ = writeln!(text, ".SH {heading}");
        for (term, what) in entries {
            let _ = writeln!(text, ".TP\n\\fB{}\\fR\n{}", escape(term), escape(what));
        }
    }
    if !T::EXAMPLES.is_empty() {
        text.push_str(".SH EXAMPLES\n");
    }
    for (number, (line, what)) in T::EXAMPLES.iter().enumerate() {
        let between = if number > 0 { ".PP\n" } else { "" };
        let _ = writeln!(text, "{between}{}\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE", escape(what), escape(line));
    }
    let others = FAMILY.iter().copied().filter(|page| page.split('(').next() != Some(usage::name::<T>()));
    let pages: Vec<String> = others.chain(T::SEE_ALSO.iter().copied()).map(reference).collect();
    let _ = writeln!(text, ".SH SEE ALSO\n{}", pages.join(",\n"));
    text
}

/// `name(1)` as manuals set it.
fn reference(page: &str) -> String {
    let (name, section) = page.split_at(page.find('(').unwrap_or(page.len()));
    format!("\\fB{}\\fR{section}", escape(name))
}

/// Text as roff takes it to the letter.
fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}
