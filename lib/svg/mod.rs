//! Flame graphs: stacks in, one self-contained interactive SVG out.
//!
//! Three steps that know nothing of each other: [`layout`] says where each frame stands, [`colour`] which colour it has,
//! [`write`](write()) draws. The picture works without script; with it, the viewer draws from the whole profile, which
//! the file carries packed beside the drawn frames, so that zooming in reveals what was too narrow to draw.

mod captions;
pub mod colour;
mod divide;
mod drawing;
mod family;
mod frames;
pub mod layout;
mod merge;
pub mod name_attributes;
mod options;
pub mod palette_map;
mod payload;
pub mod reshape;
mod stream;
pub(crate) mod text;
mod write;

pub use drawing::Drawing;
pub use options::{Background, Delta, MinWidth, Options};
pub use payload::Payload;
pub(crate) use payload::{packed_bytes, push_number};
pub(crate) use text::{escape, visible};
pub use write::write;
pub(crate) use write::{Additions, write_element};
