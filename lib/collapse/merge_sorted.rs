//! Merges sorted folded files as streams.

use super::detect;
use super::document::ALL_WEIGHTLESS;
use super::driver::worker_threads;
use super::filter::sample::filters_samples;
use super::formats;
use super::options::Options;
use super::useless_options;
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::sorted_reader::{LineStatus, SortedInput, SortedReader, read_sorted};
use crate::folded::{
    GREP_OUTPUT, LineKind, NO_MESSAGE, check_sorted, is_grep_output, is_message, merge_parallel, merge_sorted,
    no_stacks,
};
use crate::input::{Blocks, FileRange, Source};
use crate::output::Output;
use crate::profile::{SampleWeight, Weights};

/// Highest number of files that are merged as streams: usually, no more may be open at once. Each would be read twice,
/// once to check its order.
const MAX_STREAMS: usize = 1000;

/// Merges all sources and returns true, if all are sorted folded files and the options do not filter samples. Else
/// nothing is written and the result is false.
///
/// Each file is scanned before the first byte is written, so that a file out of order is found in time. Pipes do not
/// qualify, because they can be read only once.
///
/// # Errors
/// [`Error::Write`] and [`Error::Overflow`]. A source that cannot be read counts as not sorted.
pub fn merge_if_sorted(
    sources: &[Source],
    options: &Options,
    diagnostics: &mut Diagnostics,
    output: &mut Output,
) -> Result<bool, Error> {
    if filters_samples(options) || sources.len() > MAX_STREAMS {
        return Ok(false);
    }
    let Some(scanned) = check_sorted(sources, |input| is_folded(input, options)) else { return Ok(false) };
    let mut kinds = scanned.iter().filter_map(|scanned| scanned.kind);
    let first = kinds.next();
    // Files of several kinds, and files without any stack or caller, are reported when they are read again.
    if first.is_none()
        || kinds.any(|kind| Some(kind) != first)
        || scanned.iter().any(|scanned| scanned.kind.is_some() && !scanned.has_callers)
        || scanned.iter().all(|scanned| scanned.total == Weights::default())
    {
        return Ok(false);
    }
    report_options(sources, options, diagnostics)?;
    for (source, _) in sources.iter().zip(&scanned).filter(|(_, scanned)| scanned.kind.is_none()) {
        diagnostics.warn(&format!("{}: no stacks found", source.name()));
    }
    let name = output.name().to_owned();
    // If there are more files than may be open at once, they are not merged as streams.
    let Ok(files) = open_plain_files(sources) else { return Ok(false) };
    match files.zip(first) {
        Some((files, kind)) => merge_parallel(files, kind, worker_threads(options), &name, output)?,
        None => {
            let Ok(inputs) = open_sorted(sources) else { return Ok(false) };
            merge_sorted(inputs, |_, input| input.next_stack(), Ok, None, &name, output)?;
        }
    }
    Ok(true)
}

/// Merges sources, pipes among them, that the caller declares to be sorted folded text.
///
/// # Errors
/// [`Error::Malformed`] at the first line out of order, [`Error::Invalid`] if there is no stack, and those of
/// [`merge_if_sorted`].
pub fn merge_declared_sorted(
    sources: &[Source],
    options: &Options,
    diagnostics: &mut Diagnostics,
    output: &mut Output,
) -> Result<(), Error> {
    let name = output.name().to_owned();
    report_options(sources, options, diagnostics)?;
    let (mut has_stacks, mut has_weight) = (false, false);
    let inputs = open_sorted(sources)?;
    merge_sorted(
        inputs,
        |_, input: &mut SortedReader| {
            let is_stack = next_declared_sorted(input, diagnostics)?;
            has_stacks |= is_stack;
            let is_comparison = input.kind() == Some(LineKind::Differential);
            has_weight |= is_stack && (is_comparison || input.weights() != Weights::default());
            Ok(is_stack)
        },
        Ok,
        None,
        &name,
        output,
    )?;
    match (has_stacks, has_weight) {
        (true, true) => Ok(()),
        (true, false) => Err(Error::Invalid(ALL_WEIGHTLESS.to_owned())),
        (false, _) => Err(no_stacks(sources)),
    }
}

/// Says which options have no effect on folded stacks.
fn report_options(sources: &[Source], options: &Options, diagnostics: &mut Diagnostics) -> Result<(), Error> {
    sources.iter().try_for_each(|source| {
        let name = source.name();
        useless_options::report(&name, &formats::folded::FORMAT, options, diagnostics)?;
        if options.weight == SampleWeight::Samples {
            useless_options::warn_of_sums(&name, None, diagnostics);
        }
        Ok(())
    })
}

/// Reads the next stack, and reports malformed lines before it. Returns false at the end.
fn next_declared_sorted(input: &mut SortedReader, diagnostics: &mut Diagnostics) -> Result<bool, Error> {
    loop {
        match input.next_line()? {
            LineStatus::Stack if is_sum(input.stack()) => {
                diagnostics.malformed(input.name(), input.line_number(), NO_MESSAGE)?
            }
            LineStatus::Stack => return Ok(true),
            LineStatus::End => return Ok(false),
            LineStatus::Malformed => {
                diagnostics.malformed(input.name(), input.line_number(), "expected a stack and its weight")?
            }
            LineStatus::OutOfOrder => {
                let what = "out of order: --sorted needs input in the order of fg-collapse; omit --sorted".to_owned();
                return Err(Error::Malformed { name: input.name().to_owned(), line: input.line_number(), what });
            }
        }
    }
}

/// Returns true for a line that may be a message: which of them are frames of other stacks is not known in a stream.
fn is_sum(stack: &[u8]) -> bool {
    memchr::memchr(b';', stack).is_none() && is_message(stack)
}

/// Opens all sources as sorted streams.
fn open_sorted(sources: &[Source]) -> Result<Vec<SortedReader>, Error> {
    let open = |source: &Source| {
        let mut input = source.open()?;
        match is_grep_output(input.head()?) {
            true => Err(Error::Unreadable { name: input.name().to_owned(), what: GREP_OUTPUT.to_owned() }),
            false => Ok(SortedInput::Text(input)),
        }
    };
    Ok(read_sorted(sources.iter().map(open).collect::<Result<Vec<_>, Error>>()?))
}

/// Opens all sources as files, if none is compressed or a pipe.
fn open_plain_files(sources: &[Source]) -> Result<Option<Vec<FileRange>>, Error> {
    sources.iter().map(FileRange::open).collect()
}

/// True if an input is folded text or blank, without colours: ranges of files are read as they are.
fn is_folded(input: &mut Blocks, options: &Options) -> bool {
    if !input.has_colours().is_ok_and(|has_colours| !has_colours) {
        return false;
    }
    match detect::detect_format(input, options) {
        Ok(Some(found)) => found.text_before.count == 0 && formats::is_folded(found.format),
        // A blank file is empty folded text.
        other => other.is_ok(),
    }
}
