//! Selects slices, which have a start and a duration: by thread as a whole, and by time the part within the span.
//! Sums by thread or process are selected likewise, but not by time.

use super::filter::sample::{SampleFilter, SampleInfo};
use super::options::Options;
use crate::Error;

/// The selection of slices.
pub(super) struct SliceFilter {
    /// The conditions but for time.
    filter: SampleFilter,
    /// The bounds of the span of time in nanoseconds; the end is not included. `None` if there is no span.
    window: Option<(i128, i128)>,
}

impl SliceFilter {
    /// Creates the selection that the options ask for; `earliest` is the time in nanoseconds of the first slice.
    ///
    /// # Errors
    /// [`Error::Invalid`] if an option cannot apply to slices.
    pub(super) fn new(options: &Options, earliest: Option<u64>) -> Result<Self, Error> {
        let option = match options {
            Options { spans: Some(_), .. } => "--span",
            Options { offset: Some(_), .. } => "--offset",
            Options { cpus: Some(_), .. } => "--cpu",
            _ => "",
        };
        if !option.is_empty() {
            return Err(Error::Invalid(format!("{option} needs samples, but the input has slices or sums")));
        }
        let window = options.time.map(|span| span.bounds(earliest.unwrap_or(0)));
        let window = window.map(|(from, to)| (from.map_or(i128::MIN, i128::from), to.map_or(i128::MAX, i128::from)));
        Ok(Self { filter: SampleFilter::new(&Options { time: None, ..options.clone() }), window })
    }

    /// Creates the selection that the options ask for, of sums that have no time.
    ///
    /// # Errors
    /// [`Error::Invalid`] if an option cannot apply to sums.
    pub(super) fn for_sums(options: &Options) -> Result<Self, Error> {
        match options.time {
            Some(_) => Err(Error::Invalid("--time needs samples, but the input has sums".to_owned())),
            None => Self::new(options, None),
        }
    }

    /// Returns true if the slices of a thread are selected. A list of processes or threads selects none whose number is not
    /// known.
    pub(super) fn accepts(&self, thread: &SampleInfo<'_>) -> bool {
        self.filter.accepts(thread).unwrap_or(false)
    }

    /// Returns the bounds of the span of time in units of which a nanosecond has this number.
    pub(super) fn window(&self, per_nanosecond: i128) -> Option<(i128, i128)> {
        let scale = |bound: i128| bound.saturating_mul(per_nanosecond);
        self.window.map(|(from, to)| (scale(from), scale(to)))
    }
}
