//! Completion scripts for shells.

use super::command;
use super::tool::Tool;

/// Returns the completion script of a program for a shell.
pub(super) fn render<T: Tool>(shell: clap_complete::Shell) -> Vec<u8> {
    // Visible options only: the generators would offer the hidden ones too.
    let complete = command::build::<T>();
    let visible = complete.get_arguments().filter(|argument| !argument.is_hide_set()).cloned();
    let name = command::name::<T>();
    let mut command =
        clap::Command::new(name).version("").disable_help_flag(true).disable_version_flag(true).args(visible);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    script
}
