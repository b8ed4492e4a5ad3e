//! Reading folded text.

use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::input::{Blocks, Source, after_last_line};
use crate::profile::{FrameId, Profile, Weight, Weights};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One line, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The frames with their `;`, root first.
    pub stack: &'a [u8],
    /// Its weight, or weights.
    pub weights: Weights,
}

/// Whether lines have one weight or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `stack WEIGHT`.
    Plain,
    /// `stack BEFORE AFTER`.
    Differential,
}

impl Kind {
    /// What the first line of a stream says: differential if it ends in two weights.
    pub fn of_first_line(line: &[u8]) -> Self {
        match parse_line(line, Self::Differential) {
            Some(_) => Self::Differential,
            None => Self::Plain,
        }
    }
}

/// Takes a line apart: the weight is what follows the last blank. `None` if there is no stack or no weight.
///
/// # Example
/// ```
/// use fgkit::folded::{Kind, parse_line};
/// let line = parse_line(b"main;operator new 12", Kind::Plain).expect("well-formed");
/// assert_eq!(line.stack, b"main;operator new");
/// ```
pub fn parse_line(line: &[u8], kind: Kind) -> Option<Line<'_>> {
    let (stack, after) = split_weight(line)?;
    let (stack, before) = match kind {
        Kind::Plain => (stack, Weight::ZERO),
        Kind::Differential => split_weight(stack)?,
    };
    (!stack.is_empty()).then_some(Line { stack, weights: Weights { before, after } })
}

fn split_weight(line: &[u8]) -> Option<(&[u8], Weight)> {
    let line = trim_blanks(line);
    let blank = memchr::memrchr2(b' ', b'\t', line)?;
    Some((trim_blanks(&line[..blank]), Weight::parse(&line[blank + 1..])?))
}

fn trim_blanks(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |last| last + 1);
    &line[..end]
}

/// Reads all sources into one profile. A source that cannot be read is reported and the others still count.
///
/// # Errors
/// [`Error::Overflow`], and with strict diagnostics the first malformed line.
pub fn gather(sources: &[Source], diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let mut reader = Reader::default();
    for source in sources {
        let result = source.open().and_then(|mut input| reader.read(&mut input, diagnostics));
        match result {
            Err(error @ Error::Read { .. }) => diagnostics.fail(&error),
            other => other?,
        }
    }
    if reader.profile.is_empty() && diagnostics.skipped() > 0 {
        return Err(Error::Refused("no line of the input is a folded stack: frame;frame;… WEIGHT".to_owned()));
    }
    Ok(reader.profile)
}

/// Adds all stacks of one input to a profile that is differential or not.
///
/// # Errors
/// [`Error::Read`], [`Error::Overflow`], and with strict diagnostics the first malformed line.
pub fn read_into(profile: Profile, input: &mut Blocks, diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let kind = if profile.is_differential() { Kind::Differential } else { Kind::Plain };
    let mut reader = Reader { profile, kind: Some(kind), stack: Vec::new() };
    reader.read(input, diagnostics)?;
    Ok(reader.profile)
}

#[derive(Default)]
struct Reader {
    profile: Profile,
    kind: Option<Kind>,
    stack: Vec<FrameId>,
}

impl Reader {
    fn read(&mut self, input: &mut Blocks, diagnostics: &mut Diagnostics) -> Result<(), Error> {
        let name = input.name().to_owned();
        let mut number = 0;
        while let Some(block) = input.next(after_last_line)? {
            let mut rest = block;
            if number == 0 {
                rest = rest.strip_prefix(BOM).unwrap_or(rest);
            }
            while !rest.is_empty() {
                let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                let line = &rest[..end];
                rest = rest.get(end + 1..).unwrap_or(b"");
                number += 1;
                self.line(line.strip_suffix(b"\r").unwrap_or(line), &name, number, diagnostics)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], name: &str, number: u64, diagnostics: &mut Diagnostics) -> Result<(), Error> {
        if trim_blanks(line).is_empty() {
            return Ok(());
        }
        let kind = self.kind.unwrap_or_else(|| Kind::of_first_line(line));
        let Some(Line { stack, weights }) = parse_line(line, kind) else {
            return diagnostics.malformed(name, number, expectation(line, kind));
        };
        if self.kind.is_none() {
            self.kind = Some(kind);
            self.profile = Profile::new(kind == Kind::Differential);
        }
        self.stack.clear();
        let mut start = 0;
        for end in memchr::memchr_iter(b';', stack).chain([stack.len()]) {
            self.stack.push(self.profile.frames.intern(&stack[start..end]));
            start = end + 1;
        }
        self.profile.add(&self.stack, weights)
    }
}

fn expectation(line: &[u8], kind: Kind) -> &'static str {
    match kind {
        Kind::Differential => "expected two weights at the end of the line, as in its first: stack BEFORE AFTER",
        Kind::Plain if memchr::memrchr2(b' ', b'\t', line).is_none() => "expected a weight after the last space",
        Kind::Plain if split_weight(line).is_some() => "a weight without a stack",
        Kind::Plain => "what follows the last space is not a weight (digits, or digits.digits)",
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Line, gather, parse_line};
    use crate::diagnostics::Diagnostics;
    use crate::input::Blocks;
    use crate::profile::{Profile, Weight, Weights};

    fn plain(text: &str) -> Option<(&str, Weight)> {
        let Line { stack, weights } = parse_line(text.as_bytes(), Kind::Plain)?;
        Some((std::str::from_utf8(stack).unwrap(), weights.after))
    }

    #[test]
    fn the_weight_is_what_follows_the_last_space() {
        assert_eq!(plain("a;operator new 12"), Some(("a;operator new", Weight::new(12))));
        assert_eq!(plain("a;b\t3"), Some(("a;b", Weight::new(3))));
        assert_eq!(plain(" a 1"), Some((" a", Weight::ONE)));
        for bad in ["", "a", "a;b", "  60", "a -1", "a 1e3", "a +5"] {
            assert_eq!(plain(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_first_line_decides_for_all() {
        assert_eq!(Kind::of_first_line(b"a;b 1 2"), Kind::Differential);
        assert_eq!(Kind::of_first_line(b"a;b 2"), Kind::Plain);
        assert_eq!(Kind::of_first_line(b"1 2"), Kind::Plain);
    }

    fn read(text: &[u8]) -> (Profile, u64) {
        let mut input = Blocks::new("t".to_owned(), Box::new(std::io::Cursor::new(text.to_vec()))).unwrap();
        let mut diagnostics = Diagnostics::silent();
        let mut reader = super::Reader::default();
        reader.read(&mut input, &mut diagnostics).unwrap();
        (reader.profile, diagnostics.skipped())
    }

    #[test]
    fn reads_crlf_bom_and_a_missing_last_newline() {
        let (profile, skipped) = read(b"\xef\xbb\xbfa;b 1\r\n\r\na;b 2.5\r\na;c 4");
        assert_eq!((profile.len(), skipped), (2, 0));
        assert_eq!(profile.total(), Weights::plain(Weight::parse(b"7.5").unwrap()));
    }

    #[test]
    fn malformed_lines_are_counted_and_the_rest_stands() {
        let (profile, skipped) = read(b"nonsense\na;b 1\na;b\na;b x\n");
        assert_eq!((profile.len(), skipped), (1, 3));
    }

    #[test]
    fn a_missing_file_does_not_hide_the_others() {
        let mut diagnostics = Diagnostics::silent();
        let sources = [crate::input::Source::File("/nonexistent/x".into())];
        assert!(gather(&sources, &mut diagnostics).unwrap().is_empty());
        assert!(diagnostics.failed());
    }
}
