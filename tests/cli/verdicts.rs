//! Differences as fg-diff, fg-csv, fg-check and fg-report judge them: none contradicts another, and equal programs rarely differ.

mod agreement;
mod growth;
mod new_code;
pub mod random;
mod rates;
mod runs;
mod sample_weights;
mod unequal;
mod waits;
