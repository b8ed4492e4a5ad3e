// @ts-check
// The table of functions beside the graph.

const getTable = () => getElement(".table");
/** @param {string} name */
const getCells = name => getTexts(".c", getRow(name));

function listsFunctions() {
    equalLists(getFunctions(), ["idle", "write", "read", "next", "main", "parse", "scan"], "functions, by self");
    equalLists(getCells("write"), ["20.0 %", "25.0 %"], "self and total");
    equalLists(getCells("read"), ["20.0 %", "20.0 %"], "of all places");
    equal(getElement(".th .on").textContent, "Self ▾", "the sorted column");
    click(getButton("Total", getElement(".th")));
    equalLists(getFunctions().slice(0, 2), ["idle", "main"], "functions, by total");
    click(getButton("Total", getElement(".th")));
    equal(getCells(getFunctions()[0])[1], "10.0 %", "from the least");
    click(getButton("Function", getElement(".th")));
    equalLists(getFunctions(), ["idle", "main", "next", "parse", "read", "scan", "write"], "functions, by name");
    typePattern("r");
    equalLists(getFunctions(), ["parse", "read", "write"], "functions that match");
    typePattern("");
    focusFrame(getFrame("idle"));
    pressKey("i");
    equalLists(getCells("main"), ["0 %", "100 %"], "the table follows the filters");
    pressKey("t");
    check(getComputedStyle(getElement(".side")).display === "none", "t hides the table");
    pressKey("t");
    check(getComputedStyle(getElement(".side")).display !== "none", "and shows it");
}

function showsFunctionsOfLongTypes() {
    const cell = getElement(".tr .n"), own = getElement("span span", cell);
    equal(own.textContent, "search_tree", "the function");
    check(own.scrollWidth <= own.clientWidth, `the function is not cut: ${own.scrollWidth} in ${own.clientWidth}`);
    const type = getElement("em", cell);
    check(type.scrollWidth > type.clientWidth, "its type is cut");
    equal(type.getBoundingClientRect().top, own.getBoundingClientRect().top, "both are in one line");
    // Letters of it without an ellipsis would look like a part of the function.
    const row = getElement(".tr .n > span");
    row.style.maxWidth = `${own.getBoundingClientRect().width + 12}px`;
    check(type.getBoundingClientRect().top >= row.getBoundingClientRect().bottom, "a type without room is hidden");
    check(own.scrollWidth <= own.clientWidth, "and the function is not cut");
}

function countsRecursionOnce() {
    equalLists(getCells("f"), ["60.0 %", "100 %"], "self and total of a recursive function");
}

function selectsFunctions() {
    click(getRow("read"));
    equal(svg.querySelectorAll(".place").length, 2, "every frame of the function is outlined");
    equal(getTexts("#details h2").join(), "read", "the details");
    getRow("parse").dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
    equal(getTexts(".lit").join(), getTexts("#frames > g").filter(text => text.startsWith("parse")).join(),
        "a row under the pointer");
    getElement(".rows").dispatchEvent(new MouseEvent("mouseleave"));
    equal(svg.querySelectorAll(".lit").length, 0, "no row under the pointer");
    getRow("scan").dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true }));
    equal(getTexts(".menu .hd b").join(), "scan", "the menu of a function");
    check(!getTexts(".menu button").some(text => text.startsWith("Copy stack")), "has no entries for frames");
    pressKey("Escape");
    doubleClick(getRow("read"));
    equalLists(getChips(), ["Sandwich read"], "a double click opens the sandwich");
}

/**
 * Clicks twice at the place of a row, on what is there then. Returns true if the second click is on the details.
 *
 * @param {Element} row
 */
function doubleClick(row) {
    const { left, top } = row.getBoundingClientRect(), place = { clientX: left + 60, clientY: top + 12 };
    const areDetails = [1, 2].map(detail => {
        const target = document.elementFromPoint(place.clientX, place.clientY) ?? row;
        const isInDetails = target.closest("#details") !== null;
        click(target, { ...place, detail });
        return isInDetails;
    });
    return areDetails[1];
}

/** The first click opens the details, which are then under the pointer. */
function opensSandwichOfLowRow() {
    const { bottom } = getTable().getBoundingClientRect();
    const rows = [...svg.querySelectorAll(".tr")].filter(row => row.getBoundingClientRect().bottom <= bottom);
    const row = rows[rows.length - 1], name = getTexts(".n", row).join();
    check(doubleClick(row), "the second click is on the details");
    equalLists(getChips(), [`Sandwich ${name}`], "a double click opens the sandwich");
    pressKey("Escape");
    const [first, second] = [...svg.querySelectorAll(".tr")];
    click(first, { detail: 1 });
    click(second, { detail: 1 });
    equalLists(getChips(), [], "two clicks at different places are no double click");
}

function sortsByShownNames() {
    click(getButton("Function", getElement(".th")));
    equalLists(getFunctions(), ["Alpha::run", "main", "mem::swap", "String::push", "TcpStream::poll"],
        "functions, by the names that are shown");
}

function movesWithKeys() {
    getTable().focus();
    pressKey("End");
    equal(getTexts(".tr.sel .n").join(), "scan", "End leads to the last row, even if none is selected");
    pressKey("Escape");
    for (const [key, name] of [["ArrowDown", "idle"], ["ArrowDown", "write"], ["End", "scan"], ["ArrowUp", "parse"],
        ["Home", "idle"]]) {
        pressKey(key);
        equal(getTexts(".tr.sel .n").join(), name, key);
    }
    equal(getTable().getAttribute("aria-activedescendant"), getElement(".tr.sel").id, "screen readers follow");
    pressKey("End");
    pressKey("Enter");
    equalLists(getChips(), ["Sandwich scan"], "Enter opens the sandwich");
}

function sortsAndOpensMenuWithKeys() {
    const getHead = () => getElement(".th > .on button");
    for (const button of svg.querySelectorAll(".th button")) {
        equal(/** @type {HTMLButtonElement} */ (button).tabIndex, 0, `the Tab key leads to ${button.textContent}`);
    }
    /** @type {HTMLButtonElement} */ (getButton("Total", getElement(".th"))).focus();
    pressKey("Enter");
    equal(getTexts(".tr .n")[0], "idle", "the first row of the largest totals");
    equal(document.activeElement, getHead(), "the heading keeps the focus");
    pressKey("Enter");
    equal(getHead().textContent, "Total ▴", "the other order");
    const table = getTable();
    table.focus();
    pressKey("Home");
    const name = getTexts(".tr.sel .n").join();
    // The key for menus.
    table.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true, button: 0 }));
    equal(getTexts(".menu .hd b").join(), name, "the menu of the selected function");
}

/** Only the rows that can be seen are elements. */
function drawsVisibleRowsOnly() {
    const scroller = getTable();
    equal(getTable().getAttribute("aria-rowcount"), "5002", "number of rows");
    check(getFunctions().length < 100, `${getFunctions().length} rows`);
    scroller.scrollTop = scroller.scrollHeight;
    scroller.dispatchEvent(new Event("scroll"));
    equal(getFunctions().at(-1), "main", "the last row");
    check(getRow("main").getBoundingClientRect().bottom <= scroller.getBoundingClientRect().bottom + 1, "is in view");
}

async function copiesCsv() {
    const clipboard = captureClipboard();
    pressKey("C", {}, document.body);
    await waitFor(() => clipboard.text !== "", "the table is copied");
    equal(clipboard.text.split("\n").slice(0, 3).join(" "), "function,self,total \"a \"\"b\"\"\",3,3 \"main\",1,4",
        "CSV");
}

/** What a thread waits for is the self weight of the function that waits. */
function chargesWaitsToFunctions() {
    equalLists(getFunctions().slice(0, 2), ["wait", "main"], "the functions with the most self weight");
    equalLists(getTexts(".c", getRow("schedule")), ["0 %", "30.0 %"], "where all waits end in the kernel");
    equalLists(getTexts(".c", getRow("kswapd0")), ["5.00 %", "5.00 %"], "a thread of the kernel");
    equalLists(getTexts(".c", getRow("wait")), ["80.0 %", "80.0 %"], "self and total");
    equalLists(getTexts(".c", getRow("[off-cpu]")), ["0 %", "95.0 %"], "a state has no self weight");
    check(/off-cpu\]\s*95\.0 %/.test(getText("legend")), `the legend has the state: ${getText("legend")}`);
    click(getRow("wait"));
    check(getTexts(".det dl").join().includes("Self80.0 s"), `the details: ${getTexts(".det dl")}`);
}

async function chargesRuntimeToCallers() {
    equal(getFunctions()[0], "num::wrapping_mul", "inlined functions come first");
    click(getButton("No runtime", getElement(".th")));
    equalLists(getFunctions(), ["shop::price", "shop::load", "rt::start", "shop::compare", "main"], "callers, by self");
    equalLists(getCells("shop::price"), ["65.0 %", "65.0 %"], "with what it calls in the runtime");
    equalLists(getCells("std::rt::start"), ["10.0 %", "10.0 %"], "without such a caller it is itself");
    equalLists(getChips(), ["Self with the runtime"], "the page says so");
    check(location.hash.includes("charge=callers"), `so does the link: ${location.hash}`);
    pressKey("Escape");
    equal(getFunctions()[0], "num::wrapping_mul", "Escape takes it back");
    pressKey("o");
    equal(getFunctions()[0], "shop::price", "so does a key");
}
