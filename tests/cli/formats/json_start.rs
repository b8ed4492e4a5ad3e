//! Detection of JSON.

use super::example_texts;
use crate::support::run;

/// A value of this length is longer than the part of an input that is looked at first.
const LONG: usize = 600_000;

#[test]
fn the_keys_of_json_may_come_late() {
    let threads = r#"[{"name":"m","samples":{"stack":[0]},"stackTable":{"prefix":[null],"frame":[0]},
        "frameTable":{"func":[0]},"funcTable":{"name":[0]},"stringArray":["f"]}]"#;
    let profile = format!("{{\"meta\":{{\"interval\":1}},\"libs\":[],\"threads\":{threads}}}");
    for separator in [",", ",\n"] {
        let markers = vec!["{\"index\": 1}"; LONG / 12].join(separator);
        let text = format!("{{\"markers\": [{markers}]{separator}\"profile\": {profile}}}");
        let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        assert_eq!(outcome.text(), "m;f 1\n", "{outcome:?}");
    }
}

#[test]
fn json_of_no_format_is_refused() {
    let object = "{\"id\": 1, \"tags\": [\"a\", \"b\"], \"name\": \"java.lang.Thread.run(Thread.java:1)\"}";
    let list = format!("[{}]", vec![object; LONG / object.len()].join(", "));
    let lines = list.replace(", {", ",\n{");
    let nested = format!("{}{}", "[".repeat(LONG / 2), "]".repeat(LONG / 2));
    for text in [list, lines, nested] {
        let outcome = run("fg-collapse", [""; 0], text.as_bytes());
        let message = "fg-collapse: stdin: JSON of unknown format; name the format with --format, see fg-collapse --list-formats\n";
        assert_eq!((outcome.code(), outcome.stdout.len(), &*outcome.stderr), (1, 0, message));
    }
}

#[test]
fn json_of_another_format_than_the_named_one_is_refused() {
    let mut refused = 0;
    for (name, text, _) in example_texts().into_iter().filter(|(_, text, _)| text.starts_with(['{', '['])) {
        let alone = run("fg-collapse", [""; 0], text.as_bytes()).ok().text();
        for format in [
            "cpuprofile",
            "firefox",
            "perf-json",
            "speedscope",
            "heapprofile",
            "d3-flame-graph",
            "flamebearer",
            "otlp-json",
        ] {
            let outcome = run("fg-collapse", ["--format", format], text.as_bytes());
            assert!(outcome.code() == 1 || outcome.text() == alone, "{name} as {format}: {outcome:?}");
            refused += u32::from(outcome.code() == 1 && outcome.stderr.contains(&format!("; omit --format {format}")));
        }
    }
    assert!(refused > 100, "{refused}");
}
