//! Compares two files as sorted streams, in memory that does not grow with the comparison.

use super::comparison::Comparison;
use super::options::Options;
use super::scale;
use super::scale::Scaling;
use crate::Error;
use crate::folded::sorted_profile::SortedProfile;
use crate::folded::sorted_reader::{SortedInput, SortedReader, read_sorted};
use crate::folded::{LineKind, SortedFile, merge_sorted, sort_files};
use crate::input::Source;
use crate::output::Output;
use crate::profile::{Profile, Weight, Weights};

/// Compares two files and writes the result, or returns `None` and writes nothing: if the options need all stacks at
/// once, if the files may be of two copies of a program, whose names are joined, or if one cannot be read without a warning.
///
/// Each file is read once before the first byte is written. A sorted file is not held in memory.
///
/// # Errors
/// [`Error::Write`] and [`Error::Overflow`]. A file that cannot be read is not an error here; the result is `None`.
pub fn diff_streams(
    before: &Source,
    after: &Source,
    options: &Options,
    output: &mut Output,
) -> Result<Option<Comparison>, Error> {
    if need_all_stacks(options) {
        return Ok(None);
    }
    let Some(Ok([before, after])) = sort_files(&[before.clone(), after.clone()]).map(<[_; 2]>::try_from) else {
        return Ok(None);
    };
    if !can_compare(&before, &after, options) {
        return Ok(None);
    }
    let is_whole = before.is_whole && after.is_whole;
    let totals = Weights { before: before.total.after, after: after.total.after };
    let mut comparison =
        Comparison::new(totals, options.ratio(totals, 1, 1, 1.0), scale::rounding_unit(is_whole), options)?;
    let first_after = before.parts.len();
    let name = output.name().to_owned();
    let scale = |weights| {
        let weights = comparison.scale_stack(weights)?;
        Ok(comparison.flatten_stack(weights, true))
    };
    let mark = if options.flattens() { Some(flattened_mark()?) } else { None };
    let has_mark = mark.is_some();
    let inputs = read_sorted(before.parts.into_iter().chain(after.parts).chain(mark));
    merge_sorted(
        inputs,
        |number, input| next_of_side(input, number < first_after),
        scale,
        Some(LineKind::Differential),
        &name,
        output,
    )?;
    // The mark is no stack of either side.
    comparison.stacks -= u64::from(has_mark);
    Ok(Some(comparison))
}

/// True if the options need all stacks before the first one can be written.
fn need_all_stacks(options: &Options) -> bool {
    options.significant.is_some()
        || matches!(options.scaling, Scaling::Median)
        || options.strip_hex
        || options.match_renames
        || !options.renames.is_empty()
}

/// True if two sorted files can be compared stack by stack.
fn can_compare(before: &SortedFile, after: &SortedFile, options: &Options) -> bool {
    if before.is_empty || after.is_empty || (!options.exact_names && before.names.differ(&after.names)) {
        return false;
    }
    // What was lost must be known before the first stack is scaled.
    if matches!(options.scaling, Scaling::Totals) && (before.names.have_lost() || after.names.have_lost()) {
        return false;
    }
    let is_whole = before.is_whole && after.is_whole;
    let is_own_text = before.parts.len() == 1 && after.parts.len() == 1;
    // Fractions of one stack in several parts may add up to a whole number, which decides the unit of rounding.
    is_whole || is_own_text || matches!(options.scaling, Scaling::Runs)
}

/// Moves to the next stack, and makes its weight that of the side before if it is; returns false at the end.
fn next_of_side(input: &mut SortedReader, is_before: bool) -> Result<bool, Error> {
    let has_stack = input.next_stack()?;
    if is_before {
        input.set_weights(Weights { before: input.weights().after, after: Weight::ZERO });
    }
    Ok(has_stack)
}

/// Returns an input with nothing but the stack that says that differences may have been flattened.
fn flattened_mark() -> Result<SortedInput, Error> {
    let mut profile = Profile::new(false);
    super::mark_as_flattened(&mut profile)?;
    Ok(SortedInput::Profile(Box::new(SortedProfile::new(profile))))
}
