// Says what happens on a click, a key, a touch, and when the window changes.

// The time after which a finger on a frame opens its menu, in milliseconds.
const LONG_PRESS = 500;

/** @param {App} app */
function listen(app) {
    listenToGraph(app);
    listenToTable(app);
    app.element.addEventListener("keydown", event => handleKey(app, event));
    window.addEventListener("keydown", event => handlePageKey(app, event));
    window.addEventListener("pointerdown", event => {
        if (app.menu.isOpen && event.target instanceof Node
            && !app.menu.element.contains(event.target)) app.menu.close();
    });
    // Another address or, for views that differ in unfolded frames only, another entry of the history.
    for (const name of ["hashchange", "popstate"]) window.addEventListener(name, () => app.applyLink());
    new ResizeObserver(() => {
        const { graph, graph: { width } } = app;
        graph.measure();
        if (graph.width !== width) app.draw(); else graph.drawRows();
    }).observe(app.graph.element);
}

/**
 * Zooms on a click, opens the menu on a right click or long press, and describes the frame under the pointer.
 *
 * @param {App} app
 */
function listenToGraph(app) {
    const { graph, graph: { element } } = app;
    listenToTouch(app);
    element.addEventListener("click", event => {
        const box = findNearestBox(app, event), isLink = findAncestor(event, "a") && !event.ctrlKey && !event.metaKey;
        if (!box || isLink) return;
        event.preventDefault();
        zoomToBox(app, box);
    });
    element.addEventListener("contextmenu", event => {
        const box = graph.findEventBox(event.target);
        if (!box || box.folded) return;
        event.preventDefault();
        if (!app.wasLongPress) openMenu(app, box, event);
    });
    element.addEventListener("pointermove", event => {
        if (event.pointerType !== "touch") app.point(event);
    });
    element.addEventListener("mouseover", event => app.point(event));
    element.addEventListener("pointerleave", () => app.hover(undefined));
    element.addEventListener("focusin", event => {
        app.focused = graph.findEventBox(event.target);
        if (app.focused) graph.keepTabStop(app.focused);
    });
}

/**
 * Opens the menu of a frame when a finger rests on it. The finger is then lifted over the menu: that click is dropped.
 *
 * @param {App} app
 */
function listenToTouch(app) {
    const { element: whole, graph: { element } } = app;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    for (const name of ["pointerdown", "keydown"]) {
        whole.addEventListener(name, () => app.wasLongPress = false, true);
    }
    whole.addEventListener("click", event => {
        if (!app.wasLongPress) return;
        event.stopPropagation();
        event.preventDefault();
    }, true);
    element.addEventListener("pointerdown", event => {
        const box = findNearestBox(app, event);
        clearTimeout(timer);
        if (event.pointerType !== "touch" || !box || box.folded) return;
        timer = setTimeout(() => {
            app.wasLongPress = true;
            openMenu(app, box, event);
        }, LONG_PRESS);
    });
    for (const name of ["pointerup", "pointercancel", "pointermove"]) {
        element.addEventListener(name, event => {
            const { movementX = 0, movementY = 0 } = /** @type {PointerEvent} */ (event);
            if (name !== "pointermove" || Math.abs(movementX) + Math.abs(movementY) > 3) clearTimeout(timer);
        });
    }
}

/**
 * Returns the box of a click, or the nearest in its row if a finger missed it.
 *
 * @param {App} app
 * @param {MouseEvent} event
 */
function findNearestBox({ graph }, event) {
    const box = graph.findEventBox(event.target);
    const isTouch = event instanceof PointerEvent && event.pointerType === "touch";
    if (box || !isTouch) return box;
    for (const distance of [4, -4, 8, -8, 12, -12]) {
        const near = graph.findEventBox(document.elementFromPoint(event.clientX + distance, event.clientY));
        if (near) return near;
    }
    return undefined;
}

/**
 * Opens the menu of a box at the pointer, or, by a key, below the box.
 *
 * @param {App} app
 * @param {Box} box
 * @param {MouseEvent} event
 */
function openMenu(app, box, { clientX, clientY, button }) {
    const rect = (box.group ?? app.graph.element).getBoundingClientRect();
    const isKey = button < 0 || (clientX === 0 && clientY === 0);
    const place = isKey ? { x: rect.left + 8, y: rect.bottom } : { x: clientX, y: clientY };
    const target = targetOf(app, box);
    if (target.name !== undefined) app.select({ name: target.name, node: box.node });
    app.menu.openFor(target, place);
}

/**
 * Selects the function of a clicked row, and shows its callers and callees on a double click. The first click replaces
 * the rows and may open the details over the row. So the second one can be on anything, and counts for the first row.
 *
 * @param {App} app
 * @param {(event: Event) => number | undefined} findName
 */
function listenToClicks(app, findName) {
    /** @type {number | undefined} The function whose row was clicked last. */
    let name;
    app.side.addEventListener("click", event => {
        if (event.detail === 2 && name !== undefined) {
            event.stopPropagation();
            isolate(app, "between", { name });
        } else if ((name = findName(event)) !== undefined) app.select({ name });
    }, true);
}

/** @param {App} app */
function listenToTable(app) {
    const { table, table: { element, rows } } = app;
    /** @param {Event} event */
    const findName = event => {
        const row = /** @type {HTMLElement | null} */ (findAncestor(event, ".tr"));
        return row ? Number(row.dataset.name) : undefined;
    };
    listenToClicks(app, findName);
    rows.addEventListener("mouseover", event => app.graph.highlight(findName(event)));
    rows.addEventListener("mouseleave", () => app.graph.highlight(undefined));
    element.addEventListener("contextmenu", event => {
        // The key for menus is pressed in the table, whose selected row is not a target.
        const isKey = event.target === element, name = isKey ? app.state.selected?.name : findName(event);
        if (name === undefined) return;
        event.preventDefault();
        app.select({ name });
        const { left, bottom } = (rows.querySelector(".sel") ?? element).getBoundingClientRect();
        app.menu.openFor({ name }, isKey ? { x: left + 24, y: bottom } : { x: event.clientX, y: event.clientY });
    });
    element.addEventListener("keydown", event => {
        const page = Math.max(1, Math.floor(table.height / ROW) - 1);
        const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity,
            End: Infinity }[event.key];
        if (step === undefined && event.key !== "Enter") return;
        event.preventDefault();
        event.stopPropagation();
        if (step !== undefined) table.move(step);
        else if (event.target instanceof HTMLButtonElement) event.target.click();
        else if (app.state.selected) isolate(app, "between", app.state.selected);
    });
}

/**
 * @param {App} app
 * @param {KeyboardEvent} event
 */
function handleKey(app, event) {
    const isButton = event.target instanceof Element && event.target.closest("button, input, select") !== null;
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isButton && ["Enter", " "].includes(event.key)) return;
    const actions = ACTIONS.filter(action => action.keys.includes(event.key)), target = findTarget(app);
    if (actions.length === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const possible = actions.find(action => !action.refuse?.(app, target));
    runAction(app, possible ?? actions[actions.length - 1], target, event.key);
}

/**
 * Handles a key that was pressed anywhere on the page. Ctrl-F opens the search of the graph with the focus, or of the
 * first one; pressed again, it is the browser's own. If nothing has the focus and the page is only a graph, other keys
 * are for it.
 *
 * @param {App} app
 * @param {KeyboardEvent} event
 */
function handlePageKey(app, event) {
    const { element, order, page, isPage } = app, focused = document.activeElement?.closest(".fg");
    if (event.defaultPrevented || (focused ? focused !== element : order !== 0)) return;
    if (!focused && isPage && !isFindKey(event)) handleKey(app, event);
    if (!isFindKey(event) || document.activeElement === page.input) return;
    event.preventDefault();
    page.openSearch();
}
