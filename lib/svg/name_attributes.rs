//! Name attributes: titles, links and XML attributes of frames by name, read from a file.
//!
//! A line is `NAME`, then tab-separated `key=value` fields. The keys are `title`, `href`, `target`, `id`, `class`, and
//! `g_extra` and `a_extra` for raw attributes of the group and of the link, as in flamegraph.pl.

use std::collections::BTreeMap;
use std::path::Path;

use bstr::ByteSlice as _;

use super::text::{escape, visible};
use crate::Error;
use crate::diagnostics::Diagnostics;

/// Attributes by frame name.
#[derive(Clone, Debug, Default)]
pub struct NameAttributes(BTreeMap<Vec<u8>, FrameElement>);

/// The XML element of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameElement {
    /// The title, if it replaces the default one.
    pub title: Option<String>,
    /// True if the element is a link.
    pub is_link: bool,
    attributes: BTreeMap<String, String>,
}

impl FrameElement {
    /// Returns the tag: `a` for a link, otherwise `g`.
    pub fn tag(&self) -> &'static str {
        if self.is_link { "a" } else { "g" }
    }

    /// Appends all attributes to `text`, except the class, which it returns.
    pub fn push_attributes(&self, text: &mut Vec<u8>) -> Option<&str> {
        for (name, value) in self.attributes.iter().filter(|(name, _)| *name != "class") {
            text.extend_from_slice(format!(" {name}=\"").as_bytes());
            escape(&visible(value.as_bytes()), text);
            text.push(b'"');
        }
        self.attributes.get("class").map(String::as_str)
    }

    /// Adds a field of a line. The error says what is expected.
    fn add_field(&mut self, field: &str) -> Result<(), &'static str> {
        let (key, value) = field.split_once('=').ok_or(EXPECTED_FIELDS)?;
        match key {
            "title" => self.title = Some(value.to_owned()),
            "href" if !is_safe_link(value) => return Err(UNSAFE_LINK),
            "href" => {
                self.is_link = true;
                self.attributes.entry("target".to_owned()).or_insert_with(|| "_top".to_owned());
                self.set("xlink:href", value);
            }
            "target" | "id" | "class" => self.set(key, value),
            "g_extra" | "a_extra" => return self.add_raw(value),
            _ => return Err(EXPECTED_FIELDS),
        }
        Ok(())
    }

    /// Adds raw attributes: `key="value"`, `key='value'` or `key=value`, separated by blanks.
    fn add_raw(&mut self, mut rest: &str) -> Result<(), &'static str> {
        while let Some((key, after)) = rest.trim_start().split_once('=') {
            let quote = after.chars().next().filter(|quote| matches!(quote, '"' | '\''));
            let (value, next) = match quote {
                Some(quote) => after[1..].split_once(quote).unwrap_or((&after[1..], "")),
                None => after.split_once(' ').unwrap_or((after, "")),
            };
            if !is_attribute_name(key) {
                return Err(EXPECTED_FIELDS);
            }
            if key.eq_ignore_ascii_case("href") && !is_safe_link(value) {
                return Err(UNSAFE_LINK);
            }
            self.set(key, value);
            rest = next;
        }
        if rest.trim().is_empty() { Ok(()) } else { Err(EXPECTED_FIELDS) }
    }

    fn set(&mut self, key: &str, value: &str) {
        self.attributes.insert(key.to_owned(), value.to_owned());
    }
}

const EXPECTED_FIELDS: &str =
    "expected NAME, then after tabs title=, href=, target=, id=, class=, g_extra= or a_extra=";
const UNSAFE_LINK: &str = "unsafe link: expected http:, https:, file:, mailto: or a relative address";

/// True for a name of ASCII letters, digits, `-` and `_` that starts with a letter.
fn is_attribute_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// True if following a link to `address` loads a page. Other schemes, such as `javascript:`, can run code.
fn is_safe_link(address: &str) -> bool {
    let scheme = address.trim().split(['/', '?', '#']).next().and_then(|start| start.split_once(':'));
    scheme.is_none_or(|(scheme, _)| {
        ["http", "https", "file", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    })
}

impl NameAttributes {
    /// Reads a file. Malformed fields are reported and skipped.
    ///
    /// # Errors
    /// [`Error::Read`], and with strict diagnostics the first malformed line.
    pub fn load(path: &Path, diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let name = path.display().to_string();
        let text = std::fs::read(path).map_err(|error| Error::read(&name, error))?;
        let mut all = Self::default();
        for (number, line) in (1..).zip(text.lines().filter(|line| !line.is_empty())) {
            let mut fields = line.split(|byte| *byte == b'\t');
            let element = all.0.entry(fields.next().unwrap_or_default().to_vec()).or_default();
            let mut error = None;
            for field in fields {
                error = error.or(element.add_field(&visible(field)).err());
            }
            if let Some(what) = error {
                diagnostics.malformed(&name, number, what)?;
            }
        }
        Ok(all)
    }

    /// Returns the element of frames with this name, if the file has a line for it.
    pub fn get(&self, name: &[u8]) -> Option<&FrameElement> {
        self.0.get(name)
    }

    /// True if no name has attributes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{EXPECTED_FIELDS, FrameElement, UNSAFE_LINK, is_safe_link};

    #[test]
    fn parses_raw_attributes() {
        let mut element = FrameElement::default();
        assert_eq!(element.add_field("g_extra=onclick=\"a('x')\" style='b: \"c\"' rel=d"), Ok(()));
        assert_eq!(element.add_field("href=https://x/?a=1&b=2"), Ok(()));
        let mut text = Vec::new();
        assert_eq!(element.push_attributes(&mut text), None);
        let expected = " onclick=\"a(&#39;x&#39;)\" rel=\"d\" style=\"b: &quot;c&quot;\" target=\"_top\" \
                        xlink:href=\"https://x/?a=1&amp;b=2\"";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        for malformed in ["title", "colour=red", "g_extra=a b=c", "g_extra=><x=1"] {
            assert_eq!(element.add_field(malformed), Err(EXPECTED_FIELDS), "{malformed}");
        }
    }

    #[test]
    fn rejects_links_that_can_run_code() {
        for safe in ["#there", "a/b.html", "HTTPS://x/", "//x/y", "file:///x", "mailto:a@b", "?a=b:c", "/a:b"] {
            assert!(is_safe_link(safe), "{safe}");
        }
        for link in
            ["javascript:x()", " JavaScript:x()", "java\u{1}script:x()", "data:text/html,x", "vbscript:x", "a b:c"]
        {
            assert!(!is_safe_link(link), "{link}");
            assert_eq!(FrameElement::default().add_field(&format!("href={link}")), Err(UNSAFE_LINK), "{link}");
            assert_eq!(
                FrameElement::default().add_field(&format!("a_extra=href=\"{link}\"")),
                Err(UNSAFE_LINK),
                "{link}"
            );
        }
    }
}
