//! Text can be read: its contrast with what is behind it is at least 4.5 to 1, as WCAG 2 measures it.

use crate::browser::{Hour, judge_at};

/// Names of every kind that a palette tells apart, and all states.
const STACKS: &[u8] = b"main;java/util/List_[j];std::io::read_[i];schedule_[k];irq_[w];wake 40\n\
    main;site-packages/numpy;/usr/lib/python3.12/os.py;a.js;Perl_run 40\n\
    main;core::fmt::write;alloc;x::y::z 40\n\
    main;--;waker 20\nmain;-;x 20\n[lost] 20\nx;[truncated] 20\nx;[unknown] 20\nx;[off-cpu] 20\nx;[runnable] 20\n\
    x;[unsampled] 20\n";

/// Every text in sight by what is behind it: its frame, its button or bar, or the background. What runs in the browser.
const MEASURE: &str = r##"
    const numbers = colour => colour.match(/[\d.]+/g).slice(0, 3).map(Number);
    const linear = channel => (channel /= 255) <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
    const luminance = colour => numbers(colour).map(linear).reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    function contrast(a, b) {
        const [low, high] = [luminance(a), luminance(b)].sort((a, b) => a - b);
        return (high + 0.05) / (low + 0.05);
    }
    const style = element => getComputedStyle(element);
    const readable = (ink, ground, what) =>
        check(contrast(ink, ground) >= 4.5, `${what}: ${ink} on ${ground} is ${contrast(ink, ground).toFixed(2)}`);
    function grounds() {
        const { fill } = style(svg.querySelector(".background"));
        if (fill.startsWith("rgb")) return [fill];
        return [...svg.querySelectorAll("#background stop")].map(stop => style(stop).stopColor);
    }
    function measure(when) {
        let frames = 0;
        for (const group of groups().filter(group => group.querySelector("text"))) {
            frames++;
            readable(style(group.querySelector("text")).fill, style(group.querySelector("rect")).fill, `${when}, ${title(group)}`);
        }
        check(frames > 3, `${when}: ${frames} labels`);
        for (const words of svg.querySelectorAll(":scope > text, #legend text")) {
            if (!words.textContent.trim() || !shown(words)) continue;
            const behind = [...grounds(), ...[...svg.querySelectorAll(".bar")].filter(shown).map(bar => style(bar).fill)];
            for (const ground of behind) readable(style(words).fill, ground, `${when}, ${words.textContent}`);
        }
    }
    measure("at first");
    click(frame("main"));
    click(groups().filter(group => group.querySelector("text")).at(-1));
    check(svg.querySelector(".parent text"), "callers are pale and have labels");
    measure("zoomed");
    key("Escape");
    key("f", { ctrlKey: true });
    type(".");
    check(svg.querySelectorAll(".match text").length > 3, "matches have labels");
    measure("found");
    readable(style(svg.querySelector("input")).color, style(svg.querySelector("input")).backgroundColor, "the search field");
    type("*");
    measure("not a pattern");
    readable(style(svg.querySelector("input")).color, style(svg.querySelector("input")).backgroundColor, "a wrong pattern");
    key("Escape", {}, svg.querySelector("input"));
    click(byId("menu"));
    const sheet = svg.querySelector(".menu"), [first, second] = sheet.querySelectorAll("button");
    readable(style(second).color, style(sheet).backgroundColor, "the sheet");
    first.focus();
    readable(style(first).color, style(first).backgroundColor, "its chosen row");
"##;

fn measure(stacks: &[u8], arguments: &[&str]) {
    for hour in [Hour::Day, Hour::Night] {
        judge_at(hour, stacks, arguments, "", MEASURE);
    }
}

#[test]
fn it_is_dark_where_the_reader_prefers_that() {
    for (hour, is_dark) in [(Hour::Day, false), (Hour::Night, true)] {
        let test = format!(
            "const dark = element => getComputedStyle(element).fill.match(/\\d+/g)?.slice(0, 3).every(part => part < 80) ?? false;
            equal(dark(svg.querySelector('.background')), {is_dark}, 'the background');
            equal(dark(byId('title')), {}, 'the words');",
            !is_dark
        );
        judge_at(hour, STACKS, &[], "", &test);
    }
}

#[test]
fn labels_can_be_read() {
    // That every colour of every palette has readable labels, a test of the colours shows.
    measure(STACKS, &["--colors", "java"]);
    measure(STACKS, &["--colors", "blue"]);
}

#[test]
fn differences_and_shares_can_be_read() {
    measure(b"main;f;g 10 30\nmain;f;h 20 10\nmain;i 70 60\nmain;j 5 5\n", &[]);
    measure(STACKS, &["--colordiffusion"]);
}

#[test]
fn colours_that_were_asked_for_can_be_read() {
    measure(STACKS, &["--bgcolors", "#203040", "--search-color", "#000080"]);
    measure(STACKS, &["--bgcolors", "#ffffff"]);
}
