//! What recording costs: wakeups and CPU time.

use std::process::Stdio;
use std::time::Duration;

use crate::support::process::{Background, Usage};
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record, finish, wait_until_recording};
use crate::support::signals::send;
use crate::support::statistics::{ensure, statistical};
use crate::support::{command, run_bounded, skip, tool};

#[test]
fn a_recorder_sleeps_while_its_target_sleeps() {
    if !can_record() {
        return;
    }
    statistical(|| {
        let target = Background::sleeping();
        // What other processes do does not wake it.
        let _forks = Background::start(command("sh").args(["-c", "while :; do /bin/true; done"]));
        // At this frequency there are no samples, whose symbolization would cost more than all else.
        let mut recorder = command(tool("fg-record"));
        recorder.args(["-q", "-F", "1", "-p", &target.pid()]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut recorder = recorder.spawn().unwrap();
        wait_until_recording(&mut recorder);
        // The tables of the target's objects are made first.
        std::thread::sleep(Duration::from_secs(1));
        let start = Usage::of_running(recorder.id());
        std::thread::sleep(Duration::from_secs(2));
        let used = Usage::of_running(recorder.id()).since(start);
        send(&recorder, libc::SIGINT);
        finish(recorder);
        // Polling a hundred times a second would show.
        ensure!(used.voluntary_switches < 100, "{used:?} in two seconds");
        ensure!(used.cpu_time < Duration::from_millis(20), "{used:?} in two seconds");
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
