//! Comparing files that are sorted already, without holding them in memory.

use super::{Comparison, Options, scale};
use crate::Error;
use crate::cli::Output;
use crate::folded::sorted::Sorted;
use crate::folded::{Kind, merge, scan};
use crate::input::Source;
use crate::profile::{Weight, Weights};

/// Compares two files and writes the result, if they are sorted folded files and the options need no look at all stacks
/// together; else nothing is done. Each is scanned once before the first byte is written.
///
/// # Errors
/// [`Error::Write`] and [`Error::Overflow`]. What cannot be read is no sorted file.
pub fn diff_if_sorted(
    before: &Source,
    after: &Source,
    options: &Options,
    output: &mut Output,
) -> Result<Option<Comparison>, Error> {
    if options.significant || options.strip_hex || !options.renames.is_empty() {
        return Ok(None);
    }
    let sources = [before.clone(), after.clone()];
    let Some(scanned) = scan(&sources, |_| true) else { return Ok(None) };
    let [before, after] = scanned[..] else { return Ok(None) };
    if [before.kind, after.kind].contains(&Some(Kind::Differential)) {
        return Ok(None);
    }
    let totals = Weights { before: before.total.after, after: after.total.after };
    let unit = scale::unit(before.is_whole && after.is_whole);
    let mut comparison = Comparison::new(totals, options.ratio(totals, 1, 1), unit, options)?;
    let inputs = sources.iter().map(Source::open).collect::<Result<_, _>>()?;
    let step = |side, input: &mut Sorted| {
        let more = input.step_on()?;
        if side == 0 {
            input.set_weights(Weights { before: input.weights().after, after: Weight::ZERO });
        }
        Ok(more)
    };
    let name = output.name().to_owned();
    let each = |weights| comparison.weigh(weights, true);
    merge(inputs, step, each, Some(Kind::Differential), &name, output)?;
    Ok(Some(comparison))
}
