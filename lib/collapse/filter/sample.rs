//! Selects samples by time, thread, process and CPU, for all formats that record them.

use super::args::{NumberList, OffsetSpan, TimeSpan};
use crate::collapse::options::Options;

/// The conditions that the options set on samples.
#[derive(Clone, Debug)]
pub(in crate::collapse) struct SampleFilter {
    time: Option<TimeSpan>,
    offset: Option<OffsetSpan>,
    comms: Vec<Vec<u8>>,
    pids: Option<NumberList>,
    tids: Option<NumberList>,
    cpus: Option<NumberList>,
    no_idle: bool,
}

/// Time, thread and CPU of a sample, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::collapse) struct SampleInfo<'a> {
    /// Nanoseconds on the clock of the recording.
    pub(in crate::collapse) time: Option<u64>,
    pub(in crate::collapse) comm: &'a [u8],
    pub(in crate::collapse) pid: Option<u32>,
    pub(in crate::collapse) tid: Option<u32>,
    pub(in crate::collapse) cpu: Option<u32>,
}

impl SampleFilter {
    pub(in crate::collapse) fn new(options: &Options) -> Self {
        let Options { time, offset, no_idle, .. } = *options;
        let Options { comms, pids, tids, cpus, .. } = options.clone();
        Self { time, offset, comms, pids, tids, cpus, no_idle }
    }

    /// True if no condition is set.
    pub(in crate::collapse) fn accepts_all(&self) -> bool {
        let lists = [&self.pids, &self.tids, &self.cpus];
        self.time.is_none()
            && self.offset.is_none()
            && self.comms.is_empty()
            && !self.no_idle
            && lists.iter().all(|list| list.is_none())
    }

    /// True if samples are selected by the names of their threads.
    pub(in crate::collapse) fn names_threads(&self) -> bool {
        !self.comms.is_empty()
    }

    /// Returns true if a sample meets all conditions, but for a span of time that is relative to the earliest sample: the
    /// sink knows which samples are in it when all have been read.
    ///
    /// # Errors
    /// A message if the sample lacks a property that a condition needs.
    pub(in crate::collapse) fn accepts(&self, info: &SampleInfo<'_>) -> Result<bool, &'static str> {
        let in_time = self.accepts_time(info)?;
        Ok(in_time
            && (!self.no_idle || !info.is_idle())
            && self.accepts_comm(info.comm)
            && accepts_number(self.pids.as_ref(), info.pid, "a sample has no process id, which -p needs")?
            && accepts_number(self.tids.as_ref(), info.tid, "a sample has no thread id, which -t needs")?
            && accepts_number(self.cpus.as_ref(), info.cpu, "a sample has no CPU, which --cpu needs")?)
    }

    fn accepts_time(&self, info: &SampleInfo<'_>) -> Result<bool, &'static str> {
        if self.time.is_none() && self.offset.is_none() {
            return Ok(true);
        }
        let time = info.time.ok_or("a sample has no time, which --time and --offset need")?;
        Ok(self.time.is_none_or(|span| span.is_relative() || span.contains(time, 0))
            && self.offset.is_none_or(|span| span.contains(time)))
    }

    /// Compares with the thread name as recorded and as shown, with `_` for blanks.
    fn accepts_comm(&self, comm: &[u8]) -> bool {
        self.comms.is_empty() || self.comms.iter().any(|name| name == comm || is_shown_name(name, comm))
    }
}

/// Returns true if `name` is a thread name as shown, with `_` for blanks.
fn is_shown_name(name: &[u8], comm: &[u8]) -> bool {
    let shown = comm.iter().map(|byte| if *byte == b' ' { b'_' } else { *byte });
    name.iter().copied().eq(shown)
}

/// Returns true if no list is given, or if the list contains the number.
///
/// # Errors
/// `missing` if there is a list but no number.
fn accepts_number(list: Option<&NumberList>, number: Option<u32>, missing: &'static str) -> Result<bool, &'static str> {
    match list {
        None => Ok(true),
        Some(list) => number.map(|number| list.contains(number)).ok_or(missing),
    }
}

/// Returns true if an option selects samples by time, thread, process, CPU or span, or leaves out idle ones.
pub(in crate::collapse) fn filters_samples(options: &Options) -> bool {
    options.no_idle || selects_samples(options)
}

/// Returns true if an option selects samples by time, thread, process, CPU or span.
pub(in crate::collapse) fn selects_samples(options: &Options) -> bool {
    let filter = SampleFilter { no_idle: false, ..SampleFilter::new(options) };
    options.spans.is_some() || !filter.accepts_all()
}

impl SampleInfo<'_> {
    /// True for the idle thread of a CPU, whose thread id is 0.
    fn is_idle(&self) -> bool {
        self.tid == Some(0) || self.tid.is_none() && self.comm.starts_with(b"swapper")
    }
}

#[cfg(test)]
mod tests {
    use super::{SampleFilter, SampleInfo};
    use crate::collapse::options::Options;

    fn accepts(options: &Options, info: &SampleInfo<'_>) -> Result<bool, &'static str> {
        SampleFilter::new(options).accepts(info)
    }

    #[test]
    fn all_conditions_must_hold() {
        let sample = SampleInfo { time: Some(7_250_000_000), comm: b"a b", pid: Some(1), tid: Some(2), cpu: Some(3) };
        let (one, two) = ("1".parse().ok(), "2".parse().ok());
        let none = Options::default();
        assert!(SampleFilter::new(&none).accepts_all() && accepts(&none, &sample).unwrap());
        for (options, expected) in [
            (Options { pids: one.clone(), ..none.clone() }, true),
            (Options { pids: two.clone(), ..none.clone() }, false),
            (Options { tids: two.clone(), ..none.clone() }, true),
            (Options { tids: one, ..none.clone() }, false),
            (Options { cpus: two, ..none.clone() }, false),
            (Options { comms: vec![b"a_b".to_vec()], ..none.clone() }, true),
            (Options { comms: vec![b"a".to_vec()], ..none.clone() }, false),
            (Options { no_idle: true, ..none.clone() }, true),
            (Options { offset: "0.25,0.3".parse().ok(), ..none.clone() }, true),
            (Options { offset: "0.2,0.25".parse().ok(), ..none.clone() }, false),
            (Options { time: "7,7.25".parse().ok(), offset: "0,1".parse().ok(), ..none.clone() }, false),
            (Options { time: "7,8".parse().ok(), offset: "0.3,1".parse().ok(), ..none.clone() }, false),
        ] {
            assert!(!SampleFilter::new(&options).accepts_all());
            assert_eq!(accepts(&options, &sample), Ok(expected), "{options:?}");
        }
    }

    #[test]
    fn rejects_samples_that_lack_a_needed_property() {
        let unknown = SampleInfo::default();
        let one = "1".parse().ok();
        for options in [
            Options { pids: one.clone(), ..Options::default() },
            Options { cpus: one, ..Options::default() },
            Options { offset: ",".parse().ok(), ..Options::default() },
        ] {
            assert!(accepts(&options, &unknown).is_err(), "{options:?}");
        }
    }

    #[test]
    fn the_idle_thread_has_id_zero() {
        let options = Options { no_idle: true, ..Options::default() };
        for (comm, tid, expected) in
            [(&b"swapper"[..], Some(0), false), (b"swapper/1", None, false), (b"swapper", Some(5), true)]
        {
            assert_eq!(accepts(&options, &SampleInfo { comm, tid, ..SampleInfo::default() }), Ok(expected));
        }
    }
}
