//! The harness itself: a case that fails is reported, and no case is left out.

use serde_json::json;

use crate::browser::Page;

const CASES: &str = include_str!("cases/result.js");

#[track_caller]
fn assert_result(code: &str, function: &str, expected: &[&str]) {
    let page = Page::graph(b"main 1\n", &[]);
    let Some(result) = page.result(code, function, &json!([])) else { return };
    for line in expected {
        assert!(result.contains(line), "{function}: {result}");
    }
    assert_eq!(result == "passed", expected == ["passed"], "{function}: {result}");
}

#[test]
fn reports_failed_cases() {
    assert_result(CASES, "passes", &["passed"]);
    assert_result(CASES, "failsOneCheck", &[r#"texts: expected "right", got "left""#]);
    assert_result(CASES, "checksNothing", &["the case checks nothing"]);
    assert_result(CASES, "throws", &["no frame of no such function"]);
    assert_result(CASES, "waitsForever", &["did not happen: nothing"]);
    assert_result(CASES, "causesErrorElsewhere", &["uncaught error: ", "in a timer", "unhandled rejection: "]);
    assert_result(CASES, "isNotDefined", &["isNotDefined is not defined"]);
    assert_result("function passes() {", "passes", &["no result"]);
}

#[test]
fn every_case_is_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let functions = regex::Regex::new(r"(?m)^(?:async )?function (\w+)").unwrap();
    let mut cases = 0;
    let files = std::fs::read_dir(folder.join("cases")).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "js")) {
        let code = std::fs::read_to_string(&file).unwrap();
        let test = match file.file_stem().unwrap().to_str().unwrap() {
            "result" => "harness",
            name => name,
        };
        let test = std::fs::read_to_string(folder.join(test).with_extension("rs")).unwrap();
        for function in functions.captures_iter(&code).map(|captures| captures.get(1).unwrap().as_str()) {
            let is_case = test.contains(&format!("\"{function}\""));
            let is_helper =
                code.matches(&format!("{function}(")).count() > 1 || code.contains(&format!("({function})"));
            assert!(is_case || is_helper, "{}: nothing calls {function}", file.display());
            cases += usize::from(is_case);
        }
    }
    assert!(cases > 40, "{cases}");
}
