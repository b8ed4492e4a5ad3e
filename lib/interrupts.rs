//! Handling of SIGINT (Ctrl-C), SIGQUIT (Ctrl-\), SIGTERM and SIGHUP.
//!
//! A filter whose standard input is a pipe ignores the first SIGINT or SIGQUIT and ends when its input ends: in
//! `fg-record | fg-svg` Ctrl-C reaches both, the recorder stops, and its output must still be drawn. The second of
//! these signals, and the first SIGTERM or SIGHUP, remove the unfinished output file and end the process.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use crate::parallel;

/// The temporary output file, if there is one.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Locks the path of the file to remove if a signal ends the process.
///
/// No signal ends the process while the lock is held, so creating or renaming the file is never cut in half.
pub(super) fn lock_unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    parallel::lock(&UNFINISHED)
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

    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use signal_hook::iterator::Signals;

    /// The signals that are handled.
    const HANDLED: [i32; 4] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP];

    /// Installs the signal handler of a filter. Signals that the parent had ignored, as nohup does, stay ignored.
    pub(crate) fn install(reads_stdin: bool) {
        let handled = HANDLED.into_iter().filter(|signal| !is_ignored(*signal));
        let mut ignores_next_key = reads_stdin && stdin_is_pipe();
        // If this fails, the signals keep their default actions.
        let _ = spawn_handler(handled, move |signal| {
            let is_key = matches!(signal, SIGINT | SIGQUIT);
            if !is_key || !std::mem::take(&mut ignores_next_key) {
                die(signal);
            }
        });
    }

    /// Starts a thread that calls `handle` for each of these signals that arrives.
    fn spawn_handler(
        signals: impl IntoIterator<Item = i32>,
        mut handle: impl FnMut(i32) + Send + 'static,
    ) -> io::Result<()> {
        // The thread first: once the signals are registered, they do nothing unless a thread handles them.
        let (sender, receiver) = channel::<Signals>();
        Builder::new().spawn(move || {
            let Ok(mut signals) = receiver.recv() else { return };
            signals.forever().for_each(&mut handle);
        })?;
        sender.send(Signals::new(signals)?).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Removes the unfinished file and ends the process by the signal itself, so that a shell reports it.
    fn die(signal: i32) {
        let unfinished = super::lock_unfinished();
        if let Some(path) = &*unfinished {
            let _ = std::fs::remove_file(path);
        }
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }

    #[allow(unsafe_code)]
    fn is_ignored(signal: i32) -> bool {
        let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: without a new action, sigaction only writes the current action to the pointer, which is valid. The
        // action is read only if the call succeeded.
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
        // Some shells use sockets for pipelines.
        kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
    }

    /// The signals that stop a tool: the first one asks it to stop, the second ends the process.
    pub struct Interrupts {
        /// The latest signal, 0 if none has arrived.
        received: Arc<AtomicI32>,
    }

    impl Interrupts {
        /// Installs the signal handler, which calls `wake` on another thread when the first signal arrives.
        ///
        /// All but SIGHUP are handled even if the parent had them ignored: shells ignore SIGINT and SIGQUIT in
        /// background jobs of scripts, and `kill -INT` is how scripts end a recording. An ignored SIGHUP stays ignored,
        /// so that nohup works.
        ///
        /// # Errors
        /// The system gives no thread, or refuses the handler.
        pub fn listen(wake: impl Fn() + Send + 'static) -> io::Result<Self> {
            let handled = HANDLED.into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(signal));
            let received = Arc::new(AtomicI32::new(0));
            let latest = received.clone();
            spawn_handler(handled, move |signal| {
                if latest.swap(signal, Ordering::AcqRel) != 0 {
                    die(signal);
                }
                wake();
            })?;
            Ok(Self { received })
        }

        /// Returns the latest signal that arrived, if any.
        pub fn received(&self) -> Option<i32> {
            Some(self.received.load(Ordering::Acquire)).filter(|signal| *signal != 0)
        }
    }
}
