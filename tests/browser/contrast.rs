//! The contrast of text is at least 4.5 to 1, as WCAG 2 demands. That all colours of all palettes have readable labels,
//! a unit test of the palettes shows.

use serde_json::json;

use crate::browser::{ColorScheme, Page};
use crate::support::run;

const CASES: &str = include_str!("cases/contrast.js");

/// Names of every kind that a palette distinguishes, and all thread states.
const STACKS: &[u8] = b"main;java/util/List_[j];std::io::read_[i];schedule_[k];irq_[w];wake 40\n\
    main;site-packages/numpy;/usr/lib/python3.12/os.py;a.js;Perl_run 40\n\
    main;core::fmt::write;alloc;x::y::z 40\n\
    main;--;waker 20\nmain;-;x 20\n[lost] 20\nx;[truncated] 20\nx;[unknown] 20\nx;[off-cpu] 20\nx;[runnable] 20\n\
    x;[unsampled] 20\n";

const COLOR_SCHEMES: [ColorScheme; 2] = [ColorScheme::Light, ColorScheme::Dark];

#[track_caller]
fn assert_readable(stacks: &[u8], options: &[&str]) {
    for scheme in COLOR_SCHEMES {
        Page::graph(stacks, options).color_scheme(scheme).run(CASES, "hasReadableText");
    }
}

#[test]
fn follows_the_preferred_colour_scheme() {
    for scheme in COLOR_SCHEMES {
        let is_dark = scheme == ColorScheme::Dark;
        Page::graph(STACKS, &[]).color_scheme(scheme).run_with(CASES, "followsColourScheme", &json!([is_dark]));
    }
}

#[test]
fn cells_with_the_most_samples_stand_out() {
    let samples = b"a 1/1 1.0: 1 cycles:\n\t1 main+0x0 (/app)\n\nb 1/2 2.0: 1 cycles:\n\t1 main+0x0 (/app)\n\n";
    let html = run("fg-heatmap", [""; 0], samples).ok().text();
    for scheme in COLOR_SCHEMES {
        let page = Page::html(html.clone()).color_scheme(scheme);
        page.run_with(CASES, "heatStandsOut", &json!([scheme == ColorScheme::Dark]));
    }
}

#[test]
fn labels_are_readable() {
    assert_readable(STACKS, &["--colors", "java"]);
    assert_readable(STACKS, &["--colors", "blue"]);
}

#[test]
fn colours_of_differences_and_shares_are_readable() {
    assert_readable(b"main;f;g 10 30\nmain;f;h 20 10\nmain;i 70 60\nmain;j 5 5\n", &[]);
    assert_readable(STACKS, &["--colordiffusion"]);
}

#[test]
fn colours_of_options_are_readable() {
    assert_readable(STACKS, &["--bgcolors", "#203040", "--search-color", "#000080"]);
    assert_readable(STACKS, &["--bgcolors", "#ffffff"]);
}
