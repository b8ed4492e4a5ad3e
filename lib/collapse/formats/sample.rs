//! `sample` of macOS, and "Sample Process" of its Activity Monitor: a tree of calls for each thread, root first.
//!
//! ```text
//! Call graph:
//!     10 Thread_77   DispatchQueue_1: com.apple.main-thread  (serial)
//!     + 10 start  (in libdyld.dylib) + 1  [0x7fff]
//!     +   7 work  (in app) + 20  [0x1000]
//! ```
//! The number counts the samples of a function and all its callees. So a stack weighs the number minus those of the
//! callees.
//! Frames are named ``module`function``. Offsets, addresses, and everything after the tree are left out.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{
    first_lines, function_name, parse_number, split_once, split_word, starts_with_any,
};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{CallTree, MAX_SHARED_DEPTH};
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "sample",
    description: "macOS sample",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

/// Number of blanks before a thread.
const THREAD_INDENTATION: usize = 4;

fn recognizes(head: &[u8]) -> bool {
    head.starts_with(b"Analysis of sampling ") || first_lines(head).any(|line| line == b"Call graph:")
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut tree, mut in_tree) = (Vec::new(), CallTree::default(), false);
    let mut is_first = false;
    document.set_unit("samples");
    while document.read_line(&mut line)? {
        if line == b"Call graph:" {
            (in_tree, is_first) = (true, true);
        } else if line.trim_ascii().is_empty() || line.starts_with(b"Total number in stack") {
            in_tree = false;
        } else if in_tree {
            let depth = line.iter().take_while(|byte| b" +|:!".contains(byte)).count();
            if std::mem::take(&mut is_first) && depth < THREAD_INDENTATION {
                return Err(document.indentation_lost());
            }
            let (count, name) = split_word(&line[depth..]);
            match parse_number(count) {
                Some(count) if !name.is_empty() => {
                    let name = frame_name(name, document.options);
                    if !tree.enter_inclusive(depth, &name, Weight::new(count), sink)? {
                        let what = format!(
                            "more samples than its caller has left, or more than {MAX_SHARED_DEPTH} frames deep"
                        );
                        document.report_malformed(&what)?;
                    }
                }
                _ => document.report_malformed("expected a number of samples and a function")?,
            }
        } else if is_setting(&line) {
            document.skip_own_line();
        } else {
            document.skip_line();
        }
    }
    tree.leave(0, sink)?;
    document.check_end(!in_tree, "its tree does")
}

/// Returns true for a line before or after the tree: `Code Type:       X86-64`, or one of the lists behind it.
fn is_setting(line: &[u8]) -> bool {
    let starts: [&[u8]; 5] = [b" ", b"\t", b"----", b"Analysis of sampling ", b"Sample analysis of process "];
    starts_with_any(line, &starts)
        || split_once(line, ":").is_some_and(|(key, rest)| {
            key.first().is_some_and(u8::is_ascii_uppercase) && (rest.is_empty() || rest.starts_with(b"  "))
        })
}

/// Returns ``module`function`` for `function  (in module) + 20  [0x1000]`, and the name for a thread's line.
fn frame_name(line: &[u8], options: &Options) -> Vec<u8> {
    let Some((function, rest)) = split_once(line, "  (in ") else {
        return split_once(line, "  ").map_or(line, |(name, _)| name).to_vec();
    };
    let module = split_once(rest, ")").map_or(rest, |(module, _)| module);
    let module = module.strip_suffix(b".dylib").unwrap_or(module);
    [module, &function_name(function, options)].join(&b'`')
}
