//! PerfView's stacks as XML (`.perfView.xml`): frames, stacks that refer to their caller, and samples.
//!
//! ```text
//! <StackWindow><StackSource><Frames Count="2"><Frame ID="0">Process64 app</Frame><Frame ID="1">app!Main</Frame></Frames>
//! <Stacks Count="2"><Stack ID="0" CallerID="-1" FrameID="0"/><Stack ID="1" CallerID="0" FrameID="1"/></Stacks>
//! <Samples Count="1"><Sample ID="0" Time="1.5" StackID="1" Metric="2"/></Samples></StackSource></StackWindow>
//! ```
//! The weight is the sample's metric, or 1 with `--weight samples` and without one. Processes and threads are frames. The
//! document is read as a stream.

use bstr::ByteSlice as _;
use quick_xml::events::{BytesStart, Event};
use rustc_hash::FxHashMap;

use super::xml::{self, ParseError, find_attribute, parse, parse_entity};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_partial_stack, uses_input_weights};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::collapse::stack::{MAX_SHARED_DEPTH, intern_frame};
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "perfview",
    description: "PerfView XML (.NET, Windows)",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| {
        xml::begins(head)
            && (head.contains_str("<StackWindow") || head.contains_str("<StackSource"))
            && head.contains_str("<Frame")
    }),
    reader: FormatReader::Bytes(read),
};

#[derive(Default)]
struct Stacks {
    weighs: bool,
    frames: FxHashMap<i64, FrameId>,
    /// The caller and the frame of each stack.
    stacks: FxHashMap<i64, (i64, i64)>,
    /// The frame whose name is being read.
    open: Option<(i64, String)>,
    is_complete: bool,
    invalid: u64,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let mut stacks = Stacks { weighs: uses_input_weights(document.options), ..Stacks::default() };
    match parse(&mut *document, |event| stacks.handle(&event, sink)) {
        Ok(()) => {}
        Err(ParseError::Xml(what)) => return Err(document.unreadable(what)),
        Err(ParseError::Handler(error)) => return Err(error),
    }
    document.report_problems(stacks.invalid, "sample", "left out: its stack or its metric is missing or invalid")?;
    document.check_end(stacks.is_complete, "</StackSource>")
}

/// Returns an attribute that is a number.
fn number(tag: &BytesStart<'_>, name: &str) -> Option<i64> {
    find_attribute(tag, name)?.parse().ok()
}

impl Stacks {
    fn handle(&mut self, event: &Event<'_>, sink: &mut Sink) -> Result<(), Error> {
        match event {
            Event::Start(tag) | Event::Empty(tag) => match tag.name().as_ref() {
                "Frame" => self.open = number(tag, "ID").map(|id| (id, String::new())),
                "Stack" => {
                    if let (Some(id), Some(frame)) = (number(tag, "ID"), number(tag, "FrameID")) {
                        self.stacks.insert(id, (number(tag, "CallerID").unwrap_or(-1), frame));
                    }
                }
                "Sample" => return self.add_sample(tag, sink),
                _ => {}
            },
            Event::Text(text) => {
                if let Some((_, name)) = &mut self.open {
                    name.push_str(text);
                }
            }
            Event::GeneralRef(entity) => {
                if let Some((_, name)) = &mut self.open {
                    name.extend(parse_entity(entity));
                }
            }
            Event::End(tag) => match tag.name().as_ref() {
                "Frame" => {
                    if let Some((id, name)) = self.open.take() {
                        self.frames.insert(id, intern_frame(name.trim().as_bytes(), sink));
                    }
                }
                "StackSource" => self.is_complete = true,
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn add_sample(&mut self, tag: &BytesStart<'_>, sink: &mut Sink) -> Result<(), Error> {
        let metric = find_attribute(tag, "Metric").filter(|_| self.weighs);
        let weight = metric.map_or(Some(Weight::ONE), |metric| Weight::parse(metric.as_bytes()));
        let (Some(mut id), Some(weight)) = (number(tag, "StackID"), weight) else {
            self.invalid += 1;
            return Ok(());
        };
        let (mut stack, mut has_root) = (Vec::new(), true);
        while let Some((caller, frame)) = self.stacks.get(&id) {
            if stack.len() == MAX_SHARED_DEPTH {
                has_root = false;
                sink.cut_stacks += 1;
                break;
            }
            stack.push(self.frames.get(frame).copied().unwrap_or_else(|| sink.missing_frame()));
            id = *caller;
        }
        stack.reverse();
        add_partial_stack(None, has_root, &stack, weight, sink)
    }
}
