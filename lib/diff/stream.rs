//! Comparing files as sorted streams, without holding the comparison in memory.

use super::scale::Scaling;
use super::{Comparison, Options, scale};
use crate::Error;
use crate::folded::sorted_reader::{SortedReader, read_sorted};
use crate::folded::{Kind, merge_sorted, sort_files};
use crate::input::Source;
use crate::output::Output;
use crate::profile::{Weight, Weights};

/// Compares two files and writes the result, if the options need no look at all stacks together and there is nothing to say
/// of the files; else nothing is done. Each is read once before the first byte is written, and one that is sorted is not
/// held in memory.
///
/// # Errors
/// [`Error::Write`] and [`Error::Overflow`]. What cannot be read is no file to compare so.
pub fn diff_streams(
    before: &Source,
    after: &Source,
    options: &Options,
    output: &mut Output,
) -> Result<Option<Comparison>, Error> {
    if options.significant || options.strip_hex || !options.renames.is_empty() {
        return Ok(None);
    }
    let Some(Ok([before, after])) = sort_files(&[before.clone(), after.clone()]).map(<[_; 2]>::try_from) else {
        return Ok(None);
    };
    let is_whole = before.is_whole && after.is_whole;
    let is_own_text = before.texts.len() == 1 && after.texts.len() == 1;
    // Fractions of one stack may add up to a whole number.
    if !is_whole && !is_own_text && !matches!(options.scaling, Scaling::Runs) {
        return Ok(None);
    }
    let totals = Weights { before: before.total.after, after: after.total.after };
    let mut comparison = Comparison::new(totals, options.ratio(totals, 1, 1), scale::unit(is_whole), options)?;
    let first_after = before.texts.len();
    let step = |number, input: &mut SortedReader| {
        let more = input.next_stack()?;
        if number < first_after {
            input.set_weights(Weights { before: input.weights().after, after: Weight::ZERO });
        }
        Ok(more)
    };
    let name = output.name().to_owned();
    let each = |weights| comparison.weigh(weights, true);
    let texts = read_sorted(before.texts.into_iter().chain(after.texts));
    merge_sorted(texts, step, each, Some(Kind::Differential), &name, output)?;
    Ok(Some(comparison))
}
