//! Waiting for the ring buffers, and reading them.

pub mod attachments;
pub mod epoll;
pub mod followed;
mod outsiders;
mod pending_stack;
pub mod reader;
