// Drawing what can be seen of a tree: the frames above the one in view, itself over the whole width, and what it calls
// as far as that is wide enough.

const SVG = "http://www.w3.org/2000/svg", SIDE = 10, TOO_NARROW = 0.5;

function element(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    made.append(...children);
    return made;
}

class Picture {
    constructor(root, profile) {
        const data = root.dataset;
        Object.assign(this, { root, profile, tree: profile.tree, view: 0, matches: null, drawn: [] });
        this.frames = root.querySelector("#frames");
        this.groups = new Map();
        this.countName = data.countName;
        this.factor = Number(data.factor);
        this.rowHeight = Number(data.frameHeight);
        this.narrowest = Math.max(Number(data.narrowest), TOO_NARROW);
        this.whole = Number(data.whole);
        this.largestDelta = Number(data.largestDelta) || 1;
        this.sign = data.negate ? -1 : 1;
        this.inverted = Boolean(data.inverted);
        this.fontSize = Number(root.getAttribute("font-size"));
        this.width = Number(root.getAttribute("width"));
        this.height = Number(root.getAttribute("height"));
        this.top = this.fontSize * (root.querySelector("#subtitle") ? 5 : 3);
        this.bottom = this.fontSize * 2 + 10;
        this.counts = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0, roundingMode: "halfEven" });
        this.shares = new Intl.NumberFormat("en-US",
            { minimumFractionDigits: 2, maximumFractionDigits: 2, useGrouping: false, roundingMode: "halfEven" });
        this.fits = ruler(root);
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
        return this.sign * (this.tree.total[node] - this.tree.totalBefore[node]);
    }

    // The path of a node from the root, itself last.
    path(node) {
        const path = [node];
        while (node !== 0) path.push(node = this.tree.parent[node]);
        return path.reverse();
    }

    // A number for the path of a node that is the same in every picture of the same stacks.
    hash(node) {
        let hash = 0n;
        for (const step of this.path(node).slice(1)) hash = nextHash(hash, this.nameHash(this.tree.name[step]));
        return hash.toString(36);
    }

    // The node whose path has this hash, or the root.
    find(hash) {
        const { tree } = this, hashes = new BigUint64Array(tree.parent.length);
        for (let node = 1; node < hashes.length; node++) {
            hashes[node] = nextHash(hashes[tree.parent[node]], this.nameHash(tree.name[node]));
            if (hashes[node].toString(36) === hash) return node;
        }
        return 0;
    }

    nameHash(name) {
        this.nameHashes ??= [];
        return this.nameHashes[name] ??= [...this.profile.names[name]]
            .reduce((hash, character) => nextHash(hash, BigInt(character.codePointAt(0))), 0n);
    }

    children(node) {
        const { end } = this.tree, children = [];
        for (let child = node + 1; child < end[node]; child = end[child]) {
            if (this.tree.total[child] > 0) children.push(child);
        }
        return children;
    }

    draw() {
        const path = this.path(this.view), inner = this.width - 2 * SIDE;
        this.drawn = path.map((node, row) => ({ node, row, x: SIDE, width: inner, above: node !== this.view }));
        const scale = inner / this.weight(this.view);
        const waiting = [this.drawn[this.drawn.length - 1]];
        while (waiting.length > 0) {
            for (const box of this.above(waiting.pop(), scale)) {
                this.drawn.push(box);
                if (!box.folded) waiting.push(box);
            }
        }
        const rows = this.drawn.reduce((most, box) => Math.max(most, box.row + 1), 0);
        this.height = Math.max(this.height, Math.ceil(rows * this.rowHeight + this.top + this.bottom));
        this.groups.clear();
        const groups = this.drawn.map(box => this.group(box));
        this.frames.replaceChildren(...groups);
    }

    // The boxes of what a frame calls; those too narrow to draw, folded together where they stand side by side.
    above({ node, row, x, width }, scale) {
        const boxes = [];
        let at = x + this.tree.own[node] * scale, folded = null;
        for (const child of this.children(node)) {
            const box = { node: child, row: row + 1, x: at, width: this.tree.total[child] * scale };
            at += box.width;
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

    y(row) {
        const up = this.height - this.bottom - (row + 1) * this.rowHeight + 1;
        return this.inverted ? this.top + row * this.rowHeight : up;
    }

    group(box) {
        const { node, row, x, width } = box, { looks } = this.profile, { tree } = this;
        const y = this.y(row), group = element("g", { tabindex: -1 });
        const rect = element("rect", { x: x.toFixed(2), y, width: width.toFixed(2), height: this.rowHeight - 1 });
        group.append(element("title", {}, box.folded ? this.foldedTitle(box) : this.title(node)), rect);
        this.groups.set(group, box);
        box.group = group;
        if (box.folded) {
            group.setAttribute("class", "folded");
            return group;
        }
        const traits = node === 0 ? 0 : looks[4 * tree.name[node] + 3];
        const [colour, dark] = this.colour(box, traits);
        rect.setAttribute("fill", colour);
        const classes = [traits & STATE && "state", box.above && "parent"];
        if (this.matches && node > 0 && this.matches[tree.name[node]]) classes.push("match");
        group.setAttribute("class", classes.filter(Boolean).join(" "));
        const text = width < this.fontSize ? "" : label(this.name(node), text => this.fits(text, width - 6));
        if (text) {
            const middle = y + this.rowHeight / 2 + this.fontSize * 0.3;
            group.append(element("text", { x: (x + 3).toFixed(1), y: middle, ...(dark && { fill: "#fff" }) }, text));
        }
        return group;
    }

    foldedTitle({ folded }) {
        const weight = folded.reduce((sum, node) => sum + this.tree.total[node], 0);
        const frames = folded.reduce((sum, node) => sum + this.tree.end[node] - node, 0);
        return `${this.counts.format(frames)} frames too narrow to draw (${this.count(weight)}, ${this.percent(weight)})`;
    }

    // A frame's colour, and whether it asks for white text. What stands above the view is pale.
    colour({ node, above }, traits) {
        const { looks, differential } = this.profile, at = 4 * this.tree.name[node];
        let colour = [looks[at], looks[at + 1], looks[at + 2]], dark = Boolean(traits & DARK);
        if (differential) [colour, dark] = [this.differential(node), false];
        if (node === 0) [colour, dark] = [differential ? [245, 245, 245] : [222, 222, 222], false];
        if (above) [colour, dark] = [colour.map(channel => (channel + 2 * 238) / 3), false];
        return [`rgb(${colour.map(Math.round).join()})`, dark];
    }

    differential(node) {
        const share = Math.max(-1, Math.min(1, this.delta(node) / this.largestDelta)), none = 245;
        const full = share >= 0 ? [235, 60, 50] : [80, 130, 250];
        return full.map(channel => none + (channel - none) * Math.abs(share));
    }
}

// One step of FNV-1a in 64 bits.
function nextHash(hash, value) {
    return BigInt.asUintN(64, (hash ^ value ^ 0xcbf29ce484222325n) * 0x100000001b3n);
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
