//! The events that can be counted, by the names that perf gives them.

use perf_event_open::event::Event;
use perf_event_open::event::hw::Hardware;
use perf_event_open::event::sw::Software;

use crate::Error;

/// An event that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A counter of the kernel's own.
    Software(&'static str),
    /// A counter of the CPU's.
    Hardware(&'static str),
}

const SOFTWARE: [&str; 5] = ["cpu-clock", "task-clock", "page-faults", "minor-faults", "major-faults"];
const HARDWARE: [&str; 5] = ["cycles", "instructions", "cache-misses", "branches", "branch-misses"];

/// The CPU's own clock: what is counted where nothing else is asked for.
pub const CYCLES: Metric = Metric::Hardware("cycles");
/// The kernel's clock: what is counted where the machine has no counters, as most virtual ones.
pub const CPU_CLOCK: Metric = Metric::Software("cpu-clock");

impl Metric {
    /// The event of that name.
    ///
    /// # Errors
    /// [`Error::Usage`] with the names that there are.
    pub fn named(name: &str) -> Result<Self, Error> {
        let software = SOFTWARE.into_iter().find(|known| *known == name).map(Self::Software);
        let hardware = HARDWARE.into_iter().find(|known| *known == name).map(Self::Hardware);
        software.or(hardware).ok_or_else(|| {
            let known = SOFTWARE.into_iter().chain(HARDWARE).collect::<Vec<_>>().join(", ");
            Error::Usage(format!("no event is called {name}; known are {known}"))
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Software(name) | Self::Hardware(name) => name,
        }
    }

    /// Whether it takes the CPU's own counters.
    pub fn is_hardware(self) -> bool {
        matches!(self, Self::Hardware(_))
    }
}

impl TryFrom<Metric> for Event {
    type Error = std::io::Error;

    fn try_from(metric: Metric) -> Result<Self, Self::Error> {
        match metric.name() {
            "task-clock" => Software::TaskClock.try_into(),
            "page-faults" => Software::PageFault.try_into(),
            "minor-faults" => Software::MinorPageFault.try_into(),
            "major-faults" => Software::MajorPageFault.try_into(),
            "cycles" => Hardware::CpuCycle.try_into(),
            "instructions" => Hardware::Instr.try_into(),
            "cache-misses" => Hardware::CacheMiss.try_into(),
            "branches" => Hardware::BranchInstr.try_into(),
            "branch-misses" => Hardware::BranchMiss.try_into(),
            _ => Software::CpuClock.try_into(),
        }
    }
}
