//! Counters and their rings: for each CPU one ring for samples, and one for all that samples refer to.
//!
//! What samples refer to (new mappings, programs, threads) wakes the recorder at once, so that files are opened while
//! they are there; samples wake it when their ring is half full.

mod attr;
mod open;
pub mod sampling;

use std::fs::File;
use std::io;
use std::time::Duration;

use perf_event_open::count::Counter;
use perf_event_open::sample::Sampler;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::perf::event::{self, Event, Layout, Sample, Stamp};
use crate::record::counters::sampling::Rate;
use crate::record::events::spec::EventSpec;
use crate::record::events::value::SampleValue;
use crate::record::sys;

/// A counter whose records go to a ring of its own.
pub struct Ring {
    pub(in crate::record) counter: Counter,
    pub(in crate::record) sampler: Sampler,
    pub(in crate::record) cpu: u32,
    /// The counter's id, where no other writes into the ring and records do not name theirs.
    pub(in crate::record) only: Option<u64>,
    pub(in crate::record) layout: Layout,
}

impl Ring {
    /// The ring's records.
    pub fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// Reads one of the ring's records, and adds what all of them would say.
    pub fn parse<'a>(&self, record: &'a [u8]) -> Option<(Stamp, Event<'a>)> {
        let (stamp, event) = event::parse(record, self.layout)?;
        Some((Stamp { cpu: self.cpu, id: self.only.unwrap_or(stamp.id), ..stamp }, event))
    }

    /// The file to wait for.
    pub fn file(&self) -> &File {
        self.counter.file()
    }
}

/// The two rings of a CPU.
pub struct CpuRings {
    /// Samples.
    pub samples: Ring,
    /// What samples refer to.
    pub side: Ring,
    /// Switches, where they are wanted.
    pub switches: Option<Ring>,
}

impl CpuRings {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Ring> {
        self.others().chain([&self.samples])
    }

    /// All but that of samples.
    pub fn others(&self) -> impl Iterator<Item = &Ring> {
        [&self.side].into_iter().chain(&self.switches)
    }
}

/// All counters of a recording.
pub struct Counters {
    /// The rings, a pair a CPU.
    pub rings: Vec<CpuRings>,
    /// Counters of further threads, which write into the same rings.
    pub(in crate::record) others: Vec<Counter>,
    /// For each counter of samples, by its id, what it counts.
    pub(in crate::record) counted: FxHashMap<u64, Counted>,
    /// The threads that have counters of their own.
    pub(in crate::record) owned: FxHashSet<u32>,
    pub(in crate::record) enable_by_hand: bool,
    /// Whether they count on CPUs, whoever runs there, and not in threads.
    pub(in crate::record) of_cpus: bool,
    /// Whether samples bring the event's own count.
    pub(in crate::record) tells_period: bool,
    /// How long a sample may wait before it is read; `None` if until its ring is half full.
    pub(in crate::record) longest_wait: Option<Duration>,
    /// For how many of each event a sample stands, and how much each of them is.
    pub(in crate::record) measures: Vec<(Option<u64>, Option<SampleValue>)>,
    /// What the user should know of how they were opened.
    pub notes: Vec<String>,
}

impl Counters {
    /// Starts telling what samples will refer to, unless a command's program will.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start_side(&self) -> io::Result<()> {
        if !self.enable_by_hand {
            return Ok(());
        }
        self.all().filter(|counter| self.is_side(counter)).try_for_each(Counter::enable)
    }

    /// Starts counting, unless a command's program will.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(&self) -> io::Result<()> {
        if !self.enable_by_hand {
            return Ok(());
        }
        self.all().try_for_each(Counter::enable)
    }

    /// Stops counting.
    pub fn stop(&self) {
        for counter in self.all() {
            // One whose thread has gone counts no more anyway.
            let _ = counter.disable();
        }
    }

    /// How many samples of each event the kernel says it dropped, where it can say.
    pub fn lost(&self) -> Option<Vec<u64>> {
        let mut lost = Vec::new();
        for (event, counter) in self.of_samples() {
            lost.resize(lost.len().max(event + 1), 0);
            lost[event] += counter.stat().ok()?.lost_records?;
        }
        Some(lost)
    }

    /// How much was counted in the threads that are recorded, whether or not samples were taken of it.
    pub fn counted(&self) -> Option<u64> {
        (!self.of_cpus).then(|| self.of_samples().map(|(_, counter)| Some(counter.stat().ok()?.count)).sum()).flatten()
    }

    /// The files of those that samples are taken of.
    pub(in crate::record) fn files_of_samples(&self) -> impl Iterator<Item = &File> {
        self.of_samples().map(|(_, counter)| counter.file())
    }

    /// The counters that samples are taken of, each with its event's number.
    fn of_samples(&self) -> impl Iterator<Item = (usize, &Counter)> {
        let leaders = self.rings.iter().map(|rings| &rings.samples.counter);
        leaders.chain(&self.others).filter_map(|counter| {
            let counted = self.counted.get(&counter.id().ok()?).filter(|counted| counted.event != SWITCHES)?;
            Some((counted.event as usize, counter))
        })
    }

    /// How many records of what samples refer to the kernel says it dropped, where it can say.
    pub fn lost_side_band(&self) -> Option<u64> {
        self.all().filter(|counter| self.is_side(counter)).map(|counter| counter.stat().ok()?.lost_records).sum()
    }

    fn is_side(&self, counter: &Counter) -> bool {
        !counter.id().is_ok_and(|id| self.counted.contains_key(&id))
    }

    /// The number of the event of which counter `id` took a sample in thread `tid`, if it counts: a thread that was born
    /// while counters were opened may have its own and its parent's, of which its own count.
    pub fn event(&self, tid: u32, id: u64) -> Option<u32> {
        let Some(counted) = self.counted.get(&id) else {
            // Where several recorders take samples of a switch, the kernel gives some of them the number of another's.
            return (self.measures.len() == 1).then_some(0);
        };
        let counts = !self.owned.contains(&tid) || counted.owner.is_none_or(|owner| owner == tid);
        counts.then_some(counted.event)
    }

    /// Has one sample taken in so many of those that were asked for, if that can be done for all counters there are.
    pub fn set_rates(&self, metrics: &[(EventSpec, Rate)], one_in: u32) -> bool {
        if !self.of_cpus || metrics.iter().any(|(_, rate)| rate.period().is_some()) {
            return false;
        }
        for counter in self.all() {
            let counted = counter.id().ok().and_then(|id| self.counted.get(&id));
            if let Some((_, Rate::Frequency(hertz))) = counted.and_then(|counted| metrics.get(counted.event as usize)) {
                sys::set_period(counter.file(), (hertz / u64::from(one_in)).max(1));
            }
        }
        true
    }

    /// How much a sample of an event, by its number, stands for.
    pub fn measure(&self, event: u32, sample: &Sample<'_>) -> u64 {
        let (period, quantity) = &self.measures[event as usize];
        match quantity {
            Some(quantity) => quantity.of(sample).saturating_mul(period.unwrap_or(sample.period)),
            None if self.tells_period => sample.period,
            None => period.unwrap_or(1),
        }
    }

    /// Lets an event, by its number, be counted or not.
    pub fn let_count(&self, event: u32, on: bool) {
        let of_event = |counter: &&Counter| {
            counter.id().ok().and_then(|id| self.counted.get(&id)).is_some_and(|counted| counted.event == event)
        };
        for counter in self.all().filter(of_event) {
            // One whose thread has gone counts no more anyway.
            let _ = if on { counter.enable() } else { counter.disable() };
        }
    }

    fn all(&self) -> impl Iterator<Item = &Counter> {
        self.rings.iter().flat_map(CpuRings::all).map(|ring| &ring.counter).chain(&self.others)
    }
}

/// The number of an event that is none: of the counter that only tells of switches.
pub(in crate::record) const SWITCHES: u32 = u32::MAX;

/// What a counter counts.
#[derive(Clone, Copy, Debug)]
pub(in crate::record) struct Counted {
    /// The event's number.
    pub(in crate::record) event: u32,
    /// The thread, where each has its own counters.
    pub(in crate::record) owner: Option<u32>,
}
