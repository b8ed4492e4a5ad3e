//! Compressed records (`perf record -z`): one zstd stream, in pieces. Records may stand across pieces, and so may the
//! stream's blocks.
//!
//! The stream is never ended, and the decoder gives back what lies within the stream's window only at its end. So what
//! is decompressed lags behind by a window at most, and so must the ends of rounds; and at the very end an empty last
//! block is added to the stream.

use std::collections::VecDeque;
use std::io::Read as _;

use ruzstd::decoding::FrameDecoder;

use super::record_reader::RECORD_HEADER;
use super::{Fault, broken};

/// The header of a zstd frame is not longer.
const LONGEST_HEADER: usize = 18;
const BLOCK_HEADER: usize = 3;
const CHECKSUM: usize = 4;
/// `perf record` asks for less at its best compression; a larger one would take as much memory.
const LARGEST_WINDOW: u64 = 128 << 20;
/// A block that is empty, raw and the last; and a checksum, if one is due.
const END: [u8; BLOCK_HEADER + CHECKSUM] = [1, 0, 0, 0, 0, 0, 0];

/// What decompresses the records.
pub(super) struct Decompressor {
    decoder: FrameDecoder,
    /// Compressed bytes that are no whole block yet.
    input: Vec<u8>,
    /// Decompressed bytes that are no whole record yet.
    output: Vec<u8>,
    /// Within a frame: the size of its window, and whether a checksum follows it.
    frame: Option<(u64, bool)>,
    /// How much has come out.
    produced: u64,
    /// How much must have come out for the rounds that have ended to be complete.
    rounds: VecDeque<u64>,
}

/// What takes the records; `None` where a round has ended.
pub(super) type Take<'a> = &'a mut dyn FnMut(Option<&[u8]>) -> Result<(), Fault>;

impl Decompressor {
    /// At the beginning of a stream.
    pub(super) fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LARGEST_WINDOW);
        let (input, output, rounds) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { decoder, input, output, frame: None, produced: 0, rounds }
    }

    /// Takes the next piece of the stream, and gives the records that are whole.
    pub(super) fn push(&mut self, piece: &[u8], take: Take<'_>) -> Result<(), Fault> {
        self.input.extend_from_slice(piece);
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        loop {
            let taken = match self.frame {
                None if rest.len() < LONGEST_HEADER => break,
                None => self.begin_frame(rest)?,
                Some((_, checksum)) => {
                    let Some((length, is_last)) = whole_block(rest) else { break };
                    let length = length + if is_last && checksum { CHECKSUM } else { 0 };
                    self.decode(&rest[..length.min(rest.len())], take)?;
                    if is_last {
                        self.frame = None;
                    }
                    length
                }
            };
            rest = &rest[taken.min(rest.len())..];
        }
        self.input = rest.to_vec();
        Ok(())
    }

    /// A round has ended.
    pub(super) fn end_round(&mut self, take: Take<'_>) -> Result<(), Fault> {
        let window = self.frame.map_or(0, |(window, _)| window);
        self.rounds.push_back(self.produced + window);
        self.end_complete_rounds(take)
    }

    /// The last records.
    pub(super) fn finish(&mut self, take: Take<'_>) -> Result<(), Fault> {
        if self.frame.take().is_some() {
            self.decode(&END, take)?;
        }
        match self.input.is_empty() && self.output.is_empty() {
            true => Ok(()),
            false => broken("its compressed records are cut short"),
        }
    }

    /// Reads a frame's header; how long it is.
    fn begin_frame(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let mut rest = bytes;
        self.decoder.init(&mut rest).or_else(|_| corrupt())?;
        let descriptor = bytes[4];
        let window = match descriptor & 0x20 {
            0 => {
                let base = 1u64 << (10 + (bytes[5] >> 3));
                base + base / 8 * u64::from(bytes[5] & 7)
            }
            _ => self.decoder.content_size(),
        };
        self.frame = Some((window, descriptor & 4 != 0));
        Ok(bytes.len() - rest.len())
    }

    /// Decompresses one block: a block cannot become more than 128 KiB.
    fn decode(&mut self, block: &[u8], take: Take<'_>) -> Result<(), Fault> {
        let mut nothing = [];
        self.decoder.decode_from_to(block, &mut nothing).or_else(|_| corrupt())?;
        loop {
            let filled = self.output.len();
            let ready = self.decoder.can_collect();
            if ready == 0 {
                break;
            }
            self.output.resize(filled + ready, 0);
            let read = self.decoder.read(&mut self.output[filled..]).or_else(|_| corrupt())?;
            self.output.truncate(filled + read);
            self.produced += read as u64;
            if read == 0 {
                break;
            }
        }
        self.give_records(take)?;
        self.end_complete_rounds(take)
    }

    fn give_records(&mut self, take: Take<'_>) -> Result<(), Fault> {
        let mut start = 0;
        while let Some(header) = self.output.get(start..start + RECORD_HEADER) {
            let size = usize::from(u16::from_le_bytes([header[6], header[7]]));
            if size < RECORD_HEADER {
                return corrupt();
            }
            let Some(record) = self.output.get(start..start + size) else { break };
            take(Some(record))?;
            start += size;
        }
        self.output.drain(..start);
        Ok(())
    }

    fn end_complete_rounds(&mut self, take: Take<'_>) -> Result<(), Fault> {
        while self.rounds.front().is_some_and(|due| *due <= self.produced) {
            self.rounds.pop_front();
            take(None)?;
        }
        Ok(())
    }
}

fn corrupt<T>() -> Result<T, Fault> {
    broken("its compressed records are corrupt")
}

/// The length of the block at the beginning, if it is there whole, and whether it is its frame's last.
fn whole_block(bytes: &[u8]) -> Option<(usize, bool)> {
    const RUN: u32 = 1;
    let header = u32::from_le_bytes([*bytes.first()?, *bytes.get(1)?, *bytes.get(2)?, 0]);
    let content = if header >> 1 & 3 == RUN { 1 } else { (header >> 3) as usize };
    let length = BLOCK_HEADER + content;
    (bytes.len() >= length).then_some((length, header & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::Decompressor;

    fn records() -> Vec<u8> {
        let one = |number: u32| {
            let mut record = vec![1, 0, 0, 0, 0, 0, 40, 0];
            record.resize(40, number as u8);
            record
        };
        (0..20_000).flat_map(one).collect()
    }

    #[test]
    fn a_stream_may_be_cut_anywhere_and_need_not_end() {
        let plain = records();
        let mut packed = ruzstd::encoding::compress_to_vec(&plain[..], ruzstd::encoding::CompressionLevel::Fastest);
        // Without the end that perf never writes: the last block is not marked as such, and no checksum follows.
        let mut at = 0;
        let mut last = 0;
        let mut header = &packed[..];
        let mut decoder = ruzstd::decoding::FrameDecoder::new();
        decoder.init(&mut header).unwrap();
        at += packed.len() - header.len();
        while let Some((length, is_last)) = super::whole_block(&packed[at..]) {
            last = at;
            at += length;
            if is_last {
                break;
            }
        }
        packed.truncate(at);
        packed[last] &= !1;
        for piece in [1000, 7, packed.len()] {
            let mut decompressor = Decompressor::new();
            let (mut seen, mut rounds) = (Vec::new(), 0);
            let mut take = |record: Option<&[u8]>| {
                match record {
                    Some(record) => seen.extend_from_slice(record),
                    None => rounds += 1,
                }
                Ok(())
            };
            for piece in packed.chunks(piece) {
                decompressor.push(piece, &mut take).unwrap();
            }
            decompressor.finish(&mut take).unwrap();
            assert!(seen == plain, "{} of {} bytes", seen.len(), plain.len());
            assert_eq!(rounds, 0);
        }
    }
}
