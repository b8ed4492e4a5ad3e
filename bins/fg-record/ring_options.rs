//! The options of fg-record that keep the last part of a recording.

use std::time::Duration;

use fgkit::cli::parse_duration;

/// Options that keep the last part of a recording.
#[derive(clap::Args)]
#[command(next_help_heading = "Flight recorder")]
pub struct RingArgs {
    /// Keep only the last TIME, like 30s, and write it at the end or on SIGUSR2
    ///
    /// Older data are dropped, so fg-record can wait days for a problem. TIME is at least 1s, and up to 2 s more are
    /// kept. Memory grows with the number of distinct stacks in that time. The stack of every switch is captured (see
    /// --off-cpu-period).
    ///
    /// On SIGUSR2 (`pkill -USR2 -x fg-record`), the recording ends and the profile is written. A recorded command keeps
    /// running, and fg-record waits for it; a command given together with -p, -t, -a or --cgroup gets a SIGTERM.
    ///
    /// With `%t` in the file name of -o, as in `-o 'app-%t.folded'`, the recording goes on: each SIGUSR2 writes a file,
    /// and so does the end of the recording, unless --when is given. `%t` is the UTC date and time of writing.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide_short_help = true)]
    #[arg(conflicts_with_all = ["interval", "bpf", "latency", "pair", "io_latency", "syscall_latency", "lock_wait"])]
    pub ring: Option<Duration>,

    /// When CONDITION comes true, write what --ring has kept; write nothing at the end
    ///
    /// `block > TIME`, as in --when 'block > 200ms', is true when a thread of the target runs again after it was
    /// blocked for longer than TIME, or when it has been blocked for nine tenths of the TIME of --ring. It requires
    /// --off-cpu or --wall. Preemption does not count; the wait for a CPU after the wake-up does, unless --wakers is
    /// given. A block that began before the recording does not count: if a process already hangs, `fg-record --off-cpu
    /// -p PID -d 1` shows where.
    ///
    /// Threads that are idle are blocked, too. With -t, select the threads that should not wait, or add a regular
    /// expression that a function in the stack of the block must match: --when 'block > 200ms in commit|^lock_'.
    ///
    /// Any other CONDITION is a shell command, and true when the command exits with status 0. It is run with `sh -c` as
    /// the user of fg-record; after each exit, it is run again one second later. Its standard output is discarded. It
    /// may block until the event, as in `tail -n 0 -F app.log | grep -q timeout`.
    ///
    /// If the recording ends before CONDITION is true, nothing is written; without `%t` in the file name, the exit
    /// status is then 125. SIGUSR2 writes at any time. With `%t`, files for a condition are at least the TIME of --ring
    /// apart. If it comes true sooner, the next file is written when that time has passed, or at the end, and contains
    /// that moment.
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "CONDITION", value_parser = parse_condition, requires = "ring", hide_short_help = true)]
    pub when: Option<fgkit::record::flight_recorder::condition::Condition>,
}

#[cfg(target_os = "linux")]
fn parse_condition(text: &str) -> Result<fgkit::record::flight_recorder::condition::Condition, String> {
    use fgkit::record::flight_recorder::condition::Condition;
    use regex::bytes::Regex;

    const EXPECTED: &str = "expected `block > TIME`, `block > TIME in REGEX` or a shell command";
    let Some((subject, limit)) = text.split_once('>') else {
        return if text.trim().is_empty() { Err(EXPECTED.to_owned()) } else { Ok(Condition::Command(text.to_owned())) };
    };
    let (limit, function) =
        limit.split_once(" in ").map_or((limit, None), |(limit, regex)| (limit, Some(regex.trim())));
    let limit = parse_duration(limit.trim());
    match subject.trim() {
        "block" => {
            let function = function.map(Regex::new).transpose().map_err(|error| error.to_string())?;
            Ok(Condition::Block { limit: limit?, function })
        }
        // The shell would write to a file of that name.
        _ if limit.is_ok() => Err(EXPECTED.to_owned()),
        _ => Ok(Condition::Command(text.to_owned())),
    }
}
