//! Conventions that all programs follow. Each test is a rule and runs over the programs that it applies to.

#[path = "conventions/help.rs"]
mod help;
#[path = "conventions/input.rs"]
mod input;
#[path = "conventions/messages.rs"]
mod messages;
#[path = "conventions/options.rs"]
mod options;
#[path = "conventions/output.rs"]
mod output;
#[cfg(target_os = "linux")]
#[path = "conventions/recording.rs"]
mod recording;
mod repeated;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{self, Outcome, command};

/// A small profile that all readers of folded stacks accept.
const PROFILE: &str = "main 2\nmain;parse 3\nmain;parse;read 12\nmain;write 5\n";

/// Samples that all readers of samples accept.
const SAMPLES: &str = "main 1/1 [000] 1002.100000: cycles: 7f00 read+0x1 (/x)
main 1/2 [000] 1002.200000: cycles: 7f00 parse+0x1 (/x)
main 1/1 [001] 1003.100000: cycles: 7f00 read+0x1 (/x)
main 1/1 [001] 1004.100000: cycles: 7f00 write+0x1 (/x)
main 1/1 [001] 1004.200000: cycles: 7f00 write+0x1 (/x)
main 1/1 [001] 1004.300000: cycles: 7f00 write+0x1 (/x)
main 1/1 [001] 1004.400000: cycles: 7f00 write+0x1 (/x)
main 1/1 [001] 1004.500000: cycles: 7f00 write+0x1 (/x)
main 1/1 [001] 1004.600000: cycles: 7f00 write+0x1 (/x)
main 1/1 [001] 1004.700000: cycles: 7f00 write+0x1 (/x)
main 1/1 [001] 1004.800000: cycles: 7f00 write+0x1 (/x)
main 1/1 [001] 1004.900000: cycles: 7f00 write+0x1 (/x)
main 1/1 [001] 1004.910000: cycles: 7f00 write+0x1 (/x)
main 1/1 [001] 1004.920000: cycles: 7f00 write+0x1 (/x)
";

/// A program and how it differs from the others.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    /// An input of one line per sample or stack.
    pub profile: &'static str,
    /// Makes another line, with a frame of this name.
    pub line: fn(&str) -> String,
    /// Operands before those that a test adds.
    pub before: &'static [&'static str],
    /// True if it reads any number of files as one stream.
    pub merges: bool,
    /// True if it writes folded stacks.
    pub folds: bool,
    /// True if it writes binary data.
    pub binary: bool,
    /// Exit status of a failure.
    pub failure: i32,
}

const COLLAPSE: Program = Program {
    name: "fg-collapse",
    profile: PROFILE,
    line: |frame| format!("main;{frame} 1\n"),
    before: &[],
    merges: true,
    folds: true,
    binary: false,
    failure: 1,
};
const FILTER: Program = Program { name: "fg-filter", ..COLLAPSE };
const DIFF: Program = Program { name: "fg-diff", before: &["before.folded"], merges: false, failure: 2, ..COLLAPSE };
const CSV: Program = Program { name: "fg-csv", folds: false, ..COLLAPSE };
const PPROF: Program = Program { name: "fg-pprof", folds: false, binary: true, ..COLLAPSE };
const SVG: Program = Program { name: "fg-svg", folds: false, ..COLLAPSE };
const HEATMAP: Program = Program {
    name: "fg-heatmap",
    profile: SAMPLES,
    line: |frame| format!("main 1/1 [001] 5.100000: cycles: 7f00 {frame} (/x)\n"),
    ..SVG
};

/// The programs that read profiles and convert them.
pub const READERS: [Program; 7] = [COLLAPSE, FILTER, DIFF, CSV, PPROF, SVG, HEATMAP];

/// Returns the programs that read several files as one stream.
pub fn mergers() -> impl Iterator<Item = Program> {
    READERS.into_iter().filter(|program| program.merges)
}

/// A directory with input files, in which a program runs.
pub struct Workspace {
    pub program: Program,
    folder: tempfile::TempDir,
}

impl Workspace {
    /// Creates the directory with the files `in.folded`, and `before.folded` to compare with.
    pub fn new(program: Program) -> Self {
        let workspace = Self { program, folder: support::directory() };
        workspace.file("before.folded", "main;parse;read 10\nmain;write 5\n");
        workspace.file("in.folded", program.profile);
        workspace
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).unwrap_or_else(|error| panic!("{:?}: {name}: {error}", self.program))
    }

    /// Returns the names of all files except the inputs, sorted.
    pub fn output_files(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| !name.ends_with(".folded"));
        names.sort();
        names
    }

    /// Returns a command for the program with its own operands and these arguments.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = command(support::tool(self.program.name));
        command.current_dir(self.path()).args(self.program.before).args(arguments);
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(variable);
        }
        command
    }

    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Outcome {
        self.run_with(arguments, b"")
    }

    pub fn run_with<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>, stdin: &[u8]) -> Outcome {
        support::run_command(self.command(arguments), stdin)
    }
}
