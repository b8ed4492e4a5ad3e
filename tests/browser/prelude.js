// @ts-check
// What the cases in `cases/*.js` share. A Rust test calls one of their functions in the page. The result is written
// into the document: `passed`, or one line for each failure.

/** The viewer of the first graph of the page, once it is interactive. */
let svg = /** @type {ParentNode & HTMLElement} */ (document.documentElement);

/** @type {string[]} */
const failures = [];
let checks = 0;
window.addEventListener("error", event => failures.push(`uncaught error: ${event.message}`));
window.addEventListener("unhandledrejection", event => failures.push(`unhandled rejection: ${event.reason}`));

/**
 * Fails the case unless the condition is true.
 *
 * @param {unknown} condition
 * @param {string} message what was checked
 */
function check(condition, message) {
    checks++;
    if (!condition) failures.push(message);
}

/**
 * Fails the case unless two values are the same.
 *
 * @param {unknown} actual
 * @param {unknown} expected
 * @param {string} message
 */
function equal(actual, expected, message) {
    check(actual === expected, `${message}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
}

/**
 * Fails the case unless two lists of texts or numbers are the same.
 *
 * @param {(string | number)[]} actual
 * @param {(string | number)[]} expected
 * @param {string} message
 */
function equalLists(actual, expected, message) {
    equal(JSON.stringify(actual), JSON.stringify(expected), message);
}

/** @param {number} milliseconds */
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

/**
 * Waits until a condition is true: two seconds of the browser's virtual time, and then as long as it takes to draw.
 *
 * @param {() => unknown} condition
 * @param {string} message
 */
async function waitFor(condition, message) {
    for (let tries = 0; tries < 100; tries++) {
        if (condition()) return;
        await sleep(20);
        // The browser's virtual time runs ahead of what it draws.
        await waitInRealTime(condition, 500);
    }
    // On a busy machine far ahead.
    await waitInRealTime(condition);
    if (condition()) return;
    throw new Error(`did not happen: ${message}`);
}

/**
 * Returns an element, which must exist.
 *
 * @param {string} selector
 * @param {ParentNode} parent
 */
function getElement(selector, parent = svg) {
    const element = parent.querySelector(selector);
    if (!element) throw new Error(`no element matches ${selector}`);
    return /** @type {SVGGraphicsElement} */ (element);
}

/** @type {(id: string, graph?: ParentNode) => SVGGraphicsElement} */
const byId = (id, graph = svg) => getElement(`#${id}`, graph);
/** @type {(id: string, graph?: ParentNode) => string} */
const getText = (id, graph = svg) => byId(id, graph).textContent.trim();
/** @param {ParentNode} graph */
const getSearchField = (graph = svg) => /** @type {HTMLInputElement} */ (graph.querySelector("input"));
/** Returns the texts of elements. @type {(selector: string, graph?: ParentNode) => string[]} */
const getTexts = (selector, graph = svg) =>
    [...graph.querySelectorAll(selector)].map(element => element.textContent.trim());

/** Returns the elements of all drawn frames. @param {ParentNode} graph */
const getFrames = (graph = svg) => /** @type {SVGGElement[]} */ ([...graph.querySelectorAll("#frames > g")]);
/** Returns the shape of a frame, which has its name and gets the focus. @param {Element | null} frame */
const getItem = frame => /** @type {SVGElement | null | undefined} */ (frame?.matches("[role=treeitem]") ? frame
    : frame?.querySelector("[role=treeitem]"));
/** Moves the focus to a frame. @param {Element | null | undefined} frame */
const focusFrame = frame => getItem(frame ?? null)?.focus();
/** Returns the label of a frame, such as `main (3 samples, 1.50%)`. @param {Element | null} frame */
const getTitle = frame => getItem(frame)?.getAttribute("aria-label") ?? "";
/** Returns the function of a frame without spaces in its name. @param {Element | null} frame */
const getName = frame => getTitle(frame).split(" ")[0];
/** @type {(name: string, graph?: ParentNode) => SVGGElement[]} */
const findFrames = (name, graph = svg) => getFrames(graph).filter(frame => getTitle(frame).startsWith(`${name} (`));
/** @type {(name: string, graph?: ParentNode) => boolean} */
const hasFrame = (name, graph = svg) => findFrames(name, graph).length > 0;

/**
 * Returns the first frame of a function, which must be drawn.
 *
 * @param {string} name
 * @param {ParentNode} graph
 */
function getFrame(name, graph = svg) {
    const [frame] = findFrames(name, graph);
    if (!frame) throw new Error(`no frame of ${name}`);
    return frame;
}

/** @param {Element} frame */
const getRect = frame => /** @type {SVGRectElement} */ (frame.localName === "rect" ? frame : getElement("rect", frame));
/** Returns where a frame is on the screen. @param {Element} frame */
const getBounds = frame => getRect(frame).getBoundingClientRect();
/**
 * Returns the width of a frame with the gap after it. In Firefox, bounds have outlines in them.
 *
 * @type {(name: string, graph?: ParentNode) => number}
 */
const getWidth = (name, graph = svg) => Math.round(Number(getRect(getFrame(name, graph)).getAttribute("width")) + 1);
/** Returns the filters in words. */
const getChips = () => [...svg.querySelectorAll(".chip")].map(chip => getTexts("i, b", chip).join(" "));
/** Returns the message that is shown for a while, or an empty text. */
const getMessage = () => getTexts(".toast.shown").join();
const getResult = () => getTexts(".res").join();
const getTip = () => getTexts(".tip:not([hidden])").join();
/** Returns the texts of the functions in the table. */
const getFunctions = () => getTexts(".tr .n");
/** @param {string} name */
const getRow = name => getElement(`.tr:has([title="${name}"])`);
/** Returns the button with a text. @type {(text: string, parent?: ParentNode) => Element} */
function getButton(text, parent = svg) {
    const found = [...parent.querySelectorAll("button")].find(button => button.textContent.includes(text));
    if (!found) throw new Error(`no button ${text}`);
    return found;
}
/** Returns the colour of a frame. @param {Element} frame */
const getFill = frame => getComputedStyle(getRect(frame)).fill;
/** @param {Element} element */
const isVisible = element => getComputedStyle(element).visibility !== "hidden";
/** Returns the numbers in a text, such as the channels of a colour. @param {string} text */
const getNumbers = text => (text.match(/\d+(\.\d+)?/g) ?? []).map(Number);

/** Returns what a script in a hostile name would set, and undefined if none ran. */
const getScriptTrace = () => /** @type {any} */ (window).ran;

/** Returns the text that is copied to the clipboard from now on. */
function captureClipboard() {
    const captured = { text: "" };
    /** @param {string} text */
    const writeText = async text => { captured.text = text; };
    Object.defineProperty(navigator, "clipboard", { value: { writeText } });
    return captured;
}

/**
 * Clicks an element. Returns false if the page prevents what the browser would do.
 *
 * @param {Element} element
 * @param {MouseEventInit} options
 */
function click(element, options = {}) {
    return element.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ...options }));
}

/**
 * Presses a key where the focus is.
 *
 * @param {string} key
 * @param {KeyboardEventInit} options
 * @param {Element} target
 */
function pressKey(key, options = {}, target = document.activeElement ?? document.documentElement) {
    const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...options });
    target.dispatchEvent(event);
    return event;
}

/** Moves the pointer over the rectangle of a frame. @param {Element} frame */
function pointAt(frame) {
    const { left, bottom } = getBounds(frame);
    getRect(frame).dispatchEvent(new MouseEvent("mouseover",
        { bubbles: true, clientX: left + 2, clientY: bottom - 2 }));
}

/** Types a pattern into the search field. @param {string} pattern */
function typePattern(pattern) {
    const input = getSearchField();
    input.value = pattern;
    input.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Sets the width of the graph; an empty text lets it fill the window. @param {string} width */
function resize(width) {
    svg.style.width = width;
}

/**
 * Waits until a condition is true, or for long. On a busy machine that takes a while. Messages take real time, but none
 * of the browser's virtual time.
 *
 * @param {() => unknown} condition
 * @param {number} [maximum] number of messages
 */
async function waitInRealTime(condition, maximum = 200_000) {
    const { port1, port2 } = new MessageChannel();
    for (let turns = 0; turns < maximum && !condition(); turns++) {
        await new Promise(resolve => {
            port1.onmessage = resolve;
            port2.postMessage(null);
        });
    }
    port1.close();
}

/**
 * Runs a case when the page has been loaded and has the focus, and all graphs are interactive.
 *
 * @param {() => unknown} run
 * @param {string} address where the result is sent, or empty
 */
async function runCase(run, address) {
    try {
        await waitFor(() => document.readyState === "complete", "the page is loaded");
        // A table has rows when all parts are drawn.
        const missing = "svg.flame-graph:not(:has(.fg)), .fg:not(:has([aria-rowcount]))";
        const areInteractive = () => !document.querySelector(missing);
        await waitInRealTime(areInteractive);
        await waitFor(areInteractive, "the graphs are interactive");
        svg = /** @type {HTMLElement} */ (document.querySelector(".fg") ?? svg);
        // Before, elements get no focus events and match no `:focus`.
        if (parent === window) await waitInRealTime(() => document.hasFocus());
        await run();
        if (checks === 0) failures.push("the case checks nothing");
    } catch (error) {
        failures.push(String(error));
    }
    const result = document.createElementNS("http://www.w3.org/2000/svg", "desc");
    result.id = "test-result";
    result.textContent = failures.length === 0 ? "passed" : failures.join("\n");
    document.documentElement.append(result);
    if (address) await fetch(address, { method: "POST", mode: "no-cors", body: result.textContent });
}
