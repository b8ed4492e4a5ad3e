//! A recorder whose target sleeps sleeps too, and one whose target works does not have each sample wake it.

#![allow(unsafe_code)]

use std::process::{Command, Stdio};

use crate::folded::may_record;
use crate::programs::program;
use crate::support::{skip, tool};

/// What a recording of a sleep costs us, with the sleep's own: microseconds on the CPU, and how often it gave it up.
#[allow(clippy::zombie_processes)]
fn cost_of_sleeping(seconds: &str) -> (i64, i64) {
    let mut command = Command::new(tool("fg-record"));
    // So rarely that there is no sample to be named, which would cost more than all else.
    command.args(["-q", "-F", "1", "--", "sleep", seconds]).stdin(Stdio::null()).stdout(Stdio::null());
    let pid = command.spawn().unwrap().id();
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both places are ours, and zeroes are a usage.
    let usage = unsafe {
        assert_eq!(libc::wait4(pid.try_into().unwrap(), &mut status, 0, usage.as_mut_ptr()), pid.try_into().unwrap());
        usage.assume_init()
    };
    assert_eq!(status, 0);
    let micros = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    (micros(usage.ru_utime) + micros(usage.ru_stime), usage.ru_nvcsw)
}

#[test]
fn a_recorder_of_a_sleeping_program_sleeps() {
    if !may_record() {
        return;
    }
    let (short_cpu, short_pauses) = cost_of_sleeping("0.1");
    let (long_cpu, long_pauses) = cost_of_sleeping("2.1");
    let (cpu, pauses) = (long_cpu - short_cpu, long_pauses - short_pauses);
    // Looking a hundred times a second would be seen here.
    assert!(pauses < 50, "woke {pauses} times in two seconds");
    assert!(cpu < 20_000, "{cpu} microseconds in two seconds");
}

/// How often CPUs were interrupted for what could not be done where it was asked for: to wake somebody from a sample.
fn deferred_work() -> Option<u64> {
    let interrupts = std::fs::read_to_string("/proc/interrupts").ok()?;
    let line = interrupts.lines().find_map(|line| line.trim_start().strip_prefix("IWI:"))?;
    Some(line.split_whitespace().map_while(|count| count.parse::<u64>().ok()).sum())
}

#[test]
fn samples_that_can_wait_do_not_interrupt_again() {
    let Some(busy) = program("busy").filter(|_| may_record()) else { return };
    let Some(before) = deferred_work() else { return skip("no count of such interrupts") };
    let mut command = Command::new(tool("fg-record"));
    command.args(["-q", "-F", "4999", "--"]).arg(busy).arg("2").stdin(Stdio::null());
    let output = command.output().unwrap();
    let after = deferred_work().unwrap();
    let folded = String::from_utf8(output.stdout).unwrap();
    let samples: u64 = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    let interrupts = after - before;
    assert!(samples > 5000, "{samples}");
    // Other tests record meanwhile, and fewer samples.
    assert!(interrupts < samples * 3 / 4, "{interrupts} for {samples}");
}
