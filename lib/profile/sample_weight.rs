//! The choice of weight of a sample.

/// The weight of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum SampleWeight {
    /// Its period, as the event counts; 1 if the sample has none
    #[default]
    Period,
    /// Each sample counts as 1.
    Samples,
    /// Its period in microseconds. For recordings whose periods are nanoseconds
    #[value(skip)]
    Microseconds,
}
