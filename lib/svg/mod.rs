//! Flame graphs: folded stacks are drawn as one self-contained, interactive SVG.
//!
//! The parts are independent. [`layout`] computes where each frame goes, [`colour`] chooses its colour, and
//! [`write`](write()) writes the SVG. The image is complete without script. With script, the viewer draws from the
//! whole profile, which the file contains in packed form beside the drawn frames. So zooming in shows frames that were
//! too narrow to draw.
//!
//! [`draw`] chooses how the stacks reach the layout:
//!
//! | input | way | memory grows with |
//! |---|---|---|
//! | in time order (flame chart) | `layout_stream` | drawn frames |
//! | one sorted file, or a source that the caller knows to be sorted | `layout_stream` | drawn frames |
//! | one unsorted file | `layout_parallel` | lines |
//! | everything else | a [`Profile`](crate::profile::Profile) | distinct stacks |

mod c_symbol;
mod captions;
pub mod colour;
mod drawing;
mod fixed_colours;
mod frames;
mod html_page;
mod label;
mod language;
pub mod layout;
mod layout_parallel;
mod layout_stream;
mod module;
mod module_colours;
pub mod name_attributes;
mod name_parts;
mod options;
mod packed_profile;
pub mod palette_map;
mod places;
mod ramp;
pub mod rgb;
pub mod significance;
mod stack_list;
pub(crate) mod text;
mod transform;
mod write;

pub use drawing::Drawing;
pub use html_page::write_page;
pub(crate) use html_page::{PAGE_END, write_page_head};
pub use options::{Background, DEFAULT_FONT, Delta, MinWidth, Options, StackOptions, StackOrder};
pub use packed_profile::PackedProfile;
pub(crate) use packed_profile::{compress, push_number};
pub(crate) use text::{escape, visible};
pub use write::write;
pub(crate) use write::{PageParts, write_element};

use crate::diagnostics::Diagnostics;
use crate::input::Source;
use crate::profile::Weights;
use crate::{Error, folded};

/// Reads folded stacks from all sources and lays them out, ready for [`write`](write()).
///
/// If all weights of a comparison are 0 after, [`Options::vanished`] is set, because there is nothing else to draw. A sorted
/// stream, which cannot be read again, has nothing to draw then.
///
/// # Errors
/// [`Error::Read`], [`Error::Overflow`], [`Error::Malformed`] for a line out of order if the caller promised
/// [`StackOrder::Sorted`], and with strict diagnostics [`Error::Malformed`] for the first malformed line.
pub fn draw(
    sources: &[Source],
    stacks: &StackOptions,
    options: &mut Options,
    diagnostics: &mut Diagnostics,
) -> Result<Drawing, Error> {
    if stacks.order == StackOrder::Time {
        return layout_stream::draw_in_time_order(sources, options, diagnostics);
    }
    if let [source] = sources
        && !transform::is_needed(stacks, options)
        && let Some(drawing) = draw_source(source, stacks.order, options, diagnostics)?
        && !(drawing.differential && has_vanished(drawing.layout.total) && is_file(source))
    {
        return Ok(drawing);
    }
    let profile = folded::read_profile(sources, diagnostics)?;
    options.vanished |= profile.is_differential() && has_vanished(profile.total());
    let profile = transform::apply(profile, stacks, options)?;
    match stacks.reverse {
        true => Drawing::from_reversed(&profile, &transform::reverse(&profile)?, options),
        false => Drawing::from_profile(&profile, options),
    }
}

/// True if there is weight before, and none after.
fn has_vanished(total: Weights) -> bool {
    total.after.is_zero() && !total.before.is_zero()
}

/// True for a source that can be read again.
fn is_file(source: &Source) -> bool {
    matches!(source, Source::File(path) if path.is_file())
}

/// Draws one source without building a profile. `None` if that is impossible; the source can then be read again.
fn draw_source(
    source: &Source,
    order: StackOrder,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Result<Option<Drawing>, Error> {
    let is_promised = order == StackOrder::Sorted;
    // If the stacks turn out to be unsorted, a file can be read again, a pipe cannot.
    if (is_promised || is_file(source))
        && let Some(drawing) = layout_stream::draw_sorted(source, is_promised, options, diagnostics)?
    {
        return Ok(Some(drawing));
    }
    layout_parallel::draw_file(source, options)
}
