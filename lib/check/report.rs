//! What was found, in words: for people, for GitHub's annotations, and as JUnit's XML.

use super::rule::Rule;
use super::{Finding, Measure, Verdict};
use crate::diagnostics::printable;
use crate::profile::Weights;
use crate::svg::text::{escape, visible};

/// For whom a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// For people.
    #[default]
    Plain,
    /// A command of GitHub's workflows, which marks the run with it.
    Github,
}

/// One finding in one line.
pub fn line(finding: &Finding, rule: &Rule, style: Style) -> String {
    let said = said(finding, rule);
    let kind = match finding.verdict {
        Verdict::Broken => "error",
        Verdict::Excused => "warning",
        Verdict::Kept | Verdict::Unmet => "notice",
    };
    match style {
        Style::Plain => said,
        Style::Github => annotation(kind, &format!("fg-check {}", rule.measure.name()), &said),
    }
}

/// A command of GitHub's workflows: a mark on the run, of a kind, with a title.
pub fn annotation(kind: &str, title: &str, said: &str) -> String {
    let escaped = said.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    format!("::{kind} title={title}::{escaped}")
}

fn said(finding: &Finding, rule: &Rule) -> String {
    let name = rule.measure.name();
    let subject = printable(&String::from_utf8_lossy(&finding.subject));
    let subject = if subject.is_empty() { name.to_owned() } else { format!("{name} {subject}") };
    if finding.verdict == Verdict::Unmet {
        return format!("{subject}: matches no frame, limit {}%", rule.limit);
    }
    let growth = rule.measure.is_growth();
    let weights = |weights: Weights| match growth {
        true => format!("{} -> {}", weights.before, weights.after),
        false => weights.after.to_string(),
    };
    let sign = if growth && finding.percent >= 0.0 { "+" } else { "" };
    let of = match rule.measure {
        Measure::BusyLoop => " of the runtime",
        _ if growth => " of all before",
        _ => "",
    };
    let against = if finding.verdict == Verdict::Broken { "more than" } else { "limit" };
    let mut said = format!(
        "{subject}: {sign}{:.2}%{of} ({}), {against} {}%",
        finding.percent,
        weights(finding.weights),
        rule.limit
    );
    if let Some((stack, worst)) = &finding.worst {
        let stack = printable(&String::from_utf8_lossy(stack));
        said.push_str(&format!("; most in {stack} ({})", weights(*worst)));
    }
    if finding.verdict == Verdict::Excused {
        said.push_str(", exceeded; but that may be noise");
    }
    said
}

/// All rules as the test cases of JUnit's suite, those that are broken as failures. What else is worth saying of one
/// stands in its output.
pub fn junit(findings: &[Finding], rules: &[Rule]) -> Vec<u8> {
    let cases = rules.iter().enumerate().map(|(number, rule)| {
        let text = rule.text.as_ref().map_or_else(String::new, |text| format!("{text}="));
        let name = format!("{} {text}{}%", rule.measure.name(), rule.limit);
        let found = findings.iter().filter(|found| found.rule == number);
        let elements = found.filter_map(|found| match found.verdict {
            Verdict::Broken => Some(Element::Failure(said(found, rule))),
            Verdict::Excused | Verdict::Unmet => Some(Element::Output(said(found, rule))),
            Verdict::Kept => None,
        });
        (name, elements.collect())
    });
    suite(&cases.collect::<Vec<_>>())
}

/// JUnit's suite where nothing could be checked: one test case, with the error.
pub fn junit_of_error(said: &str) -> Vec<u8> {
    suite(&[("check".to_owned(), vec![Element::Error(said.to_owned())])])
}

/// What a test case holds.
#[derive(Debug)]
enum Element {
    Failure(String),
    Error(String),
    Output(String),
}

fn suite(cases: &[(String, Vec<Element>)]) -> Vec<u8> {
    let count = |is: fn(&Element) -> bool| cases.iter().filter(|(_, elements)| elements.iter().any(is)).count();
    let failures = count(|element| matches!(element, Element::Failure(_)));
    let errors = count(|element| matches!(element, Element::Error(_)));
    let tests = cases.len();
    let mut xml = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_vec();
    let head = format!("<testsuite name=\"fg-check\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n");
    xml.extend_from_slice(head.as_bytes());
    for (name, elements) in cases {
        quoted("  <testcase classname=\"fg-check\" name=\"", name, "\">\n", &mut xml);
        for element in elements {
            match element {
                Element::Failure(said) => quoted("    <failure message=\"", said, "\"/>\n", &mut xml),
                Element::Error(said) => quoted("    <error message=\"", said, "\"/>\n", &mut xml),
                Element::Output(said) => quoted("    <system-out>", said, "</system-out>\n", &mut xml),
            }
        }
        xml.extend_from_slice(b"  </testcase>\n");
    }
    xml.extend_from_slice(b"</testsuite>\n");
    xml
}

fn quoted(before: &str, text: &str, after: &str, xml: &mut Vec<u8>) {
    xml.extend_from_slice(before.as_bytes());
    escape(&visible(text.as_bytes()), xml);
    xml.extend_from_slice(after.as_bytes());
}
