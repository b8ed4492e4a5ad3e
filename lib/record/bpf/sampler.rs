//! Loads the BPF program, and attaches it to counters.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

use aya::programs::{Program, RawTracePoint};
use aya::{Btf, Ebpf, EbpfLoader};
use rustc_hash::{FxHashMap, FxHashSet};

use super::errors::{BoxError, Refusal, repeat_if_interrupted};
use super::followed::{Followed, Scope};
use super::maps::{map_file, take_map};
use super::pairs::{PairVariables, Pairs};
use super::sleepers;
use super::switches::SwitchFunctions;
use super::tables::Tables;
use crate::record::event_record::EventRecord;
use crate::record::events::program_kind::ProgramKind;
use crate::record::pairs::PairSums;
use crate::record::pairs::spec::PairSpec;
use crate::record::target::Target;
use crate::record::{cpus, sys};

/// The object that `scripts/build-bpf` makes from `sampler.bpf.c`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("sampler.bpf.o");

/// The functions that follow the target's processes, each with the tracepoint that it is attached to.
const FOLLOWERS: [(&str, &str); 4] = [
    ("on_fork", "sched_process_fork"),
    ("on_exec", "sched_process_exec"),
    ("on_exit", "sched_process_exit"),
    ("on_free", "sched_process_free"),
];

/// The function that takes the stacks of wakers, and its tracepoint.
const WAKERS: (&str, &str) = ("on_waking", "sched_waking");

/// The largest numbers of threads that are blocked, and of pairs that have begun.
const MAX_BLOCKED: u32 = 65_536;

/// The number of entries for threads that left their CPUs without a stack.
const ABSENCES: u32 = 65_536;

const MAX_OPEN_PAIRS: u32 = 65_536;

/// A loaded BPF program that takes user stacks.
pub struct StackSampler {
    program: Ebpf,
    /// The functions that take stacks.
    functions: FxHashMap<ProgramKind, OwnedFd>,
    /// The processes or threads of the target.
    pub followed: Followed,
    /// The map of the counter of each CPU whose ring gets the stacks.
    outputs: OwnedFd,
    /// The same of the counters that wake the recorder.
    waking_outputs: OwnedFd,
    /// The tables by which the program walks.
    pub tables: Tables,
    /// True if the stacks of wakers are taken.
    with_wakers: bool,
    /// True if the program tells which threads sleep.
    finds_sleepers: bool,
    /// Takes the stacks of some switches where there are many, if that is wanted.
    switches: Option<SwitchFunctions>,
    /// The pairs of events that are measured, if any.
    pairs: Option<Pairs>,
}

/// The purposes for which the program takes stacks.
#[derive(Clone, Debug, Default)]
pub struct StackUses<'a> {
    /// The kinds of functions that take the stacks of samples.
    pub kinds: FxHashSet<ProgramKind>,
    /// Where switches are many, the stack of a random one in this number is taken; 0 if all are taken otherwise.
    pub switch_period: u64,
    /// True if the stacks of those that wake threads of the target are taken.
    pub with_wakers: bool,
    /// The kernel's code that interrupts enter; empty if it is not known.
    pub interrupts: Range<u64>,
    /// True if the stacks of threads that already sleep are taken.
    pub with_sleepers: bool,
    /// True if samples that fall to the time of taking stacks are left out.
    pub leaves_out: bool,
    /// True if the contexts that threads publish are read.
    pub with_context: bool,
    /// True if the tasks that threads run are read.
    pub with_task: bool,
    /// The pair of events that is measured, if any.
    pub pair: Option<&'a PairSpec>,
}

impl std::fmt::Debug for StackSampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StackSampler").field("tables", &self.tables).finish_non_exhaustive()
    }
}

impl StackSampler {
    /// Loads the program for a target, with the functions for these uses.
    ///
    /// # Errors
    /// The reason in words if the kernel refuses it.
    pub fn open(target: &Target, uses: &StackUses<'_>) -> Result<Self, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err(format!("the BPF program does not support {}", std::env::consts::ARCH));
        }
        Refusal::check_pid_namespace().map_err(|refusal| refusal.to_string())?;
        repeat_if_interrupted(|| Self::load(target, uses)).map_err(|error| Refusal::from_error(&*error).to_string())
    }

    fn load(target: &Target, uses: &StackUses<'_>) -> Result<Self, BoxError> {
        let StackUses { ref kinds, switch_period, with_wakers, with_sleepers, leaves_out, pair, .. } = *uses;
        let StackUses { with_context, with_task, .. } = *uses;
        let scope = Scope::new(target);
        let scope_word = scope as u64;
        let cpus = cpus::online_cpus().into_iter().max().unwrap_or(0) + 1;
        let cpus_word = u64::from(cpus);
        // These are not kept from interrupting each other, or being interrupted.
        let runs_in_thread = [ProgramKind::Probe, ProgramKind::Call].iter().any(|kind| kinds.contains(kind));
        let is_nested = with_wakers || switch_period > 0 || pair.is_some() || runs_in_thread;
        let [with_wakers_word, with_context_word, with_task_word, leaves_out_word] =
            [with_wakers, with_context, with_task, leaves_out].map(u64::from);
        let own_pid = u64::from(std::process::id());
        // The ID of a cgroup is the number of its directory's inode.
        let cgroup = if let Target::Cgroup(directory) = target { directory.metadata()?.ino() } else { 0 };
        let interrupt_size = uses.interrupts.end - uses.interrupts.start;
        let variables = pair.map(PairVariables::new);
        // The loader reads the kernel's types itself, and does not give them away.
        let types = if with_sleepers { Btf::from_sys_fs().ok() } else { None };
        let mut loader = EbpfLoader::new();
        loader
            .override_global("scope", &scope_word, true)
            .override_global("switch_period", &switch_period, true)
            .override_global("recorded_cgroup", &cgroup, true)
            .override_global("with_wakers", &with_wakers_word, true)
            .override_global("with_context", &with_context_word, true)
            .override_global("with_task", &with_task_word, true)
            .override_global("leaves_out", &leaves_out_word, true)
            .override_global("interrupt_start", &uses.interrupts.start, true)
            .override_global("interrupt_size", &interrupt_size, true)
            .override_global("own", &own_pid, true)
            .override_global("cpus", &cpus_word, true)
            .map_max_entries("scratches", if is_nested { 2 * cpus } else { cpus })
            .map_max_entries("outputs", cpus)
            .map_max_entries("waking_outputs", cpus)
            // The kernel allocates all entries at once.
            .map_max_entries("blocked", if with_wakers { MAX_BLOCKED } else { 1 })
            .map_max_entries("absences", if switch_period > 0 { ABSENCES } else { 1 })
            .map_max_entries("pair_starts", if pair.is_some() { MAX_OPEN_PAIRS } else { 1 });
        if let Some(variables) = &variables {
            variables.set(&mut loader);
        }
        let mut program = loader.load(OBJECT)?;
        // Before the maps are taken out, to whose files the functions refer.
        let mut functions = FxHashMap::default();
        for kind in kinds {
            functions.insert(*kind, load_function(&mut program, *kind)?);
        }
        for (name, _) in FOLLOWERS.into_iter().chain(with_wakers.then_some(WAKERS)) {
            follower(&mut program, name)?.load()?;
        }
        // Without it, nothing is known of these threads.
        let finds_sleepers = types.is_some_and(|types| sleepers::load(&mut program, &types).is_ok());
        if let Some(spec) = pair {
            Pairs::load(&mut program, spec)?;
        }
        let finds_long_blocks = (switch_period > 0).then(|| SwitchFunctions::load(&mut program)).transpose()?;
        let followed = Followed::open(&mut program, scope, target)?;
        let outputs = map_file(&take_map(&mut program, "outputs")?)?;
        let waking_outputs = map_file(&take_map(&mut program, "waking_outputs")?)?;
        let tables = Tables::open(&mut program, with_context)?;
        let pairs = pair.map(|spec| Pairs::open(&mut program, spec)).transpose()?;
        let switches = finds_long_blocks.map(|found| SwitchFunctions::open(&mut program, found)).transpose()?;
        Ok(Self {
            program,
            functions,
            followed,
            outputs,
            waking_outputs,
            tables,
            with_wakers,
            finds_sleepers,
            switches,
            pairs,
        })
    }

    /// Makes the program follow the target's processes: what they fork is recorded too. Returns those that run already.
    ///
    /// # Errors
    /// The reason in words if the kernel refuses it.
    pub fn start(&mut self, target: &Target) -> Result<Vec<u32>, String> {
        self.follow_all(target).map_err(|error| Refusal::from_error(&*error).to_string())
    }

    /// Makes the program take the stacks of some switches from now on, or of none, if it can.
    ///
    /// # Errors
    /// The reason in words if the system call fails.
    pub fn take_some_switches(&mut self, are_many: bool) -> Result<(), String> {
        let Some(switches) = &mut self.switches else { return Ok(()) };
        switches.set_many(are_many).map_err(|error| error.to_string())
    }

    /// True if the program takes the stacks of long blocks where it takes those of some switches.
    pub fn finds_long_blocks(&self) -> bool {
        self.switches.as_ref().is_some_and(|switches| switches.finds_long_blocks)
    }

    /// Makes the program measure the pairs of events, if there are some.
    ///
    /// # Errors
    /// The reason in words if the kernel refuses it.
    pub fn start_pairs(&mut self) -> Result<(), String> {
        let Some(pairs) = &mut self.pairs else { return Ok(()) };
        pairs.attach(&mut self.program).map_err(|error| Refusal::from_error(&*error).to_string())
    }

    /// Stops measuring pairs, and returns how many ended on these CPUs. `None` for all.
    pub fn finish_pairs(&mut self, cpus: Option<&[u32]>) -> Option<PairSums> {
        Some(self.pairs.as_mut()?.finish(&mut self.program, cpus))
    }

    /// Returns a record of each thread of the target that is asleep. `None` if it cannot be known.
    pub fn find_sleepers(&mut self) -> Option<Vec<EventRecord>> {
        if !self.finds_sleepers {
            return None;
        }
        sleepers::read(&mut self.program).ok()
    }

    fn follow_all(&mut self, target: &Target) -> Result<Vec<u32>, BoxError> {
        if self.with_wakers {
            self.follow(WAKERS.0, WAKERS.1)?;
        }
        if let Some(switches) = &self.switches {
            switches.attach(&mut self.program)?;
        }
        FOLLOWERS.iter().try_for_each(|(name, tracepoint)| self.follow(name, tracepoint))?;
        if self.followed.scope == Scope::Everybody {
            return Ok(Vec::new());
        }
        let mut attached = Vec::new();
        target.attach_to_processes(|pid| {
            attached.push(pid);
            self.followed.add(pid)
        })?;
        Ok(attached)
    }

    fn follow(&mut self, name: &str, tracepoint: &str) -> Result<(), BoxError> {
        follower(&mut self.program, name)?.attach(tracepoint)?;
        Ok(())
    }

    /// Makes the program take the stacks of the samples of a CPU's counter. It does so until the file that is returned is closed,
    /// or the counter if none is.
    ///
    /// # Errors
    /// Errors of the system call.
    pub fn attach(&self, counter: &File, kind: ProgramKind, cpu: u32) -> io::Result<Option<OwnedFd>> {
        let function = self.functions.get(&kind).ok_or(io::ErrorKind::InvalidInput)?.as_fd();
        match kind {
            ProgramKind::Sample | ProgramKind::Clock => sys::set_program(counter, function).map(|()| None),
            // Another counter of the tracepoint may have it already.
            ProgramKind::Tracepoint | ProgramKind::Probe => match sys::set_program(counter, function) {
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(None),
                result => result.map(|()| None),
            },
            ProgramKind::Call => sys::link_program(counter, function, u64::from(cpu) + 1).map(Some),
        }
    }

    /// Makes the program write the stacks of a CPU into the rings of two counters. The second one wakes the recorder, and gets the
    /// stacks for which the recorder has to act.
    ///
    /// # Errors
    /// Errors of the system call.
    pub fn set_outputs(&self, cpu: u32, plain: &File, waking: &File) -> io::Result<()> {
        sys::update_file_map(self.outputs.as_fd(), cpu, plain.as_raw_fd())?;
        sys::update_file_map(self.waking_outputs.as_fd(), cpu, waking.as_raw_fd())
    }
}

/// Loads the function of a kind that takes stacks.
fn load_function(program: &mut Ebpf, kind: ProgramKind) -> Result<OwnedFd, BoxError> {
    let name = match kind {
        ProgramKind::Sample => "on_sample",
        ProgramKind::Clock => "on_clock",
        ProgramKind::Tracepoint => "on_tracepoint",
        ProgramKind::Probe | ProgramKind::Call => "on_probe",
    };
    let function = program.program_mut(name).ok_or_else(|| format!("the BPF object has no program {name}"))?;
    match function {
        Program::PerfEvent(function) => function.load()?,
        Program::TracePoint(function) => function.load()?,
        // Two kinds have the same function.
        Program::KProbe(function) if function.fd().is_ok() => {}
        Program::KProbe(function) => function.load()?,
        _ => return Err(format!("{name} is a BPF program of another type").into()),
    }
    Ok(function.fd()?.as_fd().try_clone_to_owned()?)
}

/// Returns a function of the program that is attached to a tracepoint, by its name.
fn follower<'a>(program: &'a mut Ebpf, name: &str) -> Result<&'a mut RawTracePoint, BoxError> {
    Ok(program.program_mut(name).ok_or_else(|| format!("the BPF object has no program {name}"))?.try_into()?)
}
