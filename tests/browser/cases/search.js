// @ts-check
// Searching, and moving from match to match.

const countMatches = () => svg.querySelectorAll(".match").length;
const findCurrent = () => getFrames().findIndex(frame => frame.matches(".selected"));

function showsShareOfMatches() {
    check(pressKey("f", { ctrlKey: true }).defaultPrevented, "Ctrl-F is handled");
    equal(document.activeElement, getSearchField(), "the search field has the focus");
    check(!pressKey("f", { ctrlKey: true }).defaultPrevented, "a second Ctrl-F is left to the browser");
    typePattern("^READ$|parse");
    equal(countMatches(), 3, "matches, whatever their case");
    equal(getResult(), "30.0 % in 2 functions", "nested matches count once");
    check(getFill(getFrame("parse")) !== getFill(getFrame("main")), "matches have their own colour");
    equalLists(getFunctions().sort(), ["parse", "read"], "the table has the matches");
    click(getFrame("write"));
    equal(getResult(), "20.0 % of the view in 1 function", "share of the zoomed view");
    check(location.hash.includes("search=%5EREAD"), "the pattern is in the link");
    click(getElement(".chip button"));
    click(getFrame("scan"));
    equal(getResult(), "No match", "callers of the zoomed frame are not in the view");
    pressKey("f", { ctrlKey: true });
    pressKey("Escape", {}, getSearchField());
    equal(countMatches(), 0, "matches after the reset");
    equal(getResult(), "", "share after the reset");
    equalLists(getChips(), ["Zoom scan"], "the zoom remains");
}

/** A name is found as it is written, also if it would be a regular expression. */
function findsTextBeforeExpressions() {
    typePattern("[unknown]");
    equal(getResult(), "10.0 % in 1 function", "a name in brackets");
    typePattern("[unk]");
    equal(getResult(), "No match", "nor is a name in brackets that there is not");
    typePattern("operator()(");
    equal(getResult(), "20.0 % in 1 function", "a name with parentheses");
    typePattern("^[mk]");
    equal(getResult(), "100 % in 2 functions", "an expression");
}

function reportsInvalidPattern() {
    equal(getResult().toLowerCase(), "invalid: unterminated character class", "message without the pattern");
    equal(getTexts(".table .empty").join(), "No function matches “ba[”.", "the table is empty");
    click(getFrame("parse"));
    equal(getWidth("parse"), getWidth("all"), "zoom works");
    typePattern("scan");
    equal(getResult(), "40.0 % of the view in 1 function", "search works");
    typePattern("*");
    check(getResult().startsWith("Invalid"), "another invalid pattern");
    equal(countMatches(), 0, "an invalid pattern matches nothing");
}

function movesFromMatchToMatch() {
    pressKey("/", {}, document.body);
    equal(document.activeElement, getSearchField(), "/ moves the focus to the search field");
    typePattern("read");
    equal(getResult(), "30.0 % in 1 function", "all matches");
    pressKey("Enter");
    equal(getMessage(), "Match 1 of 3", "the first match");
    const first = findCurrent();
    equal(document.activeElement, getSearchField(), "the focus stays in the search field");
    pressKey("Enter");
    check(findCurrent() !== first && findCurrent() >= 0, "the next match");
    pressKey("Enter", { shiftKey: true });
    equal(findCurrent(), first, "the previous match");
    pressKey("Enter", { shiftKey: true });
    equal(getMessage(), "Match 3 of 3", "the last match precedes the first");
    focusFrame(getFrame("main"));
    pressKey("n");
    equal(findCurrent(), first, "n moves to the next match");
    equal(document.activeElement, getItem(getFrames()[first]), "n moves the focus");
    pressKey("n");
    check(findCurrent() !== first && findCurrent() >= 0, "n moves on");
    pressKey("N");
    equal(findCurrent(), first, "N moves back");
}

async function showsMatchesTooNarrowToDraw() {
    pressKey("/", {}, document.body);
    typePattern("narrow|wide");
    equal(getResult(), "99.8 % in 31 functions", "all matches");
    check(!hasFrame("narrow00"), "not all of them are drawn");
    pressKey("Enter");
    equal(getResult(), "100 % of the view in 30 functions", "the view of the first match");
    equal(getMessage(), "Match 1 of 31", "the first match");
    check(getWidth("narrow00") >= 10 && getFrame("narrow00").matches(".selected"), "the first match is visible");
    equal(getWidth("many"), getWidth("all"), "it zooms no further than necessary");
    pressKey("Enter");
    check(getFrame("narrow01").matches(".selected"), "the next match, in the same view");
    const link = location.hash;
    pressKey("Enter", { shiftKey: true });
    pressKey("Enter", { shiftKey: true });
    equal(getMessage(), "Match 31 of 31", "the last match precedes the first");
    check(getFrame("wide").matches(".selected"), "the last match is outside of the view");
    location.hash = link;
    await waitFor(() => hasFrame("narrow01"), "the link's view");
    focusFrame(getFrame("many"));
    typePattern("leaf|wide");
    pressKey("n");
    check(getWidth("narrow00") > 0, "a match in the view is visible");
    equal(getMessage(), "Match 1 of 31", "matches in the view come first");
}

function movesThroughMatchesAsDrawn() {
    pressKey("/", {}, document.body);
    typePattern("^x$");
    const titles = [1, 2, 3].map(() => {
        pressKey("Enter");
        return getTitle(getElement("#frames .selected"));
    });
    const byWeight = ["x (5 samples, 45.45%)", "x (2 samples, 18.18%)", "x (1 sample, 9.09%)"];
    equalLists(titles, byWeight, "from left to right, sorted by weight");
    pressKey("Escape");
    focusFrame(getFrame("f"));
    pressKey("s");
    pressKey("/");
    typePattern("x|^b$");
    equal(getResult(), "54.5 % in 2 functions", "share of callees or callers");
    pressKey("Enter");
    check(getFrame("x").matches(".selected"), "callees first");
    pressKey("Enter");
    check(getFrame("b").matches(".selected"), "then callers");
}
