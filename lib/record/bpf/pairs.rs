//! The functions of the BPF program that measure the time between two events.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use aya::maps::{MapData, PerCpuArray};
use aya::programs::uprobe::UProbeScope;
use aya::programs::{TracePoint, UProbe};
use aya::{Ebpf, EbpfLoader};

use super::errors::BoxError;
use super::maps::take_map;
use crate::record::events::uprobe::Uprobe;
use crate::record::pairs::spec::{FieldPosition, PairEvent, PairSpec};
use crate::record::pairs::{BURST, PairSums, SPARSE_EVERY, STACK_SHARE};

/// `struct pair_sums`: pairs and their nanoseconds, those of short pairs, dropped and abandoned pairs, and the program's own
/// counters.
type SumWords = [u64; 11];

/// `struct pair_key`: the thread and two fields.
type KeyWords = [u64; 3];
/// `struct pair_start`: the time, and what was sent of it.
type StartWords = [u64; 3];

/// The pairs of a loaded program.
pub struct Pairs {
    spec: PairSpec,
    sums: PerCpuArray<MapData, SumWords>,
    starts: aya::maps::HashMap<MapData, KeyWords, StartWords>,
    /// True while the functions are attached.
    is_attached: bool,
}

/// The variables of the program that say how events are paired.
pub(super) struct PairVariables([(&'static str, u64); 11]);

/// Encodes the position of a field of the key for the program; 0 if there is no such field.
fn encode_field(event: &PairEvent, index: usize) -> u64 {
    event.fields().get(index).map_or(0, |FieldPosition { offset, size }| (*offset as u64) << 8 | *size as u64)
}

impl PairVariables {
    pub(super) fn new(spec: &PairSpec) -> Self {
        Self([
            ("pair_from_one", encode_field(&spec.from, 0)),
            ("pair_from_two", encode_field(&spec.from, 1)),
            ("pair_to_one", encode_field(&spec.to, 0)),
            ("pair_to_two", encode_field(&spec.to, 1)),
            ("pair_in_thread", u64::from(spec.in_thread)),
            ("pair_in_frame", u64::from(spec.is_call_of_one_function())),
            ("pair_first", u64::from(spec.takes_first_stack)),
            ("pair_every", SPARSE_EVERY),
            ("pair_share", STACK_SHARE),
            ("pair_burst", u64::try_from(BURST.as_nanos()).unwrap_or(u64::MAX)),
            ("pair_over", u64::try_from(spec.over.as_nanos()).unwrap_or(u64::MAX)),
        ])
    }

    /// Sets the variables before the program is loaded.
    pub(super) fn set<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        for (name, value) in &self.0 {
            loader.override_global(name, value, true);
        }
    }
}

impl Pairs {
    /// Loads the functions.
    pub(super) fn load(program: &mut Ebpf, spec: &PairSpec) -> Result<(), BoxError> {
        match (&spec.from, from_function(spec)) {
            (PairEvent::Tracepoint { .. }, name) => tracepoint(program, name)?.load()?,
            (_, name) => uprobe(program, name)?.load()?,
        }
        match (&spec.to, to_function(spec)) {
            (PairEvent::Tracepoint { .. }, name) => tracepoint(program, name)?.load()?,
            (_, name) => uprobe(program, name)?.load()?,
        }
        Ok(())
    }

    /// Takes the maps out of a program whose functions are loaded.
    pub(super) fn open(program: &mut Ebpf, spec: &PairSpec) -> Result<Self, BoxError> {
        Ok(Self {
            spec: spec.clone(),
            sums: take_map(program, "pair_sums")?.try_into()?,
            starts: take_map(program, "pair_starts")?.try_into()?,
            is_attached: false,
        })
    }

    /// Attaches the functions, that of the second event first: no pair that begins is missed.
    pub(super) fn attach(&mut self, program: &mut Ebpf) -> Result<(), BoxError> {
        self.is_attached = true;
        attach(program, to_function(&self.spec), &self.spec.to)?;
        attach(program, from_function(&self.spec), &self.spec.from)
    }

    /// Detaches the functions, and returns what they have counted on these CPUs. `None` for all.
    pub(super) fn finish(&mut self, program: &mut Ebpf, cpus: Option<&[u32]>) -> PairSums {
        if std::mem::take(&mut self.is_attached) {
            for (event, name) in
                [(&self.spec.from, from_function(&self.spec)), (&self.spec.to, to_function(&self.spec))]
            {
                let _ = match event {
                    PairEvent::Tracepoint { .. } => tracepoint(program, name).map(|function| drop(function.unload())),
                    _ => uprobe(program, name).map(|function| drop(function.unload())),
                };
            }
        }
        // The words behind these are the program's own, and add up to nothing.
        let mut sums = [0; 6];
        let by_cpu = self.sums.get(&0, 0);
        for (_, numbers) in
            by_cpu.iter().flat_map(|sums| (0..).zip(sums.iter())).filter(|(cpu, _)| is_recorded(cpu, cpus))
        {
            sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
        let [pairs, nanoseconds, short_pairs, short_nanoseconds, dropped, abandoned] = sums;
        let (mut open, mut unfinished) = (0, abandoned);
        for [_, sent, _] in self.starts.iter().filter_map(Result::ok).map(|(_, start)| start) {
            open += 1;
            unfinished += u64::from(sent > 0);
        }
        PairSums { pairs, nanoseconds, short_pairs, short_nanoseconds, dropped, open, unfinished }
    }
}

/// True if a CPU is one of these, or all are recorded.
fn is_recorded(cpu: &u32, cpus: Option<&[u32]>) -> bool {
    cpus.is_none_or(|cpus| cpus.contains(cpu))
}

fn from_function(spec: &PairSpec) -> &'static str {
    if let PairEvent::Tracepoint { .. } = spec.from { "on_pair_begin" } else { "on_call_begin" }
}

fn to_function(spec: &PairSpec) -> &'static str {
    match spec.to {
        PairEvent::Tracepoint { .. } => "on_pair_end",
        PairEvent::Call(_) => "on_call_end",
        PairEvent::Return(_) => "on_return_end",
    }
}

fn attach(program: &mut Ebpf, name: &str, event: &PairEvent) -> Result<(), BoxError> {
    match event {
        PairEvent::Tracepoint { subsystem, event, .. } => {
            tracepoint(program, name)?.attach(subsystem, event)?;
        }
        PairEvent::Call(Uprobe { path, offset, .. }) | PairEvent::Return(Uprobe { path, offset, .. }) => {
            let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
            uprobe(program, name)?.attach(*offset, path, UProbeScope::AllProcesses)?;
        }
    }
    Ok(())
}

fn tracepoint<'a>(program: &'a mut Ebpf, name: &str) -> Result<&'a mut TracePoint, BoxError> {
    Ok(program.program_mut(name).ok_or_else(|| format!("the BPF object has no program {name}"))?.try_into()?)
}

fn uprobe<'a>(program: &'a mut Ebpf, name: &str) -> Result<&'a mut UProbe, BoxError> {
    Ok(program.program_mut(name).ok_or_else(|| format!("the BPF object has no program {name}"))?.try_into()?)
}
