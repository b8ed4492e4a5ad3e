// Creates elements.

const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";

/**
 * Creates an SVG element.
 *
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {(Node | string)[]} children
 */
function createSvg(name, attributes = {}, ...children) {
    const element = document.createElementNS(SVG, name);
    setAttributes(element, attributes);
    element.append(...children);
    return element;
}

/**
 * Creates an HTML element.
 *
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {(Node | string)[]} children
 */
function createHtml(name, attributes = {}, ...children) {
    const element = /** @type {HTMLElementTagNameMap[Name]} */ (document.createElementNS(HTML, name));
    setAttributes(element, attributes);
    element.append(...children);
    return element;
}

/**
 * @param {Element} element
 * @param {Attributes} attributes
 */
function setAttributes(element, attributes) {
    for (const name in attributes) {
        if (attributes[name] !== undefined) element.setAttribute(name, String(attributes[name]));
    }
}

/**
 * Creates a button.
 *
 * @param {string | Node} content
 * @param {() => void} action
 * @param {Attributes} [attributes]
 */
function createButton(content, action, attributes = {}) {
    const button = createHtml("button", { type: "button", class: "btn", ...attributes }, content);
    button.addEventListener("click", action);
    return button;
}

/**
 * Creates buttons of which one is pressed.
 *
 * @param {string} label
 * @param {[value: string, text: string][]} choices
 * @param {(value: string) => void} choose
 * @param {string} [value] of the pressed button
 * @param {string} [title]
 */
function createChoice(label, choices, choose, value, title) {
    const buttons = choices.map(([value, text]) => createButton(text, () => choose(value), { "data-value": value }));
    const choice = createHtml("div", { class: "seg", role: "group", "aria-label": label, title }, ...buttons);
    if (value !== undefined) setChoice(choice, value);
    return choice;
}

/**
 * Marks the pressed button of a choice.
 *
 * @param {Element} choice
 * @param {string} value
 */
function setChoice(choice, value) {
    for (const button of choice.children) {
        button.setAttribute("aria-pressed", String(/** @type {HTMLElement} */ (button).dataset.value === value));
    }
}

/**
 * Calls a function when what is drawn now is on the screen, which it is when the frame after it begins. A hidden page
 * has no frames.
 *
 * @param {() => void} next
 */
function afterPaint(next) {
    if (document.hidden) setTimeout(next);
    else requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(next)));
}

/**
 * Returns the ancestor of an event's target that matches a selector.
 *
 * @param {Event} event
 * @param {string} selector
 */
function findAncestor(event, selector) {
    return event.target instanceof Element ? event.target.closest(selector) : null;
}

/**
 * Returns a function that keeps its last result while its arguments are the same.
 *
 * @template {unknown[]} Arguments
 * @template Result
 * @param {(...inputs: Arguments) => Result} compute
 * @returns {(...inputs: Arguments) => Result}
 */
function memoize(compute) {
    /** @type {Arguments | undefined} */
    let last;
    /** @type {Result} */
    let result;
    return (...inputs) => {
        if (last && inputs.every((input, index) => input === last?.[index])) return result;
        [result, last] = [compute(...inputs), inputs];
        return result;
    };
}

/**
 * Returns a function that returns true if a text fits into a width. It measures each character once.
 *
 * @param {string} font
 */
function createTextMeter(font) {
    const context = /** @type {CanvasRenderingContext2D} */ (createHtml("canvas").getContext("2d"));
    context.font = font;
    /** @type {Map<string, number>} */
    const widths = new Map();
    return (/** @type {string} */ text, /** @type {number} */ available) => {
        for (const character of text) {
            let width = widths.get(character);
            if (width === undefined) widths.set(character, width = context.measureText(character).width);
            if ((available -= width) < 0) return false;
        }
        return true;
    };
}
