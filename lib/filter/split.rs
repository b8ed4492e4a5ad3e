//! Splits frames into several, such as a qualified name into packages and a function.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bstr::ByteSlice as _;
use regex::bytes::Regex;

use crate::markers;
use crate::script_source::source_of;
use crate::symbol_name::brackets::find_groups;

/// A pattern at whose matches names are split.
#[derive(Clone, Debug)]
pub struct Split {
    pattern: Regex,
    /// True once a name has matched; all clones share it.
    has_matched: Arc<AtomicBool>,
}

impl Split {
    /// Returns the parts of a name without the empty ones, or the whole name if there is no other part. Markers and modules in
    /// brackets are not split; what is in brackets within a name is not either, and neither is what follows the function: its
    /// file, and a suffix such as `_[k]`. They stay with the last part.
    pub fn parts<'a>(&self, name: &'a [u8]) -> Vec<&'a [u8]> {
        let function = function_part(name);
        let groups = find_groups(function);
        let is_inside = |start: usize| groups.iter().any(|group| group.contains(&start));
        let (mut parts, mut last) = (Vec::new(), 0);
        for found in self.pattern.find_iter(function).filter(|found| !is_inside(found.start())) {
            self.has_matched.store(true, Ordering::Relaxed);
            if found.start() > last {
                parts.push(&name[last..found.start()]);
            }
            last = found.end();
        }
        if last < function.len() || parts.is_empty() {
            let is_whole = parts.is_empty() && last == function.len();
            parts.push(&name[if is_whole { 0 } else { last }..]);
        } else if let Some(part) = parts.last_mut()
            && function.len() < name.len()
        {
            let start = part.as_ptr() as usize - name.as_ptr() as usize;
            *part = &name[start..];
        }
        parts
    }

    /// True if a name has matched.
    pub fn has_matched(&self) -> bool {
        self.has_matched.load(Ordering::Relaxed)
    }

    /// Returns the source text of the pattern.
    pub fn pattern(&self) -> &str {
        self.pattern.as_str()
    }
}

/// Returns the part of a name that is a function; empty for markers and modules in brackets.
fn function_part(name: &[u8]) -> &[u8] {
    let plain = markers::strip_suffix(name);
    if plain.starts_with(b"[") && plain.ends_with(b"]") {
        return b"";
    }
    let source = std::str::from_utf8(plain).ok().and_then(source_of);
    let end = source.map_or(plain.len(), |source| source.as_ptr() as usize - plain.as_ptr() as usize);
    let function = plain[..end].trim_end_with(|last| matches!(last, ' ' | '('));
    if function.is_empty() { plain } else { function }
}

impl std::str::FromStr for Split {
    type Err = String;

    fn from_str(pattern: &str) -> Result<Self, String> {
        let pattern = Regex::new(pattern).map_err(|error| error.to_string())?;
        if pattern.is_match(b"") {
            return Err("the pattern matches the empty text, so it would split names into letters".to_owned());
        }
        Ok(Self { pattern, has_matched: Arc::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::Split;

    #[test]
    fn splits_names_into_their_parts() {
        for (pattern, name, parts) in [
            ("::", "a::b::c", &["a", "b", "c"][..]),
            ("[./]", "java/lang/String.format", &["java", "lang", "String", "format"]),
            ("::", "::a::", &["a"]),
            ("::", "::", &["::"]),
            ("::", "main", &["main"]),
            ("::|[.]", "Cart.total (/srv/shop/c.py:12)", &["Cart", "total (/srv/shop/c.py:12)"]),
            ("[.]", "total (c.py)", &["total (c.py)"]),
            ("[.]", "com.acme.Shop.sum_[j]", &["com", "acme", "Shop", "sum_[j]"]),
            ("_", "do_x_[k]", &["do", "x_[k]"]),
            ("[.]", "[libstdc++.so.6.0.30]", &["[libstdc++.so.6.0.30]"]),
            ("-", "[off-cpu]", &["[off-cpu]"]),
            ("::", "<a::B as c::D>::f", &["<a::B as c::D>", "f"]),
            ("::|[.]", "ns::f<a::b>(c::d)", &["ns", "f<a::b>(c::d)"]),
            ("::", "std::operator<< <x::y>", &["std", "operator<< <x::y>"]),
            ("[.]", "net/http.(*conn).serve", &["net/http", "(*conn)", "serve"]),
        ] {
            let split: Split = pattern.parse().unwrap();
            let expected: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
            assert_eq!(split.parts(name.as_bytes()), expected, "{name}");
        }
        assert!("x*".parse::<Split>().is_err());
        assert!("(".parse::<Split>().is_err());
    }
}
