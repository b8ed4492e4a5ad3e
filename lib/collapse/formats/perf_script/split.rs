//! Splits the text into lines, and at the ends of samples.

use super::{frame, header};

/// An iterator over the lines of a text, without their line ends.
#[derive(Clone)]
pub(super) struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    /// Returns the text after the last line that was returned.
    pub(super) fn remaining(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.rest).unwrap_or(self.rest.len());
        let line = &self.rest[..end];
        self.rest = self.rest.get(end + 1..).unwrap_or(b"");
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// Returns the offset after the last sample that is certainly complete: after the last blank line that no frame
/// follows, or before the last line that begins a sample.
pub(super) fn last_sample_end(text: &[u8]) -> Option<usize> {
    let mut end = memchr::memrchr(b'\n', text)? + 1;
    // The complete line after the current one, to check whether it is a frame.
    let mut next_line: &[u8] = b"";
    loop {
        let start = memchr::memrchr(b'\n', &text[..end - 1]).map_or(0, |before| before + 1);
        let line = text[start..end - 1].trim_ascii_end();
        if line.is_empty() {
            if !next_line.is_empty() && !frame::is_frame(next_line) {
                return Some(end);
            }
        } else if start > 0 && begins_sample(line) {
            return Some(start);
        }
        if start == 0 {
            return None;
        }
        next_line = &text[start..end];
        end = start;
    }
}

fn begins_sample(line: &[u8]) -> bool {
    line[0] != b'\t' && matches!(header::parse(line), Some(header::Line::Sample(header)) if header.is_certain())
}

#[cfg(test)]
mod tests {
    use crate::collapse::options::Options;
    use crate::collapse::parser::{BlockReport, LeftOut, Parser as _};
    use crate::collapse::sink::Sink;
    use crate::folded;

    const TEXT: &str = "# captured on: today
#
aa 1 2.0: 3 cycles: 
\t            7f00 f+0x1 (/x)
  f.c:12
\t            7f01 g(int)+0x1 (/x y)

bb 1 2.0: cycles:

\t            7f00 late+0x1 (/x)

cc 1 2.0: PERF_RECORD_COMM exec: cc:1/1
cc 1/2 [003] 2.0: cycles:
\t            7f00 f+0x1 (/x)
dead 7 3.0: 9 cycles:
\t            7f00 f+0x1 (/x)
gibberish
 \t
ee 1
\t            7f00 f+0x1 (/x)

ff 1 2.0: cycles: \r
\t            7f00 f+0x1 (/x)\r
\r
gg 1 2.0: cycles: 7f00 f+0x1 (/x)
hh 1 2.0: other: text
\t            7f00 f+0x1 (/x)
ii 1 2.0: cycles:";

    fn collapse(parts: &[&[u8]]) -> (String, u64, Vec<u64>) {
        let mut parser = super::super::PerfScript::new(&Options::default());
        let (mut sink, mut lines, mut malformed) = (Sink::default(), 0, Vec::new());
        for part in parts {
            let mut report = BlockReport::default();
            parser.parse(part, &mut sink, &mut report).unwrap();
            sink.flush().unwrap();
            let left_out = report.left_out.iter().filter(|line| !matches!(line.kind, LeftOut::Comment(_)));
            malformed.extend(left_out.map(|line| lines + line.number));
            lines += report.lines;
        }
        let mut text = Vec::new();
        folded::write(&sink.into_profile(), &mut text).unwrap();
        (String::from_utf8(text).unwrap(), lines, malformed)
    }

    #[test]
    fn splitting_does_not_change_the_result() {
        let text = TEXT.as_bytes();
        let whole = collapse(&[text]);
        let expected = "aa;g;f 3\nbb;late 1\ncc;f 1\ndead;f 9\nff;f 1\ngg;f 1\nii 1\n";
        assert_eq!((whole.0.as_str(), &whole.2[..]), (expected, &[17][..]));
        let mut boundaries = std::collections::BTreeSet::new();
        for end in 0..=text.len() {
            if let Some(boundary) = super::last_sample_end(&text[..end]) {
                boundaries.insert(boundary);
                assert_eq!(collapse(&[&text[..boundary], &text[boundary..]]), whole, "split at {boundary} of {end}");
            }
        }
        assert!(boundaries.len() > 6, "{boundaries:?}");
    }
}
