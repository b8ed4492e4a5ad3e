//! Man pages and completions: up to date, complete and well-formed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::{TOOLS, command, directory, is_blessing, is_installed, require, run, run_command};

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("man").join(name)
}

#[test]
fn man_pages_are_up_to_date() {
    for name in TOOLS {
        let (path, generated) = (page(&format!("{name}.1")), run(name, ["--generate", "man"], b"").ok().text());
        if is_blessing() {
            std::fs::write(&path, &generated).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == generated, "man/{name}.1 is out of date: run scripts/man");
    }
}

const SECTIONS: [&str; 8] =
    ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"];

#[test]
fn man_pages_have_every_option_and_section() {
    for name in TOOLS {
        let text = run(name, ["--generate", "man"], b"").ok().text().replace("\\-", "-");
        for option in options(name) {
            assert!(text.contains(&format!("\\fB{option}\\fR")), "{name}.1 lacks {option}");
        }
        for section in SECTIONS {
            assert!(text.contains(&format!("\n.SH {section}\n")), "{name}.1 lacks {section}");
        }
        assert!(!text.contains(".TP\n.TP") && !text.contains("\n\n"), "{name}.1 has an option that says nothing");
    }
}

/// Returns the long options of `--help`, from lines that begin with an option.
fn options(name: &str) -> Vec<String> {
    let help = run(name, ["--help"], b"").ok().text();
    // The text around the options is not indented, and their descriptions are, by ten columns.
    let is_option = |line: &&str| line.starts_with("  ") && line.trim_start().starts_with('-');
    let starts = help.lines().filter(|line| is_option(line) && !line.starts_with("          ")).map(str::trim_start);
    let words = starts.flat_map(|line| line.split_whitespace().take(2));
    let ends = |word: &str| {
        let name = word.split("[=").next().unwrap_or(word);
        name.trim_end_matches(|end: char| !end.is_alphanumeric()).to_owned()
    };
    let long: Vec<String> = words.filter(|word| word.starts_with("--")).map(ends).collect();
    assert!(long.len() > 4, "{name}: {long:?}");
    long
}

#[test]
fn man_pages_are_well_formed() {
    if !require("mandoc") {
        return;
    }
    let generated = TOOLS.map(|name| (name, run(name, ["--generate", "man"], b"").ok().stdout));
    let format = ("fg-folded", std::fs::read(page("fg-folded.5")).unwrap());
    for (name, text) in generated.into_iter().chain([format]) {
        let mut command = command("mandoc");
        command.args(["-T", "lint", "-W", "warning"]);
        let outcome = run_command(command, &text);
        assert!(outcome.status.success() && outcome.stdout.is_empty(), "{name}: {}", outcome.text());
    }
}

#[test]
fn examples_of_the_format_are_canonical() {
    let page = std::fs::read_to_string(page("fg-folded.5")).unwrap();
    let blocks = page.split(".nf\n").skip(1).map(|rest| rest.split(".fi\n").next().unwrap());
    let profiles = blocks.filter(|text| text.lines().all(|line| line.ends_with(|end: char| end.is_ascii_digit())));
    let mut seen = 0;
    for profile in profiles {
        assert_eq!(run("fg-collapse", [""; 0], profile.as_bytes()).ok().text(), profile);
        seen += 1;
    }
    assert_eq!(seen, 3);
}

#[test]
fn completions_are_valid_and_have_every_option() {
    let folder = directory();
    for (kind, shell, check) in
        [("complete-bash", "bash", "-n"), ("complete-zsh", "zsh", "-n"), ("complete-fish", "fish", "-n")]
    {
        let installed = is_installed(shell);
        for name in TOOLS {
            let script = run(name, ["--generate", kind], b"").ok().text();
            for option in options(name) {
                // fish names options without dashes.
                let option = if shell == "fish" { option.replace("--", "-l ") } else { option };
                assert!(script.contains(&option), "{shell} {name} lacks {option}");
            }
            let path = folder.path().join(name);
            std::fs::write(&path, script).unwrap();
            if installed {
                let mut command = command(shell);
                command.arg(check).arg(&path);
                run_command(command, b"").ok();
            }
        }
    }
}

#[test]
fn completes_in_bash() {
    if !require("bash") {
        return;
    }
    for name in TOOLS {
        let script = run(name, ["--generate", "complete-bash"], b"").ok().text();
        let function = name.replace('-', "__");
        let ask = format!(
            "COMP_WORDS=({name} --verb) COMP_CWORD=1; _{function} {name} --verb {name}; echo \"${{COMPREPLY[@]}}\""
        );
        let mut command = command("bash");
        command.args(["--norc", "-c", &format!("{script}\n{ask}")]);
        assert_eq!(run_command(command, b"").ok().text(), "--verbose\n", "{name}");
    }
}

/// Returns the options of a program that take one of a list of values, with the lists.
fn options_with_values(name: &str) -> Vec<(String, Vec<String>)> {
    let table = run(name, ["--generate", "options"], b"").ok().text();
    let options = table.lines().map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        (cells[0].to_owned(), cells[4].split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    });
    options.filter(|(option, values)| option.starts_with("--") && !values.is_empty()).collect()
}

#[test]
fn shells_offer_the_values_of_options() {
    let mut seen = 0;
    for name in TOOLS {
        let scripts = ["bash", "fish"]
            .map(|shell| (shell, run(name, ["--generate", &format!("complete-{shell}")], b"").ok().text()));
        for (option, values) in options_with_values(name) {
            seen += 1;
            for (shell, script) in &scripts {
                let (asked, prefix) = match *shell {
                    "bash" => {
                        let function = name.replace('-', "__");
                        let words = format!("COMP_WORDS=({name} {option} =) COMP_CWORD=2");
                        (
                            format!(
                                "{script}\n{words}; _{function} {name} = {option}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
                            ),
                            "",
                        )
                    }
                    _ => (format!("{script}\ncomplete -C '{name} {option}='"), "="),
                };
                if !is_installed(shell) {
                    continue;
                }
                let mut command = command(shell);
                command.args(["-c", &asked]);
                let text = run_command(command, b"").ok().text();
                let offered = text.lines().map(|line| line.split('\t').next().unwrap_or(line));
                let mut offered: Vec<&str> = offered
                    .map(|line| {
                        if prefix.is_empty() { line } else { line.split_once(prefix).map_or(line, |(_, value)| value) }
                    })
                    .collect();
                let mut values: Vec<&str> = values.iter().map(String::as_str).collect();
                offered.sort_unstable();
                values.sort_unstable();
                assert_eq!(offered, values, "{shell} {name} {option}");
            }
        }
    }
    assert!(seen >= 20, "{seen}");
}

/// Where a value follows only a `=`, shells offer none as the next word: it would be an operand.
#[test]
fn shells_offer_no_value_as_the_next_word_where_it_needs_a_sign() {
    if !require("bash") {
        return;
    }
    let script = run("fg-filter", ["--generate", "complete-bash"], b"").ok().text();
    let folder = directory();
    for (words, current, previous, expected) in [
        ("fg-filter --shorten ''", "", "--shorten", "-o -q"),
        ("fg-filter --shorten =", "=", "--shorten", "1 2 3"),
        ("fg-filter --shorten = 2", "2", "=", "2"),
    ] {
        let count = words.split(' ').count() - 1;
        let ask = format!(
            "COMP_WORDS=({words}) COMP_CWORD={count}; _fg__filter fg-filter '{current}' '{previous}'; echo \"${{COMPREPLY[@]}}\""
        );
        let mut command = command("bash");
        command.current_dir(folder.path()).args(["--norc", "-c", &format!("{script}\n{ask}")]);
        assert!(run_command(command, b"").ok().text().starts_with(expected), "{words}");
    }
}

/// Completes the lines of `requests`, one after another, when the line editor starts. Whatever is offered goes to `offered`.
const ZSH_INNER: &str = r#"
autoload -Uz compinit && compinit -D -u
for script in fg-*(N); do source ./$script; done
compadd() {
    local -a offered
    builtin compadd -O offered "$@"
    print -rl -- $offered >> offered
    builtin compadd "$@"
}
answer() {
    local request
    for request in ${(f)"$(<requests)"}; do
        print -r -- "?$request" >> offered
        BUFFER=$request CURSOR=$#request
        zle complete-word
    done
    exit
}
zle -N zle-line-init answer
"#;

/// Runs the other script in a terminal: functions of zsh's completion only run in its line editor.
const ZSH_OUTER: &str = r"
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'source ./inner'
while zpty -r shell line; do :; done
";

#[test]
fn zsh_offers_the_values_of_options() {
    if !require("zsh") {
        return;
    }
    let folder = directory();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let (mut requests, mut expected) = (String::new(), BTreeMap::new());
    for name in TOOLS {
        write(name, &run(name, ["--generate", "complete-zsh"], b"").ok().text());
        for (option, values) in options_with_values(name) {
            let request = format!("{name} {option}=");
            requests += &format!("{request}\n");
            expected.insert(request, values.into_iter().collect::<BTreeSet<_>>());
        }
    }
    write("requests", &requests);
    write("inner", ZSH_INNER);
    let mut command = command("zsh");
    command.args(["-f", "-c", ZSH_OUTER]).current_dir(folder.path());
    run_command(command, b"").ok();
    let mut offered: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for answer in std::fs::read_to_string(folder.path().join("offered")).unwrap().split('?').skip(1) {
        let (request, values) = answer.split_once('\n').unwrap();
        // The functions of zsh pass the same matches on several times.
        offered.insert(request.to_owned(), values.lines().map(str::to_owned).collect());
    }
    assert_eq!(offered, expected);
}
