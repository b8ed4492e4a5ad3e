//! Read-ahead: one thread reads and decompresses while another parses what was read before.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::read::read_some;
use crate::parallel::spawn_with;

/// Number of filled pieces that may wait for the consumer.
const QUEUE_LENGTH: usize = 2;

/// Number of decompressed bytes passed on at once.
pub(super) const PIECE_SIZE: usize = 1 << 20;

/// Fills a piece; `false` at the end of the input.
type Fill<T, E> = Box<dyn FnMut(&mut T) -> Result<bool, E> + Send>;

/// Pieces that another thread fills. That thread ends when this is dropped.
pub(crate) enum ReadAhead<T, E> {
    Thread {
        filled: Receiver<Result<T, E>>,
        /// Returns consumed pieces to the thread, which uses their memory again.
        emptied: SyncSender<T>,
    },
    /// The system gave no thread, so the consumer fills the pieces itself.
    SameThread(Fill<T, E>),
}

impl<T: Default + Send + 'static, E: Send + 'static> ReadAhead<T, E> {
    /// Starts a thread that calls `fill` until it returns `false` or an error.
    pub(crate) fn new(fill: impl FnMut(&mut T) -> Result<bool, E> + Send + 'static) -> Self {
        let (sender, filled) = sync_channel(QUEUE_LENGTH);
        let (emptied, recycled) = sync_channel::<T>(QUEUE_LENGTH + 2);
        match spawn_with(Box::new(fill) as Fill<T, E>, move |fill| fill_all(fill, &sender, &recycled)) {
            Ok(()) => Self::Thread { filled, emptied },
            Err(fill) => Self::SameThread(fill),
        }
    }

    /// Replaces `piece` by the next one; `false` at the end.
    pub(crate) fn next(&mut self, piece: &mut T) -> Result<bool, E> {
        match self {
            Self::SameThread(fill) => fill(piece),
            Self::Thread { filled, emptied } => {
                // The thread ends after the last piece.
                let Ok(next) = filled.recv() else { return Ok(false) };
                // If the thread has ended, it needs no empty piece.
                let _ = emptied.try_send(std::mem::replace(piece, next?));
                Ok(true)
            }
        }
    }
}

/// Fills pieces and sends them, until the input ends or the consumer is gone.
fn fill_all<T: Default, E>(mut fill: Fill<T, E>, sender: &SyncSender<Result<T, E>>, recycled: &Receiver<T>) {
    loop {
        let mut piece = recycled.try_recv().unwrap_or_default();
        let next = match fill(&mut piece) {
            Ok(true) => Ok(piece),
            Ok(false) => return,
            Err(error) => Err(error),
        };
        let has_failed = next.is_err();
        if sender.send(next).is_err() || has_failed {
            return;
        }
    }
}

/// The bytes of a reader, read ahead by another thread.
pub(super) struct ReadAheadReader {
    pieces: ReadAhead<Vec<u8>, io::Error>,
    piece: Vec<u8>,
    /// Number of bytes of `piece` that were read.
    consumed: usize,
}

impl ReadAheadReader {
    pub(super) fn new(mut reader: impl Read + Send + 'static) -> Self {
        let mut end = None;
        let pieces = ReadAhead::new(move |piece: &mut Vec<u8>| match end.take() {
            Some(end) => Result::map(end, |()| false),
            None => {
                end = fill_piece(&mut reader, piece);
                Ok(true)
            }
        });
        Self { pieces, piece: Vec::new(), consumed: 0 }
    }
}

/// Fills a piece; if the reader ends or fails before the piece is full, returns how it ended.
fn fill_piece(reader: &mut impl Read, piece: &mut Vec<u8>) -> Option<io::Result<()>> {
    piece.resize(PIECE_SIZE, 0);
    let (mut filled, mut end) = (0, None);
    while filled < PIECE_SIZE && end.is_none() {
        match read_some(reader, &mut piece[filled..]) {
            Ok(0) => end = Some(Ok(())),
            Ok(read) => filled += read,
            Err(error) => end = Some(Err(error)),
        }
    }
    piece.truncate(filled);
    end
}

impl Read for ReadAheadReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.consumed == self.piece.len() {
            if !self.pieces.next(&mut self.piece)? {
                return Ok(0);
            }
            self.consumed = 0;
        }
        let read = (&self.piece[self.consumed..]).read(buffer)?;
        self.consumed += read;
        Ok(read)
    }
}
