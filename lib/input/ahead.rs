//! Reading ahead in a thread of its own: decompressing while what came before is parsed.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// How much is handed over at once, and how many such pieces wait.
const PIECE: usize = 1 << 20;
const PIECES: usize = 3;

/// What a reader gives, read by a thread of its own. The thread ends with this.
pub(super) struct Ahead {
    pieces: Receiver<io::Result<Vec<u8>>>,
    emptied: SyncSender<Vec<u8>>,
    piece: Vec<u8>,
    taken: usize,
}

impl Ahead {
    pub(super) fn new(mut reader: impl Read + Send + 'static) -> Self {
        let (filled, pieces) = sync_channel(PIECES);
        let (emptied, empty) = sync_channel(PIECES + 2);
        std::thread::spawn(move || {
            loop {
                let (piece, end) = fill(&mut reader, empty.try_recv().unwrap_or_default());
                let gone = !piece.is_empty() && filled.send(Ok(piece)).is_err();
                if let Some(Err(error)) = end {
                    // Where nobody waits for it any more, it does not matter.
                    let _ = filled.send(Err(error));
                    return;
                }
                if gone || end.is_some() {
                    return;
                }
            }
        });
        Self { pieces, emptied, piece: Vec::new(), taken: 0 }
    }
}

/// A full piece, or what is left and how it ended.
fn fill(reader: &mut impl Read, mut piece: Vec<u8>) -> (Vec<u8>, Option<io::Result<()>>) {
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
    (piece, end)
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len() {
            // The thread ends after the last piece.
            let Ok(next) = self.pieces.recv() else { return Ok(0) };
            // Where nobody waits for the empty buffer, it is let go.
            let _ = self.emptied.try_send(std::mem::replace(&mut self.piece, next?));
            self.taken = 0;
        }
        let rest = &self.piece[self.taken..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.taken += read;
        Ok(read)
    }
}
