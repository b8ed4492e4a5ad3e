// @ts-check
// What is selected, and the functions that keys and menus act on.

/** Returns the facts of the details, such as `Here 3 samples 1.50 %`. */
const getFacts = () => getTexts(".det dl").join();

/** Clicks the place of a function that has three. */
function clickPlace() {
    const frame = findFrames("read").find(frame => getTitle(frame).includes("30 samples"));
    check(frame, "the place");
    if (frame) click(frame);
    check(getFacts().includes("Here30 samples"), `the selected place: ${getFacts()}`);
}

function dropsPlaceThatIsGone() {
    clickPlace();
    pressKey("v");
    check(!getFacts().includes("Here"), `the inverted tree has no such place: ${getFacts()}`);
    equal(getTexts(".det h2").join(), "read", "the function stays selected");
    click(getFrame("read"));
    check(getFacts().includes("Here60 samples"), `a place of the inverted tree: ${getFacts()}`);
    pressKey("0");
    pressKey("v");
    check(!/NaN|Here/.test(getFacts()), `the first tree has it not: ${getFacts()}`);
}

async function keepsPlaceOnTheWayBack() {
    clickPlace();
    const facts = getFacts();
    pressKey("r");
    equal(getFacts(), facts, "a place that the other tree has, too");
    pressKey("0");
    pressKey("v");
    click(getFrame("read"));
    history.go(-2);
    await waitFor(() => !getChips().join().includes("Inverted"), "the first tree");
    check(!/NaN|Here/.test(getFacts()), `the details: ${getFacts()}`);
}

function tellsWakersApart() {
    const [own, waker] = findFrames("clone3");
    focusFrame(waker);
    pressKey("s");
    equalLists(getChips(), ["Sandwich clone3_[w]"], "the chip names the waker");
    equal(getTitle(getElement(".pivot")), "clone3 (30 samples, 30.00%)", "the weight of the waker alone");
    pressKey("Escape");
    check(own && findFrames("clone3").length === 2, "all is shown again");
    focusFrame(findFrames("clone3").find(frame => getTitle(frame).includes("70")));
    pressKey("h");
    equalLists(findFrames("clone3").map(getTitle), ["clone3 (30 samples, 30.00%)"], "only the function is hidden");
    check(location.hash.includes("omit=clone3") && !location.hash.includes("5Bw"), location.hash);
}

function dividersAreNoFunctions() {
    const divider = getElement(".divider");
    focusFrame(divider);
    for (const key of ["s", "h", "f", "i"]) pressKey(key, {}, divider);
    equalLists(getChips(), [], "no filter");
    equal(getMessage(), "That is for functions only.", "the message");
}

function namesChainsInMenus() {
    const chain = getElement("g.chain");
    chain.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true, clientX: 90, clientY: 90 }));
    const head = getTexts(".menu .hd").join();
    check(/^\d+ runtime frames/.test(head), `the head of the menu: ${head}`);
}

function refusesToInvertOneFunction() {
    focusFrame(getFrame("read"));
    pressKey("s");
    pressKey("v");
    equalLists(getChips(), ["Sandwich read"], "no further filter");
    equal(getMessage(), "Leave the view of one function first.", "the message");
}

function countsFractions() {
    equal(getTexts("#total").join(), "3.75 samples", "the total");
    equal(getTitle(getFrame("half")), "half (2 samples, 40.00%)", "a frame");
    pointAt(getFrame("half"));
    check(getTip().includes("1.50 samples"), `its tooltip: ${getTip()}`);
    equal(getTitle(getFrame("one")), "one (1 sample, 26.67%)", "a whole number has no fraction");
}

function showsWhatVanished() {
    equal(getTexts("#total").join(), "4 samples → 0 samples", "the totals");
    equal(getTitle(getFrame("a")), "a (3 samples, 75.0 % → 0 % (gone, −75.0 points))", "a frame");
    equal(getFill(getFrame("a")), getFill(getFrame("d")), "both fell");
    equalLists(getTexts(".c", getRow("b")), ["75.0 %", "gone", "−75.0"], "a row");
    check(getText("legend").endsWith("+10Width: before"), `the legend: ${getText("legend")}`);
    click(getFrame("b"));
    check(getTexts(".det").join().includes("1 place in the graph"), `details: ${getTexts(".det")}`);
    pressKey("0");
    click(getButton("Before"));
    equal(getTitle(getFrame("b")), "b (3 samples, 75.00%)", "the side before");
    equal(getTexts(".badge").join(), "25.0 % truncated", "a share of what was before");
    click(getButton("After"));
    check(!hasFrame("b"), "the side after is empty");
}

async function hidesMessageWithItsView() {
    click(getRow("old"));
    check(getTexts(".det").join().includes("not in the graph"), `details: ${getTexts(".det")}`);
    pressKey("Enter", {}, getElement(".table"));
    equal(getMessage(), "Gone: the graph shows what was before.", "the message");
    check(getTexts(".det").join().includes("1 place in the graph"), `details: ${getTexts(".det")}`);
    click(getButton("Difference"));
    equal(getMessage(), "", "it is true no longer");
    check(getText("legend").includes("Width: before"), "the legend says what the width is");
}

/** Returns what the table says of a function. @param {string} name */
const getShares = name => getTexts(".c", getRow(name));

function countsLeavesOfReversedPicture() {
    /** Presses a key in the table. @param {string} key */
    const press = key => {
        const table = /** @type {HTMLElement} */ (/** @type {unknown} */ (getElement(".table")));
        table.focus();
        pressKey(key);
    };
    equalLists(getShares("read"), ["30.0 %", "30.0 %"], "the self and the total weight of a leaf");
    equalLists(getShares("main"), ["0 %", "60.0 %"], "those of a root");
    equalLists(getShares("write"), ["20.0 %", "25.0 %"], "those of a function in between");
    equal(getTitle(getFrame("read")), "read (60 samples, 30.00%)", "the picture begins with leaves");
    equalLists(getChips(), ["Inverted stacks"], "the filter that the picture has");
    click(getRow("write"));
    equal(getFacts().slice(0, 38), "Self40 samples20.0 %Total50 samples25.0 %".slice(0, 38), "the details");
    press("b");
    equalLists(getFrames().map(getName), ["write", "main"], "its callers");
    pressKey("Escape");
    click(getRow("parse"));
    press("c");
    equalLists(getFrames().map(getName), ["parse", "read", "scan", "next"], "its callees");
    pressKey("Escape");
    equalLists(getChips(), ["Inverted stacks"], "the picture is as it was");
    press("s");
    check(isAbove("main", "parse") && isAbove("parse", "scan"), "callers are above, callees below");
    pressKey("Escape");
    pointAt(getFrame("read"));
    check(getTip().includes("Self60 samples"), `the card of a leaf: ${getTip()}`);
}

/** @type {(caller: string, callee: string) => boolean} */
const isAbove = (caller, callee) => getBounds(getFrame(caller)).top < getBounds(getFrame(callee)).top;

async function turnsReversedPicture() {
    const clipboard = captureClipboard();
    focusFrame(getFrame("main"));
    pressKey("Y");
    check(/^main;.*(read|next)$/.test(clipboard.text), `the stack: ${clipboard.text}`);
    pressKey("v");
    equalLists(getChips(), [], "stacks as they are");
    check(isAbove("main", "read"), "the root is above");
    check(location.hash.includes("invert=no"), `the link: ${location.hash}`);
    click(getRow("read"));
    history.back();
    await waitFor(() => getChips().length === 1, "the way back");
    click(getButton("×", getElement(".chip")));
    check(isAbove("main", "read"), "the filter can be removed");
    pressKey("v");
    equal(location.hash, "", "the picture is as the file has it");
}

function saysSelfOfFunctionsOnCallers() {
    /** @type {(name: string, expected: string) => void} */
    const checkSelf = (name, expected) => {
        pointAt(getFrame(name));
        const [, self] = getTip().match(/Self(.*?places)/) ?? [];
        equal(self, `${expected} in all places`, `${name}, ${getChips()}`);
    };
    pressKey("v");
    checkSelf("read", "60 samples30.0 %");
    checkSelf("main", "0 samples0 %");
    checkSelf("write", "40 samples20.0 %");
    focusFrame(getFrame("write"));
    pressKey("b");
    checkSelf("main", "0 samples0 %");
    checkSelf("write", "40 samples20.0 %");
    pressKey("s");
    pointAt(getElement(".pivot"));
    check(/Self40 samples20.0 %($|Module)/.test(getTip()), `a function and its callees: ${getTip()}`);
    checkSelf("main", "0 samples0 %");
}

function explainsColoursOfView() {
    const getLegend = () => getTexts("#legend > span");
    equalLists(getLegend(), ["Self", "app40.0 %", "serde20.0 %", "std, libc40.0 %"], "at first");
    click(getButton("No runtime"));
    equalLists(getLegend(), ["Self", "serde60.0 %", "app40.0 %", "std, libc"], "as the table counts");
    click(getButton("All"));
    click(getFrame("serde::parse"));
    equalLists(getLegend(), ["Self in the view", "serde33.3 %", "std, libc66.7 %"], "zoomed");
    pressKey("0");
    focusFrame(getFrame("app::own"));
    pressKey("i");
    equalLists(getLegend(), ["Self", "serde33.3 %", "app", "std, libc66.7 %"], "without the own function");
}

function explainsColoursOfShares() {
    const legend = ["Share of the total", "1 %", "10 %", "25 %", "50 %", "100 %"];
    equalLists(getTexts("#legend > span"), legend, "the legend");
    /** @param {Element} element */
    const background = element => getComputedStyle(element).backgroundColor;
    equal(background(getElement("i", getRow("app::main"))), getFill(getFrame("app::main")), "the colour in the table");
    equal(background(getElement("#legend span:last-child i")), getFill(getFrame("app")), "the colour of all");
}

function hasTitleOfProcess() {
    equal(getTexts("h1").join(), "Flame graph", "a function is no title");
}
