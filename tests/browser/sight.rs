//! What is in sight, on the screen and on paper, and what is said of the rest.

use crate::browser::{judge, judge_page, pages, script};
use crate::support::run;

/// Two hundred frames on each other; the twentieth calls something else, too.
fn tall() -> Vec<u8> {
    let stack = |depth: usize| (0..depth).map(|frame| format!("f{frame}")).collect::<Vec<_>>().join(";");
    format!("{} 9\n{};side 1\n{};[off-cpu] 2\n", stack(200), stack(20), stack(3)).into_bytes()
}

#[test]
fn controls_stay_in_sight() {
    judge(
        &tall(),
        &[],
        "",
        r##"
        check(document.documentElement.getBoundingClientRect().height > 3000, "a tall picture");
        const inSight = id => { const place = byId(id).getBoundingClientRect(); return place.top >= 0 && place.bottom <= innerHeight; };
        const base = frame("all").getBoundingClientRect();
        check(base.top >= 0 && base.bottom <= innerHeight, "it opens at the root");
        check(inSight("search") && inSight("menu"), "at the root");
        frame("f199").focus();
        scrollTo(0, 0);
        window.dispatchEvent(new Event("scroll"));
        check(inSight("search") && inSight("details"), "at the top");
        scrollTo(0, 1000);
        window.dispatchEvent(new Event("scroll"));
        check(inSight("search") && inSight("details") && inSight("menu"), "after scrolling");
        const bar = svg.querySelector(".bar").getBoundingClientRect(), legend = byId("legend").getBoundingClientRect();
        check(inSight("legend") && legend.top > byId("search").getBoundingClientRect().bottom, "and what the colours mean");
        check(legend.bottom <= bar.bottom, "on a bar");
        window.dispatchEvent(new Event("beforeprint"));
        const top = id => byId(id).getBoundingClientRect().top;
        check(top("legend") < rect(frame("f199")).top && top("details") > rect(frame("all")).top, "on paper around the whole");
        window.dispatchEvent(new Event("afterprint"));
        check(inSight("legend") && inSight("details"), "then as before");
        key("f", { ctrlKey: true });
        const input = svg.querySelector("input").getBoundingClientRect();
        check(input.top >= 0 && input.bottom < 40, "the search field too");
    "##,
    );
}

#[test]
fn zooming_reveals_what_was_too_narrow_to_draw() {
    let mut stacks = b"main;wide 100000\n".to_vec();
    for narrow in 0..50 {
        stacks.extend_from_slice(format!("main;many;narrow{narrow:02} 1\n").as_bytes());
    }
    judge(
        &stacks,
        &["--width", "1200"],
        "",
        r##"
        const folded = svg.querySelector("#frames .folded");
        equal(title(folded), "50 frames too narrow to draw (50 samples, 0.05%)", "folded");
        check(!byId("folded"), "what is said of the still picture does not stand in the live one");
        click(folded);
        equal(width("many"), width("all"), "the caller of the folded frames");
        equal(width("narrow07"), Math.round(width("all") / 50), "revealed");
    "##,
    );
}

#[test]
fn the_frame_of_interest_is_always_in_sight() {
    judge(
        &tall(),
        &[],
        "",
        r##"
        const bars = [...svg.querySelectorAll(".bar")].map(bar => bar.getBoundingClientRect().height);
        const inSight = name => rect(frame(name)).top >= bars[0] - 1 && rect(frame(name)).bottom <= innerHeight - bars[1] + 1;
        check(inSight("all"), "the root at first");
        frame("f150").focus();
        scrollTo(0, 0);
        key("b");
        check(inSight("f150"), `the function between its callers and callees: ${rect(frame("f150")).top}`);
        check(inSight("f149") && inSight("f151"), "and some of both");
        key("i");
        check(inSight("f150"), "turned");
        key("i");
        key("Escape");
        check(inSight("all"), "the root after it");
        key("i");
        check(inSight("all"), "the root on top");
        scrollTo(0, 2000);
        key("i");
        check(inSight("all"), "and beneath again");
        scrollTo(0, 500);
        click(frame("f180"));
        check(inSight("f180"), "what was zoomed to");
        const link = location.hash;
        key("Escape");
        check(inSight("all"), "the root after the zoom");
        location.hash = link;
        await until(() => !frame("side"), "the link");
        check(inSight("f180"), "where the link leads");
        frame("f180").focus();
        for (let step = 0; step < 60; step++) key("ArrowDown");
        equal(title(document.activeElement).split(" ")[0], "f120", "sixty frames further down");
        check(inSight("f120"), "the arrows scroll");
        type("f40$");
        key("n", {}, document.activeElement);
        check(inSight("f40"), "and so does the next match");
    "##,
    );
}

/// How far a picture scrolls, right and down, in a window of that size.
fn scrolls(width: usize, height: usize, arguments: &[&str]) -> String {
    let told = "(async () => {
        while (!document.documentElement.matches('.live')) await new Promise(resolve => setTimeout(resolve, 20));
        scrollTo(99, 99);
        const title = document.querySelector('#title').getBoundingClientRect();
        parent.postMessage(`${scrollX} ${scrollY} ${title.top + scrollY >= 0}`, '*');
    })();";
    let svg = run("fg-svg", arguments, b"a;b;c;d 1\n").ok().text();
    let svg = svg.replacen("</svg>", &format!("<script>{told}</script></svg>"), 1);
    let address: String = svg.bytes().map(|byte| format!("%{byte:02x}")).collect();
    format!("<iframe width=\"{width}\" height=\"{height}\" src=\"data:image/svg+xml,{address}\"></iframe>")
}

#[test]
fn a_graph_a_few_pixels_too_large_does_not_scroll() {
    // Five rows with what is above and beneath them are 150 pixels high.
    let windows = [(700, 150, &[][..]), (700, 142, &[]), (700, 130, &[]), (694, 142, &["--width", "700"])];
    let frames = windows.map(|(width, height, arguments)| scrolls(width, height, arguments)).concat();
    let test = r##"
        const frames = [...document.querySelectorAll("iframe")], told = () => frames.map(frame => window.told.get(frame.contentWindow));
        await until(() => told().every(Boolean), "all pictures");
        const [fits, few, many, wide] = told();
        equal(fits, "0 0 true", "what fits");
        equal(few, "0 0 true", "what is a few pixels too tall");
        equal(many, "0 20 true", "what is more than that");
        equal(wide, "0 0 true", "what is a few pixels too wide as well");
    "##;
    let listen = "window.told = new Map(); addEventListener('message', event => told.set(event.source, event.data));";
    let page =
        format!("<!DOCTYPE html><script>{listen}</script><body>{frames}<script>{}</script></body>", script(test));
    judge_page("page.html", &page, "");
}

/// Stacks of which each has a frame that is too narrow to draw, alone among wide ones, and one has many.
const UNDRAWN: &[u8] = b"a;b;c 1\na;d 50000\na;e;f 1\na;g 50000\nh;i;j;k 2\nh;l 100000\n";

#[test]
fn what_is_too_narrow_to_draw_is_said_with_a_number() {
    judge(
        UNDRAWN,
        &[],
        "",
        r##"
        equal(svg.querySelectorAll("#frames .folded").length, 0, "nothing wide enough to fold");
        equal(text("undrawn"), "7 frames too narrow to draw (<0.01%)", "all of it");
        const [told, found] = ["undrawn", "matched"].map(id => () => byId(id).getBoundingClientRect());
        type("d|h");
        check(told().top >= found().bottom && told().bottom <= innerHeight && shown(byId("undrawn")), "it stands beneath what was found");
        click(frame("a"));
        equal(text("undrawn"), "4 frames too narrow to draw (<0.01% of the view)", "of the view");
        key("Escape");
        key("Escape");
        frame("h").focus();
        key("h");
        equal(text("undrawn"), "4 frames too narrow to draw (<0.01%)", "without what is hidden");
        key("Escape");
        frame("d").focus();
        key("b");
        equal(text("undrawn"), "", "all is drawn");
        svg.style.width = "400px", window.dispatchEvent(new Event("resize"));
        key("Escape");
        equal(text("undrawn"), "7 frames too narrow to draw (<0.01%)", "in a narrow window");
        type("d|h");
        check(told().top >= found().bottom - 3 && told().bottom <= byId("details").getBoundingClientRect().top + 3, "in a line of its own");
    "##,
    );
}

#[test]
fn the_number_of_frames_that_are_not_drawn_does_not_hold_hidden_ones() {
    judge(
        b"a;b;c;x 1\na;b;y 1\na;d 500000\ne 9\n",
        &[],
        "",
        r##"
        equal(text("undrawn"), "5 frames too narrow to draw (<0.01%)", "all");
        location.hash = "#hide=x";
        await until(() => text("changes") === "without x", "the link");
        equal(text("undrawn"), "3 frames too narrow to draw (<0.01%)", "without those of the hidden stack");
    "##,
    );
}

#[test]
fn on_paper_the_whole_graph_stands_on_one_page_without_controls() {
    let svg = run("fg-svg", [""; 0], &tall()).ok().text();
    if let Some(pages) = pages(&svg) {
        assert_eq!(pages, 1);
    }
    // As the browser lays it out for paper.
    let (head, rest) = svg.split_once("@media print").unwrap();
    let test = r##"
        window.dispatchEvent(new Event("beforeprint"));
        const gone = element => getComputedStyle(element).display === "none";
        check(gone(byId("menu")) && gone(byId("search")) && gone(byId("unzoom")), "the controls");
        check([...svg.querySelectorAll(".bar")].every(gone), "the bars");
        check(!gone(byId("title")) && !gone(byId("legend")) && !gone(frame("f180")), "the rest is there");
        const inPicture = place => place.top >= 0 && place.bottom <= innerHeight && place.right <= innerWidth;
        check(inPicture(rect(frame("f199"))) && inPicture(rect(frame("all"))), "the whole of it");
        check(byId("legend").getBoundingClientRect().bottom <= rect(frame("f199")).top, "the legend on top");
        window.dispatchEvent(new Event("afterprint"));
    "##;
    let page = format!("{head}@media all{rest}");
    judge_page(
        "graph.svg",
        &page.replacen("</svg>", &format!("<script><![CDATA[{}]]></script></svg>", script(test)), 1),
        "",
    );
}
