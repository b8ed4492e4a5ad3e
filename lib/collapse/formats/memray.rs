//! `memray transform csv`: allocations of a Python program, with their stacks, leaf first.
//!
//! ```text
//! allocator,num_allocations,size,tid,thread_name,stack_trace
//! MALLOC,2,4096,1,0x1,work;/srv/a.py;3|<module>;/srv/a.py;9
//! ```
//! The weight is the size in bytes, unless `--event allocations` asks for the number of allocations. The thread is the
//! root frame if `--tid` asks for it. Files and lines are left out unless `--srcline` asks for them. The format has no end
//! mark: of a file that was cut after a line, nothing tells so.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, parse_number, split_csv, split_once};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "memray",
    description: "memray transform csv (Python)",
    tested_with: "memray 1.20",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| first_lines(head).next().is_some_and(|line| line == HEADING)),
    reader: FormatReader::Lines(read),
};

pub(super) const HEADING: &[u8] = b"allocator,num_allocations,size,tid,thread_name,stack_trace";

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let column = document.select_value(&["bytes", "allocations"], 0)?;
    document.set_unit_silently(["bytes", "allocations"][column]);
    let (mut line, mut stack) = (Vec::new(), Stack::default());
    while document.read_line(&mut line)? {
        if line == HEADING || line.is_empty() {
            continue;
        }
        let fields = split_csv(&line).filter(|fields| fields.len() == 6);
        let values = fields.as_ref().and_then(|fields| Some([parse_number(&fields[2])?, parse_number(&fields[1])?]));
        let (Some(fields), Some(values)) = (fields, values) else {
            document.report_malformed("expected six fields, the second and third of which are numbers")?;
            continue;
        };
        for frame in fields[5].split(|byte| *byte == b'|').filter(|frame| !frame.is_empty()) {
            stack.push(&frame_name(frame, document.options), sink);
        }
        if document.options.tid || stack.is_empty() {
            stack.push(if fields[4].is_empty() { &fields[3] } else { &fields[4] }, sink);
        }
        stack.add_leaf_first(Weight::new(values[column]), sink)?;
    }
    document.check_last_line()
}

/// Returns the function of `work;/srv/a.py;3`.
fn frame_name(frame: &[u8], options: &Options) -> Vec<u8> {
    let Some((name, place)) = split_once(frame, ";") else { return frame.to_vec() };
    match split_once(place, ";").filter(|_| options.srcline) {
        Some((file, line)) => [name, b":", file, b":", line].concat(),
        None => name.to_vec(),
    }
}
