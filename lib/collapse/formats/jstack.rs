//! Java thread dumps (`jstack`, `jcmd Thread.print`, `jcmd Thread.dump_to_file`, `kill -3`): a snapshot of a JVM, one
//! stack per thread, leaf first.
//!
//! ```text
//! "worker-3" #21 prio=5 os_prio=0 tid=0x1 nid=0x2 runnable [0x3]
//!    java.lang.Thread.State: RUNNABLE
//!         at com.acme.Hash.mix(Hash.java:10)
//!         at java.lang.Thread.run(Thread.java:744)
//! ```
//! Each thread has weight 1, and its name as its root frame. Its state is its event: runnable threads count, unless `--event`
//! names another state. A thread that Java calls runnable but that waits in a native function has the state `RUNNABLE, but
//! waits`, and one that carries a virtual thread `CARRIER`. In dumps without states, the leaf tells whether a thread waits.
//! Threads without Java frames, locks, files and lines are left out.

use bstr::ByteSlice as _;

use super::{java, java_exceptions};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::filter::args::EventChoice;
use crate::collapse::filter::event::EventFilter;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, parse_number, split_once, split_word, split_words, starts_with_any};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "jstack",
    description: "Java thread dumps (jstack, jcmd, kill -3)",
    tested_with: "JDK 17, 21 and 25, published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

/// Native functions in which a thread waits although Java reports it as runnable.
const WAITING_FUNCTIONS: [&[u8]; 10] = [
    b".VirtualThread.takeVirtualThreadListToUnblock",
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

pub(super) const RUNNABLE: &[u8] = b"RUNNABLE";

/// The name of threads without one, which are virtual threads.
pub(super) const VIRTUAL: &[u8] = b"(virtual)";

/// The state of a thread that runs a virtual one, whose frames follow as those of a thread of its own.
const CARRIER: &[u8] = b"CARRIER";

/// The state of a thread whose dump has none, until its leaf tells whether it waits.
const UNKNOWN_STATE: &[u8] = b"(no state)";

/// Functions in which a thread waits, for dumps without states.
const BLOCKING_FUNCTIONS: [&[u8]; 10] = [
    b".Object.wait",
    b".Object.wait0",
    b".Unsafe.park",
    b".Thread.sleep",
    b".Thread.sleep0",
    b".Thread.sleepNanos0",
    b".VirtualThread.park",
    b".VirtualThread.yieldContinuation",
    b".Continuation.yield",
    b".Continuation.yield0",
];

/// The words of a thread's heading that tell its state, in dumps of JDK 5 and older.
const HEADING_STATES: [(&str, &[u8]); 5] = [
    (" runnable", RUNNABLE),
    (" waiting for monitor entry", b"BLOCKED"),
    (" in Object.wait()", b"WAITING"),
    (" waiting on condition", b"WAITING"),
    (" sleeping", b"TIMED_WAITING"),
];

/// Returns the state in the rest of a thread's heading, or an empty one.
fn heading_state(rest: &[u8]) -> &'static [u8] {
    HEADING_STATES.iter().find(|(words, _)| rest.contains_str(words)).map_or(b"", |(_, state)| state)
}

/// Returns true if a line begins a dump, or is the first one of a thread.
pub(super) fn recognizes(head: &[u8]) -> bool {
    first_lines(head).any(|line| {
        line.starts_with(b"Full thread dump ")
            || parse_file_thread(line).is_some()
            || line.starts_with(b"\"") && line.contains_str(" prio=") && line.contains_str(" tid=0x")
            || line.trim_ascii_start().starts_with(b"java.lang.Thread.State: ")
    })
}

/// Returns the name and the rest of a thread's heading, which may be indented if it has the thread's ID.
fn parse_heading(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let heading = line.trim_ascii_start();
    let is_heading = heading.len() == line.len() || heading.contains_str(" tid=0x");
    heading.strip_prefix(b"\"").filter(|_| is_heading)?.rsplit_once_str("\"")
}

/// Returns the thread's name and its state, if it has one, of `#21 "worker-3" RUNNABLE …`, as
/// `jcmd Thread.dump_to_file` writes it.
fn parse_file_thread(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (number, rest) = split_once(line.strip_prefix(b"#")?, " \"")?;
    let (name, rest) = rest.rsplit_once_str("\"").filter(|_| parse_number(number).is_some())?;
    let state = split_words(rest).find(|word| word.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_'));
    Some((name, state.unwrap_or(UNKNOWN_STATE)))
}

/// The thread that is being read.
#[derive(Default)]
struct Thread {
    name: Vec<u8>,
    state: Vec<u8>,
    /// The function of its leaf.
    leaf: Vec<u8>,
    /// True in the output of `jcmd Thread.dump_to_file`.
    is_in_file: bool,
    stack: Stack,
}

/// Returns the state of a thread by the state in the dump, if it has any, and the function in which the thread is.
pub(super) fn effective_state(state: &[u8], leaf: &[u8]) -> Vec<u8> {
    match state {
        b"" if ends_with_any(leaf, &BLOCKING_FUNCTIONS) => b"WAITING".to_vec(),
        b"" | RUNNABLE if ends_with_any(leaf, &WAITING_FUNCTIONS) => b"RUNNABLE, but waits".to_vec(),
        b"" => RUNNABLE.to_vec(),
        state => state.to_vec(),
    }
}

fn ends_with_any(name: &[u8], ends: &[&[u8]]) -> bool {
    ends.iter().any(|end| name.ends_with(end))
}

/// Returns true for a frame as `jcmd Thread.dump_to_file` writes it: indented, without `at`.
fn is_file_frame(line: &[u8]) -> bool {
    line.starts_with(b"  ") && line.ends_with(b")") && line.contains(&b'(')
}

/// Returns true for a lock (`- locked <0x1>`), a list of locks (`Locked ownable synchronizers:`), and `No compile task`.
fn is_detail(line: &[u8]) -> bool {
    line.starts_with(b"- ") || line.starts_with(b"Locked ") || line.starts_with(b"No compile task")
}

/// Returns true for what a dump says of the virtual machine, of its heap and of deadlocks.
fn is_message(line: &[u8]) -> bool {
    let starts: [&[u8]; 9] = [
        b" ",
        b"\t",
        b"0x",
        b"_java_thread_list",
        b"}",
        b"Threads class SMR info:",
        b"Heap",
        b"Found ",
        b"Java stack information for the threads listed above:",
    ];
    starts_with_any(line, &starts) || line.starts_with(b"====")
}

/// Returns true for a line before the first thread: a time, a process ID, a version.
fn is_first_line(line: &[u8]) -> bool {
    line.iter().all(|byte| byte.is_ascii_digit() || b"-:.+TZ ".contains(byte))
        || !line.contains(&b' ') && line.first().is_some_and(u8::is_ascii_digit)
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut thread) = (Vec::new(), Thread::default());
    let (mut is_complete, mut has_begun) = (true, false);
    document.set_unit("threads, counted once per dump");
    if document.options.event == EventChoice::First {
        document.events = EventFilter::new(EventChoice::Named(RUNNABLE.to_vec()));
    }
    while document.read_line(&mut line)? {
        let trimmed = line.trim_ascii();
        if let Some((name, rest)) = parse_heading(&line) {
            thread.finish(document, sink)?;
            thread.name = java::pool_name(name, document.options).to_vec();
            thread.state = heading_state(rest).to_vec();
            has_begun = true;
        } else if let Some((name, state)) = parse_file_thread(trimmed) {
            thread.finish(document, sink)?;
            (thread.name, thread.state) = (java::pool_name(name, document.options).to_vec(), state.to_vec());
            thread.is_in_file = true;
            has_begun = true;
            if thread.name.is_empty() {
                thread.name = VIRTUAL.to_vec();
            }
        } else if trimmed.starts_with(b"Carrying virtual thread #") {
            thread.state = CARRIER.to_vec();
        } else if trimmed.starts_with(b"Mounted virtual thread #") {
            thread.finish(document, sink)?;
            (thread.name, thread.state) = (VIRTUAL.to_vec(), UNKNOWN_STATE.to_vec());
        } else if let Some(state) = trimmed.strip_prefix(b"java.lang.Thread.State: ") {
            thread.state = split_word(state).0.to_vec();
        } else if trimmed.starts_with(b"at ") || thread.is_in_file && is_file_frame(&line) {
            let frame = if trimmed.starts_with(b"at ") { trimmed.to_vec() } else { [b"at ", trimmed].concat() };
            match java::parse_frame(&frame, document.options) {
                Some(frame) if !thread.state.is_empty() => {
                    if thread.stack.is_empty() {
                        thread.leaf = frame.to_vec();
                    }
                    thread.stack.push(frame, sink);
                }
                Some(_) => document.report_malformed("the frame belongs to no thread with a state")?,
                None => document.report_malformed("expected a function and its file")?,
            }
        } else if trimmed.starts_with(b"Full thread dump ") {
            document.check_end(is_complete, "the dump does")?;
            is_complete = false;
        } else if trimmed.starts_with(b"JNI global ref") {
            is_complete = true;
        } else if trimmed.is_empty() {
            thread.finish(document, sink)?;
        } else if is_detail(trimmed) || is_message(&line) || !has_begun && is_first_line(trimmed) {
            document.skip_own_line();
        } else if java_exceptions::names_exception(trimmed) {
            // Its frames are none of the thread.
            thread.finish(document, sink)?;
            document.skip_line();
        } else if !document.skip_line_in_stack() {
            thread.finish(document, sink)?;
        }
    }
    thread.finish(document, sink)?;
    document.check_end(is_complete, "the line of JNI references")
}

impl Thread {
    /// Adds the thread's stack and clears the thread. A thread without a stack runs no Java code and is left out.
    fn finish(&mut self, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        let Self { name, state, leaf, mut stack, .. } = std::mem::take(self);
        if stack.is_empty() {
            return Ok(());
        }
        let state = effective_state(if state == UNKNOWN_STATE { b"" } else { &state }, &leaf);
        let is_selected = document.events.accept(&state);
        stack.push(&name, sink);
        stack.add_leaf_first(if is_selected { Weight::ONE } else { Weight::ZERO }, sink)
    }
}
