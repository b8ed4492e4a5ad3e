// @ts-check
// Other views of the same profile: callers, callees, without some frames, sorted, the root at the bottom.

const LINK_LEADS_NOWHERE = "The link leads to a frame that is not in this graph.";

const getWarning = () => getTexts(".stale").join();

/** Returns the upper edge of a frame on the screen. @param {Element} frame */
const getTop = frame => getBounds(frame).top;

async function showsCallers() {
    focusFrame(getFrame("read"));
    pressKey("b");
    equal(getTitle(getFrame("read")), "read (60 samples, 30.00%)", "inclusive weight of the function");
    equal(getTitle(getFrame("parse")), "parse (30 samples, 15.00%)", "a caller");
    equal(findFrames("main").length, 3, "each caller has its own caller");
    check(!hasFrame("idle") && !hasFrame("all"), "other frames are removed");
    equal(getWidth("parse"), Math.round(getWidth("read") / 2), "the function has the whole width");
    equalLists(getChips(), ["Callers read"], "filters");
    const link = location.hash;
    pressKey("Escape");
    check(hasFrame("idle"), "Escape restores the graph");
    equalLists(getChips(), [], "no filter");
    location.hash = link;
    await waitFor(() => getChips().join() === "Callers read", "the link's view");
    pressKey("Escape");
    focusFrame(getFrame("walk"));
    pressKey("b");
    equal(getTitle(getFrame("walk")), "walk (20 samples, 10.00%)", "recursion counts once");
}

function mergesCallees() {
    focusFrame(getFrame("walk"));
    pressKey("c");
    const recursive = getFrames().filter(frame => getTitle(frame) === "walk (20 samples, 10.00%)");
    equal(recursive.length, 3, "one frame for each level of the recursion");
    pressKey("r");
    equal(findFrames("walk").length, 1, "recursion is merged");
    equal(getTitle(getFrame("read")), "read (20 samples, 10.00%)", "a callee");
    equalLists(getChips(), ["Callees walk", "Merged recursion"], "filters");
}

async function showsCallersAndCallees() {
    focusFrame(getFrame("f"));
    pressKey("s");
    equal(findFrames("f").length, 2, "the function, and where it calls itself");
    equal(getTitle(getFrame("f")), "f (16 samples, 16.67%)", "recursion counts once");
    equal(getTitle(getFrame("x")), "x (5 samples, 5.21%)", "a callee, merged");
    equal(getTitle(getFrame("b")), "b (5 samples, 5.21%)", "a caller");
    check(getTop(getFrame("x")) > getTop(getFrame("f")), "callees are below");
    check(getTop(getFrame("b")) < getTop(getFrame("f")), "callers are above");
    const left = Math.min(...["a", "b", "main"].flatMap(name => findFrames(name)).map(frame => getBounds(frame).left));
    // Firefox counts the outline of the focus.
    const edge = getBounds(getFrame("f")).left;
    check(Math.abs(left - edge) <= 2, `callers begin at the edge of the function: ${left}, ${edge}`);
    check(getFrame("f").matches(".pivot"), "the function has a class");
    equal(findFrames("main").length, 3, "each caller has its own caller");
    check(getTop(getFrame("main")) <= getTop(getFrame("b")), "callers of callers are further away");
    check(!hasFrame("z") && !hasFrame("all"), "other frames are removed");
    equalLists(getChips(), ["Sandwich f"], "filters");
    equal(getElement("[data-value=between]").getAttribute("aria-pressed"), "true", "the view is chosen");
    pointAt(getFrame("b"));
    check(getTip().includes("31.2 % of its callee"),
        `tooltip: ${getTip()}`);
    const widthBefore = getWidth("x");
    click(getFrame("b"));
    equal(getWidth("b"), getWidth("f"), "width of a zoomed caller");
    equal(findFrames("main").length, 1, "only the zoomed caller's callers remain");
    equal(getWidth("x"), widthBefore, "width of a callee");
    const link = location.hash;
    pressKey("ArrowDown");
    equal(getName(document.activeElement), "f", "an arrow key moves the focus to the function");
    pressKey("ArrowDown");
    check(document.activeElement && getTop(document.activeElement) > getTop(getFrame("f")), "and to its callee");
    pressKey("0");
    equal(findFrames("main").length, 3, "0 resets the zoom");
    pressKey("u");
    check(getTop(getFrame("x")) < getTop(getFrame("f")), "with the root at the bottom, callees are above");
    check(getTop(getFrame("b")) > getTop(getFrame("f")), "and callers below");
    click(getElement("[data-value=graph]"));
    check(hasFrame("z"), "the button of the flame graph restores it");
    location.hash = link;
    await waitFor(() => findFrames("main").length === 1 && getWidth("b") === getWidth("f"), "the link's view");
    const clipboard = captureClipboard();
    focusFrame(getFrame("main"));
    pressKey("Y");
    await waitFor(() => clipboard.text === "main;b;f", "a caller's stack is copied root first");
}

async function distinguishesCallerFromCalleeOfTheSameName() {
    focusFrame(getFrame("f"));
    pressKey("s");
    const [caller, callee] = findFrames("x").sort((a, b) => getTop(a) - getTop(b));
    click(caller);
    const link = location.hash;
    pressKey("0");
    const [restored] = getFrames().filter(frame => getTitle(frame) === getTitle(callee)
        && getTop(frame) > getTop(getFrame("f")));
    click(restored);
    check(location.hash !== link, "their links differ");
    location.hash = link;
    await waitFor(() => findFrames("x").every(frame => !frame.matches(".above")), "the link's zoom");
    equal(getFrames().length, 3, "number of frames with the caller zoomed");
}

async function keepsAndDropsStacks() {
    focusFrame(getFrame("idle"));
    pressKey("i");
    check(!hasFrame("idle"), "the stacks are dropped");
    equal(getTitle(getFrame("main")), "main (120 samples, 100.00%)", "shares of the remaining weight");
    focusFrame(getFrame("read"));
    pressKey("f");
    equal(getTitle(getFrame("all")), "all (60 samples, 100%)", "only stacks with the function remain");
    equal(getTitle(getFrame("parse")), "parse (30 samples, 50.00%)", "shares of their weight");
    equalLists(getChips(), ["Ignore idle", "Focus read"], "filters, in the order of time");
    check(getElement(".facts").textContent.startsWith("60 samples of 200 samples"), "the header has both totals");
    history.back();
    await waitFor(() => hasFrame("scan"), "one step back");
    check(!hasFrame("idle"), "one step only");
    pressKey("Escape");
    check(hasFrame("idle"), "Escape removes the last filter");
    pressKey("Escape");
    equal(getMessage(), "No filter is left to remove.", "a message if there is none");
}

function hidesFrames() {
    focusFrame(getFrame("parse"));
    pressKey("h");
    check(!hasFrame("parse"), "the frames of the function are hidden");
    equal(getTitle(getFrame("scan")), "scan (20 samples, 10.00%)", "its callees remain");
    check(getTop(getFrame("scan")) === getTop(getFrame("walk")), "and move to its caller");
    equal(getTitle(getFrame("all")), "all (200 samples, 100%)", "the total remains");
    focusFrame(getFrame("write"));
    pressKey("h");
    equalLists(getChips(), ["Hide parse", "Hide write"], "filters");
    check(findFrames("read").some(frame => getTitle(frame).startsWith("read (40 ")), "equal frames are merged");
    click(getElement(".chip button"));
    equalLists(getChips(), ["Hide write"], "a button removes its filter only");
    check(hasFrame("parse") && !hasFrame("write"), "the graph follows");
    focusFrame(getFrame("parse"));
    pressKey("h");
    click(getButton("Clear all"));
    check(getChips().length === 0 && hasFrame("write"), "a button removes all filters");
}

function removesLastFilterFirst() {
    for (const [name, key] of [["parse", "h"], ["idle", "i"], ["write", "Enter"], ["main", "f"]]) {
        focusFrame(getFrame(name));
        pressKey(key);
    }
    equalLists(getChips(), ["Hide parse", "Ignore idle", "Zoom write", "Focus main"], "filters, in the order of time");
    for (const rest of [3, 2, 1]) {
        pressKey("Escape");
        equalLists(getChips(), ["Hide parse", "Ignore idle", "Zoom write"].slice(0, rest), "Escape removes the last");
    }
    click(getFrame("write"));
    click(getButton("Clear all"));
    equalLists(getChips(), [], "a button removes all filters and the zoom");
    check(hasFrame("idle") && getWidth("write") < getWidth("all"), "the graph is whole");
}

function reachesNarrowFramesWithArrowKeys() {
    focusFrame(getFrame("main"));
    pressKey("ArrowDown");
    equal(getName(document.activeElement), "wide", "the widest callee");
    pressKey("ArrowRight");
    equal(getName(document.activeElement), "other", "what is beside it");
    pressKey("ArrowDown");
    equal(getName(document.activeElement), "other", "its callees are not drawn");
    equal(getMessage(), "The next frames are too narrow to draw. Enter zooms in.", "the message");
    const narrow = "50 frames too narrow to draw (50 samples, 0.50 %)";
    pressKey("ArrowRight");
    equal(getTitle(document.activeElement), narrow, "what is beyond");
    check(getTip().startsWith(narrow), `it has a tooltip: ${getTip()}`);
    pressKey("ArrowUp");
    equal(getName(document.activeElement), "main", "the caller of narrow frames");
    pressKey("Enter");
    for (const key of ["ArrowDown", "ArrowRight", "ArrowRight"]) pressKey(key);
    equal(getTitle(document.activeElement), narrow, "the narrow frames in the view of their caller");
    pressKey("Enter");
    check(hasFrame("narrow00") && getWidth("narrow00") === getWidth("all"), "Enter zooms to the first of them");
}

function saysWhatIsScaled() {
    equal(getTexts(".stat").join(), "50 samples after, before at the same scale", "the totals");
    click(getFrame("g"));
    check(getText("details").includes("Weight30 samplesafter"), `no samples before: ${getText("details")}`);
    pointAt(getFrame("g"));
    check(getTip().includes("Weight30 samplesafter"), `none beside the pointer: ${getTip()}`);
    click(getButton("Before"));
    check(getTexts("#total").join().endsWith("scaled samples"), `the total before: ${getTexts("#total")}`);
    click(getButton("After"));
    check(!getTexts("#total").join().includes("scaled"), `the total after: ${getTexts("#total")}`);
}

function invertsStacks() {
    pressKey("v");
    equal(getTitle(getFrame("read")), "read (60 samples, 30.00%)", "a function with self weight");
    equal(findFrames("main").length, 5, "callers are on it");
    equal(getTitle(getFrame("idle")), "idle (80 samples, 40.00%)", "a function without callers");
    equalLists(getChips(), ["Inverted stacks"], "filters");
    equal(getTexts(".stat b").join(), "200 samples", "the total remains");
}

function sortsAndTurns() {
    /** @param {string} name */
    const left = name => getBounds(getFrame(name)).left;
    /** @param {string} name */
    const top = name => getTop(getFrame(name));
    check(left("main") < left("idle"), "sorted by weight");
    pressKey("w");
    check(left("idle") < left("main"), "sorted by name");
    check(top("main") > top("all"), "the root is on top");
    click(getFrame("write"));
    pressKey("u");
    check(top("main") < top("all"), "the root is at the bottom");
    equal(getWidth("write"), getWidth("all"), "the zoom remains");
    equalLists(getChips(), ["Sorted by name", "Zoom write"], "filters");
}

function movesFocusWithArrowKeys() {
    focusFrame(getFrame("all"));
    for (const [direction, name] of [["Down", "main"], ["Down", "parse"], ["Right", "walk"], ["Right", "write"],
        ["Left", "walk"], ["Up", "main"], ["Left", "idle"], ["Left", "idle"], ["Up", "all"], ["Up", "all"]]) {
        pressKey(`Arrow${direction}`);
        equal(getName(document.activeElement), name, direction);
    }
    equal(svg.querySelectorAll("#frames > g > [tabindex='0']").length, 1, "the Tab key stops at one frame");
    equal(svg.querySelectorAll("#frames[tabindex]").length, 0, "and not at the graph around it");
}

/** Returns the colours of frames, as the theme has them. @param {string} property */
const colourOf = property => {
    const probe = document.createElementNS("http://www.w3.org/1999/xhtml", "i");
    probe.setAttribute("style", `color: var(--${property})`);
    svg.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
};

/** Compares the sides of a differential graph. @param {boolean} isNegated */
function coloursDifferences(isNegated) {
    const [grew, fell] = isNegated ? ["fell", "grew"] : ["grew", "fell"];
    equal(getFill(getFrame("g")), colourOf(`${grew}3`), "colour of what grew");
    equal(getFill(getFrame("h")), colourOf(`${fell}2`), "colour of what fell");
    equal(getTitle(getFrame("g")), "g (30 samples, 9.17 % → 30.0 % (+20.8 points, ×3.3))", "a frame that grew");
    equal(getTexts(".share", getFrame("g")).join(), "+20.8", "its label has the difference");
    check(!hasFrame("gone"), "a function without weight has no frame");
    check(getText("legend").includes("1 frame gone, shown in Before"), `legend: ${getText("legend")}`);
    equalLists(getFunctions(), ["g", "h", "gone", "i", "main", "f"], "the table is sorted by change");
    equalLists(getTexts(".c", getRow("gone")), ["8.26 %", "gone", "−8.3"], "the row of what is gone");
    click(getButton("Before"));
    equal(getTitle(getFrame("gone")), "gone (9 samples, 8.26%)", "the side before has it");
    equal(getTexts("#total").join(), "109 samples", "its total");
    check(!getFill(getFrame("gone")).includes(colourOf(`${grew}3`)), "the colours are those of modules");
    click(getButton("After"));
    equal(getTitle(getFrame("g")), "g (30 samples, 30.00%)", "the side after");
    pressKey("d", {}, getFrame("g"));
    equal(getElement("[data-value='']").getAttribute("aria-pressed"), "true", "d goes on to the difference");
}

function drawsLanesOfChart() {
    const ticks = getTexts(".axis text");
    equalLists([ticks[0], ticks[ticks.length - 1]], ["0", "10 ms"], "ends of the time axis");
    equalLists(getTexts("#frames .lane"), ["db  52.4 %", "web  47.6 %"], "a lane for each first frame");
    equal(findFrames("web").length, 2, "a lane has gaps");
    const left = (/** @type {string} */ name) => Math.min(...findFrames(name).map(frame =>
        Math.round(100 * Number(getRect(frame).getAttribute("x")) / getWidth("all"))));
    equalLists(["parse", "query", "write", "sort"].map(left), [0, 19, 29, 57], "frames in the order of time");
    check(getTop(getFrame("parse")) !== getTop(getFrame("query")), "lanes do not share rows");
    check(getBounds(getFrame("web")).height < 6, "first frames are bars below the names");
    click(getFrame("write"));
    const zoomed = getTexts(".axis text");
    equalLists([zoomed[0], zoomed[zoomed.length - 1]], ["3.0 ms", "6.0 ms"], "the axis of the zoomed time");
}

function tellsTicksApart() {
    typePattern("blink");
    pressKey("Enter", {}, getSearchField());
    const ticks = getTexts(".axis text"), [first] = ticks;
    check(/^12\.3\d+ s$/.test(first), `the unit is that of the whole time: ${first}`);
    equal(new Set(ticks).size, ticks.length, `no tick has the text of another one: ${ticks}`);
}

function foldsPastNarrowCalls() {
    check(getTitle(getElement("#frames .chain")).startsWith("5 runtime frames"), "one sample aside does not show");
    check(getText("undrawn").startsWith("1 frame too narrow"), `it is counted: ${getText("undrawn")}`);
}

/** @param {boolean} isJudged true if the page says which differences are significant */
function marksJudged(isJudged) {
    equal(getFill(getFrame("g")), colourOf("grew3"), "colour of a significant difference");
    equal(getFill(getFrame("h")), colourOf(isJudged ? "same" : "fell2"), "colour of what may be noise");
    equalLists(getFunctions(), ["g", "i", "h", "main", "f"], "the table, by self");
    equal(getRow("i").matches(".noise"), isJudged, "a row that may be noise");
    check(!getRow("g").matches(".noise"), "a row that is significant");
    click(getButton("Total", getElement(".th")));
    equalLists(getTexts(".c", getRow("f")), ["30.0 %", "42.5 %", "+12.5"], "the total of a caller");
    check(!getRow("f").matches(".noise"), "its total is significant");
    pointAt(getFrame("g"));
    equal(getTip().includes("significant"), isJudged, `tooltip of a significant difference: ${getTip()}`);
    pointAt(getFrame("i"));
    equal(getTip().includes("may be noise"), isJudged, `tooltip of noise: ${getTip()}`);
    equal(getText("legend").includes("noise"), isJudged, "the legend explains the colour");
}

/** What fg-diff --significant set to the weight after is no difference, although its share of the total changed. */
function showsSignificantDifferencesOnly() {
    equal(getFill(getFrame("g")), colourOf("same"), "colour of what was flattened");
    equal(getFill(getFrame("f")), colourOf("grew3"), "colour of a significant difference");
    equal(getTexts(".facts")[0], "1,200 samples after = 100 %, significant differences only", "no total before");
    equalLists(getTexts(".c", getRow("f")), ["8.33 %", "25.0 %", "+16.7"], "shares of the total after");
    equalLists(getTexts(".c", getRow("g")), ["75.0 %", "75.0 %", "0.00"], "the row of what was flattened");
    check(getRow("g").matches(".noise") && !getRow("f").matches(".noise"), "only it is muted");
    pointAt(getFrame("g"));
    check(getTip().includes("may be noise"), `the tooltip says so: ${getTip()}`);
    pointAt(getFrame("f"));
    check(getTip().includes("significant"), `the tooltip of f: ${getTip()}`);
    check(!getFunctions().includes("[flattened]"), "the marker is no function");
    check(getText("legend").includes("noise"), "the legend explains the colour");
    click(getButton("Before"));
    const fact = getTexts(".facts")[0];
    check(fact.includes("else after"), `the total before is no measured one: ${fact}`);
}

function showsAllDifferences() {
    equal(getFill(getFrame("g")), colourOf("fell3"), "colour of a smaller share");
    equal(getTexts(".facts")[0], "1,000 samples → 1,200 samples", "both totals");
    equalLists(getTexts(".c", getRow("f")), ["10.0 %", "25.0 %", "+15.0"], "shares of each total");
}

/**
 * Compares all frames with the static ones.
 *
 * @param {{ title: string, fill: string, place: number[] }[]} expected `place` is the left edge and the width, as
 * shares @param {boolean} hasOwnColours true if the palette does not depend on the theme
 */
function drawsStaticFrames(expected, hasOwnColours) {
    const { left, width } = getBounds(getFrame("all"));
    const actual = getFrames().map(frame => {
        const bounds = getBounds(frame), hex = getNumbers(getRect(frame).getAttribute("fill") ?? "")
            .map(channel => channel.toString(16).padStart(2, "0")).join("");
        return { title: getTitle(frame), fill: `#${hex}`,
            place: [bounds.left - left, bounds.width].map(size => size / width) };
    });
    equal(actual.length, expected.length, "number of frames");
    for (const list of [actual, expected]) list.sort((a, b) => compare(a.title, b.title) || a.place[0] - b.place[0]);
    expected.forEach(({ title, fill, place }, i) => {
        equal(actual[i]?.title, title, "title");
        if (hasOwnColours && !title.startsWith("all ")) equal(actual[i]?.fill, fill, `colour of ${title}`);
        place.forEach((value, j) => check(Math.abs(value - actual[i]?.place[j]) < 0.002,
            `place of ${title}: expected ${place}, got ${actual[i]?.place}`));
    });
}

/** @type {(a: string, b: string) => number} */
const compare = (a, b) => a < b ? -1 : Number(a > b);

function appliesNameAttributes() {
    const link = getElement("#frames > a");
    check(getTitle(link).startsWith("parse (") && link.matches(".own"), "the frame is a link with a class");
    equal(svg.querySelectorAll("a").length, 1, "number of links");
    check(!hasFrame("idle") && getFrames().some(frame => getTitle(frame) === "nothing to do"), "the title is replaced");
    check(click(link), "the browser follows a click");
    const widthBefore = link.getBoundingClientRect().width;
    // The address has changed, and with it the view is drawn again.
    check(!click(getElement("#frames > a"), { ctrlKey: true }), "the viewer handles a click with Ctrl");
    check(getElement("#frames > a").getBoundingClientRect().width > widthBefore, "a click with Ctrl zooms");
}

async function reportsLinkToMissingFrame() {
    equal(getWarning(), LINK_LEADS_NOWHERE, "a zoom to a missing frame");
    click(getFrame("main"));
    equal(getWarning(), "", "the message disappears");
    for (const change of ["callers", "callees", "between", "only"]) {
        location.hash = `#${change}=gone&search=read`;
        await waitFor(() => getResult() && getWarning(), `the link's ${change}`);
        equal(getWarning(), LINK_LEADS_NOWHERE, change);
        check(hasFrame("idle") && hasFrame("main"), `${change}: the whole graph is shown`);
        location.hash = "#sort=weight";
        await waitFor(() => getChips().join() === "Sorted by weight", "another link");
    }
    click(getFrame("write"));
    const link = location.hash;
    location.hash = "";
    await waitFor(() => hasFrame("idle"), "the whole graph");
    location.hash = link;
    await waitFor(() => getWidth("write") === getWidth("all"), "a zoom to a frame that exists");
    equal(getWarning(), "", "no message");
}

/** A change that is made before the one before it is drawn comes after it. */
async function queuesLongWork() {
    pressKey("r", {}, document.body);
    pressKey("v", {}, document.body);
    await waitInRealTime(() => getChips().length === 2);
    equalLists(getChips(), ["Merged recursion", "Inverted stacks"], "both changes");
    equal(getMessage(), "", "no message");
    check(getFrames().length < 5000, `only frames near the visible part are drawn: ${getFrames().length}`);
    pressKey("Escape", {}, document.body);
    await waitInRealTime(() => getChips().length === 1);
    equalLists(getChips(), ["Merged recursion"], "the last change is undone");
}

/** The page answers in between, says how far the work is, and stops it. */
async function reportsLongWork() {
    // Each look at the clock ends a slice, however fast the machine is.
    let time = performance.now();
    performance.now = () => time += 1000;
    pressKey("r", {}, document.body);
    equalLists(getChips(), [], "the page answers before the work is done");
    await waitInRealTime(() => svg.getAttribute("aria-busy") === "true");
    check(/^Working: [0-9,]+ frames\. Esc stops it\.$/.test(getMessage()), `the message: ${getMessage()}`);
    pressKey("Escape", {}, document.body);
    equal(getMessage(), "Stopped.", "the message after Escape");
    equal(svg.getAttribute("aria-busy"), "false", "the state of the page");
    equalLists(getChips(), [], "nothing changes");
    pressKey("r", {}, document.body);
    await waitInRealTime(() => getChips().length === 1);
    equalLists(getChips(), ["Merged recursion"], "the work is done at last");
}

async function foldsRuntimeFrames() {
    const folded = getElement("#frames .chain");
    check(getTitle(folded).startsWith("8 runtime frames: start_thread → std::a"), `title: ${getTitle(folded)}`);
    equal(getTexts("text", folded)[0], "8 runtime frames: start_thread … clone", "label");
    equal(getFrames().length, 7, "frames");
    check(hasFrame("malloc") && hasFrame("free"), "a short chain is not folded");
    getRect(folded).dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true, button: 2 }));
    equalLists(getTexts(".menu button"), ["Unfold↵"], "the menu of folded frames");
    pressKey("Escape");
    pointAt(folded);
    check(getTip().includes("std::f → clone"), `tooltip: ${getTip()}`);
    typePattern("std::e");
    check(getElement("#frames .chain").matches(".match"), "a match in the chain shows");
    pressKey("Enter", {}, getSearchField());
    check(getFrame("std::e").matches(".match.selected"), "the next match unfolds it");
    equal(getFrames().length, 14, "frames, unfolded");
    pressKey("e", {}, getFrame("all"));
    check(hasFrame("std::a") && location.hash.includes("fold=no"), "e unfolds all chains");
    pressKey("e", {}, getFrame("all"));
    check(!hasFrame("std::a"), "e folds them again");
    click(getElement("#frames .chain"));
    check(hasFrame("std::a"), "a click unfolds one");
    history.back();
    await waitFor(() => !hasFrame("std::a"), "Back folds it again");
    history.forward();
    await waitFor(() => hasFrame("std::a"), "Forward unfolds it");
    pressKey("Backspace", {}, getFrame("all"));
    await waitFor(() => !hasFrame("std::a"), "Backspace folds it");
}

function foldsSchedulers() {
    const title = getTitle(getElement("#frames .chain"));
    check(title.startsWith("5 runtime frames: thread::start → runtime::run"), `title: ${title}`);
    check(hasFrame("app::main") && hasFrame("serde::a") && hasFrame("serde::d"), "other modules are not folded");
}

function summarizesLongChain() {
    const folded = getElement("#frames .chain");
    pointAt(folded);
    equal(getTip(), "60 runtime frames: std::f0 → std::f1 → std::f2 → std::f3 → … → std::f56 → std::f57 → std::f58 → "
        + "std::f59. Click to unfold.Total30 samples100 % · 100 % of its caller", "tooltip");
}

/** A difference is as wide as the weights after: a function that is gone has no width. */
async function showsGoneFunction() {
    const getSide = () => getTexts(".seg [aria-pressed=true]");
    click(getRow("old"));
    pressKey("Enter", {}, getElement(".table"));
    equal(getMessage(), "Gone: the graph shows what was before.", "the message");
    check(getSide().includes("Before") && hasFrame("main") && hasFrame("helper"), "its callers and callees");
    pressKey("Escape");
    click(getButton("Difference"));
    click(getRow("old"));
    click(getButton("Focus"));
    check(getSide().includes("Before") && hasFrame("old"), "also for the focus");
    pressKey("Escape");
    click(getButton("Difference"));
    click(getRow("stays"));
    pressKey("Enter", {}, getElement(".table"));
    check(getSide().includes("Difference"), "other functions are shown in the difference");
    pressKey("Escape");
    typePattern("old");
    pressKey("Enter", {}, getSearchField());
    equal(getMessage(), "Gone: see Before.", "a search for it");
    typePattern("nothing");
    pressKey("Enter", {}, getSearchField());
    equal(getMessage(), "No function matches “nothing”.", "a search for nothing");
}

function explainsColoursOfCallers() {
    const legend = getText("legend");
    check(legend.includes("json") && !/json\s*[0-9]/.test(legend), `a module whose functions only call: ${legend}`);
    check(!legend.includes("rare"), `not one that is hardly seen: ${legend}`);
    focusFrame(getFrame("json::parse"));
    pressKey("a");
    check(getText("details").startsWith("×json::parseSelf0 s0 %"), `no time: ${getText("details")}`);
}

function countsNarrowKernel() {
    check(getText("legend").includes("kernel2.00 %"), `legend: ${getText("legend")}`);
}

function foldsNothing() {
    equal(svg.querySelectorAll(".chain").length, 0, "chains without colours by module");
    check(hasFrame("std::a"), "all frames are drawn");
}

function drawsWakers() {
    const dividers = [...svg.querySelectorAll(".divider")], labels = dividers.map(divider => getTexts("text", divider));
    equalLists(labels.map(texts => texts.join()).sort(), ["", "woken by"], "only that before a waker has a label");
    const [woken] = dividers;
    check(!woken.querySelector("rect"), "a divider is a line");
    for (const name of ["[timer]", "try_to_wake_up_[k]", "net_rx", "irq", "[libpq.so]"]) {
        equal(getFill(getFrame(name)), colourOf("c18"), `colour of ${name}`);
    }
    check(getFill(getFrame("read")) !== colourOf("c18"), "the blocked stack has other colours");
    check(getText("legend").includes("wakers"), `legend: ${getText("legend")}`);
    const { left, bottom } = woken.getBoundingClientRect();
    const area = document.elementFromPoint(left + 60, bottom - 3);
    check(area !== null && woken.contains(area), "the whole row is that of the divider");
    pointAtLine(woken);
    check(getTip().startsWith("woken by"), `tooltip: ${getTip()}`);
    area?.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true, button: 2 }));
    equalLists(getTexts(".menu button"), ["Zoom to frame↵"], "the menu of a divider");
    pressKey("Escape");
    check(!getFunctions().includes("--"), "a divider is no function");
    equal(getTexts(".n", getRow("net_rx")).join(), "net_rxwaker", "a function of a waker says so");
    equal(getTexts(".n", getRow("read")).join(), "read", "others do not");
}

/** Moves the pointer over the line of a divider. @param {Element} divider */
function pointAtLine(divider) {
    getElement("path", divider).dispatchEvent(new MouseEvent("mouseover", { bubbles: true, clientX: 9, clientY: 9 }));
}

function legendFollowsFilters() {
    check(/json30.0 %/.test(getText("legend")), `at first: ${getText("legend")}`);
    pointAt(getFrame("json::parse"));
    pressKey("i");
    equal(getText("legend"), "Selfhttp100 %", "shares of what is left");
    pointAt(getFrame("http::read"));
    pressKey("c");
    equal(getText("legend"), "Self in the profilehttp100 %", "shares of more than the callers of a function");
}
