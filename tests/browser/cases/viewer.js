// @ts-check
// Pointing, zooming, selecting, menus, links, accessibility.

function drawsAllFrames() {
    equal(getFrames().length, 9, "number of frames");
    equal(document.querySelectorAll("#frames").length, 1, "the static frames are removed");
    equal(getTitle(getFrame("all")), "all (200 samples, 100%)", "title of the root");
    equal(getTitle(getFrame("parse")), "parse (50 samples, 25.00%)", "title of a function");
    check(getWidth("all") > 0.6 * innerWidth, "the root leaves room for the table only");
    equal(getWidth("idle"), Math.round(getWidth("all") / 2), "width of half the weight");
    equal(getElement("text", getFrame("idle")).textContent, "idle", "label");
    equal(getTexts(".share", getFrame("idle")).join(), "50.0 %", "share");
    check(getBounds(getFrame("main")).top > getBounds(getFrame("all")).top, "callees are below callers");
    equal(getTexts("#total").join(), "200 samples", "the total");
    equalLists(getChips(), [], "no filters");
    check(document.documentElement.scrollHeight <= innerHeight, "the page does not scroll");
}

function describesFrameUnderPointer() {
    pointAt(getFrame("write"));
    equal(getTip(), "writeTotal50 samples25.0 % · 50.0 % of its callerSelf40 samples20.0 %Modulelibc", "tooltip");
    pointAt(getFrame("all"));
    equal(getTip(), "allTotal200 samples100 %", "tooltip of the root");
    getElement(".graph").dispatchEvent(new MouseEvent("pointerleave"));
    equal(getTip(), "", "no tooltip without a frame");
    click(getFrame("parse"));
    pointAt(getFrame("scan"));
    check(getTip().includes("10.0 % · 40.0 % of the view · 40.0 % of its caller"), `tooltip in a view: ${getTip()}`);
}

async function zoomsToClickedFrame() {
    const widthBefore = getWidth("parse");
    const opacity = (/** @type {string} */ name) => Number(getComputedStyle(getRect(getFrame(name))).fillOpacity);
    click(getRect(getFrame("parse")));
    check(opacity("main") < 0.5, "callers are paler");
    equal(opacity("parse"), 1, "the zoomed frame is not");
    equal(getWidth("parse"), getWidth("all"), "width of the zoomed frame");
    equal(getWidth("main"), getWidth("all"), "width of its caller");
    check(!hasFrame("idle"), "other frames are removed");
    equal(getWidth("scan"), Math.round(0.4 * getWidth("all")), "width of a callee");
    equalLists(getChips(), ["Zoom parse"], "the zoom is a filter");
    equal(getTexts("#details h2").join(), "parse", "the zoomed frame is selected");
    equal(getTexts(".tr.sel .n").join(), "parse", "also in the table");
    click(getElement(".chip button"));
    equal(getWidth("parse"), widthBefore, "width after the reset");
    equal(location.hash, "", "link after the reset");
    history.back();
    await waitFor(() => getWidth("parse") === getWidth("all"), "one step back");
}

function zoomsWithKeys() {
    focusFrame(getFrame("write"));
    pressKey("Enter");
    equal(getWidth("write"), getWidth("all"), "Enter zooms");
    pressKey("Escape");
    check(getWidth("write") < getWidth("all"), "Escape resets the zoom");
    check(pressKey("F3").defaultPrevented, "F3 is handled");
    equal(document.activeElement, getSearchField(), "F3 moves the focus to the search field");
}

/** The keys act on the frame under the pointer, whatever has the focus. */
function keysActOnFrameUnderPointer() {
    focusFrame(getFrame("idle"));
    pointAt(getFrame("scan"));
    pressKey("b");
    equalLists(getChips(), ["Callers scan"], "the frame under the pointer");
    pressKey("Escape");
    focusFrame(getFrame("write"));
    pressKey("b");
    equalLists(getChips(), ["Callers write"], "the frame with the focus");
}

/** Browsers report a pointer that rests when another frame is drawn below it. */
function ignoresRestingPointer() {
    /** @type {(name: string, x: number) => void} */
    const report = (name, x) => void getRect(getFrame(name)).dispatchEvent(
        new MouseEvent("mouseover", { bubbles: true, clientX: x, clientY: 200 }));
    report("scan", 100);
    check(getTip().startsWith("scan"), "the frame under the pointer");
    pressKey("s");
    report("parse", 100);
    equal(getTip(), "", "no tooltip of another frame");
    pressKey("c");
    equalLists(getChips(), ["Callees scan"], "keys act on the frame with the focus");
    pressKey("Escape");
    report("parse", 101);
    check(getTip().startsWith("parse"), "the frame to which the pointer moves");
    pressKey("c");
    equalLists(getChips(), ["Callees parse"], "keys act on it");
}

/** No key does nothing without a word. */
function saysWhyKeyIsImpossible() {
    for (const key of ["s", "b", "c", "f", "i", "h", "a", "y", "Y"]) {
        pointAt(getFrame("all"));
        pressKey(key);
        equal(getMessage(), "That is for functions only.", `${key} on the root`);
        equalLists(getChips(), [], `${key} changes nothing`);
    }
    pointAt(getFrame("all"));
    pressKey("Enter");
    equal(getMessage(), "Nothing is zoomed.", "Enter on the root");
    getElement(".graph").dispatchEvent(new MouseEvent("pointerleave"));
    /** @type {HTMLElement} */ (document.activeElement).blur();
    for (const [key, message] of [["b", "Point at a frame first."], ["0", "Nothing is zoomed."],
        ["Enter", "Point at a frame first."], ["n", "Search first: press /."],
        ["d", "There is nothing to compare with."]]) {
        pressKey(key, {}, document.body);
        equal(getMessage(), message, key);
    }
}

async function opensMenuOfFrame() {
    const clipboard = captureClipboard();
    const getItems = () => getTexts(".menu button").map(text => text.slice(0, -1));
    /** @type {(name: string) => boolean} */
    const openMenu = name => getRect(getFrame(name)).dispatchEvent(
        new MouseEvent("contextmenu", { bubbles: true, cancelable: true, button: 2, clientX: 300, clientY: 120 }));
    check(!openMenu("scan"), "the menu replaces that of the browser");
    equal(getTexts(".menu .hd").join(), "scan 10.0 %", "it names the frame");
    const { left, top } = getElement(".menu").getBoundingClientRect();
    equalLists([left, top], [300, 120], "it is at the pointer");
    equalLists(getItems().map(item => item.split(":")[0]), ["Zoom to frame", "Sandwich", "Callers only", "Callees only",
        "Focus", "Ignore", "Hide its frames", "Highlight all its frames", "Copy name", "Copy stack"], "its actions");
    equal(document.activeElement, getElement(".menu button"), "the focus is in it");
    pressKey("ArrowUp");
    equal(document.activeElement, getButton("Copy stack"), "arrow keys move through it");
    click(getButton("Copy stack"));
    await waitFor(() => clipboard.text !== "", "the stack is copied");
    equal(clipboard.text, "main;parse;scan", "the copied stack");
    equal(getItems().length, 0, "an action closes it");
    openMenu("write");
    pressKey("b");
    equalLists(getChips(), ["Callers write"], "a letter runs its action");
    pressKey("Escape");
    openMenu("all");
    equalLists(getItems(), ["Zoom to frame"], "the root has no dead entries");
    pressKey("Escape");
    equal(getItems().length, 0, "Escape closes it");
    openMenu("parse");
    window.dispatchEvent(new PointerEvent("pointerdown"));
    document.body.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
    equal(getItems().length, 0, "a click elsewhere closes it");
    focusFrame(getFrame("scan"));
    pressKey("y");
    await waitFor(() => clipboard.text === "scan", "the name is copied");
    click(getButton("More"));
    const starts = ["Merge recursion", "Sort by weight", "Copy the table"].map(text => {
        const range = document.createRange();
        range.selectNode(/** @type {Node} */ (getButton(text).firstChild));
        return range.getBoundingClientRect().left;
    });
    check(starts.every(start => start === starts[0]), `its entries are aligned: ${starts}`);
    click(getButton("Merge recursion"));
    equalLists(getChips(), ["Merged recursion"], "the other menu");
    /** @type {HTMLElement} */ (getButton("More")).focus();
    click(getButton("More"));
    equal(getButton("Merge recursion").getAttribute("aria-checked"), "true", "it shows what is on");
    pressKey("Escape");
    equal(document.activeElement, getButton("More"), "the button has the focus again");
    pressKey("Backspace");
    await waitFor(() => getChips().length === 0, "Backspace goes back from there");
    pressKey("?");
    check(getTexts(".key").length > 20, "? lists the keys");
}

function staysInPage() {
    let steps = 0;
    history.back = () => steps++;
    pressKey("Backspace", {}, document.body);
    equal(steps, 0, "the first view has nothing before it");
    equal(getMessage(), "This is the first view.", "the message");
    click(getFrame("parse"));
    pressKey("Backspace");
    equal(steps, 1, "the second view has");
}

function clicksBesideFramesDoNothing() {
    for (const selector of ["header", ".bar", "footer", ".graph", ".det"]) {
        click(getElement(selector));
        check(hasFrame("idle"), selector);
    }
    equal(location.hash, "", "no zoom");
}

function highlightsFunction() {
    focusFrame(getFrame("read"));
    pressKey("a");
    equal(svg.querySelectorAll(".place").length, 2, "all frames of the function");
    equal(getTexts("#details .full").join(), "", "a name without namespaces is shown once");
    equal(getTexts("#details h2").join(), "read", "the details describe it");
    check(getText("details").includes("2 places in the graph"), "with their number");
    click(getElement("#details .close"));
    equal(svg.querySelectorAll(".place").length, 0, "a button ends it");
}

async function describesTouchedFrame() {
    /** @type {(kind: string, name: string) => boolean} */
    const touch = (kind, name) => getRect(getFrame(name))
        .dispatchEvent(new PointerEvent(kind,
            { bubbles: true, cancelable: true, pointerType: "touch", clientX: 200, clientY: 300 }));
    const isOpen = () => svg.querySelector(".menu button") !== null;
    const widthBefore = getWidth("write");
    touch("pointerdown", "write");
    await waitFor(isOpen, "a long touch opens the menu");
    equal(getTexts(".menu .hd b").join(), "write", "of the frame");
    check(!touch("contextmenu", "write"), "the browser's menu is suppressed");
    touch("pointerup", "write");
    click(getRect(getFrame("write")));
    equal(getWidth("write"), widthBefore, "a long touch does not zoom");
    click(getButton("Callers only"));
    check(isOpen() && getChips().length === 0, "the finger is lifted over the menu");
    getButton("Callers only").dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
    click(getButton("Callers only"));
    equalLists(getChips(), ["Callers write"], "another touch picks an entry");
    pressKey("Escape");
    touch("pointerdown", "parse");
    touch("pointercancel", "parse");
    await sleep(700);
    check(!isOpen(), "a touch that scrolls opens no menu");
    touch("pointerdown", "parse");
    touch("pointerup", "parse");
    click(getRect(getFrame("parse")));
    equal(getWidth("parse"), getWidth("all"), "a short touch zooms");
}

function highlightsModule() {
    const [entry] = /** @type {HTMLElement[]} */ ([...svg.querySelectorAll("#legend span:has(i)")]
        .filter(({ textContent }) => textContent.startsWith("json")));
    const getDim = () => getFrames().filter(frame => frame.matches(".dim")).map(getName);
    for (const [start, end] of [["mouseenter", "mouseleave"], ["focus", "blur"]]) {
        if (start === "focus") entry.focus(); else entry.dispatchEvent(new MouseEvent(start));
        equalLists(getDim(), ["all", "main", "http::read"], `the others after ${start}`);
        if (end === "blur") entry.blur(); else entry.dispatchEvent(new MouseEvent(end));
        equalLists(getDim(), [], `none after ${end}`);
    }
}

function roundsToEven() {
    equal(getTitle(getFrame("d")), "d (1,234,567 samples, 99.91%)", "thousands");
    equal(getTitle(getFrame("e")), "e (1,000 samples, 0.08%)", "a half above an odd number");
    for (const [name, count] of [["a", "12.2 samples"], ["b", "3.50 samples"], ["c", "0.50 samples"],
        ["f", "120 samples"]]) {
        getRow(name).dispatchEvent(new MouseEvent("click", { bubbles: true }));
        check(getElement("#details").textContent.includes(count), `${name}: ${getElement("#details").textContent}`);
    }
}

/** Reading many megabytes of the picture would delay the answer. */
function stopsReadingPicture() {
    let stops = 0;
    window.stop = () => stops++;
    window.dispatchEvent(new PointerEvent("pointermove"));
    equal(stops, 0, "a page that was read");
    Object.defineProperty(document, "readyState", { value: "loading" });
    window.dispatchEvent(new KeyboardEvent("keydown", { key: "x" }));
    equal(stops, 1, "a page that is being read");
    window.dispatchEvent(new KeyboardEvent("keydown", { key: "x" }));
    equal(stops, 1, "once");
}

async function followsLinks() {
    click(getFrame("parse"));
    const first = location.hash;
    click(getFrame("scan"));
    check(first.length > 1 && location.hash !== first, "each zoom has a link of its own");
    history.back();
    await waitFor(() => getWidth("parse") === getWidth("all") && getWidth("scan") < getWidth("all"), "back");
    equal(location.hash, first, "link after going back");
    history.forward();
    await waitFor(() => getWidth("scan") === getWidth("all"), "forward");
    location.hash = "#zoom=nonsense&search=next";
    await waitFor(() => getResult() === "10.0 % in 1 function", "the link's search");
    equal(getWidth("main"), Math.round(getWidth("all") / 2), "an unknown frame in a link shows the whole graph");
    location.hash = first;
    await waitFor(() => getWidth("parse") === getWidth("all"), "the link's zoom");
}

function followsLinkOfAnotherGraph() {
    equal(getWidth("parse"), getWidth("all"), "the link's frame");
    equal(getWidth("main"), getWidth("all"), "its caller");
    equal(getResult(), "32.3 % of the view in 1 function", "the link's search");
}

/** @param {string} [label] */
function describesItselfToScreenReaders(label = "Where the time goes") {
    const frames = byId("frames");
    equal(frames.getAttribute("role"), "tree", "role of the frames");
    equal(frames.getAttribute("aria-label"), label, "name of the frames");
    for (const [name, level] of [["all", "1"], ["main", "2"], ["parse", "3"]]) {
        equal(getItem(getFrame(name))?.getAttribute("role"), "treeitem", `role of ${name}`);
        equal(getItem(getFrame(name))?.getAttribute("aria-level"), level, `level of ${name}`);
    }
    for (const button of svg.querySelectorAll("button")) {
        check(button.textContent.trim() || button.getAttribute("aria-label"),
            `a button has a name: ${button.outerHTML}`);
    }
    equal(getElement(".table").getAttribute("role"), "grid", "role of the table");
    equal(getElement(".table").getAttribute("aria-rowcount"), "8", "number of its rows");
    check(getSearchField().getAttribute("aria-label"), "the search field has a name");
    equal(document.documentElement.lang, "en", "language of the page");
    check(document.title, "title of the page");
}

function outlinesThreadStates() {
    /** @param {string} name */
    const dashes = name => getComputedStyle(getRect(getFrame(name))).strokeDasharray;
    check(dashes("[off-cpu]") !== "none", "[off-cpu] is outlined");
    check(dashes("[lost]") !== "none", "[lost] is outlined");
    equal(dashes("work"), "none", "functions are not outlined");
    check(getText("legend").includes("[lost]15.3 %"), `the legend has shares: ${getText("legend")}`);
    focusFrame(getFrame("[lost]"));
    pressKey("i");
    check(!getText("legend").includes("[lost]"), "the legend follows the filters");
    check(getText("legend").includes("[off-cpu]60 %") || getText("legend").includes("[off-cpu]60.0 %"),
        getText("legend"));
}

/**
 * Compares pixels of an image with frames of the SVG document.
 *
 * @param {{ name: string, fill: string, left: number, x: number, y: number }[]} frames the left edge of each, and a
 * point without label
 */
async function drawsStaticImage(frames) {
    const image = /** @type {HTMLImageElement} */ (document.querySelector("img"));
    const canvas = document.createElement("canvas");
    await image.decode();
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.drawImage(image, 0, 0);
    for (const { name, fill, left, x, y } of frames) {
        const pixel = [...context.getImageData(x, y, 1, 1).data].slice(0, 3);
        equal(`#${pixel.map(channel => channel.toString(16).padStart(2, "0")).join("")}`, fill, `colour of ${name}`);
        // The label is dark on a light colour or light on a dark one.
        const pixels = context.getImageData(left + 2, y, 30, 10).data;
        const different = pixels.filter((channel, i) => i % 4 === 1 && Math.abs(channel - pixel[1]) > 60).length;
        check(different > 20, `${name} has a label: ${different} pixels differ`);
    }
}

async function keepsGraphsOfOnePageApart() {
    const [first, second] = document.querySelectorAll(".fg");
    const globals = Object.keys(window);
    const bareWindow = document.body.appendChild(document.createElement("iframe")).contentWindow ?? {};
    click(getFrame("parse", second));
    check(hasFrame("idle", first), "the first graph is not zoomed");
    check(!hasFrame("idle", second), "the second graph is zoomed");
    focusFrame(getFrames(second)[0]);
    pressKey("f", { ctrlKey: true });
    equal(document.activeElement, getSearchField(second), "Ctrl-F searches the graph with the focus");
    click(getFrame("idle", first));
    check(!hasFrame("idle", second) && !hasFrame("main", first), "each graph has its own zoom");
    const link = location.hash;
    location.hash = "";
    await waitFor(() => hasFrame("main", first) && hasFrame("idle", second), "both graphs are reset");
    location.hash = link;
    await waitFor(() => !hasFrame("main", first) && !hasFrame("idle", second), "one link zooms both graphs");
    // A global class is not a property of the window.
    for (const name of ["App", "Graph", "Page"]) {
        equal(new Function(`return typeof ${name};`)(), "undefined", `${name} is not global`);
    }
    equalLists(globals.filter(name => !(name in bareWindow)), [], "global variables of the graphs");
    check(!document.querySelector("h1, #host")?.matches(".fg *") && getTexts("#host", document).join() === "A page",
        "the page remains");
}

async function keepsFragmentOfPage() {
    equal(location.hash, "#section-2", "the page's fragment");
    click(getFrame("parse"));
    check(location.hash.startsWith("#zoom="), "the graph's link");
    pressKey("0", {}, getFrame("parse"));
    equal(location.hash, "#section-2", "the page's fragment returns");
}

function drawsBeforeStaticFramesAreLoaded() {
    equal(getFrames().length, 9, "number of frames");
    equal(getWidth("idle"), Math.round(getWidth("all") / 2), "width of half the weight");
}

/** @param {string[]} expected total, then the row of the function in the table and its tooltip */
function scalesUnits(expected) {
    pointAt(getFrame("f"));
    equalLists([...getTexts("#total"), getTip()], expected, "weights");
}

/** Filters are named in full in a narrow window, too. */
function namesFiltersInNarrowWindow() {
    resize("400px");
    equalLists(getChips(), ["Ignore workload::sort", "Merged recursion"], "filters");
    for (const chip of svg.querySelectorAll(".chip")) {
        const { left, right } = chip.getBoundingClientRect();
        check(left >= 0 && right <= 400, `${chip.textContent} is in the window`);
        check(chip.querySelector("b")?.scrollWidth === chip.querySelector("b")?.clientWidth, "nothing of it is cut");
    }
}
