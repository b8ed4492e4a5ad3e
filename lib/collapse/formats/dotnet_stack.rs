//! `dotnet-stack report`: the managed stacks of all threads of a .NET process at one moment, leaf first.
//!
//! ```text
//! Thread (0x48839B):
//!   [Native Frames]
//!   System.Console!System.IO.StdInReader.ReadKey(bool&)
//!   app!App.Program.Main(class System.String[])
//! ```
//! Each thread has weight 1. Modules and argument lists are left out, unless `--no-tidy` keeps them. With `--tid`, the
//! thread becomes the root frame.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, is_address, split_once};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "dotnet-stack",
    description: "dotnet-stack report (.NET)",
    tested_with: "published output",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    let mut lines = first_lines(head);
    lines.any(|line| parse_thread(line).is_some()) && lines.next().is_some_and(is_frame)
}

/// Returns true for `  app!App.Program.Main(class System.String[])` and `  [Native Frames]`.
fn is_frame(line: &[u8]) -> bool {
    line.starts_with(b"  ") && (line.contains(&b'!') || line.trim_ascii_end().ends_with(b"]"))
}

/// Returns the thread ID of `Thread (0x48839B):`.
fn parse_thread(line: &[u8]) -> Option<&[u8]> {
    line.trim_ascii_end().strip_prefix(b"Thread (")?.strip_suffix(b"):").filter(|id| is_address(id))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    document.set_unit("threads");
    let (mut line, mut stack, mut thread) = (Vec::new(), Stack::default(), Vec::new());
    let mut is_open = false;
    loop {
        let more = document.read_line(&mut line)?;
        let heading = parse_thread(&line).filter(|_| more).map(<[u8]>::to_vec);
        if !more || heading.is_some() {
            if document.options.tid && !stack.is_empty() {
                stack.push(&[b"TID=", &thread[..]].concat(), sink);
            }
            stack.add_leaf_first(Weight::ONE, sink)?;
        }
        if !more {
            return document.check_end(!is_open, "the stack of its last thread");
        }
        if !line.trim_ascii().is_empty() {
            is_open = heading.is_some();
        }
        if let Some(id) = heading {
            thread = id;
        } else if is_frame(&line) && !thread.is_empty() {
            stack.push(function(line.trim_ascii(), document.options), sink);
        } else if !line.is_empty() {
            document.report_malformed("expected a thread or a function")?;
        }
    }
}

/// Returns the function of `module!Namespace.Class.Method(arguments)`.
pub(super) fn function<'a>(frame: &'a [u8], options: &Options) -> &'a [u8] {
    if options.verbatim || frame.starts_with(b"[") {
        return frame;
    }
    let name = split_once(frame, "!").map_or(frame, |(_, name)| name);
    let end = memchr::memrchr(b'(', name).filter(|_| name.ends_with(b")")).unwrap_or(name.len());
    if end == 0 { name } else { &name[..end] }
}
