//! Ctrl-C and its relatives.
//!
//! A filter whose standard input is a pipe ignores the first Ctrl-C and ends with its input: in `fg-record | fg-svg` the
//! recorder ends first, and what it prints must get through. A second one, and SIGTERM and SIGHUP at once, remove the
//! unfinished output file and kill.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The file to remove if a signal ends the process. While this is held no signal ends it, so that whoever creates such
/// a file or puts it in its place does so as a whole.
pub(super) fn unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(not(unix))]
pub(super) fn install(_reads_stdin: bool) {}

#[cfg(unix)]
pub use unix::Interrupts;
#[cfg(unix)]
pub(super) use unix::install;

#[cfg(unix)]
mod unix {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI32, Ordering};
    use std::sync::mpsc::channel;
    use std::thread::Builder;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    /// Starts the shared handler of a filter. What the parent has us ignore, as nohup does, stays ignored.
    pub(crate) fn install(reads_stdin: bool) {
        let heeded = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
        let mut patient = reads_stdin && stdin_is_pipe();
        // Where that fails, signals do what they do to any program.
        let _ = heed(heeded, move |signal| {
            if signal != SIGINT || !std::mem::take(&mut patient) {
                die(signal);
            }
        });
    }

    /// Calls `arrived` for each of these signals that comes, in a thread of its own.
    fn heed(signals: impl IntoIterator<Item = i32>, mut arrived: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
        // Without a thread they would be heeded by none.
        let (give, given) = channel::<Signals>();
        Builder::new().spawn(move || {
            let Ok(mut signals) = given.recv() else { return };
            signals.forever().for_each(&mut arrived);
        })?;
        give.send(Signals::new(signals)?).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Ends the process by the signal itself, so that a shell sees what happened.
    fn die(signal: i32) {
        let unfinished = super::unfinished();
        if let Some(path) = &*unfinished {
            let _ = std::fs::remove_file(path);
        }
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }

    #[allow(unsafe_code)]
    fn is_ignored(signal: i32) -> bool {
        let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: given no new action, sigaction only writes the present one to the place that it is given, which is
        // read only if it says that it did.
        unsafe {
            libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
                && action.assume_init().sa_sigaction == libc::SIG_IGN
        }
    }

    fn stdin_is_pipe() -> bool {
        use std::os::fd::AsFd as _;
        use std::os::unix::fs::FileTypeExt as _;
        let Ok(stdin) = io::stdin().as_fd().try_clone_to_owned() else { return false };
        let kind = std::fs::File::from(stdin).metadata().map(|metadata| metadata.file_type());
        // Some shells make their pipelines of sockets.
        kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
    }

    /// For a tool that acts on signals itself: the first SIGINT, SIGTERM or SIGHUP asks it to stop, the second kills it.
    pub struct Interrupts {
        arrived: Arc<AtomicI32>,
    }

    impl Interrupts {
        /// Starts listening. `wake` is called on the first signal, in a thread of its own.
        ///
        /// SIGINT is heeded even where it is ignored at the start, as it is in a script's background: `kill -INT` is how
        /// scripts end a recording. SIGHUP is not, so that nohup works.
        ///
        /// # Errors
        /// Those of the system.
        pub fn listen(wake: impl Fn() + Send + 'static) -> io::Result<Self> {
            let heeded =
                [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(signal));
            let arrived = Arc::new(AtomicI32::new(0));
            let seen = arrived.clone();
            heed(heeded, move |signal| {
                if seen.swap(signal, Ordering::AcqRel) != 0 {
                    die(signal);
                }
                wake();
            })?;
            Ok(Self { arrived })
        }

        /// The signal that came.
        pub fn arrived(&self) -> Option<i32> {
            Some(self.arrived.load(Ordering::Acquire)).filter(|signal| *signal != 0)
        }
    }
}
