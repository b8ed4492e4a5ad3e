// @ts-check
// The contrast of text with what is behind it, as WCAG 2 defines it.

const MIN_CONTRAST = 4.5;

/** Returns the relative luminance of a colour. @param {string} colour */
function getLuminance(colour) {
    const [red, green, blue] = getNumbers(colour).slice(0, 3).map(channel => channel / 255)
        .map(channel => channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** @type {(a: string, b: string) => number} */
function getContrast(a, b) {
    const [low, high] = [getLuminance(a), getLuminance(b)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
}

/** @type {(text: string, background: string, message: string) => void} */
function checkContrast(text, background, message) {
    const contrast = getContrast(text, background);
    check(contrast >= MIN_CONTRAST, `${message}: ${text} on ${background} is ${contrast.toFixed(2)}`);
}

/** Checks an element that has both colours. @type {(element: Element, message: string) => void} */
function checkElement(element, message) {
    const { color, backgroundColor } = getComputedStyle(element);
    checkContrast(color, backgroundColor, message);
}

/** Returns the colours of the background, of which a gradient has several. */
function getBackgrounds() {
    const { fill } = getComputedStyle(getElement(".background"));
    if (fill.startsWith("rgb")) return [fill];
    return [...svg.querySelectorAll("#background stop")].map(stop => getComputedStyle(stop).stopColor);
}

/** Checks every visible text with its frame, or with the background and the bars. @param {string} state */
function checkAllText(state) {
    let labels = 0;
    for (const frame of getFrames()) {
        const label = frame.querySelector("text");
        if (!label) continue;
        labels++;
        checkContrast(getComputedStyle(label).fill, getFill(frame), `${state}, ${getTitle(frame)}`);
    }
    check(labels > 3, `${state}: ${labels} labels`);
    const bars = [...svg.querySelectorAll(".bar")].filter(isVisible).map(bar => getComputedStyle(bar).fill);
    const backgrounds = [...getBackgrounds(), ...bars];
    check(backgrounds.length > 0, `${state}: no background`);
    for (const text of svg.querySelectorAll(":scope > text, #legend text")) {
        if (!text.textContent.trim() || !isVisible(text)) continue;
        for (const background of backgrounds) {
            checkContrast(getComputedStyle(text).fill, background, `${state}, ${text.textContent}`);
        }
    }
}

function hasReadableText() {
    checkAllText("at first");
    click(getFrame("main"));
    click(/** @type {Element} */ (getFrames().filter(frame => frame.querySelector("text")).at(-1)));
    check(svg.querySelector(".parent text"), "callers have labels");
    checkAllText("zoomed");
    pressKey("Escape");
    pressKey("f", { ctrlKey: true });
    typePattern(".");
    check(svg.querySelectorAll(".match text").length > 3, "matches have labels");
    checkAllText("with matches");
    checkElement(getSearchField(), "the search field");
    typePattern("*");
    checkAllText("with an invalid pattern");
    checkElement(getSearchField(), "the search field with an invalid pattern");
    pressKey("Escape", {}, getSearchField());
    click(byId("menu"));
    const menu = getElement(".menu"), [first, second] = menu.querySelectorAll("button");
    checkContrast(getComputedStyle(second).color, getComputedStyle(menu).backgroundColor, "the menu");
    first.focus();
    checkElement(first, "the focused action of the menu");
}

/** Checks that a graph has dark or light colours. @param {boolean} isDark */
function followsColourScheme(isDark) {
    /** @param {Element} element */
    const hasDarkFill = element => {
        const channels = getNumbers(getComputedStyle(element).fill).slice(0, 3);
        return channels.length === 3 && channels.every(channel => channel < 80);
    };
    equal(hasDarkFill(getElement(".background")), isDark, "the background is dark");
    equal(hasDarkFill(byId("title")), !isDark, "the title is dark");
}
