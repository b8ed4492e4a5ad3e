//! Reads ahead: one thread reads the records and sorts them while another handles them.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use super::record_reader::{RECORD_HEADER, record_size};

/// Number of bytes of records that are handed over at once.
const BATCH: usize = 512 << 10;
/// Maximum number of full batches that wait for the receiver.
const MAX_WAITING: usize = 4;

/// The sending end of a channel for records.
pub(super) struct RecordSender {
    batch: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    emptied: Receiver<Vec<u8>>,
    /// True once the other end is gone: nobody reads more records.
    pub(super) is_closed: bool,
}

/// The receiving end of a channel for records.
pub(super) struct RecordReceiver {
    full: Receiver<Vec<u8>>,
    emptied: Sender<Vec<u8>>,
}

/// Creates a channel for records.
pub(super) fn record_channel() -> (RecordSender, RecordReceiver) {
    let ((full_sender, full), (emptied, emptied_receiver)) = (sync_channel(MAX_WAITING), channel());
    let batch = Vec::with_capacity(BATCH);
    let sender = RecordSender { batch, full: full_sender, emptied: emptied_receiver, is_closed: false };
    (sender, RecordReceiver { full, emptied })
}

impl RecordSender {
    /// Sends a whole record.
    #[inline]
    pub(super) fn send(&mut self, record: &[u8]) {
        if self.batch.len() + record.len() > BATCH {
            self.flush();
        }
        self.batch.extend_from_slice(record);
    }

    /// Hands over the records that wait for their batch to fill.
    pub(super) fn flush(&mut self) {
        let mut next = self.emptied.try_recv().unwrap_or_default();
        next.clear();
        next.reserve(BATCH);
        let batch = std::mem::replace(&mut self.batch, next);
        self.is_closed |= self.full.send(batch).is_err();
    }
}

impl RecordReceiver {
    /// Passes all records to `handle` as they come, until `handle` fails.
    pub(super) fn for_each<E>(self, mut handle: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        for batch in &self.full {
            let mut rest = &batch[..];
            while let Some(record) = split_record(&mut rest) {
                handle(record)?;
            }
            // The sender may be gone by now.
            let _ = self.emptied.send(batch);
        }
        Ok(())
    }
}

/// Takes the first record off `bytes`.
fn split_record<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let size = record_size(bytes)?.max(RECORD_HEADER);
    let (record, rest) = bytes.split_at_checked(size)?;
    *bytes = rest;
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::{BATCH, record_channel};

    fn record(number: u16, size: u16) -> Vec<u8> {
        let mut record = vec![0; usize::from(size)];
        record[..2].copy_from_slice(&number.to_le_bytes());
        record[6..8].copy_from_slice(&size.to_le_bytes());
        record
    }

    #[test]
    fn delivers_whole_records_in_order() {
        let count = 3 * BATCH as u64 / 1000;
        let (mut sender, receiver) = record_channel();
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                (0..count).for_each(|number| sender.send(&record(number as u16, 1000 + number as u16 % 50)));
                sender.flush();
            });
            let handled = receiver.for_each(|record| {
                seen.push((u64::from(u16::from_le_bytes([record[0], record[1]])), record.len()));
                Ok::<(), ()>(())
            });
            handled.unwrap();
        });
        let expected: Vec<_> = (0..count).map(|number| (number, 1000 + number as usize % 50)).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn stops_reading_when_the_handler_fails() {
        let (mut sender, receiver) = record_channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while !sender.is_closed {
                    sender.send(&record(1, 60_000));
                }
            });
            assert_eq!(receiver.for_each(|_| Err("enough")), Err("enough"));
        });
    }
}
