//! Man pages and completions, made from the very options that the binary takes.

use std::io;

use super::{Tool, manual, usage};

/// What can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "kebab-case")]
pub enum Kind {
    /// A man page in roff.
    Man,
    /// Completions for bash.
    CompleteBash,
    /// Completions for zsh.
    CompleteZsh,
    /// Completions for fish.
    CompleteFish,
}

/// Its text.
pub(super) fn text<T: Tool>(kind: Kind) -> io::Result<Vec<u8>> {
    let shell = match kind {
        Kind::Man => return manual::page::<T>(),
        Kind::CompleteBash => clap_complete::Shell::Bash,
        Kind::CompleteZsh => clap_complete::Shell::Zsh,
        Kind::CompleteFish => clap_complete::Shell::Fish,
    };
    // Of the visible options only: the generators offer hidden ones too.
    let command = usage::command::<T>();
    let visible = command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned();
    let mut command = clap::Command::new(usage::name::<T>()).version("").args(visible);
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, usage::name::<T>(), &mut text);
    Ok(text)
}
