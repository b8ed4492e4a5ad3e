// What the reader does with mouse, finger and keys.

// How long a finger rests on a frame to choose it, in milliseconds.
const REST = 500;

function listen(viewer) {
    const { picture: { frames }, root, texts } = viewer;
    frames.setAttribute("role", "tree");
    frames.setAttribute("aria-label", texts.title.textContent);
    listenToPointer(viewer, frames, event => viewer.picture.groups.get(event.target.closest?.("#frames > *")));
    root.addEventListener("keydown", event => takeKey(viewer, event));
    window.addEventListener("keydown", event => takeKeyFromPage(viewer, event));
    window.addEventListener("hashchange", () => {
        viewer.follow();
        viewer.sight.showBase();
    });
    window.addEventListener("scroll", () => viewer.sight.stick(), { passive: true });
    window.addEventListener("resize", () => viewer.sight.refit());
    for (const [event, isPrinted] of [["beforeprint", true], ["afterprint", false]]) {
        window.addEventListener(event, () => {
            viewer.sight.isPrinted = isPrinted;
            viewer.sight.stick();
        });
    }
    new ResizeObserver(() => viewer.sight.refit()).observe(root);
}

// A click or a tap zooms. A finger that rests tells about a frame, as pointing does.
function listenToPointer(viewer, frames, box) {
    let waiting, rested = false;
    frames.addEventListener("click", event => {
        const isLink = event.target.closest?.("a") && !event.ctrlKey && !event.metaKey;
        if (!box(event) || (isLink && !rested)) return;
        event.preventDefault();
        if (!rested) viewer.open(box(event));
    });
    frames.addEventListener("pointerdown", event => {
        const chosen = box(event);
        rested = false;
        clearTimeout(waiting);
        if (event.pointerType !== "touch" || !chosen) return;
        waiting = setTimeout(() => {
            rested = true;
            viewer.describe(chosen);
            if (!chosen.folded) chosen.group.focus({ preventScroll: true });
        }, REST);
    });
    for (const end of ["pointerup", "pointercancel"]) frames.addEventListener(end, () => clearTimeout(waiting));
    frames.addEventListener("contextmenu", event => rested && event.preventDefault());
    frames.addEventListener("mouseover", event => viewer.describe(box(event)));
    frames.addEventListener("mouseleave", () => viewer.describe(viewer.current));
    frames.addEventListener("focusin", event => viewer.describe(viewer.current = box(event)));
}

function takeKey(viewer, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (viewer.sheet.contains(event.target) && event.key !== "Escape" && event.key !== "?") return;
    const action = ACTIONS.find(action => action.keys.includes(event.key));
    const box = viewer.current ?? (event.key.startsWith("Arrow") ? viewer.baseBox() : undefined);
    if (!action || (action.frame && !box)) return;
    event.preventDefault();
    action.run(viewer, box, event.key);
}

// Ctrl-F opens the search of the graph that has the focus, or of the first one; there, the browser's own. Other keys
// without any focus are the first graph's, too, where the page is nothing but the graph.
function takeKeyFromPage(viewer, event) {
    const { root, order, search } = viewer, focused = document.activeElement?.closest?.("svg.flame-graph");
    if (event.defaultPrevented || (focused ? focused !== root : order !== 0)) return;
    if (!focused && document.documentElement === root && !isFind(event)) takeKey(viewer, event);
    if (!isFind(event) || document.activeElement === search.input) return;
    event.preventDefault();
    viewer.openSearch();
}
