//! Captures of sysprof (`.syscap`): stacks of CPU samples and of allocations, as addresses.
//!
//! A capture is a header of 256 bytes and frames. Each sample weighs 1, and an allocation (`--event alloc`, of
//! `sysprof-cli --memprof`) its bytes; the first event that the capture has counts unless `--event` names another.
//! Addresses are named by the files that processes had mapped, and those below `--symfs`; functions of the kernel need
//! `--kallsyms`. Code that was generated at run time has no name. Source: `libsysprof-capture/sysprof-capture-types.h`.

use super::little_endian::Bytes;
use super::perf_data::{self, Samples};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::read_bytes;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::input_summary::InputSummary;
use crate::collapse::line_helpers::split_word;
use crate::collapse::sink::Sink;
use crate::perf::event::{Callchain, Event, Mmap, Sample, Stamp, sample_type as bit};

pub(super) static FORMAT: Format = Format {
    name: "sysprof",
    description: "sysprof captures (.syscap)",
    tested_with: "sysprof 3.46",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| head.starts_with(MAGIC)),
    reader: FormatReader::Bytes(read),
};

/// The magic number and the version.
const MAGIC: &[u8] = b"\x5e\x97\xca\xfd\x01";

/// The size of the header, and the offset of the byte that says whether numbers are little-endian.
const HEADER: usize = 256;
const BYTE_ORDER: usize = 5;

/// What precedes addresses in user space (`PERF_CONTEXT_USER`).
const CONTEXT_USER: i64 = -512;

/// Types of frames.
mod kind {
    pub const SAMPLE: u8 = 2;
    pub const MAP: u8 = 3;
    pub const PROCESS: u8 = 4;
    pub const FORK: u8 = 5;
    pub const EXIT: u8 = 6;
    pub const ALLOCATION: u8 = 14;
}

/// The size of what each frame begins with, and the highest type that a later version may add.
const FRAME_HEADER: usize = 24;
const MAX_KIND: u8 = 31;

/// A frame of the capture.
struct Frame<'a> {
    kind: u8,
    stamp: Stamp,
    has_cpu: bool,
    body: Bytes<'a>,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let bytes = read_bytes(document)?;
    if bytes.get(BYTE_ORDER).is_none_or(|order| order & 1 == 0) {
        return Err(document.unreadable("recorded on a big-endian machine, which is not supported"));
    }
    let mut rest = Bytes(bytes.get(HEADER..).unwrap_or_default());
    let (mut frames, mut is_complete) = (Vec::new(), true);
    while !rest.is_empty() && !rest.0.starts_with(MAGIC) {
        let Some(frame) = Frame::parse(&mut rest) else {
            is_complete = false;
            break;
        };
        frames.push(frame);
    }
    // The rings of all CPUs were emptied one after the other.
    frames.sort_by_key(|frame| frame.stamp.time);
    let mut samples = Samples::new(document.options);
    if sink.is_in_order() || sink.needs_times() || document.options.spans.is_some() {
        samples.keep_each_sample();
    }
    samples.machine.release = Some("a kernel that the capture does not name".to_owned());
    for frame in frames {
        if frame.add_to(&mut samples)?.is_none() {
            samples.malformed += 1;
        }
    }
    samples.recording.finish();
    document.summary = InputSummary { events: samples.events.seen().to_vec(), ..InputSummary::default() };
    document.report_problems(samples.malformed, "frame", "left out: malformed")?;
    perf_data::add_stacks(document, &mut samples, sink)?;
    let offset = (bytes.len() - rest.0.len()) as u64;
    match is_complete {
        true => document.check_nothing_follows(offset, rest.0),
        false => document.check_end_or_rest(offset, rest.0, Frame::may_begin(rest), "its last frame does"),
    }
}

impl<'a> Frame<'a> {
    /// Splits the first frame off. Returns `None` if it is not whole.
    fn parse(rest: &mut Bytes<'a>) -> Option<Self> {
        let mut head = *rest;
        let length = usize::from(head.u16()?);
        let mut frame = Bytes(rest.take(length)?);
        let (_, cpu, pid, time) = (frame.u16()?, frame.u16()?, frame.u32()?, frame.u64()?);
        let (kind, _padding) = (frame.u8()?, frame.take(7)?);
        let has_cpu = cpu <= i16::MAX as u16;
        let stamp = Stamp { pid, tid: pid, time, cpu: cpu.into(), ..Stamp::default() };
        Some(Self { kind, stamp, has_cpu, body: frame })
    }

    /// Returns true if a frame may begin with these bytes: frames have a size that is a multiple of 8, and one of some types.
    fn may_begin(mut bytes: Bytes<'_>) -> bool {
        let is_size = bytes.u16().is_none_or(|length| usize::from(length) >= FRAME_HEADER && length % 8 == 0);
        // The type and its padding are behind the CPU, the process and the time.
        let end = bytes.0.get(14..).unwrap_or_default();
        let is_type = end.first().is_none_or(|kind| *kind <= MAX_KIND);
        let is_padded = end.iter().skip(1).take(3).all(|byte| *byte == 0);
        is_size && is_type && is_padded
    }

    /// Adds the frame. Returns `None` if it is malformed.
    fn add_to(mut self, samples: &mut Samples<'_>) -> Result<Option<()>, Error> {
        let stamp = self.stamp;
        let (pid, tid) = (stamp.pid, stamp.tid);
        let event = match self.kind {
            kind::SAMPLE | kind::ALLOCATION => return self.add_sample(samples),
            kind::MAP => parse_map(&mut self.body, pid).map(Event::Mmap),
            kind::PROCESS => {
                let comm = self.body.c_string().map(command_name);
                comm.map(|comm| Event::Comm { pid, tid, exec: false, comm })
            }
            kind::FORK => {
                let child = self.body.u32();
                child.map(|child| Event::Fork { pid: child, tid: child, parent_pid: pid, parent_tid: pid })
            }
            kind::EXIT => Some(Event::Exit { pid, tid }),
            _ => return Ok(Some(())),
        };
        Ok(event.map(|event| samples.recording.handle_event(stamp, event)))
    }

    fn add_sample(mut self, samples: &mut Samples<'_>) -> Result<Option<()>, Error> {
        let is_allocation = self.kind == kind::ALLOCATION;
        let (name, parsed) = match is_allocation {
            true => (&b"alloc"[..], parse_allocation(&mut self.body)),
            false => (&b"cpu"[..], parse_sample(&mut self.body)),
        };
        let Some((tid, period, callchain)) = parsed else { return Ok(None) };
        // A freed block has no size.
        if period == 0 {
            return Ok(Some(()));
        }
        if tid != 0 && tid != self.stamp.pid {
            let comm = samples.recording.thread_comm(self.stamp);
            let comm = samples.recording.comms.name(comm).to_vec();
            samples.recording.set_initial_comm(tid, &comm);
            self.stamp.tid = tid;
        }
        // Only the kernel writes to which context addresses belong.
        let in_user_space;
        let callchain = Callchain::new(match is_allocation {
            true => {
                in_user_space = [&CONTEXT_USER.to_le_bytes()[..], callchain].concat();
                &in_user_space
            }
            false => callchain,
        });
        let in_kernel = callchain.addresses().next().is_some_and(|address| address.in_kernel);
        let sample = Sample { period, in_kernel, callchain, ..Sample::default() };
        let cpu = if self.has_cpu { bit::CPU } else { 0 };
        samples.add_sample(name, bit::TID | bit::TIME | cpu, self.stamp, sample)?;
        Ok(Some(()))
    }
}

/// Parses the thread, the weight and the addresses of a sample.
fn parse_sample<'a>(body: &mut Bytes<'a>) -> Option<(u32, u64, &'a [u8])> {
    let (count, _padding, tid) = (body.u16()?, body.u16()?, body.u32()?);
    Some((tid, 1, body.take(8 * usize::from(count))?))
}

/// Parses the thread, the bytes and the addresses of an allocation.
fn parse_allocation<'a>(body: &mut Bytes<'a>) -> Option<(u32, u64, &'a [u8])> {
    let (_address, size, tid) = (body.u64()?, body.u64()?, body.u32()?);
    let (count, _padding) = (body.u16()?, body.u16()?);
    Some((tid, u64::try_from(size.cast_signed()).unwrap_or(0), body.take(8 * usize::from(count))?))
}

fn parse_map<'a>(body: &mut Bytes<'a>, pid: u32) -> Option<Mmap<'a>> {
    let (start, end, offset, _inode) = (body.u64()?, body.u64()?, body.u64()?, body.u64()?);
    Some(Mmap {
        pid,
        start,
        length: end.checked_sub(start)?,
        offset,
        inode: None,
        build_id: None,
        executable: true,
        writable: false,
        path: body.c_string()?,
    })
}

/// Returns the name of a process by its command line: the file of the program, or the name of a kernel thread.
fn command_name(command: &[u8]) -> &[u8] {
    let program = split_word(command).0;
    match program.first() {
        Some(b'/') => program.rsplit(|byte| *byte == b'/').next().unwrap_or(program),
        _ => program,
    }
}
