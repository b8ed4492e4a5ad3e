//! Statistics of differential profiles: significance of differences, and the weight of one sample.

mod beta;
pub mod significance;
pub mod weight_kind;
