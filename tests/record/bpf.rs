//! BPF programs: what does not depend on time.

use crate::support::recording::{finish, recorder};

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

#[test]
fn the_checked_in_objects_equal_the_compiled_sources() {
    use std::path::Path;

    use crate::support::{command, directory, require, skip};

    if !require("clang-14") || !require("llvm-strip-14") {
        return;
    }
    if !Path::new("/usr/include/bpf/bpf_helpers.h").exists() {
        return skip("libbpf-dev is not installed");
    }
    let folder = directory();
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = command(package.join("scripts/build-bpf")).arg(folder.path()).status().unwrap();
    assert!(status.success());
    for (source, name) in [("bpf", "sampler.bpf.o"), ("off_cpu/bpf", "off_cpu.bpf.o")] {
        let checked_in = package.join("lib/record").join(source).join(name);
        let built = folder.path().join(name);
        assert!(std::fs::read(built).unwrap() == std::fs::read(checked_in).unwrap(), "{name}: run scripts/build-bpf");
    }
}
