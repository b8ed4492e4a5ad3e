//! Selection of samples: by event, time, thread and CPU.

pub(super) mod args;
pub(super) mod event;
pub(super) mod report;
pub(super) mod sample;
