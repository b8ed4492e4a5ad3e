//! Decompresses gzip and zstd, recognized by their first bytes. Several members or frames are one text.

use std::io::{self, BufRead as _, BufReader, Read};

use flate2::bufread::GzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::read::READ_SIZE;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

type Reader = Box<dyn Read + Send>;

/// True if the first bytes are those of a gzip or zstd file.
pub(super) fn is_compressed(start: &[u8]) -> bool {
    start.starts_with(GZIP) || start.starts_with(ZSTD)
}

/// Decompresses `raw` if `start`, its first bytes, are those of a compressed file; otherwise returns `raw` itself.
pub(super) fn decompress(start: &[u8], raw: Reader) -> Reader {
    if start.starts_with(GZIP) {
        let raw = BufReader::with_capacity(READ_SIZE, raw);
        Box::new(Decompressed { format: "gzip", reader: GzipMembers { member: Some(GzDecoder::new(raw)) } })
    } else if start.starts_with(ZSTD) {
        let raw = BufReader::with_capacity(READ_SIZE, raw);
        let reader = ZstdFrames { raw, decoder: Box::default(), in_frame: false, failure: None };
        Box::new(Decompressed { format: "zstd", reader })
    } else {
        raw
    }
}

/// A decompressor whose format errors are replaced by one message for all.
struct Decompressed<R> {
    format: &'static str,
    reader: R,
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).map_err(|error| match error.raw_os_error() {
            Some(_) => error,
            None => {
                let what = format!("the {} data is cut short or corrupt", self.format);
                io::Error::new(io::ErrorKind::InvalidData, what)
            }
        })
    }
}

/// The gzip members of a stream, decompressed one after another. Zeros may follow a member as padding.
struct GzipMembers {
    member: Option<GzDecoder<BufReader<Reader>>>,
}

impl Read for GzipMembers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let raw = member.get_mut();
            loop {
                let start = raw.fill_buf()?;
                let zeros = start.iter().take_while(|byte| **byte == 0).count();
                if zeros == 0 {
                    break;
                }
                raw.consume(zeros);
            }
            let at_end = raw.fill_buf()?.is_empty();
            self.member = self.member.take().filter(|_| !at_end).map(|member| GzDecoder::new(member.into_inner()));
        }
        Ok(0)
    }
}

/// The zstd frames of a stream, decompressed one after another. Skippable frames may be between them.
struct ZstdFrames {
    raw: BufReader<Reader>,
    decoder: Box<FrameDecoder>,
    in_frame: bool,
    /// The error of the current frame, which is returned after all bytes decompressed before it.
    failure: Option<io::Error>,
}

/// An empty last block and a checksum.
///
/// The decoder keeps the window, to which later blocks may refer, until it sees the last block. With this block
/// appended it returns the window of a truncated frame too.
const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

impl Read for ZstdFrames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                if self.raw.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                self.begin_frame()?;
                continue;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let strategy = BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.decoder.decode_blocks(&mut self.raw, strategy) {
                    self.failure = Some(io::Error::other(error));
                    if !self.raw.fill_buf()?.is_empty() {
                        break;
                    }
                    self.decoder.decode_blocks(LAST_BLOCK, BlockDecodingStrategy::All).map_err(io::Error::other)?;
                }
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            self.failure.take().map_or(Ok(()), Err)?;
            self.end_frame()?;
        }
    }
}

impl ZstdFrames {
    /// Reads a frame header, or skips a skippable frame.
    fn begin_frame(&mut self) -> io::Result<()> {
        match self.decoder.init(&mut self.raw) {
            Ok(()) => self.in_frame = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                if io::copy(&mut (&mut self.raw).take(length.into()), &mut io::sink())? < length.into() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(())
    }

    /// Compares the checksum of a frame, if it has one.
    fn end_frame(&mut self) -> io::Result<()> {
        self.in_frame = false;
        let expected = self.decoder.get_checksum_from_data();
        if expected.is_some() && expected != self.decoder.get_calculated_checksum() {
            return Err(io::Error::other("wrong checksum"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read as _, Write as _};

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn decompressed(packed: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut text = Vec::new();
        super::decompress(&packed[..4.min(packed.len())], Box::new(Cursor::new(packed.to_vec())))
            .read_to_end(&mut text)
            .map(|_| text)
    }

    #[test]
    fn concatenates_members_and_frames() {
        let skippable = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, b'a', b'b', b'c'];
        assert_eq!(decompressed(&[gzip(b"a 1\n"), gzip(b"b 2\n")].concat()).unwrap(), b"a 1\nb 2\n");
        assert_eq!(decompressed(&[&zstd(b"a 1\n")[..], &skippable, &zstd(b"b 2\n")].concat()).unwrap(), b"a 1\nb 2\n");
    }

    #[test]
    fn skips_zeros_after_a_member() {
        assert_eq!(decompressed(&[&gzip(b"a 1\n")[..], &[0; 70_000]].concat()).unwrap(), b"a 1\n");
        assert_eq!(decompressed(&[&gzip(b"a 1\n")[..], &[0; 9], &gzip(b"b 2\n")].concat()).unwrap(), b"a 1\nb 2\n");
        assert!(decompressed(&[&gzip(b"a 1\n")[..], b"\0more"].concat()).is_err());
    }

    #[test]
    fn returns_the_bytes_before_a_truncation() {
        let text: Vec<u8> = (0..400_000).flat_map(|n| format!("main;f{n} {n}\n").into_bytes()).collect();
        for packed in [gzip(&text), zstd(&text)] {
            let mut all = Vec::new();
            let truncated = packed[..packed.len() / 2].to_vec();
            super::decompress(&packed[..4], Box::new(Cursor::new(truncated))).read_to_end(&mut all).unwrap_err();
            assert!(text.starts_with(&all) && all.len() > text.len() / 3, "{}", all.len());
        }
    }

    #[test]
    fn reports_truncation_and_corruption() {
        let text: Vec<u8> = (0..20_000).flat_map(|n| format!("main;f{n} {n}\n").into_bytes()).collect();
        for (format, packed) in [("gzip", gzip(&text)), ("zstd", zstd(&text))] {
            let mut changed = packed.clone();
            changed[packed.len() / 2] ^= 0x55;
            for broken in [&packed[..packed.len() / 2], &packed[..packed.len() - 1], &packed[..5], &changed] {
                let error = decompressed(broken).unwrap_err();
                assert_eq!(error.to_string(), format!("the {format} data is cut short or corrupt"));
            }
        }
    }
}
