//! Renders a program's man page from its options and its [`Tool`] constants.
//!
//! clap_mangen (0.3) prints help texts in roman only, makes each group of options a section of its own, and puts
//! everything after the options into one section without markup.

use std::fmt::Write as _;

use clap::Arg;

use super::command;
use super::programs::PROGRAMS;
use super::roff::{bold, escape, italic, prose};
use super::tool::{Entries, Section, Tool};

/// Environment variables that all programs use.
const ENVIRONMENT: Entries = &[
    ("NO_COLOR", "If set and not empty, messages are not coloured."),
    (
        "CLICOLOR_FORCE",
        "If set and not `0`, messages are coloured even if standard error is not a terminal, unless NO_COLOR is set.",
    ),
    ("TERM", "If `dumb`, messages are not coloured, unless CLICOLOR_FORCE is set."),
];

/// The date of this version. It is fixed, so that the same source always gives the same page.
const DATE: &str = "2026-11-21";

/// Renders the man page of a program.
pub(super) fn render<T: Tool>() -> String {
    let mut command = command::build::<T>();
    let usage = command.render_usage().to_string();
    // clap knows how many values an option takes only after the build.
    command.build();
    let name = command::name::<T>();
    let mut page = String::new();
    let _ = writeln!(
        page,
        ".TH {} 1 {DATE} \"fgkit {}\" \"User Commands\"",
        escape(&name.to_uppercase()),
        env!("CARGO_PKG_VERSION")
    );
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, ".SH NAME\n{} \\- {}", escape(name), escape(&about));
    push_synopsis(&mut page, name, &usage);
    let description = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    push_description(&mut page, &about, &description);
    push_options(&mut page, &command);
    T::sections().iter().for_each(|section| push_section(&mut page, section));
    push_entries(&mut page, "EXIT STATUS", T::EXIT_STATUS);
    push_entries(&mut page, "ENVIRONMENT", &[T::ENVIRONMENT, ENVIRONMENT].concat());
    push_examples(&mut page, T::EXAMPLES);
    push_see_also(&mut page, name, T::SEE_ALSO);
    // Texts that the help also shows refer to sections of this very page.
    page.replace(&format!(" in {}(1)", bold(name)), "")
}

/// Appends the usage lines, with placeholders such as `FILE` in italics.
fn push_synopsis(page: &mut String, name: &str, usage: &str) {
    page.push_str(".SH SYNOPSIS\n");
    for (number, line) in usage.trim_start_matches("Usage:").lines().map(str::trim).enumerate() {
        let line = line.strip_prefix(name).unwrap_or(line);
        let between = if number > 0 { ".br\n" } else { "" };
        let _ = writeln!(page, "{between}{}{}", bold(name), synopsis_line(line));
    }
}

/// Sets words in capitals in italics and options in bold.
fn synopsis_line(line: &str) -> String {
    let (mut rendered, mut rest) = (String::new(), line);
    while let Some(start) = rest.find(is_part_of_name) {
        let end = rest[start..].find(|c| !is_part_of_name(c)).map_or(rest.len(), |length| start + length);
        let (before, word) = (&rest[..start], &rest[start..end]);
        rendered.push_str(&escape(before));
        rendered.push_str(&if word.starts_with('-') { bold(word) } else { italic(word) });
        rest = &rest[end..];
    }
    rendered + &escape(rest)
}

/// True for the characters of option names and of words in capitals.
fn is_part_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '-'
}

/// Appends the description without its first paragraph, which NAME has.
fn push_description(page: &mut String, about: &str, description: &str) {
    page.push_str(".SH DESCRIPTION\n");
    let rest = description.strip_prefix(about).unwrap_or(description).trim_start();
    push_paragraphs(page, if rest.is_empty() { about } else { rest }, ".PP");
}

/// Appends paragraphs, which blank lines separate, with a roff request between them.
fn push_paragraphs(page: &mut String, text: &str, separator: &str) {
    for (number, paragraph) in text.split("\n\n").enumerate() {
        if number > 0 {
            let _ = writeln!(page, "{separator}");
        }
        let _ = writeln!(page, "{}", prose(paragraph));
    }
}

/// Appends all options: positional arguments, options without a heading, then each heading's.
fn push_options(page: &mut String, command: &clap::Command) {
    let mut options: Vec<&Arg> = command.get_arguments().filter(|option| !option.is_hide_set()).collect();
    options.sort_by_key(|option| (!option.is_positional(), option.get_display_order()));
    let mut headings: Vec<Option<&str>> = vec![None];
    for option in &options {
        if !headings.contains(&option.get_help_heading()) {
            headings.push(option.get_help_heading());
        }
    }
    page.push_str(".SH OPTIONS\n");
    for heading in headings {
        if let Some(heading) = heading {
            let _ = writeln!(page, ".SS {}", escape(heading));
        }
        for option in options.iter().filter(|option| option.get_help_heading() == heading) {
            push_option(page, option);
        }
    }
}

fn push_option(page: &mut String, option: &Arg) {
    let _ = writeln!(page, ".TP\n{}", option_names(option));
    let help = option.get_long_help().or(option.get_help()).map(ToString::to_string).unwrap_or_default();
    let (first, rest) = help.split_once("\n\n").unwrap_or((&help, ""));
    let _ = writeln!(page, "{}{}.", prose(first), default_value(option));
    if !rest.is_empty() {
        page.push_str(".sp\n");
        push_paragraphs(page, rest, ".sp");
    }
}

/// Returns `-o, --output FILE` in bold and italics.
fn option_names(option: &Arg) -> String {
    let values = option.get_value_names().unwrap_or_default().join(" ");
    if option.is_positional() {
        return format!("[{}]{}", italic(&values), if is_repeated(option) { "..." } else { "" });
    }
    let short = option.get_short().map(|short| bold(&format!("-{short}")));
    let long = option.get_long().map(|long| bold(&format!("--{long}")));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let value = match option.get_num_args() {
        Some(count) if count.takes_values() && count.min_values() == 0 => format!("[={}]", italic(&values)),
        Some(count) if count.takes_values() => format!(" {}", italic(&values)),
        _ => String::new(),
    };
    names.join(", ") + &value
}

fn is_repeated(option: &Arg) -> bool {
    option.get_num_args().is_some_and(|count| count.max_values() > 1)
}

/// Returns ` [default: …]` if the help shows a default value.
fn default_value(option: &Arg) -> String {
    let takes_value = option.get_num_args().is_some_and(|count| count.takes_values());
    match option.get_default_values() {
        [value] if takes_value && !option.is_hide_default_value_set() => {
            format!(" [default: {}]", escape(&value.to_string_lossy()))
        }
        _ => String::new(),
    }
}

fn push_section(page: &mut String, section: &Section) {
    let _ = writeln!(page, ".SH {}", escape(section.heading));
    if !section.text.is_empty() {
        push_paragraphs(page, section.text, ".PP");
    }
    section.entries.iter().for_each(|(term, description)| push_entry(page, term, description));
}

fn push_entries(page: &mut String, heading: &str, entries: &[(&str, &str)]) {
    let _ = writeln!(page, ".SH {heading}");
    entries.iter().for_each(|(term, description)| push_entry(page, term, description));
}

fn push_entry(page: &mut String, term: &str, description: &str) {
    let _ = writeln!(page, ".TP\n{}", bold(term));
    push_paragraphs(page, description, ".sp");
}

fn push_examples(page: &mut String, examples: Entries) {
    page.push_str(".SH EXAMPLES\n");
    for (number, (line, description)) in examples.iter().enumerate() {
        let between = if number > 0 { ".PP\n" } else { "" };
        let _ = writeln!(page, "{between}{}\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE", prose(description), escape(line));
    }
}

fn push_see_also(page: &mut String, name: &str, others: &[&str]) {
    let programs = PROGRAMS.iter().filter(|program| **program != name).map(|program| format!("{program}(1)"));
    let others = others.iter().map(|page| (*page).to_owned());
    let pages = programs.chain(["fg-folded(5)".to_owned()]).chain(others).map(|page| prose(&page));
    let _ = writeln!(page, ".SH SEE ALSO\n{}", pages.collect::<Vec<_>>().join(",\n"));
}
