//! Reading ahead in a thread of its own: reading and decompressing while what came before is parsed.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::parallel::spawn_with;

/// How many pieces wait.
const PIECES: usize = 2;

/// How much of what is decompressed is handed over at once.
pub(super) const PIECE: usize = 1 << 20;

/// Fills a piece, `false` if nothing is left.
type Fill<T, E> = Box<dyn FnMut(&mut T) -> Result<bool, E> + Send>;

/// Pieces that a thread of its own fills. It ends with this.
pub(crate) enum ReadAhead<T, E> {
    Thread {
        filled: Receiver<Result<T, E>>,
        emptied: SyncSender<T>,
    },
    /// The system gives none.
    Here(Fill<T, E>),
}

impl<T: Default + Send + 'static, E: Send + 'static> ReadAhead<T, E> {
    /// `fill` fills a piece, `false` if nothing is left.
    pub(crate) fn new(fill: impl FnMut(&mut T) -> Result<bool, E> + Send + 'static) -> Self {
        let (sender, filled) = sync_channel(PIECES);
        let (emptied, empty) = sync_channel::<T>(PIECES + 2);
        let fill_all = move |mut fill: Fill<T, E>| loop {
            let mut piece = empty.try_recv().unwrap_or_default();
            let next = match fill(&mut piece) {
                Ok(true) => Ok(piece),
                Ok(false) => return,
                Err(error) => Err(error),
            };
            let failed = next.is_err();
            // Where nobody waits for it any more, it does not matter.
            if sender.send(next).is_err() || failed {
                return;
            }
        };
        match spawn_with(Box::new(fill) as Fill<T, E>, fill_all) {
            Ok(()) => Self::Thread { filled, emptied },
            Err(fill) => Self::Here(fill),
        }
    }

    /// Exchanges a piece for the next one; `false` at the end.
    pub(crate) fn next(&mut self, piece: &mut T) -> Result<bool, E> {
        match self {
            Self::Here(fill) => fill(piece),
            Self::Thread { filled, emptied } => {
                // The thread ends after the last piece.
                let Ok(next) = filled.recv() else { return Ok(false) };
                // Where nobody waits for the empty piece, it is let go.
                let _ = emptied.try_send(std::mem::replace(piece, next?));
                Ok(true)
            }
        }
    }
}

/// What a reader gives, read ahead.
pub(super) struct ReadAheadReader {
    pieces: ReadAhead<Vec<u8>, io::Error>,
    piece: Vec<u8>,
    taken: usize,
}

impl ReadAheadReader {
    pub(super) fn new(mut reader: impl Read + Send + 'static) -> Self {
        let mut end = None;
        let pieces = ReadAhead::new(move |piece: &mut Vec<u8>| match end.take() {
            Some(end) => Result::map(end, |()| false),
            None => {
                end = fill(&mut reader, piece);
                Ok(true)
            }
        });
        Self { pieces, piece: Vec::new(), taken: 0 }
    }
}

/// Fills the piece; if there is too little for that, says how the reader ended.
fn fill(reader: &mut impl Read, piece: &mut Vec<u8>) -> Option<io::Result<()>> {
    piece.resize(PIECE, 0);
    let (mut filled, mut end) = (0, None);
    while filled < PIECE && end.is_none() {
        match reader.read(&mut piece[filled..]) {
            Ok(0) => end = Some(Ok(())),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => end = Some(Err(error)),
        }
    }
    piece.truncate(filled);
    end
}

impl Read for ReadAheadReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.piece.len() {
            if !self.pieces.next(&mut self.piece)? {
                return Ok(0);
            }
            self.taken = 0;
        }
        let rest = &self.piece[self.taken..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.taken += read;
        Ok(read)
    }
}
