//! What bcc's `profile`, `offcputime`, `offwaketime`, `wakeuptime` and libbpf-tools print without `-f`: kernel frames, user
//! frames, all leaf first, then who ran, then the value. Separators stay: `--` here is the `-` of their folded output.
//!
//! ```text
//!     finish_task_switch
//!     schedule
//!     --
//!     __poll
//!     main
//!     -                app (4242)
//!         1013
//! ```

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::{Options, text};
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "bcc",
    description: "bcc and libbpf-tools: profile, offcputime, offwaketime, wakeuptime",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    let lines: Vec<&[u8]> = text::lines(head).collect();
    lines.windows(2).any(|pair| {
        let ends = matches!(parse(pair[0]), Line::Thread(..) | Line::Waker(_));
        ends && matches!(parse(pair[1]), Line::Value(_)) && pair.iter().all(|line| text::indentation(line) > 0)
    })
}

/// What a line is.
enum Line<'a> {
    /// Who ran: name and process.
    Thread(&'a [u8], &'a [u8]),
    /// Who was woken up, where its frames are not known: name.
    Woken(&'a [u8]),
    /// Who woke it up: name.
    Waker(&'a [u8]),
    Value(u64),
    /// Between kernel and user frames, or between the waker and whom it woke.
    Separator(&'static [u8]),
    Frame(&'a [u8]),
    Other,
}

fn parse(line: &[u8]) -> Line<'_> {
    let (first, rest) = text::split_word(line);
    let named = |rest| thread(rest).map(|(name, pid)| Line::Thread(name, pid));
    match (first, rest) {
        (b"", _) => Line::Other,
        (b"-", b"") => Line::Separator(b"-"),
        (b"--", b"") => Line::Separator(b"-"),
        (b"--", b"--") => Line::Separator(b"--"),
        (b"-", rest) => named(rest).unwrap_or(Line::Other),
        (b"target:", rest) => named(rest).unwrap_or(Line::Woken(rest)),
        (b"waker:", rest) => Line::Waker(thread(rest).map_or(rest, |(name, _)| name)),
        _ => match text::number(line.trim_ascii()) {
            Some(value) => Line::Value(value),
            None if text::indentation(line) > 0 => Line::Frame(line.trim_ascii()),
            None => Line::Other,
        },
    }
}

/// `NAME (PID)` or `NAME PID`.
fn thread(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = memchr::memrchr(b' ', text)?;
    let (name, pid) = (text[..blank].trim_ascii(), &text[blank + 1..]);
    let pid = pid.strip_prefix(b"(").and_then(|pid| pid.strip_suffix(b")")).unwrap_or(pid);
    text::number(pid).map(|_| (name, pid))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut root) = (Vec::new(), Stack::default(), None);
    // The waker, whose frames stand between the two, is the root.
    let mut woken = false;
    while document.line(&mut line)? {
        match parse(&line) {
            Line::Thread(name, pid) => root = Some(rooted(name, pid, document.options)),
            Line::Woken(name) => {
                stack.push(name, sink);
                woken = true;
            }
            Line::Waker(name) => stack.push(name, sink),
            Line::Separator(separator) => stack.push(separator, sink),
            Line::Frame(name) => {
                // libbpf-tools' -v has a number and an address before the name.
                let verbose = name.strip_prefix(b"#").and_then(|rest| Some(text::split_once(rest, " 0x")?.1));
                let name = verbose.map_or(name, |rest| text::split_word(rest).1);
                let (address, named) = text::split_word(name);
                let name = if woken && address.iter().all(u8::is_ascii_hexdigit) { named } else { name };
                stack.push(&text::function(name, document.options), sink);
            }
            Line::Value(value) => {
                match root.take() {
                    Some(root) => stack.push(&root, sink),
                    None if woken => woken = false,
                    None => {
                        stack.clear();
                        document.malformed("a value without the thread that it belongs to")?;
                    }
                }
                stack.add_leaf_first(Weight::new(value), sink)?;
            }
            // The heading, and blanks between stacks.
            Line::Other => {}
        }
    }
    if stack.is_empty() { Ok(()) } else { document.malformed("the input ends within a stack") }
}

fn rooted(name: &[u8], pid: &[u8], options: &Options) -> Vec<u8> {
    if options.pid || options.tid { [name, pid].join(&b'-') } else { name.to_vec() }
}
