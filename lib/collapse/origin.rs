//! When, where and by whom a sample was taken, and whether it counts by that: for all formats whose samples tell it.

use super::{NumberList, OffsetSpan, Options, TimeSpan};

/// What the options ask for, and the first sample's time where others are measured from it.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    time: Option<TimeSpan>,
    offset: Option<OffsetSpan>,
    comms: Vec<Vec<u8>>,
    pids: Option<NumberList>,
    tids: Option<NumberList>,
    cpus: Option<NumberList>,
    no_idle: bool,
    first: Option<u64>,
}

/// When, where and by whom a sample was taken, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origin<'a> {
    /// In nanoseconds.
    pub(super) time: Option<u64>,
    pub(super) comm: &'a [u8],
    pub(super) pid: Option<u32>,
    pub(super) tid: Option<u32>,
    pub(super) cpu: Option<u32>,
}

impl Choice {
    pub(super) fn new(options: &Options) -> Self {
        let Options { time, offset, no_idle, .. } = *options;
        let Options { comms, pids, tids, cpus, .. } = options.clone();
        Self { time, offset, comms, pids, tids, cpus, no_idle, first: None }
    }

    /// Whether all samples count.
    pub(super) fn is_all(&self) -> bool {
        let lists = [&self.pids, &self.tids, &self.cpus];
        self.time.is_none()
            && self.offset.is_none()
            && self.comms.is_empty()
            && !self.no_idle
            && lists.iter().all(|list| list.is_none())
    }

    /// Whether what the first sample decides is not decided yet.
    pub(super) fn awaits_first(&self) -> bool {
        self.first.is_none() && self.time.is_some_and(|span| span.is_relative())
    }

    /// Whether a sample counts.
    ///
    /// # Errors
    /// What the sample does not tell that an option asks for.
    pub(super) fn takes(&mut self, origin: &Origin<'_>) -> Result<bool, &'static str> {
        let in_time = self.in_time(origin)?;
        let listed = |list: &Option<NumberList>, number: Option<u32>, missing| match list {
            None => Ok(true),
            Some(list) => number.map(|number| list.contains(number)).ok_or(missing),
        };
        Ok(in_time
            && (!self.no_idle || !origin.is_idle())
            && self.of_thread(origin.comm)
            && listed(
                &self.pids,
                origin.pid,
                "a sample without a process id, so that -p cannot tell whether it counts",
            )?
            && listed(
                &self.tids,
                origin.tid,
                "a sample without a thread id, so that -t cannot tell whether it counts",
            )?
            && listed(&self.cpus, origin.cpu, "a sample without a CPU, so that --cpu cannot tell whether it counts")?)
    }

    fn in_time(&mut self, origin: &Origin<'_>) -> Result<bool, &'static str> {
        if self.time.is_none() && self.offset.is_none() {
            return Ok(true);
        }
        let time =
            origin.time.ok_or("a sample without a time, so that --time or --offset cannot tell whether it counts")?;
        let first = *self.first.get_or_insert(time);
        Ok(self.time.is_none_or(|span| span.contains(time, first))
            && self.offset.is_none_or(|span| span.contains(time)))
    }

    /// By its name as it is, or as it is shown, with `_` for blanks.
    fn of_thread(&self, comm: &[u8]) -> bool {
        let same = |name: &Vec<u8>| {
            let as_shown = |byte: &u8| if *byte == b' ' { b'_' } else { *byte };
            name == comm || name.iter().copied().eq(comm.iter().map(as_shown))
        };
        self.comms.is_empty() || self.comms.iter().any(same)
    }
}

impl Origin<'_> {
    /// Whether it is the thread that a CPU runs when it has nothing to do.
    fn is_idle(&self) -> bool {
        self.tid == Some(0) || self.tid.is_none() && self.comm.starts_with(b"swapper")
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, Origin};
    use crate::collapse::Options;

    fn takes(options: &Options, origin: &Origin<'_>) -> Result<bool, &'static str> {
        Choice::new(options).takes(origin)
    }

    #[test]
    fn each_option_must_be_met() {
        let sample = Origin { time: Some(7_250_000_000), comm: b"a b", pid: Some(1), tid: Some(2), cpu: Some(3) };
        let (one, two) = ("1".parse().ok(), "2".parse().ok());
        let none = Options::default();
        assert!(Choice::new(&none).is_all() && takes(&none, &sample).unwrap());
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
            assert!(!Choice::new(&options).is_all());
            assert_eq!(takes(&options, &sample), Ok(expected), "{options:?}");
        }
    }

    #[test]
    fn what_a_sample_does_not_tell_cannot_be_chosen_by() {
        let unknown = Origin::default();
        let one = "1".parse().ok();
        for options in [
            Options { pids: one.clone(), ..Options::default() },
            Options { cpus: one, ..Options::default() },
            Options { offset: ",".parse().ok(), ..Options::default() },
        ] {
            assert!(takes(&options, &unknown).is_err(), "{options:?}");
        }
    }

    #[test]
    fn idle_is_the_thread_without_a_number() {
        let options = Options { no_idle: true, ..Options::default() };
        for (comm, tid, expected) in
            [(&b"swapper"[..], Some(0), false), (b"swapper/1", None, false), (b"swapper", Some(5), true)]
        {
            assert_eq!(takes(&options, &Origin { comm, tid, ..Origin::default() }), Ok(expected));
        }
    }
}
