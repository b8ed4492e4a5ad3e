//! Selects the samples of a `perf.data` file and adds them to a [`Recording`], which unwinds them.

use super::off_cpu::{OffCpu, SWITCH_EVENT, is_switch};
use crate::Error;
use crate::collapse::filter::event::EventFilter;
use crate::collapse::filter::sample::{SampleFilter, SampleInfo};
use crate::collapse::options::Options;
use crate::perf::data::Header;
use crate::perf::data::files::FileSearch;
use crate::perf::event::{self, Event, Mmap, Sample, Stamp, record_type, sample_type as bit};
use crate::perf::objects::registry::Objects;
use crate::perf::recording::{self, Recording, ThreadLabel};
use crate::perf::symbols::kallsyms::ReferenceSymbol;
use crate::perf::unwind::native;
use crate::profile::{SampleWeight, Weight};

/// The samples of a file.
pub(in crate::collapse::formats) struct Samples<'a> {
    options: &'a Options,
    pub(in crate::collapse::formats) recording: Recording,
    pub(in crate::collapse::formats) events: EventFilter,
    /// Number of records that could not be parsed.
    pub(in crate::collapse::formats) malformed: u64,
    pub(in crate::collapse::formats) machine: Machine,
    filter: SampleFilter,
    /// The earliest time of a sample, if the options select samples by their time.
    pub(super) earliest: Option<u64>,
    /// True if all samples have a time.
    pub(super) has_times: bool,
    /// True if all samples have the number of their CPU.
    pub(super) has_cpus: bool,
    /// The message about data behind the recording in its file.
    pub(super) trailing: Option<String>,
    /// Number of the header's build IDs that were processed.
    build_ids: usize,
    records: u64,
    /// Number of records that did not fit into the ring buffers, as the kernel reports it.
    lost_records: u64,
    /// Number of samples that did not fit, as `perf record` counted them.
    lost_samples: u64,
    /// The waits of threads, if switches are read as off-CPU time.
    pub(super) off_cpu: Option<OffCpu>,
}

/// The machine that the file was recorded on, as far as the file describes it.
#[derive(Default)]
pub(in crate::collapse::formats) struct Machine {
    /// The architecture, as `uname -m` prints it.
    pub(super) arch: Option<String>,
    /// The kernel's release, as `uname -r` prints it.
    pub(in crate::collapse::formats) release: Option<String>,
    /// The kernel's build ID.
    pub(super) kernel: Option<Vec<u8>>,
    /// A symbol of the kernel and its address.
    pub(super) reference: Option<ReferenceSymbol>,
    /// The difference between times since 1970 and those of the file's clock, in nanoseconds, if the file has it.
    pub(super) unix_offset: Option<u64>,
    /// True if the feature sections after the records are incomplete.
    pub(super) is_cut: bool,
    /// True if samples contain copies of user stacks (`--call-graph dwarf`).
    pub(super) copies_stacks: bool,
}

/// Number of records after which ended processes are forgotten.
const FORGET_INTERVAL: u64 = 1 << 16;

/// Maximum time by which a record is older than the newest record before it, in nanoseconds.
const MAX_DELAY: u64 = 1_000_000_000;

impl<'a> Samples<'a> {
    pub(in crate::collapse::formats) fn new(options: &'a Options) -> Self {
        let thread = match (options.tid, options.pid) {
            (true, _) => ThreadLabel::Tid,
            (false, true) => ThreadLabel::Pid,
            (false, false) => ThreadLabel::Name,
        };
        let kept = recording::Options {
            weight: options.weight,
            thread,
            keep_addresses: options.addrs,
            ..recording::Options::default()
        };
        let mut recording = Recording::new(kept);
        recording.objects = Objects::from_files(FileSearch::new(options.symfs.clone()));
        recording.set_initial_comm(0, b"swapper");
        Self {
            options,
            recording,
            events: EventFilter::new(options.event.clone()),
            malformed: 0,
            machine: Machine::default(),
            filter: SampleFilter::new(options),
            earliest: None,
            has_times: true,
            has_cpus: true,
            trailing: None,
            build_ids: 0,
            records: 0,
            lost_records: 0,
            lost_samples: 0,
            off_cpu: None,
        }
    }

    /// Makes the samples of switches the waits of threads.
    pub(super) fn read_off_cpu(&mut self) {
        self.keep_each_sample();
        self.events = EventFilter::for_names(vec![SWITCH_EVENT.to_vec()]);
        self.off_cpu = Some(OffCpu::default());
    }

    /// Makes the recording keep each sample, not only the sums of equal stacks.
    pub(in crate::collapse::formats) fn keep_each_sample(&mut self) {
        self.recording.options.keep_samples = true;
    }

    /// Adds a record.
    pub(super) fn add_record(&mut self, header: &Header, record: &[u8]) -> Result<(), Error> {
        if self.build_ids < header.build_ids.len() {
            self.process_build_ids(header);
        }
        let Some(attr) = header.attrs.list().get(header.attrs.index_of_record(record)) else {
            self.malformed += 1;
            return Ok(());
        };
        let Some((stamp, event)) = event::parse(record, attr.layout) else {
            self.malformed += 1;
            return Ok(());
        };
        match event {
            Event::Sample(mut sample) => {
                if !attr.has(bit::PERIOD) {
                    sample.period = attr.period;
                }
                if sample.user.is_some() {
                    self.machine.copies_stacks = true;
                    let architecture = header.arch.as_deref().unwrap_or(std::env::consts::ARCH);
                    self.recording.options.unwind = native::can_unwind(architecture);
                }
                self.recording.options.max_stack = attr.max_stack;
                let sample_type = attr.layout.sample_type;
                match self.off_cpu {
                    Some(_)
                        if attr.name == SWITCH_EVENT
                            || attr.is_unnamed_tracepoint() && is_switch(stamp, sample.raw) =>
                    {
                        self.add_switch(sample_type, stamp, sample)?
                    }
                    Some(_) => {}
                    None => self.add_sample(&attr.name, sample_type, stamp, sample)?,
                }
            }
            // `perf record` also writes such a record at the end.
            Event::Lost(count) if u32::from(record[0]) == record_type::LOST_SAMPLES => {
                self.lost_samples = self.lost_samples.saturating_add(count);
            }
            Event::Lost(count) => self.lost_records = self.lost_records.saturating_add(count),
            Event::Mmap(mmap) if mmap.pid == u32::MAX => self.set_kernel_reference(&mmap),
            event => self.recording.handle_event(stamp, event),
        }
        self.records += 1;
        if self.records.is_multiple_of(FORGET_INTERVAL) {
            let past = stamp.time.saturating_sub(MAX_DELAY);
            let over = self.recording.take_exited_before(past, |_| false);
            self.recording.forget_before(past, over);
        }
        Ok(())
    }

    /// Adds a switch. The options select a wait by the time, thread and CPU of its beginning.
    fn add_switch(&mut self, sample_type: u64, stamp: Stamp, sample: Sample<'_>) -> Result<(), Error> {
        let is_selected = self.events.accept(SWITCH_EVENT) & self.is_selected(stamp, sample_type)?;
        if self.off_cpu.as_mut().is_some_and(|off_cpu| off_cpu.add(stamp, sample.raw, is_selected)) {
            self.recording.handle_event(stamp, Event::Sample(sample));
        }
        Ok(())
    }

    /// Adds a sample of an event if the options select it. `sample_type` has the fields of `stamp` that are known.
    pub(in crate::collapse::formats) fn add_sample(
        &mut self,
        event: &[u8],
        sample_type: u64,
        stamp: Stamp,
        sample: Sample<'_>,
    ) -> Result<(), Error> {
        if self.events.accept(event) & self.is_selected(stamp, sample_type)? {
            self.count_sample(stamp, sample);
        }
        Ok(())
    }

    fn count_sample(&mut self, stamp: Stamp, sample: Sample<'_>) {
        self.events.add_weight(match self.options.weight {
            SampleWeight::Samples => Weight::ONE,
            SampleWeight::Period | SampleWeight::Microseconds => Weight::new(sample.period),
        });
        self.recording.handle_event(stamp, Event::Sample(sample));
    }

    /// Returns true if the options that filter by time, thread and CPU select the sample.
    fn is_selected(&mut self, stamp: Stamp, sample_type: u64) -> Result<bool, Error> {
        self.has_times &= sample_type & bit::TIME != 0;
        self.has_cpus &= sample_type & bit::CPU != 0;
        if self.filter.accepts_all() {
            return Ok(true);
        }
        let time = (sample_type & bit::TIME != 0).then_some(stamp.time);
        self.earliest = [self.earliest, time].into_iter().flatten().min();
        let has_tid = sample_type & bit::TID != 0;
        let comm = self.recording.thread_comm(stamp);
        let info = SampleInfo {
            time,
            comm: self.recording.comms.name(comm),
            pid: has_tid.then_some(stamp.pid),
            tid: has_tid.then_some(stamp.tid),
            cpu: (sample_type & bit::CPU != 0).then_some(stamp.cpu),
        };
        self.filter.accepts(&info).map_err(|missing| Error::Invalid(missing.to_owned()))
    }

    /// Processes the build IDs that the header has gained.
    fn process_build_ids(&mut self, header: &Header) {
        for build_id in &header.build_ids[self.build_ids..] {
            if build_id.in_kernel && build_id.path.starts_with(b"[kernel.kallsyms]") {
                self.machine.kernel = Some(build_id.id.clone());
            }
            if let Some(files) = self.recording.objects.files() {
                files.add_build_id(build_id);
            }
        }
        self.build_ids = header.build_ids.len();
    }

    /// Sets the kernel's reference symbol. The mmap event of the kernel names a symbol, and its offset is the symbol's
    /// address.
    fn set_kernel_reference(&mut self, mmap: &Mmap<'_>) {
        if let Some(symbol) = mmap.path.strip_prefix(b"[kernel.kallsyms]").filter(|symbol| !symbol.is_empty()) {
            self.machine.reference = Some(ReferenceSymbol { name: symbol.to_vec(), address: mmap.offset });
        }
    }

    /// Finishes the recording after all records were added.
    pub(super) fn finish(&mut self, header: &Header) {
        self.process_build_ids(header);
        self.machine.is_cut = header.is_cut;
        self.machine.arch.clone_from(&header.arch);
        self.machine.unix_offset = header.unix_offset;
        self.machine.release.clone_from(&header.release);
        self.recording.finish();
        self.recording.objects.reject_other_builds();
    }

    /// Returns the number of samples that were read.
    pub(super) fn sample_count(&self) -> u64 {
        self.events.seen().iter().map(|event| event.samples).sum()
    }

    /// Returns the number of lost samples. Both counts are of the same losses, and each may be incomplete.
    pub(super) fn lost_count(&self) -> u64 {
        self.lost_records.max(self.lost_samples)
    }
}
