//! `--latency`: time on CPUs is shared among the threads that run at the same moment.

use crate::support::programs::program;
use crate::support::recording::{Profile, can_record_switches, finish, recorder};
use crate::support::statistics::{ensure, statistical};

#[test]
fn a_serial_part_weighs_as_much_as_it_lasts() {
    let Some(program) = program("serial").filter(|_| can_record_switches(&[])) else { return };
    statistical(|| {
        let outcome = finish(recorder(["--latency", "--", &program, "300"]).spawn().unwrap()).ok();
        let profile = Profile::from_stdout(&outcome);
        let (serial, parallel) = (profile.weight(&["serial_part"]) as f64, profile.weight(&["parallel_part"]) as f64);
        // One thread runs, for as long as it uses CPU time, whoever else runs on the machine.
        ensure!((serial - 300_000.0).abs() <= 6000.0, "{serial}: {outcome:?}");
        // Two threads use twice as much, at once if both have a CPU.
        ensure!((294_000.0..606_000.0).contains(&parallel), "{parallel}: {outcome:?}");
        let elapsed = outcome.stderr.lines().find_map(|line| line.strip_prefix("elapsed ")?.parse().ok());
        let (total, elapsed) = (profile.total() as f64, elapsed.unwrap_or(f64::NAN));
        // The program was also loaded.
        ensure!(total <= elapsed * 1.01 + 10_000.0, "{total} of {elapsed}: {outcome:?}");
        Ok(())
    });
}

#[test]
fn two_threads_that_run_at_once_share_the_time() {
    let Some(program) = program("serial").filter(|_| can_record_switches(&[])) else { return };
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 || !crate::support::require("chrt") {
        return;
    }
    statistical(|| {
        // Threads with this priority get their CPUs at once.
        let recorder = recorder(["--latency", "--", "chrt", "-f", "10", &program, "300"]).spawn().unwrap();
        let outcome = finish(recorder);
        if !outcome.status.success() {
            return Ok(());
        }
        let profile = Profile::from_stdout(&outcome);
        let share = profile.share(&["serial_part"]);
        ensure!((share - 0.5).abs() <= 0.02, "{share}: {outcome:?}");
        Ok(())
    });
}
