//! What the page knows of how its samples were chosen, so that it can name the command of fg-collapse that makes the same
//! cut of the recording. Attributes hold words of a command line, one a line; the script quotes them.

use super::Options;
use crate::collapse::{EventChoice, NumberList, Timeline};
use crate::svg::{escape, visible};

/// The attributes of the map's element, each with a blank before it.
pub(super) fn attributes(timeline: &Timeline, options: &Options) -> Vec<u8> {
    let choice = &options.choice;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let list = |option: &str, numbers: &Option<NumberList>| {
        numbers.iter().flat_map(|numbers| [option.to_owned(), numbers.to_string()]).collect::<Vec<_>>()
    };
    let mut always = match &choice.event {
        EventChoice::First => Vec::new(),
        EventChoice::All => vec!["--event".to_owned(), "all".to_owned()],
        EventChoice::Named(name) => vec!["--event".to_owned(), text(name)],
    };
    always.extend(list("--cpu", &choice.cpus));
    always.extend(choice.no_idle.then(|| "--no-idle".to_owned()));
    let (low, high) = choice.offset.map_or((0, super::samples::SECOND), |offset| offset.bounds());
    let mut attributes = Vec::new();
    for (name, words) in [
        ("always", always),
        ("comms", choice.comms.iter().flat_map(|comm| ["--comm".to_owned(), text(comm)]).collect()),
        ("pids", list("-p", &choice.pids)),
        ("tids", list("-t", &choice.tids)),
        ("offset", vec![low.to_string(), high.to_string()]),
        // Where the input has other samples too, before or after those on the map or without a time.
        ("bounded", Vec::from_iter((choice.time.is_some() || timeline.untimed > 0).then(|| "yes".to_owned()))),
    ] {
        let words: Vec<_> = words.iter().map(|word| visible(word.as_bytes())).collect();
        attributes.extend_from_slice(format!(" data-{name}=\"").as_bytes());
        escape(&words.join("\n"), &mut attributes);
        attributes.push(b'"');
    }
    attributes
}
