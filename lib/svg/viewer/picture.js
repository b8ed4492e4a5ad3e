// Drawing what can be seen of a tree: the frames above the one in view, itself over the whole width, and what it calls
// as far as that is wide enough.

const SVG = "http://www.w3.org/2000/svg", SIDE = 10, TOO_NARROW = 0.5;

// How wide a frame gets that is led to, in pixels.
const EASILY_SEEN = 20;

function element(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    made.append(...children);
    return made;
}

class Picture {
    constructor(root, profile) {
        const data = root.dataset;
        Object.assign(this, { root, profile, tree: profile.tree, view: 0, byWeight: false, matches: null, drawn: [] });
        this.frames = root.querySelector("#frames:not(.still)");
        this.groups = new Map();
        this.countName = data.countName;
        this.factor = Number(data.factor);
        this.rowHeight = Number(data.frameHeight);
        this.narrowest = Math.max(Number(data.narrowest), TOO_NARROW);
        this.sign = data.negate ? -1 : 1;
        this.bySelf = Boolean(data.self);
        this.diffusion = Boolean(data.diffusion);
        this.label = data.keepLeft ? head : label;
        this.fontSize = Number(root.getAttribute("font-size"));
        this.width = Number(root.getAttribute("width"));
        this.height = Number(root.getAttribute("height"));
        this.top = Number(data.top);
        this.bottom = this.fontSize * 2 + 10;
        this.counts = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0, roundingMode: "halfEven" });
        this.shares = new Intl.NumberFormat("en-US",
            { minimumFractionDigits: 2, maximumFractionDigits: 2, useGrouping: false, roundingMode: "halfEven" });
        this.fits = ruler(root);
    }

    // What the whole width stands for: what the file says, or of another tree than the profile's all there is.
    get whole() {
        return this.tree === this.profile.tree ? this.profile.whole : this.tree.total[0];
    }

    // The weight of a frame; the root stands for everything.
    weight(node) {
        return node === 0 ? this.whole : this.tree.total[node];
    }

    name(node) {
        return node === 0 ? "all" : this.profile.names[this.tree.name[node]];
    }

    percent(weight, of = this.whole) {
        return `${this.shares.format(of > 0 ? 100 * weight / of : 0)}%`;
    }

    count(weight) {
        return `${this.counts.format(weight * this.factor)} ${this.countName}`;
    }

    title(node) {
        const share = node === 0 ? "100%" : this.percent(this.weight(node));
        return `${this.name(node)} (${this.count(this.weight(node))}, ${share}${this.change(node)})`;
    }

    change(node) {
        if (!this.profile.differential || node === 0) return "";
        const shown = this.percent(this.delta(node));
        if (shown === "0.00%" || shown === "-0.00%") return "; 0.00%";
        return `; ${shown.startsWith("-") ? "" : "+"}${shown}`;
    }

    delta(node) {
        const { tree } = this;
        return this.sign * (this.bySelf ? tree.own[node] - tree.ownBefore[node] : tree.total[node] - tree.totalBefore[node]);
    }

    // The path of a node from the root, itself last.
    path(node) {
        const path = [node];
        while (node !== 0) path.push(node = this.tree.parent[node]);
        return path.reverse();
    }

    // What tells a node by its path, in every picture of such stacks.
    link(node) {
        const hashes = this.path(node).slice(1).reduce((hashes, step) => this.nextHash(hashes, step), [0, 0]);
        return linkOf(...hashes);
    }

    // The node to which a link leads, or the root.
    find(link) {
        const { parent } = this.tree;
        const first = new Uint32Array(parent.length), second = new Uint32Array(parent.length);
        for (let node = 1; node < parent.length; node++) {
            const hashes = this.nextHash([first[parent[node]], second[parent[node]]], node);
            if (linkOf(...hashes) === link) return node;
            [first[node], second[node]] = hashes;
        }
        return 0;
    }

    nextHash([first, second], node) {
        const { parent, lower, name: { [node]: name } } = this.tree;
        // Callers are not to be taken for callees of the same names.
        if (node >= lower && parent[node] < lower) first = ~first >>> 0;
        this.nameHashes ??= [];
        this.nameHashes[name] ??= hashText(this.profile.names[name]);
        return [hashStep(first, this.nameHashes[name], 0x01000193), hashStep(second, this.nameHashes[name], 0x85ebca6b)];
    }

    // What a frame calls; of a sandwich's function, or in its lower half, those who call it.
    children(node, towards) {
        const { parent, end, lower } = this.tree, children = [];
        const [first, last] = towards < 0 && node < lower ? [lower, parent.length] : [node + 1, end[node]];
        for (let child = first; child < last; child = end[child]) {
            if (this.tree.total[child] > 0) children.push(child);
        }
        if (this.byWeight) children.sort((a, b) => this.tree.total[b] - this.tree.total[a]);
        return children;
    }

    // The nodes from left to right, a caller before what it calls, in a sandwich the callers last; without those that
    // weigh nothing.
    inOrder() {
        const { parent, total, lower } = this.tree, nodes = [];
        if (!this.byWeight) {
            for (let node = 1; node < parent.length; node++) if (total[node] > 0) nodes.push(node);
            return nodes;
        }
        const waiting = lower ? this.children(1, -1).reverse() : [];
        for (let node = 0; node !== undefined; node = waiting.pop()) {
            if (node > 0) nodes.push(node);
            for (const child of this.children(node, 1).reverse()) waiting.push(child);
        }
        return nodes;
    }

    // The present view if a frame can be seen there, or the one nearest to the whole.
    viewOf(node) {
        if (this.drawn.some(box => box.node === node && !box.folded)) return this.view;
        const scale = (this.width - 2 * SIDE) * this.tree.total[node], narrowest = Math.max(this.narrowest, EASILY_SEEN);
        return this.path(node).find(view => scale / this.weight(view) >= narrowest) ?? node;
    }

    // How many frames there are from a node up to another that weigh anything.
    framesBetween(first, last) {
        const { tree } = this;
        if (!tree.before) {
            // Of each node how many such frames come before it.
            tree.before = new Uint32Array(tree.parent.length + 1);
            for (let node = 0; node < tree.parent.length; node++) tree.before[node + 1] = tree.before[node] + (tree.total[node] > 0);
        }
        return tree.before[last] - tree.before[first];
    }

    draw() {
        this.undrawn = { frames: 0, weight: 0 };
        this.drawn = this.tree.lower ? this.sandwich() : this.half(this.view, 1);
        const rows = this.drawn.reduce((most, box) => Math.max(most, box.row + 1), 0);
        const height = Math.ceil(rows * this.rowHeight + this.top + this.bottom);
        // Within the profile the height only grows, so that zooming does not move what is clicked.
        this.height = this.tree === this.shown ? Math.max(this.height, height) : height;
        this.shown = this.tree;
        this.groups.clear();
        const groups = this.drawn.map(box => this.group(box));
        this.frames.replaceChildren(...groups);
    }

    // The boxes of a frame, of those it stands on from the first one of its path, and of what stands on it.
    half(view, towards, first = 0) {
        const inner = this.width - 2 * SIDE, scale = inner / this.weight(view);
        const boxes = this.path(view).slice(first)
            .map((node, step) => ({ node, row: step * towards, x: SIDE, width: inner, above: node !== view }));
        const waiting = [boxes[boxes.length - 1]];
        while (waiting.length > 0) {
            for (const box of this.above(waiting.pop(), scale, towards)) {
                boxes.push(box);
                if (!box.folded) waiting.push(box);
            }
        }
        return boxes;
    }

    // A function with what it calls, and beneath it those who call it. Each half has a zoom of its own.
    sandwich() {
        const isLower = this.view >= this.tree.lower;
        const callees = this.half(isLower ? 1 : this.base, 1, 1), callers = this.half(isLower ? this.view : 1, -1, 1);
        const deepest = callers.reduce((least, { row }) => Math.min(least, row), 0);
        // The function itself stands in both.
        return [...callees, ...callers.slice(1)].map(box => ({ ...box, row: box.row - deepest }));
    }

    // What stands on nothing: the view, or in a sandwich without zoom the function.
    get base() {
        return this.view === 0 && this.tree.lower ? 1 : this.view;
    }

    // The boxes of what a frame calls; those too narrow to draw, folded together where they stand side by side.
    above({ node, row, x, width }, scale, towards) {
        const boxes = [];
        const children = this.children(node, towards), isTurn = towards < 0 && node < this.tree.lower;
        let at = isTurn ? x : x + this.tree.own[node] * scale, folded = null;
        for (const child of children) {
            const box = { node: child, row: row + towards, x: at, width: this.tree.total[child] * scale };
            at += box.width;
            if (box.width < this.narrowest) {
                this.undrawn.frames += this.framesBetween(child, this.tree.end[child]);
                this.undrawn.weight += this.tree.total[child];
            }
            if (box.width >= this.narrowest) {
                boxes.push(box);
                folded = null;
            } else if (folded) {
                folded.width = at - folded.x;
                folded.folded.push(child);
            } else {
                boxes.push(folded = { ...box, folded: [child] });
            }
        }
        return boxes.filter(box => box.width >= this.narrowest);
    }

    // The drawn neighbour of a box in a direction: the widest that stands on it or on which it stands, or the next in its row.
    neighbour({ node, row, x }, direction) {
        const { parent } = this.tree, frames = this.drawn.filter(box => !box.folded);
        const rows = { up: this.inverted ? -1 : 1, down: this.inverted ? 1 : -1 }[direction];
        const candidates = rows
            ? frames.filter(box => box.row === row + rows && (parent[box.node] === node || parent[node] === box.node))
            : frames.filter(box => box.row === row && (direction === "left" ? box.x < x : box.x > x));
        const distance = box => (rows ? -box.width : Math.abs(box.x - x));
        return candidates.reduce((best, box) => (!best || distance(box) < distance(best) ? box : best), undefined);
    }

    y(row) {
        const up = this.height - this.bottom - (row + 1) * this.rowHeight + 1;
        return this.inverted ? this.top + row * this.rowHeight : up;
    }

    group(box) {
        const { node, row, x, width } = box, { looks } = this.profile, { tree } = this;
        const y = this.y(row), group = this.own(box)?.cloneNode() ?? element("g");
        group.setAttribute("tabindex", node === this.base && !box.folded ? 0 : -1);
        group.setAttribute("role", "treeitem");
        group.setAttribute("aria-level", row + 1);
        const rect = element("rect", { x: x.toFixed(2), y, width: width.toFixed(2), height: this.rowHeight - 1 });
        group.append(element("title", {}, box.folded ? this.foldedTitle(box) : this.own(box)?.dataset.title ?? this.title(node)), rect);
        this.groups.set(group, box);
        box.group = group;
        if (box.folded) {
            group.setAttribute("class", "folded");
            return group;
        }
        const traits = node === 0 ? 0 : looks[4 * tree.name[node] + 3];
        const [colour, dark] = this.colour(box, traits);
        rect.setAttribute("fill", colour);
        const classes = [traits & STATE && "state", box.above && "parent", node === 1 && this.tree.lower && "turn"];
        if (this.matches && node > 0 && this.matches[tree.name[node]]) classes.push("match");
        group.classList.add(...classes.filter(Boolean));
        const text = width < this.fontSize ? "" : this.label(this.name(node), text => this.fits(text, width - 6));
        if (text) {
            const middle = y + this.rowHeight / 2 + this.fontSize * 0.3;
            group.append(element("text", { x: (x + 3).toFixed(1), y: middle, ...(dark && { fill: "#fff" }) }, text));
        }
        return group;
    }

    // The element that the name of a box has of its own.
    own({ node, folded }) {
        return node === 0 || folded ? undefined : this.profile.elements.get(this.tree.name[node]);
    }

    foldedTitle({ folded }) {
        const weight = folded.reduce((sum, node) => sum + this.tree.total[node], 0);
        const frames = folded.reduce((sum, node) => sum + this.framesBetween(node, this.tree.end[node]), 0);
        return `${this.tooNarrow(frames)} (${this.count(weight)}, ${this.percent(weight)})`;
    }

    tooNarrow(frames) {
        return `${this.counts.format(frames)} ${frames === 1 ? "frame" : "frames"} too narrow to draw`;
    }

    // How many frames are too narrow to draw, and which share of the view they are; of a sandwich's halves there is no one share.
    undrawnNote() {
        const { frames, weight } = this.undrawn, share = this.percent(weight, this.weight(this.view));
        if (frames === 0) return " ";
        if (this.tree.lower) return this.tooNarrow(frames);
        return `${this.tooNarrow(frames)} (${share === "0.00%" ? "<0.01%" : share}${this.view === 0 ? "" : " of the view"})`;
    }

    // A frame's colour, and whether it asks for white text. What stands above the view is pale.
    colour({ node, above }, traits) {
        const { looks, differential } = this.profile, at = 4 * this.tree.name[node];
        let colour = [looks[at], looks[at + 1], looks[at + 2]], dark = Boolean(traits & DARK);
        if (this.diffusion) [colour, dark] = [this.diffused(node), false];
        if (differential) [colour, dark] = [this.differential(node), false];
        if (node === 0) [colour, dark] = [differential ? [245, 245, 245] : [222, 222, 222], false];
        if (above) [colour, dark] = [colour.map(channel => (channel + 2 * 238) / 3), false];
        return [`rgb(${colour.map(Math.round).join()})`, dark];
    }

    diffused(node) {
        const other = 255 * (1 - Math.sqrt(this.tree.total[node] / this.whole));
        return [255, other, other];
    }

    differential(node) {
        const share = Math.max(-1, Math.min(1, this.delta(node) / (this.profile.largestDelta || 1))), none = 245;
        const full = share >= 0 ? [235, 60, 50] : [80, 130, 250];
        return full.map(channel => none + (channel - none) * Math.abs(share));
    }
}

// One step of a hash in 32 bits.
function hashStep(hash, value, factor) {
    const mixed = Math.imul(hash ^ value ^ 0x811c9dc5, factor);
    return (mixed ^ (mixed >>> 15)) >>> 0;
}

function hashText(text) {
    let hash = 0;
    for (let at = 0; at < text.length; at++) hash = hashStep(hash, text.charCodeAt(at), 0x01000193);
    return hash;
}

function linkOf(first, second) {
    return first.toString(36) + "." + second.toString(36);
}

// Tells whether a text fits into a width; each character is measured once.
function ruler(root) {
    const style = getComputedStyle(root);
    const context = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas").getContext("2d");
    context.font = `${style.fontSize} ${style.fontFamily}`;
    const widths = new Map();
    return (text, room) => {
        for (const character of text) {
            let width = widths.get(character);
            if (width === undefined) widths.set(character, width = context.measureText(character).width);
            if ((room -= width) < 0) return false;
        }
        return true;
    };
}
