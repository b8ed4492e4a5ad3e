//! Man pages and completions, made from the very options that the binary takes.

use std::io::{self, Write as _};

use crate::Error;

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

/// Prints it to standard output.
pub(super) fn print(kind: Kind, command: clap::Command) -> Result<(), Error> {
    let text = generate(kind, command).map_err(|error| Error::write("stdout", error))?;
    let mut stdout = io::stdout();
    stdout.write_all(&text).and_then(|()| stdout.flush()).map_err(|error| Error::write("stdout", error))
}

fn generate(kind: Kind, command: clap::Command) -> io::Result<Vec<u8>> {
    let name = command.get_name().to_owned();
    let mut command = command.version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    let mut text = Vec::new();
    let shell = match kind {
        Kind::Man => {
            let source = format!("fgkit {}", env!("CARGO_PKG_VERSION"));
            clap_mangen::Man::new(command).source(source).manual("User Commands").date("").render(&mut text)?;
            return Ok(text);
        }
        Kind::CompleteBash => clap_complete::Shell::Bash,
        Kind::CompleteZsh => clap_complete::Shell::Zsh,
        Kind::CompleteFish => clap_complete::Shell::Fish,
    };
    clap_complete::generate(shell, &mut command, name, &mut text);
    Ok(text)
}
