//! `--script`: shares of samples, and the sum of their periods.

use crate::support::programs::program;
use crate::support::recording::{can_record, record};
use crate::support::statistics::{ensure, statistical};

/// Returns the periods of printed samples, from the headers `COMM PID/TID [CPU] TIME: PERIOD EVENT: `.
fn periods(script: &str) -> impl Iterator<Item = u64> {
    let headers = script.lines().filter_map(|line| line.strip_suffix(" cpu-clock: "));
    headers.map(|header| header.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
}

#[test]
fn periods_add_up_to_the_cpu_time() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    statistical(|| {
        let outcome = record(["--script", "--weight", "period", "-e", "cpu-clock", "--", &busy, "0.3"]).ok();
        let nanoseconds: u64 = periods(&outcome.text()).sum();
        ensure!((200_000_000..600_000_000).contains(&nanoseconds), "{nanoseconds}");
        Ok(())
    });
}

#[test]
fn most_samples_show_the_inlined_call() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    statistical(|| {
        let text = record(["--script", "-e", "cpu-clock", "--", &busy, "0.2"]).ok().text();
        let samples: Vec<&str> = text.split_terminator("\n\n").collect();
        let shows_inlined_call = |sample: &&&str| {
            let frames: Vec<&str> = sample.lines().skip(1).take(3).collect();
            let [step, spin, main] = frames[..] else { return false };
            step.ends_with(" step (inlined)") && spin.contains(" spin+0x") && main.contains(" main+0x")
        };
        let hot = samples.iter().filter(shows_inlined_call).count();
        ensure!(hot * 10 > samples.len() * 8, "{hot} of {}: {:?}", samples.len(), samples.last());
        Ok(())
    });
}
