//! Folded files that are sorted already: merged without holding them in memory.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::formats::folded;
use super::{Options, detect};
use crate::Error;
use crate::cli::Output;
use crate::diagnostics::Diagnostics;
use crate::folded::Kind;
use crate::folded::sorted::{Sorted, Step, merge};
use crate::input::Source;

/// Merges all sources, if they are sorted folded files of which nothing is asked that they do not tell, and says whether
/// they are. Each is scanned once before the first
/// byte is written, so that a file out of order is found in time; what is no file is not looked at, since it can be read
/// only once.
///
/// # Errors
/// [`Error::Write`] and [`Error::Overflow`]. What cannot be read is no sorted file.
pub fn merge_if_sorted(sources: &[Source], options: &Options, output: &mut Output) -> Result<bool, Error> {
    if options.ask_for_origin() || !are_sorted(sources, options) {
        return Ok(false);
    }
    let name = output.name().to_owned();
    let step = |_, input: &mut Sorted| match input.step()? {
        Step::Stack => Ok(true),
        Step::End => Ok(false),
        _ => Err(Error::Unreadable { name: input.name().to_owned(), what: "changed while it was read".to_owned() }),
    };
    merge(&mut open(sources)?, step, Ok, None, &name, output)?;
    Ok(true)
}

/// Merges sources that are promised to be sorted folded text, pipes too.
///
/// # Errors
/// [`Error::Malformed`] where they are not, and as [`merge_if_sorted`].
pub fn merge_promised(sources: &[Source], diagnostics: &mut Diagnostics, output: &mut Output) -> Result<(), Error> {
    let name = output.name().to_owned();
    let step = |_, input: &mut Sorted| loop {
        match input.step()? {
            Step::Stack => return Ok(true),
            Step::End => return Ok(false),
            Step::Malformed => {
                diagnostics.malformed(input.name(), input.number(), "expected a stack and its weight")?
            }
            Step::Disorder => {
                let what = "out of order, which --sorted says it is not".to_owned();
                return Err(Error::Malformed { name: input.name().to_owned(), line: input.number(), what });
            }
        }
    };
    merge(&mut open(sources)?, step, Ok, None, &name, output)
}

fn open(sources: &[Source]) -> Result<Vec<Sorted>, Error> {
    sources.iter().map(|source| Ok(Sorted::new(source.open()?))).collect()
}

/// Whether all are sorted folded files with as many weights a line: scanned on all cores.
fn are_sorted(sources: &[Source], options: &Options) -> bool {
    let (next, kinds) = (AtomicUsize::new(0), Mutex::new(Some(Vec::new())));
    let scan = || {
        while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
            let kind = kind_if_sorted(source, options).ok().flatten();
            let mut kinds = kinds.lock().unwrap_or_else(PoisonError::into_inner);
            match (kind, &mut *kinds) {
                (Some(kind), Some(kinds)) => kinds.extend(kind),
                _ => {
                    *kinds = None;
                    return;
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(sources.len());
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(scan);
        }
        scan();
    });
    let kinds = kinds.into_inner().unwrap_or_else(PoisonError::into_inner);
    kinds.is_some_and(|kinds| kinds.windows(2).all(|pair| pair[0] == pair[1]))
}

/// If it is a folded file without a malformed line, and sorted: how many weights its lines have, if there are any.
fn kind_if_sorted(source: &Source, options: &Options) -> Result<Option<Option<Kind>>, Error> {
    // What is no file can be read only once, and standard input is never a file of its own.
    if *source == Source::Stdin || source.is_live() {
        return Ok(None);
    }
    let mut input = source.open()?;
    match detect::format(&mut input, options)? {
        None => return Ok(Some(None)),
        Some(format) if std::ptr::eq(format, &folded::FORMAT) => {}
        Some(_) => return Ok(None),
    }
    let mut input = Sorted::new(input);
    loop {
        match input.step()? {
            Step::Stack => {}
            step => return Ok((step == Step::End).then_some(input.kind())),
        }
    }
}
