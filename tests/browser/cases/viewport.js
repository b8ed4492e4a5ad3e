// @ts-check
// What part of a graph the window shows, on the screen and on paper, and how frames too narrow to draw are counted.

/** Returns true if a frame is in the visible part of the graph. @param {string} name */
function isInView(name) {
    const { top, bottom } = getBounds(getFrame(name)), area = getElement(".graph").getBoundingClientRect();
    return top >= area.top && bottom <= Math.min(area.bottom, innerHeight);
}

/** @param {Element} element */
const isDisplayed = element => getComputedStyle(element).display !== "none";

const getNote = () => getText("undrawn");

/** Scrolls to a frame of the stack of two hundred. @param {number} depth */
async function scrollToFrame(depth) {
    getElement(".graph").scrollTop = depth * getBounds(getFrames()[0]).height;
    await waitFor(() => hasFrame(`f${depth}`), `frame ${depth} is drawn`);
}

function keepsControlsInWindow() {
    const graph = getElement(".graph");
    check(graph.scrollHeight > 3000, "a tall graph");
    check(document.documentElement.scrollHeight <= innerHeight, "the page does not scroll");
    check(isInView("all"), "the root is visible at first");
    graph.scrollTop = 2000;
    check(!isInView("all"), "the graph scrolls");
    for (const selector of ["header", ".bar", ".table", "#details", "footer"]) {
        const { top, bottom } = getElement(selector).getBoundingClientRect();
        check(top >= 0 && bottom <= innerHeight + 1, `${selector} is in the window`);
    }
}

function drawsFoldedFramesAfterZoom() {
    const folded = getElement("#frames .folded");
    equal(getTitle(folded), "50 frames too narrow to draw (50 samples, 0.05 %)", "title of the folded frames");
    check(!svg.querySelector("#folded"), "the note of the static graph is removed");
    click(folded);
    equal(getWidth("many"), getWidth("all"), "width of the folded frames' caller");
    check(Math.abs(getWidth("narrow07") - getWidth("all") / 50) <= 1, "width of a folded frame");
}

function labelsFoldedFrames() {
    const folded = getElement("#frames .folded");
    equal(getTexts("text", folded)[0], "5,000 frames too narrow to draw (5,000 samples, 100 %)", "label");
}

async function keepsCurrentFrameInView() {
    check(isInView("all"), "the root at first");
    check(!hasFrame("f150"), "frames far from the visible part are not drawn");
    await scrollToFrame(150);
    focusFrame(getFrame("f150"));
    getElement(".graph").scrollTop = 0;
    pressKey("s");
    check(isInView("f150"), `the function with callers and callees: ${getBounds(getFrame("f150")).top}`);
    check(isInView("f149") && isInView("f151"), "a caller and a callee");
    pressKey("u");
    check(isInView("f150"), "the function, upside down");
    pressKey("u");
    pressKey("Escape");
    check(isInView("all"), "the root after Escape");
    pressKey("u");
    check(isInView("all"), "the root at the bottom");
    pressKey("u");
    check(isInView("all"), "the root on top");
    await scrollToFrame(180);
    check(!hasFrame("f100"), "frames far away are not drawn");
    equal(svg.querySelectorAll("#frames > * > [tabindex='0']").length, 1, "but that to which the Tab key leads");
    click(getFrame("f180"));
    check(isInView("f180"), "the zoomed frame");
    const link = location.hash;
    pressKey("0");
    check(isInView("all"), "the root after the zoom");
    location.hash = link;
    await waitFor(() => !hasFrame("side"), "the link's zoom");
    check(isInView("f180"), "the link's frame");
    focusFrame(getFrame("f180"));
    for (let step = 0; step < 60; step++) pressKey("ArrowUp");
    equal(getName(document.activeElement), "f120", "the focus after sixty arrow keys");
    check(isInView("f120"), "the focused frame");
    typePattern("f40$");
    pressKey("n");
    check(isInView("f40"), "the next match");
}

async function keepsFocusOfFrameThatIsScrolledAway() {
    await scrollToFrame(150);
    focusFrame(getFrame("f150"));
    getElement(".graph").scrollTop = 0;
    await waitFor(() => !hasFrame("f151"), "frames far away are not drawn");
    equal(getName(document.activeElement), "f150", "the focus");
    equal(svg.querySelectorAll("#frames > * > [tabindex='0']").length, 1, "frames to which the Tab key leads");
    pressKey("ArrowUp");
    equal(getName(document.activeElement), "f149", "the focus after an arrow key");
}

function countsFramesTooNarrowToDraw() {
    equal(svg.querySelectorAll("#frames .folded").length, 0, "no group of them is wide enough to draw");
    equal(getNote(), "7 frames too narrow to draw (<0.01 %)", "all frames");
    click(getFrame("a"));
    equal(getNote(), "4 frames too narrow to draw (<0.01 %)", "frames of the view");
    pressKey("0");
    focusFrame(getFrame("h"));
    pressKey("i");
    equal(getNote(), "4 frames too narrow to draw (<0.01 %)", "without the stacks of h");
    pressKey("Escape");
    focusFrame(getFrame("d"));
    pressKey("s");
    equal(getNote(), "", "all frames are drawn");
}

function holdsFewElements() {
    check(getNote().startsWith("20,000 frames too narrow to draw"), `the file has all frames: ${getNote()}`);
    const count = svg.querySelectorAll("#frames *").length;
    check(count < 2000, `frames too narrow to draw have no elements: ${count}`);
    click(getFrame("f7"));
    check(getFrames().length > 100, "they have in a narrower view");
}

function showsWholeLegend() {
    resize("400px");
    const legend = byId("legend").getBoundingClientRect(), window = svg.getBoundingClientRect();
    equal(svg.querySelectorAll("#legend b").length, 8, "an entry for each module and for own code");
    for (const entry of svg.querySelectorAll("#legend b")) {
        const { left, right, bottom } = entry.getBoundingClientRect();
        check(left >= window.left && right <= window.right && bottom <= legend.bottom + 1, `${entry.textContent}`);
    }
}

async function countsNoDroppedFrames() {
    equal(getNote(), "5 frames too narrow to draw (<0.01 %)", "all frames");
    location.hash = "#hide=x";
    await waitFor(() => getChips().join() === "Ignore x", "the link's view");
    equal(getNote(), "3 frames too narrow to draw (<0.01 %)", "without those of the dropped stack");
}

function laysOutForPaper() {
    window.dispatchEvent(new Event("beforeprint"));
    check(!isDisplayed(getElement(".bar")) && !isDisplayed(getElement(".side")), "no controls");
    check([getElement("h1"), byId("legend"), getFrame("f180")].every(isDisplayed), "title, legend and frames");
    const { left, right, top, bottom } = byId("frames").getBoundingClientRect();
    check(left >= 0 && right <= innerWidth && bottom - top <= innerHeight, "the graph fits one page");
    const background = getComputedStyle(getRect(getFrame("all"))).fill;
    check(getNumbers(background).every(channel => channel > 200), `light colours: ${background}`);
    equal(getComputedStyle(getElement("#legend i")).getPropertyValue("print-color-adjust"), "exact",
        "the legend has its colours without the option for backgrounds");
}

/** Runs in a frame of a page: measures the viewer and sends the result to the page. */
async function reportSize() {
    await waitFor(() => svg.getBoundingClientRect().width > 0, "the frame has a size");
    const { width, height } = svg.getBoundingClientRect();
    const [label, box] = ["text", "rect"].map(name => getElement(`#frames ${name}`).getBoundingClientRect());
    const isInBox = label.top >= box.top - 1 && label.bottom <= box.bottom + 1;
    check(true, "the case ends");
    parent.postMessage({ width, height, row: box.height, isInBox }, "*");
}

/** @type {(address: string, kind: "iframe" | "object") => Promise<void>} */
async function fitsFrameOfPage(address, kind) {
    const frame = document.createElement(kind);
    /** @type {any} */
    let size;
    addEventListener("message", event => size = event.data);
    Object.assign(frame, { [kind === "iframe" ? "src" : "data"]: address, width: "900", height: "500" });
    frame.style.border = "0";
    document.body.append(frame);
    await waitInRealTime(() => size);
    await waitFor(() => size, "the graph in the frame");
    equalLists([size.width, size.height], [900, 500], "the viewer fills its frame");
    check(size.row > 10 && size.row < 30, `rows are not scaled: ${size.row}`);
    check(size.isInBox, "labels are in their frames");
}

/** Runs in a frame as narrow as a phone: zooms to a frame and sends where it is then. */
async function reportTap() {
    const name = "f40";
    await scrollToFrame(20);
    await waitFor(() => hasFrame(name), "a frame near the lower end is drawn");
    click(getFrame(name));
    await waitFor(() => svg.querySelector(".det.open"), "the details are open");
    await sleep(100);
    const [frame, callee] = [name, "f41"].map(name => getBounds(getFrame(name)).bottom);
    const graph = getElement(".graph").getBoundingClientRect();
    check(true, "the case ends");
    parent.postMessage({ frame, callee, top: graph.top, details: getElement(".det").getBoundingClientRect().top }, "*");
}

/** @param {string} address */
async function keepsTappedFrameInView(address) {
    const frame = document.createElement("iframe");
    /** @type {any} */
    let places;
    addEventListener("message", event => places = event.data);
    Object.assign(frame, { src: address, width: "400", height: "700" });
    document.body.append(frame);
    await waitInRealTime(() => places);
    await waitFor(() => places, "a tap in the frame");
    const text = JSON.stringify(places);
    check(places.frame > places.top && places.frame < places.details, `the frame is above the details: ${text}`);
    check(places.callee < places.details, `and its callee: ${text}`);
}

/** Runs in a window as narrow as that of a phone. */
function fitsPhone() {
    const viewport = document.querySelector("meta[name=viewport]")?.getAttribute("content") ?? "";
    check(viewport.includes("width=device-width"), `phones lay the page out in their own width: ${viewport}`);
    resize("400px");
    const root = svg.getBoundingClientRect();
    for (const selector of ["h1", ".search", ".seg", "#total", ".graph", "#legend"]) {
        const { left, right } = getElement(selector).getBoundingClientRect();
        check(left >= root.left && right <= root.right, `${selector} is as wide as the window at most`);
    }
}

function wrapsTitleOnPhone() {
    resize("400px");
    const title = getElement("h1"), { bottom } = getElement("header").getBoundingClientRect();
    check(title.scrollWidth <= title.clientWidth, `the title is not cut: ${title.scrollWidth} in ${title.clientWidth}`);
    check(title.getBoundingClientRect().bottom <= bottom, "it is in the header");
    click(getButton("More"));
    const items = getTexts(".menu button").join();
    check(items.includes("Merge recursion") && !items.includes("Table of functions"), `a tab is the table: ${items}`);
}
