// Goes to frames: zooms, follows matches of the search, and moves the focus to neighbours.

/**
 * Zooms to a box; for folded frames to their caller, or, if that is in view already, to the widest of them.
 *
 * @param {App} app
 * @param {Box} box
 */
function zoomToBox(app, { node, folded, chain }) {
    const { tree: { parent }, weights } = app.view;
    if (chain) return app.update({ unfolded: new Set([...app.state.unfolded, ...chain]) });
    if (folded && parent[node] !== app.state.zoom) node = parent[node];
    else if (folded) node = folded.reduce((best, other) => (weights[other] > weights[best] ? other : best));
    zoomTo(app, node);
}

/** @param {App} app @param {number} node */
function zoomTo(app, node) {
    const { tree } = app.view, selected = node === 0 ? app.state.selected : { name: tree.name[node], node };
    // The function that a tree is about has the whole width without any zoom.
    const zoom = tree.hasPivot && node === PIVOT ? 0 : node;
    if (zoom !== app.state.zoom) app.update({ zoom, selected });
    else if (node === 0) app.page.say("Nothing is zoomed.");
    else app.select(selected);
    app.matchPosition = 0;
    app.graph.focus(app.graph.base(app.view), true);
}

/** @param {App} app @param {string} search */
function searchFor(app, search) {
    app.matchPosition = 0;
    app.update({ search }, false);
}

/**
 * Goes to the next or previous match. Zooms if it is too narrow to be seen.
 *
 * @param {App} app
 * @param {number} step 1 or -1
 */
function goToMatch(app, step) {
    const { graph, view, state } = app, { tree, match } = view, [[first, end]] = findRanges(view);
    if (!graph.input || !match.names) return;
    const nodes = findNodesInOrder(graph.input, match.names);
    if (nodes.length === 0) {
        return app.page.say(app.table.order.length > 0 ? "Gone: see Before." : noMatch(state.search));
    }
    /** @param {number} node */
    const isInView = node => node >= first && node < end;
    const start = step > 0 ? nodes.findIndex(isInView) : nodes.findLastIndex(isInView);
    const position = app.matchPosition > 0 ? (app.matchPosition - 1 + step + nodes.length) % nodes.length
        : Math.max(0, start);
    const node = nodes[position], isTyping = document.activeElement === app.page.input;
    const box = graph.findBox(node);
    if (!box) app.update({ zoom: findWideView(app, node) });
    else if (box.chain) zoomToBox(app, box);
    app.matchPosition = position + 1;
    app.select({ name: tree.name[node], node });
    graph.focus(node);
    if (isTyping) app.page.input.focus({ preventScroll: true });
    app.page.say(`Match ${formatCount(position + 1)} of ${formatCount(nodes.length)}`);
}

/**
 * Returns the outermost node from which another one is easily seen.
 *
 * @param {App} app
 * @param {number} node
 */
function findWideView(app, node) {
    const { tree, weights, whole } = app.view, scale = app.graph.width * weights[node];
    return findPath(tree, node).find(zoom => scale / (zoom === 0 ? whole : weights[zoom]) >= EASILY_SEEN) ?? node;
}

/**
 * @param {App} app
 * @param {Box | undefined} box
 * @param {string} direction
 */
function goToNeighbour(app, box, direction) {
    const { graph, view } = app, start = box ?? graph.findBox(graph.base(view));
    if (!start) return;
    /** @type {Record<string, string>} */
    const turned = { up: "down", down: "up" };
    const towards = view.rootAtTop ? direction : turned[direction] ?? direction;
    const next = findNeighbour(graph.layout.boxes, view.tree, start, towards);
    app.hovered = undefined;
    graph.focusBox(next ?? start);
    if (next?.group) app.details.point(next, centre(next.group));
    const outwards = isCaller(view.tree, start.node) ? "up" : "down";
    if (!next && towards === outwards) sayWhyNothingIsDrawn(app, start);
}

/**
 * Says that frames on a box are too narrow to draw, if there are any.
 *
 * @param {App} app
 * @param {Box} box
 */
function sayWhyNothingIsDrawn(app, { node, chain, folded }) {
    const { graph: { input }, page } = app;
    if (folded || (input && findChildren(input, chain?.at(-1) ?? node, 1).length > 0)) {
        page.say("The next frames are too narrow to draw. Enter zooms in.");
    }
}

/** Returns the middle of an element, as events have it. @param {Element} element */
function centre(element) {
    const { left, width, bottom } = element.getBoundingClientRect();
    return { clientX: left + Math.min(width / 2, 60), clientY: bottom - 8 };
}
