//! The events that can be counted, by the names that perf gives them.

use std::path::Path;

use perf_event_open::event::Event;
use perf_event_open::event::dp::DynamicPmu;

use super::pmu;
use super::uprobe::Uprobe;
use crate::Error;
use crate::bytes::parse_hex;
use crate::record::events::value::SampleValue;

/// An event that can be counted, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    name: String,
    event: DynamicPmu,
    /// Where it is not counted.
    pub excluded: Excluded,
    /// What it adds up to, if not to its number.
    pub quantity: Option<SampleValue>,
    /// The file whose code it is in, if it is a call.
    uprobe: Option<Uprobe>,
    /// How near to the cause a sample must be taken: 0 to 3, as `precise_ip` has it.
    pub precise: u8,
}

/// Where an event is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excluded {
    /// In programs.
    pub user: bool,
    /// In the kernel.
    pub kernel: bool,
}

/// `enum perf_type_id`.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;
const CACHE: u32 = 3;
const RAW: u32 = 4;

/// By name and other name: `enum perf_sw_ids`.
const SOFTWARE_NAMES: [(&str, &str, u64); 10] = [
    ("cpu-clock", "", 0),
    ("task-clock", "", 1),
    ("page-faults", "faults", 2),
    ("context-switches", "cs", 3),
    ("cpu-migrations", "migrations", 4),
    ("minor-faults", "", 5),
    ("major-faults", "", 6),
    ("alignment-faults", "", 7),
    ("emulation-faults", "", 8),
    ("cgroup-switches", "", 11),
];
/// `enum perf_hw_id`.
const HARDWARE_NAMES: [(&str, &str, u64); 10] = [
    ("cycles", "cpu-cycles", 0),
    ("instructions", "", 1),
    ("cache-references", "", 2),
    ("cache-misses", "", 3),
    ("branches", "branch-instructions", 4),
    ("branch-misses", "", 5),
    ("bus-cycles", "", 6),
    ("stalled-cycles-frontend", "idle-cycles-frontend", 7),
    ("stalled-cycles-backend", "idle-cycles-backend", 8),
    ("ref-cycles", "", 9),
];
/// `enum perf_hw_cache_id`, in order; then what is done, and whether it missed.
const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
const ACCESSES: [(&str, u64); 6] =
    [("loads", 0), ("load-misses", 1), ("stores", 2), ("store-misses", 3), ("prefetches", 4), ("prefetch-misses", 5)];

impl EventSpec {
    /// The CPU's own clock: what is counted where nothing else is asked for.
    pub fn cycles() -> Self {
        Self::new("cycles", HARDWARE, 0)
    }

    /// The kernel's clock: what is counted where the machine has no counters, as most virtual ones.
    pub fn cpu_clock() -> Self {
        Self::new("cpu-clock", SOFTWARE, 0)
    }

    /// A thread leaves its CPU.
    pub fn context_switches() -> Self {
        Self::new("context-switches", SOFTWARE, 3)
    }

    /// Nothing: `PERF_COUNT_SW_DUMMY`.
    pub(in crate::record) fn dummy() -> Self {
        Self::new("dummy", SOFTWARE, 9)
    }

    fn new(name: &str, ty: u32, config: u64) -> Self {
        let event = DynamicPmu { ty, config, config1: 0, config2: 0, config3: 0 };
        let (name, excluded) = (name.to_owned(), Excluded::default());
        Self { name, event, excluded, quantity: None, uprobe: None, precise: 0 }
    }

    /// The event of that name; behind a colon where to count it and how precisely, as in `cycles:up`.
    ///
    /// # Errors
    /// [`Error::Usage`] with the names that there are, [`Error::System`] where the machine has none of that name.
    pub fn named(name: &str) -> Result<Self, Error> {
        if name.is_empty() {
            return Err(Error::Usage("-e: an event has no name".to_owned()));
        }
        if let Some(place) = name.strip_prefix("uprobe:") {
            return Self::call(name, Uprobe::parse(place)?);
        }
        let failure = match Self::without_modifiers(name) {
            Ok(metric) => return Ok(metric),
            Err(failure) => failure,
        };
        // What stands behind a PMU's last slash needs no colon.
        let after_slash = name.rfind('/').filter(|slash| slash + 1 < name.len()).map(|slash| slash + 1);
        let (event, modifiers) = match (name.rsplit_once(':'), after_slash) {
            (_, Some(end)) => name.split_at(end),
            (Some(parts), None) => parts,
            (None, None) => return Err(failure),
        };
        let Some((excluded, precise)) = read_modifiers(modifiers) else {
            let is_known = Self::without_modifiers(event).is_ok_and(|metric| metric.event.ty != TRACEPOINT);
            let what = format!("-e {name}: behind the event stand u, k and up to three p, not {modifiers}");
            return Err(if is_known { Error::Usage(what) } else { failure });
        };
        Ok(Self { name: name.to_owned(), excluded, precise, ..Self::without_modifiers(event)? })
    }

    /// Calls of a function.
    fn call(name: &str, uprobe: Uprobe) -> Result<Self, Error> {
        let ty = pmu::unit("uprobe").ok_or_else(|| Error::System("this kernel has no uprobes".to_owned()))?;
        let mut metric = Self::new(name, ty, 0);
        metric.event.config2 = uprobe.offset;
        metric.quantity = uprobe.argument.map(SampleValue::Argument);
        metric.uprobe = Some(uprobe);
        Ok(metric)
    }

    /// The events of several lists, each once; with a field that weighs them, where there is one.
    ///
    /// # Errors
    /// Those of [`EventSpec::named`] and of the field, [`Error::Usage`].
    pub fn lists(lists: &[String], field: Option<&str>) -> Result<Vec<Self>, Error> {
        let lists = lists.iter().map(|events| Self::list(events));
        let mut metrics = lists.collect::<Result<Vec<_>, _>>()?.concat();
        if let Some(field) = field {
            let [metric] = &mut metrics[..] else {
                let what = "--weight-field is for one tracepoint: -e SUBSYSTEM:EVENT";
                return Err(Error::Usage(what.to_owned()));
            };
            metric.quantity = Some(SampleValue::field(metric.name(), field)?);
        }
        for (number, metric) in metrics.iter().enumerate() {
            if metrics[..number].iter().any(|other| other.name() == metric.name()) {
                return Err(Error::Usage(format!("-e {} stands there twice", metric.name())));
            }
        }
        Ok(metrics)
    }

    /// Several events, with commas between them.
    fn list(text: &str) -> Result<Vec<Self>, Error> {
        let (mut events, mut start, mut inside) = (Vec::new(), 0, false);
        for (at, letter) in text.char_indices() {
            // A comma between slashes belongs to the event, but for those of a path.
            inside ^= letter == '/' && !text[start..].starts_with("uprobe:");
            if letter == ',' && !inside {
                events.push(&text[start..at]);
                start = at + 1;
            }
        }
        events.push(&text[start..]);
        events.into_iter().map(Self::named).collect()
    }

    fn without_modifiers(name: &str) -> Result<Self, Error> {
        let known = |names: &[(&str, &str, u64)]| {
            names.iter().find(|(known, other, _)| *known == name || (*other == name && !name.is_empty())).map(|k| k.2)
        };
        if let Some(config) = known(&SOFTWARE_NAMES) {
            return Ok(Self::new(name, SOFTWARE, config));
        }
        if let Some(config) = known(&HARDWARE_NAMES) {
            return Ok(Self::new(name, HARDWARE, config));
        }
        if let Some(config) = cache(name) {
            return Ok(Self::new(name, CACHE, config));
        }
        if let Some(config) =
            name.strip_prefix('r').filter(|hex| hex.len() >= 2).and_then(|hex| parse_hex(hex.as_bytes()))
        {
            return Ok(Self::new(name, RAW, config));
        }
        if let Some((pmu, terms)) = name.strip_suffix('/').and_then(|name| name.split_once('/')) {
            let event = pmu::event(Path::new(pmu::DEVICES), pmu, terms)?;
            return Ok(Self { event, ..Self::new(name, 0, 0) });
        }
        if let Some((subsystem, event)) = name.split_once(':') {
            return Ok(Self::new(name, TRACEPOINT, pmu::tracepoint(subsystem, event)?));
        }
        let known = SOFTWARE_NAMES.iter().chain(&HARDWARE_NAMES).map(|known| known.0).collect::<Vec<_>>().join(", ");
        let others = "L1-dcache-load-misses and the like, rNNN, cpu/event=0xNN,umask=0xNN/, sched:sched_switch";
        Err(Error::Usage(format!("no event is called {name}; known are {known}, {others}")))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is calls of a function.
    pub fn is_call(&self) -> bool {
        self.uprobe.is_some()
    }

    /// Whether it takes the CPU's own counters.
    pub fn is_hardware(&self) -> bool {
        !matches!(self.event.ty, SOFTWARE | TRACEPOINT) && self.uprobe.is_none()
    }

    /// Whether each one is something by itself, as a fault, a switch or a call is, and is not a measure of time.
    pub fn is_discrete(&self) -> bool {
        match self.event.ty {
            TRACEPOINT => true,
            SOFTWARE => self.event.config > 1,
            _ => self.uprobe.is_some(),
        }
    }
}

impl TryFrom<&EventSpec> for Event {
    type Error = std::io::Error;

    fn try_from(metric: &EventSpec) -> Result<Self, Self::Error> {
        let mut event = metric.event.clone();
        if let Some(uprobe) = &metric.uprobe {
            // The kernel reads the path while the event is opened, which the metric outlives.
            event.config1 = uprobe.path.as_ptr() as u64;
        }
        (&event).try_into()
    }
}

/// Reads `L1-dcache-load-misses`: cache, access, result.
fn cache(name: &str) -> Option<u64> {
    let (index, rest) =
        CACHES.iter().enumerate().find_map(|(index, cache)| Some((index, name.strip_prefix(cache)?)))?;
    let (_, access) = ACCESSES.iter().find(|(access, _)| rest.strip_prefix('-') == Some(access))?;
    Some(index as u64 | (access / 2) << 8 | (access % 2) << 16)
}

/// Reads `u`, `k` and up to three `p`: what is named alone is counted.
fn read_modifiers(letters: &str) -> Option<(Excluded, u8)> {
    let precise = letters.matches('p').count();
    if letters.is_empty() || precise > 3 || !letters.chars().all(|letter| "ukp".contains(letter)) {
        return None;
    }
    let (user, kernel) = (letters.contains('u'), letters.contains('k'));
    let excluded = Excluded { user: kernel && !user, kernel: user && !kernel };
    Some((excluded, precise as u8))
}

#[cfg(test)]
mod tests {
    use super::{CACHE, EventSpec, Excluded, HARDWARE, RAW, SOFTWARE};

    fn config(name: &str) -> (u32, u64) {
        let event = EventSpec::named(name).unwrap().event;
        (event.ty, event.config)
    }

    #[test]
    fn events_are_known_by_perfs_names() {
        assert_eq!(config("faults"), (SOFTWARE, 2));
        assert_eq!(config("cpu-cycles"), (HARDWARE, 0));
        assert_eq!(config("L1-dcache-load-misses"), (CACHE, 1 << 16));
        assert_eq!(config("dTLB-stores"), (CACHE, 3 | 1 << 8));
        assert_eq!(config("LLC-prefetches"), (CACHE, 2 | 2 << 8));
        assert_eq!(config("branch-loads"), (CACHE, 5));
        assert_eq!(config("branch-misses"), (HARDWARE, 5));
        assert_eq!(config("r1a8"), (RAW, 0x1a8));
        for unknown in ["", "r", "rx1", "cykles", "cycles:x", "cycles:pppp", "cycles:", "L1-dcache-lords", "r+1"] {
            assert!(EventSpec::named(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn modifiers_say_where_and_how_precisely() {
        let of = |name| EventSpec::named(name).map(|metric| (metric.excluded, metric.precise)).unwrap();
        let (user, kernel) = (Excluded { user: false, kernel: true }, Excluded { user: true, kernel: false });
        assert_eq!(of("cycles"), (Excluded::default(), 0));
        assert_eq!(of("cycles:u"), (user, 0));
        assert_eq!(of("cycles:kpp"), (kernel, 2));
        assert_eq!(of("cycles:uk"), (Excluded::default(), 0));
        assert_eq!(EventSpec::named("cycles:u").unwrap().name(), "cycles:u");
    }

    #[test]
    fn events_are_listed_with_commas() {
        let names = |text| EventSpec::list(text).map(|all| all.iter().map(|m| m.name().to_owned()).collect::<Vec<_>>());
        assert_eq!(names("cycles,faults:u").unwrap(), ["cycles", "faults:u"]);
        assert!(names("cycles,,faults").is_err());
    }
}
