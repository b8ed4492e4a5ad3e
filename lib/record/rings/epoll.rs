//! What wakes a recording: rings, the target's end, signals.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, Event, EventData, EventFlags};

use crate::{Error, io_error_text};

/// Files to wait for.
pub struct Watch {
    all: OwnedFd,
    /// All but those that can wait.
    urgent: OwnedFd,
    events: Vec<Event>,
}

/// What a file tells of that can wait.
pub const SAMPLES: u64 = 0;

impl Watch {
    /// No file yet.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn new() -> Result<Self, Error> {
        let epoll = || epoll::create(epoll::CreateFlags::CLOEXEC).map_err(refused);
        Ok(Self { all: epoll()?, urgent: epoll()?, events: Vec::with_capacity(64) })
    }

    /// A file, and what it tells of.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn add(&self, file: impl AsFd, what: u64) -> Result<(), Error> {
        let add = |epoll: &OwnedFd| epoll::add(epoll, file.as_fd(), EventData::new_u64(what), EventFlags::IN);
        add(&self.all).map_err(refused)?;
        if what == SAMPLES { Ok(()) } else { add(&self.urgent).map_err(refused) }
    }

    /// A file that is not waited for any more; whether it was.
    pub fn remove(&self, file: impl AsFd) -> bool {
        let was_urgent = epoll::delete(&self.urgent, file.as_fd()).is_ok();
        epoll::delete(&self.all, file.as_fd()).is_ok() || was_urgent
    }

    /// Waits until a file has something to tell, but so long at least if it is samples.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn wait(&mut self, timeout: Option<Duration>, pause: Option<Duration>) -> Result<&[Event], Error> {
        let pause = pause.map(|pause| pause.min(timeout.unwrap_or(pause)));
        if let Some(pause) = pause {
            wait(&self.urgent, &mut self.events, Some(pause))?;
        }
        if pause.is_none() || self.events.is_empty() {
            let left = timeout.map(|timeout| timeout.saturating_sub(pause.unwrap_or_default()));
            wait(&self.all, &mut self.events, left)?;
        }
        Ok(&self.events)
    }
}

fn wait(epoll: &OwnedFd, events: &mut Vec<Event>, timeout: Option<Duration>) -> Result<(), Error> {
    let timeout = timeout.and_then(|timeout| timeout.try_into().ok());
    events.clear();
    match epoll::wait(epoll, rustix::buffer::spare_capacity(events), timeout.as_ref()) {
        Err(rustix::io::Errno::INTR) | Ok(_) => Ok(()),
        Err(error) => Err(refused(error)),
    }
}

fn refused(error: rustix::io::Errno) -> Error {
    Error::System(io_error_text(&error.into()))
}
