//! Waiting for the ring buffers, and reading them.

pub mod epoll;
mod outsiders;
mod pending_stack;
pub mod reader;
