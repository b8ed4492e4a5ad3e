//! Loads the BPF program, and attaches it to counters.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use aya::maps::{Array, HashMap, MapData};
use aya::programs::{Program, RawTracePoint};
use aya::{Btf, Ebpf, EbpfLoader};
use rustc_hash::{FxHashMap, FxHashSet};

use super::errors::{BoxError, Refusal, repeat_if_interrupted};
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
use crate::record::{cpus, procfs, sys};

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

/// The values of `scope` in the program: whose samples are taken.
const EVERYBODY: u64 = 0;
const PROCESSES: u64 = 1;
const THREADS: u64 = 2;

/// The largest numbers of threads that are blocked, and of pairs that have begun.
const MAX_BLOCKED: u32 = 65_536;

/// The number of entries for threads that left their CPUs without a stack.
const ABSENCES: u32 = 65_536;

const MAX_OPEN_PAIRS: u32 = 65_536;

/// `struct target`: a task, and whether it runs its program yet.
type TargetWords = [u64; 2];
const HELD: u64 = 0;
const WANTED: u64 = 1;

/// Most readings of the CPU time at the end: the program adds the time of a process when the kernel frees it, a little after
/// its exit.
const MAX_READINGS: u32 = 20;
const READING_INTERVAL: Duration = Duration::from_millis(5);

/// A loaded BPF program that takes user stacks.
pub struct StackSampler {
    program: Ebpf,
    /// The functions that take stacks.
    functions: FxHashMap<ProgramKind, OwnedFd>,
    /// The processes or threads of the target that are not gone.
    targets: HashMap<MapData, u32, TargetWords>,
    /// The map of the counter of each CPU whose ring gets the stacks.
    outputs: OwnedFd,
    /// The same of the counters that wake the recorder.
    waking_outputs: OwnedFd,
    /// The tables by which the program walks.
    pub tables: Tables,
    scope: u64,
    /// True if the stacks of wakers are taken.
    with_wakers: bool,
    /// True if the program tells which threads sleep.
    finds_sleepers: bool,
    /// Takes the stacks of some switches where there are many, if that is wanted.
    switches: Option<SwitchFunctions>,
    /// The pairs of events that are measured, if any.
    pairs: Option<Pairs>,
    /// The CPU time of those that are gone, their number, and that of the sleeps of ended threads.
    ended: Array<MapData, [u64; 3]>,
}

/// The CPU time of a target, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct FollowedTime {
    /// The time of all its processes or threads, also of those that have ended.
    pub time: u64,
    /// The upper bound of what `time` lacks, because processes ended while it was read.
    pub lacks_at_most: u64,
    /// The number of processes or threads that have ended, whose time is not known: the kernel has not freed them yet, or the program
    /// has not seen it. Some kernels run no programs while a certain process is on the CPU, which may be one that is interrupted by
    /// the freeing.
    pub unfreed: u64,
    /// The number of those that have ended whose time is known.
    pub ended: u64,
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
        let StackUses { ref kinds, switch_period, with_wakers, with_sleepers, with_context, with_task, pair, .. } =
            *uses;
        let (scope, ids): (u64, &[u32]) = match target {
            Target::Command(pid) => (PROCESSES, std::slice::from_ref(pid)),
            Target::Processes { pids, .. } => (PROCESSES, pids),
            Target::Threads(tids) => (THREADS, tids),
            Target::Cgroup(_) | Target::System => (EVERYBODY, &[]),
        };
        let cpus = cpus::online_cpus().into_iter().max().unwrap_or(0) + 1;
        let cpus_word = u64::from(cpus);
        // These are not kept from interrupting each other, or being interrupted.
        let runs_in_thread = [ProgramKind::Probe, ProgramKind::Call].iter().any(|kind| kinds.contains(kind));
        let is_nested = with_wakers || switch_period > 0 || pair.is_some() || runs_in_thread;
        let [with_wakers_word, with_context_word, with_task_word] =
            [with_wakers, with_context, with_task].map(u64::from);
        let own_pid = u64::from(std::process::id());
        // The ID of a cgroup is the number of its directory's inode.
        let cgroup = if let Target::Cgroup(directory) = target { directory.metadata()?.ino() } else { 0 };
        let interrupt_size = uses.interrupts.end - uses.interrupts.start;
        let variables = pair.map(PairVariables::new);
        // The loader reads the kernel's types itself, and does not give them away.
        let types = if with_sleepers { Btf::from_sys_fs().ok() } else { None };
        let mut loader = EbpfLoader::new();
        loader
            .override_global("scope", &scope, true)
            .override_global("switch_period", &switch_period, true)
            .override_global("recorded_cgroup", &cgroup, true)
            .override_global("with_wakers", &with_wakers_word, true)
            .override_global("with_context", &with_context_word, true)
            .override_global("with_task", &with_task_word, true)
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
        let mut targets: HashMap<MapData, u32, TargetWords> = take_map(&mut program, "targets")?.try_into()?;
        let state = if matches!(target, Target::Command(_)) { HELD } else { WANTED };
        for id in ids {
            targets.insert(id, [0, state], 0)?;
        }
        let outputs = map_file(&take_map(&mut program, "outputs")?)?;
        let waking_outputs = map_file(&take_map(&mut program, "waking_outputs")?)?;
        let ended = take_map(&mut program, "ended_targets")?.try_into()?;
        let tables = Tables::open(&mut program, with_context)?;
        let pairs = pair.map(|spec| Pairs::open(&mut program, spec)).transpose()?;
        let switches = finds_long_blocks.map(|found| SwitchFunctions::open(&mut program, found)).transpose()?;
        Ok(Self {
            program,
            functions,
            targets,
            outputs,
            waking_outputs,
            tables,
            scope,
            with_wakers,
            finds_sleepers,
            switches,
            pairs,
            ended,
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
        if self.scope == EVERYBODY {
            return Ok(Vec::new());
        }
        let mut attached = Vec::new();
        target.attach_to_processes(|pid| {
            attached.push(pid);
            self.targets.insert(pid, [0, WANTED], 0)
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
            ProgramKind::Sample => sys::set_program(counter, function).map(|()| None),
            // Another counter of the tracepoint may have it already.
            ProgramKind::Tracepoint | ProgramKind::Probe => match sys::set_program(counter, function) {
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(None),
                result => result.map(|()| None),
            },
            ProgramKind::Call => sys::link_program(counter, function, u64::from(cpu) + 1).map(Some),
        }
    }

    /// Returns the CPU time that the target's processes or threads have used since they exist. `None` if it cannot be
    /// known, or if all processes are recorded.
    pub fn cpu_time(&self) -> Option<FollowedTime> {
        let (mut last_times, mut missing) = (FxHashMap::default(), None::<FxHashSet<u32>>);
        let mut best = None::<FollowedTime>;
        for _ in 0..MAX_READINGS {
            let [ended_time, ended, _] = self.ended.get(&0, 0).ok()?;
            let (mut time, mut gone) = (ended_time, FxHashSet::default());
            for id in self.target_ids()? {
                if let Some(own) = self.read_cpu_time(id).or_else(|| last_times.get(&id).copied()) {
                    last_times.insert(id, own);
                    time += own;
                } else {
                    gone.insert(id);
                }
            }
            // Those that are gone from now on began after the first reading.
            let missing = missing.get_or_insert_with(|| gone.clone());
            missing.retain(|id| gone.contains(id));
            let lacks_at_most = self.ended.get(&0, 0).ok()?[0].saturating_sub(ended_time);
            let read = FollowedTime { time, lacks_at_most, unfreed: missing.len() as u64, ended };
            if best.is_none_or(|best| (read.unfreed, read.lacks_at_most) < (best.unfreed, best.lacks_at_most)) {
                best = Some(read);
            }
            if read.unfreed == 0 && read.lacks_at_most == 0 {
                break;
            }
            std::thread::sleep(READING_INTERVAL);
        }
        best
    }

    /// Returns how often threads of the target that have ended since the start went to sleep.
    pub fn ended_sleeps(&self) -> Option<u64> {
        Some(self.ended.get(&0, 0).ok()?[2]).filter(|_| self.scope != EVERYBODY)
    }

    /// Returns the IDs of the target's processes or threads, as far as the kernel has not freed them.
    fn target_ids(&self) -> Option<FxHashSet<u32>> {
        // While entries are deleted, keys may come twice.
        let ids = self.targets.keys().collect::<Result<FxHashSet<u32>, _>>().ok();
        ids.filter(|_| self.scope != EVERYBODY)
    }

    fn read_cpu_time(&self, id: u32) -> Option<u64> {
        if self.scope == THREADS { procfs::thread_cpu_time(id) } else { sys::process_cpu_time(id) }
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
