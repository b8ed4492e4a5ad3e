//! Decompresses gzip, zstd, xz and bzip2, recognized by their first bytes. Several members, frames or streams are one
//! text.

use std::io::{self, BufRead as _, BufReader, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::read::READ_SIZE;

/// Number of first bytes by which compressed data are recognized.
pub(super) const MAGIC_LENGTH: usize = 10;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const XZ: &[u8] = b"\xfd7zXZ\0";
/// The bytes after `BZh9` in bzip2: those of the first block, or of the end.
const BZIP2_BLOCKS: [&[u8]; 2] = [&[0x31, 0x41, 0x59, 0x26, 0x53, 0x59], &[0x17, 0x72, 0x45, 0x38, 0x50, 0x90]];

/// Maximum memory for decompressing xz, in KiB: what `xz -9` asks for. A few bytes of input can ask for 4 GiB.
const XZ_MEMORY: u32 = 68 << 10;

type Reader = Box<dyn Read + Send>;

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

impl Compression {
    /// Recognizes the format by the first bytes of a file.
    fn detect(start: &[u8]) -> Option<Self> {
        match start {
            _ if start.starts_with(GZIP) => Some(Self::Gzip),
            _ if start.starts_with(ZSTD) => Some(Self::Zstd),
            _ if start.starts_with(XZ) => Some(Self::Xz),
            [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] => {
                let begins =
                    |block: &&[u8]| !rest.is_empty() && block.starts_with(&rest[..rest.len().min(block.len())]);
                BZIP2_BLOCKS.iter().any(begins).then_some(Self::Bzip2)
            }
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
        }
    }
}

/// True if the first bytes are those of a compressed file.
pub(super) fn is_compressed(start: &[u8]) -> bool {
    Compression::detect(start).is_some()
}

/// Decompresses `raw` if `start`, its first bytes, are those of a compressed file; otherwise returns `raw` itself.
pub(super) fn decompress(start: &[u8], raw: Reader) -> Reader {
    let Some(compression) = Compression::detect(start) else { return raw };
    let raw = BufReader::with_capacity(READ_SIZE, raw);
    let reader: Reader = match compression {
        Compression::Gzip => Box::new(GzipMembers { member: Some(GzDecoder::new(raw)) }),
        Compression::Zstd => Box::new(ZstdFrames { raw, decoder: Box::default(), in_frame: false, failure: None }),
        Compression::Xz => Box::new(XzReader::new_mem_limit(raw, true, XZ_MEMORY)),
        Compression::Bzip2 => Box::new(MultiBzDecoder::new(raw)),
    };
    Box::new(Decompressed { format: compression.name(), reader })
}

/// A decompressor whose format errors are replaced by one message for all.
struct Decompressed {
    format: &'static str,
    reader: Reader,
}

impl Read for Decompressed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).map_err(|error| match error.raw_os_error() {
            Some(_) => error,
            None if error.kind() == io::ErrorKind::OutOfMemory => {
                let limit = XZ_MEMORY >> 10;
                let what = format!("the {} data needs more than {limit} MiB of memory to decompress", self.format);
                io::Error::new(io::ErrorKind::OutOfMemory, what)
            }
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

    /// The text `a 1` and a line end, compressed by xz 5.4.
    const XZ_TEXT: [u8; 60] = *b"\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x16\x00\x00\x00\x74\x2f\xe5\xa3\x01\x00\x03\x61\x20\x31\x0a\x00\x1f\xe3\x29\xfb\x8a\xe3\xf5\xdc\x00\x01\x1c\x04\x6f\x2c\x9c\xc1\x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a";

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Returns `a 1` and a line end, as `xz` compresses it.
    fn xz() -> Vec<u8> {
        XZ_TEXT.to_vec()
    }

    fn decompressed(packed: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut text = Vec::new();
        super::decompress(&packed[..super::MAGIC_LENGTH.min(packed.len())], Box::new(Cursor::new(packed.to_vec())))
            .read_to_end(&mut text)
            .map(|_| text)
    }

    #[test]
    fn concatenates_members_and_frames() {
        let skippable = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, b'a', b'b', b'c'];
        assert_eq!(decompressed(&[gzip(b"a 1\n"), gzip(b"b 2\n")].concat()).unwrap(), b"a 1\nb 2\n");
        assert_eq!(decompressed(&[&zstd(b"a 1\n")[..], &skippable, &zstd(b"b 2\n")].concat()).unwrap(), b"a 1\nb 2\n");
        assert_eq!(decompressed(&[bzip2(b"a 1\n"), bzip2(b"b 2\n")].concat()).unwrap(), b"a 1\nb 2\n");
        assert_eq!(decompressed(&[xz(), xz()].concat()).unwrap(), b"a 1\na 1\n");
    }

    #[test]
    fn recognizes_formats_by_their_first_bytes() {
        for (text, is_compressed) in [
            (&gzip(b"a 1\n")[..], true),
            (&zstd(b"a 1\n"), true),
            (&xz(), true),
            (&bzip2(b"a 1\n"), true),
            (&bzip2(b""), true),
            (&bzip2(b"a 1\n")[..6], true),
            (b"BZh9", false),
            (b"BZh9;main 1\n", false),
            (b"\xfd7zXA 1\n", false),
        ] {
            assert_eq!(super::is_compressed(&text[..text.len().min(super::MAGIC_LENGTH)]), is_compressed, "{text:?}");
        }
    }

    #[test]
    fn limits_the_memory_for_a_dictionary() {
        let mut large = xz();
        // The size of the dictionary: 4 GiB - 1. The checksum of the header follows.
        let header = 12..20;
        large[header.start + 4] = 40;
        let checksum = crc32(&large[header.clone()]);
        large[header.end..header.end + 4].copy_from_slice(&checksum.to_le_bytes());
        let error = decompressed(&large).unwrap_err();
        assert_eq!(error.to_string(), "the xz data needs more than 68 MiB of memory to decompress");
    }

    fn crc32(bytes: &[u8]) -> u32 {
        let mut sum = flate2::Crc::new();
        sum.update(bytes);
        sum.sum()
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
        for packed in [gzip(&text), zstd(&text), bzip2(&text)] {
            let mut all = Vec::new();
            let truncated = packed[..packed.len() / 2].to_vec();
            super::decompress(&packed[..super::MAGIC_LENGTH], Box::new(Cursor::new(truncated)))
                .read_to_end(&mut all)
                .unwrap_err();
            assert!(text.starts_with(&all) && all.len() > text.len() / 3, "{}", all.len());
        }
    }

    #[test]
    fn reports_truncation_and_corruption() {
        let text: Vec<u8> = (0..20_000).flat_map(|n| format!("main;f{n} {n}\n").into_bytes()).collect();
        for (format, packed) in [("gzip", gzip(&text)), ("zstd", zstd(&text)), ("bzip2", bzip2(&text)), ("xz", xz())] {
            let mut changed = packed.clone();
            changed[packed.len() / 2] ^= 0x55;
            for broken in [&packed[..packed.len() / 2], &packed[..packed.len() - 1], &packed[..6], &changed] {
                let error = decompressed(broken).unwrap_err();
                assert_eq!(error.to_string(), format!("the {format} data is cut short or corrupt"));
            }
        }
    }
}
