//! Statistics of differences: which are more than noise, and what a sample weighs.

mod beta;
pub mod significance;
pub mod weight_kind;
