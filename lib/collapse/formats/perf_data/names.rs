//! Stacks of addresses as stacks of frames: each place in the code is named once.

use std::path::PathBuf;

use super::samples::{Machine, Samples};
use crate::Error;
use crate::collapse::Options;
use crate::collapse::formats::perf_script::frame::Frame;
use crate::collapse::formats::perf_script::name::Naming;
use crate::collapse::sink::Sink;
use crate::collapse::timeline::SampleTime;
use crate::markers::NO_SPAN;
use crate::markers::TRUNCATED;
use crate::perf::data::files;
use crate::perf::export::profile::comm_frame;
use crate::perf::objects::object::Object;
use crate::perf::objects::registry::KERNEL;
use crate::perf::recording::{Recording, SampleRecord};
use crate::perf::symbols::frame::{NamedFrame, SymbolizeOptions};
use crate::perf::symbols::kallsyms::KernelSymbols;
use crate::perf::symbols::symbolize::{LocationFrames, symbolize};
use crate::profile::{FrameId, SampleWeight, Weight, Weights};
use crate::symbol_name::inlined;

/// Names all stacks and puts them into the sink; what there is to say of files that were not found.
pub(super) fn fold(samples: &mut Samples<'_>, options: &Options, sink: &mut Sink) -> Result<Vec<String>, Error> {
    let mut remarks = Vec::new();
    let Samples { recording, machine, has_times, .. } = samples;
    let in_kernel = recording.locations().iter().any(|location| location.object == KERNEL);
    recording.objects.kernel = kernel_names(recording, machine, options, in_kernel, &mut remarks)?;
    if machine.copies_stacks
        && let Some(arch) = machine.arch.as_ref().filter(|arch| *arch != std::env::consts::ARCH)
    {
        remarks.push(format!("recorded on {arch}: stacks that were copied can be unwound only there"));
    }
    remarks.extend(missing_files(recording));
    let wanted = SymbolizeOptions { inline: !options.no_inline, lines: options.srcline, debuginfod: false };
    let symbols = symbolize(&recording.objects, recording.locations(), &wanted);
    remarks.extend(symbols.warnings().iter().cloned());
    let mut names = Names::new(options, &symbols, recording, sink);
    let weigh = |samples: u64, period: u128| match recording.options.weight {
        SampleWeight::Samples => Weight::new(samples),
        SampleWeight::Period | SampleWeight::Microseconds => Weight::from_millionths(period.saturating_mul(1_000_000)),
    };
    let mut stack = Vec::new();
    if recording.options.keep_samples {
        for sample in &recording.sample_records {
            names.stack(sample.stack, sink, &mut stack);
            let moment = if *has_times && sink.keeps_times() { Some(names.moment(sample, sink)) } else { None };
            if let Some(spans) = &options.spans {
                let span = spans.find(sample.stamp.tid, sample.stamp.time).filter(|_| *has_times);
                stack.insert(0, sink.intern(span.unwrap_or(NO_SPAN)));
            }
            sink.add_at(&stack, Weights::plain(weigh(1, sample.period.into())), moment)?;
        }
    } else {
        for (number, tally) in recording.tallies().iter().enumerate().filter(|(_, tally)| tally.samples > 0) {
            names.stack(number as u32, sink, &mut stack);
            sink.add(&stack, Weights::plain(weigh(tally.samples, tally.period)))?;
        }
    }
    Ok(remarks)
}

/// Whether a line is one of `/proc/kallsyms`: an address, a letter, and a name.
fn is_symbol(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (address, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    address.len() >= 8 && address.iter().all(u8::is_ascii_hexdigit) && kind.len() == 1 && words.next().is_some()
}

/// Where the kernel's names are: in the file that was named, else in this kernel if it is the one, else in `perf`'s cache.
fn kernel_names(
    recording: &mut Recording,
    machine: &Machine,
    options: &Options,
    in_kernel: bool,
    remarks: &mut Vec<String>,
) -> Result<KernelSymbols, Error> {
    let local = KernelSymbols { reference: machine.reference.clone(), ..KernelSymbols::default() };
    if let Some(file) = &options.kallsyms {
        // Read later: what cannot be is said now.
        let name = file.display().to_string();
        let symbols = std::fs::read(file).map_err(|error| Error::read(&name, error))?;
        if !symbols.split(|byte| *byte == b'\n').any(is_symbol) {
            return Err(Error::Unreadable { name, what: "no list of kernel symbols".to_owned() });
        }
        return Ok(KernelSymbols { file: Some(file.clone()), ..local });
    }
    let running = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let is_this_one = match (&machine.kernel, &machine.release) {
        (Some(id), _) => files::running_kernel_build_id().as_ref() == Some(id),
        (None, Some(release)) => release == running.trim_end(),
        (None, None) => true,
    };
    if is_this_one && options.symfs.is_none() {
        return Ok(local);
    }
    let cached = machine.kernel.as_ref().and_then(|id| recording.objects.files()?.find_cached_kernel(id));
    if cached.is_none() && in_kernel {
        let release = machine.release.as_deref().unwrap_or("another kernel");
        remarks.push(format!("kernel functions have no names: recorded on {release}; --kallsyms FILE names them"));
    }
    let file: Option<PathBuf> = cached;
    Ok(KernelSymbols { file, ..local })
}

/// The files that were run and are not there, each once.
fn missing_files(recording: &Recording) -> Vec<String> {
    let mut hit = vec![false; recording.objects.iter().count()];
    for location in recording.locations() {
        hit[location.object.index()] = true;
    }
    let missing = recording.objects.iter().filter(|(id, _)| hit[id.index()]).filter_map(|(_, object)| match object {
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

/// The frames of every place, found out when they are first asked for.
struct Names<'a> {
    naming: Naming,
    symbols: &'a LocationFrames,
    recording: &'a Recording,
    /// For threads that run Java, and for others: where a place's frames stand. By what its frames are called before they
    /// are tidied, which many places have in common; or by place, if they are to tell their addresses.
    places: [Vec<Option<Place>>; 2],
    by_place: bool,
    frames: Vec<FrameId>,
    truncated: FrameId,
    /// By number of the thread's name.
    threads: Vec<Option<FrameId>>,
}

/// Where the frames of a place stand, and whether what calls the first of them is left out.
#[derive(Clone, Copy)]
struct Place {
    start: u32,
    end: u32,
    is_root: bool,
}

impl<'a> Names<'a> {
    fn new(options: &Options, symbols: &'a LocationFrames, recording: &'a Recording, sink: &mut Sink) -> Self {
        let by_place = options.addrs;
        let none = vec![None; if by_place { recording.locations().len() } else { symbols.frames().len() }];
        let truncated = sink.intern(TRUNCATED);
        let threads = vec![None; recording.comms.len()];
        let places = [none.clone(), none];
        Self {
            naming: Naming::new(options),
            symbols,
            recording,
            places,
            by_place,
            frames: Vec::new(),
            truncated,
            threads,
        }
    }

    /// When a sample was taken, and by whom.
    fn moment(&self, sample: &SampleRecord, sink: &mut Sink) -> SampleTime {
        let comm = self.recording.comm(&self.recording.stack(sample.stack));
        let mut thread = comm.trim_ascii().to_vec();
        thread.extend_from_slice(format!(" {}/{}", sample.stamp.pid, sample.stamp.tid).as_bytes());
        SampleTime { time: sample.stamp.time, thread: sink.intern_thread(&thread) }
    }

    /// The frames of a stack, root first.
    fn stack(&mut self, number: u32, sink: &mut Sink, stack: &mut Vec<FrameId>) {
        let known = self.recording.stack(number);
        let name = self.recording.comm(&known);
        let java = inlined::is_java_thread(name);
        stack.clear();
        stack.push(*self.threads[known.comm as usize].get_or_insert_with(|| sink.intern(&comm_frame(name))));
        if known.is_truncated {
            stack.push(self.truncated);
        }
        for place in known.locations {
            let found = self.places[usize::from(java)][self.key(*place)];
            let found = found.unwrap_or_else(|| self.name(*place, java, sink));
            if found.is_root {
                stack.clear();
            }
            stack.extend_from_slice(&self.frames[found.start as usize..found.end as usize]);
        }
    }

    fn key(&self, place: u32) -> usize {
        if self.by_place { place as usize } else { self.symbols.range(place).start }
    }

    fn name(&mut self, place: u32, java: bool, sink: &mut Sink) -> Place {
        let location = &self.recording.locations()[place as usize];
        let object = self.recording.objects.get(location.object);
        let address = format!("{:x}", location.ip);
        let (mut start, mut is_root) = (self.frames.len() as u32, false);
        for named in &self.symbols.frames()[self.symbols.range(place)] {
            let module = module(object, named);
            let symbol: &[u8] = if named.has_symbol { &named.name } else { b"" };
            let frame =
                Frame { address: address.as_bytes(), symbol, module: Some(&module), source: named.source.as_deref() };
            if self.naming.is_skipped_after(&frame) {
                (start, is_root) = (self.frames.len() as u32, true);
            }
            self.frames.extend(self.naming.names(&frame, java).iter().map(|name| sink.intern(name)));
        }
        let known = Place { start, end: self.frames.len() as u32, is_root };
        let key = self.key(place);
        self.places[usize::from(java)][key] = Some(known);
        known
    }
}

/// What `perf script` prints in parentheses behind a frame.
fn module(object: &Object, named: &NamedFrame) -> Vec<u8> {
    match object {
        _ if named.is_inlined => b"inlined".to_vec(),
        Object::Jit { pid, .. } if named.has_symbol => format!("/tmp/perf-{pid}.map").into_bytes(),
        _ => object.path().to_vec(),
    }
}
