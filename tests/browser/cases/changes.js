// @ts-check
// Other views of the same profile: callers, callees, without some frames, sorted, turned upside down.

const LINK_LEADS_NOWHERE = "The link leads to a frame that is not in this graph";

/** Returns the upper edge of a frame on the screen. @param {Element} frame */
const getTop = frame => getBounds(frame).top;

async function showsCallers() {
    getFrame("read").focus();
    pressKey("c");
    equal(getTitle(getFrame("read")), "read (60 samples, 100.00%)", "inclusive weight of the function");
    equal(getTitle(getFrame("parse")), "parse (30 samples, 50.00%)", "a caller");
    equal(findFrames("main").length, 3, "each caller has its own caller");
    check(!hasFrame("idle"), "other frames are removed");
    equal(getText("changes"), "callers of read", "description");
    const link = location.hash;
    pressKey("Escape");
    check(hasFrame("idle"), "Escape restores the graph");
    equal(getText("changes"), "", "no description");
    location.hash = link;
    await waitFor(() => getText("changes") === "callers of read", "the link's view");
    pressKey("Escape");
    getFrame("walk").focus();
    pressKey("c");
    equal(getTitle(getFrame("all")), "all (20 samples, 100%)", "recursion counts once");
}

function mergesCallees() {
    getFrame("walk").focus();
    pressKey("e");
    const recursive = getFrames().filter(frame => getTitle(frame) === "walk (20 samples, 100.00%)");
    equal(recursive.length, 3, "one frame for each level of the recursion");
    equal(getTitle(getFrame("all")), "all (20 samples, 100%)", "recursion counts once");
    pressKey("r");
    equal(findFrames("walk").length, 1, "recursion is merged");
    equal(getTitle(getFrame("read")), "read (20 samples, 100.00%)", "a callee");
    equal(getText("changes"), "callees of walk · recursion merged", "description");
}

async function showsCallersAndCallees() {
    getFrame("f").focus();
    pressKey("b");
    equal(findFrames("f").length, 2, "the function, and where it calls itself");
    equal(getTitle(getFrame("f")), "f (16 samples, 100.00%)", "recursion counts once");
    equal(getTitle(getFrame("x")), "x (5 samples, 31.25%)", "a callee, merged");
    equal(getTitle(getFrame("b")), "b (5 samples, 31.25%)", "a caller");
    check(getTop(getFrame("x")) < getTop(getFrame("f")), "callees are above");
    check(getTop(getFrame("b")) > getTop(getFrame("f")), "callers are below");
    equal(getBounds(getFrame("a")).left, getBounds(getFrame("f")).left, "callers begin at the edge of the function");
    check(getFrame("f").matches(".pivot"), "the function has a class");
    equal(findFrames("main").length, 3, "each caller has its own caller");
    check(getTop(getFrame("main")) >= getTop(getFrame("b")), "callers of callers are further down");
    check(!hasFrame("z") && !hasFrame("all"), "other frames are removed");
    equal(getText("changes"), "callers and callees of f", "description");
    getFrame("b").focus();
    check(getText("details").endsWith("31.25% of what it calls"), `details: ${getText("details")}`);
    const widthBefore = getWidth("x");
    click(getFrame("b"));
    equal(getWidth("b"), getWidth("f"), "width of a zoomed caller");
    equal(findFrames("main").length, 1, "only the zoomed caller's callers remain");
    equal(getWidth("x"), widthBefore, "width of a callee");
    const link = location.hash;
    pressKey("ArrowUp");
    equal(getName(document.activeElement), "f", "an arrow key moves the focus to the function");
    pressKey("ArrowUp");
    check(document.activeElement && getTop(document.activeElement) < getTop(getFrame("f")), "and to its callee");
    pressKey("Escape");
    check(findFrames("main").length === 3 && !isVisible(byId("unzoom")), "Escape resets the zoom");
    pressKey("i");
    check(getTop(getFrame("x")) > getTop(getFrame("f")), "upside down, callees are below");
    check(getTop(getFrame("b")) < getTop(getFrame("f")), "upside down, callers are above");
    pressKey("Escape");
    check(hasFrame("z"), "Escape restores the graph");
    location.hash = link;
    await waitFor(() => findFrames("main").length === 1 && getWidth("b") === getWidth("f"), "the link's view");
    const clipboard = captureClipboard();
    getFrame("main").focus();
    pressKey("Y");
    await waitFor(() => clipboard.text === "main;b;f", "a caller's stack is copied root first");
}

async function distinguishesCallerFromCalleeOfTheSameName() {
    getFrame("f").focus();
    pressKey("b");
    const [callee, caller] = findFrames("x").sort((a, b) => getTop(a) - getTop(b));
    click(caller);
    const link = location.hash;
    pressKey("Escape");
    const [restored] = getFrames().filter(frame => getTitle(frame) === getTitle(callee));
    click(restored);
    check(location.hash !== link, "their links differ");
    location.hash = link;
    await waitFor(() => findFrames("x").every(frame => !frame.matches(".parent")), "the link's zoom");
    equal(getFrames().length, 3, "number of frames with the caller zoomed");
}

async function hidesAndKeepsFrames() {
    getFrame("idle").focus();
    pressKey("h");
    check(!hasFrame("idle"), "the frame is hidden");
    equal(getTitle(getFrame("main")), "main (120 samples, 100.00%)", "shares of the remaining weight");
    getFrame("read").focus();
    pressKey("o");
    equal(getTitle(getFrame("all")), "all (60 samples, 100%)", "only stacks with the function remain");
    equal(getTitle(getFrame("parse")), "parse (30 samples, 50.00%)", "shares of their weight");
    equal(getText("changes"), "only through read · without idle", "description");
    history.back();
    await waitFor(() => hasFrame("scan"), "one step back");
    check(!hasFrame("idle"), "one step only");
}

function sortsAndTurns() {
    /** @param {string} name */
    const left = name => getBounds(getFrame(name)).left;
    /** @param {string} name */
    const top = name => getTop(getFrame(name));
    check(left("idle") < left("main"), "sorted by name");
    pressKey("s");
    check(left("main") < left("idle"), "sorted by weight");
    check(top("main") < top("all"), "the root is at the bottom");
    click(getFrame("write"));
    pressKey("i");
    check(top("main") > top("all"), "the root is on top");
    equal(getWidth("write"), getWidth("all"), "the zoom remains");
    equal(getText("changes"), "by weight", "description");
}

function movesFocusWithArrowKeys() {
    click(getFrame("all"));
    for (const [direction, name] of [["Up", "main"], ["Up", "parse"], ["Right", "walk"], ["Right", "write"],
        ["Left", "walk"], ["Down", "main"], ["Left", "idle"], ["Left", "idle"], ["Down", "all"], ["Down", "all"]]) {
        pressKey(`Arrow${direction}`);
        equal(getName(document.activeElement), name, direction);
    }
    equal(svg.querySelectorAll("#frames > g[tabindex='0']").length, 1, "the Tab key stops at one frame");
}

async function listsActionsInMenu() {
    const clipboard = captureClipboard();
    const getButtons = () => [...svg.querySelectorAll(".menu button")];
    /** @param {string} text */
    const findButton = text => {
        const found = getButtons().find(button => button.textContent.includes(text));
        if (!found) throw new Error(`the menu has no ${text}`);
        return found;
    };
    pressKey("?");
    check(getButtons().length > 5, "a menu without a current frame");
    check(!getButtons().some(button => button.textContent.includes("{}")), "no placeholders");
    pressKey("Escape");
    equal(getButtons().length, 0, "Escape closes it");
    getFrame("scan").focus();
    pressKey("?");
    equal(document.activeElement, getButtons()[0], "the focus is in it");
    click(findButton("copy the stack of scan"));
    await waitFor(() => clipboard.text !== "", "the stack is copied");
    equal(clipboard.text, "main;parse;scan", "the copied stack");
    equal(getButtons().length, 0, "an action closes it");
    pressKey("y");
    await waitFor(() => clipboard.text === "scan", "the name is copied");
    click(byId("menu"));
    click(findButton("turn upside down"));
    check(getTop(getFrame("main")) > getTop(getFrame("all")), "the action is done");
}

/**
 * Compares colours of a differential graph with those of the static frames.
 *
 * @param {Record<string, string>} fills
 */
function coloursDifferences(fills) {
    check(byId("legend").textContent.includes("grew"), "the legend");
    check(!hasFrame("gone"), "a function without weight has no frame");
    equalLists(Object.keys(fills), ["g", "h", "main"], "compared functions");
    for (const [name, fill] of Object.entries(fills)) equal(getFill(getFrame(name)), fill, `colour of ${name}`);
    check(/; [+-]\d/.test(getTitle(getFrame("g"))), "the title has the difference");
}

/**
 * Compares all frames with the static ones.
 *
 * @param {{ title: string, fill: string, place: number[] }[]} expected `place` is x, y and width
 */
function drawsStaticFrames(expected) {
    const actual = getFrames().map(frame => {
        const rect = getRect(frame);
        const [fill, ...place] = ["fill", "x", "y", "width"].map(name => rect.getAttribute(name) ?? "");
        const hex = getNumbers(fill).map(channel => channel.toString(16).padStart(2, "0")).join("");
        return { title: getTitle(frame), fill: `#${hex}`, place: place.map(Number) };
    });
    equal(actual.length, expected.length, "number of frames");
    for (const list of [actual, expected]) list.sort((a, b) => compare(a.title, b.title) || a.place[0] - b.place[0]);
    expected.forEach(({ title, fill, place }, i) => {
        equal(actual[i].title, title, "title");
        equal(actual[i].fill, fill, `colour of ${title}`);
        place.forEach((value, j) => check(Math.abs(value - actual[i].place[j]) < 0.11,
            `place of ${title}: expected ${place}, got ${actual[i].place}`));
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
    check(!click(link, { ctrlKey: true }), "the viewer handles a click with Ctrl");
    check(getElement("#frames > a").getBoundingClientRect().width > widthBefore, "a click with Ctrl zooms");
}

async function reportsLinkToMissingFrame() {
    equal(getText("changes"), LINK_LEADS_NOWHERE, "a zoom to a missing frame");
    click(getFrame("main"));
    equal(getText("changes"), "", "the message disappears");
    for (const change of ["callers", "callees", "between", "only"]) {
        location.hash = `#${change}=gone&search=read`;
        await waitFor(() => getText("matched") && getText("changes"), `the link's ${change}`);
        equal(getText("changes"), LINK_LEADS_NOWHERE, change);
        check(hasFrame("idle") && hasFrame("main"), `${change}: the whole graph is shown`);
        location.hash = "#sort=weight";
        await waitFor(() => getText("changes") === "by weight", "another link");
    }
    click(getFrame("write"));
    const link = location.hash;
    location.hash = "";
    await waitFor(() => hasFrame("idle"), "the whole graph");
    location.hash = link;
    await waitFor(() => getWidth("write") === getWidth("all"), "a zoom to a frame that exists");
    equal(getText("changes"), "by weight", "no message");
}
