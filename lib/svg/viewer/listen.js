// Handles events of the mouse, the keyboard, touch screens and the window.

// The time after which a finger on a frame selects it, in milliseconds.
const LONG_PRESS = 500;

/** @param {Viewer} viewer */
function listen(viewer) {
    const { picture: { frames }, root, texts } = viewer;
    setAttributes(frames, { role: "tree", "aria-label": texts.title.textContent });
    listenToPointer(viewer, frames);
    root.addEventListener("keydown", event => handleKey(viewer, event));
    window.addEventListener("keydown", event => handlePageKey(viewer, event));
    window.addEventListener("hashchange", () => {
        viewer.applyLink();
        viewer.viewport.showBase();
    });
    window.addEventListener("scroll", () => viewer.viewport.placeControls(), { passive: true });
    window.addEventListener("resize", () => viewer.viewport.handleResize());
    window.addEventListener("beforeprint", () => viewer.viewport.setPrinting(true));
    window.addEventListener("afterprint", () => viewer.viewport.setPrinting(false));
    new ResizeObserver(() => viewer.viewport.handleResize()).observe(root);
}

/**
 * Zooms on a click or tap, and describes the frame under the mouse or after a long press.
 *
 * @param {Viewer} viewer
 * @param {SVGElement} frames
 */
function listenToPointer(viewer, frames) {
    /** @type {number | undefined} */
    let timer;
    let wasLongPress = false;
    frames.addEventListener("click", event => {
        const box = findEventBox(viewer, event);
        const isLink = findAncestor(event, "a") && !event.ctrlKey && !event.metaKey;
        if (!box || (isLink && !wasLongPress)) return;
        event.preventDefault();
        if (!wasLongPress) viewer.zoomToBox(box);
    });
    frames.addEventListener("pointerdown", event => {
        const box = findEventBox(viewer, event);
        wasLongPress = false;
        clearTimeout(timer);
        if (event.pointerType !== "touch" || !box) return;
        timer = setTimeout(() => {
            wasLongPress = true;
            viewer.describe(box);
            if (!box.folded) box.group.focus({ preventScroll: true });
        }, LONG_PRESS);
    });
    for (const name of ["pointerup", "pointercancel"]) frames.addEventListener(name, () => clearTimeout(timer));
    frames.addEventListener("contextmenu", event => wasLongPress && event.preventDefault());
    frames.addEventListener("mouseover", event => viewer.describe(findEventBox(viewer, event)));
    frames.addEventListener("mouseleave", () => viewer.describe(viewer.current));
    frames.addEventListener("focusin", event => viewer.describe(viewer.current = findEventBox(viewer, event)));
}

/**
 * @param {Event} event
 * @param {string} selector
 */
function findAncestor(event, selector) {
    return event.target instanceof Element ? event.target.closest(selector) : null;
}

/**
 * Returns the box that an event happened in.
 *
 * @param {Viewer} viewer
 * @param {Event} event
 */
function findEventBox(viewer, event) {
    const group = findAncestor(event, "#frames > *");
    return group ? viewer.picture.boxes.get(group) : undefined;
}

/**
 * @param {Viewer} viewer
 * @param {KeyboardEvent} event
 */
function handleKey(viewer, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isInMenu = event.target instanceof Node && viewer.menu.contains(event.target);
    if (isInMenu && event.key !== "Escape" && event.key !== "?") return;
    const action = ACTIONS.find(action => action.keys.includes(event.key));
    const box = viewer.current ?? (event.key.startsWith("Arrow") ? viewer.baseBox() : undefined);
    if (action && runAction(action, viewer, box, event.key)) event.preventDefault();
}

/**
 * Handles a key that was pressed anywhere on the page. Ctrl-F opens the search of the graph with the focus, or of the
 * first one; pressed again, it is the browser's own. If nothing has the focus and the page is only a graph, other keys
 * are for it.
 *
 * @param {Viewer} viewer
 * @param {KeyboardEvent} event
 */
function handlePageKey(viewer, event) {
    const { root, order, search } = viewer, focused = document.activeElement?.closest("svg.flame-graph");
    if (event.defaultPrevented || (focused ? focused !== root : order !== 0)) return;
    if (!focused && viewer.viewport.isStandalone && !isFindKey(event)) handleKey(viewer, event);
    if (!isFindKey(event) || document.activeElement === search.input) return;
    event.preventDefault();
    viewer.openSearch();
}
