//! A recording as `perf script` prints one: a header a sample, then its frames, innermost first.

use std::io::{self, Write};

use crate::markers;
use crate::perf::location::Location;
use crate::perf::objects::object::Object;
use crate::perf::recording::{Kept, Recording};
use crate::perf::symbols::frame::NamedFrame;
use crate::perf::symbols::symbolize::LocationFrames;
use crate::profile::SampleWeight;

/// The clock whose times are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Clock {
    /// That which recordings are made by: it runs since the machine started.
    #[default]
    Monotonic,
    /// The time of day, since 1970.
    Realtime,
}

/// Prints all samples in the order of their times, which are those of a clock that is so many nanoseconds ahead of the
/// recording's. The period is printed only where it is the weight: readers of such
/// text take a printed period as the weight, and 1 where there is none.
///
/// # Errors
/// Those of `out`.
pub fn write(
    recording: &Recording,
    names: &LocationFrames,
    events: &[&str],
    weight: SampleWeight,
    ahead: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut samples: Vec<&Kept> = recording.kept.iter().collect();
    samples.sort_by_key(|sample| sample.stamp.time);
    for sample in samples {
        let stack = recording.stack(sample.stack);
        let event = events.get(stack.event as usize).unwrap_or(&"");
        header(recording.comm(&stack), sample, event, weight, sample.stamp.time.saturating_add(ahead), out)?;
        for place in stack.places.iter().rev() {
            let location = &recording.locations()[*place as usize];
            for frame in names.frames()[names.range(*place)].iter().rev() {
                frame_line(location, recording.objects.get(location.object), frame, out)?;
            }
        }
        if stack.is_cut {
            writeln!(out, "\t{:16x} [truncated] ([unknown])", 0)?;
        }
        writeln!(out)?;
    }
    if recording.counts.lost > 0 {
        let time = recording.kept.iter().map(|sample| sample.stamp.time).max().unwrap_or(0);
        let (seconds, micros) = split_time(time.saturating_add(ahead));
        writeln!(
            out,
            "{:>16} {:5}/{:<5} [000] {seconds:5}.{micros:06}: PERF_RECORD_LOST lost {}",
            "", 0, 0, recording.counts.lost
        )?;
        writeln!(out)?;
    }
    Ok(())
}

fn header(
    comm: &[u8],
    sample: &Kept,
    event: &str,
    weight: SampleWeight,
    time: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let stamp = sample.stamp;
    let (seconds, micros) = split_time(time);
    let (pid, tid, cpu) = (stamp.pid, stamp.tid, stamp.cpu);
    // At the line's beginning, as perf has it where there are callchains: readers look for it there. As bytes: a name
    // need not be UTF-8.
    out.write_all(comm)?;
    write!(out, " {pid:5}/{tid:<5} [{cpu:03}] {seconds:5}.{micros:06}: ")?;
    if weight == SampleWeight::Period {
        write!(out, "{:10} ", sample.period)?;
    }
    writeln!(out, "{event}: ")
}

fn split_time(nanoseconds: u64) -> (u64, u64) {
    (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000 / 1000)
}

fn frame_line(location: &Location, object: &Object, frame: &NamedFrame, out: &mut dyn Write) -> io::Result<()> {
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
