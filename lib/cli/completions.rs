//! Completion scripts for shells.

use clap::builder::PossibleValuesParser;

use super::command;
use super::tool::Tool;

/// The line of the bash script after which the word before the cursor is known.
const BASH_PREVIOUS_WORD: &str = "    prev=\"$3\"\n";

/// Bash takes the `=` of `--option=VALUE` for a word of its own.
const BASH_EQUALS_SIGN: &str = r#"    if [[ "${prev}" == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD-2]}"
    elif [[ "${COMP_WORDS[COMP_CWORD]}" == "=" ]]; then
        cur=""
        prev="${COMP_WORDS[COMP_CWORD-1]}"
    fi
"#;

/// The line of that branch which takes the word before the sign for the option.
const BASH_OPTION: &str = "    if [[ \"${prev}\" == \"=\" ]]; then\n";

/// Values of options that several programs share.
const SHARED: &[(&str, &[&str])] = &[("scale", &["median"])];

/// The events that shells offer for options that name one to be recorded.
pub const COMMON_EVENTS: &[&str] = &[
    "cpu-clock",
    "task-clock",
    "cycles",
    "instructions",
    "cache-misses",
    "branch-misses",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "sched:sched_switch",
];

/// Returns the values that shells offer, by the long name of the option, where its type does not list them.
pub(super) fn offered_values<T: Tool>() -> Vec<(&'static str, Vec<&'static str>)> {
    let shared = SHARED.iter().map(|(name, values)| (*name, values.to_vec()));
    T::completions().into_iter().chain(shared).collect()
}

/// Returns the completion script of a program for a shell.
pub(super) fn render<T: Tool>(shell: clap_complete::Shell) -> Vec<u8> {
    // Visible options only: the generators would offer the hidden ones too.
    let complete = command::build::<T>();
    let values = offered_values::<T>();
    let visible = complete.get_arguments().filter(|argument| !argument.is_hide_set()).cloned().map(|argument| {
        let found = values.iter().find(|(name, _)| argument.get_long() == Some(name));
        match found {
            Some((_, values)) => argument.value_parser(PossibleValuesParser::new(values)),
            None => argument,
        }
    });
    let with_sign = complete.get_arguments().filter(|argument| argument.is_require_equals_set());
    let joined: Vec<&str> = with_sign.filter_map(clap::Arg::get_long).collect();
    let name = command::name::<T>();
    let mut command =
        clap::Command::new(name).version("").disable_help_flag(true).disable_version_flag(true).args(visible);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    match shell {
        clap_complete::Shell::Bash => {
            let script = String::from_utf8_lossy(&script);
            let equals_sign = BASH_EQUALS_SIGN.replacen(BASH_OPTION, &without_separate_values(&joined, BASH_OPTION), 1);
            script.replacen(BASH_PREVIOUS_WORD, &format!("{BASH_PREVIOUS_WORD}{equals_sign}"), 1).into_bytes()
        }
        clap_complete::Shell::Fish => {
            let script = String::from_utf8_lossy(&script);
            let lines =
                script.lines().map(|line| match joined.iter().any(|name| line.contains(&format!(" -l {name} "))) {
                    // Without it, the value is not the next word.
                    true => format!("{}\n", line.replacen(" -r ", " ", 1)),
                    false => format!("{line}\n"),
                });
            lines.collect::<String>().into_bytes()
        }
        _ => script,
    }
}

/// Puts a branch before a condition of the bash script: after these options, whose values follow a `=`, the next word is no value.
fn without_separate_values(options: &[&str], condition: &str) -> String {
    if options.is_empty() {
        return condition.to_owned();
    }
    let options: Vec<String> = options.iter().map(|name| format!("\"${{prev}}\" == \"--{name}\"")).collect();
    format!(
        "    if [[ ( {} ) && \"${{COMP_WORDS[COMP_CWORD]}}\" != \"=\" ]]; then\n        prev=\"\"\n    el{}",
        options.join(" || "),
        condition.trim_start()
    )
}
