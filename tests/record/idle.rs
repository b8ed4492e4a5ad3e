//! A recorder whose target sleeps sleeps too.

#![allow(unsafe_code)]

use std::process::{Command, Stdio};

use crate::folded::may_record;
use crate::support::tool;

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
