//! Driving Chromium: a test script is put into the page, and its verdict read from the page's end state.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{directory, run, skip};

const PRELUDE: &str = include_str!("prelude.js");

/// When the reader looks: the browser prefers light colours or dark ones.
#[derive(Clone, Copy, Debug)]
pub enum Hour {
    Day,
    Night,
}

/// Runs a test in the picture of some stacks, drawn with the arguments; `fragment` is that of the page's address.
#[track_caller]
pub fn judge(stacks: &[u8], arguments: &[&str], fragment: &str, test: &str) {
    judge_at(Hour::Day, stacks, arguments, fragment, test);
}

/// The same by day or by night.
#[track_caller]
pub fn judge_at(hour: Hour, stacks: &[u8], arguments: &[&str], fragment: &str, test: &str) {
    let svg = run("fg-svg", arguments, stacks).ok().text();
    let page = svg.replacen("</svg>", &format!("<script><![CDATA[{}]]></script></svg>", script(test)), 1);
    judge_file(hour, "graph.svg", &page, fragment);
}

/// The script that runs a test and writes its verdict.
pub fn script(test: &str) -> String {
    format!("(() => {{\n{PRELUDE}\njudge(async () => {{\n{test}\n}});\n}})();\n")
}

/// Opens a page that holds the script of a test.
#[track_caller]
pub fn judge_page(name: &str, page: &str, fragment: &str) {
    judge_file(Hour::Day, name, page, fragment);
}

#[track_caller]
fn judge_file(hour: Hour, name: &str, page: &str, fragment: &str) {
    let folder = directory();
    let file = folder.path().join(name);
    std::fs::write(&file, page).unwrap();
    let Some(dom) = visit(hour, folder.path(), &format!("file://{}{fragment}", file.display())) else { return };
    let verdict = dom.split_once("id=\"verdict\"").and_then(|(_, rest)| rest.split_once('>')).map(|(_, rest)| rest);
    let verdict = verdict.and_then(|rest| rest.split_once("</desc>")).map_or("no verdict", |(verdict, _)| verdict);
    assert_eq!(verdict, "fine");
}

/// How many pages a picture takes on paper, if there is a browser.
pub fn pages(svg: &str) -> Option<usize> {
    let folder = directory();
    let (file, paper) = (folder.path().join("graph.svg"), folder.path().join("paper.pdf"));
    std::fs::write(&file, svg).unwrap();
    let print = format!("--print-to-pdf={}", paper.display());
    open(Hour::Day, folder.path(), &[&print], &format!("file://{}", file.display()))?;
    let text = std::fs::read(paper).unwrap();
    let pages = regex::bytes::Regex::new(r"/Type\s*/Page\b").unwrap().find_iter(&text).count();
    assert!(pages > 0, "no page was printed");
    Some(pages)
}

fn visit(hour: Hour, folder: &Path, address: &str) -> Option<String> {
    open(hour, folder, &["--virtual-time-budget=20000", "--dump-dom"], address)
}

/// What the browser says of a page.
fn open(hour: Hour, folder: &Path, arguments: &[&str], address: &str) -> Option<String> {
    let Some(browser) = browser() else {
        skip("no Chromium is installed");
        return None;
    };
    let output = folder.join("dom");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"])
        .args(["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1220,800"])
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(matches!(hour, Hour::Day))))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(arguments)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&output).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let patience = Instant::now() + Duration::from_secs(120);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > patience {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser did not end: {address}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(std::fs::read_to_string(output).unwrap())
}

fn browser() -> Option<&'static str> {
    let paths = std::env::var_os("PATH")?;
    let installed = |name: &&str| std::env::split_paths(&paths).any(|folder| folder.join(name).is_file());
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(installed)
}
