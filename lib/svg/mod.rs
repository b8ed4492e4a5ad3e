//! Flame graphs: stacks in, one self-contained interactive SVG out.
//!
//! Three steps that know nothing of each other: [`layout`] says where each frame stands, [`colour`] which colour it has,
//! [`write`](write()) draws. The picture works without script; with it, the viewer draws from the whole profile, which
//! the file carries packed beside the drawn frames, so that zooming in reveals what was too narrow to draw.

pub mod colour;
mod family;
pub mod layout;
mod options;
mod payload;
mod text;
mod write;

pub use options::{MinWidth, Options};
pub use write::write;
