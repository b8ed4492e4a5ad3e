//! The packets of a trace: their fields, and those that are compressed.

use std::io::Read;

use crate::protobuf::{Fields, put_bytes, read_messages};

/// The field of a trace that has its packets.
pub(super) const PACKET: u32 = 1;

/// The byte before each packet: the number of its field, and that it is a message.
pub(super) const PACKET_TAG: &[u8] = &[PACKET as u8 * 8 + 2];

/// The fields of a packet.
pub(super) mod field {
    pub const PROCESS_TREE: u32 = 2;
    pub const UID: u32 = 3;
    pub const CLOCKS: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED: u32 = 12;
    pub const FLAGS: u32 = 13;
    pub const CONFIGURATION: u32 = 33;
    pub const HEAP_PROFILE: u32 = 37;
    pub const IS_CLEARED: u32 = 41;
    pub const THREAD: u32 = 44;
    pub const ZLIB: u32 = 50;
    pub const STREAMING_PROFILE: u32 = 54;
    pub const CLOCK: u32 = 58;
    pub const DEFAULTS: u32 = 59;
    pub const TRACK: u32 = 60;
    pub const MODULE_SYMBOLS: u32 = 61;
    pub const PERF_SAMPLE: u32 = 66;
    pub const UUID: u32 = 89;
    pub const ZSTD: u32 = 133;
    pub const STACK_SAMPLE: u32 = 135;
}

/// The data of a packet that matters here.
#[derive(Default)]
pub(super) struct Packet<'a> {
    pub(super) timestamp: Option<u64>,
    /// The clock of the timestamp, if it is not the default one of the sequence.
    pub(super) clock: Option<u64>,
    pub(super) sequence: u64,
    pub(super) is_cleared: bool,
    pub(super) defaults: Option<&'a [u8]>,
    pub(super) clocks: Option<&'a [u8]>,
    pub(super) interned: Vec<&'a [u8]>,
    pub(super) thread: Option<&'a [u8]>,
    pub(super) heap_profile: Option<&'a [u8]>,
    pub(super) perf_sample: Option<&'a [u8]>,
    pub(super) stack_sample: Option<&'a [u8]>,
    pub(super) streaming_profile: Option<&'a [u8]>,
    pub(super) track_event: Option<&'a [u8]>,
}

impl<'a> Packet<'a> {
    /// Parses a packet. Returns `None` if it is malformed.
    pub(super) fn parse(message: &'a [u8]) -> Option<Self> {
        let mut packet = Self::default();
        for read in Fields::new(message) {
            let (number, value) = read?;
            match number {
                field::TIMESTAMP => packet.timestamp = value.number(),
                field::CLOCK => packet.clock = value.number(),
                field::SEQUENCE => packet.sequence = value.number()?,
                field::FLAGS => packet.is_cleared |= value.number()? & 1 != 0,
                field::IS_CLEARED => packet.is_cleared |= value.number()? != 0,
                field::DEFAULTS => packet.defaults = value.bytes(),
                field::CLOCKS => packet.clocks = value.bytes(),
                field::INTERNED => packet.interned.push(value.bytes()?),
                field::THREAD => packet.thread = value.bytes(),
                field::HEAP_PROFILE => packet.heap_profile = value.bytes(),
                field::PERF_SAMPLE => packet.perf_sample = value.bytes(),
                field::STACK_SAMPLE => packet.stack_sample = value.bytes(),
                field::STREAMING_PROFILE => packet.streaming_profile = value.bytes(),
                field::TRACK_EVENT => packet.track_event = value.bytes(),
                _ => {}
            }
        }
        Some(packet)
    }
}

/// Minimum of the size to which a trace may be decompressed, in bytes, and its maximum as a multiple of the trace: a
/// small file could fill the memory.
const MIN_LIMIT: usize = 64 << 20;
const MAX_RATIO: usize = 16;

fn has_compressed(trace: &[u8]) -> bool {
    let mut fields = read_messages(trace, PACKET).flat_map(|message| Fields::new(message).flatten());
    fields.any(|(number, _)| is_compression(number))
}

/// Replaces compressed packets by the packets in them. Returns the trace, and the number of compressed packets that are
/// damaged or too large.
pub(super) fn expand(trace: Vec<u8>) -> (Vec<u8>, u64) {
    if !has_compressed(&trace) {
        return (trace, 0);
    }
    let limit = trace.len().saturating_mul(MAX_RATIO).max(MIN_LIMIT);
    let (mut expanded, mut damaged) = (Vec::new(), 0);
    let mut fields = Fields::new(&trace);
    let mut rest = fields.rest();
    while let Some(Some((PACKET, value))) = fields.next() {
        rest = fields.rest();
        let Some(message) = value.bytes() else { continue };
        let compressed = Fields::new(message).flatten().find(|(number, _)| is_compression(*number));
        match compressed.and_then(|(number, value)| Some((number, value.bytes()?))) {
            Some((number, bytes)) => damaged += u64::from(decompress(number, bytes, limit, &mut expanded).is_none()),
            None => put_bytes(&mut expanded, PACKET, message),
        }
    }
    // The bytes after the last whole packet.
    expanded.extend_from_slice(rest);
    (expanded, damaged)
}

fn is_compression(number: u32) -> bool {
    matches!(number, field::ZLIB | field::ZSTD)
}

/// Appends packets that are decompressed, up to a number of bytes in all. Returns `None` if some are missing.
fn decompress(number: u32, bytes: &[u8], limit: usize, expanded: &mut Vec<u8>) -> Option<()> {
    let left = limit.saturating_sub(expanded.len()) as u64 + 1;
    let start = expanded.len();
    let read = match number {
        field::ZSTD => ruzstd::decoding::StreamingDecoder::new(bytes).ok()?.take(left).read_to_end(expanded).is_ok(),
        _ => flate2::read::ZlibDecoder::new(bytes).take(left).read_to_end(expanded).is_ok(),
    };
    // A part of a packet would be taken for the beginning of what follows.
    let mut fields = Fields::new(&expanded[start..]);
    let mut whole = 0;
    while let Some(Some(_)) = fields.next() {
        whole = expanded.len() - start - fields.rest().len();
    }
    let is_whole = read && start + whole == expanded.len() && expanded.len() <= limit;
    expanded.truncate(start + whole);
    is_whole.then_some(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{expand, field};
    use crate::protobuf::{put_bytes, put_number};

    fn packet(number: u32, bytes: &[u8]) -> Vec<u8> {
        let (mut message, mut trace) = (Vec::new(), Vec::new());
        put_bytes(&mut message, number, bytes);
        put_bytes(&mut trace, super::PACKET, &message);
        trace
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn expands_compressed_packets_between_others() {
        let (first, second, cut) = (packet(field::TRACK, b"a"), packet(field::TRACK, b"b"), b"\x0a\x7fcut");
        let zstd = ruzstd::encoding::compress_to_vec(&second[..], ruzstd::encoding::CompressionLevel::Fastest);
        let inner = [&first[..], &second].concat();
        let trace = [&first[..], &packet(field::ZLIB, &zlib(&inner)), &packet(field::ZSTD, &zstd), cut].concat();
        assert_eq!(expand(trace), ([&first[..], &inner, &second, cut].concat(), 0));
        assert_eq!(expand(inner.clone()), (inner, 0));
    }

    #[test]
    fn keeps_the_whole_packets_of_a_damaged_one() {
        let (first, second) = (packet(field::TRACK, b"a"), packet(field::TRACK, b"b"));
        let cut = packet(field::ZLIB, &zlib(&[&first[..], &second[..4]].concat()));
        assert_eq!(expand([&cut[..], &second].concat()), ([&first[..], &second].concat(), 1));
        let garbage = packet(field::ZSTD, b"no zstd");
        assert_eq!(expand([&garbage[..], &second].concat()), (second, 1));
    }

    #[test]
    fn limits_what_a_small_packet_expands_to() {
        let mut large = Vec::new();
        put_number(&mut large, 8, 1);
        put_bytes(&mut large, field::TRACK, &vec![0; 1 << 20]);
        let mut inner = Vec::new();
        (0..80).for_each(|_| put_bytes(&mut inner, super::PACKET, &large));
        let (expanded, damaged) = expand(packet(field::ZLIB, &zlib(&inner)));
        assert_eq!((expanded.len() <= super::MIN_LIMIT, damaged), (true, 1));
    }
}
