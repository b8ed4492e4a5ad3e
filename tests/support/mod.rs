//! Running the real programs, as processes, on real files.

#![allow(dead_code, clippy::unwrap_used, clippy::print_stderr)]

pub mod tables;
#[cfg(unix)]
pub mod terminal;

use std::ffi::OsStr;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for what should be there at once: what takes two seconds of a CPU took twenty where forty others
/// wanted it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The programs.
pub const TOOLS: [&str; 9] =
    ["fg-record", "fg-collapse", "fg-filter", "fg-diff", "fg-csv", "fg-check", "fg-pprof", "fg-svg", "fg-heatmap"];

/// The path of one of the programs.
pub fn tool(name: &str) -> &'static str {
    match name {
        "fg-record" => env!("CARGO_BIN_EXE_fg-record"),
        "fg-collapse" => env!("CARGO_BIN_EXE_fg-collapse"),
        "fg-filter" => env!("CARGO_BIN_EXE_fg-filter"),
        "fg-diff" => env!("CARGO_BIN_EXE_fg-diff"),
        "fg-csv" => env!("CARGO_BIN_EXE_fg-csv"),
        "fg-check" => env!("CARGO_BIN_EXE_fg-check"),
        "fg-pprof" => env!("CARGO_BIN_EXE_fg-pprof"),
        "fg-svg" => env!("CARGO_BIN_EXE_fg-svg"),
        "fg-heatmap" => env!("CARGO_BIN_EXE_fg-heatmap"),
        _ => panic!("no program is called {name}"),
    }
}

/// How a program ended, and what it said.
#[derive(Debug)]
pub struct Outcome {
    pub command: String,
    pub status: std::process::ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Outcome {
    /// The exit status; fails if a signal ended the program.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// Fails unless the program succeeded, with everything it said.
    #[track_caller]
    pub fn ok(self) -> Self {
        let Self { command, status, stderr, .. } = &self;
        assert!(status.success(), "{command}: {status}\n{stderr}");
        self
    }
}

/// Runs a program with arguments and standard input to its end.
pub fn run<A: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = A>, stdin: &[u8]) -> Outcome {
    let mut command = Command::new(tool(name));
    command.args(arguments);
    run_command(command, stdin)
}

/// Runs any command with standard input to its end.
pub fn run_command(mut command: Command, stdin: &[u8]) -> Outcome {
    let shown = format!("{command:?}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_vec();
    // In a thread: a program may answer before it has read everything, and may not read everything.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Outcome { command: shown, status: output.status, stdout: output.stdout, stderr }
}

/// Starts any command, with streams as they are given, and kills it if it has not ended after a while: for what could hang.
pub fn run_bounded(command: &mut Command) -> Outcome {
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    end_bounded(child, &format!("{command:?}"))
}

/// Waits for the end of a child, and kills it and fails if it does not come.
pub fn end_bounded(mut child: Child, shown: &str) -> Outcome {
    let collect = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            stream.map(|mut stream| stream.read_to_end(&mut text));
            text
        })
    };
    let stdout = collect(child.stdout.take().map(|stream| Box::new(stream) as _));
    let stderr = collect(child.stderr.take().map(|stream| Box::new(stream) as _));
    let mut status = None;
    let ended = eventually(|| {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    if !ended {
        child.kill().unwrap();
        panic!("{shown} hangs");
    }
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    Outcome { command: shown.to_owned(), status: status.unwrap(), stdout, stderr }
}

/// Whether something becomes true before the test's patience ends. Of the time so much counts as a busy machine has for each
/// that wants to run.
pub fn eventually(mut is_true: impl FnMut() -> bool) -> bool {
    let (mut last, mut waited) = (Instant::now(), Duration::ZERO);
    while waited < PATIENCE {
        if is_true() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
        let now = Instant::now();
        waited += (now - last).mul_f64(share_of_cpu());
        last = now;
    }
    false
}

/// The share of a CPU that there is now for each that wants to run.
fn share_of_cpu() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running = load.split([' ', '/']).nth(3).and_then(|running| running.parse().ok()).unwrap_or(1.0f64);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    (cpus / running.max(1.0)).min(1.0)
}

/// A directory of the test's own, removed at its end.
pub fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("fg-test-").tempdir().unwrap()
}

/// A file below `tests/data`.
pub fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

/// Compares with a golden file below `tests/data`. `FG_BLESS=1` writes it; a missing one fails.
#[track_caller]
pub fn assert_golden(path: &str, actual: &[u8]) {
    let path = data(path);
    if std::env::var_os("FG_BLESS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        expected == actual,
        "{} differs\n--- expected\n{}\n--- actual\n{}",
        path.display(),
        String::from_utf8_lossy(&expected),
        String::from_utf8_lossy(actual)
    );
}

/// The shared corpus beside the project, if it is there. Tests that need it skip without it, and say so; that is no
/// failure even with `FG_SKIP=never`, since the corpus is no part of the project.
pub fn corpus(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus").join(path);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {} is not there", path.display());
    None
}

/// Whether a program is installed. Tests that need it skip without it, and say so.
pub fn has(program: &str) -> bool {
    let found = installed(program);
    if !found {
        skip(&format!("{program} is not installed"));
    }
    found
}

/// Whether a program is installed, for tests that check more with it and are worth running without.
pub fn installed(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|paths| std::env::split_paths(&paths).any(|folder| folder.join(program).is_file()))
}

/// Says that a test was skipped. With `FG_SKIP=never`, as in CI, that is a failure.
#[track_caller]
pub fn skip(why: &str) {
    let forbidden = std::env::var_os("FG_SKIP").is_some_and(|value| value == "never");
    assert!(!forbidden, "skipped, which is forbidden here: {why}");
    eprintln!("skipped: {why}");
}
