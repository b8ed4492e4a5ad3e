// @ts-check
// What part of a graph the window shows, on the screen and on paper, and how frames too narrow to draw are counted.

/** Returns true if an element is between the upper and the lower edge of the window. @param {Element} element */
function isInWindow(element) {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
}

/** @param {Element} element */
const isDisplayed = element => getComputedStyle(element).display !== "none";

/** @type {(x: number, y: number) => void} */
function scrollWindow(x, y) {
    scrollTo(x, y);
    window.dispatchEvent(new Event("scroll"));
}

function keepsControlsInWindow() {
    /** @param {string[]} ids */
    const areInWindow = (...ids) => ids.every(id => isInWindow(byId(id)));
    check(document.documentElement.getBoundingClientRect().height > 3000, "a tall graph");
    check(isInWindow(getFrame("all")), "the root is visible at first");
    check(areInWindow("search", "menu"), "controls at the root");
    getFrame("f199").focus();
    scrollWindow(0, 0);
    check(areInWindow("search", "details"), "controls at the top");
    scrollWindow(0, 1000);
    check(areInWindow("search", "details", "menu"), "controls after scrolling");
    const bar = getElement(".bar").getBoundingClientRect(), legend = byId("legend").getBoundingClientRect();
    check(isInWindow(byId("legend")), "the legend is visible");
    check(legend.top > byId("search").getBoundingClientRect().bottom, "the legend is below the controls");
    check(legend.bottom <= bar.bottom, "the legend is on the bar");
    window.dispatchEvent(new Event("beforeprint"));
    /** @param {string} id */
    const getTopOf = id => byId(id).getBoundingClientRect().top;
    check(getTopOf("legend") < getBounds(getFrame("f199")).top, "on paper, the legend is above all frames");
    check(getTopOf("details") > getBounds(getFrame("all")).top, "on paper, the details are below all frames");
    window.dispatchEvent(new Event("afterprint"));
    check(areInWindow("legend", "details"), "controls after printing");
    pressKey("f", { ctrlKey: true });
    const { top, bottom } = getSearchField().getBoundingClientRect();
    check(top >= 0 && bottom < 40, "the search field");
}

function drawsFoldedFramesAfterZoom() {
    const folded = getElement("#frames .folded");
    equal(getTitle(folded), "50 frames too narrow to draw (50 samples, 0.05%)", "title of the folded frames");
    check(!svg.querySelector("#folded"), "the note of the static graph is removed");
    click(folded);
    equal(getWidth("many"), getWidth("all"), "width of the folded frames' caller");
    equal(getWidth("narrow07"), Math.round(getWidth("all") / 50), "width of a folded frame");
}

async function keepsCurrentFrameInWindow() {
    const [upperBar, lowerBar] = [...svg.querySelectorAll(".bar")].map(bar => bar.getBoundingClientRect().height);
    /** @param {string} name */
    const isBetweenBars = name => {
        const { top, bottom } = getBounds(getFrame(name));
        return top >= upperBar - 1 && bottom <= innerHeight - lowerBar + 1;
    };
    check(isBetweenBars("all"), "the root at first");
    getFrame("f150").focus();
    scrollTo(0, 0);
    pressKey("b");
    check(isBetweenBars("f150"), `the function with callers and callees: ${getBounds(getFrame("f150")).top}`);
    check(isBetweenBars("f149") && isBetweenBars("f151"), "a caller and a callee");
    pressKey("i");
    check(isBetweenBars("f150"), "the function, upside down");
    pressKey("i");
    pressKey("Escape");
    check(isBetweenBars("all"), "the root after Escape");
    pressKey("i");
    check(isBetweenBars("all"), "the root on top");
    scrollTo(0, 2000);
    pressKey("i");
    check(isBetweenBars("all"), "the root at the bottom");
    scrollTo(0, 500);
    click(getFrame("f180"));
    check(isBetweenBars("f180"), "the zoomed frame");
    const link = location.hash;
    pressKey("Escape");
    check(isBetweenBars("all"), "the root after the zoom");
    location.hash = link;
    await waitFor(() => !hasFrame("side"), "the link's zoom");
    check(isBetweenBars("f180"), "the link's frame");
    getFrame("f180").focus();
    for (let step = 0; step < 60; step++) pressKey("ArrowDown");
    equal(getName(document.activeElement), "f120", "the focus after sixty arrow keys");
    check(isBetweenBars("f120"), "the focused frame");
    typePattern("f40$");
    pressKey("n");
    check(isBetweenBars("f40"), "the next match");
}

/** Runs in an iframe: scrolls as far as possible and sends how far that is to the page that contains it. */
function reportScrollLimits() {
    scrollTo(99, 99);
    const isTitleReachable = byId("title").getBoundingClientRect().top + scrollY >= 0;
    check(isTitleReachable, "the title can be scrolled to");
    parent.postMessage({ x: scrollX, y: scrollY, isTitleReachable }, "*");
}

/**
 * Compares how far graphs can be scrolled in windows of some sizes.
 *
 * @param {{ width: number, height: number, address: string, expected: number[] }[]} windows `expected` is right, down
 */
async function limitsScrolling(windows) {
    const limits = new Map();
    addEventListener("message", event => limits.set(event.source, event.data));
    const frames = windows.map(({ width, height, address }) => {
        const frame = document.createElement("iframe");
        frame.width = String(width);
        frame.height = String(height);
        frame.src = address;
        return document.body.appendChild(frame);
    });
    await waitFor(() => frames.every(frame => limits.has(frame.contentWindow)), "all graphs have been scrolled");
    windows.forEach(({ width, height, expected }, i) => {
        const { x, y, isTitleReachable } = limits.get(frames[i].contentWindow);
        equalLists([x, y], expected, `a window of ${width} by ${height} pixels`);
        check(isTitleReachable, `the title is reachable in a window of ${width} by ${height} pixels`);
    });
}

function countsFramesTooNarrowToDraw() {
    const getNote = () => byId("undrawn").getBoundingClientRect();
    const getMatched = () => byId("matched").getBoundingClientRect();
    equal(svg.querySelectorAll("#frames .folded").length, 0, "no group of them is wide enough to draw");
    equal(getText("undrawn"), "7 frames too narrow to draw (<0.01%)", "all frames");
    typePattern("d|h");
    check(getNote().top >= getMatched().bottom, "the note is below the share of matches");
    check(getNote().bottom <= innerHeight && isVisible(byId("undrawn")), "the note is visible");
    click(getFrame("a"));
    equal(getText("undrawn"), "4 frames too narrow to draw (<0.01% of the view)", "frames of the view");
    pressKey("Escape");
    pressKey("Escape");
    getFrame("h").focus();
    pressKey("h");
    equal(getText("undrawn"), "4 frames too narrow to draw (<0.01%)", "without the hidden frame");
    pressKey("Escape");
    getFrame("d").focus();
    pressKey("b");
    equal(getText("undrawn"), "", "all frames are drawn");
    resize("400px");
    pressKey("Escape");
    equal(getText("undrawn"), "7 frames too narrow to draw (<0.01%)", "in a narrow window");
    typePattern("d|h");
    check(getNote().top >= getMatched().bottom - 3, "in a narrow window, the note is below the share of matches");
    check(getNote().bottom <= byId("details").getBoundingClientRect().top + 3, "and above the details");
}

async function countsNoHiddenFrames() {
    equal(getText("undrawn"), "5 frames too narrow to draw (<0.01%)", "all frames");
    location.hash = "#hide=x";
    await waitFor(() => getText("changes") === "without x", "the link's view");
    equal(getText("undrawn"), "3 frames too narrow to draw (<0.01%)", "without those of the hidden stack");
}

function laysOutForPaper() {
    window.dispatchEvent(new Event("beforeprint"));
    check(["menu", "search", "unzoom"].every(id => !isDisplayed(byId(id))), "no controls");
    const bars = [...svg.querySelectorAll(".bar")];
    check(bars.length > 0 && !bars.some(isDisplayed), "no bars");
    check([byId("title"), byId("legend"), getFrame("f180")].every(isDisplayed), "title, legend and frames");
    for (const name of ["f199", "all"]) {
        check(isInWindow(getRect(getFrame(name))), `${name} is on the page`);
        check(getBounds(getFrame(name)).right <= innerWidth, `${name} is not cut`);
    }
    check(byId("legend").getBoundingClientRect().bottom <= getBounds(getFrame("f199")).top, "the legend is above");
    window.dispatchEvent(new Event("afterprint"));
}
