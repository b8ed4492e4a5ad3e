//! Finds the file that a command runs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The kernel reads this much of the first line of a script, and runs this many scripts of scripts (`load_script`).
const MAX_LINE: usize = 256;
const MAX_SCRIPTS: usize = 5;

/// Returns the file of the program that the words of a command run. For a script, that is its interpreter. `None` if it is
/// not found: exec reports that.
pub fn find_program(words: &[OsString]) -> Option<PathBuf> {
    let mut program = find_in_path(words.first()?)?;
    for _ in 0..MAX_SCRIPTS {
        let Some(line) = read_script_line(&program) else { return program.canonicalize().ok() };
        let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let interpreter = Path::new(OsStr::from_bytes(words.next()?)).to_owned();
        program = match words.next() {
            // `env -S` has its own rules, which nothing here depends on.
            Some(name) if interpreter.ends_with("env") => find_in_path(OsStr::from_bytes(name))?,
            _ => interpreter,
        };
    }
    None
}

/// Returns the path of a program that is named without its folder.
fn find_in_path(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    })
}

/// Returns the first line of a script, behind `#!`. `None` for other files.
fn read_script_line(path: &Path) -> Option<Vec<u8>> {
    let mut start = Vec::with_capacity(MAX_LINE);
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    File::open(path).ok()?.take(MAX_LINE as u64).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?;
    Some(line.split(|byte| *byte == b'\n').next().unwrap_or_default().to_vec())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use super::find_program;

    fn found(program: &str) -> Option<PathBuf> {
        find_program(&[OsString::from(program)])
    }

    #[test]
    fn finds_programs_and_the_interpreters_of_scripts() {
        let shell = PathBuf::from("/bin/sh").canonicalize().unwrap();
        assert_eq!(found("sh").as_ref().and_then(|path| path.file_name()), shell.file_name());
        assert_eq!(found("/bin/sh"), Some(shell.clone()));
        let folder = tempfile::tempdir().unwrap();
        for (name, line) in [("direct", "#! /bin/sh -e\n"), ("by-env", "#!/usr/bin/env sh\n")] {
            let script = folder.path().join(name);
            std::fs::write(&script, format!("{line}echo\n")).unwrap();
            assert_eq!(found(script.to_str().unwrap()).unwrap().file_name(), shell.file_name(), "{name}");
        }
    }

    #[test]
    fn programs_that_do_not_exist_are_not_found() {
        assert_eq!(found("/nonexistent/program"), None);
        assert_eq!(found("no such program in any folder"), None);
        assert_eq!(find_program(&[]), None);
    }

    #[test]
    fn a_script_that_names_itself_ends() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("endless");
        std::fs::write(&script, format!("#!{}\n", script.display())).unwrap();
        assert_eq!(found(script.to_str().unwrap()), None);
    }
}
