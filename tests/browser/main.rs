//! The viewers in Chromium and Firefox. What is done in a page and checked there is in `cases/*.js`.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod axe;
mod browser;
mod changes;
mod contrast;
mod firefox;
mod functions;
mod harness;
mod heatmap;
mod hostile;
mod labels;
mod load;
mod search;
mod table;
mod viewer;
mod viewport;
