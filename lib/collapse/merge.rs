//! Folded files that are sorted already: merged without holding them in memory.

use super::driver::working;
use super::{Options, detect};
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::sorted_reader::{LineStatus, SortedReader, read_sorted};
use crate::folded::{check_sorted, merge_parallel, merge_sorted};
use crate::input::{Blocks, FileRange, Source};
use crate::output::Output;

/// Merges all sources, if they are sorted folded files of which nothing is asked that they do not tell, and says whether
/// they are. Each is scanned once before the first
/// byte is written, so that a file out of order is found in time; what is no file is not looked at, since it can be read
/// only once.
///
/// # Errors
/// [`Error::Write`] and [`Error::Overflow`]. What cannot be read is no sorted file.
pub fn merge_if_sorted(sources: &[Source], options: &Options, output: &mut Output) -> Result<bool, Error> {
    if options.ask_for_origin() {
        return Ok(false);
    }
    let Some(scanned) = check_sorted(sources, |input| is_folded(input, options)) else { return Ok(false) };
    let mut kinds = scanned.iter().filter_map(|scanned| scanned.kind);
    let first = kinds.next();
    if kinds.any(|kind| Some(kind) != first) {
        return Ok(false);
    }
    let name = output.name().to_owned();
    // More files than may be open at once are read one after the other.
    let Ok(files) = plain_files(sources) else { return Ok(false) };
    match files.zip(first) {
        Some((files, kind)) => merge_parallel(files, kind, working(options), &name, output)?,
        None => {
            let Ok(inputs) = open(sources) else { return Ok(false) };
            merge_sorted(inputs, |_, input| input.next_stack(), Ok, None, &name, output)?;
        }
    }
    Ok(true)
}

/// Merges sources that are promised to be sorted folded text, pipes too.
///
/// # Errors
/// [`Error::Malformed`] where they are not, and as [`merge_if_sorted`].
pub fn merge_promised(sources: &[Source], diagnostics: &mut Diagnostics, output: &mut Output) -> Result<(), Error> {
    let name = output.name().to_owned();
    let step = |_, input: &mut SortedReader| loop {
        match input.next_line()? {
            LineStatus::Stack => return Ok(true),
            LineStatus::End => return Ok(false),
            LineStatus::Malformed => {
                diagnostics.malformed(input.name(), input.number(), "expected a stack and its weight")?
            }
            LineStatus::OutOfOrder => {
                let what = "out of order, which --sorted says it is not".to_owned();
                return Err(Error::Malformed { name: input.name().to_owned(), line: input.number(), what });
            }
        }
    };
    merge_sorted(open(sources)?, step, Ok, None, &name, output)
}

fn open(sources: &[Source]) -> Result<Vec<SortedReader>, Error> {
    Ok(read_sorted(sources.iter().map(Source::open).collect::<Result<Vec<_>, _>>()?))
}

/// The files, if none is compressed.
fn plain_files(sources: &[Source]) -> Result<Option<Vec<FileRange>>, Error> {
    sources.iter().map(FileRange::open).collect()
}

fn is_folded(input: &mut Blocks, options: &Options) -> bool {
    match detect::format(input, options) {
        Ok(Some(format)) => format.is_folded(),
        // Nothing at all is nothing to merge.
        other => other.is_ok(),
    }
}
