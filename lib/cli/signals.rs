//! Ctrl-C and its relatives.
//!
//! A filter whose standard input is a pipe ignores the first Ctrl-C and ends with its input: in `fg-record | fg-svg` the
//! recorder ends first, and what it prints must get through. A second one, and SIGTERM and SIGHUP at once, remove the
//! unfinished output file and kill.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// A file to remove if a signal ends the process.
pub(super) fn remember_unfinished(path: &Path) {
    *lock() = Some(path.to_owned());
}

/// The file is finished.
pub(super) fn forget_unfinished() {
    *lock() = None;
}

fn lock() -> std::sync::MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(unix)]
fn die(signal: i32) {
    if let Some(path) = lock().take() {
        let _ = std::fs::remove_file(path);
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

/// Starts the shared handler of a filter.
#[cfg(unix)]
pub(super) fn install() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    let mut patient = stdin_is_pipe();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGINT && std::mem::take(&mut patient) {
                continue;
            }
            die(signal);
        }
    });
}

#[cfg(not(unix))]
pub(super) fn install() {}

#[cfg(unix)]
fn stdin_is_pipe() -> bool {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileTypeExt as _;
    let Ok(stdin) = std::io::stdin().as_fd().try_clone_to_owned() else { return false };
    std::fs::File::from(stdin).metadata().is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// For a tool that acts on signals itself: the first SIGINT, SIGTERM or SIGHUP asks it to stop, the second kills it.
#[cfg(unix)]
pub struct Interrupts {
    first: std::sync::Arc<std::sync::atomic::AtomicI32>,
}

#[cfg(unix)]
impl Interrupts {
    /// Starts listening. `wake` is called on the first signal, in a thread of its own.
    ///
    /// # Errors
    /// Those of the system.
    pub fn listen(wake: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        use std::sync::atomic::Ordering;
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let first = std::sync::Arc::new(std::sync::atomic::AtomicI32::new(0));
        let seen = first.clone();
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if seen.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire).is_err() {
                    die(signal);
                }
                wake();
            }
        });
        Ok(Self { first })
    }

    /// Whether a signal came.
    pub fn arrived(&self) -> bool {
        self.first.load(std::sync::atomic::Ordering::Acquire) != 0
    }
}
