// @ts-check
// Searching, and moving from match to match.

const countMatches = () => svg.querySelectorAll(".match").length;

function showsShareOfMatches() {
    check(pressKey("f", { ctrlKey: true }).defaultPrevented, "Ctrl-F is handled");
    equal(document.activeElement, getSearchField(), "the search field has the focus");
    check(!pressKey("f", { ctrlKey: true }).defaultPrevented, "a second Ctrl-F is left to the browser");
    typePattern("^READ$|parse");
    equal(countMatches(), 3, "matches, whatever their case");
    equal(getText("matched"), "Matched: 30.00% · 3 frames", "nested matches count once");
    equal(getFill(getFrame("parse")), "rgb(230, 0, 230)", "colour of a match");
    click(getFrame("write"));
    equal(getText("matched"), "Matched in the view: 20.00% · 1 frame (3 in all)", "share of the zoomed view");
    check(location.hash.includes("search=%5EREAD"), "the pattern is in the link");
    click(byId("unzoom"));
    click(getFrame("scan"));
    const ofScan = "Matched in the view: 0.00% · 0 frames (3 in all)";
    equal(getText("matched"), ofScan, "callers of the zoomed frame are not in the view");
    equal(getText("search"), "Reset Search", "text of the button");
    click(byId("search"));
    equal(countMatches(), 0, "matches after the reset");
    equal(getText("matched"), "", "share after the reset");
}

function reportsInvalidPattern() {
    equal(getText("matched"), "Invalid pattern: Unterminated character class", "message without the pattern");
    click(getFrame("parse"));
    equal(getWidth("parse"), getWidth("all"), "zoom works");
    typePattern("scan");
    equal(getText("matched"), "Matched in the view: 40.00% · 1 frame (1 in all)", "search works");
    typePattern("*");
    check(getText("matched").startsWith("Invalid pattern"), "another invalid pattern");
    equal(countMatches(), 0, "an invalid pattern matches nothing");
}

function movesFromMatchToMatch() {
    const findCurrent = () => getFrames().findIndex(frame => frame.matches(".current"));
    pressKey("/");
    typePattern("read");
    equal(getText("matched"), "Matched: 30.00% · 3 frames", "all matches");
    pressKey("Enter");
    equal(getText("matched"), "Matched: 30.00% · 1 of 3 frames", "the first match");
    const first = findCurrent();
    equal(document.activeElement, getSearchField(), "the focus stays in the search field");
    pressKey("Enter");
    check(findCurrent() !== first && findCurrent() >= 0, "the next match");
    pressKey("Enter", { shiftKey: true });
    equal(findCurrent(), first, "the previous match");
    pressKey("Enter", { shiftKey: true });
    equal(getText("matched"), "Matched: 30.00% · 3 of 3 frames", "the last match precedes the first");
    getFrame("main").focus();
    pressKey("n");
    equal(findCurrent(), first, "n moves to the next match");
    equal(document.activeElement, getFrames()[first], "n moves the focus");
    pressKey("n");
    check(findCurrent() !== first && findCurrent() >= 0, "n moves on");
    pressKey("N");
    equal(findCurrent(), first, "N moves back");
}

async function showsMatchesTooNarrowToDraw() {
    pressKey("/");
    typePattern("narrow|wide");
    equal(getText("matched"), "Matched: 99.80% · 51 frames", "all matches");
    check(!hasFrame("narrow00"), "not all of them are drawn");
    pressKey("Enter");
    const first = "Matched in the view: 100.00% · 50 frames (1 of 51 in all)";
    equal(getText("matched"), first, "the first match");
    check(getWidth("narrow00") >= 20 && getFrame("narrow00").matches(".current"), "the first match is visible");
    equal(getWidth("many"), getWidth("all"), "it zooms no further than necessary");
    pressKey("Enter");
    check(getFrame("narrow01").matches(".current"), "the next match, in the same view");
    const link = location.hash;
    pressKey("Enter", { shiftKey: true });
    pressKey("Enter", { shiftKey: true });
    equal(getText("matched"), "Matched: 99.80% · 51 of 51 frames", "the last match precedes the first");
    check(getFrame("wide").matches(".current"), "the last match is outside of the view");
    location.hash = link;
    await waitFor(() => hasFrame("narrow01"), "the link's view");
    getFrame("many").focus();
    typePattern("leaf|wide");
    pressKey("n");
    check(getWidth("narrow00") > 0, "a match in the view is visible");
    check(getText("matched").includes("(1 of 51 in all)"), `matches in the view come first: ${getText("matched")}`);
}

function movesThroughMatchesAsDrawn() {
    pressKey("s");
    pressKey("/");
    typePattern("^x$");
    const titles = [1, 2, 3].map(() => {
        pressKey("Enter");
        return getTitle(getElement("#frames .current"));
    });
    const byWeight = ["x (5 samples, 45.45%)", "x (2 samples, 18.18%)", "x (1 samples, 9.09%)"];
    equalLists(titles, byWeight, "from left to right, sorted by weight");
    pressKey("Escape");
    getFrame("f").focus();
    pressKey("b");
    pressKey("/");
    typePattern("x|^b$");
    const shares = "Matched: 66.67% of callees, 55.56% of callers · 2 frames";
    equal(getText("matched"), shares, "shares of callees and of callers");
    pressKey("Enter");
    check(getFrame("x").matches(".current"), "callees first");
    pressKey("Enter");
    check(getFrame("b").matches(".current"), "then callers");
}
