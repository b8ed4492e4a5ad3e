//! Reports of findings: text, GitHub annotations and JUnit XML.

use super::rule::Rule;
use super::{Finding, Measure, Verdict};
use crate::diagnostics::printable;
use crate::profile::Weights;
use crate::svg::text::{escape, visible};

/// Style of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Text for people.
    #[default]
    Plain,
    /// A GitHub workflow command, which annotates the run.
    Github,
}

/// Formats a finding as one line.
pub fn format_line(finding: &Finding, rule: &Rule, style: Style) -> String {
    let text = describe(finding, rule);
    let kind = match finding.verdict {
        Verdict::Failed => "error",
        Verdict::WithinNoise => "warning",
        Verdict::Passed | Verdict::NoMatch => "notice",
    };
    match style {
        Style::Plain => text,
        Style::Github => annotation(kind, &format!("fg-check {}", rule.measure.name()), &text),
    }
}

/// Formats a GitHub workflow command that annotates the run; `kind` is `error`, `warning` or `notice`.
pub fn annotation(kind: &str, title: &str, text: &str) -> String {
    let escaped = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    format!("::{kind} title={title}::{escaped}")
}

/// Describes a finding in words.
fn describe(finding: &Finding, rule: &Rule) -> String {
    let name = rule.measure.name();
    let subject = printable(&String::from_utf8_lossy(&finding.subject));
    let subject = if subject.is_empty() { name.to_owned() } else { format!("{name} {subject}") };
    if finding.verdict == Verdict::NoMatch {
        return format!("{subject}: matches no frame, limit {}%", rule.limit);
    }
    let growth = rule.measure.is_growth();
    let sign = if growth && finding.percent >= 0.0 { "+" } else { "" };
    let value = match rule.measure {
        Measure::BusyLoop => format!("{:.2}% of the runtime", finding.percent),
        _ if finding.percent.is_infinite() => "new, as is all after".to_owned(),
        _ if growth => format!("{sign}{:.2}% of all before", finding.percent),
        _ => format!("{:.2}%", finding.percent),
    };
    let against = if finding.verdict == Verdict::Failed { "more than" } else { "limit" };
    let mut text =
        format!("{subject}: {value} ({}), {against} {}%", format_weights(finding.weights, growth), rule.limit);
    if let Some((stack, worst)) = &finding.worst {
        let stack = printable(&String::from_utf8_lossy(stack));
        text.push_str(&format!("; most in {stack} ({})", format_weights(*worst, growth)));
    }
    if finding.verdict == Verdict::WithinNoise {
        text.push_str(", exceeded, but within noise");
    }
    text
}

/// Formats the weight, or the weights before and after if `both` is true.
fn format_weights(weights: Weights, both: bool) -> String {
    if both { format!("{} -> {}", weights.before, weights.after) } else { weights.after.to_string() }
}

/// Formats all rules as test cases of a JUnit suite: failed ones as failures; other remarks as output of the test case.
pub fn junit(findings: &[Finding], rules: &[Rule]) -> Vec<u8> {
    let cases = rules.iter().enumerate().map(|(number, rule)| {
        let text = rule.text.as_ref().map_or_else(String::new, |text| format!("{text}="));
        let name = format!("{} {text}{}%", rule.measure.name(), rule.limit);
        let found = findings.iter().filter(|found| found.rule == number);
        let elements = found.filter_map(|found| match found.verdict {
            Verdict::Failed => Some(Element::Failure(describe(found, rule))),
            Verdict::WithinNoise | Verdict::NoMatch => Some(Element::Output(describe(found, rule))),
            Verdict::Passed => None,
        });
        (name, elements.collect())
    });
    format_suite(&cases.collect::<Vec<_>>())
}

/// Formats a JUnit suite with one test case that has an error, for a check that could not run.
pub fn junit_error(text: &str) -> Vec<u8> {
    format_suite(&[("check".to_owned(), vec![Element::Error(text.to_owned())])])
}

/// Element of a test case.
#[derive(Debug)]
enum Element {
    Failure(String),
    Error(String),
    Output(String),
}

/// Returns the number of cases with an element that matches.
fn count_cases(cases: &[(String, Vec<Element>)], is_match: fn(&Element) -> bool) -> usize {
    cases.iter().filter(|(_, elements)| elements.iter().any(is_match)).count()
}

fn format_suite(cases: &[(String, Vec<Element>)]) -> Vec<u8> {
    let failures = count_cases(cases, |element| matches!(element, Element::Failure(_)));
    let errors = count_cases(cases, |element| matches!(element, Element::Error(_)));
    let tests = cases.len();
    let mut xml = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_vec();
    let head = format!("<testsuite name=\"fg-check\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n");
    xml.extend_from_slice(head.as_bytes());
    for (name, elements) in cases {
        write_escaped("  <testcase classname=\"fg-check\" name=\"", name, "\">\n", &mut xml);
        for element in elements {
            match element {
                Element::Failure(text) => write_escaped("    <failure message=\"", text, "\"/>\n", &mut xml),
                Element::Error(text) => write_escaped("    <error message=\"", text, "\"/>\n", &mut xml),
                Element::Output(text) => write_escaped("    <system-out>", text, "</system-out>\n", &mut xml),
            }
        }
        xml.extend_from_slice(b"  </testcase>\n");
    }
    xml.extend_from_slice(b"</testsuite>\n");
    xml
}

/// Writes text with XML escapes, between `before` and `after`.
fn write_escaped(before: &str, text: &str, after: &str, xml: &mut Vec<u8>) {
    xml.extend_from_slice(before.as_bytes());
    escape(&visible(text.as_bytes()), xml);
    xml.extend_from_slice(after.as_bytes());
}
