//! fg-collapse: OpenTelemetry traces as files of spans.

use std::path::{Path, PathBuf};

use crate::support::{Outcome, directory, run};

/// Samples of thread 12 of process 11 on the realtime clock, in and outside a span of half a second.
const SAMPLES: &str = "a 11/12 1700000000.100000: 3 cycles:\n\t 7f00 f (/x)\n\n\
                       a 11/12 1700000000.900000: 5 cycles:\n\t 7f00 f (/x)\n\n";

/// Makes a request with one span of half a second, with these attributes.
fn request(name: &str, attributes: &str) -> String {
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"process.pid","value":{{"intValue":"11"}}}}]}},"scopeSpans":[{{"spans":[{{"traceId":"5B8EFFF798038103D269B633813FC60C","name":"{name}","startTimeUnixNano":"1700000000000000000","endTimeUnixNano":1700000000500000000,"attributes":[{attributes}]}}]}}]}}]}}"#
    )
}

const THREAD: &str = r#"{"key":"http.port","value":{"intValue":80}},{"key":"thread.id","value":{"intValue":"12"}}"#;

fn write(folder: &Path, spans: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join("spans");
    std::fs::write(&path, spans).unwrap();
    path
}

fn collapse(spans: &Path, samples: &str) -> Outcome {
    run("fg-collapse", ["--span".as_ref(), spans.as_os_str()], samples.as_bytes())
}

/// Appends a field of protobuf: bytes after their length.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 1 << 14);
    [&[number << 3 | 2, bytes.len() as u8 | 0x80, (bytes.len() >> 7) as u8][..], bytes].concat()
}

/// Makes the request of [`request`] in protobuf.
fn protobuf_request(name: &str) -> Vec<u8> {
    let attribute = |key: &str, number: u8| [field(1, key.as_bytes()), field(2, &[3 << 3, number])].concat();
    let time = |number: u8, time: u64| [&[number << 3 | 1][..], &time.to_le_bytes()].concat();
    let span = [
        field(1, &[0xfe; 16]),
        field(5, name.as_bytes()),
        time(7, 1_700_000_000_000_000_000),
        time(8, 1_700_000_000_500_000_000),
        field(9, &attribute("thread.id", 12)),
    ];
    let resource = field(1, &attribute("process.pid", 11));
    field(1, &[field(1, &resource), field(2, &field(2, &span.concat()))].concat())
}

#[test]
fn reads_json_and_protobuf() {
    let folder = directory();
    let (line, message) = (request("GET /", THREAD), protobuf_request("GET /"));
    let before_length = [&(message.len() as u32).to_be_bytes()[..], &message].concat();
    for spans in [
        line.clone().into_bytes(),
        format!("\n{line}\n{}\n", request("other", "")).into_bytes(),
        line.replace(":[", ":\n  [").into_bytes(),
        line.replace("\"1700000000000000000\"", "1.7e18").into_bytes(),
        message.clone(),
        [&before_length[..], &before_length].concat(),
    ] {
        let outcome = collapse(&write(folder.path(), &spans), SAMPLES).ok();
        assert_eq!(outcome.text(), "GET /;a;f 3\n[no span];a;f 5\n", "{}", String::from_utf8_lossy(&spans));
    }
}

#[test]
fn says_which_spans_are_left_out() {
    let folder = directory();
    let backwards = request("late", THREAD).replace("1700000000500000000", "1600000000000000000");
    let lines = [
        request("GET /", THREAD),
        request("no thread", ""),
        request("no ID", &THREAD.replace("12", "140234567890176")),
        backwards,
    ];
    let path = write(folder.path(), lines.join("\n"));
    let outcome = collapse(&path, SAMPLES).ok();
    assert_eq!(outcome.text(), "GET /;a;f 3\n[no span];a;f 5\n");
    let file = path.display();
    let expected = format!(
        "fg-collapse: {file}: 1 span left out: without the attribute thread.id, the thread id that gettid returns (process.pid 11)\n\
         fg-collapse: {file}: 1 span left out: their attribute thread.id is not the thread id that gettid returns, but another, \
         such as that of pthread_self: 140234567890176\n\
         fg-collapse: {file}: 1 span left out: without a start, or with an end before it\n"
    );
    assert_eq!(outcome.stderr, expected);
}

#[test]
fn a_span_belongs_to_its_process_and_thread() {
    let folder = directory();
    for other in ["13/12", "11/13"] {
        let outcome = collapse(&write(folder.path(), request("GET /", THREAD)), &SAMPLES.replace("11/12", other));
        assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{outcome:?}");
        assert!(
            outcome.stderr.contains("the attribute thread.id must be the thread id that gettid returns"),
            "{outcome:?}"
        );
    }
    let samples = SAMPLES.replace("1700000000.1", "1700000000.6");
    let outcome = collapse(&write(folder.path(), request("GET /", THREAD)), &samples).ok();
    assert_eq!(outcome.text(), "[no span];a;f 8\n", "{samples}");
    assert!(outcome.stderr.contains("no sample lies within a span of its thread\n"), "{outcome:?}");
}

#[test]
fn refuses_a_file_none_of_whose_spans_has_a_thread() {
    let folder = directory();
    let ident = request("GET /", &THREAD.replace("12", "140234567890176"));
    for spans in [ident, request("GET /", ""), "a log\nof something\n".to_owned()] {
        let outcome = collapse(&write(folder.path(), spans), SAMPLES);
        assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{outcome:?}");
        assert!(outcome.stderr.contains("none of its lines is a span that has a thread"), "{outcome:?}");
    }
}

#[test]
fn spans_may_be_standard_input() {
    let folder = directory();
    let samples = folder.path().join("samples");
    std::fs::write(&samples, SAMPLES).unwrap();
    let spans = request("GET /", THREAD);
    let outcome = run("fg-collapse", ["--span".as_ref(), "-".as_ref(), samples.as_os_str()], spans.as_bytes()).ok();
    assert_eq!(outcome.text(), "GET /;a;f 3\n[no span];a;f 5\n");
    let outcome = run("fg-collapse", ["--span", "-"], spans.as_bytes());
    assert_eq!(outcome.code(), 2, "{outcome:?}");
    assert!(outcome.stderr.contains("--span - is standard input, and so is the input"), "{outcome:?}");
}

#[test]
fn refuses_samples_of_another_clock() {
    let folder = directory();
    let outcome = collapse(&write(folder.path(), request("GET /", THREAD)), &SAMPLES.replace("1700000000", "5000"));
    assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""));
    assert!(
        outcome.stderr.contains("its times are those of CLOCK_REALTIME, but those of the samples are not"),
        "{outcome:?}"
    );
}

#[test]
fn refuses_damaged_traces() {
    let folder = directory();
    let (line, message) = (request("GET /", THREAD), protobuf_request("GET /"));
    for (spans, what) in [
        (line.as_bytes()[..line.len() - 2].to_vec(), "JSON that begins at line 1 is cut short"),
        (format!("{line}\n{{]}}").into_bytes(), "malformed JSON after line 2"),
        (format!("{line}\n[]").into_bytes(), "line 2: expected an object with resourceSpans"),
        (message[..message.len() - 1].to_vec(), "OpenTelemetry traces that are truncated or damaged"),
        ([&[0, 0, 1, 0][..], &message].concat(), "OpenTelemetry traces that are truncated or damaged"),
    ] {
        let outcome = collapse(&write(folder.path(), &spans), SAMPLES);
        assert_eq!(outcome.code(), 1, "{what}: {outcome:?}");
        assert!(outcome.stderr.contains(what), "{what}: {outcome:?}");
    }
}
