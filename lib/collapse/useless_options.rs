//! Says which options have no effect on an input.

use super::document::no_events;
use super::filter::args::EventChoice;
use super::filter::sample::selects_samples;
use super::format::Format;
use super::formats::{is_folded, is_perf_sched, time_problem};
use super::input_summary::WeightUnit;
use super::options::Options;
use crate::Error;
use crate::diagnostics::Diagnostics;

/// Warns of options that have no effect on an input of a format.
///
/// # Errors
/// [`Error::Invalid`] if `--event` names an event and the format has none, or if samples are selected by time, thread or CPU, which
/// are not read from the format: the whole profile is not what was asked for.
pub(super) fn report(
    name: &str,
    format: &Format,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Result<(), Error> {
    if let EventChoice::Named(wanted) = &options.event
        && is_folded(format)
    {
        return Err(no_events(name, wanted));
    }
    if selects_samples(options) && !format.has_times {
        let what = "no time, thread or CPU of samples is read from this format; omit --time, --comm, --span and similar options";
        return Err(Error::Invalid(format!("{name}: {what}")));
    }
    if options.no_idle && !format.has_times {
        diagnostics.warn(&format!("{name}: no thread of samples is read from this format; --no-idle has no effect"));
    }
    if !options.labels.is_empty() && !format.has_labels {
        diagnostics.warn(&format!("{name}: no labels are read from this format; --label has no effect"));
    }
    let of_frames = list_frame_options(options).join(", ");
    if is_folded(format) && !of_frames.is_empty() {
        let what = "has no effect on folded stacks, whose frames are read as they are";
        diagnostics.warn(&format!("{name}: {of_frames} {what}"));
    }
    Ok(())
}

/// Checks that times can be read of an input that begins with `head`, if the caller or an option needs them.
///
/// # Errors
/// [`Error::Unreadable`].
pub(super) fn check_times(
    name: &str,
    format: &Format,
    head: &[u8],
    options: &Options,
    are_needed: bool,
) -> Result<(), Error> {
    let has_option = options.time.is_some() || options.offset.is_some() || options.spans.is_some();
    let are_needed = are_needed || has_option || is_perf_sched(format);
    match time_problem(format, head).filter(|_| are_needed) {
        Some(what) => Err(Error::Unreadable { name: name.to_owned(), what: what.to_owned() }),
        None => Ok(()),
    }
}

/// Returns the options about frames that apply to the output of profilers only.
fn list_frame_options(options: &Options) -> Vec<&'static str> {
    let Options { pid, tid, kernel, jit, addrs, srcline, no_inline, .. } = *options;
    let given = [
        (pid, "--pid"),
        (tid, "--tid"),
        (kernel, "--kernel"),
        (jit, "--jit"),
        (addrs, "--addrs"),
        (srcline, "--srcline"),
        (!options.skip_after.is_empty(), "--skip-after"),
        (options.symfs.is_some(), "--symfs"),
        (options.kallsyms.is_some(), "--kallsyms"),
        (no_inline, "--no-inline"),
    ];
    given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name).collect()
}

/// Warns that `--weight samples` does not apply to an input.
pub(super) fn warn_of_sums(name: &str, unit: Option<&WeightUnit>, diagnostics: &mut Diagnostics) {
    let unit = unit.map_or(String::new(), |unit| format!(" of {}", unit.name));
    diagnostics.warn(&format!("{name}: the input has sums{unit}, not single samples; --weight samples has no effect"));
}
