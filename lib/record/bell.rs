//! What each sample rings, as long as samples are wanted at once.
//!
//! A ring wakes who waits for it when it is half full: what must come before that is fixed when its counter is opened. But
//! a counter also signals its owner for each sample as long as its file says so (`O_ASYNC`), and those that its thread's
//! children inherit ask the same file. To wake somebody costs the program that is recorded an interrupt more, in virtual
//! machines several microseconds: where samples come all the time and may wait, the rings are looked at by the clock.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::sys;

/// A bell, and whether it rings.
#[derive(Debug)]
pub struct Bell {
    /// Readable when it has rung.
    signals: OwnedFd,
    pace: Pace,
}

impl Bell {
    /// A bell that rings for each sample of the counters.
    ///
    /// # Errors
    /// Those of the system.
    pub fn hang<'a>(counters: impl Iterator<Item = &'a File>) -> io::Result<Self> {
        let signals = sys::open_sigio_signalfd()?;
        let mut count = 0;
        for counter in counters {
            sys::set_signal_owner(counter)?;
            signal(counter, true)?;
            count += 1;
        }
        Ok(Self { signals, pace: Pace::new(count) })
    }

    /// The file to wait for.
    pub fn file(&self) -> &OwnedFd {
        &self.signals
    }

    /// Whether it rings for each sample.
    pub fn rings(&self) -> bool {
        self.pace.rings
    }

    /// Forgets that it has rung.
    pub fn answer(&self) {
        let _ = rustix::io::read(&self.signals, &mut [0; sys::SIGNALFD_INFO_SIZE]);
    }

    /// Lets it ring or not from now on, by whether samples can wait, and were found in the rings when they were looked at.
    pub fn tune<'a>(&mut self, can_wait: bool, found: bool, counters: impl Iterator<Item = &'a File>) {
        if self.pace.turns(can_wait, found) {
            for counter in counters {
                // Where there is no memory for it the others still ring.
                let _ = signal(counter, self.pace.rings);
            }
        }
    }
}

fn signal(counter: &File, on: bool) -> io::Result<()> {
    let flags = fcntl_getfl(counter)?;
    let flags = if on { flags | OFlags::ASYNC } else { flags - OFlags::ASYNC };
    Ok(fcntl_setfl(counter, flags)?)
}

/// Whether it is worth while to have each sample ring.
#[derive(Debug)]
struct Pace {
    rings: bool,
    /// How many times samples were found, of late.
    found: usize,
    /// How many times are enough: to turn the bell costs two calls a counter.
    enough: usize,
}

impl Pace {
    fn new(counters: usize) -> Self {
        Self { rings: true, found: 0, enough: counters.max(16) }
    }

    /// Whether the bell is to be turned after a look.
    fn turns(&mut self, can_wait: bool, found: bool) -> bool {
        self.found = match (can_wait, found) {
            (false, _) => 0,
            (true, false) => self.found / 2,
            (true, true) => (self.found + 1).min(4 * self.enough),
        };
        let rings = self.found < self.enough;
        rings != std::mem::replace(&mut self.rings, rings)
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn samples_that_come_all_the_time_ring_no_more() {
        let mut pace = Pace::new(1);
        assert_eq!((0..16).filter(|_| pace.turns(true, true)).count(), 1);
        assert!(!pace.rings);
        // Once is none, but not twice.
        assert!(!pace.turns(true, true) && pace.turns(true, false) && pace.rings);
    }

    #[test]
    fn samples_that_cannot_wait_ring() {
        let mut pace = Pace::new(1);
        assert_eq!((0..400).filter(|_| pace.turns(true, true)).count(), 1);
        assert!(!pace.turns(true, false) && !pace.rings);
        assert!(pace.turns(false, true) && pace.rings);
        assert!((0..400).all(|_| !pace.turns(false, true)));
    }

    #[test]
    fn many_counters_are_turned_seldom() {
        let mut pace = Pace::new(10_000);
        assert!((0..9_999).all(|_| !pace.turns(true, true)));
        assert!(pace.turns(true, true) && !pace.rings);
    }
}
