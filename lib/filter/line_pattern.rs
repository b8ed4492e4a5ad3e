//! Turns patterns for frames into one for lines of folded text.
//!
//! The pattern for lines matches every line with a frame that the pattern for frames matches, and some others: lines that it
//! does not match need not be parsed. It differs from the pattern for frames in that
//!
//! - `^` and `$` are the ends of a frame, and other assertions are left out;
//! - no character is a line end or a semicolon;
//! - a class that contains U+FFFD, which replaces invalid bytes in names, contains all bytes that are not ASCII.

use regex::bytes::Regex;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, LookSet, Repetition,
};

use crate::folded::{LineFilter, RequiredLiterals};

/// Shortest literal that is searched for instead of a pattern, in bytes.
const MIN_LITERAL: usize = 3;

/// Most literals that are searched for at once.
const MAX_LITERALS: usize = 16;

/// Returns a filter of lines in which a frame may match one of these patterns.
///
/// `None` if there is no pattern, or if one of them can match an empty name or may match names in a way that is not
/// seen in the text.
pub(super) fn line_filter<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Option<LineFilter> {
    let (mut widened, mut required) = (Vec::new(), Some(Required::default()));
    for pattern in patterns {
        let hir = widen(&ParserBuilder::new().utf8(false).build().parse(pattern).ok()?, true, true)?;
        hir.properties().minimum_len().filter(|length| *length > 0)?;
        match (&mut required, required_literals(&hir)) {
            (Some(all), Some(more)) => {
                all.literals.extend(more.literals);
                all.rests.extend(more.rests);
            }
            _ => required = None,
        }
        widened.push(hir);
    }
    if widened.is_empty() {
        return None;
    }
    let pattern = Regex::new(&Hir::alternation(widened).to_string()).ok()?;
    Some(LineFilter::new(pattern, required.and_then(Required::compile)))
}

/// Literals: each match of some patterns contains at least one.
#[derive(Default)]
struct Required {
    literals: Vec<Hir>,
    /// The rest of each pattern, from its literals on.
    rests: Vec<Hir>,
}

impl Required {
    fn compile(self) -> Option<RequiredLiterals> {
        let literals = Regex::new(&Hir::alternation(self.literals).to_string()).ok()?;
        let rest = Hir::concat(vec![Hir::look(Look::Start), Hir::alternation(self.rests)]);
        Some(RequiredLiterals { literals, rest: Regex::new(&rest.to_string()).ok()? })
    }
}

/// Returns literals of which each match contains one. `None` if there are none that are long enough, or if the pattern
/// consists of literals, which are found as quickly.
fn required_literals(hir: &Hir) -> Option<Required> {
    let HirKind::Concat(parts) = hir.kind() else { return None };

    let (mut best, mut best_start) = (Vec::new(), 0);
    let (mut current, mut start) = (vec![Vec::new()], 0);
    for (index, part) in parts.iter().enumerate() {
        current = match exact_literals(part) {
            Some(next) if !next.is_empty() && next.len() * current.len() <= MAX_LITERALS => {
                current.iter().flat_map(|start| next.iter().map(|end| [&start[..], end].concat())).collect()
            }
            _ => {
                start = index + 1;
                vec![Vec::new()]
            }
        };
        if shortest_length(&current) > shortest_length(&best) {
            best.clone_from(&current);
            best_start = start;
        }
    }
    (shortest_length(&best) >= MIN_LITERAL).then(|| Required {
        literals: best.into_iter().map(Hir::literal).collect(),
        rests: vec![Hir::concat(parts[best_start..].to_vec())],
    })
}

/// Returns the literals that a part of a pattern matches, if they are few and it matches nothing else.
fn exact_literals(part: &Hir) -> Option<Vec<Vec<u8>>> {
    let literals = Extractor::new().limit_total(MAX_LITERALS).extract(part);
    let exact = Some(literals).filter(|literals| literals.is_exact())?;
    Some(exact.literals()?.iter().map(|literal| literal.as_bytes().to_vec()).collect())
}

fn shortest_length(literals: &[Vec<u8>]) -> usize {
    literals.iter().map(Vec::len).min().unwrap_or_default()
}

/// Returns a pattern for the part of a line before a frame.
fn frame_start() -> Hir {
    Hir::alternation(vec![Hir::look(Look::StartLF), Hir::literal(*b";")])
}

/// Returns a pattern for the part of a line after a frame. A blank follows the leaf.
fn frame_end() -> Hir {
    Hir::class(Class::Bytes(ClassBytes::new([b';', b' ', b'\t'].map(|byte| ClassBytesRange::new(byte, byte)))))
}

fn has_look(parts: &[Hir], is_kind: fn(Look) -> bool) -> bool {
    let looks = parts.iter().fold(LookSet::empty(), |looks, part| looks.union(part.properties().look_set()));
    looks.iter().any(is_kind)
}

fn is_start(look: Look) -> bool {
    matches!(look, Look::Start | Look::StartLF | Look::StartCRLF)
}

fn is_end(look: Look) -> bool {
    matches!(look, Look::End | Look::EndLF | Look::EndCRLF)
}

/// Widens a pattern; `None` if that is not possible.
///
/// If a match of the whole pattern starts where this part does (`is_first`), or ends where it does (`is_last`), `^` and `$`
/// match what separates frames. Elsewhere they are left out: the text around a match is not part of it.
fn widen(hir: &Hir, is_first: bool, is_last: bool) -> Option<Hir> {
    Some(match hir.kind() {
        HirKind::Look(Look::Start) if is_first => frame_start(),
        HirKind::Look(Look::End) if is_last => frame_end(),
        HirKind::Empty | HirKind::Look(_) => Hir::empty(),
        HirKind::Literal(literal) => {
            // Bytes that are not UTF-8 may match U+FFFD, or parts of it.
            std::str::from_utf8(&literal.0).ok().filter(|text| !text.contains('\u{fffd}'))?;
            hir.clone()
        }
        HirKind::Class(class) => widen_class(class)?,
        HirKind::Repetition(repetition) => {
            Hir::repetition(Repetition { sub: Box::new(widen(&repetition.sub, false, false)?), ..repetition.clone() })
        }
        HirKind::Capture(capture) => widen(&capture.sub, is_first, is_last)?,
        HirKind::Concat(parts) => {
            let last = parts.len() - 1;
            let widened = parts.iter().enumerate().map(|(index, part)| {
                let is_first = is_first && index == 0 && !has_look(&parts[1..], is_start);
                widen(part, is_first, is_last && index == last && !has_look(&parts[..last], is_end))
            });
            Hir::concat(widened.collect::<Option<_>>()?)
        }
        HirKind::Alternation(branches) => {
            let widened = branches.iter().map(|branch| widen(branch, is_first, is_last));
            Hir::alternation(widened.collect::<Option<_>>()?)
        }
    })
}

fn widen_class(class: &Class) -> Option<Hir> {
    match class {
        Class::Unicode(class) if class.iter().any(|range| (range.start()..=range.end()).contains(&'\u{fffd}')) => {
            let mut ascii = class.clone();
            ascii.intersect(&ClassUnicode::new([ClassUnicodeRange::new('\0', '\x7f')]));
            let other = Hir::repetition(Repetition {
                min: 1,
                max: Some(4),
                greedy: true,
                sub: Box::new(Hir::class(Class::Bytes(ClassBytes::new([ClassBytesRange::new(0x80, 0xff)])))),
            });
            Some(Hir::alternation(vec![without_separators(&ascii), other]))
        }
        Class::Unicode(class) => Some(without_separators(class)),
        Class::Bytes(class) => {
            class.to_unicode_class().filter(|_| class.is_ascii()).map(|class| without_separators(&class))
        }
    }
}

/// Returns a class without the characters that no frame contains.
fn without_separators(class: &ClassUnicode) -> Hir {
    let mut class = class.clone();
    class.difference(&ClassUnicode::new([b'\n', b';'].map(|byte| ClassUnicodeRange::new(byte.into(), byte.into()))));
    Hir::class(Class::Unicode(class))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::line_filter;
    use crate::filter::FrameMatcher;
    use crate::profile::Frames;

    fn matches(pattern: &str, line: &[u8]) -> bool {
        line_filter([pattern]).is_none_or(|filter| filter.matches(line))
    }

    #[test]
    fn is_selective() {
        for (pattern, matching, other) in [
            ("^parse", "parse;x 1", "reparse;x 1"),
            ("^parse", "a;parse_x 1", "a;reparse_x 1"),
            ("parse$", "a;parse 1", "a;parser 1"),
            ("^(?:a|b)$", "x;a;y 1", "ab;ba 1"),
            ("^a$|^b$", "x;b 1", "xa;bx 1"),
            ("a.c", "abc 1", "a;c 1"),
            ("(?i)Parse", "x;PARSE 1", "x;PARS 1"),
            (r"\block\b", "x;unlock 1", "x;loc 1"),
            ("[a-z]+_(hash|lock)_[a-z]", "a;x_lock_y 1", "a;_lock_ x_lock_;x 1"),
            ("[a-z]aba[c-f]", "xababad 1", "ababax 1"),
            ("^lock[a-z]$", "x;locks 1", "unlocks 1"),
            (r"x[^y]z", "x\u{e9}z 1", "x;z 1"),
        ] {
            assert!(line_filter([pattern]).is_some());
            assert!(matches(pattern, matching.as_bytes()), "{pattern} {matching}");
            assert!(!matches(pattern, other.as_bytes()), "{pattern} {other}");
        }
        let both = line_filter(["^a$", "b"]).unwrap();
        assert!(both.matches(b"a 1") && both.matches(b"cbc 1") && !both.matches(b"ca 1"));
    }

    #[test]
    fn is_none_where_text_and_names_can_differ() {
        for pattern in ["", "a*", "^", r"(?-u:\xff)", r"(?-u:[\x80-\xff])", "\u{fffd}", r"a|\b"] {
            assert!(line_filter([pattern]).is_none(), "{pattern:?}");
        }
        assert!(line_filter([]).is_none());
        assert!(line_filter(["a", "b*"]).is_none(), "all patterns are needed");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn matches_each_line_with_a_frame_that_matches(
            pattern in concat!(
                r"(\^|\^\^|x?\^)?",
                r"(kx:|(kxx|ab_)|[ab.k]|\[\^a\]|\[a-z\]|\\b|\\w|\\W|é|\(a\|b\$\)|\(\?i:k\)|a\*|b\+|a\{2\}){1,5}",
                r"(\$|\$\$|\$b?)?"
            ),
            names in prop::collection::vec(prop::collection::vec(prop::sample::select(PIECES), 0..5), 1..4),
        ) {
            let mut frames = Frames::new();
            let mut matcher: FrameMatcher = pattern.parse().unwrap();
            let names: Vec<Vec<u8>> = names.iter().map(|pieces| pieces.concat()).collect();
            let ids: Vec<_> = names.iter().map(|name| frames.intern(name)).collect();
            let is_match = ids.iter().any(|frame| matcher.matches(&frames, *frame));
            let text = [b"other;line 1\n", &names.join(&b';')[..], b" 12\nother 1\n"].concat();
            let found = line_filter([&pattern[..]]).is_none_or(|filter| filter.matches(&text));
            prop_assert!(found || !is_match, "{pattern} {}", String::from_utf8_lossy(&text));
        }
    }

    /// Parts of names: also invalid UTF-8, and letters that are equal but for case.
    const PIECES: &[&[u8]] = &[
        b"a",
        b"b",
        b"k",
        b"K",
        b"x",
        b" ",
        b":",
        b"_",
        "\u{e9}".as_bytes(),
        b"\xff",
        b"\xe2\x82",
        "\u{212a}".as_bytes(),
    ];
}
