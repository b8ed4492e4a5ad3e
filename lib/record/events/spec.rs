//! Parses event names as perf spells them: `cycles:u`, `page-faults`, `sched:sched_switch`, `cpu/event=0x3c/`.

use std::ffi::CString;
use std::path::Path;

use perf_event_open::event::Event;
use perf_event_open::event::dp::DynamicPmu;

use super::pmu;
use super::program_kind::ProgramKind;
use super::uprobe::{self, Uprobe};
use super::value::SampleValue;
use crate::Error;
use crate::bytes::parse_hex;

/// An event to count, and where to count it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    name: String,
    config: DynamicPmu,
    /// Contexts in which the event is not counted.
    pub excluded: Excluded,
    /// The value to sum up instead of counting samples.
    pub value: Option<SampleValue>,
    /// The expression that the fields of a tracepoint must fulfil, if there is one.
    pub filter: Option<CString>,
    /// The probed function, if the event is its calls.
    uprobe: Option<Uprobe>,
    /// True if the event is a tracepoint that was made for a probe, as `perf probe` defines them.
    is_probe: bool,
    /// The required precision of a sample's address, 0 to 3: `perf_event_attr::precise_ip`.
    pub precise: u8,
    /// True if a BPF program takes the stacks of the event, where one does, without counters.
    pub is_taken_by_program: bool,
}

/// Contexts in which an event is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excluded {
    /// True if it is not counted in user space.
    pub user: bool,
    /// True if it is not counted in the kernel.
    pub kernel: bool,
}

/// Event types: `enum perf_type_id`.
const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const TYPE_CACHE: u32 = 3;
const TYPE_RAW: u32 = 4;

/// Names, aliases (empty if none) and numbers of software events: `enum perf_sw_ids`.
const SOFTWARE_EVENTS: [(&str, &str, u64); 10] = [
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
/// Names, aliases and numbers of hardware events: `enum perf_hw_id`.
const HARDWARE_EVENTS: [(&str, &str, u64); 10] = [
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
/// Caches in the order of `enum perf_hw_cache_id`.
const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
/// Accesses of a cache: the operation (`enum perf_hw_cache_op_id`) times two, plus one for misses.
const ACCESSES: [(&str, u64); 6] =
    [("loads", 0), ("load-misses", 1), ("stores", 2), ("store-misses", 3), ("prefetches", 4), ("prefetch-misses", 5)];

impl EventSpec {
    /// Returns the CPU cycles event, the default if the machine counts it.
    pub fn cycles() -> Self {
        Self::new("cycles", TYPE_HARDWARE, 0)
    }

    /// Returns the kernel's CPU clock event, the default if the machine has no counters, as most virtual machines.
    pub fn cpu_clock() -> Self {
        Self::new("cpu-clock", TYPE_SOFTWARE, 0)
    }

    /// Returns the event of a thread that leaves its CPU.
    pub fn context_switches() -> Self {
        Self::new("context-switches", TYPE_SOFTWARE, 3)
    }

    /// Returns the event that never happens, `PERF_COUNT_SW_DUMMY`.
    pub(in crate::record) fn dummy() -> Self {
        Self::new("dummy", TYPE_SOFTWARE, 9)
    }

    /// Returns the event of what BPF programs write, `PERF_COUNT_SW_BPF_OUTPUT`.
    pub(in crate::record) fn bpf_output() -> Self {
        Self::new("bpf-output", TYPE_SOFTWARE, 10)
    }

    /// True if the kernel itself counts the event, not the CPU.
    pub(in crate::record) fn is_software(&self) -> bool {
        self.config.ty == TYPE_SOFTWARE
    }

    /// True if the CPU counts the event.
    pub(in crate::record) fn is_hardware(&self) -> bool {
        !self.is_software() && !self.is_tracepoint() && !self.is_uprobe()
    }

    /// True if the event is one of the kernel's clocks, which count nanoseconds.
    pub(in crate::record) fn is_clock(&self) -> bool {
        self.config.ty == TYPE_SOFTWARE && self.config.config <= 1
    }

    /// Returns the number of a software event whose samples the kernel shares among all counters of the same kind.
    pub(in crate::record) fn shared_kind(&self) -> Option<u64> {
        (self.config.ty == TYPE_SOFTWARE && !self.is_clock()).then_some(self.config.config)
    }

    /// True if the event is a tracepoint.
    pub(in crate::record) fn is_tracepoint(&self) -> bool {
        self.config.ty == TYPE_TRACEPOINT
    }

    /// Returns the kind of BPF program that the kernel runs for the event.
    pub(in crate::record) fn program_kind(&self) -> ProgramKind {
        match (self.is_uprobe(), self.is_tracepoint()) {
            (true, _) => ProgramKind::Call,
            (false, true) if self.is_probe => ProgramKind::Probe,
            (false, true) => ProgramKind::Tracepoint,
            (false, false) if self.is_clock() => ProgramKind::Clock,
            (false, false) => ProgramKind::Sample,
        }
    }

    fn new(name: &str, ty: u32, config: u64) -> Self {
        let config = DynamicPmu { ty, config, config1: 0, config2: 0, config3: 0 };
        let (name, excluded) = (name.to_owned(), Excluded::default());
        let (value, filter, uprobe, precise, is_probe) = (None, None, None, 0, false);
        Self { name, config, excluded, value, filter, uprobe, is_probe, precise, is_taken_by_program: false }
    }

    /// Parses the name of an event. Modifiers after a colon say where it is counted and how precisely, as in
    /// `cycles:up`.
    ///
    /// # Errors
    /// [`Error::Usage`] if the name is malformed or unknown, [`Error::System`] if the kernel or machine lacks the
    /// event, [`Error::Invalid`] if its PMU or program does not have what the name says.
    pub fn parse(name: &str) -> Result<Self, Error> {
        if name.is_empty() {
            return Err(Error::Usage("-e: an event name is empty".to_owned()));
        }
        if let Some(probe) = name.strip_prefix("uprobe:") {
            return Self::from_uprobe(name, Uprobe::parse(probe)?);
        }
        let error = match Self::parse_without_modifiers(name) {
            Ok(spec) => return Ok(spec),
            Err(error) => error,
        };
        // Modifiers after the last slash of a PMU's event need no colon.
        let after_slash = name.rfind('/').filter(|slash| slash + 1 < name.len()).map(|slash| slash + 1);
        let (event, modifiers) = match (name.rsplit_once(':'), after_slash) {
            (_, Some(end)) => name.split_at(end),
            (Some(parts), None) => parts,
            (None, None) => return Err(error),
        };
        let Some((excluded, precise)) = parse_modifiers(modifiers) else {
            let is_known = Self::parse_without_modifiers(event).is_ok_and(|spec| spec.config.ty != TYPE_TRACEPOINT);
            let what = format!("-e {name}: unknown modifier {modifiers}; allowed are u, k and up to three p");
            return Err(if is_known { Error::Usage(what) } else { error });
        };
        Ok(Self { name: name.to_owned(), excluded, precise, ..Self::parse_without_modifiers(event)? })
    }

    /// Creates the event of calls of a function.
    fn from_uprobe(name: &str, uprobe: Uprobe) -> Result<Self, Error> {
        let ty = pmu::event_type("uprobe")
            .ok_or_else(|| Error::System(format!("-e {name}: this kernel does not support uprobes")))?;
        let mut spec = Self::new(name, ty, 0);
        spec.config.config2 = uprobe.offset;
        spec.value = uprobe.argument.map(SampleValue::Argument);
        spec.uprobe = Some(uprobe);
        Ok(spec)
    }

    /// Parses several comma-separated lists of events. `weight_field` is the tracepoint field to sum up, and `filter` the
    /// expression that selects records of the tracepoint.
    ///
    /// # Errors
    /// Those of [`EventSpec::parse`] and [`SampleValue::lookup_field`]; [`Error::Usage`] if an event is given twice, or
    /// a field for other than one event.
    pub fn parse_lists(lists: &[String], weight_field: Option<&str>, filter: Option<&str>) -> Result<Vec<Self>, Error> {
        let lists = lists.iter().map(|list| Self::parse_list(list));
        let mut specs = lists.collect::<Result<Vec<_>, _>>()?.concat();
        if let Some(field) = weight_field {
            let [spec] = &mut specs[..] else {
                let what = format!("--weight-field {field} needs exactly one event, a tracepoint: -e SUBSYSTEM:EVENT");
                return Err(Error::Usage(what));
            };
            spec.value = Some(SampleValue::lookup_field(spec.name(), field)?);
        }
        if let Some(filter) = filter {
            let [spec] = &mut specs[..] else {
                let what = format!("--filter {filter} needs exactly one event, a tracepoint: -e SUBSYSTEM:EVENT");
                return Err(Error::Usage(what));
            };
            if !spec.is_tracepoint() {
                return Err(Error::Usage(format!("--filter {filter}: {} is not a tracepoint", spec.name())));
            }
            let text =
                CString::new(filter).map_err(|_| Error::Usage(format!("--filter {filter}: contains a zero byte")))?;
            spec.filter = Some(text);
        }
        for (index, spec) in specs.iter().enumerate() {
            if specs[..index].iter().any(|other| other.name() == spec.name()) {
                return Err(Error::Usage(format!("-e {}: given more than once", spec.name())));
            }
        }
        Ok(specs)
    }

    fn parse_list(list: &str) -> Result<Vec<Self>, Error> {
        let (mut specs, mut rest) = (Vec::new(), Some(list));
        while let Some(list) = rest {
            let (name, others) = if uprobe::is_function(list) { uprobe::split_list(list) } else { split_list(list) };
            specs.push(Self::parse(name)?);
            rest = others;
        }
        Ok(specs)
    }

    fn parse_without_modifiers(name: &str) -> Result<Self, Error> {
        if let Some(config) = find_number(&SOFTWARE_EVENTS, name) {
            return Ok(Self::new(name, TYPE_SOFTWARE, config));
        }
        if let Some(config) = find_number(&HARDWARE_EVENTS, name) {
            return Ok(Self::new(name, TYPE_HARDWARE, config));
        }
        if let Some(config) = parse_cache_event(name) {
            return Ok(Self::new(name, TYPE_CACHE, config));
        }
        if let Some(config) =
            name.strip_prefix('r').filter(|hex| hex.len() >= 2).and_then(|hex| parse_hex(hex.as_bytes()))
        {
            return Ok(Self::new(name, TYPE_RAW, config));
        }
        if let Some((pmu, terms)) = name.strip_suffix('/').and_then(|name| name.split_once('/')) {
            let config = pmu::parse_event(Path::new(pmu::DEVICES), pmu, terms)?;
            return Ok(Self { config, ..Self::new(name, 0, 0) });
        }
        if let Some((subsystem, event)) = name.split_once(':') {
            let is_probe = pmu::is_probe(subsystem, event)?;
            return Ok(Self { is_probe, ..Self::new(name, TYPE_TRACEPOINT, pmu::tracepoint_id(subsystem, event)?) });
        }
        let known = SOFTWARE_EVENTS.iter().chain(&HARDWARE_EVENTS).map(|known| known.0).collect::<Vec<_>>().join(", ");
        let forms = "L1-dcache-load-misses and similar, rNNN, cpu/event=0xNN,umask=0xNN/, sched:sched_switch";
        Err(Error::Usage(format!("-e {name}: no such event; expected one of {known}, {forms}")))
    }

    /// Returns the names of the fields of a tracepoint.
    pub(in crate::record) fn tracepoint_fields(&self) -> Vec<String> {
        let parts = self.name.split_once(':');
        let format = parts.and_then(|(subsystem, event)| pmu::read_tracepoint_file(subsystem, event, "format").ok());
        let declarations = format.iter().flat_map(|format| format.lines());
        let declarations = declarations.filter_map(|line| line.trim().strip_prefix("field:")?.split(';').next());
        declarations
            .filter_map(|declaration| Some(declaration.rsplit([' ', '*']).next()?.split('[').next()?.to_owned()))
            .collect()
    }

    /// Returns the event's name, as the user gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if the event is a call of a function.
    pub fn is_uprobe(&self) -> bool {
        self.uprobe.is_some()
    }

    /// True if each occurrence matters by itself, such as a page fault, a switch or a call. False for measures of time.
    pub fn is_discrete(&self) -> bool {
        match self.config.ty {
            TYPE_TRACEPOINT => true,
            TYPE_SOFTWARE => self.config.config > 1,
            _ => self.uprobe.is_some(),
        }
    }
}

impl TryFrom<&EventSpec> for Event {
    type Error = std::io::Error;

    fn try_from(spec: &EventSpec) -> Result<Self, Self::Error> {
        let mut config = spec.config.clone();
        if let Some(uprobe) = &spec.uprobe {
            // The kernel reads the path while the event is opened, and `spec` outlives that.
            config.config1 = uprobe.path.as_ptr() as u64;
        }
        (&config).try_into()
    }
}

/// Finds the number of an event by its name or alias.
/// Splits a list of events after the first one. A comma between slashes separates the terms of a PMU's event.
fn split_list(list: &str) -> (&str, Option<&str>) {
    let mut in_terms = false;
    let end = list.find(|character| {
        in_terms ^= character == '/';
        character == ',' && !in_terms
    });
    end.map_or((list, None), |end| (&list[..end], Some(&list[end + 1..])))
}

fn find_number(events: &[(&str, &str, u64)], name: &str) -> Option<u64> {
    let mut named = events.iter().filter(|(known, alias, _)| *known == name || (*alias == name && !name.is_empty()));
    named.next().map(|(.., number)| *number)
}

/// Parses the name of a cache event, such as `L1-dcache-load-misses`, into cache, operation and result.
fn parse_cache_event(name: &str) -> Option<u64> {
    let (index, rest) =
        CACHES.iter().enumerate().find_map(|(index, cache)| Some((index, name.strip_prefix(cache)?)))?;
    let (_, access) = ACCESSES.iter().find(|(access, _)| rest.strip_prefix('-') == Some(access))?;
    Some(index as u64 | (access / 2) << 8 | (access % 2) << 16)
}

/// Parses the modifiers `u`, `k` and up to three `p`. With `u` or `k` alone, the event is only counted there.
fn parse_modifiers(letters: &str) -> Option<(Excluded, u8)> {
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
    use super::{EventSpec, Excluded, TYPE_CACHE, TYPE_HARDWARE, TYPE_RAW, TYPE_SOFTWARE};

    fn type_and_config(name: &str) -> (u32, u64) {
        let config = EventSpec::parse(name).unwrap().config;
        (config.ty, config.config)
    }

    #[test]
    fn parses_names_as_perf_spells_them() {
        assert_eq!(type_and_config("faults"), (TYPE_SOFTWARE, 2));
        assert_eq!(type_and_config("cpu-cycles"), (TYPE_HARDWARE, 0));
        assert_eq!(type_and_config("L1-dcache-load-misses"), (TYPE_CACHE, 1 << 16));
        assert_eq!(type_and_config("dTLB-stores"), (TYPE_CACHE, 3 | 1 << 8));
        assert_eq!(type_and_config("LLC-prefetches"), (TYPE_CACHE, 2 | 2 << 8));
        assert_eq!(type_and_config("branch-loads"), (TYPE_CACHE, 5));
        assert_eq!(type_and_config("branch-misses"), (TYPE_HARDWARE, 5));
        assert_eq!(type_and_config("r1a8"), (TYPE_RAW, 0x1a8));
        for unknown in ["", "r", "rx1", "cykles", "cycles:x", "cycles:pppp", "cycles:", "L1-dcache-lords", "r+1"] {
            assert!(EventSpec::parse(unknown).is_err(), "{unknown}");
        }
    }

    fn modifiers(name: &str) -> (Excluded, u8) {
        EventSpec::parse(name).map(|spec| (spec.excluded, spec.precise)).unwrap()
    }

    #[test]
    fn parses_modifiers() {
        let (user, kernel) = (Excluded { user: false, kernel: true }, Excluded { user: true, kernel: false });
        assert_eq!(modifiers("cycles"), (Excluded::default(), 0));
        assert_eq!(modifiers("cycles:u"), (user, 0));
        assert_eq!(modifiers("cycles:kpp"), (kernel, 2));
        assert_eq!(modifiers("cycles:uk"), (Excluded::default(), 0));
        assert_eq!(EventSpec::parse("cycles:u").unwrap().name(), "cycles:u");
    }

    #[test]
    fn parses_comma_separated_lists() {
        let events = EventSpec::parse_list("cycles,faults:u").unwrap();
        assert_eq!(events.iter().map(EventSpec::name).collect::<Vec<_>>(), ["cycles", "faults:u"]);
        assert!(EventSpec::parse_list("cycles,,faults").is_err());
        // Only pairs of events have returns.
        for event in ["uprobe:./a,b", "uretprobe:./a b/c:f<int, char>"] {
            let error = EventSpec::parse_list(&format!("faults,{event}")).unwrap_err().to_string();
            assert!(error.starts_with(&format!("-e {event}: ")), "{error}");
        }
    }
}
