// Draws the boxes of the layout.

// The padding around the frames, in pixels.
const GRAPH_PADDING = 6;

// The least width of a drawn frame and of one with a label, in pixels.
const TOO_NARROW = 0.5, NARROWEST_LABEL = 24;

// The least width of a frame to which a search leads, in pixels.
const EASILY_SEEN = 20;

// The differences in percentage points from which frames have stronger colours.
const STEPS = [0.25, 2, 10];

/** @implements {Part} */
class Graph {
    /** @param {App} app */
    constructor(app) {
        const { settings } = app;
        this.app = app;
        this.rowHeight = settings.rowHeight;
        this.frames = createSvg("svg", { id: "frames", role: "tree", "aria-label": settings.title || "Flame graph" });
        this.empty = createHtml("p", { class: "empty" });
        this.element = createHtml("div", { class: "graph card" }, this.frames, this.empty);
        /** @type {DrawnBox[]} */
        this.drawn = [];
        /** @type {Map<Element, DrawnBox>} */
        this.boxes = new Map();
        this.undrawn = { frames: 0, weight: 0 };
        this.rows = 0;
        /** The width of the root frame. */
        this.width = 100;
        /** @type {LayoutInput | undefined} */
        this.input = undefined;
        this.fits = createTextMeter(`${settings.fontSize}px ${settings.fontFamily}`);
        this.cutLabel = settings.keepLeft ? truncateRight : fitLabel;
        this.layOut = memoize(this.computeLayout.bind(this));
        this.drawFrames = memoize(this.createFrames.bind(this));
    }

    /** Measures the room for the root frame. Measuring anew for each drawing would delay it. */
    measure() {
        const { app: { settings }, element: { clientWidth } } = this;
        if (settings.width > 0) this.width = settings.width - 20;
        else if (clientWidth > 0) this.width = Math.max(clientWidth - 2 * GRAPH_PADDING, 100);
    }

    /**
     * @param {Tree} tree
     * @param {Float64Array} weights
     * @param {Float64Array} own
     * @param {number} whole
     * @param {number} zoom
     * @param {boolean} byWeight
     * @param {number} width
     */
    computeLayout(tree, weights, own, whole, zoom, byWeight, width) {
        const minWidth = Math.max(this.app.settings.minWidth, TOO_NARROW);
        this.input = { tree, weights, own, whole, zoom, byWeight, width, minWidth };
        return layOut(this.input);
    }

    /** @param {View} view */
    draw(view) {
        const { tree, weights, own, whole, state: { zoom, changes } } = view;
        const layout = this.layOut(tree, weights, own, whole, zoom, Boolean(changes.sort), this.width);
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
        const { frames, app: { view } } = this, height = Math.max(1, layout.rows * this.rowHeight);
        const fromBottom = this.element.scrollHeight - this.element.scrollTop,
            hadFocus = frames.contains(document.activeElement);
        const focused = hadFocus ? this.findEventBox(document.activeElement) : undefined;
        this.rows = layout.rows;
        this.undrawn = layout.undrawn;
        this.drawn = layout.boxes.map(box => ({ ...box, group: this.createGroup(box, view) }));
        this.boxes = new Map(this.drawn.map(box => [box.group, box]));
        frames.replaceChildren(...this.boxes.keys());
        setAttributes(frames, { width: this.width, height, viewBox: `0 0 ${this.width} ${height}` });
        frames.classList.toggle("searching", matches !== null);
        frames.classList.toggle("difference", view.side === "difference");
        this.element.classList.toggle("upward", !rootAtTop);
        if (!rootAtTop) this.element.scrollTop = this.element.scrollHeight - fromBottom;
        if (!hadFocus) return;
        const box = this.findBox(focused?.node) ?? this.findBox(this.base(view));
        box?.group.focus({ preventScroll: true });
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
     * Creates the element of a box.
     *
     * @param {Box} box
     * @param {View} view
     */
    createGroup(box, view) {
        const { node, row, x, width } = box, { rowHeight } = this, { profile, tree } = view, name = tree.name[node];
        const y = (view.rootAtTop ? row : this.rows - 1 - row) * rowHeight;
        const custom = node === 0 || box.folded ? undefined : profile.elements.get(name);
        const group = /** @type {SVGElement} */ (custom?.cloneNode() ?? createSvg("g"));
        const label = box.folded ? this.describeFolded(box.folded, view)
            : custom?.getAttribute("data-title") ?? describeNode(view, node);
        setAttributes(group, { role: "treeitem", "aria-level": row + 1, "aria-label": label,
            tabindex: node === this.base(view) && !box.folded ? 0 : -1 });
        const gap = width > 3 ? 1 : width > 1.5 ? 0.3 : 0;
        const rect = createSvg("rect", { x: x.toFixed(2), y, width: (width - gap).toFixed(2), height: rowHeight - 1,
            ...(width > 6 && { rx: 2 }) });
        group.append(rect);
        if (box.folded) {
            group.classList.add("folded");
            return group;
        }
        const traits = node === 0 ? 0 : profile.looks[LOOKS * name + 3];
        rect.setAttribute("fill", this.colour(view, node));
        if (traits & STATE) group.classList.add("state");
        if (box.above) group.classList.add("above");
        if (node === PIVOT && tree.hasPivot) group.classList.add("pivot");
        if (node > 0 && view.match.names?.[name]) group.classList.add("match");
        const ink = this.inkOf(view, node, traits);
        if (ink !== "ink") group.classList.add("own");
        if (width >= NARROWEST_LABEL) this.appendLabels(group, box, view, y, ink);
        return group;
    }

    /**
     * Appends the label of a frame and, if there is room, its share.
     *
     * @param {SVGElement} group
     * @param {Box} box
     * @param {View} view
     * @param {number} y
     * @param {string} ink class of the text's colour
     */
    appendLabels(group, { node, x, width }, view, y, ink) {
        const { app: { settings: { fontSize } } } = this, room = width - 9, name = nameOfNode(view, node);
        const baseline = y + (this.rowHeight - 1) / 2 + fontSize * 0.35;
        const label = this.cutLabel(name, text => this.fits(text, room));
        // One letter of a name says nothing.
        if (label.length < 3 && label !== name) return;
        group.append(createSvg("text", { x: (x + 4).toFixed(1), y: baseline.toFixed(1), class: ink }, label));
        const share = this.shareLabel(view, node);
        if (!this.fits(label + share, room - 14)) return;
        const right = (x + width - 6).toFixed(1);
        group.append(createSvg("text", { class: `share ${ink}`, x: right, y: baseline.toFixed(1) }, share));
    }

    /**
     * @param {View} view
     * @param {number} node
     */
    shareLabel(view, node) {
        const { total, totals: [before, after] } = measureNode(view, node);
        if (view.side !== "difference" || node === 0) return formatShare(total, view.whole);
        return (before === 0 ? "new " : "") + formatSigned(100 * (after - before), formatPoint);
    }

    /**
     * Returns the colour of a frame.
     *
     * @param {View} view
     * @param {number} node
     */
    colour(view, node) {
        const { profile, tree, settings: { bySelf, negate, diffusion } } = view;
        if (view.side === "difference") {
            const { totals, selves } = measureNode(view, node), [before, after] = bySelf ? selves : totals;
            const points = 100 * (after - before) * (negate ? -1 : 1), size = Math.abs(points);
            // Sampling alone changes small shares.
            const isSame = node === 0 || (before > 0 && Math.abs(after / before - 1) < 0.12 && size < 2);
            const step = isSame ? 0 : STEPS.filter(least => size >= least).length;
            return `var(--${step === 0 ? "same" : `${points > 0 ? "grew" : "fell"}${step}`})`;
        }
        if (node === 0) return "var(--root)";
        if (diffusion) {
            const other = Math.round(255 * (1 - Math.sqrt(view.weights[node] / view.whole)));
            return `rgb(255,${other},${other})`;
        }
        return colourOfName(profile, tree.name[node]);
    }

    /**
     * Returns the class of the colour of a frame's text. Only colours of the theme have text of the theme.
     *
     * @param {View} view
     * @param {number} node
     * @param {number} traits
     */
    inkOf({ side, settings: { diffusion } }, node, traits) {
        if (side === "difference" || node === 0 || (!diffusion && traits >> CLASS_SHIFT > 0)) return "ink";
        return traits & DARK && !diffusion ? "white" : "black";
    }

    /**
     * @param {number[]} nodes
     * @param {View} view
     */
    describeFolded(nodes, view) {
        const weight = nodes.reduce((sum, node) => sum + view.weights[node], 0);
        const frames = nodes.reduce((sum, node) => sum + countFrames(view, node), 0);
        const amount = `${formatWeight(weight, view.settings)}, ${formatShare(weight, view.whole)}`;
        return `${formatThings(frames, "frames")} too narrow to draw (${amount})`;
    }

    /**
     * Marks the selected function everywhere.
     *
     * @param {View} view
     */
    mark({ tree, state: { selected } }) {
        for (const { node, group, folded } of this.drawn) {
            const isPlace = !folded && node > 0 && selected?.name === tree.name[node];
            group.classList.toggle("place", isPlace);
            group.classList.toggle("selected", isPlace && selected?.node === node);
        }
    }

    /**
     * Outlines all frames of a function, or none.
     *
     * @param {number | undefined} name
     */
    highlight(name) {
        const { tree } = this.app.view;
        for (const { node, group, folded } of this.drawn) {
            group.classList.toggle("lit", !folded && node > 0 && tree.name[node] === name);
        }
    }

    /**
     * Returns the drawn box of a node, if it has one of its own.
     *
     * @param {number | undefined} node
     */
    findBox(node) {
        return this.drawn.find(box => box.node === node && !box.folded);
    }

    /**
     * Returns the box that contains an element.
     *
     * @param {unknown} target
     */
    findEventBox(target) {
        const group = target instanceof Element ? target.closest("#frames > *") : null;
        return group ? this.boxes.get(group) : undefined;
    }

    /**
     * Moves the focus to a frame and scrolls it into view.
     *
     * @param {number | undefined} node
     */
    focus(node) {
        const box = this.findBox(node);
        if (!box) return;
        for (const other of this.drawn) other.group.setAttribute("tabindex", other === box ? "0" : "-1");
        box.group.focus({ preventScroll: true });
        this.reveal(box);
    }

    /**
     * Scrolls as little as is needed to show a box. The function of a sandwich goes to the middle.
     *
     * @param {DrawnBox | undefined} box
     * @param {boolean} isCentred true to scroll to the middle if the box cannot be seen
     */
    reveal(box, isCentred = false) {
        const rect = box?.group.querySelector("rect")?.getBoundingClientRect(), { element } = this;
        if (!box || !rect) return;
        const area = element.getBoundingClientRect(), isMiddle = isCentred || box.group.classList.contains("pivot");
        const [above, below] = [rect.top - area.top - 6, rect.bottom - area.bottom + 6];
        if (isMiddle && (above < 0 || below > 0)) element.scrollTop += (above + below) / 2;
        else if (above < 0) element.scrollTop += above;
        else if (below > 0) element.scrollTop += below;
    }

    /** Scrolls to the root, or to the node that has its place. @param {View} view */
    showBase(view) {
        const base = this.base(view);
        if (base !== 0) this.reveal(this.findBox(base), true);
        else this.element.scrollTop = view.rootAtTop ? 0 : this.element.scrollHeight;
    }
}

/**
 * Describes a node as screen readers and scrapers get it: `NAME (12 samples, 1.50%)`.
 *
 * @param {View} view
 * @param {number} node
 */
function describeNode(view, node) {
    const { total, totals: [before, after] } = measureNode(view, node), { side, whole } = view;
    const percent = node === 0 ? "100%" : `${NUMBER_FORMATS[2].format(whole > 0 ? 100 * total / whole : 0)}%`;
    const share = side === "difference" && node > 0 ? formatChange(before, after) : percent;
    return `${nameOfNode(view, node)} (${formatExactWeight(total, view.settings)}, ${share})`;
}
