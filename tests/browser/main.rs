//! The picture in a real browser: what a reader does, and what strangers' names must not do.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod browser;
mod changes;
mod contrast;
mod heatmap;
mod hostile;
mod search;
mod sight;
mod viewer;
