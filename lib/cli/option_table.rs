//! The options of a program as a table, from which tests make the table of all programs and check completions.

use super::command;
use super::completions::offered_values;
use super::tool::Tool;

/// Returns a line for each visible option, with tabs between its name, the name of its value, its hidden names, its
/// meaning, and the values that shells offer.
pub(super) fn render<T: Tool>() -> String {
    let command = command::build::<T>();
    let options = command.get_arguments().filter(|argument| !argument.is_hide_set() && !argument.is_positional());
    let completions = offered_values::<T>();
    let lines = options.map(|argument| {
        let offered = completions.iter().find(|(name, _)| argument.get_long() == Some(name));
        let possible = argument.get_possible_values();
        let values: Vec<&str> = match offered {
            Some((_, values)) => values.clone(),
            // A flag has the values `true` and `false`, which nobody writes.
            None if !argument.get_action().takes_values() => Vec::new(),
            None => possible.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name()).collect(),
        };
        let short = argument.get_short().map(|short| format!("-{short}"));
        let name = argument.get_long().map(|long| format!("--{long}")).or(short.clone()).unwrap_or_default();
        let value = match argument.get_action().takes_values() {
            true => argument.get_value_names().unwrap_or_default().join(" "),
            false => String::new(),
        };
        let aliases = argument.get_all_aliases().unwrap_or_default().into_iter().map(|alias| format!("--{alias}"));
        let others: Vec<String> = short.filter(|short| *short != name).into_iter().chain(aliases).collect();
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        format!("{name}\t{value}\t{}\t{help}\t{}\n", others.join(" "), values.join(" "))
    });
    lines.collect()
}
