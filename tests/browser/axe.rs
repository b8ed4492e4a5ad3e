//! Accessibility, as axe-core checks it.

use crate::browser::{ColorScheme, Page};
use crate::support::{run, skip};

const CASES: &str = include_str!("cases/axe.js");

const STACKS: &[u8] = b"main;parse;read 30\nmain;parse;scan;next 20\nmain;write;read 10\nmain;write 40\nidle 100\n";

#[test]
fn axe_finds_nothing_serious() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/node_modules/axe-core/axe.min.js");
    let Ok(axe) = std::fs::read_to_string(file) else {
        return skip("no axe-core is installed: npm ci --prefix tests/browser");
    };
    let code = format!("{axe}\n{CASES}");
    let samples = b"app 1/1 [000] 1.000100: cycles: 7f00 f (/x)\napp 1/2 [000] 1.500100: cycles: 7f00 g (/x)\n";
    for scheme in [ColorScheme::Light, ColorScheme::Dark] {
        let pages = [
            Page::html(run("fg-svg", ["--html"], STACKS).ok().text()),
            Page::html(run("fg-svg", ["--html"], b"main;f;g 10 30\nmain;f;h 20 10\nmain;gone 9 0\n").ok().text()),
            Page::html(run("fg-heatmap", [""; 0], samples).ok().text()),
            Page::html(run("fg-heatmap", [""; 0], samples).ok().text()).fragment("#chart=yes"),
        ];
        for page in pages {
            page.color_scheme(scheme).run(&code, "hasNoSeriousViolation");
        }
    }
}
