// Draws the boxes of the layout.

// The padding around the frames, in pixels.
const GRAPH_PADDING = 6;

// The least width of a drawn frame, in pixels.
const TOO_NARROW = 0.5;

// The least width of a frame to which a search leads, in pixels.
const EASILY_SEEN = 20;

// Crates that run tasks. Between a thread and a task are dozens of their frames.
const SCHEDULERS = new Set(["tokio", "async_std", "async_executor", "futures_executor", "rayon", "rayon_core"]);

/** @implements {Part} */
class Graph {
    /** @param {App} app */
    constructor(app) {
        const { settings } = app;
        this.app = app;
        this.rowHeight = settings.rowHeight;
        this.frames = createSvg("svg", { id: "frames", role: "tree", "aria-label": settings.title || "Flame graph" });
        this.empty = createHtml("p", { class: "empty" });
        this.axis = createSvg("svg", { class: "axis", height: AXIS_HEIGHT, "aria-hidden": "true" });
        this.element = createHtml("div", { class: "graph card" }, this.axis, this.frames, this.empty);
        /** @type {Layout} */
        this.layout = { boxes: [], rows: 0, undrawn: { frames: 0, weight: 0 } };
        /** @type {Map<Element, Box>} The boxes that have an element: those near the visible part. */
        this.drawn = new Map();
        /** @type {Box | undefined} The box to which the Tab key leads. It always has an element. */
        this.tabStop = undefined;
        /** The function whose frames are outlined, and the class of colours that stands out. */
        this.lit = this.kind = /** @type {number | undefined} */ (undefined);
        /** True if boxes are marked. */
        this.hasMarks = false;
        /** True while all rows are drawn, for printing. */
        this.isWhole = false;
        /** The width of the root frame. */
        this.width = 100;
        /** The visible part of the rows, in pixels. */
        this.top = this.height = 0;
        /** @type {LayoutInput | undefined} */
        this.input = undefined;
        this.painter = new BoxPainter(settings);
        this.layOut = memoize(this.computeLayout.bind(this));
        this.drawFrames = memoize(this.createFrames.bind(this));
        this.findRuntime = memoize(findRuntime);
        this.element.addEventListener("scroll", () => {
            this.top = this.element.scrollTop;
            this.drawRows();
        }, { passive: true });
        for (const name of ["beforeprint", "afterprint"]) {
            window.addEventListener(name, () => {
                this.isWhole = name === "beforeprint";
                this.drawRows();
            });
        }
    }

    /**
     * Measures the room for the root frame and the visible part. Measuring them anew for each drawing would delay it.
     */
    measure() {
        const { app: { settings }, element: { clientWidth, clientHeight, offsetWidth, scrollTop } } = this;
        [this.top, this.height] = [scrollTop, clientHeight];
        // Space for a scroll bar is also a margin.
        const margin = offsetWidth - clientWidth > GRAPH_PADDING ? 0 : GRAPH_PADDING;
        if (settings.width > 0) this.width = settings.width - 20;
        else if (clientWidth > 0) this.width = Math.max(clientWidth - GRAPH_PADDING - margin, 100);
    }

    /**
     * @param {Tree} tree
     * @param {Float64Array} weights
     * @param {Float64Array} own
     * @param {number} whole
     * @param {number} zoom
     * @param {string} sort
     * @param {Uint8Array | undefined} runtime
     * @param {ReadonlySet<number>} unfolded
     * @param {number} width
     */
    computeLayout(tree, weights, own, whole, zoom, sort, runtime, unfolded, width) {
        const { settings } = this.app, minWidth = Math.max(settings.minWidth, TOO_NARROW);
        const isChart = settings.isChart || tree.time !== undefined;
        const byWeight = !tree.time && (sort === (isChart ? "weight" : "") || sort === "weight");
        const isFull = !weights.includes(0);
        this.input = { tree, weights, own, whole, zoom, byWeight, isChart, runtime, unfolded, width, minWidth, isFull };
        return layOut(this.input);
    }

    /** @param {View} view */
    draw(view) {
        const { tree, weights, own, profile, settings, state: { zoom, changes, unfolded } } = view;
        const { names, looks, modules } = profile, { span: whole = view.whole } = tree.time ?? {};
        const isChart = settings.isChart || tree.time;
        const runtime = changes.fold || isChart ? undefined : this.findRuntime(names, looks, modules);
        const layout = this.layOut(tree, weights, own, whole, zoom, changes.sort, runtime, unfolded, this.width);
        this.drawFrames(layout, view.side, view.rootAtTop, view.match.names);
        this.empty.textContent = whole > 0 ? "" : "No samples left. Remove a filter.";
        this.mark(view);
    }

    /**
     * Replaces the elements of all frames.
     *
     * @param {Layout} layout
     * @param {View["side"]} _side
     * @param {boolean} rootAtTop
     * @param {Uint8Array | null} matches
     */
    createFrames(layout, _side, rootAtTop, matches) {
        const { frames, element, app: { view } } = this, height = Math.max(1, layout.rows * this.rowHeight);
        const fromBottom = rootAtTop ? 0 : element.scrollHeight - element.scrollTop;
        const hadFocus = frames.contains(document.activeElement);
        const focused = hadFocus ? this.findEventBox(document.activeElement) : undefined;
        for (const box of this.drawn.values()) box.group = undefined;
        this.drawn.clear();
        frames.replaceChildren();
        this.layout = layout;
        this.tabStop = this.findBox(this.base(view));
        frames.append(...(layout.lanes ?? []).map(lane => this.createLaneName(lane, view)));
        const hasAxis = view.settings.isChart || view.tree.time !== undefined;
        this.axis.toggleAttribute("hidden", !hasAxis);
        if (hasAxis) drawAxis(this.axis, this.width, view);
        setAttributes(frames, { width: this.width, height, viewBox: `0 0 ${this.width} ${height}` });
        frames.classList.toggle("searching", matches !== null);
        frames.classList.toggle("difference", view.side === "difference");
        element.classList.toggle("upward", !rootAtTop);
        if (rootAtTop) this.top = Math.max(0, Math.min(this.top, height - this.height));
        else this.scrollTo(element.scrollHeight - fromBottom);
        if (hadFocus) this.tabStop = this.findBox(focused?.node) ?? this.tabStop;
        this.drawRows();
        if (hadFocus) this.tabStop?.item?.focus({ preventScroll: true });
    }

    /** Draws the boxes near the visible part that have no element yet, and removes those that are far from it. */
    drawRows() {
        const { app: { view }, drawn, frames, layout: { boxes }, tabStop } = this, [first, last] = this.nearRows();
        for (const [group, box] of drawn) {
            const line = this.line(box);
            if ((line >= first && line < last) || box === tabStop) continue;
            group.remove();
            drawn.delete(group);
            box.group = undefined;
        }
        const groups = [];
        for (const box of boxes) {
            const line = this.line(box);
            if (box.group || ((line < first || line >= last) && box !== tabStop)) continue;
            const group = box.group = this.painter.createGroup(box, view, line * this.rowHeight);
            box.item?.setAttribute("tabindex", box === tabStop ? "0" : "-1");
            drawn.set(group, box);
            if (this.hasMarks) this.markBox(box, view);
            groups.push(group);
        }
        frames.append(...groups);
    }

    /** Returns the first line to be drawn and the one after the last, counted from the top. */
    nearRows() {
        const { top, rowHeight } = this, height = this.height || innerHeight;
        if (this.isWhole) return [0, Infinity];
        const spare = Math.ceil(height / 4);
        return [(top - spare) / rowHeight, (top + height + spare) / rowHeight];
    }

    /** @param {number} top */
    scrollTo(top) {
        this.element.scrollTop = top;
        this.top = this.element.scrollTop;
    }

    /**
     * Returns the number of lines above a box.
     *
     * @param {Box} box
     */
    line({ row }) {
        return this.app.view.rootAtTop ? row : this.layout.rows - 1 - row;
    }

    /**
     * @param {{ name: number, row: number }} lane
     * @param {View} view
     */
    createLaneName({ name, row }, { profile, functions, whole, tree: { time } }) {
        const y = (this.app.view.rootAtTop ? row : this.layout.rows - 1 - row) * this.rowHeight + this.rowHeight - 6;
        const text = time ? time.laneNames[name]
            : `${profile.names[name]}  ${formatShare(functions.total[name], whole)}`;
        return createSvg("text", { class: "lane", x: 2, y }, text);
    }

    /**
     * Returns the node over the whole width: the zoomed one, or the function that the tree is about.
     *
     * @param {View} view
     */
    base({ tree, state: { zoom } }) {
        return zoom === 0 && tree.hasPivot ? PIVOT : zoom;
    }

    /**
     * Marks the selected function everywhere.
     *
     * @param {View} view
     */
    mark(view) {
        const hadMarks = this.hasMarks;
        this.hasMarks = Boolean(view.state.selected) || this.lit !== undefined || this.kind !== undefined;
        // Most drawings have none.
        if (hadMarks || this.hasMarks) for (const box of this.drawn.values()) this.markBox(box, view);
    }

    /**
     * Marks a box if its function is selected or outlined, or if another class of colours stands out.
     *
     * @param {Box} box
     * @param {View} view
     */
    markBox({ node, group, folded, chain }, { profile, tree, state: { selected } }) {
        const { kind, lit } = this, name = folded || node === 0 ? -1 : tree.name[node];
        /** @param {number | undefined} wanted */
        const has = wanted => (chain ? chain.some(other => tree.name[other] === wanted) : name === wanted);
        const isPlace = has(selected?.name);
        group?.classList.toggle("place", isPlace);
        group?.classList.toggle("selected", isPlace && selected?.node === node);
        group?.classList.toggle("lit", has(lit));
        group?.classList.toggle("dim", kind !== undefined && (name < 0 || classOfName(profile, name) !== kind));
    }

    /**
     * Outlines all frames of a function, or none.
     *
     * @param {number | undefined} name
     */
    highlight(name) {
        this.lit = name;
        this.mark(this.app.view);
    }

    /**
     * Lets the frames of a class of colours stand out, or none.
     *
     * @param {number | undefined} kind
     */
    highlightKind(kind) {
        this.kind = kind;
        this.mark(this.app.view);
    }

    /**
     * Returns the box of a node, if it has one of its own.
     *
     * @param {number | undefined} node
     */
    findBox(node) {
        const isOf = (/** @type {Box} */ box) => box.node === node || (node !== undefined && box.chain?.includes(node));
        return this.layout.boxes.find(box => isOf(box) && !box.folded);
    }

    /**
     * Returns the box that contains an element.
     *
     * @param {unknown} target
     */
    findEventBox(target) {
        const group = target instanceof Element ? target.closest("#frames > *") : null;
        return group ? this.drawn.get(group) : undefined;
    }

    /**
     * Moves the focus to a frame and scrolls it into view.
     *
     * @param {number | undefined} node
     * @param {boolean} [isCentred] true to scroll to the middle if the frame cannot be seen
     */
    focus(node, isCentred) {
        this.focusBox(this.findBox(node), isCentred);
    }

    /**
     * @param {Box | undefined} box
     * @param {boolean} [isCentred]
     */
    focusBox(box, isCentred) {
        if (!box) return;
        this.keepTabStop(box);
        this.reveal(box, isCentred);
        this.drawRows();
        box.item?.focus({ preventScroll: true });
    }

    /**
     * Leads the Tab key to a box, which keeps its element however far it is scrolled away.
     *
     * @param {Box} box
     */
    keepTabStop(box) {
        this.tabStop?.item?.setAttribute("tabindex", "-1");
        this.tabStop = box;
        box.item?.setAttribute("tabindex", "0");
    }

    /**
     * Scrolls as little as is needed to show a box. The function of a sandwich goes to the middle.
     *
     * @param {Box | undefined} box
     * @param {boolean} isCentred true to scroll to the middle if the box cannot be seen
     */
    reveal(box, isCentred = false) {
        const { element, frames, rowHeight, app: { view: { tree } } } = this;
        if (!box) return;
        const area = element.getBoundingClientRect(), isMiddle = isCentred || (tree.hasPivot && box.node === PIVOT);
        const top = frames.getBoundingClientRect().top + this.line(box) * rowHeight;
        const header = 6 + (this.axis.hasAttribute("hidden") ? 0 : AXIS_HEIGHT);
        const [above, below] = [top - area.top - header, top + rowHeight - area.bottom + 6];
        const distance = isMiddle && (above < 0 || below > 0) ? (above + below) / 2
            : above < 0 ? above : Math.max(0, below);
        this.scrollTo(element.scrollTop + distance);
    }

    /** Scrolls to the root, or to the node that has its place. @param {View} view */
    showBase(view) {
        const base = this.base(view);
        if (base !== 0) this.reveal(this.findBox(base), true);
        else if (view.rootAtTop && this.top === 0) return;
        else this.scrollTo(view.rootAtTop ? 0 : this.element.scrollHeight);
        this.drawRows();
    }
}

/**
 * Returns 1 for each name of the runtime, such as the standard library or a scheduler of tasks. The latter is own code
 * in a profile of itself.
 *
 * @param {string[]} names
 * @param {Uint8Array} looks
 * @param {string[]} modules
 */
function findRuntime({ length }, looks, modules) {
    const runtime = new Uint8Array(length);
    for (let name = 0; name < length; name++) {
        const kind = classOfName({ looks }, name);
        runtime[name] = Number(kind === RUNTIME_CLASS
            || (kind > 0 && SCHEDULERS.has(moduleOfName({ looks, modules }, name))));
    }
    return runtime;
}
