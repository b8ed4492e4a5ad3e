//! Good manners: what every program does alike. Each test is a rule, and runs over the programs that it is for.

#[path = "manners/help.rs"]
mod help;
#[path = "manners/input.rs"]
mod input;
#[path = "manners/messages.rs"]
mod messages;
#[path = "manners/output.rs"]
mod output;
#[cfg(target_os = "linux")]
#[path = "manners/recording.rs"]
pub mod recording;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{self, Outcome, command};

/// A small profile that all readers of stacks take.
const PROFILE: &str = "main 2\nmain;parse 3\nmain;parse;read 12\nmain;write 5\n";

/// One that all readers of samples take.
const SAMPLES: &str = "main 1/1 [000] 2.100000: cycles: 7f00 read+0x1 (/x)
main 1/2 [000] 2.200000: cycles: 7f00 parse+0x1 (/x)
main 1/1 [001] 3.100000: cycles: 7f00 read+0x1 (/x)
main 1/1 [001] 4.100000: cycles: 7f00 write+0x1 (/x)
";

/// One of the programs, and what sets it apart from the others.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    /// A profile that it takes, in four lines.
    pub profile: &'static str,
    /// A line more, with a frame of some name.
    pub line: fn(&str) -> String,
    /// Operands before the one that a rule gives it.
    pub before: &'static [&'static str],
    /// Whether it reads any number of files as one stream.
    pub merges: bool,
    /// Whether it writes folded stacks.
    pub folds: bool,
    /// Whether it writes what only programs read.
    pub binary: bool,
    /// The exit status of a failure.
    pub failure: i32,
    /// The exit status of an empty profile.
    pub empty: i32,
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
    empty: 0,
};
const FILTER: Program = Program { name: "fg-filter", ..COLLAPSE };
const DIFF: Program = Program { name: "fg-diff", before: &["before.folded"], merges: false, failure: 2, ..COLLAPSE };
const CSV: Program = Program { name: "fg-csv", folds: false, ..COLLAPSE };
const PPROF: Program = Program { name: "fg-pprof", folds: false, binary: true, ..COLLAPSE };
const SVG: Program = Program { name: "fg-svg", folds: false, empty: 1, ..COLLAPSE };
const HEATMAP: Program = Program {
    name: "fg-heatmap",
    profile: SAMPLES,
    line: |frame| format!("main 1/1 [001] 5.100000: cycles: 7f00 {frame} (/x)\n"),
    ..SVG
};

/// The programs that read profiles and make something of them.
pub const READERS: [Program; 7] = [COLLAPSE, FILTER, DIFF, CSV, PPROF, SVG, HEATMAP];

/// The programs that read several files as one stream.
pub fn mergers() -> impl Iterator<Item = Program> {
    READERS.into_iter().filter(|program| program.merges)
}

/// A folder with a profile in it, in which a program runs.
pub struct Place {
    pub program: Program,
    folder: tempfile::TempDir,
}

impl Place {
    pub fn of(program: Program) -> Self {
        let place = Self { program, folder: support::directory() };
        place.file("before.folded", "main;parse;read 10\nmain;write 5\n");
        place.file("in.folded", program.profile);
        place
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).unwrap_or_else(|error| panic!("{:?}: {name}: {error}", self.program))
    }

    /// What is in the folder but for the inputs.
    pub fn made(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| !name.ends_with(".folded"));
        names.sort();
        names
    }

    /// The program with its operands, and those given.
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
