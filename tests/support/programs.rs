//! The programs that tests record: small ones in C, compiled once, and the workload that the package contains.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use super::{command, require, tool};

/// The programs below `tests/programs`, each with the compiler's options and its source files.
const PROGRAMS: [(&str, &[&str]); 21] = [
    ("busy", &["busy.c"]),
    ("callers", &["-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-ipa-icf", "-fno-ipa-cp", "callers.c"]),
    ("chains", &["-fno-optimize-sibling-calls", "-fno-ipa-icf", "chains.c", "-pthread"]),
    ("faults", &["faults.c"]),
    ("halves", &["-fno-optimize-sibling-calls", "-fno-ipa-icf", "halves.c"]),
    ("memory", &["memory.c"]),
    ("naps", &["-fno-ipa-icf", "naps.c"]),
    ("paths", &["-fno-optimize-sibling-calls", "-fno-ipa-icf", "paths.c", "-pthread"]),
    ("pool", &["-DNO_MAIN", "pool.c", "busy.c", "-pthread"]),
    ("requests", &["-fno-optimize-sibling-calls", "-fno-ipa-icf", "-fno-ipa-cp", "requests.c", "-pthread"]),
    ("rotation", &["-fno-optimize-sibling-calls", "-fno-ipa-icf", "rotation.c"]),
    ("serial", &["-fno-optimize-sibling-calls", "-fno-ipa-icf", "serial.c", "-pthread"]),
    ("sizes", &["-fno-optimize-sibling-calls", "sizes.c"]),
    (
        "spans",
        &[
            "-fno-optimize-sibling-calls",
            "-fno-ipa-icf",
            "spans.c",
            "thread_context.c",
            "-pthread",
            "-Wl,--export-dynamic-symbol=otel_thread_ctx_v1",
        ],
    ),
    ("spans_of_library", &["-fno-optimize-sibling-calls", "-fno-ipa-icf", "-DLOAD", "spans.c", "-pthread", "-ldl"]),
    ("stalls", &["-fno-optimize-sibling-calls", "stalls.c"]),
    ("threads", &["-DNO_MAIN", "threads.c", "busy.c", "-pthread"]),
    ("unwound", &["-fomit-frame-pointer", "-fno-optimize-sibling-calls", "unwound.c"]),
    ("rare_blocks", &["-fno-optimize-sibling-calls", "rare_blocks.c"]),
    ("wakers", &["-fno-optimize-sibling-calls", "wakers.c", "-pthread"]),
    ("waits", &["-fno-optimize-sibling-calls", "waits.c", "-pthread"]),
];

static COMPILED: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    if !require("cc") {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, arguments) in PROGRAMS {
        // Under another name first: another run of the tests may be executing the program.
        let unfinished = folder.join(format!("{name}.{}", std::process::id()));
        let mut compiler = compiler(&unfinished);
        compiler.args(["-O2", "-g", "-fno-omit-frame-pointer"]).args(arguments);
        assert!(compiler.status().unwrap().success(), "{compiler:?}");
        std::fs::rename(unfinished, folder.join(name)).unwrap();
    }
    Some(folder)
});

/// Returns the directory of the C sources.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// Returns a command for the C compiler that runs among the sources and writes `output`.
pub fn compiler(output: &Path) -> Command {
    let mut compiler = command("cc");
    compiler.current_dir(sources()).args(["-w", "-o"]).arg(output);
    compiler
}

/// Returns the path of a compiled program. Without a compiler returns `None` and reports the test as skipped.
#[track_caller]
pub fn program(name: &str) -> Option<String> {
    Some(COMPILED.as_deref()?.join(name).to_str().unwrap().to_owned())
}

/// Compiles a program in Go into a folder, with options for `go build`, and returns its path.
pub fn go_program(folder: &Path, name: &str, options: &[&str]) -> String {
    let program = folder.join(name);
    let mut compiler = command("go");
    compiler.args(["build", "-o"]).arg(&program).args(options).arg(sources().join(format!("{name}.go")));
    assert!(compiler.env("GOCACHE", folder.join("cache")).status().unwrap().success(), "{compiler:?}");
    program.into_os_string().into_string().unwrap()
}

/// Copies a program that the test will execute.
///
/// Another process copies it: a file that is open for writing cannot be executed, and processes that other tests start
/// would inherit our descriptor for a moment.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    assert!(command("cp").args([from.as_ref(), to.as_ref()]).status().unwrap().success());
}

/// Returns the path of the example `workload`, built if necessary.
pub fn workload() -> String {
    let path = Path::new(tool("fg-record")).with_file_name("examples").join("workload");
    if !path.exists() {
        // `cargo test --test NAME` builds no examples.
        let built = command(env!("CARGO")).args(["build", "--quiet", "--example", "workload"]).status();
        assert!(built.unwrap().success());
    }
    path.to_str().unwrap().to_owned()
}
