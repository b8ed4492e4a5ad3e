//! What a frame of some name is to have besides its colour: another title, a link, attributes; from a file.
//!
//! A line is `NAME`, then after tabs `key=value`: `title`, `href`, `target`, `id`, `class`, and raw attributes for the
//! group (`g_extra`) and for the link (`a_extra`).

use std::collections::BTreeMap;
use std::path::Path;

use bstr::ByteSlice as _;

use super::text::{escape, visible};
use crate::Error;
use crate::diagnostics::Diagnostics;

/// The attributes of some names.
#[derive(Clone, Debug, Default)]
pub struct NameAttributes(BTreeMap<Vec<u8>, Element>);

/// What stands for the usual group of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// The title, if it is not the usual one.
    pub title: Option<String>,
    /// Whether it is a link.
    pub is_link: bool,
    attributes: BTreeMap<String, String>,
}

impl Element {
    /// `a` or `g`.
    pub fn tag(&self) -> &'static str {
        if self.is_link { "a" } else { "g" }
    }

    /// Appends the attributes, but for a class, which is returned.
    pub fn push_attributes(&self, text: &mut Vec<u8>) -> Option<&str> {
        for (name, value) in self.attributes.iter().filter(|(name, _)| *name != "class") {
            text.extend_from_slice(format!(" {name}=\"").as_bytes());
            escape(&visible(value.as_bytes()), text);
            text.push(b'"');
        }
        self.attributes.get("class").map(String::as_str)
    }

    /// Takes a field of a line; false if it is none.
    fn take(&mut self, field: &str) -> bool {
        let Some((key, value)) = field.split_once('=') else { return false };
        match key {
            "title" => self.title = Some(value.to_owned()),
            "href" => {
                self.is_link = true;
                self.attributes.entry("target".to_owned()).or_insert_with(|| "_top".to_owned());
                self.set("xlink:href", value);
            }
            "target" | "id" | "class" => self.set(key, value),
            "g_extra" | "a_extra" => return self.take_raw(value),
            _ => return false,
        }
        true
    }

    /// `key="value" key='value' key=value`.
    fn take_raw(&mut self, mut rest: &str) -> bool {
        while let Some((key, after)) = rest.trim_start().split_once('=') {
            let quote = after.chars().next().filter(|quote| matches!(quote, '"' | '\''));
            let (value, next) = match quote {
                Some(quote) => after[1..].split_once(quote).unwrap_or((&after[1..], "")),
                None => after.split_once(' ').unwrap_or((after, "")),
            };
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            if !key.bytes().all(is_name) || !key.starts_with(|first: char| first.is_ascii_alphabetic()) {
                return false;
            }
            self.set(key, value);
            rest = next;
        }
        rest.trim().is_empty()
    }

    fn set(&mut self, key: &str, value: &str) {
        self.attributes.insert(key.to_owned(), value.to_owned());
    }
}

impl NameAttributes {
    /// Reads a file.
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
            let mut good = true;
            for field in fields {
                good &= element.take(&visible(field));
            }
            if !good {
                let what = "expected NAME, and after tabs title=, href=, target=, id=, class=, g_extra= or a_extra=";
                diagnostics.malformed(&name, number, what)?;
            }
        }
        Ok(all)
    }

    /// What a name has, if it has anything.
    pub fn get(&self, name: &[u8]) -> Option<&Element> {
        self.0.get(name)
    }

    /// Whether no name has anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Element;

    #[test]
    fn raw_attributes_are_taken_apart() {
        let mut element = Element::default();
        assert!(element.take("g_extra=onclick=\"a('x')\" style='b: \"c\"' rel=d"));
        assert!(element.take("href=https://x/?a=1&b=2"));
        let mut text = Vec::new();
        assert_eq!(element.push_attributes(&mut text), None);
        let expected = " onclick=\"a(&#39;x&#39;)\" rel=\"d\" style=\"b: &quot;c&quot;\" target=\"_top\" \
                        xlink:href=\"https://x/?a=1&amp;b=2\"";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        for bad in ["title", "colour=red", "g_extra=a b=c", "g_extra=><x=1"] {
            assert!(!element.take(bad), "{bad}");
        }
    }
}
