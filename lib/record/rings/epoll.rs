//! Waits for ring buffers, the target's exit and signals.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::{Error, io_error_text};

/// A set of files to wait for.
pub struct EpollSet {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl EpollSet {
    /// Creates an empty set.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel refuses.
    pub fn new() -> Result<Self, Error> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(to_error)?;
        Ok(Self { epoll, events: Vec::with_capacity(64) })
    }

    /// Adds a file. Its events have the token.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel refuses.
    pub fn add(&self, file: impl AsFd, token: u64) -> Result<(), Error> {
        epoll::add(&self.epoll, file, EventData::new_u64(token), EventFlags::IN).map_err(to_error)
    }

    /// Removes a file. Returns true if it was in the set.
    pub fn remove(&self, file: impl AsFd) -> bool {
        epoll::delete(&self.epoll, file).is_ok()
    }

    /// Removes the files that have hung up. Returns true if one of them was in the set.
    pub fn remove_hung_up<F: AsFd>(&self, files: impl Iterator<Item = F>) -> bool {
        let mut found = false;
        for file in files {
            let mut poll = [PollFd::new(&file, PollFlags::IN)];
            let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
            let _ = rustix::event::poll(&mut poll, Some(&no_wait));
            if poll[0].revents().contains(PollFlags::HUP) {
                found |= self.remove(&file);
            }
        }
        found
    }

    /// Waits until a file is readable or the timeout expires.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel refuses.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<&[Event], Error> {
        let timeout = timeout.and_then(|timeout| timeout.try_into().ok());
        self.events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), timeout.as_ref()) {
            Err(Errno::INTR) | Ok(_) => Ok(&self.events),
            Err(error) => Err(to_error(error)),
        }
    }
}

fn to_error(error: Errno) -> Error {
    Error::System(io_error_text(&error.into()))
}
