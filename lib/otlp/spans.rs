//! Reads the spans of OpenTelemetry traces from protobuf: messages of `opentelemetry.proto.trace.v1`.

use super::{Dictionary, field};
use crate::protobuf::{Fields, Value, read_messages};

/// The parts of a span that tell which samples belong to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceSpan {
    /// The name of the operation.
    pub name: Vec<u8>,
    /// The attribute `thread.id` of the span.
    pub thread: Option<Vec<u8>>,
    /// The attribute `process.pid` of the resource.
    pub process: Option<Vec<u8>>,
    /// The start in nanoseconds since 1970; 0 if it is missing.
    pub start: u64,
    /// The end in nanoseconds since 1970; 0 if it is missing.
    pub end: u64,
}

/// The key of the attribute for the thread.
pub const THREAD_ID: &[u8] = b"thread.id";
/// The key of the attribute for the process.
pub const PROCESS_ID: &[u8] = b"process.pid";

/// Parses a `TracesData` message, or a request to export traces, which has the same fields. Returns `None` if it is malformed.
pub fn parse_traces(message: &[u8]) -> Option<Vec<TraceSpan>> {
    use field::{resource, resource_spans, scope_spans};
    let mut spans = Vec::new();
    for field in Fields::new(message) {
        let (field::RESOURCE_SPANS, resource) = field? else { continue };
        let resource = resource.bytes()?;
        let attributes = read_messages(resource, resource_spans::RESOURCE)
            .flat_map(|resource| read_messages(resource, resource::ATTRIBUTES));
        let process = find_attribute(attributes, PROCESS_ID);
        for field in Fields::new(resource) {
            let (resource_spans::SCOPE_SPANS, scope) = field? else { continue };
            for field in Fields::new(scope.bytes()?) {
                let (scope_spans::SPANS, span) = field? else { continue };
                spans.push(TraceSpan { process: process.clone(), ..parse_span(span.bytes()?)? });
            }
        }
    }
    Some(spans)
}

fn parse_span(message: &[u8]) -> Option<TraceSpan> {
    let mut span = TraceSpan::default();
    for field in Fields::new(message) {
        match field? {
            (field::span::NAME, name) => span.name = name.bytes()?.to_vec(),
            (field::span::START, Value::Fixed(time)) => span.start = time,
            (field::span::END, Value::Fixed(time)) => span.end = time,
            _ => {}
        }
    }
    span.thread = find_attribute(read_messages(message, field::span::ATTRIBUTES), THREAD_ID);
    Some(span)
}

/// Returns the value of the attribute with this key, as text.
fn find_attribute<'a>(mut attributes: impl Iterator<Item = &'a [u8]>, key: &[u8]) -> Option<Vec<u8>> {
    let attributes = attributes.by_ref().filter_map(|attribute| Dictionary::default().parse_key_value(attribute));
    attributes.filter(|(other, _)| other == key).map(|(_, value)| value).next()
}

#[cfg(test)]
mod tests {
    use super::{TraceSpan, parse_traces};
    use crate::protobuf::{put_bytes, put_fixed, put_number};

    fn attribute(key: &[u8], number: u64) -> Vec<u8> {
        let (mut value, mut attribute) = (Vec::new(), Vec::new());
        put_number(&mut value, 3, number);
        put_bytes(&mut attribute, 1, key);
        put_bytes(&mut attribute, 2, &value);
        attribute
    }

    #[test]
    fn reads_spans_with_their_thread_and_process() {
        let [mut resource, mut span, mut scope, mut spans, mut message] = [const { Vec::new() }; 5];
        put_bytes(&mut resource, 1, &attribute(b"process.pid", 7));
        put_bytes(&mut span, 5, b"GET /");
        put_fixed(&mut span, 7, 1_700_000_000_000_000_001);
        put_fixed(&mut span, 8, 1_700_000_000_000_000_002);
        put_bytes(&mut span, 9, &attribute(b"http.port", 80));
        put_bytes(&mut span, 9, &attribute(b"thread.id", 8));
        put_bytes(&mut scope, 2, &span);
        // The resource may follow its spans.
        put_bytes(&mut spans, 2, &scope);
        put_bytes(&mut spans, 1, &resource);
        put_bytes(&mut message, 1, &spans);
        let expected = TraceSpan {
            name: b"GET /".to_vec(),
            thread: Some(b"8".to_vec()),
            process: Some(b"7".to_vec()),
            start: 1_700_000_000_000_000_001,
            end: 1_700_000_000_000_000_002,
        };
        assert_eq!(parse_traces(&message), Some(vec![expected]));
        assert_eq!(parse_traces(&message[..message.len() - 1]), None);
        assert_eq!(parse_traces(b""), Some(Vec::new()));
        for index in 0..message.len() {
            let mut damaged = message.clone();
            damaged[index] ^= 0xff;
            // Whatever it is, it is read without a panic.
            let _ = parse_traces(&damaged);
            let _ = parse_traces(&message[..index]);
        }
    }
}
