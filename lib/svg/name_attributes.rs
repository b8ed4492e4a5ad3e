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

    /// Takes a field of a line, or says what is wrong with it.
    fn take(&mut self, field: &str) -> Result<(), &'static str> {
        let (key, value) = field.split_once('=').ok_or(FIELDS)?;
        match key {
            "title" => self.title = Some(value.to_owned()),
            "href" if !is_address(value) => return Err(ADDRESS),
            "href" => {
                self.is_link = true;
                self.attributes.entry("target".to_owned()).or_insert_with(|| "_top".to_owned());
                self.set("xlink:href", value);
            }
            "target" | "id" | "class" => self.set(key, value),
            "g_extra" | "a_extra" => return self.take_raw(value),
            _ => return Err(FIELDS),
        }
        Ok(())
    }

    /// `key="value" key='value' key=value`.
    fn take_raw(&mut self, mut rest: &str) -> Result<(), &'static str> {
        while let Some((key, after)) = rest.trim_start().split_once('=') {
            let quote = after.chars().next().filter(|quote| matches!(quote, '"' | '\''));
            let (value, next) = match quote {
                Some(quote) => after[1..].split_once(quote).unwrap_or((&after[1..], "")),
                None => after.split_once(' ').unwrap_or((after, "")),
            };
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            if !key.bytes().all(is_name) || !key.starts_with(|first: char| first.is_ascii_alphabetic()) {
                return Err(FIELDS);
            }
            if key.eq_ignore_ascii_case("href") && !is_address(value) {
                return Err(ADDRESS);
            }
            self.set(key, value);
            rest = next;
        }
        if rest.trim().is_empty() { Ok(()) } else { Err(FIELDS) }
    }

    fn set(&mut self, key: &str, value: &str) {
        self.attributes.insert(key.to_owned(), value.to_owned());
    }
}

const FIELDS: &str = "expected NAME, and after tabs title=, href=, target=, id=, class=, g_extra= or a_extra=";
const ADDRESS: &str = "no link: expected an address of a page (http, https, file, mailto, or without a scheme)";

/// Whether a link may lead there: to what is loaded, not to a script that is run.
fn is_address(address: &str) -> bool {
    let scheme = address.trim().split(['/', '?', '#']).next().and_then(|start| start.split_once(':'));
    scheme.is_none_or(|(scheme, _)| {
        ["http", "https", "file", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    })
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
            let mut fault = None;
            for field in fields {
                fault = fault.or(element.take(&visible(field)).err());
            }
            if let Some(what) = fault {
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
    use super::{ADDRESS, Element, FIELDS, is_address};

    #[test]
    fn raw_attributes_are_taken_apart() {
        let mut element = Element::default();
        assert_eq!(element.take("g_extra=onclick=\"a('x')\" style='b: \"c\"' rel=d"), Ok(()));
        assert_eq!(element.take("href=https://x/?a=1&b=2"), Ok(()));
        let mut text = Vec::new();
        assert_eq!(element.push_attributes(&mut text), None);
        let expected = " onclick=\"a(&#39;x&#39;)\" rel=\"d\" style=\"b: &quot;c&quot;\" target=\"_top\" \
                        xlink:href=\"https://x/?a=1&amp;b=2\"";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        for bad in ["title", "colour=red", "g_extra=a b=c", "g_extra=><x=1"] {
            assert_eq!(element.take(bad), Err(FIELDS), "{bad}");
        }
    }

    #[test]
    fn a_link_leads_to_a_page_and_runs_nothing() {
        for good in ["#there", "a/b.html", "HTTPS://x/", "//x/y", "file:///x", "mailto:a@b", "?a=b:c", "/a:b"] {
            assert!(is_address(good), "{good}");
        }
        for bad in
            ["javascript:x()", " JavaScript:x()", "java\u{1}script:x()", "data:text/html,x", "vbscript:x", "a b:c"]
        {
            assert!(!is_address(bad), "{bad}");
            assert_eq!(Element::default().take(&format!("href={bad}")), Err(ADDRESS), "{bad}");
            assert_eq!(Element::default().take(&format!("a_extra=href=\"{bad}\"")), Err(ADDRESS), "{bad}");
        }
    }
}
