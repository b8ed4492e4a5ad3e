//! The versions of Node.js on this machine.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::{command, downloads, skip_optional};

/// Returns the programs whose functions fg-record shows, the newest first: the default one, and those that `scripts/setup` has
/// downloaded. If there is none, reports the test as skipped.
#[track_caller]
pub fn supported() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let default = std::env::split_paths(&path).map(|folder| folder.join("node")).find(|program| program.exists());
    let downloaded = downloads("node").into_iter().map(|folder| folder.join("bin/node"));
    let found = default.into_iter().chain(downloaded).filter_map(|node| node.canonicalize().ok());
    let mut found: Vec<(u32, PathBuf)> = found.filter_map(|node| Some((supported_version(&node)?, node))).collect();
    found.sort_by(|one, other| other.cmp(one));
    found.dedup();
    if found.is_empty() {
        skip_optional("no Node.js 16 to 26");
    }
    found.into_iter().map(|(_, node)| node).collect()
}

/// Returns the major version of a program if its functions are shown.
fn supported_version(node: &Path) -> Option<u32> {
    let output = command(node).args(["-p", "parseInt(process.versions.node)"]).stderr(Stdio::null()).output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
    (16..=26).contains(&version).then_some(version)
}
