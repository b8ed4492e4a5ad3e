//! Hints about functions of scripts and other generated code, which the kernel and the files of a program do not name.

use rustc_hash::FxHashMap;

use super::{Hints, advice, percentage};
use crate::diagnostics::printable;
use crate::perf::objects::object::{JitMemory, Object};
use crate::perf::objects::registry;
use crate::perf::recording::{ScriptFrameOptions, Stack};
use crate::perf::runtime::Runtime;
use crate::record::counters::sampling::CallGraph;

/// Functions that run script functions, and the language of these.
const LOOPS: [(&[u8], &str); 3] =
    [(b"_PyEval_EvalFrameDefault", "Python"), (b"rb_vm_exec", "Ruby"), (b"execute_ex", "PHP")];

impl Hints<'_> {
    /// Returns a hint if a process has generated much code that has no names.
    pub(super) fn unnamed_generated_code(&self) -> Option<String> {
        let recording = &self.finished.recording;
        let processes = recording.locations().iter().enumerate().map(|(number, location)| {
            let Object::Jit { pid, memory: JitMemory::Private | JitMemory::Shared } =
                recording.objects.get(location.object)
            else {
                return None;
            };
            let frames = &self.names.frames()[self.names.range(number as u32)];
            frames.iter().all(|frame| !frame.has_symbol).then_some(*pid)
        });
        let processes: Vec<Option<u32>> = processes.collect();
        let mut samples = FxHashMap::default();
        for (stack, tally) in recording.tallies().iter().enumerate() {
            let stack = recording.stack(stack as u32);
            if let Some(pid) = stack.locations.iter().find_map(|location| processes[*location as usize]) {
                *samples.entry(pid).or_insert(0) += tally.samples;
            }
        }
        let (pid, samples) = samples.into_iter().max_by_key(|(pid, samples)| (*samples, *pid))?;
        let share = self.frequent_share(samples)?;
        let (program, help) = match recording.runtime(pid) {
            // Said already, with the same advice.
            Some(Runtime::Java) if self.shows_sleepers() && self.no_unwind_information().is_some() => return None,
            Some(Runtime::Java) if self.shows_sleepers() => ("java", advice::print_java_stacks(pid)),
            Some(Runtime::Java) => {
                let help = format!("run jcmd {pid} Compiler.perfmap before the recording ends");
                ("java", format!("{help}{}", self.suggest_bpf("names")))
            }
            Some(Runtime::Node) => ("node", format!("start node with --perf-basic-prof{}", self.suggest_bpf("names"))),
            Some(Runtime::Ruby) => {
                ("YJIT", format!("start Ruby 3.3 or later with --yjit-perf{}", self.suggest_bpf("names")))
            }
            Some(Runtime::DotNet) => (".NET", "set DOTNET_PerfMapEnabled=1".to_owned()),
            Some(Runtime::Python) | None => ("a process", format!("it writes no names to /tmp/perf-{pid}.map")),
        };
        Some(format!("{share} of stacks have frames without names in code that {program} generated; {help}"))
    }

    /// Returns what a BPF program would do with generated code, for the end of a hint. Empty if it was in use, or is not wanted.
    pub(super) fn suggest_bpf(&self, verb: &str) -> String {
        if self.finished.recording.options.scripts == ScriptFrameOptions::NativeOnly {
            return String::new();
        }
        match (&self.finished.copy_reason, self.call_graph) {
            (Some(reason), _) => format!("; a BPF program {verb} it without that, but {reason}"),
            (None, CallGraph::FramePointers) => format!("; as root, --call-graph dwarf {verb} it without that"),
            (None, _) => String::new(),
        }
    }

    /// Returns the interpreters whose functions are not shown.
    pub(super) fn unsupported_interpreters(&self) -> Option<String> {
        let names: Vec<String> = self.finished.recording.unsupported_interpreters().map(printable).collect();
        (!names.is_empty()).then(|| format!("functions are not shown for {}", names.join(" and ")))
    }

    /// Returns a hint if many samples are of an interpreter, whose functions have no names.
    pub(super) fn unnamed_scripts(&self) -> Option<String> {
        let recording = &self.finished.recording;
        // Chosen so, or said already.
        let is_expected = recording.options.scripts != ScriptFrameOptions::Script
            || recording.unsupported_interpreters().next().is_some();
        if is_expected {
            return None;
        }
        let (language, samples) = LOOPS
            .into_iter()
            .map(|(function, language)| (language, self.samples_of_loop(function)))
            .max_by_key(|(_, samples)| *samples)
            .filter(|(_, samples)| samples * 4 > self.counts().samples)?;
        let share = percentage(samples, self.counts().samples);
        let help = match (&self.finished.copy_reason, self.call_graph) {
            (None, CallGraph::FramePointers) => "use --call-graph dwarf as root".to_owned(),
            (None, _) if self.shows_sleepers() => {
                return Some(format!(
                    "{share} of stacks are of {language} functions without names: those of threads that slept before the \
                     recording have none{}",
                    if language == "Python" { "; py-spy dump --pid PID prints them" } else { "" }
                ));
            }
            _ if !rustix::process::geteuid().is_root() => "run fg-record as root".to_owned(),
            (Some(reason), _) => format!("a BPF program finds the names, but {reason}"),
            (None, _) if language == "Python" && self.counts().unmatched_scripts * 2 > samples => {
                return Some(format!(
                    "{share} of stacks are of Python functions without names: they do not match the native stack, as in \
                     greenlets before Python 3.11"
                ));
            }
            (None, _) if self.finished.usage.is_per_thread => "use --call-graph dwarf without a size".to_owned(),
            (None, _) => {
                let other =
                    if language == "Python" { ", or a subinterpreter runs them before Python 3.12" } else { "" };
                format!("the program ended, or had just begun, when fg-record read them{other}")
            }
        };
        let other = if language == "Python" { ", or start Python 3.12 or later with -X perf" } else { "" };
        Some(format!("{share} of stacks are of {language} functions without names; {help}{other}"))
    }

    /// Returns the number of samples in a function that runs script functions, and without any of these. 0 if they have names.
    fn samples_of_loop(&self, function: &[u8]) -> u64 {
        let recording = &self.finished.recording;
        let names =
            |location: usize| self.names.frames()[self.names.range(location as u32)].iter().map(|frame| &*frame.name);
        let locations = 0..recording.locations().len();
        let is_loop: Vec<bool> =
            locations.clone().map(|location| names(location).any(|name| name == function)).collect();
        if !is_loop.contains(&true) || locations.clone().any(|location| names(location).any(is_python_name)) {
            return 0;
        }
        let is_script: Vec<bool> =
            recording.locations().iter().map(|location| location.object == registry::SCRIPT).collect();
        let has = |stack: &Stack<'_>, kind: &[bool]| stack.locations.iter().any(|location| kind[*location as usize]);
        let stacks = recording.tallies().iter().enumerate().map(|(id, tally)| (recording.stack(id as u32), tally));
        let interpreted = stacks.filter(|(stack, _)| has(stack, &is_loop) && !has(stack, &is_script));
        interpreted.map(|(_, tally)| tally.samples).sum()
    }
}

/// True for the name that the perf map of Python gives to a function.
fn is_python_name(name: &[u8]) -> bool {
    name.starts_with(b"py::")
}
