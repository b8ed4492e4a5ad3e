// Changes which stacks and frames are shown, and takes changes back.

const GONE = "Gone: the graph shows what was before.";

/**
 * Shows only a function: its callers, its callees, or itself between both.
 *
 * @param {App} app
 * @param {"callers" | "callees" | "between"} kind
 * @param {Target} target
 */
function isolate(app, kind, target) {
    if (target.name === undefined) return;
    const changes = { callers: "", callees: "", between: "", invert: "", [kind]: nameOfTarget(app, target) };
    const side = sideOfGone(app, target.name);
    app.change({ ...changes, ...side }, { tab: "graph", selected: { name: target.name } }, () => {
        app.graph.focus(app.graph.base(app.view));
        if (side) app.page.say(GONE);
    });
}

/**
 * Returns the change that shows a function that is gone, if it is: a difference is as wide as the weights after.
 *
 * @param {App} app
 * @param {number | undefined} name
 * @returns {Partial<Changes> | undefined}
 */
function sideOfGone(app, name = 0) {
    const { functions: { total }, side, wholeAfter } = app.view;
    return side === "difference" && total[name] === 0 && wholeAfter > 0 ? { side: "before" } : undefined;
}

/**
 * @param {App} app
 * @param {"only" | "hide" | "omit"} kind
 * @param {Target} target
 */
function addFilter(app, kind, target) {
    const values = new Set([...splitLines(app.state.changes[kind]), nameOfTarget(app, target)]);
    const side = kind === "only" ? sideOfGone(app, target.name) : undefined;
    app.change({ [kind]: [...values].join("\n"), ...side }, {}, () => side && app.page.say(GONE));
}

/**
 * @param {App} app
 * @param {ChangeName} name
 * @param {string} value
 */
function toggleChange(app, name, value) {
    app.change({ [name]: app.state.changes[name] ? "" : value });
}

/**
 * Shows stacks from their leaves or from their roots.
 *
 * @param {App} app
 * @param {boolean} isInverted
 */
function invertStacks(app, isInverted) {
    const isDefault = isInverted === Boolean(app.settings.reversed);
    app.change({ invert: isDefault ? "" : isInverted ? "yes" : "no" });
}

/** @param {App} app */
function cycleSide(app) {
    const sides = ["before", "after", ""], index = sides.indexOf(app.state.changes.side);
    app.change({ side: sides[(index + 1) % sides.length] });
}

/**
 * Removes all filters and the zoom.
 *
 * @param {App} app
 */
function clearFilters(app) {
    app.panel?.clear();
    app.change(noChanges(), { zoom: 0 });
}

/**
 * Closes the menu, clears the search, or removes the last filter.
 *
 * @param {App} app
 */
function goBack(app) {
    const { menu, page, state } = app;
    if (menu.isOpen) menu.close();
    else if (app.queue.cancel()) page.say("Stopped.");
    else if (state.search) searchFor(app, "");
    else if (page.removeLast) page.removeLast();
    else if (state.selected) app.select(undefined);
    else page.say("No filter is left to remove.");
}
