//! The programs compared with models of them in Python, on random profiles; and each program reads what the others
//! write.

use std::path::Path;

use crate::support::{command, require, run_command, tool};

#[test]
fn programs_agree_with_their_models() {
    if !require("python3") {
        return;
    }
    let inputs = std::env::var("FG_MODEL_INPUTS").unwrap_or_else(|_| "24".to_owned());
    let seed = std::env::var("FG_FUZZ_SEED").unwrap_or_else(|_| "1".to_owned());
    let mut python = command("python3");
    python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models/compare.py"));
    python.arg(Path::new(tool("fg-csv")).parent().unwrap()).args([&inputs, &seed]);
    let outcome = run_command(python, b"");
    assert_eq!(outcome.code(), 0, "{outcome:?}");
}
