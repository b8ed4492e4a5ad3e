//! Options that select samples by event, time, thread and CPU.

use std::ffi::OsString;

use crate::collapse::{EventChoice, NumberList, OffsetSpan, Options, TimeSpan};

/// Options that select samples, for programs that read profilers' output.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Sample selection")]
pub struct SampleArgs {
    /// Use this event or value type, or `all` [default: first]
    ///
    /// By default, the first event in the input is used, and a message lists the others. If each sample has several
    /// values, as in pprof, the default is the usual value of the format, and a message lists all of them.
    ///
    /// For Java Flight Recorder, the names `cpu`, `wall`, `alloc`, `nativemem`, `lock`, `live` and `native` also select
    /// events; the default is the first of these in the recording. For Java thread dumps, events are thread states, and
    /// the default is `RUNNABLE`. Threads that wait in native functions have an event of their own: `--event 'RUNNABLE,
    /// but waits'`.
    #[arg(long, aliases = ["event-filter", "sample-type"], value_name = "NAME")]
    event: Option<OsString>,
    /// Use samples in this time range, like 1.5,2 or +0,+1
    ///
    /// Times are in seconds on the clock of the samples; with a plus sign, since the earliest sample of the input. FROM
    /// is included, TO is not; either may be omitted.
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true)]
    time: Option<TimeSpan>,
    /// Use samples in this part of every second, like 0.2,0.25
    ///
    /// Seconds are those of the samples' clock. FROM is included, TO is not; either may be omitted.
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true, hide_short_help = true)]
    offset: Option<OffsetSpan>,
    /// Use samples of threads with this name; may be repeated
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    comm: Vec<OsString>,
    /// Use samples of these processes, like 12,34
    #[arg(short = 'p', value_name = "PIDS", hide_short_help = true)]
    pids: Option<NumberList>,
    /// Use samples of these threads, like 12,34
    #[arg(short = 't', value_name = "TIDS", hide_short_help = true)]
    tids: Option<NumberList>,
    /// Use samples taken on these CPUs, like 0-3,7
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    cpu: Option<NumberList>,
    /// Skip samples of the idle thread (swapper)
    ///
    /// This also skips interrupts that arrived while the CPU was idle.
    #[arg(long, hide_short_help = true)]
    no_idle: bool,
}

impl SampleArgs {
    /// Returns options for a reader that select these samples and leave everything else at its default.
    pub fn options(&self) -> Options {
        Options {
            event: match &self.event {
                None => EventChoice::First,
                Some(name) if name == "all" => EventChoice::All,
                Some(name) => EventChoice::Named(name.as_encoded_bytes().to_vec()),
            },
            time: self.time,
            offset: self.offset,
            comms: self.comm.iter().map(|name| name.as_encoded_bytes().to_vec()).collect(),
            pids: self.pids.clone(),
            tids: self.tids.clone(),
            cpus: self.cpu.clone(),
            no_idle: self.no_idle,
            ..Options::default()
        }
    }
}
