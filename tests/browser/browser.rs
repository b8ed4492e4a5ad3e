//! Opens pages in a browser and calls functions of `cases/*.js` in them: in Chromium, or with `FG_BROWSER=firefox` in
//! Firefox.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::firefox;
use crate::support::{command, directory, eventually, is_installed, run, skip};

const PRELUDE: &str = include_str!("prelude.js");

/// The colours that the user of the browser prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorScheme {
    Light,
    Dark,
}

/// A page in which a case runs.
pub struct Page {
    file_name: &'static str,
    text: String,
    fragment: String,
    color_scheme: ColorScheme,
}

impl Page {
    /// Draws stacks with `fg-svg`.
    #[track_caller]
    pub fn graph(stacks: &[u8], options: &[&str]) -> Self {
        Self::svg(run("fg-svg", options, stacks).ok().text())
    }

    pub fn svg(text: String) -> Self {
        Self::new("graph.svg", text)
    }

    pub fn html(text: String) -> Self {
        Self::new("page.html", text)
    }

    fn new(file_name: &'static str, text: String) -> Self {
        Self { file_name, text, fragment: String::new(), color_scheme: ColorScheme::Light }
    }

    /// Shows the page as in a narrow window. The case sets the width.
    pub fn narrow(mut self) -> Self {
        for space in ["", " "] {
            self.text = self.text.replace(&format!("(max-width:{space}700px)"), "(min-width: 1px)");
        }
        self
    }

    /// Sets the fragment of the page's address, with its `#`.
    pub fn fragment(mut self, fragment: &str) -> Self {
        self.fragment = fragment.to_owned();
        self
    }

    pub fn color_scheme(mut self, color_scheme: ColorScheme) -> Self {
        self.color_scheme = color_scheme;
        self
    }

    /// Runs a case without arguments. Panics unless it passes.
    #[track_caller]
    pub fn run(self, code: &str, function: &str) {
        self.run_with(code, function, &json!([]));
    }

    /// Calls a function that `code` defines, with an array of arguments. Panics unless the case passes.
    #[track_caller]
    pub fn run_with(self, code: &str, function: &str, arguments: &Value) {
        if let Some(result) = self.result(code, function, arguments) {
            assert_eq!(result, "passed", "{function}");
        }
    }

    /// Returns the result of a case, or `None` if there is no browser.
    #[track_caller]
    pub fn result(self, code: &str, function: &str, arguments: &Value) -> Option<String> {
        // The viewer replaces an SVG document by a page, perhaps before its end is read.
        let listener = firefox::is_chosen().then(firefox::Listener::new);
        let script = script(code, function, arguments, listener.as_ref().map_or("", |listener| &listener.address));
        let (place, script) = match self.file_name {
            "graph.svg" => (self.text.find("<style>"), svg_element(&script)),
            _ => (self.text.rfind("</body>"), html_element(&script)),
        };
        let place = place.expect("no place for a script");
        let page = format!("{}{script}{}", &self.text[..place], &self.text[place..]);
        let folder = directory();
        let file = folder.path().join(self.file_name);
        std::fs::write(&file, page).unwrap();
        let address = format!("file://{}{}", file.display(), self.fragment);
        if let Some(listener) = listener {
            return firefox::visit(&listener, self.color_scheme, folder.path(), &address);
        }
        let options = ["--virtual-time-budget=20000", "--dump-dom"];
        // On a busy machine, the browser's virtual time may be over before the page has begun.
        for _ in 0..2 {
            let document = open(self.color_scheme, folder.path(), &options, &address)?;
            if let Some(result) = find_result(&document) {
                return Some(result.to_owned());
            }
        }
        Some("no result: a script is not valid, or the case did not end".to_owned())
    }
}

/// Returns the element that calls a function in an SVG document.
pub fn script_for_svg(code: &str, function: &str, arguments: &Value) -> String {
    svg_element(&script(code, function, arguments, ""))
}

fn svg_element(script: &str) -> String {
    assert!(!script.contains("]]>"), "the script ends a CDATA section");
    format!("<script><![CDATA[{script}]]></script>")
}

fn html_element(script: &str) -> String {
    assert!(!script.contains("</script"), "the script ends a script element");
    format!("<script>{script}</script>")
}

/// Returns a script that runs a case and sends the result to an address, unless that is empty.
fn script(code: &str, function: &str, arguments: &Value, address: &str) -> String {
    // Text in the arguments must not end the element that contains the script.
    let arguments = arguments.to_string().replace('<', r"\u003c").replace('>', r"\u003e");
    format!("(() => {{\n{PRELUDE}\n{code}\nrunCase(() => {function}(...{arguments}), {address:?});\n}})();\n")
}

/// Returns the text of the element that `runCase` appends.
fn find_result(document: &str) -> Option<&str> {
    let (_, rest) = document.split_once("id=\"test-result\"")?;
    let (_, rest) = rest.split_once('>')?;
    Some(rest.split_once("</desc>")?.0)
}

/// Prints a graph and returns the number of pages, or `None` if there is no browser.
#[track_caller]
pub fn count_printed_pages(svg: &str) -> Option<usize> {
    let folder = directory();
    let (file, pdf) = (folder.path().join("graph.svg"), folder.path().join("printed.pdf"));
    std::fs::write(&file, svg).unwrap();
    let option = format!("--print-to-pdf={}", pdf.display());
    open(ColorScheme::Light, folder.path(), &[&option], &format!("file://{}", file.display()))?;
    let text = std::fs::read(pdf).unwrap();
    let pages = regex::bytes::Regex::new(r"/Type\s*/Page\b").unwrap().find_iter(&text).count();
    assert!(pages > 0, "no page was printed");
    Some(pages)
}

/// Opens an address and returns what the browser prints, or `None` if there is no browser.
#[track_caller]
fn open(color_scheme: ColorScheme, folder: &Path, options: &[&str], address: &str) -> Option<String> {
    let Some(browser) = find_browser() else {
        skip("no Chromium is installed");
        return None;
    };
    let output = folder.join("output");
    let preferred = match color_scheme {
        ColorScheme::Dark => 0,
        ColorScheme::Light => 1,
    };
    let mut child = command(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"])
        .args(["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1220,800"])
        .arg(format!("--blink-settings=preferredColorScheme={preferred}"))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(options)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&output).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    if !eventually(|| child.try_wait().unwrap().is_some()) {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("the browser hangs: {address}");
    }
    Some(std::fs::read_to_string(output).unwrap())
}

fn find_browser() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| is_installed(name))
}
