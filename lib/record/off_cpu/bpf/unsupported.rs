//! Replaces the BPF aggregation in builds without the feature `bpf`.

use crate::Error;
use crate::perf::recording::Recording;
use crate::record::off_cpu::OffCpuOptions;
use crate::record::off_cpu::totals::StateTotals;
use crate::record::target::Target;

/// A BPF aggregation, which this build cannot create.
#[derive(Debug)]
pub enum Aggregation {}

/// A closed window, which this build cannot create.
#[derive(Debug)]
pub enum ClosedWindow {}

impl Aggregation {
    /// Fails, and says how to build fg-record with BPF.
    ///
    /// # Errors
    /// Always [`Error::System`].
    pub fn open(_: &Target, _: &OffCpuOptions) -> Result<Self, Error> {
        let advice = "--bpf: this fg-record was built without BPF; run: cargo install fgkit --features bpf";
        Err(Error::System(advice.to_owned()))
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn start(&mut self) -> Result<(), Error> {
        match *self {}
    }

    /// Is never called.
    pub fn close_window(&mut self) -> Option<ClosedWindow> {
        match *self {}
    }

    /// Is never called.
    pub fn charge_window(&mut self, _: ClosedWindow, _: &mut Recording) {
        match *self {}
    }

    /// Is never called.
    pub fn finish(self, _: u64, _: &mut Recording) -> (StateTotals, Vec<String>) {
        match self {}
    }
}
