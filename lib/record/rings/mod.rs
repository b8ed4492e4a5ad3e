//! Waiting for the ring buffers, and reading them.

pub mod epoll;
pub mod reader;
