//! The options of a program as a table, from which a test makes the table of all programs.

use super::command;
use super::tool::Tool;

/// Returns a line for each visible option: its name, the name of its value, its hidden names and its meaning, with tabs.
pub(super) fn render<T: Tool>() -> String {
    let command = command::build::<T>();
    let options = command.get_arguments().filter(|argument| !argument.is_hide_set() && !argument.is_positional());
    let lines = options.map(|argument| {
        let short = argument.get_short().map(|short| format!("-{short}"));
        let name = argument.get_long().map(|long| format!("--{long}")).or(short.clone()).unwrap_or_default();
        let value = match argument.get_action().takes_values() {
            true => argument.get_value_names().unwrap_or_default().join(" "),
            false => String::new(),
        };
        let aliases = argument.get_all_aliases().unwrap_or_default().into_iter().map(|alias| format!("--{alias}"));
        let others: Vec<String> = short.filter(|short| *short != name).into_iter().chain(aliases).collect();
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        format!("{name}\t{value}\t{}\t{help}\n", others.join(" "))
    });
    lines.collect()
}
