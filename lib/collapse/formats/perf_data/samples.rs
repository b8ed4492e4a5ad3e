//! Which samples count, and where they go: into a recording of addresses.

use crate::Error;
use crate::collapse::Options;
use crate::collapse::filter::event::EventFilter;
use crate::collapse::filter::sample::{SampleFilter, SampleInfo};
use crate::perf::data::Header;
use crate::perf::data::files::FileSearch;
use crate::perf::event::{self, Event, Mmap, Sample, Stamp, sample_type as bit};
use crate::perf::objects::registry::Objects;
use crate::perf::recording::{self, Recording, ThreadLabel};
use crate::perf::symbols::kallsyms::ReferenceSymbol;
use crate::profile::{SampleWeight, Weight};

/// The samples of one recording.
pub(super) struct Samples<'a> {
    options: &'a Options,
    pub(super) recording: Recording,
    pub(super) events: EventFilter,
    /// Records that could not be understood.
    pub(super) malformed: u64,
    /// What the recording says of the machine that it was made on.
    pub(super) machine: Machine,
    choice: SampleFilter,
    /// Whether all samples tell when they were taken.
    pub(super) has_times: bool,
    /// How many build-ids were taken in.
    build_ids: usize,
    records: u64,
    /// Records that did not fit into the rings, as the kernel says; and samples that did not, as `perf` counted.
    lost_records: u64,
    lost_samples: u64,
}

/// The machine that a recording was made on.
#[derive(Default)]
pub(super) struct Machine {
    pub(super) arch: Option<String>,
    pub(super) release: Option<String>,
    /// The kernel's build-id.
    pub(super) kernel: Option<Vec<u8>>,
    /// A symbol of the kernel, and where it stood.
    pub(super) reference: Option<ReferenceSymbol>,
    /// Whether what it says behind the records is not there whole.
    pub(super) is_cut: bool,
    /// Whether stacks were copied, to be unwound later.
    pub(super) copies_stacks: bool,
}

/// The record of samples that were dropped, which `perf` writes at the end too.
const RECORD_LOST_SAMPLES: u8 = 13;
/// Ended processes are forgotten every so many records.
const FORGET_EVERY: u64 = 1 << 16;
/// How much older than the newest record one may be that is still to come, in nanoseconds.
const STRAGGLERS: u64 = 1_000_000_000;

impl<'a> Samples<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
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
        let mut recording = Recording::new(kept, None);
        recording.objects = Objects::from_files(FileSearch::new(options.symfs.clone()));
        recording.set_initial_comm(0, b"swapper");
        Self {
            options,
            recording,
            events: EventFilter::new(options.event.clone()),
            malformed: 0,
            machine: Machine::default(),
            choice: SampleFilter::new(options),
            has_times: true,
            build_ids: 0,
            records: 0,
            lost_records: 0,
            lost_samples: 0,
        }
    }

    /// Keeps each sample by itself, too.
    pub(super) fn keep_each(&mut self) {
        self.recording.options.keep_samples = true;
    }

    /// Takes a record in.
    pub(super) fn take(&mut self, header: &Header, record: &[u8]) -> Result<(), Error> {
        if self.build_ids < header.build_ids.len() {
            self.learn_build_ids(header);
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
                self.machine.copies_stacks |= sample.user.is_some();
                self.recording.options.max_stack = attr.max_stack;
                if self.events.accept(&attr.name) & self.is_chosen(stamp, attr.layout.sample_type)? {
                    self.count_sample(stamp, sample);
                }
            }
            Event::Lost(count) if record[0] == RECORD_LOST_SAMPLES => {
                self.lost_samples = self.lost_samples.saturating_add(count);
            }
            Event::Lost(count) => self.lost_records = self.lost_records.saturating_add(count),
            Event::Mmap(mmap) if mmap.pid == u32::MAX => self.learn_kernel_place(&mmap),
            event => self.recording.handle_event(stamp, event),
        }
        self.records += 1;
        if self.records.is_multiple_of(FORGET_EVERY) {
            let past = stamp.time.saturating_sub(STRAGGLERS);
            let over = self.recording.take_exited_before(past, |_| false);
            self.recording.forget_before(past, over);
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

    /// Whether a sample is left in by the options that choose by when, where and by whom it was taken.
    fn is_chosen(&mut self, stamp: Stamp, sample_type: u64) -> Result<bool, Error> {
        self.has_times &= sample_type & bit::TIME != 0;
        if self.choice.accepts_all() {
            return Ok(true);
        }
        let known = |bit: u64| sample_type & bit != 0;
        let comm = self.recording.thread_comm(stamp);
        let origin = SampleInfo {
            time: known(bit::TIME).then_some(stamp.time),
            comm: self.recording.comms.name(comm),
            pid: known(bit::TID).then_some(stamp.pid),
            tid: known(bit::TID).then_some(stamp.tid),
            cpu: known(bit::CPU).then_some(stamp.cpu),
        };
        self.choice.accepts(&origin).map_err(|missing| Error::Invalid(missing.to_owned()))
    }

    fn learn_build_ids(&mut self, header: &Header) {
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

    /// A mapping of the kernel's own is named by a symbol and tells that symbol's address.
    fn learn_kernel_place(&mut self, mmap: &Mmap<'_>) {
        if let Some(symbol) = mmap.path.strip_prefix(b"[kernel.kallsyms]").filter(|symbol| !symbol.is_empty()) {
            self.machine.reference = Some(ReferenceSymbol { name: symbol.to_vec(), address: mmap.offset });
        }
    }

    /// All records were taken in.
    pub(super) fn end(&mut self, header: &Header) {
        self.learn_build_ids(header);
        self.machine.is_cut = header.is_cut;
        self.machine.arch.clone_from(&header.arch);
        self.machine.release.clone_from(&header.release);
        self.recording.finish();
        self.recording.objects.reject_other_builds();
    }

    /// How many samples were read.
    pub(super) fn count(&self) -> u64 {
        self.events.seen().iter().map(|event| event.samples).sum()
    }

    /// How many were lost. Both numbers tell of the same losses, and each may miss some.
    pub(super) fn lost(&self) -> u64 {
        self.lost_records.max(self.lost_samples)
    }
}
