//! The programs compared with models of them in Python, on random profiles; and each program reads what the others
//! write.

use std::path::Path;

use crate::support::{command, require, run_command, tool};

/// Number of profiles that one process compares. It must end before it is taken for one that hangs.
const PART: usize = 100;

#[test]
fn programs_agree_with_their_models() {
    if !require("python3") {
        return;
    }
    let inputs = std::env::var("FG_MODEL_INPUTS").map_or(24, |inputs| inputs.parse().expect("FG_MODEL_INPUTS"));
    let seed = std::env::var("FG_FUZZ_SEED").unwrap_or_else(|_| "1".to_owned());
    for first in (0..inputs).step_by(PART) {
        let mut python = command("python3");
        python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models/compare.py"));
        python.arg(Path::new(tool("fg-csv")).parent().unwrap());
        python.args([PART.min(inputs - first).to_string(), seed.clone(), first.to_string()]);
        let outcome = run_command(python, b"");
        assert_eq!(outcome.code(), 0, "{outcome:?}");
    }
}
