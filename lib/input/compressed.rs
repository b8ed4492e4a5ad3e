//! Compressed input: gzip and zstd, recognised by their first bytes; several members or frames are one text.

use std::io::{self, BufRead as _, BufReader, Read};

use flate2::bufread::GzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::blocks::BLOCK;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

type Reader = Box<dyn Read + Send>;

/// Whether a text's first bytes say that it is compressed.
pub(super) fn is_compressed(start: &[u8]) -> bool {
    start.starts_with(GZIP) || start.starts_with(ZSTD)
}

/// What `raw` decompresses to if `start`, its first bytes, says that it is compressed; else `raw` itself.
pub(super) fn decompress(start: &[u8], raw: Reader) -> Reader {
    if start.starts_with(GZIP) {
        let raw = BufReader::with_capacity(BLOCK, raw);
        Box::new(Decompressed { format: "gzip", reader: GzipMembers { member: Some(GzDecoder::new(raw)) } })
    } else if start.starts_with(ZSTD) {
        let raw = BufReader::with_capacity(BLOCK, raw);
        let reader = ZstdFrames { raw, decoder: Box::default(), within: false, cut: None };
        Box::new(Decompressed { format: "zstd", reader })
    } else {
        raw
    }
}

/// A decompressor whose complaints are put into words.
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

/// All gzip members of a stream, one after the other; zeros may fill it up behind them.
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
            let is_over = raw.fill_buf()?.is_empty();
            self.member = self.member.take().filter(|_| !is_over).map(|member| GzDecoder::new(member.into_inner()));
        }
        Ok(0)
    }
}

/// All zstd frames of a stream, one after the other; frames that are to be skipped stand between them.
struct ZstdFrames {
    raw: BufReader<Reader>,
    decoder: Box<FrameDecoder>,
    within: bool,
    /// What is amiss with the frame at hand: said when all that came before is handed out.
    cut: Option<io::Error>,
}

/// The last block of a frame, an empty one, and a checksum. With it the decoder hands out what it keeps of a frame that is
/// cut short: that might still be referred to.
const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

impl Read for ZstdFrames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.within {
                if self.raw.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                self.begin()?;
                continue;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.decoder.decode_blocks(&mut self.raw, one) {
                    self.cut = Some(io::Error::other(error));
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
            self.cut.take().map_or(Ok(()), Err)?;
            self.end()?;
        }
    }
}

impl ZstdFrames {
    fn begin(&mut self) -> io::Result<()> {
        match self.decoder.init(&mut self.raw) {
            Ok(()) => self.within = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                if io::copy(&mut (&mut self.raw).take(length.into()), &mut io::sink())? < length.into() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.within = false;
        let promised = self.decoder.get_checksum_from_data();
        if promised.is_some() && promised != self.decoder.get_calculated_checksum() {
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

    fn read(packed: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut text = Vec::new();
        super::decompress(&packed[..4.min(packed.len())], Box::new(Cursor::new(packed.to_vec())))
            .read_to_end(&mut text)
            .map(|_| text)
    }

    #[test]
    fn several_members_or_frames_are_one_text() {
        let skipped = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, b'a', b'b', b'c'];
        assert_eq!(read(&[gzip(b"a 1\n"), gzip(b"b 2\n")].concat()).unwrap(), b"a 1\nb 2\n");
        assert_eq!(read(&[&zstd(b"a 1\n")[..], &skipped, &zstd(b"b 2\n")].concat()).unwrap(), b"a 1\nb 2\n");
    }

    #[test]
    fn zeros_may_fill_up_what_is_behind_a_member() {
        assert_eq!(read(&[&gzip(b"a 1\n")[..], &[0; 70_000]].concat()).unwrap(), b"a 1\n");
        assert_eq!(read(&[&gzip(b"a 1\n")[..], &[0; 9], &gzip(b"b 2\n")].concat()).unwrap(), b"a 1\nb 2\n");
        assert!(read(&[&gzip(b"a 1\n")[..], b"\0more"].concat()).is_err());
    }

    #[test]
    fn what_came_before_a_cut_is_handed_out() {
        let text: Vec<u8> = (0..400_000).flat_map(|n| format!("main;f{n} {n}\n").into_bytes()).collect();
        for packed in [gzip(&text), zstd(&text)] {
            let mut all = Vec::new();
            let cut = packed[..packed.len() / 2].to_vec();
            super::decompress(&packed[..4], Box::new(Cursor::new(cut))).read_to_end(&mut all).unwrap_err();
            assert!(text.starts_with(&all) && all.len() > text.len() / 3, "{}", all.len());
        }
    }

    #[test]
    fn a_cut_or_a_changed_byte_is_said() {
        let text: Vec<u8> = (0..20_000).flat_map(|n| format!("main;f{n} {n}\n").into_bytes()).collect();
        for (format, packed) in [("gzip", gzip(&text)), ("zstd", zstd(&text))] {
            let mut changed = packed.clone();
            changed[packed.len() / 2] ^= 0x55;
            for broken in [&packed[..packed.len() / 2], &packed[..packed.len() - 1], &packed[..5], &changed] {
                let error = read(broken).unwrap_err();
                assert_eq!(error.to_string(), format!("the {format} data is cut short or corrupt"));
            }
        }
    }
}
