//! Comparing files that are sorted already, without holding them in memory.

use super::{Comparison, Options, scale};
use crate::Error;
use crate::cli::Output;
use crate::folded::Kind;
use crate::folded::sorted::{Sorted, Step, merge};
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
    let (Ok(Some(scanned_before)), Ok(Some(scanned_after))) = (scan(before), scan(after)) else { return Ok(None) };
    let totals = Weights { before: scanned_before.total, after: scanned_after.total };
    let unit = scanned_before.unit.min(scanned_after.unit);
    let mut comparison = Comparison::new(totals, options.ratio(totals, 1, 1), unit, options)?;
    let mut inputs = [Sorted::new(before.open()?), Sorted::new(after.open()?)];
    let step = |side, input: &mut Sorted| match input.step()? {
        Step::Stack => {
            if side == 0 {
                input.set_weights(Weights { before: input.weights().after, after: Weight::ZERO });
            }
            Ok(true)
        }
        Step::End => Ok(false),
        _ => Err(Error::Unreadable { name: input.name().to_owned(), what: "changed while it was read".to_owned() }),
    };
    let name = output.name().to_owned();
    let each = |weights| comparison.weigh(weights, true);
    merge(&mut inputs, step, each, Some(Kind::Differential), &name, output)?;
    Ok(Some(comparison))
}

/// What a first look at a file finds.
struct Scanned {
    total: Weight,
    unit: Weight,
}

/// If it is a sorted folded file, with one weight a line and no malformed one: what it weighs.
fn scan(source: &Source) -> Result<Option<Scanned>, Error> {
    if source.is_live() {
        return Ok(None);
    }
    let mut input = Sorted::new(source.open()?);
    let mut scanned = Scanned { total: Weight::ZERO, unit: Weight::ONE };
    loop {
        match input.step()? {
            Step::Stack if input.kind() == Some(Kind::Plain) => {
                let weight = input.weights().after;
                scanned.total = scanned.total.checked_add(weight).ok_or(Error::Overflow)?;
                scanned.unit = scanned.unit.min(scale::unit_of(weight));
            }
            Step::End => return Ok(Some(scanned)),
            _ => return Ok(None),
        }
    }
}
