// Draws the boxes of the layout.

// The padding around the frames, in pixels.
const GRAPH_PADDING = 6;

// The least width of a drawn frame and of one with a label, in pixels.
const TOO_NARROW = 0.5, NARROWEST_LABEL = 24;

// The least width of a frame to which a search leads, in pixels.
const EASILY_SEEN = 20;

// The height of the time axis of a flame chart and the distance of its ticks, and the height of first frames.
const AXIS_HEIGHT = 24, TICK_DISTANCE = 90, SLICE_HEIGHT = 4;

// The frame between two stacks, such as that of a blocked thread and that of its waker.
const DIVIDER = "--";

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
        this.axis = createSvg("svg", { class: "axis", height: AXIS_HEIGHT, "aria-hidden": "true" });
        this.element = createHtml("div", { class: "graph card" }, ...(settings.isChart ? [this.axis] : []), this.frames,
            this.empty);
        /** @type {Layout} */
        this.layout = { boxes: [], rows: 0, undrawn: { frames: 0, weight: 0 } };
        /** @type {Map<Element, Box>} The boxes that have an element: those near the visible part. */
        this.drawn = new Map();
        /** @type {Box | undefined} The box to which the Tab key leads. It always has an element. */
        this.tabStop = undefined;
        /** The function whose frames are outlined, and the class of colours that stands out. */
        this.lit = this.kind = /** @type {number | undefined} */ (undefined);
        /** True while all rows are drawn, for printing. */
        this.isWhole = false;
        /** The width of the root frame. */
        this.width = 100;
        /** @type {LayoutInput | undefined} */
        this.input = undefined;
        this.fits = createTextMeter(`${settings.fontSize}px ${settings.fontFamily}`);
        this.cutLabel = settings.keepLeft ? truncateRight : fitLabel;
        this.layOut = memoize(this.computeLayout.bind(this));
        this.drawFrames = memoize(this.createFrames.bind(this));
        this.findRuntime = memoize(findRuntime);
        this.element.addEventListener("scroll", () => this.drawRows(), { passive: true });
        for (const name of ["beforeprint", "afterprint"]) {
            window.addEventListener(name, () => {
                this.isWhole = name === "beforeprint";
                this.drawRows();
            });
        }
    }

    /** Measures the room for the root frame. Measuring anew for each drawing would delay it. */
    measure() {
        const { app: { settings }, element: { clientWidth, offsetWidth } } = this;
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
        const { isChart, minWidth: least } = this.app.settings, minWidth = Math.max(least, TOO_NARROW);
        const byWeight = sort === (isChart ? "weight" : "") || sort === "weight";
        this.input = { tree, weights, own, whole, zoom, byWeight, isChart, runtime, unfolded, width, minWidth };
        return layOut(this.input);
    }

    /** @param {View} view */
    draw(view) {
        const { tree, weights, own, whole, profile, settings, state: { zoom, changes, unfolded } } = view;
        const runtime = changes.fold || settings.isChart ? undefined : this.findRuntime(profile.names, profile.looks);
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
        const fromBottom = element.scrollHeight - element.scrollTop, hadFocus = frames.contains(document.activeElement);
        const focused = hadFocus ? this.findEventBox(document.activeElement) : undefined;
        for (const box of this.drawn.values()) box.group = undefined;
        this.drawn.clear();
        frames.replaceChildren();
        this.layout = layout;
        this.tabStop = this.findBox(this.base(view));
        frames.append(...(layout.lanes ?? []).map(lane => this.createLaneName(lane, view)));
        if (this.app.settings.isChart) this.drawAxis(view);
        setAttributes(frames, { width: this.width, height, viewBox: `0 0 ${this.width} ${height}` });
        frames.classList.toggle("searching", matches !== null);
        frames.classList.toggle("difference", view.side === "difference");
        element.classList.toggle("upward", !rootAtTop);
        if (!rootAtTop) element.scrollTop = element.scrollHeight - fromBottom;
        if (hadFocus) this.tabStop = this.findBox(focused?.node) ?? this.tabStop;
        this.drawRows();
        if (hadFocus) this.tabStop?.group?.focus({ preventScroll: true });
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
            const group = box.group = this.createGroup(box, view);
            drawn.set(group, box);
            this.markBox(box, view);
            groups.push(group);
        }
        frames.append(...groups);
    }

    /** Returns the first line to be drawn and the one after the last, counted from the top. */
    nearRows() {
        const { element: { scrollTop, clientHeight }, rowHeight } = this, height = clientHeight || innerHeight;
        if (this.isWhole) return [0, Infinity];
        const spare = Math.ceil(height / 4);
        return [(scrollTop - spare) / rowHeight, (scrollTop + height + spare) / rowHeight];
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
    createLaneName({ name, row }, { profile, functions, whole }) {
        const y = (this.app.view.rootAtTop ? row : this.layout.rows - 1 - row) * this.rowHeight + this.rowHeight - 6;
        const text = `${profile.names[name]}  ${formatShare(functions.total[name], whole)}`;
        return createSvg("text", { class: "lane", x: 2, y }, text);
    }

    /** Draws the time axis of a flame chart. @param {View} view */
    drawAxis({ tree, weights, whole, settings, state: { zoom } }) {
        const { axis, width } = this, start = findStart(tree, zoom), span = zoom === 0 ? whole : weights[zoom];
        const least = TICK_DISTANCE * span / width, power = 10 ** Math.floor(Math.log10(least)), ticks = [];
        const step = ([1, 2, 5].find(factor => factor * power >= least) ?? 10) * power;
        for (let index = Math.ceil(start / step); index * step <= start + span; index++) {
            const x = (index * step - start) / span * width;
            const anchor = x < 30 ? "start" : x > width - 40 ? "end" : "middle";
            const text = index === 0 ? "0" : formatWeight(index * step, settings);
            ticks.push(createSvg("path", { d: `M${x.toFixed(1)},${AXIS_HEIGHT - 5}v5` }),
                createSvg("text", { x: x.toFixed(1), y: AXIS_HEIGHT - 8, "text-anchor": anchor }, text));
        }
        setAttributes(axis, { width });
        axis.replaceChildren(...ticks);
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
        const y = this.line(box) * rowHeight;
        const custom = node === 0 || box.folded || box.chain ? undefined : profile.elements.get(name);
        const group = /** @type {SVGElement} */ (custom?.cloneNode() ?? createSvg("g"));
        const label = box.folded ? this.describeFolded(box, view)
            : box.chain ? `${describeChain(box.chain, view)} (${formatShare(view.weights[node], view.whole)})`
            : custom?.getAttribute("data-title") ?? describeNode(view, node);
        setAttributes(group, { role: "treeitem", "aria-level": row + 1, "aria-label": label,
            tabindex: box === this.tabStop ? 0 : -1 });
        if (node > 0 && !box.folded && profile.names[name] === DIVIDER) return this.createDivider(group, box, view, y);
        const gap = width > 3 ? 1 : width > 1.5 ? 0.3 : 0, { isSlice } = box;
        const rect = createSvg("rect", { x: x.toFixed(2), y: isSlice ? y + rowHeight - SLICE_HEIGHT - 1 : y,
            width: (width - gap).toFixed(2), height: isSlice ? SLICE_HEIGHT : rowHeight - 1,
            ...(width > 6 && !isSlice && { rx: 2 }) });
        group.append(rect);
        if (box.folded) {
            group.classList.add("folded");
            return group;
        }
        const traits = node === 0 ? 0 : profile.looks[LOOKS * name + 3];
        rect.setAttribute("fill", this.colour(view, node));
        if (traits & STATE) group.classList.add("state");
        if (box.chain) group.classList.add(view.side === "difference" ? "chained" : "chain");
        if (box.above) group.classList.add("above");
        if (node === PIVOT && tree.hasPivot) group.classList.add("pivot");
        if (node > 0 && (box.chain ?? [node]).some(other => view.match.names?.[tree.name[other]])) {
            group.classList.add("match");
        }
        const ink = this.inkOf(view, node, traits);
        if (ink !== "ink") group.classList.add("own");
        if (isSlice) group.classList.add("slice");
        else if (width >= NARROWEST_LABEL) this.appendLabels(group, box, view, y, ink);
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
    appendLabels(group, { node, chain, x, width }, view, y, ink) {
        const { app: { settings: { fontSize } } } = this, room = width - 9, name = nameOfNode(view, node);
        const baseline = y + (this.rowHeight - 1) / 2 + fontSize * 0.35;
        const label = chain ? chainLabels(chain, view).find(text => this.fits(text, room)) ?? ""
            : this.cutLabel(name, text => this.fits(text, room));
        // One letter of a name says nothing.
        if (label.length < 3 && label !== name && label !== "…") return;
        group.append(createSvg("text", { x: (x + 4).toFixed(1), y: baseline.toFixed(1), class: ink }, label));
        const share = this.shareLabel(view, node);
        if (!this.fits(label + share, room - 14)) return;
        const right = (x + width - 6).toFixed(1);
        group.append(createSvg("text", { class: `share ${ink}`, x: right, y: baseline.toFixed(1) }, share));
    }

    /**
     * Draws the frame between a blocked stack and the stack of its waker as a line.
     *
     * @param {SVGElement} group
     * @param {Box} box
     * @param {View} view
     * @param {number} y
     */
    createDivider(group, { node, x, width }, { tree, profile }, y) {
        const { app: { settings: { fontSize } }, rowHeight } = this;
        const isBeforeWaker = node + 1 < tree.end[node] && classOfName(profile, tree.name[node + 1]) === WAKER_CLASS;
        const label = isBeforeWaker ? "woken by" : "";
        const isLabelled = label !== "" && this.fits(label, width - 24), middle = y + (rowHeight - 1) / 2;
        const start = isLabelled ? x + 12 + label.length * fontSize * 0.55 : x;
        group.classList.add("divider");
        group.append(createSvg("path", { d: `M${start.toFixed(1)},${middle}H${(x + width - 1).toFixed(1)}` }));
        if (isLabelled) group.append(createSvg("text", { x: x + 4, y: middle + fontSize * 0.35 }, label));
        return group;
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
            const isNoise = node > 0 && !isSignificant(profile, tree.name[node], bySelf ? "self" : "total");
            const isSame = node === 0 || isNoise || (before > 0 && Math.abs(after / before - 1) < 0.12 && size < 2);
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
        const isOfTheme = !diffusion && (traits & ~SIGNIFICANT) >> CLASS_SHIFT > 0;
        if (side === "difference" || node === 0 || isOfTheme) return "ink";
        return traits & DARK && !diffusion ? "white" : "black";
    }

    /**
     * @param {Box} box
     * @param {View} view
     */
    describeFolded({ folded = [], frames = 0 }, view) {
        const weight = folded.reduce((sum, node) => sum + view.weights[node], 0);
        const amount = `${formatWeight(weight, view.settings)}, ${formatShare(weight, view.whole)}`;
        return `${formatThings(frames, "frames")} too narrow to draw (${amount})`;
    }

    /**
     * Marks the selected function everywhere.
     *
     * @param {View} view
     */
    mark(view) {
        for (const box of this.drawn.values()) this.markBox(box, view);
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
     */
    focus(node) {
        const box = this.findBox(node);
        if (!box) return;
        this.tabStop?.group?.setAttribute("tabindex", "-1");
        this.tabStop = box;
        this.reveal(box);
        this.drawRows();
        box.group?.setAttribute("tabindex", "0");
        box.group?.focus({ preventScroll: true });
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
        const header = 6 + (this.axis.isConnected ? AXIS_HEIGHT : 0);
        const [above, below] = [top - area.top - header, top + rowHeight - area.bottom + 6];
        if (isMiddle && (above < 0 || below > 0)) element.scrollTop += (above + below) / 2;
        else if (above < 0) element.scrollTop += above;
        else if (below > 0) element.scrollTop += below;
    }

    /** Scrolls to the root, or to the node that has its place. @param {View} view */
    showBase(view) {
        const base = this.base(view);
        if (base !== 0) this.reveal(this.findBox(base), true);
        else this.element.scrollTop = view.rootAtTop ? 0 : this.element.scrollHeight;
        this.drawRows();
    }
}

/**
 * Returns 1 for each name of the runtime, such as the standard library.
 *
 * @param {string[]} names
 * @param {Uint8Array} looks
 */
function findRuntime({ length }, looks) {
    return Uint8Array.from({ length }, (_, name) => Number(classOfName({ looks }, name) === RUNTIME_CLASS));
}

/**
 * Returns labels for a chain of runtime frames, the longest first.
 *
 * @param {number[]} chain
 * @param {View} view
 */
function chainLabels(chain, view) {
    const [first, last] = [chain[0], chain[chain.length - 1]].map(node =>
        createNameLabel(nameOfNode(view, node)).textContent);
    const count = `${chain.length} runtime frames`;
    return [`${count}: ${first} … ${last}`, count, `${chain.length} frames`, "…"];
}

/**
 * Describes a chain of runtime frames with all their names.
 *
 * @param {number[]} chain
 * @param {View} view
 */
function describeChain(chain, view) {
    return `${chain.length} runtime frames: ${chain.map(node => nameOfNode(view, node)).join(" → ")}`;
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
