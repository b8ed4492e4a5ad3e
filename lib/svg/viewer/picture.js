// Draws the visible part of a tree: the node in view over the whole width, its callers below it, and its callees as far
// as they are wide enough.

const SVG = "http://www.w3.org/2000/svg";

// The margin left and right, and the least width of a drawn frame, in pixels.
const SIDE = 10, TOO_NARROW = 0.5;

// The least width of a frame to which a search leads, in pixels.
const EASILY_SEEN = 20;

/**
 * Creates an SVG element.
 *
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {(Node | string)[]} children
 */
function createSvg(name, attributes = {}, ...children) {
    const element = document.createElementNS(SVG, name);
    setAttributes(element, attributes);
    element.append(...children);
    return element;
}

/**
 * @param {Element} element
 * @param {Attributes} attributes
 */
function setAttributes(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}

class Picture {
    /**
     * @param {GraphElement} root
     * @param {Profile} profile
     */
    constructor(root, profile) {
        const { dataset } = root;
        this.root = root;
        this.profile = profile;
        this.tree = profile.tree;
        /** The node over the whole width. */
        this.view = 0;
        this.byWeight = false;
        this.inverted = false;
        /** @type {Uint8Array | null} 1 for each name that matches the search; null without a search. */
        this.matches = null;
        /** @type {DrawnBox[]} */
        this.drawn = [];
        /** @type {Tree | undefined} The tree that was drawn last. */
        this.drawnTree = undefined;
        this.undrawn = { frames: 0, weight: 0 };
        this.frames = /** @type {SVGGElement} */ (root.querySelector("#frames:not(.still)"));
        /** @type {Map<Element, DrawnBox>} */
        this.boxes = new Map();
        /** @type {number[]} */
        this.nameHashes = [];
        this.countName = dataset.countName;
        this.factor = Number(dataset.factor);
        this.rowHeight = Number(dataset.frameHeight);
        this.minWidth = Math.max(Number(dataset.narrowest), TOO_NARROW);
        this.sign = dataset.negate ? -1 : 1;
        this.bySelf = Boolean(dataset.self);
        this.diffusion = Boolean(dataset.diffusion);
        this.cutLabel = dataset.keepLeft ? truncateRight : fitLabel;
        this.fontSize = Number(root.getAttribute("font-size"));
        this.width = Number(root.getAttribute("width"));
        this.height = Number(root.getAttribute("height"));
        this.top = Number(dataset.top);
        this.bottom = this.fontSize * 2 + 10;
        this.countFormat = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0, roundingMode: "halfEven" });
        this.percentFormat = new Intl.NumberFormat("en-US",
            { minimumFractionDigits: 2, maximumFractionDigits: 2, useGrouping: false, roundingMode: "halfEven" });
        this.fits = createTextMeter(root);
    }

    /** The weight that the whole width represents: the file says it for the profile's tree only. */
    get whole() {
        return this.tree === this.profile.tree ? this.profile.whole : this.tree.total[0];
    }

    /** The bottommost node: the one in view, or, in a sandwich without zoom, the function. */
    get base() {
        return this.view === 0 && this.tree.lower ? 1 : this.view;
    }

    /**
     * True if a node is one of the callers in a sandwich.
     *
     * @param {number} node
     */
    isLower(node) {
        return this.tree.lower !== undefined && node >= this.tree.lower;
    }

    /** @param {number} node */
    weight(node) {
        return node === 0 ? this.whole : this.tree.total[node];
    }

    /** @param {number} node */
    name(node) {
        return node === 0 ? "all" : this.profile.names[this.tree.name[node]];
    }

    /**
     * @param {number} weight
     * @param {number} [whole]
     */
    formatPercent(weight, whole = this.whole) {
        return `${this.percentFormat.format(whole > 0 ? 100 * weight / whole : 0)}%`;
    }

    /** @param {number} weight */
    formatWeight(weight) {
        return `${this.countFormat.format(weight * this.factor)} ${this.countName}`;
    }

    /** @param {number} node */
    title(node) {
        const share = node === 0 ? "100%" : this.formatPercent(this.weight(node));
        return `${this.name(node)} (${this.formatWeight(this.weight(node))}, ${share}${this.formatDelta(node)})`;
    }

    /** @param {number} node */
    formatDelta(node) {
        if (!this.profile.differential || node === 0) return "";
        const percent = this.formatPercent(this.delta(node));
        if (percent === "0.00%" || percent === "-0.00%") return "; 0.00%";
        return `; ${percent.startsWith("-") ? "" : "+"}${percent}`;
    }

    /** @param {number} node */
    delta(node) {
        const { own, ownBefore, total, totalBefore } = this.tree;
        const [after, before] = this.bySelf ? [own, ownBefore] : [total, totalBefore];
        return this.sign * (after[node] - (before?.[node] ?? 0));
    }

    /**
     * Returns the nodes from the root to a node, inclusive.
     *
     * @param {number} node
     */
    path(node) {
        const path = [node];
        while (node !== 0) path.push(node = this.tree.parent[node]);
        return path.reverse();
    }

    /**
     * Returns a text that identifies a node by its path, in every picture of such stacks.
     *
     * @param {number} node
     */
    formatLink(node) {
        /** @type {[number, number]} */
        const start = [0, 0];
        return joinHashes(this.path(node).slice(1).reduce((hashes, step) => this.hashNode(hashes, step), start));
    }

    /**
     * Returns the node that a link identifies, or the root.
     *
     * @param {string} link
     */
    findNode(link) {
        const { parent } = this.tree;
        const first = new Uint32Array(parent.length), second = new Uint32Array(parent.length);
        for (let node = 1; node < parent.length; node++) {
            const hashes = this.hashNode([first[parent[node]], second[parent[node]]], node);
            if (joinHashes(hashes) === link) return node;
            [first[node], second[node]] = hashes;
        }
        return 0;
    }

    /**
     * Returns the hashes of a path from those of its callers.
     *
     * @param {[number, number]} hashes
     * @param {number} node
     * @returns {[number, number]}
     */
    hashNode([first, second], node) {
        const { parent, name: { [node]: name } } = this.tree;
        // Callers in a sandwich differ from callees with the same names.
        if (this.isLower(node) && !this.isLower(parent[node])) first = ~first >>> 0;
        this.nameHashes[name] ??= hashText(this.profile.names[name]);
        return [mixHash(first, this.nameHashes[name], 0x01000193), mixHash(second, this.nameHashes[name], 0x85ebca6b)];
    }

    /**
     * Returns the nodes that are drawn on a node: its callees, or its callers if it is in the lower half of a sandwich.
     *
     * @param {number} node
     * @param {number} direction 1 towards callees, -1 towards callers
     */
    children(node, direction) {
        const { parent, end, lower, total } = this.tree, children = [];
        const [first, last] = lower && direction < 0 && node < lower ? [lower, parent.length] : [node + 1, end[node]];
        for (let child = first; child < last; child = end[child]) {
            if (total[child] > 0) children.push(child);
        }
        if (this.byWeight) children.sort((a, b) => total[b] - total[a]);
        return children;
    }

    /**
     * Returns the nodes with a weight from left to right, a caller before its callees, and the callers of a sandwich
     * last.
     */
    nodesInOrder() {
        const { parent, total, lower } = this.tree, nodes = [];
        if (!this.byWeight) {
            for (let node = 1; node < parent.length; node++) if (total[node] > 0) nodes.push(node);
            return nodes;
        }
        const pending = lower ? this.children(1, -1).reverse() : [];
        for (let node = /** @type {number | undefined} */ (0); node !== undefined; node = pending.pop()) {
            if (node > 0) nodes.push(node);
            for (const child of this.children(node, 1).reverse()) pending.push(child);
        }
        return nodes;
    }

    /**
     * Returns the node to zoom to so that a node is easily seen: the current view if it is drawn, else the outermost.
     *
     * @param {number} node
     */
    findView(node) {
        if (this.findBox(node)) return this.view;
        const scale = (this.width - 2 * SIDE) * this.tree.total[node], minWidth = Math.max(this.minWidth, EASILY_SEEN);
        return this.path(node).find(view => scale / this.weight(view) >= minWidth) ?? node;
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
     * Returns the number of nodes with a weight in a range.
     *
     * @param {number} first
     * @param {number} end
     */
    countFrames(first, end) {
        const { tree } = this, { total } = tree;
        if (!tree.weightedBefore) {
            const counts = tree.weightedBefore = new Uint32Array(total.length + 1);
            for (let node = 0; node < total.length; node++) counts[node + 1] = counts[node] + Number(total[node] > 0);
        }
        return tree.weightedBefore[end] - tree.weightedBefore[first];
    }

    draw() {
        this.undrawn = { frames: 0, weight: 0 };
        const boxes = this.tree.lower ? this.layOutSandwich(this.tree.lower) : this.layOut(this.view, 1);
        const rows = boxes.reduce((rows, box) => Math.max(rows, box.row + 1), 0);
        const height = Math.ceil(rows * this.rowHeight + this.top + this.bottom);
        // While the tree is the same, the height only grows, so that zooming does not move what was clicked.
        this.height = this.tree === this.drawnTree ? Math.max(this.height, height) : height;
        this.drawnTree = this.tree;
        this.drawn = boxes.map(box => ({ ...box, group: this.createGroup(box) }));
        this.boxes = new Map(this.drawn.map(box => [box.group, box]));
        this.frames.replaceChildren(...this.boxes.keys());
    }

    /**
     * Returns the boxes of a node, of the nodes that it is drawn on, and of those drawn on it.
     *
     * @param {number} view
     * @param {number} direction 1 towards callees, -1 towards callers
     * @param {number} [first] index in the path of the first node to draw
     */
    layOut(view, direction, first = 0) {
        const inner = this.width - 2 * SIDE, scale = inner / this.weight(view);
        /** @type {Box[]} */
        const boxes = this.path(view).slice(first)
            .map((node, step) => ({ node, row: step * direction, x: SIDE, width: inner, above: node !== view }));
        const pending = boxes.slice(-1);
        for (let next = pending.pop(); next; next = pending.pop()) {
            for (const box of this.layOutChildren(next, scale, direction)) {
                boxes.push(box);
                if (!box.folded) pending.push(box);
            }
        }
        return boxes;
    }

    /**
     * Returns the boxes of a function with its callees above and its callers below. Each half has its own zoom.
     *
     * @param {number} lower
     */
    layOutSandwich(lower) {
        const isLower = this.view >= lower;
        const callees = this.layOut(isLower ? 1 : this.base, 1, 1);
        const callers = this.layOut(isLower ? this.view : 1, -1, 1);
        const lowest = callers.reduce((lowest, { row }) => Math.min(lowest, row), 0);
        // Both halves have the function as their first box.
        return [...callees, ...callers.slice(1)].map(box => ({ ...box, row: box.row - lowest }));
    }

    /**
     * Returns the boxes that are drawn on a box. Adjacent ones that are too narrow to draw share a box.
     *
     * @param {Box} box
     * @param {number} scale pixels per weight
     * @param {number} direction
     */
    layOutChildren({ node, row, x }, scale, direction) {
        const { tree } = this, startsAtLeft = direction < 0 && !this.isLower(node);
        /** @type {Box[]} */
        const boxes = [];
        let left = startsAtLeft ? x : x + tree.own[node] * scale;
        /** @type {(Box & { folded: number[] }) | null} */
        let folded = null;
        for (const child of this.children(node, direction)) {
            const box = { node: child, row: row + direction, x: left, width: tree.total[child] * scale };
            left += box.width;
            if (box.width >= this.minWidth) {
                boxes.push(box);
                folded = null;
                continue;
            }
            this.undrawn.frames += this.countFrames(child, tree.end[child]);
            this.undrawn.weight += tree.total[child];
            if (folded) {
                folded.width = left - folded.x;
                folded.folded.push(child);
            } else {
                boxes.push(folded = { ...box, folded: [child] });
            }
        }
        return boxes.filter(box => box.width >= this.minWidth);
    }

    /**
     * Returns the neighbour of a box: in its column the widest, in its row the nearest.
     *
     * @param {DrawnBox} box
     * @param {string} direction
     */
    findNeighbour({ node, row, x }, direction) {
        const { parent } = this.tree, frames = this.drawn.filter(box => !box.folded);
        const step = direction === "up" ? 1 : direction === "down" ? -1 : 0;
        const otherRow = row + (this.inverted ? -step : step);
        const candidates = step !== 0
            ? frames.filter(box => box.row === otherRow && (parent[box.node] === node || parent[node] === box.node))
            : frames.filter(box => box.row === row && (direction === "left" ? box.x < x : box.x > x));
        /** @param {DrawnBox} box */
        const distance = box => (step !== 0 ? -box.width : Math.abs(box.x - x));
        if (candidates.length === 0) return undefined;
        return candidates.reduce((best, box) => (distance(box) < distance(best) ? box : best));
    }

    /** @param {number} row */
    rowTop(row) {
        const fromBottom = this.height - this.bottom - (row + 1) * this.rowHeight + 1;
        return this.inverted ? this.top + row * this.rowHeight : fromBottom;
    }

    /**
     * Creates the element of a box.
     *
     * @param {Box} box
     */
    createGroup(box) {
        const { node, row, x, width } = box, y = this.rowTop(row), custom = this.customElement(box);
        const group = /** @type {SVGElement} */ (custom?.cloneNode() ?? createSvg("g"));
        const tabindex = node === this.base && !box.folded ? 0 : -1;
        setAttributes(group, { tabindex, role: "treeitem", "aria-level": row + 1 });
        const rect = createSvg("rect", { x: x.toFixed(2), y, width: width.toFixed(2), height: this.rowHeight - 1 });
        const title = box.folded ? this.foldedTitle(box.folded) : custom?.dataset.title ?? this.title(node);
        group.append(createSvg("title", {}, title), rect);
        if (box.folded) {
            group.setAttribute("class", "folded");
            return group;
        }
        const traits = this.traits(node), [colour, isDark] = this.colour(box, traits);
        rect.setAttribute("fill", colour);
        if (traits & STATE) group.classList.add("state");
        if (box.above) group.classList.add("parent");
        if (node === 1 && this.tree.lower) group.classList.add("pivot");
        if (node > 0 && this.matches?.[this.tree.name[node]]) group.classList.add("match");
        const label = width < this.fontSize ? "" : this.cutLabel(this.name(node), text => this.fits(text, width - 6));
        if (label) {
            const place = { x: (x + 3).toFixed(1), y: y + this.rowHeight / 2 + this.fontSize * 0.3 };
            group.append(createSvg("text", { ...place, ...(isDark && { fill: "#fff" }) }, label));
        }
        return group;
    }

    /**
     * Returns the element that the name of a box has of its own.
     *
     * @param {Box} box
     */
    customElement({ node, folded }) {
        return node === 0 || folded ? undefined : this.profile.elements.get(this.tree.name[node]);
    }

    /** @param {number[]} nodes */
    foldedTitle(nodes) {
        const weight = nodes.reduce((sum, node) => sum + this.tree.total[node], 0);
        const frames = nodes.reduce((sum, node) => sum + this.countFrames(node, this.tree.end[node]), 0);
        return `${this.formatUndrawn(frames)} (${this.formatWeight(weight)}, ${this.formatPercent(weight)})`;
    }

    /** @param {number} frames */
    formatUndrawn(frames) {
        return `${this.countFormat.format(frames)} ${frames === 1 ? "frame" : "frames"} too narrow to draw`;
    }

    /** Returns the note about frames that are not drawn. The halves of a sandwich have no common share. */
    undrawnNote() {
        const { frames, weight } = this.undrawn, share = this.formatPercent(weight, this.weight(this.view));
        if (frames === 0) return " ";
        if (this.tree.lower) return this.formatUndrawn(frames);
        const shown = share === "0.00%" ? "<0.01%" : share;
        return `${this.formatUndrawn(frames)} (${shown}${this.view === 0 ? "" : " of the view"})`;
    }

    /** @param {number} node */
    traits(node) {
        return node === 0 ? 0 : this.profile.looks[4 * this.tree.name[node] + 3];
    }

    /**
     * Returns the colour of a frame, and true if it needs white text. Callers of the view are pale.
     *
     * @param {Box} box
     * @param {number} traits
     * @returns {[string, boolean]}
     */
    colour({ node, above }, traits) {
        const { looks, differential } = this.profile, offset = 4 * this.tree.name[node];
        let colour = [...looks.subarray(offset, offset + 3)], isDark = Boolean(traits & DARK);
        if (this.diffusion) [colour, isDark] = [this.diffusionColour(node), false];
        if (differential) [colour, isDark] = [this.differenceColour(node), false];
        if (node === 0) [colour, isDark] = [differential ? [245, 245, 245] : [222, 222, 222], false];
        if (above) [colour, isDark] = [colour.map(channel => (channel + 2 * 238) / 3), false];
        return [`rgb(${colour.map(Math.round).join()})`, isDark];
    }

    /** @param {number} node */
    diffusionColour(node) {
        const other = 255 * (1 - Math.sqrt(this.tree.total[node] / this.whole));
        return [255, other, other];
    }

    /** @param {number} node */
    differenceColour(node) {
        const share = Math.max(-1, Math.min(1, this.delta(node) / (this.profile.largestDelta || 1))), neutral = 245;
        const full = share >= 0 ? [235, 60, 50] : [80, 130, 250];
        return full.map(channel => neutral + (channel - neutral) * Math.abs(share));
    }
}

/**
 * Returns the next value of a 32-bit hash.
 *
 * @param {number} hash
 * @param {number} value
 * @param {number} factor
 */
function mixHash(hash, value, factor) {
    const mixed = Math.imul(hash ^ value ^ 0x811c9dc5, factor);
    return (mixed ^ (mixed >>> 15)) >>> 0;
}

/** @param {string} text */
function hashText(text) {
    let hash = 0;
    for (let index = 0; index < text.length; index++) hash = mixHash(hash, text.charCodeAt(index), 0x01000193);
    return hash;
}

/** @param {[number, number]} hashes */
function joinHashes([first, second]) {
    return first.toString(36) + "." + second.toString(36);
}

/**
 * Returns a function that returns true if a text fits into a width. It measures each character once.
 *
 * @param {GraphElement} root
 */
function createTextMeter(root) {
    const style = getComputedStyle(root);
    const context = /** @type {CanvasRenderingContext2D} */ (createHtml("canvas").getContext("2d"));
    context.font = `${style.fontSize} ${style.fontFamily}`;
    /** @type {Map<string, number>} */
    const widths = new Map();
    return (/** @type {string} */ text, /** @type {number} */ available) => {
        for (const character of text) {
            let width = widths.get(character);
            if (width === undefined) widths.set(character, width = context.measureText(character).width);
            if ((available -= width) < 0) return false;
        }
        return true;
    };
}
