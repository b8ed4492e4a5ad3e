//! `--bpf`: what does not depend on how long threads wait.

use crate::support::recording::{finish, recorder};

#[cfg(not(feature = "bpf"))]
#[test]
fn a_build_without_bpf_reports_how_to_build_it() {
    let outcome = finish(recorder(["--off-cpu", "--bpf", "--", "true"]).spawn().unwrap());
    assert_eq!(outcome.code(), 125, "{outcome:?}");
    assert_eq!(
        outcome.stderr,
        "fg-record: --bpf: this fg-record was built without BPF; run: cargo install fgkit --features bpf\n"
    );
}

#[test]
fn rejects_options_that_exclude_each_other() {
    for options in [
        &["--bpf"][..],
        &["--bpf", "--wall"],
        &["--bpf", "--off-cpu", "--off-cpu-period", "3"],
        &["--bpf", "--off-cpu", "--call-graph", "dwarf"],
    ] {
        let outcome = finish(recorder([]).args(options).args(["--", "true"]).spawn().unwrap());
        assert_eq!(outcome.code(), 2, "{outcome:?}");
    }
}

#[cfg(feature = "bpf")]
#[test]
fn the_checked_in_object_equals_the_compiled_source() {
    use std::path::Path;

    use crate::support::{command, directory, require, skip};

    if !require("clang-14") || !require("llvm-strip-14") {
        return;
    }
    if !Path::new("/usr/include/bpf/bpf_helpers.h").exists() {
        return skip("libbpf-dev is not installed");
    }
    let folder = directory();
    let built = folder.path().join("off_cpu.bpf.o");
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = command(package.join("scripts/build-bpf")).arg(&built).status().unwrap();
    assert!(status.success());
    let checked_in = package.join("lib/record/off_cpu/bpf/off_cpu.bpf.o");
    assert!(std::fs::read(built).unwrap() == std::fs::read(checked_in).unwrap(), "run scripts/build-bpf");
}
