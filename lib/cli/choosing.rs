//! The options that choose samples by when, where and by whom they were taken.

use std::ffi::OsString;

use crate::collapse::{EventChoice, NumberList, OffsetSpan, Options, TimeSpan};

/// Which samples count: the same for all tools that read samples.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Choosing {
    /// Take this event or value, or `all` [default: first met]
    #[arg(long, aliases = ["event-filter", "sample-type"], value_name = "NAME")]
    event: Option<OsString>,
    /// Take these seconds: 1.5,2 or +0,+1 from the first
    ///
    /// FROM is within, TO is not, here and with --offset. Either may be left out.
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true)]
    time: Option<TimeSpan>,
    /// Of every second take this part, as in 0.2,0.25
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true, hide_short_help = true)]
    offset: Option<OffsetSpan>,
    /// Take samples of threads of this name; may be repeated
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    comm: Vec<OsString>,
    /// Take samples of these processes, as in 12,34
    #[arg(short = 'p', value_name = "PIDS", hide_short_help = true)]
    pids: Option<NumberList>,
    /// Take samples of these threads, by their numbers
    #[arg(short = 't', value_name = "TIDS", hide_short_help = true)]
    tids: Option<NumberList>,
    /// Take samples on these CPUs, as in 0-3,7
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    cpu: Option<NumberList>,
    /// Leave the idle thread (swapper) out, and the interrupts that it served
    #[arg(long, hide_short_help = true)]
    no_idle: bool,
}

impl Choosing {
    /// The same for the readers; all else as usual.
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
