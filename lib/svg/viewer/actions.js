// The actions of the viewer, with their keys, and the menu that lists them.

/** @type {Action[]} */
const ACTIONS = [
    { keys: ["Enter"], text: "zoom to {}", runOnFrame: (viewer, box) => viewer.zoomToBox(box) },
    { keys: ["Escape"], text: "go back: close the search, reset the zoom, then undo all other changes",
        run: viewer => viewer.goBack() },
    { keys: ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"], text: "go to a neighbour of {}",
        runOnFrame: (viewer, box, key) => viewer.goTo(viewer.picture.findNeighbour(box, key.slice(5).toLowerCase())) },
    { keys: ["/"], text: "search (also Ctrl-F)", run: viewer => viewer.openSearch() },
    { keys: ["n", "N"], text: "next, previous match", run: (viewer, key) => viewer.goToMatch(key === "n" ? 1 : -1) },
    { keys: ["c"], text: "show only {} and its callers, merged",
        runOnFrame: (viewer, box) => viewer.isolate("callers", box) },
    { keys: ["e"], text: "show only {} and what it calls, merged",
        runOnFrame: (viewer, box) => viewer.isolate("callees", box) },
    { keys: ["b"], text: "show {} between its callers and what it calls",
        runOnFrame: (viewer, box) => viewer.isolate("between", box) },
    { keys: ["o"], text: "show only stacks through {}", runOnFrame: (viewer, box) => viewer.addFilter("only", box) },
    { keys: ["h"], text: "hide stacks through {}", runOnFrame: (viewer, box) => viewer.addFilter("hide", box) },
    { keys: ["r"], text: "merge recursion, or not", run: viewer => viewer.toggle("recursion", "merged") },
    { keys: ["s"], text: "sort by weight, or by name", run: viewer => viewer.toggle("sort", "weight") },
    { keys: ["i"], text: "turn upside down", run: viewer => viewer.toggle("turned", "yes") },
    { keys: ["y"], text: "copy the name of {}", runOnFrame: (viewer, box) => viewer.copy(viewer.nameOf(box)) },
    { keys: ["Y"], text: "copy the stack of {}", runOnFrame: (viewer, box) => viewer.copy(viewer.stackOf(box)) },
    { keys: ["?"], text: "show or hide this menu", run: viewer => viewer.toggleMenu() },
];

/** @type {Record<string, string>} */
const KEY_NAMES = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };

/**
 * Runs an action. Does nothing and returns false if it needs a frame and there is none.
 *
 * @param {Action} action
 * @param {Viewer} viewer
 * @param {DrawnBox | undefined} box
 * @param {string} key
 */
function runAction({ run, runOnFrame }, viewer, box, key) {
    if (run) run(viewer, key);
    else if (runOnFrame && box) runOnFrame(viewer, box, key);
    else return false;
    return true;
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
    const created = document.createElementNS("http://www.w3.org/1999/xhtml", name);
    const element = /** @type {HTMLElementTagNameMap[Name]} */ (created);
    setAttributes(element, attributes);
    element.append(...children);
    return element;
}

/**
 * Creates the menu: a button for each action, with its keys.
 *
 * @param {Viewer} viewer
 * @param {DrawnBox | undefined} box the current frame
 */
function createMenu(viewer, box) {
    const name = box ? viewer.nameOf(box) : "a frame", shortName = name.length > 40 ? `${name.slice(0, 38)}..` : name;
    const rows = ACTIONS.filter(action => box || action.run).map(action => {
        const keys = action.keys.map(key => createHtml("kbd", {}, KEY_NAMES[key] ?? key));
        const text = action.text.replace("{}", () => shortName);
        const button = createHtml("button", { type: "button" }, createHtml("span", {}, ...keys), text);
        button.addEventListener("click", () => {
            viewer.closeMenu();
            runAction(action, viewer, box, action.keys[0]);
        });
        return button;
    });
    const hint = "Select a frame, by a click or with Tab and the arrows, for more actions.";
    const hints = box ? [] : [createHtml("p", {}, hint)];
    return createHtml("div", { class: "menu", role: "dialog", "aria-label": "Actions" }, ...rows, ...hints);
}
