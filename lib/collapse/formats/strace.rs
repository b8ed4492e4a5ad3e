//! `strace -k`: system calls, each with its stack, leaf first.
//!
//! ```text
//! 4711 write(1, "a\n", 2) = 2 <0.000013>
//!  > /usr/lib/x86_64-linux-gnu/libc.so.6(write+0x14) [0xf72d4]
//!  > /srv/app(main+0x1c) [0x1149]
//! ```
//! Each call weighs its microseconds if `-T` was given, else 1; `--event` selects `time` or `calls`. The system call is the
//! leaf. The process, which `-f` adds, is the root frame with `--pid` or `--tid`. Arguments, results and times of day are
//! left out; so are calls without a stack.

use bstr::ByteSlice as _;
use rustc_hash::FxHashMap;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::module_frame;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{
    first_lines, function_name, most_lines_fit, parse_number, parse_scaled, split_once, split_word,
};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::markers::KERNEL;
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "strace",
    description: "strace -k (Linux)",
    tested_with: "strace 6.1",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| {
        first_lines(head).any(|line| parse_frame(line).is_some())
            && first_lines(head).any(|line| parse_call(line).is_some())
            && most_lines_fit(head, 60, |line| parse_frame(line).is_some() || parse_call(line).is_some())
    }),
    reader: FormatReader::Lines(read),
};

/// Returns true if a line is certainly a system call before its stack, with which `next` begins.
pub(super) fn begins_sample(line: &[u8], next: &[u8]) -> bool {
    let mut lines = next.split(|byte| *byte == b'\n').take(usize::from(next.starts_with(b" > ")));
    lines.next().is_some_and(|next| parse_frame(next).is_some()) && parse_call(line).is_some()
}

/// A system call.
struct Call<'a> {
    /// The process, if there is one.
    pid: &'a [u8],
    /// Empty where the call begins and its end is on a later line.
    name: &'a [u8],
    /// Its duration in microseconds.
    time: Option<Weight>,
}

/// Parses `4711 write(1, "a\n", 2) = 2 <0.000013>` or `<... read resumed>"", 4) = 0`, perhaps after a time.
fn parse_call(line: &[u8]) -> Option<Call<'_>> {
    let (pid, text) = split_process(line);
    let (word, rest) = split_word(text);
    let is_time = word.iter().all(|byte| byte.is_ascii_digit() || b".:".contains(byte));
    let text = if is_time && !word.is_empty() { rest } else { text };
    let name = match text.strip_prefix(b"<... ") {
        Some(rest) => split_once(rest, " resumed>")?.0,
        None => split_once(text, "(")?.0,
    };
    if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return None;
    }
    if text.ends_with(b"<unfinished ...>") {
        return Some(Call { pid, name: b"", time: None });
    }
    has_result(text).then_some(())?;
    let time = text.strip_suffix(b">").and_then(|text| Some(&text[memchr::memrchr(b'<', text)? + 1..]));
    Some(Call { pid, name, time: time.and_then(|time| parse_scaled(time, 6)) })
}

/// Returns true for text with `)`, blanks and `= `, as before a result.
fn has_result(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, b"= ").any(|end| text[..end].trim_ascii_end().ends_with(b")"))
}

/// Splits off `4711 ` or `[pid  4711] `.
fn split_process(line: &[u8]) -> (&[u8], &[u8]) {
    let bracketed = line.strip_prefix(b"[pid ").and_then(|rest| split_once(rest, "] "));
    let (pid, rest) = bracketed.unwrap_or_else(|| split_word(line));
    if parse_number(pid.trim_ascii()).is_some() { (pid.trim_ascii(), rest.trim_ascii_start()) } else { (b"", line) }
}

/// Returns the module and the symbol of ` > /srv/app(main+0x1c) [0x1149]`.
fn parse_frame(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (text, _) = line.strip_prefix(b" > ")?.strip_suffix(b"]")?.rsplit_once_str(" [0x")?;
    let inner = text.strip_suffix(b")")?;
    // A symbol of C++ has parentheses itself.
    split_once(inner, "(")
}

/// Returns the process of a message about its end, `4711 +++ exited with 0 +++`.
fn parse_end(line: &[u8]) -> Option<&[u8]> {
    let (pid, text) = split_process(line);
    text.starts_with(b"+++ ").then_some(pid)
}

/// Returns true for what strace says of itself, of signals and of ends.
fn is_message(line: &[u8]) -> bool {
    let (_, text) = split_process(line);
    line.trim_ascii().is_empty()
        || line.starts_with(b"strace: ")
        || line.starts_with(b" > ") && !line.contains_str(" [0x")
        || [&b"--- "[..], b"+++ ", b"???"].iter().any(|start| text.starts_with(start))
        || text.ends_with(b"+++")
        || text.ends_with(b"---")
}

/// The owner of the next frames.
enum Owner {
    Nobody,
    /// A signal, or the end of a process whose last call is not known or has its stack. Such stacks are left out.
    Message,
    Call(OpenCall),
}

/// A system call whose stack is being read.
#[derive(Default)]
struct OpenCall {
    pid: Vec<u8>,
    time: Weight,
    stack: Stack,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut owner, mut has_times) = (Vec::new(), Owner::Nobody, false);
    // The microseconds and the number of calls of each stack.
    let mut sums = FxHashMap::<Vec<FrameId>, [Weight; 2]>::default();
    // The last call of each process, if it had no stack when another process made a call.
    let mut last_calls = FxHashMap::default();
    while document.read_line(&mut line)? {
        if let Some((module, symbol)) = parse_frame(&line) {
            match &mut owner {
                Owner::Call(call) => call.stack.push(&frame_name(module, symbol, document.options), sink),
                Owner::Message => {}
                Owner::Nobody => document.report_malformed("the frame belongs to no system call")?,
            }
        } else if let Some(call) = parse_call(&line) {
            end_call(owner, &mut sums, &mut last_calls, document.options, sink)?;
            last_calls.remove(call.pid);
            has_times |= call.time.is_some();
            owner = match call.name.is_empty() {
                true => Owner::Nobody,
                false => Owner::Call(begin_call(&call, document.options, sink)),
            };
        } else if let Some(pid) = parse_end(&line) {
            // The stack of the call that ends a process follows the message about its end.
            end_call(owner, &mut sums, &mut last_calls, document.options, sink)?;
            owner = last_calls.remove(pid).map_or(Owner::Message, Owner::Call);
        } else if split_process(&line).1.starts_with(b"--- ") {
            end_call(owner, &mut sums, &mut last_calls, document.options, sink)?;
            owner = Owner::Message;
        } else if !is_message(&line) {
            document.report_malformed("expected a system call or a frame")?;
        }
    }
    end_call(owner, &mut sums, &mut last_calls, document.options, sink)?;
    let names: &[&str] = if has_times { &["time", "calls"] } else { &["calls"] };
    let name = names[document.select_value(names, 0)?];
    document.set_unit_silently(if name == "time" { "microseconds" } else { "calls" });
    let mut stack = Stack::default();
    for (frames, [time, calls]) in sums {
        stack.extend(&frames);
        stack.add_leaf_first(if name == "time" { time } else { calls }, sink)?;
    }
    Ok(())
}

fn begin_call(call: &Call<'_>, options: &Options, sink: &mut Sink) -> OpenCall {
    let mut open = OpenCall { pid: call.pid.to_vec(), time: call.time.unwrap_or_default(), ..OpenCall::default() };
    open.stack.push(&[call.name, if options.kernel { KERNEL } else { b"" }].concat(), sink);
    open
}

/// Adds a call to the sums if it has a stack, else to the last calls of processes.
fn end_call(
    owner: Owner,
    sums: &mut FxHashMap<Vec<FrameId>, [Weight; 2]>,
    last_calls: &mut FxHashMap<Vec<u8>, OpenCall>,
    options: &Options,
    sink: &mut Sink,
) -> Result<(), Error> {
    let Owner::Call(mut open) = owner else { return Ok(()) };
    if open.stack.frames().len() < 2 {
        last_calls.insert(open.pid.clone(), open);
        return Ok(());
    }
    if (options.pid || options.tid) && !open.pid.is_empty() {
        open.stack.push(&open.pid, sink);
    }
    let sum = sums.entry(open.stack.frames().to_vec()).or_default();
    for (sum, value) in sum.iter_mut().zip([open.time, Weight::ONE]) {
        *sum = sum.checked_add(value).ok_or(Error::Overflow)?;
    }
    Ok(())
}

fn frame_name(module: &[u8], symbol: &[u8], options: &Options) -> Vec<u8> {
    // `+0x0` is an offset alone.
    let is_unknown = symbol.is_empty() || symbol.starts_with(b"+");
    if is_unknown { module_frame(module, b"", options) } else { function_name(symbol, options).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::{parse_call, parse_frame};

    #[test]
    fn parses_system_calls() {
        for (line, expected) in [
            ("write(1, \"a) = 1\\n\", 2) = 2 <0.000013>", Some(("", "write", Some("13")))),
            ("4711 brk(NULL)                         = 0x5642", Some(("4711", "brk", None))),
            ("[pid  47] 10:00:00.5 read(3, \"\", 4) = -1 EAGAIN (x y)", Some(("47", "read", None))),
            ("47 <... read resumed>\"\", 4)  = 0 <1.000000>", Some(("47", "read", Some("1000000")))),
            ("47 read(3,  <unfinished ...>", Some(("47", "", None))),
            ("ioctl(1, TCGETS, 0x7ffc) = -1 ENOTTY (Inappropriate ioctl for device)", Some(("", "ioctl", None))),
            ("47 +++ exited with 0 +++", None),
            ("print(a, b)", None),
            ("if (a) b = 3;", None),
        ] {
            let call = parse_call(line.as_bytes());
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let parsed = call.map(|call| (text(call.pid), text(call.name), call.time.map(|time| time.to_string())));
            let expected = expected.map(|(pid, name, time): (&str, &str, Option<&str>)| {
                (pid.to_owned(), name.to_owned(), time.map(str::to_owned))
            });
            assert_eq!(parsed, expected, "{line}");
        }
        assert_eq!(parse_frame(b" > /a(f(int)+0x1) [0x2]"), Some((&b"/a"[..], &b"f(int)+0x1"[..])));
        assert_eq!(parse_frame(b" > /a() [0x2]"), Some((&b"/a"[..], &b""[..])));
    }
}
