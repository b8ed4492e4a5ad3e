//! Java thread dumps (`jstack`, `jcmd Thread.print`, `jcmd Thread.dump_to_file`, `kill -3`): a snapshot of a JVM, one
//! stack per thread, leaf first.
//!
//! ```text
//! "worker-3" #21 prio=5 os_prio=0 tid=0x1 nid=0x2 runnable [0x3]
//!    java.lang.Thread.State: RUNNABLE
//!         at com.acme.Hash.mix(Hash.java:10)
//!         at java.lang.Thread.run(Thread.java:744)
//! ```
//! Each thread has weight 1, and its name as its root frame. Its state is its event: runnable threads count, unless
//! `--event` names another state. A thread that Java calls runnable but that waits in a native function has the state
//! `RUNNABLE, but waits`. Threads without Java frames, locks, files and lines are left out.

use bstr::ByteSlice as _;

use super::java;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::filter::args::EventChoice;
use crate::collapse::filter::event::EventFilter;
use crate::collapse::format::{Format, FormatReader};
use crate::collapse::line_helpers::{first_lines, parse_number, split_once, split_word, split_words};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "jstack",
    description: "Java thread dumps (jstack, jcmd, kill -3)",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

/// Native functions in which a thread waits although Java reports it as runnable.
const WAITING_FUNCTIONS: [&[u8]; 9] = [
    b".epollWait",
    b".EPoll.wait",
    b".KQueue.poll",
    b".Net.poll",
    b".socketAccept",
    b".accept0",
    b".socketRead0",
    b".poll0",
    b".waitForReferencePendingList",
];

const RUNNABLE: &[u8] = b"RUNNABLE";

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).any(|line| {
        line.starts_with(b"Full thread dump ")
            || parse_file_thread(line).is_some()
            || line.trim_ascii_start().starts_with(b"java.lang.Thread.State: ")
    })
}

/// Returns the thread's name and its state, if it has one, of `#21 "worker-3" RUNNABLE …`, as
/// `jcmd Thread.dump_to_file` writes it.
fn parse_file_thread(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (number, rest) = split_once(line.strip_prefix(b"#")?, " \"")?;
    let (name, rest) = rest.rsplit_once_str("\"").filter(|_| parse_number(number).is_some())?;
    let state = split_words(rest).find(|word| *word != b"virtual").unwrap_or(b"(no state)");
    Some((name, state))
}

/// The thread that is being read.
#[derive(Default)]
struct Thread {
    name: Vec<u8>,
    state: Vec<u8>,
    /// True if its leaf is one of [`WAITING_FUNCTIONS`].
    is_waiting: bool,
    stack: Stack,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut thread) = (Vec::new(), Thread::default());
    let mut is_complete = true;
    document.set_unit("threads, counted once per dump");
    if document.options.event == EventChoice::First {
        document.events = EventFilter::new(EventChoice::Named(RUNNABLE.to_vec()));
    }
    while document.read_line(&mut line)? {
        let trimmed = line.trim_ascii();
        if let Some((name, _)) = line.strip_prefix(b"\"").and_then(|rest| rest.rsplit_once_str("\"")) {
            thread.finish(document, sink)?;
            thread.name = java::pool_name(name, document.options).to_vec();
        } else if let Some((name, state)) = parse_file_thread(&line) {
            thread.finish(document, sink)?;
            (thread.name, thread.state) = (java::pool_name(name, document.options).to_vec(), state.to_vec());
        } else if let Some(state) = trimmed.strip_prefix(b"java.lang.Thread.State: ") {
            thread.state = split_word(state).0.to_vec();
        } else if trimmed.starts_with(b"at ") {
            match java::parse_frame(trimmed, document.options) {
                Some(frame) if !thread.state.is_empty() => {
                    thread.is_waiting |=
                        thread.stack.is_empty() && WAITING_FUNCTIONS.iter().any(|function| frame.ends_with(function));
                    thread.stack.push(frame, sink);
                }
                Some(_) => document.report_malformed("the frame belongs to no thread with a state")?,
                None => document.report_malformed("expected a function and its file")?,
            }
        } else if line.starts_with(b"Full thread dump ") {
            document.check_end(is_complete, "the dump does")?;
            is_complete = false;
        } else if line.starts_with(b"JNI global ref") {
            is_complete = true;
        } else if trimmed.is_empty() {
            thread.finish(document, sink)?;
        }
    }
    thread.finish(document, sink)?;
    document.check_end(is_complete, "the line of JNI references")
}

impl Thread {
    /// Adds the thread's stack and clears the thread. A thread without a stack runs no Java code and is left out.
    fn finish(&mut self, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        let Self { name, state, is_waiting, mut stack } = std::mem::take(self);
        if stack.is_empty() {
            return Ok(());
        }
        let state = if is_waiting && state == RUNNABLE { b"RUNNABLE, but waits".to_vec() } else { state };
        let is_selected = document.events.accept(&state);
        stack.push(&name, sink);
        stack.add_leaf_first(if is_selected { Weight::ONE } else { Weight::ZERO }, sink)
    }
}
