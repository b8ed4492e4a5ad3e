//! Decompresses records (`perf record -z`): one zstd stream, cut into pieces at any byte.
//!
//! perf never ends the stream, and until its end the decoder holds back the last bytes, as many as the stream's window
//! has. Decompressed records therefore come late, and the ends of their rounds (see `reorder`) are delayed until the
//! records before them have come. At the very end an empty last block is added to the stream.

use std::collections::VecDeque;
use std::io::Read as _;

use ruzstd::decoding::FrameDecoder;

use super::error::{ReadError, corrupt};
use super::record_reader::{RECORD_HEADER, record_size};

/// The size of the longest header of a zstd frame.
const MAX_FRAME_HEADER: usize = 18;
const BLOCK_HEADER: usize = 3;
const CHECKSUM: usize = 4;
/// The largest window that is accepted. The decoder needs that much memory; the best compression of perf uses less.
const MAX_WINDOW: u64 = 128 << 20;
/// An empty raw block that is the last of its frame, and a checksum, which is used if the frame has one.
const LAST_BLOCK: [u8; BLOCK_HEADER + CHECKSUM] = [1, 0, 0, 0, 0, 0, 0];

/// A decompressor of records.
pub(super) struct Decompressor {
    decoder: FrameDecoder,
    /// Compressed bytes that are not a whole block yet.
    input: Vec<u8>,
    /// Decompressed bytes that are not a whole record yet.
    output: Vec<u8>,
    /// The frame that is being decompressed.
    frame: Option<Frame>,
    /// Number of bytes that were decompressed.
    produced: u64,
    /// For each round that has ended, the value of `produced` at which all its records are decompressed.
    rounds: VecDeque<u64>,
}

/// A zstd frame.
#[derive(Clone, Copy)]
struct Frame {
    /// The size of its window.
    window: u64,
    /// True if a checksum follows its last block.
    has_checksum: bool,
}

/// The consumer of the decompressed records; it gets `None` where a round ends.
pub(super) type Emit<'a> = &'a mut dyn FnMut(Option<&[u8]>) -> Result<(), ReadError>;

impl Decompressor {
    pub(super) fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        let (input, output, rounds) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { decoder, input, output, frame: None, produced: 0, rounds }
    }

    /// Decompresses the next piece of the stream, and emits the records that are whole.
    pub(super) fn push(&mut self, piece: &[u8], emit: Emit<'_>) -> Result<(), ReadError> {
        self.input.extend_from_slice(piece);
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        loop {
            let consumed = match self.frame {
                None if rest.len() < MAX_FRAME_HEADER => break,
                None => self.begin_frame(rest)?,
                Some(frame) => {
                    let Some((length, is_last)) = whole_block(rest) else { break };
                    let length = length + if is_last && frame.has_checksum { CHECKSUM } else { 0 };
                    self.decode(&rest[..length.min(rest.len())], emit)?;
                    if is_last {
                        self.frame = None;
                    }
                    length
                }
            };
            rest = &rest[consumed.min(rest.len())..];
        }
        self.input = rest.to_vec();
        Ok(())
    }

    /// Adds the end of a round. It is emitted after all records before it.
    pub(super) fn end_round(&mut self, emit: Emit<'_>) -> Result<(), ReadError> {
        let window = self.frame.map_or(0, |frame| frame.window);
        self.rounds.push_back(self.produced + window);
        self.emit_round_ends(emit)
    }

    /// Emits the last records.
    pub(super) fn finish(&mut self, emit: Emit<'_>) -> Result<(), ReadError> {
        if self.frame.take().is_some() {
            self.decode(&LAST_BLOCK, emit)?;
        }
        match self.input.is_empty() && self.output.is_empty() {
            true => Ok(()),
            false => corrupt("its compressed records are cut short"),
        }
    }

    /// Parses the header of a frame, and returns its length.
    fn begin_frame(&mut self, bytes: &[u8]) -> Result<usize, ReadError> {
        let mut rest = bytes;
        self.decoder.init(&mut rest).or_else(|_| corrupt_stream())?;
        let descriptor = bytes[4];
        let window = match descriptor & 0x20 {
            0 => {
                let base = 1u64 << (10 + (bytes[5] >> 3));
                base + base / 8 * u64::from(bytes[5] & 7)
            }
            // A frame of a single segment has no window, but tells the size of its content.
            _ => self.decoder.content_size(),
        };
        self.frame = Some(Frame { window, has_checksum: descriptor & 4 != 0 });
        Ok(bytes.len() - rest.len())
    }

    /// Decompresses one block, to at most 128 KiB.
    fn decode(&mut self, block: &[u8], emit: Emit<'_>) -> Result<(), ReadError> {
        self.decoder.decode_from_to(block, &mut []).or_else(|_| corrupt_stream())?;
        loop {
            let filled = self.output.len();
            let ready = self.decoder.can_collect();
            if ready == 0 {
                break;
            }
            self.output.resize(filled + ready, 0);
            let read = self.decoder.read(&mut self.output[filled..]).or_else(|_| corrupt_stream())?;
            self.output.truncate(filled + read);
            self.produced += read as u64;
            if read == 0 {
                break;
            }
        }
        self.emit_records(emit)?;
        self.emit_round_ends(emit)
    }

    fn emit_records(&mut self, emit: Emit<'_>) -> Result<(), ReadError> {
        let mut start = 0;
        while let Some(size) = record_size(&self.output[start..]) {
            if size < RECORD_HEADER {
                return corrupt_stream();
            }
            let Some(record) = self.output.get(start..start + size) else { break };
            emit(Some(record))?;
            start += size;
        }
        self.output.drain(..start);
        Ok(())
    }

    fn emit_round_ends(&mut self, emit: Emit<'_>) -> Result<(), ReadError> {
        while self.rounds.front().is_some_and(|due| *due <= self.produced) {
            self.rounds.pop_front();
            emit(None)?;
        }
        Ok(())
    }
}

fn corrupt_stream<T>() -> Result<T, ReadError> {
    corrupt("its compressed records are corrupt")
}

/// Returns the length of the block at the start of `bytes`, and true if it is the last of its frame.
///
/// `None` if the block is not complete.
fn whole_block(bytes: &[u8]) -> Option<(usize, bool)> {
    const RUN_LENGTH_ENCODED: u32 = 1;
    let header = u32::from_le_bytes([*bytes.first()?, *bytes.get(1)?, *bytes.get(2)?, 0]);
    let content = if header >> 1 & 3 == RUN_LENGTH_ENCODED { 1 } else { (header >> 3) as usize };
    let length = BLOCK_HEADER + content;
    (bytes.len() >= length).then_some((length, header & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::{Decompressor, ReadError};

    fn records() -> Vec<u8> {
        let mut records = Vec::new();
        for number in 0..20_000u32 {
            records.extend_from_slice(&[1, 0, 0, 0, 0, 0, 40, 0]);
            records.extend_from_slice(&[number as u8; 32]);
        }
        records
    }

    /// Compresses bytes as perf does, which never ends the stream: no block is marked as the last, and no checksum
    /// follows.
    fn compress(plain: &[u8]) -> Vec<u8> {
        let mut packed = ruzstd::encoding::compress_to_vec(plain, ruzstd::encoding::CompressionLevel::Fastest);
        let mut blocks = &packed[..];
        ruzstd::decoding::FrameDecoder::new().init(&mut blocks).unwrap();
        let mut end = packed.len() - blocks.len();
        let mut last = 0;
        while let Some((length, is_last)) = super::whole_block(&packed[end..]) {
            last = end;
            end += length;
            if is_last {
                break;
            }
        }
        packed.truncate(end);
        packed[last] &= !1;
        packed
    }

    /// Keeps the bytes of a record, or counts the end of a round.
    fn add_record(record: Option<&[u8]>, seen: &mut Vec<u8>, rounds: &mut usize) -> Result<(), ReadError> {
        match record {
            Some(record) => seen.extend_from_slice(record),
            None => *rounds += 1,
        }
        Ok(())
    }

    #[test]
    fn decompresses_a_stream_that_is_cut_anywhere_and_never_ends() {
        let plain = records();
        let packed = compress(&plain);
        for piece in [1000, 7, packed.len()] {
            let mut decompressor = Decompressor::new();
            let (mut seen, mut rounds) = (Vec::new(), 0);
            for piece in packed.chunks(piece) {
                decompressor.push(piece, &mut |record| add_record(record, &mut seen, &mut rounds)).unwrap();
            }
            decompressor.finish(&mut |record| add_record(record, &mut seen, &mut rounds)).unwrap();
            assert!(seen == plain, "{} of {} bytes", seen.len(), plain.len());
            assert_eq!(rounds, 0);
        }
    }
}
