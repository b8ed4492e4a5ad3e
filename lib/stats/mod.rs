//! Statistics of comparisons: what a sample weighs, and which differences are more than noise.

mod beta;
pub mod caveat;
pub mod distributions;
pub mod false_discovery;
pub mod judgement;
pub mod sample_weight;
mod spread;
mod variance_prior;
mod weight_pairs;
mod weight_sizes;
