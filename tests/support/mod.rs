//! Runs the programs as processes, on files, and compares what they print.
//!
//! Every test target includes this module. Start processes with [`command`], not with `Command::new`, so that a test
//! does not depend on how the test runner was started.

#![allow(dead_code, clippy::unwrap_used, clippy::print_stderr)]

#[cfg(target_os = "linux")]
pub mod callers;
#[cfg(target_os = "linux")]
pub mod java;
#[cfg(target_os = "linux")]
pub mod nodes;
#[cfg(target_os = "linux")]
pub mod process;
#[cfg(target_os = "linux")]
pub mod programs;
pub mod pythons;
#[cfg(target_os = "linux")]
pub mod recording;
pub mod script_functions;
#[cfg(unix)]
pub mod signals;
pub mod skips;
pub mod statistics;
pub mod tables;
#[cfg(unix)]
pub mod terminal;

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsStr;
use std::fmt::{Debug, Formatter};
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

#[allow(unused_imports)] // Not every target uses all of them.
pub use self::skips::{corpus, is_installed, require, skip, skip_optional};

/// How long a process may take before a test calls it hung. It bounds nothing else: a busy machine stretches it (see
/// [`eventually`]), and no test measures with it.
const HANG_TIMEOUT: Duration = Duration::from_secs(120);

/// All programs of the package.
pub use fgkit::cli::PROGRAMS as TOOLS;

/// Returns the path of a program of the package. Cargo puts all programs of a build into one directory.
pub fn tool(name: &str) -> &'static str {
    static PATHS: LazyLock<[String; TOOLS.len()]> = LazyLock::new(|| {
        let one = Path::new(env!("CARGO_BIN_EXE_fg-svg"));
        TOOLS.map(|name| one.with_file_name(format!("{name}{EXE_SUFFIX}")).to_str().unwrap().to_owned())
    });
    let number = TOOLS.iter().position(|tool| *tool == name);
    &PATHS[number.unwrap_or_else(|| panic!("{name} is not a program of this package"))]
}

/// Returns the folders that `scripts/setup` has downloaded whose names begin so.
pub fn downloads(name: &str) -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let entries = cache.and_then(|cache| std::fs::read_dir(cache.join("fgkit")).ok());
    let entries = entries.into_iter().flatten().flatten();
    let is_named = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(name);
    entries.filter(is_named).map(|entry| entry.path()).collect()
}

/// Returns a command whose process starts with default signal dispositions, whatever the test runner ignores.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    #[cfg(unix)]
    signals::reset_in_child(&mut command);
    command
}

/// The exit status and the output of a process.
pub struct Outcome {
    pub command: String,
    pub status: std::process::ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Outcome {
    /// Returns the exit status; panics if a signal killed the process.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("killed by a signal: {self:?}"))
    }

    /// Returns standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// Panics with standard error unless the process succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        let Self { command, status, stderr, .. } = &self;
        assert!(status.success(), "{command}: {status}\n{stderr}");
        self
    }
}

impl Debug for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { command, status, stdout, stderr } = self;
        let stdout = String::from_utf8_lossy(stdout);
        write!(f, "{command}: {status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}\n---")
    }
}

/// Runs a program of the package with `stdin` as its standard input.
pub fn run<A: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = A>, stdin: &[u8]) -> Outcome {
    let mut tool = command(tool(name));
    tool.args(arguments);
    run_command(tool, stdin)
}

/// Runs a command with `stdin` as its standard input and collects its output.
pub fn run_command(mut command: Command, stdin: &[u8]) -> Outcome {
    let shown = format!("{command:?}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_vec();
    // In a thread: a program may write before it has read everything, and may exit without reading everything.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
    let outcome = wait_for_exit(child, &shown);
    writer.join().unwrap();
    outcome
}

/// Runs a command whose standard streams the caller has set.
pub fn run_bounded(command: &mut Command) -> Outcome {
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    wait_for_exit(child, &format!("{command:?}"))
}

/// Waits until a child exits and collects its output. Kills it and panics if it hangs.
pub fn wait_for_exit(mut child: Child, shown: &str) -> Outcome {
    let stdout = child.stdout.take().map(read_in_background);
    let stderr = child.stderr.take().map(read_in_background);
    let mut status = None;
    let exited = eventually(|| {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    if !exited {
        child.kill().unwrap();
        panic!("{shown} hangs");
    }
    let [stdout, stderr] = [stdout, stderr].map(|reader| reader.map_or_else(Vec::new, |reader| reader.join().unwrap()));
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    Outcome { command: shown.to_owned(), status: status.unwrap(), stdout, stderr }
}

/// Reads a stream to its end in a thread, so that a full pipe blocks nobody.
fn read_in_background(mut stream: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// Polls until a condition is true. Returns false if it does not become true within [`HANG_TIMEOUT`], of which only the
/// share counts that a busy machine gives to each runnable thread.
pub fn eventually(mut is_true: impl FnMut() -> bool) -> bool {
    let (mut last, mut waited) = (Instant::now(), Duration::ZERO);
    let mut pause = Duration::from_micros(200);
    while waited < HANG_TIMEOUT {
        if is_true() {
            return true;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
        let now = Instant::now();
        waited += (now - last).mul_f64(cpu_share());
        last = now;
    }
    false
}

/// Returns the share of a CPU that each runnable thread of the machine gets now.
fn cpu_share() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let runnable = load.split([' ', '/']).nth(3).and_then(|count| count.parse().ok()).unwrap_or(1.0f64);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    (cpus / runnable.max(1.0)).min(1.0)
}

/// Creates a temporary directory, which is removed when the value is dropped.
pub fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("fg-test-").tempdir().unwrap()
}

/// Returns the path of a file below `tests/data`.
pub fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

/// True if golden files are to be written instead of compared (`FG_BLESS=1`).
pub fn is_blessing() -> bool {
    std::env::var_os("FG_BLESS").is_some_and(|value| value == "1")
}

/// Compares bytes with a golden file below `tests/data`, or writes it with `FG_BLESS=1`. A missing file fails the test.
#[track_caller]
pub fn assert_golden(path: &str, actual: &[u8]) {
    let path = data(path);
    if is_blessing() {
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
