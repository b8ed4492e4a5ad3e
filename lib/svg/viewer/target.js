// Finds the frame or function that an action is for, and describes it.

/**
 * Returns the frame that keys act on: the one under the pointer, or else the one with the focus.
 *
 * @param {App} app
 * @returns {Target}
 */
function findTarget(app) {
    const box = app.hovered ?? (app.graph.frames.contains(document.activeElement) ? app.focused : undefined);
    if (box) return targetOf(app, box);
    const { selected } = app.state;
    return selected ? { ...selected, box: app.graph.findBox(selected.node) } : {};
}

/** @param {App} app @param {Box} box @returns {Target} */
function targetOf(app, box) {
    const { node, folded, chain } = box, name = app.view.tree.name[node];
    const isFunction = node > 0 && !folded && !chain && app.profile.names[name] !== DIVIDER;
    return { node, box, ...(isFunction && { name }) };
}

/** @param {App} app @param {Target} target */
function nameOfTarget(app, { name, box }) {
    return box?.chain ? chainLabels(box.chain, app.view)[1]
        : name === undefined ? box?.node ? "woken by" : "all" : app.profile.keys[name];
}

/** @param {App} app @param {Target} target */
function shareOfTarget(app, { name, node }) {
    const { view } = app, { total } = weightsOnSide(view);
    return formatShare(node !== undefined ? measureNode(view, node).total : total[name ?? 0], view.whole);
}

/**
 * Returns the stack of a node in the folded format.
 *
 * @param {App} app
 * @param {number} node
 */
function stackOf(app, node) {
    const { tree } = app.view;
    const names = findPath(tree, node).slice(1).map(step => app.profile.names[tree.name[step]]);
    return (hasCallersOn(tree, node) ? names.reverse() : names).join(";");
}
