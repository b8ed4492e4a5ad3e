//! Time that fg-collapse takes for hostile inputs, as a ratio.

use std::io::{Seek as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

use crate::support::process::wait_with_cpu_time;
use crate::support::statistics::{ensure, statistical};
use crate::support::{command, tool};

/// Returns the CPU time of fg-collapse for an input that it cannot read.
fn cpu_time_to_reject(options: &[&str], input: &[u8]) -> Duration {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(input).unwrap();
    file.rewind().unwrap();
    let mut collapse = command(tool("fg-collapse"));
    collapse.args(["-q", "-n", "1"]).args(options).stdin(file).stdout(Stdio::null()).stderr(Stdio::null());
    #[allow(clippy::zombie_processes)] // wait_with_cpu_time waits for it.
    let (status, cpu_time) = wait_with_cpu_time(&collapse.spawn().unwrap());
    assert_eq!(status.code(), Some(1));
    cpu_time
}

#[test]
fn rejects_unknown_text_in_linear_time() {
    let lines = |count: usize| "once upon a time there was\n".repeat(count).into_bytes();
    let one_line = |length: usize| vec![b'x'; length];
    statistical(|| {
        for (small, large) in [(lines(100_000), lines(800_000)), (one_line(4 << 20), one_line(32 << 20))] {
            let (small, large) = (cpu_time_to_reject(&[], &small), cpu_time_to_reject(&[], &large));
            // Eight times the input. A quadratic algorithm would take 64 times as long.
            ensure!(large < 20 * small + Duration::from_millis(20), "{small:?} and {large:?}");
        }
        Ok(())
    });
}

#[test]
fn rejects_json_of_no_format_about_as_fast_as_it_is_parsed() {
    let object = "{\"id\": 1, \"tags\": [\"a\", \"b\"], \"name\": \"java.lang.Thread.run(Thread.java:1)\"}";
    let list = format!("[{}]", vec![object; 60_000].join(", "));
    let lines = list.replace(", {", ",\n{");
    let nested = format!("{}{}", "[".repeat(2_000_000), "]".repeat(2_000_000));
    statistical(|| {
        for text in [&list, &lines, &nested] {
            // With a format that is named, the text is parsed once.
            let once = cpu_time_to_reject(&["--format=speedscope"], text.as_bytes());
            let time = cpu_time_to_reject(&[], text.as_bytes());
            ensure!(time < 4 * once + Duration::from_millis(20), "{time:?}, {once:?}");
        }
        Ok(())
    });
}
