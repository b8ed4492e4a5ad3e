//! The Pythons of this machine.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::programs::sources;
use super::{command, downloads};

/// The program `functions.py` of `tests/programs`.
pub fn functions_program() -> PathBuf {
    sources().join("functions.py")
}

/// Returns the paths of all Pythons: the default one, those of `/usr/bin`, those that pyenv has installed, and the one that
/// `scripts/setup` has downloaded.
pub fn all() -> Vec<PathBuf> {
    let of_pyenv = std::env::home_dir().and_then(|home| std::fs::read_dir(home.join(".pyenv/versions")).ok());
    let of_pyenv = of_pyenv.into_iter().flatten().flatten().map(|version| version.path().join("bin/python3"));
    let of_pyenv = of_pyenv.filter(|python| python.exists());
    let of_system = std::fs::read_dir("/usr/bin").into_iter().flatten().flatten().map(|entry| entry.path());
    let downloaded = downloads("python3").into_iter().map(|folder| folder.join("bin/python3"));
    let downloaded = downloaded.filter(|python| python.exists());
    let mut found: Vec<PathBuf> = of_system.filter(|path| is_python(path)).chain(of_pyenv).chain(downloaded).collect();
    found.sort_by_key(|path| path.canonicalize().ok());
    found.dedup_by_key(|path| path.canonicalize().ok());
    found
}

/// Returns those whose functions fg-record shows: from 3.8 on.
pub fn supported() -> Vec<PathBuf> {
    all().into_iter().filter(|python| is_at_least(python, (3, 8))).collect()
}

/// True if a Python has at least this version.
pub fn is_at_least(python: &Path, (major, minor): (u32, u32)) -> bool {
    let check = format!("import sys; sys.exit(sys.version_info[:2] < ({major}, {minor}))");
    let mut check_version = command(python);
    check_version.args(["-c", &check]).stderr(Stdio::null());
    check_version.status().is_ok_and(|status| status.success())
}

/// True for `python3` and `python3.11`, but not for `python3-config`.
fn is_python(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("python3"));
    name.is_some_and(|rest| rest.chars().all(|character| character.is_ascii_digit() || character == '.'))
}
