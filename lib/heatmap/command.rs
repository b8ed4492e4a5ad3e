//! The options of the input as HTML attributes, one command-line word a line.
//!
//! From these the script of the page builds the `fg-collapse` command that selects the same samples from the recording.
//! The script quotes the words for a shell.

use super::{Options, SECOND};
use crate::collapse::{EventChoice, NumberList, Timeline};
use crate::profile::SampleWeight;
use crate::svg::{escape, visible};

/// Returns the attributes of the map's element, each with a leading space.
pub(super) fn attributes(timeline: &Timeline, options: &Options) -> Vec<u8> {
    let input = &options.input;
    let mut always = match &input.event {
        EventChoice::First => Vec::new(),
        EventChoice::All => vec!["--event".to_owned(), "all".to_owned()],
        EventChoice::Named(name) => vec!["--event".to_owned(), lossy(name)],
    };
    always.extend(list_option("--cpu", input.cpus.as_ref()));
    always.extend(input.no_idle.then(|| "--no-idle".to_owned()));
    let weight = if input.weight == SampleWeight::Samples { "samples" } else { "period" };
    let (low, high) = input.offset.map_or((0, SECOND), |offset| offset.bounds());
    // True if the input also has samples that are not on the map: before it, after it, or without a time.
    let is_bounded = input.time.is_some() || timeline.untimed > 0;
    let mut attributes = Vec::new();
    for (name, words) in [
        ("weight", vec![weight.to_owned()]),
        ("always", always),
        ("comms", input.comms.iter().flat_map(|comm| ["--comm".to_owned(), lossy(comm)]).collect()),
        ("pids", list_option("-p", input.pids.as_ref())),
        ("tids", list_option("-t", input.tids.as_ref())),
        ("offset", vec![low.to_string(), high.to_string()]),
        ("bounded", Vec::from_iter(is_bounded.then(|| "yes".to_owned()))),
    ] {
        let words: Vec<_> = words.iter().map(|word| visible(word.as_bytes())).collect();
        attributes.extend_from_slice(format!(" data-{name}=\"").as_bytes());
        escape(&words.join("\n"), &mut attributes);
        attributes.push(b'"');
    }
    attributes
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the words of an option whose value is a list of numbers, or nothing if it was not given.
fn list_option(option: &str, numbers: Option<&NumberList>) -> Vec<String> {
    numbers.map_or_else(Vec::new, |numbers| vec![option.to_owned(), numbers.to_string()])
}
