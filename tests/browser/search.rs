//! Looking for frames.

use crate::browser::judge;

const STACKS: &[u8] = b"main;parse;read 30\nmain;parse;scan;next 20\nmain;write;read 10\nmain;write 40\nidle 100\n";

#[test]
fn search_tells_the_share_of_the_view() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        check(key("f", { ctrlKey: true }).defaultPrevented, "Ctrl-F is ours");
        equal(document.activeElement, svg.querySelector("input"), "the input has the focus");
        check(!key("f", { ctrlKey: true }).defaultPrevented, "a second Ctrl-F is the browser's");
        type("^READ$|parse");
        equal(svg.querySelectorAll(".match").length, 3, "matches, case ignored");
        equal(text("matched"), "Matched: 30.00% · 3 frames", "nested matches count once");
        equal(getComputedStyle(frame("parse").querySelector("rect")).fill, "rgb(230, 0, 230)", "a match's colour");
        click(frame("write"));
        equal(text("matched"), "Matched in the view: 20.00% · 1 frame (3 in all)", "share and count of the zoomed view");
        check(location.hash.includes("search=%5EREAD"), "the search is in the link");
        click(byId("unzoom"));
        click(frame("scan"));
        equal(text("matched"), "Matched in the view: 0.00% · 0 frames (3 in all)", "of what is in view, its caller is not");
        equal(text("search"), "Reset Search", "the button");
        click(byId("search"));
        equal(svg.querySelectorAll(".match").length, 0, "matches after the reset");
        equal(text("matched"), "", "share after the reset");
    "##,
    );
}

#[test]
fn an_invalid_pattern_is_told_and_breaks_nothing() {
    judge(
        STACKS,
        &[],
        "#search=ba%5B",
        r##"
        equal(text("matched"), "Invalid pattern: Unterminated character class", "told without what was typed");
        click(frame("parse"));
        equal(width("parse"), width("all"), "zoom still works");
        type("scan");
        equal(text("matched"), "Matched in the view: 40.00% · 1 frame (1 in all)", "and so does search");
        type("*");
        check(text("matched").startsWith("Invalid pattern"), "told again");
        equal(svg.querySelectorAll(".match").length, 0, "nothing matches it");
    "##,
    );
}

#[test]
fn matches_are_gone_through_one_by_one() {
    judge(
        b"main;parse;read 30\nmain;parse;scan;next 20\nmain;write;read 10\nmain;write 40\nmain;walk;walk;walk;read 20\nidle 80\n",
        &[],
        "",
        r##"
        key("/");
        type("read");
        equal(text("matched"), "Matched: 30.00% · 3 frames", "all");
        const at = () => groups().findIndex(group => group.matches(".current"));
        key("Enter");
        equal(text("matched"), "Matched: 30.00% · 1 of 3 frames", "the first");
        const first = at();
        equal(document.activeElement, svg.querySelector("input"), "typing goes on");
        key("Enter");
        check(at() !== first && at() >= 0, "the next");
        key("Enter", { shiftKey: true });
        equal(at(), first, "the one before");
        key("Enter", { shiftKey: true });
        equal(text("matched"), "Matched: 30.00% · 3 of 3 frames", "round");
        frame("main").focus();
        key("n");
        equal(at(), first, "by key");
        equal(document.activeElement, groups()[first], "which has the focus");
        key("n");
        key("N");
        equal(at(), first, "and back");
    "##,
    );
}

/// One wide function, and fifty that are too narrow to be drawn, and hard to see with what stands beside them.
fn narrow() -> Vec<u8> {
    let mut stacks = b"main;wide 1000000\nmain;group;rest 2000\n".to_vec();
    for narrow in 0..50 {
        stacks.extend_from_slice(format!("main;group;many;narrow{narrow:02};leaf 1\n").as_bytes());
    }
    stacks
}

#[test]
fn matches_too_narrow_to_draw_are_counted_and_led_to() {
    judge(
        &narrow(),
        &[],
        "",
        r##"
        key("/");
        type("narrow|wide");
        equal(text("matched"), "Matched: 99.80% · 51 frames", "all that match");
        check(!frame("narrow00"), "which are not all drawn");
        key("Enter");
        equal(text("matched"), "Matched in the view: 100.00% · 50 frames (1 of 51 in all)", "the first, and where it is");
        check(width("narrow00") >= 20 && frame("narrow00").matches(".current"), "it can be seen");
        equal(width("many"), width("all"), "in the view nearest to the whole in which it can");
        key("Enter");
        check(frame("narrow01").matches(".current"), "the next in the same view");
        const link = location.hash;
        key("Enter", { shiftKey: true });
        key("Enter", { shiftKey: true });
        equal(text("matched"), "Matched: 99.80% · 51 of 51 frames", "round");
        check(frame("wide")?.matches(".current"), "outside of the view");
        location.hash = link;
        await until(() => frame("narrow01"), "the link");
        frame("many").focus();
        type("leaf|wide");
        key("n");
        check(width("narrow00") > 0 && text("matched").includes("(1 of 51 in all)"), `first those of the view: ${text("matched")}`);
    "##,
    );
}

#[test]
fn matches_are_gone_through_from_the_left_by_weight_and_in_a_sandwich() {
    judge(
        b"a;f;x 1\nb;f;x 5\nc;f;y 3\nc;x 2\n",
        &[],
        "",
        r##"
        key("s");
        key("/");
        type("^x$");
        const seen = [1, 2, 3].map(() => (key("Enter"), title(svg.querySelector("#frames .current"))));
        equal(seen.join(), "x (5 samples, 45.45%),x (2 samples, 18.18%),x (1 samples, 9.09%)", "as drawn");
        key("Escape");
        frame("f").focus();
        key("b");
        key("/");
        type("x|^b$");
        equal(text("matched"), "Matched: 66.67% of callees, 55.56% of callers · 2 frames", "each half by itself");
        key("Enter");
        check(frame("x").matches(".current"), "what it calls");
        key("Enter");
        check(frame("b").matches(".current"), "then who calls it");
    "##,
    );
}
