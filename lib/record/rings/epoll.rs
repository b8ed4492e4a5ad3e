//! Waits for ring buffers, the target's exit and signals.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, Event, EventData, EventFlags};

use crate::{Error, io_error_text};

/// The token of files that announce samples, which can wait a little before they are read.
pub const SAMPLES: u64 = 0;

/// A set of files to wait for.
pub struct EpollSet {
    all: OwnedFd,
    /// All files but those with the token [`SAMPLES`].
    urgent: OwnedFd,
    events: Vec<Event>,
}

impl EpollSet {
    /// Creates an empty set.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel refuses.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { all: create_epoll()?, urgent: create_epoll()?, events: Vec::with_capacity(64) })
    }

    /// Adds a file. Its events have the token; [`SAMPLES`] is for files whose events can wait.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel refuses.
    pub fn add(&self, file: impl AsFd, token: u64) -> Result<(), Error> {
        let add = |epoll: &OwnedFd| epoll::add(epoll, file.as_fd(), EventData::new_u64(token), EventFlags::IN);
        add(&self.all).map_err(to_error)?;
        if token == SAMPLES { Ok(()) } else { add(&self.urgent).map_err(to_error) }
    }

    /// Removes a file. Returns true if it was in the set.
    pub fn remove(&self, file: impl AsFd) -> bool {
        let was_urgent = epoll::delete(&self.urgent, file.as_fd()).is_ok();
        epoll::delete(&self.all, file.as_fd()).is_ok() || was_urgent
    }

    /// Waits until a file is readable or the timeout expires. With `sample_delay`, files with the token [`SAMPLES`] do
    /// not end the wait before that time.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel refuses.
    pub fn wait(&mut self, timeout: Option<Duration>, sample_delay: Option<Duration>) -> Result<&[Event], Error> {
        let sample_delay = sample_delay.map(|delay| delay.min(timeout.unwrap_or(delay)));
        if let Some(delay) = sample_delay {
            wait_epoll(&self.urgent, &mut self.events, Some(delay))?;
        }
        if sample_delay.is_none() || self.events.is_empty() {
            let remaining = timeout.map(|timeout| timeout.saturating_sub(sample_delay.unwrap_or_default()));
            wait_epoll(&self.all, &mut self.events, remaining)?;
        }
        Ok(&self.events)
    }
}

fn create_epoll() -> Result<OwnedFd, Error> {
    epoll::create(epoll::CreateFlags::CLOEXEC).map_err(to_error)
}

fn wait_epoll(epoll: &OwnedFd, events: &mut Vec<Event>, timeout: Option<Duration>) -> Result<(), Error> {
    let timeout = timeout.and_then(|timeout| timeout.try_into().ok());
    events.clear();
    match epoll::wait(epoll, rustix::buffer::spare_capacity(events), timeout.as_ref()) {
        Err(rustix::io::Errno::INTR) | Ok(_) => Ok(()),
        Err(error) => Err(to_error(error)),
    }
}

fn to_error(error: rustix::io::Errno) -> Error {
    Error::System(io_error_text(&error.into()))
}
