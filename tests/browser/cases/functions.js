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
    waker.focus();
    pressKey("s");
    equalLists(getChips(), ["Sandwich clone3_[w]"], "the chip names the waker");
    equal(getTitle(getElement(".pivot")), "clone3 (30 samples, 30.00%)", "the weight of the waker alone");
    pressKey("Escape");
    check(own && findFrames("clone3").length === 2, "all is shown again");
    findFrames("clone3").find(frame => getTitle(frame).includes("70"))?.focus();
    pressKey("h");
    equalLists(findFrames("clone3").map(getTitle), ["clone3 (30 samples, 30.00%)"], "only the function is hidden");
    check(location.hash.includes("omit=clone3") && !location.hash.includes("5Bw"), location.hash);
}

function dividersAreNoFunctions() {
    const divider = getElement(".divider");
    /** @type {SVGElement} */ (/** @type {unknown} */ (divider)).focus();
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
    getFrame("read").focus();
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
