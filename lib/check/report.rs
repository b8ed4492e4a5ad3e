//! What was found, in words: for people, for GitHub's annotations, and as JUnit's XML.

use super::rule::Rule;
use super::{Finding, Measure};
use crate::diagnostics::printable;
use crate::profile::Weights;
use crate::svg::text::escape;

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
    match style {
        Style::Plain => said,
        Style::Github => {
            let kind = if finding.violates { "error" } else { "notice" };
            let escaped = said.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
            format!("::{kind} title=fg-check {}::{escaped}", rule.measure.name())
        }
    }
}

fn said(finding: &Finding, rule: &Rule) -> String {
    let growth = rule.measure.is_growth();
    let weights = |weights: Weights| match growth {
        true => format!("{} -> {}", weights.before, weights.after),
        false => weights.after.to_string(),
    };
    let name = rule.measure.name();
    let subject = printable(&String::from_utf8_lossy(&finding.subject));
    let subject = if subject.is_empty() { name.to_owned() } else { format!("{name} {subject}") };
    let sign = if growth && finding.percent >= 0.0 { "+" } else { "" };
    let of = match rule.measure {
        Measure::BusyLoop => " of the runtime",
        _ if growth => " of all before",
        _ => "",
    };
    let against = if finding.violates { "more than" } else { "limit" };
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
    said
}

/// All rules as the test cases of a suite, those that are broken as failures.
pub fn junit(findings: &[Finding], rules: &[Rule]) -> Vec<u8> {
    let broken = |number: usize| findings.iter().filter(move |found| found.rule == number && found.violates);
    let failures = (0..rules.len()).filter(|number| broken(*number).next().is_some()).count();
    let mut xml = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_vec();
    xml.extend(format!("<testsuite name=\"fg-check\" tests=\"{}\" failures=\"{failures}\">\n", rules.len()).bytes());
    for (number, rule) in rules.iter().enumerate() {
        xml.extend_from_slice(b"  <testcase classname=\"fg-check\" name=\"");
        let text = rule.text.as_ref().map_or_else(String::new, |text| format!("{text}="));
        escape(&printable(&format!("{} {text}{}%", rule.measure.name(), rule.limit)), &mut xml);
        xml.extend_from_slice(b"\"");
        if broken(number).next().is_none() {
            xml.extend_from_slice(b"/>\n");
            continue;
        }
        xml.extend_from_slice(b">\n");
        for finding in broken(number) {
            xml.extend_from_slice(b"    <failure message=\"");
            escape(&said(finding, rule), &mut xml);
            xml.extend_from_slice(b"\"/>\n");
        }
        xml.extend_from_slice(b"  </testcase>\n");
    }
    xml.extend_from_slice(b"</testsuite>\n");
    xml
}
