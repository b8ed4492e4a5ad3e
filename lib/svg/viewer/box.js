// Draws the box of a frame, and the time axis.

// The least width of a frame with a label, in pixels.
const NARROWEST_LABEL = 24;

// The least number of characters of a cut label, with the ellipsis.
const SHORTEST_CUT = 5;

// The height of the time axis of a flame chart, the distance of its labels and the width of a character there, and the
// height of first frames.
const AXIS_HEIGHT = 24, LABEL_DISTANCE = 28, LABEL_CHARACTER = 6.6, SLICE_HEIGHT = 4;

// The frame between two stacks, such as that of a blocked thread and that of its waker.
const DIVIDER = "--";

// The differences in percentage points from which frames have stronger colours.
const STEPS = [0.25, 2, 10];

/** Makes the elements of boxes. */
class BoxPainter {
    /** @param {Settings} settings */
    constructor(settings) {
        this.settings = settings;
        this.fits = createTextMeter(`${settings.fontSize}px ${settings.fontFamily}`);
        this.cutLabel = settings.keepLeft ? truncateRight : fitLabel;
    }

    /**
     * Creates the element of a box.
     *
     * @param {Box} box
     * @param {View} view
     * @param {number} y
     */
    createGroup(box, view, y) {
        const { node, row, x, width } = box, { rowHeight } = this.settings, { profile, tree } = view;
        const name = tree.name[node];
        const custom = node === 0 || box.folded || box.chain ? undefined : profile.elements.get(name);
        const group = /** @type {SVGElement} */ (custom?.cloneNode() ?? createSvg("g"));
        const label = box.folded ? this.describeFolded(box, view)
            : box.chain ? `${describeChain(box.chain, view)} (${formatShare(view.weights[node], view.whole)})`
            : custom?.getAttribute("data-title") ?? describeNode(view, node);
        const isDivider = node > 0 && !box.folded && profile.names[name] === DIVIDER;
        if (isDivider) this.createDivider(group, box, view, y);
        // The text is beside it: cut text is no part of its name.
        const rect = box.item = /** @type {SVGElement} */ (isDivider ? group.children[1] : createSvg("rect"));
        setAttributes(rect, { role: "treeitem", "aria-level": row + 1, "aria-label": label });
        if (isDivider) return group;
        const gap = width > 3 ? 1 : width > 1.5 ? 0.3 : 0, { isSlice } = box;
        setAttributes(rect, { x: x.toFixed(2), y: isSlice ? y + rowHeight - SLICE_HEIGHT - 1 : y,
            width: (width - gap).toFixed(2), height: isSlice ? SLICE_HEIGHT : rowHeight - 1,
            ...(width > 6 && !isSlice && { rx: 2 }) });
        group.append(rect);
        if (box.folded) {
            group.classList.add("folded");
            const text = [label, label.replace(/ \(.*/, "")].find(shown => this.fits(shown, width - 9));
            if (text) group.append(createText(text, x + 4, this.baseline(y), "ink"));
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
        const room = width - 9, name = nameOfNode(view, node), baseline = this.baseline(y);
        const label = chain ? chainLabels(chain, view).find(text => this.fits(text, room)) ?? ""
            : this.cutLabel(name, text => this.fits(text, room));
        // A few letters of a name say nothing.
        if (!label || (label.endsWith("…") && label.length < SHORTEST_CUT && label !== "…")) return;
        group.append(createText(label, x + 4, baseline, ink));
        const share = this.shareLabel(view, node);
        if (!this.fits(label + share, room - 14)) return;
        group.append(createText(share, x + width - 6, baseline, `share ${ink}`));
    }

    /**
     * Returns the baseline of the text in a row.
     *
     * @param {number} y
     */
    baseline(y) {
        const { fontSize, rowHeight } = this.settings;
        return (y + (rowHeight - 1) / 2 + fontSize * 0.35).toFixed(1);
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
        const { fontSize, rowHeight } = this.settings;
        const isBeforeWaker = node + 1 < tree.end[node] && classOfName(profile, tree.name[node + 1]) === WAKER_CLASS;
        const label = isBeforeWaker ? "woken by" : "";
        const isLabelled = label !== "" && this.fits(label, width - 24), middle = y + (rowHeight - 1) / 2;
        const start = isLabelled ? x + 12 + label.length * fontSize * 0.55 : x;
        group.classList.add("divider");
        const end = (x + width - 1).toFixed(1);
        group.append(createSvg("path", { d: `M${start.toFixed(1)},${middle}H${end}` }),
            createSvg("path", { d: `M${x.toFixed(1)},${y}H${end}v${rowHeight - 1}H${x.toFixed(1)}z`, class: "hit" }));
        if (isLabelled) group.append(createText(label, x + 4, middle + fontSize * 0.35, ""));
    }

    /**
     * @param {View} view
     * @param {number} node
     */
    shareLabel(view, node) {
        const { total, totals: [before, after] } = measureNode(view, node);
        if (view.tree.time && node > 0) return formatWeight(total, view.settings);
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
            const [before, after] = bySelf ? measureSelf(view, node).selves : measureNode(view, node).totals;
            const points = 100 * (after - before) * (negate ? -1 : 1), size = Math.abs(points);
            // Sampling alone changes small shares.
            const isNoise = node > 0 && !isSignificant(profile, tree.name[node], bySelf ? "self" : "total");
            const isSame = node === 0 || isNoise || (before > 0 && Math.abs(after / before - 1) < 0.12 && size < 2);
            const step = isSame ? 0 : STEPS.filter(least => size >= least).length;
            return `var(--${step === 0 ? "same" : `${points > 0 ? "grew" : "fell"}${step}`})`;
        }
        if (node === 0) return "var(--root)";
        return diffusion ? colourOfShare(view.weights[node] / view.whole) : colourOfName(profile, tree.name[node]);
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
}

/**
 * Creates a text in a box.
 *
 * @param {string} text
 * @param {number} x
 * @param {number | string} y
 * @param {string} kind
 */
function createText(text, x, y, kind) {
    return createSvg("text", { x: x.toFixed(1), y, class: kind }, text);
}

/**
 * Returns the colour of a share of the total, if colours are such shares.
 *
 * @param {number} share from 0 to 1
 */
function colourOfShare(share) {
    const other = Math.round(255 * (1 - Math.sqrt(share)));
    return `rgb(255,${other},${other})`;
}

/**
 * Draws the time axis of a flame chart.
 *
 * @param {SVGElement} axis
 * @param {number} width
 * @param {View} view
 */
function drawAxis(axis, width, { tree, weights, whole, settings, state: { zoom } }) {
    const start = findStart(tree, zoom), span = zoom === 0 ? tree.time?.span ?? whole : weights[zoom];
    const power = 10 ** Math.floor(Math.log10(LABEL_DISTANCE * span / width)), ticks = [], end = start + span;
    /** @param {number} step */
    const fits = step => step * width / span
        >= LABEL_DISTANCE + LABEL_CHARACTER * formatTick(end, step, end, settings).length;
    const step = [1, 2, 5, 10, 20, 50].map(factor => factor * power).find(fits) ?? 100 * power;
    for (let index = Math.ceil(start / step); index * step <= end; index++) {
        const x = (index * step - start) / span * width;
        const anchor = x < 30 ? "start" : x > width - 40 ? "end" : "middle";
        const text = index === 0 ? "0" : formatTick(index * step, step, end, settings);
        ticks.push(createSvg("path", { d: `M${x.toFixed(1)},${AXIS_HEIGHT - 5}v5` }),
            createSvg("text", { x: x.toFixed(1), y: AXIS_HEIGHT - 8, "text-anchor": anchor }, text));
    }
    setAttributes(axis, { width });
    axis.replaceChildren(...ticks);
}

/**
 * Returns labels for a chain of runtime frames, the longest first.
 *
 * @param {number[]} chain
 * @param {View} view
 */
function chainLabels(chain, view) {
    const [first, last] = [chain[0], chain[chain.length - 1]].map(node =>
        labelOfName(nameOfNode(view, node)).join(""));
    const count = `${chain.length} runtime frames`;
    return [`${count}: ${first} … ${last}`, count, `${chain.length} frames`, "…"];
}

/**
 * Describes a chain of runtime frames with the labels of the first and the last ones.
 *
 * @param {number[]} chain
 * @param {View} view
 */
function describeChain(chain, view) {
    const labels = chain.map(node => labelOfName(nameOfNode(view, node)).join(""));
    if (labels.length > 8) labels.splice(4, labels.length - 8, "…");
    return `${chain.length} runtime frames: ${labels.join(" → ")}`;
}

/**
 * Describes a node as screen readers and scrapers get it: `NAME (12 samples, 1.50%)`.
 *
 * @param {View} view
 * @param {number} node
 */
function describeNode(view, node) {
    const { total, totals: [before, after] } = measureNode(view, node), { side, whole } = view;
    const percent = node === 0 ? "100%" : `${formatFixed(whole > 0 ? 100 * total / whole : 0, 2)}%`;
    const share = side === "difference" && node > 0 ? formatChange(before, after) : percent;
    const weight = view.tree.time ? formatWeight(total, view.settings) : formatExactWeight(total, view.settings);
    return `${nameOfNode(view, node)} (${weight}, ${share})`;
}
