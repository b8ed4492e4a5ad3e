//! Symbolizes the stacks of a recording and adds them to the sink. Each code location is named once.

use super::off_cpu::wait_weight;
use super::samples::{Machine, Samples};
use crate::Error;
use crate::collapse::formats::perf_script::frame::Frame;
use crate::collapse::formats::perf_script::naming::Naming;
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::timeline::SampleTime;
use crate::markers::{NO_SPAN, OFF_CPU, RUNNABLE, TRUNCATED};
use crate::perf::data::files;
use crate::perf::export::profile::comm_frame;
use crate::perf::objects::object::Object;
use crate::perf::objects::registry::KERNEL;
use crate::perf::recording::{Recording, SampleRecord};
use crate::perf::symbols::frame::{NamedFrame, SymbolizeOptions};
use crate::perf::symbols::kallsyms::KernelSymbols;
use crate::perf::symbols::symbolize::{LocationFrames, symbolize};
use crate::perf::unwind::native;
use crate::profile::{FrameId, SampleWeight, Weight, Weights};
use crate::symbol_name::inlined;

/// Symbolizes all stacks and adds them to the sink. Returns warnings about missing files and names.
pub(super) fn add_stacks(samples: &mut Samples<'_>, options: &Options, sink: &mut Sink) -> Result<Vec<String>, Error> {
    let mut warnings = Vec::new();
    find_symbol_sources(samples, options, &mut warnings)?;
    let recording = &samples.recording;
    let wanted = SymbolizeOptions { inline: !options.no_inline, lines: options.srcline, debuginfod: false };
    let symbols = symbolize(&recording.objects, recording.locations(), &wanted);
    warnings.extend(symbols.warnings().iter().cloned());
    let mut names = FrameNames::new(options, &symbols, recording, sink);
    match recording.options.keep_samples {
        true => add_each_sample(samples, &mut names, options, sink)?,
        false => add_sums(recording, &mut names, sink)?,
    }
    Ok(warnings)
}

/// Sets the source of kernel symbols. Adds warnings about files that are missing and stacks that cannot be unwound.
fn find_symbol_sources(samples: &mut Samples<'_>, options: &Options, warnings: &mut Vec<String>) -> Result<(), Error> {
    let Samples { recording, machine, .. } = samples;
    let in_kernel = recording.locations().iter().any(|location| location.object == KERNEL);
    recording.objects.kernel = find_kernel_symbols(recording, machine, options, in_kernel, warnings)?;
    if machine.copies_stacks {
        let foreign = foreign_architecture(recording, machine);
        warnings.extend(foreign.map(|architecture| native::explain_foreign(&architecture)));
    }
    warnings.extend(missing_files(recording));
    Ok(())
}

/// Adds the samples one by one, with their times and spans, in the order of the recording.
fn add_each_sample(
    samples: &Samples<'_>,
    names: &mut FrameNames<'_>,
    options: &Options,
    sink: &mut Sink,
) -> Result<(), Error> {
    let Samples { recording, has_times, has_cpus, off_cpu, machine, .. } = samples;
    let mut waits = off_cpu.as_ref().map(|off_cpu| off_cpu.waits.iter());
    let mut stack = Vec::new();
    for sample in &recording.sample_records {
        names.resolve_stack(sample.stack, sink, &mut stack);
        let time = (*has_times && sink.needs_times()).then(|| names.sample_time(sample, *has_cpus, sink));
        if let Some(spans) = &options.spans {
            let (pid, tid) = (sample.stamp.pid, sample.stamp.tid);
            let time = spans.convert_time(sample.stamp.time, machine.unix_offset);
            let mut roots = Vec::new();
            match has_times {
                true => spans.push_frames(Some(pid), tid, time, sink, &mut roots),
                false => roots.push(sink.intern(NO_SPAN)),
            }
            stack.splice(0..0, roots);
        }
        let mut weight = weight_of_samples(recording.options.weight, 1, sample.period.into());
        if let Some(wait) = waits.as_mut().and_then(Iterator::next) {
            stack.push(sink.intern(if wait.is_runnable { RUNNABLE } else { OFF_CPU }));
            weight = wait_weight(wait.nanoseconds, options.weight);
            if weight.is_zero() {
                continue;
            }
        }
        sink.add_timed(&stack, Weights::plain(weight), time)?;
    }
    Ok(())
}

/// Adds each stack with the sum of its samples.
fn add_sums(recording: &Recording, names: &mut FrameNames<'_>, sink: &mut Sink) -> Result<(), Error> {
    let mut stack = Vec::new();
    for (number, tally) in recording.tallies().iter().enumerate().filter(|(_, tally)| tally.samples > 0) {
        names.resolve_stack(number as u32, sink, &mut stack);
        let weight = weight_of_samples(recording.options.weight, tally.samples, tally.period);
        sink.add(&stack, Weights::plain(weight))?;
    }
    Ok(())
}

/// Returns the weight of samples with this sum of periods.
fn weight_of_samples(weight: SampleWeight, samples: u64, period: u128) -> Weight {
    match weight {
        SampleWeight::Samples => Weight::new(samples),
        SampleWeight::Period | SampleWeight::Microseconds => Weight::from_millionths(period.saturating_mul(1_000_000)),
    }
}

/// Returns true if a line has the form of `/proc/kallsyms`: an address, a letter, and a name.
fn is_kallsyms_line(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (address, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    address.len() >= 8 && address.iter().all(u8::is_ascii_hexdigit) && kind.len() == 1 && words.next().is_some()
}

/// Returns the source of kernel symbols: the file that `--kallsyms` names, else the running kernel if the recording is
/// from it, else `perf`'s cache of build IDs.
fn find_kernel_symbols(
    recording: &mut Recording,
    machine: &Machine,
    options: &Options,
    in_kernel: bool,
    warnings: &mut Vec<String>,
) -> Result<KernelSymbols, Error> {
    let local = KernelSymbols { reference: machine.reference.clone(), ..KernelSymbols::default() };
    if let Some(file) = &options.kallsyms {
        // The file is read again later; a bad file is reported now.
        let name = file.display().to_string();
        let symbols = std::fs::read(file).map_err(|error| Error::read(&name, error))?;
        if !symbols.split(|byte| *byte == b'\n').any(is_kallsyms_line) {
            return Err(Error::Unreadable {
                name,
                what: "not a list of kernel symbols as in /proc/kallsyms".to_owned(),
            });
        }
        return Ok(KernelSymbols { file: Some(file.clone()), ..local });
    }
    let running = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let is_running_kernel = match (&machine.kernel, &machine.release) {
        (Some(id), _) => files::running_kernel_build_id().as_ref() == Some(id),
        (None, Some(release)) => release == running.trim_end(),
        (None, None) => true,
    };
    if is_running_kernel && options.symfs.is_none() {
        return Ok(local);
    }
    let cached = machine.kernel.as_ref().and_then(|id| recording.objects.files()?.find_cached_kernel(id));
    if cached.is_none() && in_kernel {
        let release = machine.release.as_deref().unwrap_or("another kernel");
        warnings.push(format!("kernel functions have no names: recorded on {release}; use --kallsyms FILE"));
    }
    Ok(KernelSymbols { file: cached, ..local })
}

/// Returns the architecture of the machine that was recorded, if its stacks cannot be unwound here.
fn foreign_architecture(recording: &Recording, machine: &Machine) -> Option<String> {
    match &machine.arch {
        Some(architecture) => Some(architecture.clone()).filter(|architecture| !native::can_unwind(architecture)),
        None => native::find_foreign_architecture(&recording.objects),
    }
}

/// Returns a warning for each file that has sampled code and was not found.
fn missing_files(recording: &Recording) -> Vec<String> {
    let mut is_sampled = vec![false; recording.objects.iter().count()];
    for location in recording.locations() {
        is_sampled[location.object.index()] = true;
    }
    let missing =
        recording.objects.iter().filter(|(id, _)| is_sampled[id.index()]).filter_map(|(_, object)| match object {
            Object::Missing { path, reason } if !path.starts_with(b"[vsyscall]") => {
                Some(format!("no names from {}: {reason}", String::from_utf8_lossy(path)))
            }
            _ => None,
        });
    let mut missing: Vec<String> = missing.collect();
    missing.sort();
    missing.dedup();
    missing
}

/// The frames of code locations, named when they are first needed.
struct FrameNames<'a> {
    naming: Naming,
    symbols: &'a LocationFrames,
    recording: &'a Recording,
    /// The named frames by [`cache_key`](Self::cache_key), for threads that do not run Java (0) and threads that do
    /// (1).
    cache: [Vec<Option<CachedFrames>>; 2],
    /// True if frames contain their address, so that each location has its own names.
    by_location: bool,
    /// The frames of all cached locations.
    frames: Vec<FrameId>,
    truncated: FrameId,
    /// The root frames, by the number of the thread's name.
    threads: Vec<Option<FrameId>>,
}

/// The range of a location's frames in [`FrameNames::frames`], root first.
#[derive(Clone, Copy)]
struct CachedFrames {
    start: u32,
    end: u32,
    /// True if `--skip-after` makes the first of them the root of its stack.
    is_root: bool,
}

impl<'a> FrameNames<'a> {
    fn new(options: &Options, symbols: &'a LocationFrames, recording: &'a Recording, sink: &mut Sink) -> Self {
        let by_location = options.addrs;
        let none = vec![None; if by_location { recording.locations().len() } else { symbols.frames().len() }];
        let truncated = sink.intern(TRUNCATED);
        let threads = vec![None; recording.comms.len()];
        let cache = [none.clone(), none];
        Self {
            naming: Naming::new(options),
            symbols,
            recording,
            cache,
            by_location,
            frames: Vec::new(),
            truncated,
            threads,
        }
    }

    /// Returns the time, the thread and, if the recording has it, the CPU of a sample.
    fn sample_time(&self, sample: &SampleRecord, has_cpus: bool, sink: &mut Sink) -> SampleTime {
        let comm = self.recording.comm(&self.recording.stack(sample.stack));
        let mut thread = comm.trim_ascii().to_vec();
        thread.extend_from_slice(format!(" {}/{}", sample.stamp.pid, sample.stamp.tid).as_bytes());
        let cpu = has_cpus.then_some(sample.stamp.cpu);
        SampleTime { time: sample.stamp.time, thread: sink.intern_thread(&thread), cpu }
    }

    /// Replaces `stack` by the frames of a stack, root first.
    fn resolve_stack(&mut self, number: u32, sink: &mut Sink, stack: &mut Vec<FrameId>) {
        let recorded = self.recording.stack(number);
        let comm = self.recording.comm(&recorded);
        let is_java = inlined::is_java_thread(comm);
        stack.clear();
        stack.push(*self.threads[recorded.comm as usize].get_or_insert_with(|| sink.intern(&comm_frame(comm))));
        if recorded.is_truncated {
            stack.push(self.truncated);
        }
        for location in recorded.locations {
            let cached = self.cache[usize::from(is_java)][self.cache_key(*location)];
            let cached = cached.unwrap_or_else(|| self.name_location(*location, is_java, sink));
            if cached.is_root {
                stack.clear();
            }
            stack.extend_from_slice(&self.frames[cached.start as usize..cached.end as usize]);
        }
    }

    /// Returns the index of a location in the cache: many locations have the same symbols, and so the same frames.
    fn cache_key(&self, location: u32) -> usize {
        if self.by_location { location as usize } else { self.symbols.range(location).start }
    }

    /// Names the frames of a location and caches them.
    fn name_location(&mut self, number: u32, is_java: bool, sink: &mut Sink) -> CachedFrames {
        let location = &self.recording.locations()[number as usize];
        let object = self.recording.objects.get(location.object);
        let address = format!("{:x}", location.ip);
        let (mut start, mut is_root) = (self.frames.len() as u32, false);
        for named in &self.symbols.frames()[self.symbols.range(number)] {
            let module = module(object, named);
            let symbol: &[u8] = if named.has_symbol { &named.name } else { b"" };
            let frame =
                Frame { address: address.as_bytes(), symbol, module: Some(&module), source: named.source.as_deref() };
            if self.naming.is_skipped_after(&frame) {
                (start, is_root) = (self.frames.len() as u32, true);
            }
            self.frames.extend(self.naming.frame_names(&frame, is_java).iter().map(|name| sink.intern(name)));
        }
        let cached = CachedFrames { start, end: self.frames.len() as u32, is_root };
        let key = self.cache_key(number);
        self.cache[usize::from(is_java)][key] = Some(cached);
        cached
    }
}

/// Returns the module that `perf script` prints in parentheses after a frame.
fn module(object: &Object, named: &NamedFrame) -> Vec<u8> {
    match object {
        _ if named.is_inlined => b"inlined".to_vec(),
        Object::Jit { pid, .. } if named.has_symbol => format!("/tmp/perf-{pid}.map").into_bytes(),
        _ => object.path().to_vec(),
    }
}
