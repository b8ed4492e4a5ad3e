// @ts-check
// The contrast of text with what is behind it, as WCAG 2 defines it.

const MIN_CONTRAST = 4.5;

/** Returns the relative luminance of a colour. @param {number[]} colour */
function getLuminance(colour) {
    const [red, green, blue] = colour.map(channel => channel / 255)
        .map(channel => channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** @type {(a: number[], b: number[]) => number} */
function getContrast(a, b) {
    const [low, high] = [getLuminance(a), getLuminance(b)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
}

const canvas = /** @type {HTMLCanvasElement} */ (document.createElementNS("http://www.w3.org/1999/xhtml", "canvas"));
const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));

/**
 * Returns the channels of a colour over another one, whatever its notation.
 *
 * @type {(colour: string, behind?: number[], alpha?: number) => number[]}
 */
function paint(colour, behind = [255, 255, 255], alpha = 1) {
    context.fillStyle = `rgb(${behind.join()})`;
    context.fillRect(0, 0, 1, 1);
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    context.globalAlpha = 1;
    return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

/** Returns the colour behind an element. @param {Element} element @returns {number[]} */
function getBackground(element) {
    const behind = element.parentElement ? getBackground(element.parentElement) : paint("#ffffff");
    return paint(getComputedStyle(element).backgroundColor, behind);
}

/** @type {(text: number[], background: number[], message: string) => void} */
function checkContrast(text, background, message) {
    const contrast = getContrast(text, background);
    check(contrast >= MIN_CONTRAST, `${message}: ${text} on ${background} is ${contrast.toFixed(2)}`);
}

/** Checks every visible text. @param {string} state */
function checkAllText(state) {
    let labels = 0;
    const graph = getBackground(getElement(".graph"));
    for (const frame of getFrames()) {
        for (const label of frame.querySelectorAll("text")) {
            labels++;
            const { fill, fillOpacity } = getComputedStyle(getRect(frame));
            const background = paint(fill, graph, Number(fillOpacity));
            checkContrast(paint(getComputedStyle(label).fill), background, `${state}, ${getTitle(frame)}`);
        }
    }
    check(labels > 3, `${state}: ${labels} labels`);
    for (const element of svg.querySelectorAll("*")) {
        const hasText = [...element.childNodes].some(child => child.nodeType === Node.TEXT_NODE
            && child.textContent?.trim());
        if (!hasText || element.closest("svg, .toast:not(.shown)") || !element.checkVisibility()) continue;
        const background = getBackground(element);
        checkContrast(paint(getComputedStyle(element).color, background), background,
            `${state}, ${element.className} ${element.textContent}`);
    }
}

function hasReadableText() {
    checkAllText("at first");
    click(getFrame("main"));
    click(/** @type {Element} */ (getFrames().filter(frame => frame.querySelector("text")).at(-1)));
    check(svg.querySelector(".above text"), "callers have labels");
    checkAllText("zoomed");
    pressKey("0");
    typePattern("^");
    check(svg.querySelectorAll(".match text").length > 3, "matches have labels");
    checkAllText("with matches");
    typePattern("zzz*");
    checkAllText("with matches of nothing");
    typePattern("*");
    checkAllText("with an invalid pattern");
    typePattern("");
    click(getButton("More"));
    checkAllText("with a menu");
}

/** Checks that a graph has dark or light colours. @param {boolean} isDark */
function followsColourScheme(isDark) {
    const isDarkNow = () => getBackground(getElement(".graph")).every(channel => channel < 80);
    equal(isDarkNow(), isDark, "the background is dark");
    equal(paint(getComputedStyle(getElement("h1")).color).every(channel => channel < 80), !isDark, "the title is dark");
    click(getElement("[title='Light or dark']"));
    equal(isDarkNow(), !isDark, "a button switches");
    click(getElement("[title='Light or dark']"));
    equal(isDarkNow(), isDark, "and back");
}

/** Checks that the cells with the most samples stand out most. @param {boolean} isDark */
function heatStandsOut(isDark) {
    const swatches = [...svg.querySelectorAll(".heat i")], behind = getBackground(getElement(".timebox"));
    const contrasts = swatches.map(swatch => getContrast(getBackground(swatch), behind));
    equal(contrasts.length, 6, "colours of the key");
    check(contrasts.every((contrast, step) => step === 0 || contrast > contrasts[step - 1]),
        `more samples have more contrast: ${contrasts.map(contrast => contrast.toFixed(1))}`);
    const list = getBackground(getElement("select"));
    equal(list.every(channel => channel < 80), isDark, `the list of threads has the theme's colour: ${list}`);
}
