//! Builds without the feature `bpf`: nothing is added up in the kernel.

use crate::Error;
use crate::perf::recording::Recording;
use crate::record::off_cpu::{OffCpu, Times};
use crate::record::target::Target;

/// There is none.
#[derive(Debug)]
pub enum Aggregation {}

/// There is none.
#[derive(Debug)]
pub enum Closed {}

impl Aggregation {
    /// Says how to build what could.
    ///
    /// # Errors
    /// Always [`Error::Invalid`].
    pub fn open(_: &Target, _: &OffCpu) -> Result<Self, Error> {
        let how = "this fg-record was built without --bpf: cargo install fgkit --features bpf";
        Err(Error::Invalid(how.to_owned()))
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn start(&mut self) -> Result<(), Error> {
        match *self {}
    }

    /// Never called.
    pub fn close_window(&mut self) -> Option<Closed> {
        match *self {}
    }

    /// Never called.
    pub fn take(&mut self, _: Closed, _: &mut Recording) {
        match *self {}
    }

    /// Never called.
    pub fn finish(self, _: u64, _: &mut Recording) -> (Times, Vec<String>) {
        match self {}
    }
}
