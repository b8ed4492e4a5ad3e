// All that the reader can do, with keys and the words of the menus.

/** @type {Action[]} */
const ACTIONS = [
    { keys: ["Enter"], text: "Unfold", menu: "frame", group: 1, refuse: needsChain,
        run: (app, { box }) => box && zoomToBox(app, box) },
    { keys: ["Enter"], text: "Zoom to frame", menu: "frame", group: 1, refuse: needsFrame,
        run: (app, { box, node }) => (box ? zoomToBox(app, box) : zoomTo(app, node ?? 0)) },
    { keys: ["s"], text: "Sandwich: callers and callees", menu: "frame", group: 1, refuse: needsFunction,
        run: (app, target) => isolate(app, "between", target) },
    { keys: ["b"], text: "Callers only", menu: "frame", group: 1, refuse: needsFunction,
        run: (app, target) => isolate(app, "callers", target) },
    { keys: ["c"], text: "Callees only", menu: "frame", group: 1, refuse: needsFunction,
        run: (app, target) => isolate(app, "callees", target) },
    { keys: ["f"], text: "Focus: keep only stacks with it", menu: "frame", group: 2, refuse: needsFunction,
        run: (app, target) => addFilter(app, "only", target) },
    { keys: ["i"], text: "Ignore: drop stacks with it", menu: "frame", group: 2, refuse: needsFunction,
        run: (app, target) => addFilter(app, "hide", target) },
    { keys: ["h"], text: "Hide its frames", menu: "frame", group: 2, refuse: needsFunction,
        run: (app, target) => addFilter(app, "omit", target) },
    { keys: ["a"], text: "Highlight all its frames", menu: "frame", group: 3, refuse: needsFunction,
        run: (app, { name, node }) => app.select({ name: name ?? 0, node }) },
    { keys: ["y"], text: "Copy name", menu: "frame", group: 3, refuse: needsFunction,
        run: (app, target) => app.copy(nameOfTarget(app, target)) },
    { keys: ["Y"], text: "Copy stack", menu: "frame", group: 3, refuse: needsNode,
        run: (app, { node }) => app.copy(stackOf(app, node ?? 0)) },
    { keys: ["/"], text: "Search (also Ctrl-F)", run: app => app.page.openSearch() },
    { keys: ["n", "N"], text: "Next, previous match", refuse: app => (app.state.search ? "" : "Search first: press /."),
        run: (app, _, key) => goToMatch(app, key === "n" ? 1 : -1) },
    { keys: ["r"], text: "Merge recursion", menu: "more", isOn: app => Boolean(app.state.changes.recursion),
        run: app => toggleChange(app, "recursion", "merged") },
    { keys: ["v"], text: "Invert: leaves first", menu: "more",
        isOn: app => invertsStacks(app.settings, app.state.changes.invert),
        refuse: app => (app.view.tree.hasPivot ? "Leave the view of one function first." : needsNoTime(app)),
        run: app => invertStacks(app, !app.view.tree.isInverted) },
    { keys: ["w"], text: "Sort by weight", menu: "more", isOn: app => Boolean(app.graph.input?.byWeight),
        refuse: needsNoTime, run: app => toggleChange(app, "sort", app.settings.isChart ? "weight" : "name") },
    { keys: ["o"], text: "Charge the runtime to its callers", menu: "more",
        isOn: app => Boolean(app.state.changes.charge), run: app => toggleChange(app, "charge", "callers") },
    { keys: ["e"], text: "Fold runtime frames", menu: "more", isOn: app => !app.state.changes.fold,
        run: app => toggleChange(app, "fold", "no") },
    { keys: ["u"], text: "Root at the bottom", menu: "more", isOn: app => !app.view.rootAtTop,
        run: app => toggleChange(app, "root", "bottom") },
    { keys: ["t"], text: "Table of functions", menu: "more", isOn: app => app.state.hasTable,
        run: app => app.update({ hasTable: !app.state.hasTable }) },
    { keys: ["d"], text: "Before, after, difference",
        refuse: app => (app.profile.differential ? "" : "There is nothing to compare with."),
        run: app => cycleSide(app) },
    { keys: ["C"], text: "Copy the table as CSV", menu: "more", run: app => app.copy(app.table.toCsv()) },
    { keys: ["0"], text: "Reset the zoom", refuse: app => (app.state.zoom ? "" : "Nothing is zoomed."),
        run: app => zoomTo(app, 0) },
    { keys: ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"], text: "Go to a neighbour",
        run: (app, { box }, key) => goToNeighbour(app, box, key.slice(5).toLowerCase()) },
    { keys: ["Escape"], text: "Close, or remove the last filter", run: app => goBack(app) },
    { keys: ["Backspace"], text: "Back to the previous view",
        run: app => leaveView() || app.page.say("This is the first view.") },
    { keys: ["?"], text: "List the keys", run: app => app.menu.openHelp() },
];

/** @type {Record<string, string>} */
const KEY_NAMES = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc", Enter: "↵",
    Backspace: "⌫" };

/** @param {App} _ @param {Target} target */
function needsChain(_, { box }) {
    return box?.chain ? "" : "Point at folded frames first.";
}

/** @param {App} _ @param {Target} target */
function needsFrame(_, { box, node }) {
    return node === undefined ? "Point at a frame first." : box?.chain ? "Unfold these frames first." : "";
}

/** @param {App} _ @param {Target} target */
function needsFunction(_, { name, node }) {
    return name !== undefined ? "" : node === undefined ? "Point at a frame first." : "That is for functions only.";
}

/** @param {App} app */
function needsNoTime({ view }) {
    return view.tree.time ? "A flame chart is in the order of time." : "";
}

/** @param {App} app @param {Target} target */
function needsNode(app, target) {
    return needsFrame(app, target) || needsFunction(app, target);
}

/** @param {string} key */
function findAction(key) {
    return /** @type {Action} */ (ACTIONS.find(action => action.keys.includes(key)));
}

/**
 * Runs an action, or says why it is impossible.
 *
 * @param {App} app
 * @param {Action} action
 * @param {Target} target
 * @param {string} [key]
 */
function runAction(app, action, target, key = action.keys[0]) {
    const reason = action.refuse?.(app, target);
    if (reason) app.page.say(reason); else action.run(app, target, key);
}

/**
 * Creates a button for an action.
 *
 * @param {App} app
 * @param {Action} action
 * @param {Target} target
 */
function createActionButton(app, action, target) {
    return createButton(action.text.split(":")[0], () => runAction(app, action, target), { title: action.text });
}
