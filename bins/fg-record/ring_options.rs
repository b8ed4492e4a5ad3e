//! The options of fg-record that keep the last part of a recording.

use std::time::Duration;

use fgkit::cli::parse_duration;

/// Options that keep the last part of a recording.
#[derive(clap::Args)]
#[command(next_help_heading = "Flight recorder")]
pub struct RingArgs {
    /// Keep only the last TIME, like 30s, and write it at the end or on SIGUSR2
    ///
    /// What is older is forgotten, so fg-record can wait for a problem for days. The profile is written when the recording
    /// ends, and fg-record ends when it gets a SIGUSR2.
    ///
    /// If the file name of -o contains `%t`, as in `-o 'app-%t.folded'`, the recording goes on: each SIGUSR2 writes a file,
    /// whose name contains the time of day at which it was written.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide_short_help = true)]
    #[arg(conflicts_with_all = ["interval", "bpf", "latency", "pair", "io_latency", "syscall_latency", "lock_wait"])]
    pub ring: Option<Duration>,

    /// Write what --ring keeps if this happens, and else nothing
    ///
    /// CONDITION is `block > TIME`, as in --when 'block > 200ms', or a shell command. `block > TIME` happens when a thread of
    /// the target is off the CPU for longer than TIME; this needs --off-cpu or --wall. Threads that wait for work are
    /// blocked too: name the threads that should not wait with -t.
    ///
    /// A command is run with `sh -c` about once a second, and happens when it exits with status 0. It can also wait for what
    /// it tells: `tail -n 0 -F app.log | grep -q timeout`.
    ///
    /// While the recording goes on, at most one file is written for a condition in the TIME of --ring, so all that happens
    /// is in one of the files. SIGUSR2 writes at once.
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "CONDITION", value_parser = parse_condition, requires = "ring", hide_short_help = true)]
    pub when: Option<fgkit::record::flight_recorder::condition::Condition>,
}

#[cfg(target_os = "linux")]
fn parse_condition(text: &str) -> Result<fgkit::record::flight_recorder::condition::Condition, String> {
    use fgkit::record::flight_recorder::condition::Condition;
    match text.split_once('>') {
        _ if text.trim().is_empty() => Err("expected `block > TIME` or a command".to_owned()),
        Some((subject, limit)) if subject.trim() == "block" => parse_duration(limit.trim()).map(Condition::Block),
        _ => Ok(Condition::Command(text.to_owned())),
    }
}
