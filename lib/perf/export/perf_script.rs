//! Writes a recording in the format of `perf script`: a header per sample, then its frames, innermost first.

use std::io::{self, Write};

use crate::markers;
use crate::perf::location::Location;
use crate::perf::objects::object::Object;
use crate::perf::recording::{Recording, SampleRecord};
use crate::perf::symbols::frame::NamedFrame;
use crate::perf::symbols::symbolize::LocationFrames;
use crate::profile::SampleWeight;

/// The clock whose times are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Clock {
    /// The clock of the recording: the time since the machine was booted.
    #[default]
    Monotonic,
    /// The time of day, since 1970.
    Realtime,
}

/// Writes all samples, sorted by time.
///
/// `clock_offset` is what is added to the times, in nanoseconds. A sample's period is written only if it is the
/// `weight`: readers of this format take a period as the weight, and 1 if there is none.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(
    recording: &Recording,
    names: &LocationFrames,
    events: &[&str],
    weight: SampleWeight,
    clock_offset: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut samples: Vec<&SampleRecord> = recording.sample_records.iter().collect();
    samples.sort_by_key(|sample| sample.stamp.time);
    for sample in &samples {
        let stack = recording.stack(sample.stack);
        let event = events.get(stack.event as usize).unwrap_or(&"");
        let period = (weight == SampleWeight::Period).then_some(sample.period);
        let time = sample.stamp.time.saturating_add(clock_offset);
        write_header(recording.comm(&stack), sample, event, period, time, out)?;
        for location_id in stack.locations.iter().rev() {
            let location = &recording.locations()[*location_id as usize];
            for frame in names.frames()[names.range(*location_id)].iter().rev() {
                write_frame(location, recording.objects.get(location.object), frame, out)?;
            }
        }
        if stack.is_truncated {
            write_truncated(out)?;
        }
        writeln!(out)?;
    }
    if recording.counts.lost > 0 {
        let time = samples.last().map_or(0, |sample| sample.stamp.time);
        write_lost(recording.counts.lost, time.saturating_add(clock_offset), out)?;
    }
    Ok(())
}

fn write_header(
    comm: &[u8],
    sample: &SampleRecord,
    event: &str,
    period: Option<u64>,
    time: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let stamp = sample.stamp;
    let (seconds, micros) = split_time(time);
    let (pid, tid, cpu) = (stamp.pid, stamp.tid, stamp.cpu);
    // At the start of the line, where perf writes it if there are callchains, and where readers expect it. As bytes,
    // since a name may not be UTF-8.
    out.write_all(comm)?;
    write!(out, " {pid:5}/{tid:<5} [{cpu:03}] {seconds:5}.{micros:06}: ")?;
    if let Some(period) = period {
        write!(out, "{period:10} ")?;
    }
    // Readers divide the line at blanks; names of functions that are probed may contain some.
    writeln!(out, "{}: ", event.replace(char::is_whitespace, "_"))
}

/// Writes the `[truncated]` frame of a stack that was cut before its root.
fn write_truncated(out: &mut dyn Write) -> io::Result<()> {
    write!(out, "\t{:16x} ", 0)?;
    out.write_all(&[markers::TRUNCATED, b" (", markers::UNKNOWN, b")\n"].concat())
}

/// Writes how many samples were lost.
fn write_lost(lost: u64, time: u64, out: &mut dyn Write) -> io::Result<()> {
    let (seconds, micros) = split_time(time);
    writeln!(out, "{:>16} {:5}/{:<5} [000] {seconds:5}.{micros:06}: PERF_RECORD_LOST lost {lost}", "", 0, 0)?;
    writeln!(out)
}

/// Splits nanoseconds into seconds and microseconds.
fn split_time(nanoseconds: u64) -> (u64, u64) {
    (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000 / 1000)
}

fn write_frame(location: &Location, object: &Object, frame: &NamedFrame, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "\t{:16x} ", location.ip)?;
    let name: &[u8] = if frame.has_symbol { &frame.name } else { markers::UNKNOWN };
    out.write_all(name)?;
    if let Some(start) = frame.start {
        write!(out, "+0x{:x}", location.address.wrapping_sub(start))?;
    }
    match object {
        _ if frame.is_inlined => writeln!(out, " (inlined)")?,
        Object::Jit { pid, .. } if frame.has_symbol => writeln!(out, " (/tmp/perf-{pid}.map)")?,
        _ => {
            out.write_all(b" (")?;
            out.write_all(object.path())?;
            out.write_all(b")\n")?;
        }
    }
    if let Some(source) = &frame.source {
        out.write_all(b"  ")?;
        out.write_all(source)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
