//! Reading ahead: one thread reads the records and puts them in order while another takes them in.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use super::record_reader::RECORD_HEADER;

/// So many bytes of records are handed over at once.
const BATCH: usize = 512 << 10;
/// So many batches wait at most.
const WAITING: usize = 4;

/// Where the records go that are read.
pub(super) struct Writer {
    batch: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    emptied: Receiver<Vec<u8>>,
    /// Whether nobody wants more.
    pub(super) is_unwanted: bool,
}

/// Where they come from.
pub(super) struct Batches {
    full: Receiver<Vec<u8>>,
    emptied: Sender<Vec<u8>>,
}

/// Both ends.
pub(super) fn batches() -> (Writer, Batches) {
    let ((full, to_take), (emptied, to_fill)) = (sync_channel(WAITING), channel());
    let writer = Writer { batch: Vec::with_capacity(BATCH), full, emptied: to_fill, is_unwanted: false };
    (writer, Batches { full: to_take, emptied })
}

impl Writer {
    /// Hands a whole record over.
    #[inline]
    pub(super) fn put(&mut self, record: &[u8]) {
        if self.batch.len() + record.len() > BATCH {
            self.flush();
        }
        self.batch.extend_from_slice(record);
    }

    /// Hands over what waits.
    pub(super) fn flush(&mut self) {
        let mut next = self.emptied.try_recv().unwrap_or_default();
        next.clear();
        next.reserve(BATCH);
        let batch = std::mem::replace(&mut self.batch, next);
        self.is_unwanted |= self.full.send(batch).is_err();
    }
}

impl Batches {
    /// Takes all records as they come, until one is refused.
    pub(super) fn for_each<E>(self, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        for batch in &self.full {
            let mut rest = &batch[..];
            while let Some(record) = split_record(&mut rest) {
                take(record)?;
            }
            // Who reads may have ended.
            let _ = self.emptied.send(batch);
        }
        Ok(())
    }
}

fn split_record<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let header = bytes.get(..RECORD_HEADER)?;
    let size = usize::from(u16::from_le_bytes([header[6], header[7]])).max(RECORD_HEADER);
    let (record, rest) = bytes.split_at_checked(size)?;
    *bytes = rest;
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::{BATCH, batches};

    fn record(number: u16, size: u16) -> Vec<u8> {
        let mut record = vec![0; usize::from(size)];
        record[..2].copy_from_slice(&number.to_le_bytes());
        record[6..8].copy_from_slice(&size.to_le_bytes());
        record
    }

    #[test]
    fn records_come_whole_and_in_order() {
        let count = 3 * BATCH as u64 / 1000;
        let (mut writer, batches) = batches();
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                (0..count).for_each(|number| writer.put(&record(number as u16, 1000 + number as u16 % 50)));
                writer.flush();
            });
            let take = |record: &[u8]| {
                seen.push((u64::from(u16::from_le_bytes([record[0], record[1]])), record.len()));
                Ok::<(), ()>(())
            };
            batches.for_each(take).unwrap();
        });
        let expected: Vec<_> = (0..count).map(|number| (number, 1000 + number as usize % 50)).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn who_wants_no_more_ends_the_reading() {
        let (mut writer, batches) = batches();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while !writer.is_unwanted {
                    writer.put(&record(1, 60_000));
                }
            });
            assert_eq!(batches.for_each(|_| Err("enough")), Err("enough"));
        });
    }
}
