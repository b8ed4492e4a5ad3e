//! Reads folded text.

use super::grammar::LineKind;
use super::line_filter::LineFilter;
use super::line_kind::detect_kind;
use super::other_input::check_is_folded;
use super::parallel_files::map_files;
use super::stack_parser::{StackParser, StackSink};
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::input::{Blocks, Source, last_line_end};
use crate::profile::{Batch, FrameId, Frames, Profile, Weights};

/// Returns the error for inputs without stacks.
pub fn no_stacks(sources: &[Source]) -> Error {
    Error::Invalid(match sources {
        [source] => format!("{}: no stacks in the input; check what wrote it", source.name()),
        _ => format!("no stacks in any of the {} inputs; check what wrote them", sources.len()),
    })
}

/// Reads all sources and passes every stack to a sink.
///
/// A source that cannot be read, that mixes kinds, whose kind differs from that of the sources before it, or most of whose
/// lines are malformed is reported as a failure. The others still count.
///
/// # Errors
/// Those of the sink, in strict mode the first malformed line, and if there is no stack at all, [`Error::Invalid`] or, if the
/// reason was reported, [`Error::AlreadyReported`].
pub fn read_all(sources: &[Source], sink: &mut dyn StackSink, diagnostics: &mut Diagnostics) -> Result<(), Error> {
    read_selected(sources, None, sink, diagnostics)
}

/// Like [`read_all`], but passes stacks on in any order: the weights of equal ones may be added up before.
///
/// # Errors
/// Those of [`read_all`].
pub fn read_sums(sources: &[Source], sink: &mut dyn StackSink, diagnostics: &mut Diagnostics) -> Result<(), Error> {
    read_some(sources, StackParser::new(sink, None).in_any_order(), diagnostics)
}

/// Like [`read_all`], but passes on only stacks with one weight whose lines a filter selects; `None` selects all.
///
/// Lines that are not selected count as stacks; see [`LineFilter`].
///
/// # Errors
/// Those of [`read_all`].
pub fn read_selected(
    sources: &[Source],
    filter: Option<&LineFilter>,
    sink: &mut dyn StackSink,
    diagnostics: &mut Diagnostics,
) -> Result<(), Error> {
    read_some(sources, StackParser::new(sink, None).with_filter(filter), diagnostics)
}

/// Reads all sources; fails if there is no stack.
fn read_some(sources: &[Source], parser: StackParser, diagnostics: &mut Diagnostics) -> Result<(), Error> {
    match read_if_any(sources, parser, diagnostics)? {
        Some(_) => Ok(()),
        None if diagnostics.has_failed() => Err(Error::AlreadyReported),
        None => Err(no_stacks(sources)),
    }
}

/// Reads all sources; returns the kind of the stacks, or `None` if there are none.
fn read_if_any(
    sources: &[Source],
    mut parser: StackParser,
    diagnostics: &mut Diagnostics,
) -> Result<Option<LineKind>, Error> {
    let skipped_before = diagnostics.skipped_lines();
    for source in sources {
        let result = source.open_without_thread().and_then(|input| parser.read_input(input, diagnostics));
        match result {
            Err(error @ (Error::Read { .. } | Error::Unreadable { .. })) => diagnostics.fail(&error),
            other => other?,
        }
    }
    parser.flush()?;
    if parser.kind().is_none() && diagnostics.skipped_lines() > skipped_before {
        return Err(Error::AlreadyReported);
    }
    Ok(parser.kind())
}

/// Reads all sources into one profile. A source that cannot be read is reported and skipped.
///
/// # Errors
/// [`Error::Overflow`], and those of [`read_all`].
pub fn read_profile(sources: &[Source], diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let mut builder = ProfileBuilder::default();
    read_some(sources, StackParser::new(&mut builder, None).in_any_order(), diagnostics)?;
    builder.into_profile()
}

/// Reads each source into its own profile, which is empty if the source has no stacks.
///
/// Files are read in parallel. If there is anything to report about one, all are read again one after another, so that
/// messages appear in order.
///
/// # Errors
/// Those of [`read_profile`] except for a source without stacks, and [`Error::AlreadyReported`] if one could not be read.
pub fn read_profiles(sources: &[Source], diagnostics: &mut Diagnostics) -> Result<Vec<Profile>, Error> {
    if let Some(profiles) = map_files(sources, read_flawless) {
        return Ok(profiles);
    }
    let profiles = sources.iter().map(|source| {
        let profile = read_any_profile(source, diagnostics)?;
        if diagnostics.has_failed() { Err(Error::AlreadyReported) } else { Ok(profile) }
    });
    profiles.collect()
}

/// Reads a source; `None` if there is anything to report.
fn read_flawless(source: &Source) -> Option<Profile> {
    let mut diagnostics = Diagnostics::silent();
    diagnostics.set_strict(true);
    read_any_profile(source, &mut diagnostics).ok().filter(|_| !diagnostics.has_failed() && !diagnostics.has_warned())
}

/// Reads a source that may have no stacks.
fn read_any_profile(source: &Source, diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let mut builder = ProfileBuilder::default();
    let parser = StackParser::new(&mut builder, None).in_any_order();
    read_if_any(std::slice::from_ref(source), parser, diagnostics)?;
    builder.into_profile()
}

/// Adds all stacks of one input to a profile. Lines must have two weights if it is differential, else one.
///
/// # Errors
/// [`Error::Read`], [`Error::Unreadable`], [`Error::Overflow`], and in strict mode the first malformed line.
pub fn read_into(profile: Profile, input: &mut Blocks, diagnostics: &mut Diagnostics) -> Result<Profile, Error> {
    let kind = if profile.is_differential() { LineKind::Differential } else { LineKind::Plain };
    let mut builder = ProfileBuilder { profile, batch: Batch::default() };
    input.drop_colours()?;
    check_is_folded(input)?;
    let (name, detected) = (input.name().to_owned(), detect_kind(input.head()?));
    let mut parser = StackParser::new(&mut builder, Some(kind));
    parser.read_text(&name, detected, |block| input.read_block(block, last_line_end), diagnostics)?;
    builder.into_profile()
}

/// A sink that adds the stacks to a profile.
#[derive(Default)]
struct ProfileBuilder {
    profile: Profile,
    batch: Batch,
}

impl ProfileBuilder {
    fn into_profile(mut self) -> Result<Profile, Error> {
        self.profile.add_batch(&mut self.batch)?;
        Ok(self.profile)
    }
}

impl StackSink for ProfileBuilder {
    fn frames(&mut self) -> &mut Frames {
        &mut self.profile.frames
    }

    fn begin(&mut self, kind: LineKind) {
        self.profile = Profile::new(kind == LineKind::Differential);
    }

    fn add(&mut self, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        self.batch.push(stack, weights, &self.profile.frames);
        if self.batch.is_full() { self.profile.add_batch(&mut self.batch) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{detect_kind, read_profile};
    use crate::Error;
    use crate::diagnostics::Diagnostics;
    use crate::folded::stack_parser::StackParser;
    use crate::input::{Blocks, last_line_end};
    use crate::profile::{Profile, Weight, Weights};

    fn read(text: &[u8]) -> (Profile, u64) {
        let mut input = Blocks::new("t".to_owned(), Box::new(std::io::Cursor::new(text.to_vec()))).unwrap();
        let mut diagnostics = Diagnostics::silent();
        let mut builder = super::ProfileBuilder::default();
        let mut parser = StackParser::new(&mut builder, None);
        parser
            .read_text("t", detect_kind(text), |block| input.read_block(block, last_line_end), &mut diagnostics)
            .unwrap();
        (builder.into_profile().unwrap(), diagnostics.skipped_lines())
    }

    #[test]
    fn reads_crlf_bom_and_a_missing_last_newline() {
        let (profile, skipped) = read(b"\xef\xbb\xbfa;b 1\r\n\r\na;b 2.5\r\na;c 4");
        assert_eq!((profile.len(), skipped), (2, 0));
        assert_eq!(profile.total(), Weights::plain(Weight::parse(b"7.5").unwrap()));
    }

    #[test]
    fn counts_and_skips_malformed_lines() {
        let (profile, skipped) = read(b"nonsense\na;b 1\na;b\nc 2\na;b x\nd 3\n# interval : 100\n");
        assert_eq!((profile.len(), skipped), (3, 3));
    }

    #[test]
    fn reports_a_missing_file() {
        let mut diagnostics = Diagnostics::silent();
        let sources = [crate::input::Source::File("/nonexistent/x".into())];
        let missing = read_profile(&sources, &mut diagnostics);
        assert!(matches!(missing, Err(Error::AlreadyReported)) && diagnostics.has_failed());
    }
}
