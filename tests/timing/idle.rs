//! What recording costs: wakeups and CPU time.

use std::process::Stdio;
use std::time::Duration;

use crate::support::process::{Usage, wait_with_usage};
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record};
use crate::support::statistics::{ensure, statistical};
use crate::support::{command, run_bounded, skip, tool};

/// Returns what a recording of `sleep` uses, including the sleeping process.
#[allow(clippy::zombie_processes)]
fn usage_of_recording_sleep(seconds: &str) -> Usage {
    let mut recorder = command(tool("fg-record"));
    // At this frequency there are no samples, whose symbolization would cost more than all else.
    recorder.args(["-q", "-F", "1", "--", "sleep", seconds]).stdin(Stdio::null()).stdout(Stdio::null());
    let (status, usage) = wait_with_usage(&recorder.spawn().unwrap());
    assert!(status.success(), "{status}");
    usage
}

#[test]
fn a_recorder_sleeps_while_its_target_sleeps() {
    if !can_record() {
        return;
    }
    statistical(|| {
        let (short, long) = (usage_of_recording_sleep("0.1"), usage_of_recording_sleep("2.1"));
        let wakeups = long.voluntary_switches - short.voluntary_switches;
        let cpu_time = long.cpu_time.saturating_sub(short.cpu_time);
        // Polling a hundred times a second would show.
        ensure!(wakeups < 50, "{wakeups} wakeups in two seconds");
        ensure!(cpu_time < Duration::from_millis(20), "{cpu_time:?} in two seconds");
        Ok(())
    });
}

/// Returns how often CPUs were interrupted to do work that a sample could not do itself: to wake a process.
fn irq_work_interrupts() -> Option<u64> {
    let interrupts = std::fs::read_to_string("/proc/interrupts").ok()?;
    let line = interrupts.lines().find_map(|line| line.trim_start().strip_prefix("IWI:"))?;
    Some(line.split_whitespace().map_while(|count| count.parse::<u64>().ok()).sum())
}

#[test]
fn most_samples_do_not_wake_the_recorder() {
    let Some(busy) = program("busy").filter(|_| can_record()) else { return };
    if irq_work_interrupts().is_none() {
        return skip("/proc/interrupts does not count IRQ work interrupts");
    }
    statistical(|| {
        let before = irq_work_interrupts().unwrap();
        let mut recorder = command(tool("fg-record"));
        recorder.args(["-q", "-F", "4999", "--"]).arg(&busy).arg("2").stdin(Stdio::null()).stdout(Stdio::piped());
        let samples = Profile::from_stdout(&run_bounded(&mut recorder)).total();
        let interrupts = irq_work_interrupts().unwrap() - before;
        ensure!(samples > 5000, "{samples}");
        // Other processes may cause such interrupts too.
        ensure!(interrupts < samples * 3 / 4, "{interrupts} for {samples}");
        Ok(())
    });
}
