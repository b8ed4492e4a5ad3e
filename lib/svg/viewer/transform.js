// Derives other trees from the profile's tree: without some frames, with merged recursion, callers or callees of a
// function.

/**
 * Keeps only the stacks through frames of these names, or only the other stacks.
 *
 * @param {Tree} tree
 * @param {Uint8Array} wanted 1 for each of these names
 * @param {boolean} keep
 */
function filterStacks(tree, wanted, keep) {
    const { parent, name, end } = tree, count = parent.length;
    const filtered = { ...newTree(count, Boolean(tree.ownBefore)), parent, name, end };
    for (let node = 0, matchEnd = 0; node < count; node++) {
        if (node > 0 && wanted[name[node]]) matchEnd = Math.max(matchEnd, end[node]);
        if (node < matchEnd !== keep) continue;
        filtered.own[node] = tree.own[node];
        if (filtered.ownBefore && tree.ownBefore) filtered.ownBefore[node] = tree.ownBefore[node];
    }
    return sumTotals(filtered);
}

/**
 * Removes frames of these names; their callees become callees of their callers.
 *
 * @param {Tree} tree
 * @param {Uint8Array} wanted 1 for each of these names
 * @param {string[]} names
 */
function* omitFrames(tree, wanted, names) {
    const builder = new TreeBuilder(tree), targets = new Uint32Array(tree.parent.length);
    for (let node = 1; node < targets.length; node++) {
        if (node % SLICE === 1) yield* builder.reserve();
        const caller = targets[tree.parent[node]], name = tree.name[node];
        targets[node] = wanted[name] ? caller : builder.getChild(caller, name);
    }
    for (let node = 0; node < targets.length; node++) builder.addOwn(targets[node], node);
    return yield* builder.build(names);
}

/**
 * Merges each frame with its first caller of the same name.
 *
 * @param {Tree} tree
 * @param {string[]} names
 */
function* mergeRecursion(tree, names) {
    const recursive = findRecursive(tree, names.length);
    if (!recursive) return tree;
    const builder = new TreeBuilder(tree), merged = new Uint32Array(tree.parent.length);
    for (let node = 1; node < merged.length; node++) {
        if (node % SLICE === 1) yield* builder.reserve();
        const caller = merged[tree.parent[node]], name = tree.name[node];
        let target = recursive[name] ? caller : 0;
        while (target !== 0 && builder.name[target] !== name) target = builder.parent[target];
        merged[node] = target !== 0 ? target : builder.getChild(caller, name);
    }
    for (let node = 0; node < merged.length; node++) builder.addOwn(merged[node], node);
    return yield* builder.build(names);
}

/**
 * Returns 1 for each name that has a caller of the same name somewhere, or null if there is none.
 *
 * @param {Tree} tree
 * @param {number} nameCount
 */
function findRecursive({ name, end }, nameCount) {
    const recursive = new Uint8Array(nameCount), activeEnd = new Uint32Array(nameCount);
    let found = false;
    for (let node = 1; node < name.length; node++) {
        if (node >= activeEnd[name[node]]) activeEnd[name[node]] = end[node];
        else recursive[name[node]] = Number(found = true);
    }
    return found ? recursive : null;
}

/**
 * Returns a tree of all functions with self weight, each with its callers on it.
 *
 * @param {Tree} tree
 * @param {string[]} names
 */
function* invertTree(tree, names) {
    const builder = new TreeBuilder(tree);
    for (let node = 1, steps = 0; node < tree.parent.length; node++) {
        if (!(tree.own[node] > 0) && !(tree.ownBefore && tree.ownBefore[node] > 0)) continue;
        let target = 0;
        for (let caller = node; caller !== 0; caller = tree.parent[caller]) {
            if (steps++ % SLICE === 0) yield* builder.reserve();
            target = builder.getChild(target, tree.name[caller]);
        }
        builder.addOwn(target, node);
    }
    return { ...yield* builder.build(names), isInverted: true };
}

/**
 * Returns a tree of a function with its callers on it. Recursive calls count once. Several names can look the same and
 * then are one function.
 *
 * @param {Tree} tree
 * @param {Uint8Array} wanted 1 for each of the function's names
 * @param {string[]} names
 */
function* buildCallerTree(tree, wanted, names) {
    const builder = new TreeBuilder(tree), itself = wanted.indexOf(1);
    for (let node = 1, steps = 0; node < tree.parent.length; node++) {
        if (!wanted[tree.name[node]]) continue;
        let target = 0;
        for (let caller = node; caller !== 0; caller = tree.parent[caller]) {
            if (steps++ % SLICE === 0) yield* builder.reserve();
            target = builder.getChild(target, caller === node ? itself : tree.name[caller]);
        }
        builder.addTotal(target, node);
        node = tree.end[node] - 1;
    }
    return { ...markPivot(yield* builder.build(names)), isInverted: true };
}

/**
 * Returns a tree of a function with its callees, merged over all its callers. Recursive calls count once.
 *
 * @param {Tree} tree
 * @param {Uint8Array} wanted 1 for each of the function's names
 * @param {string[]} names
 */
function* buildCalleeTree(tree, wanted, names) {
    const builder = new TreeBuilder(tree), targets = new Uint32Array(tree.parent.length), itself = wanted.indexOf(1);
    for (let node = 1, steps = 0; node < tree.parent.length; node++) {
        if (!wanted[tree.name[node]]) continue;
        for (const end = tree.end[node], top = node; node < end; node++) {
            if (steps++ % SLICE === 0) yield* builder.reserve();
            const [parent, name] = node === top ? [0, itself] : [targets[tree.parent[node]], tree.name[node]];
            targets[node] = builder.getChild(parent, name);
            builder.addOwn(targets[node], node);
        }
        node--;
    }
    return markPivot(yield* builder.build(names));
}

/** @param {Tree} tree @returns {Tree} */
function markPivot(tree) {
    return { ...tree, hasPivot: tree.parent.length > 1 };
}

/**
 * Returns a sandwich: the tree of a function's callees, followed by the nodes of its callers from `lower` on.
 *
 * @param {Tree} tree
 * @param {Uint8Array} wanted 1 for each of the function's names
 * @param {string[]} names
 */
function* buildSandwich(tree, wanted, names) {
    const callees = yield* buildCalleeTree(tree, wanted, names), callers = yield* buildCallerTree(tree, wanted, names);
    const lower = callees.parent.length;
    if (lower < 2) return callees;
    const both = newTree(lower + callers.parent.length - 2, Boolean(tree.ownBefore));
    for (const column of /** @type {TreeColumn[]} */ (Object.keys(both))) {
        both[column]?.set(callees[column] ?? []);
        both[column]?.set(callers[column]?.subarray(2) ?? [], lower);
    }
    // Nodes 0 and 1, the root and the function, are the same in both.
    for (let node = lower; node < both.parent.length; node++) {
        both.end[node] += lower - 2;
        if (both.parent[node] > 1) both.parent[node] += lower - 2;
    }
    return { ...both, lower, hasPivot: true };
}

/** Builds a tree from nodes that are added in any order, with weights of the nodes of another tree. */
class TreeBuilder {
    /** @param {Tree} source */
    constructor(source) {
        this.source = source;
        this.count = 1;
        this.parent = new Uint32Array();
        this.name = new Uint32Array();
        this.own = new Float64Array();
        this.ownBefore = new Float64Array();
        /** The callees of each node as a list: the last one, and the one before each; 0 ends it. */
        this.lastChild = new Uint32Array();
        this.previous = new Uint32Array();
        /** The nodes by their caller and name: a hash table with open addressing; 0 is empty. */
        this.slots = new Uint32Array();
    }

    /** Makes room for the nodes of a slice, and yields before, unless nothing has been added yet. */
    *reserve() {
        if (this.count > 1) yield;
        const needed = this.count + SLICE;
        if (needed > this.parent.length) this.grow(2 * needed);
        if (2 * needed <= this.slots.length) return;
        const slots = new Uint32Array(2 ** Math.ceil(Math.log2(4 * needed))), mask = slots.length - 1;
        for (let node = 1; node < this.count; node++) {
            if (node % SLICE === 0) yield;
            let slot = hashChild(this.parent[node], this.name[node]) & mask;
            while (slots[slot] !== 0) slot = slot + 1 & mask;
            slots[slot] = node;
        }
        this.slots = slots;
    }

    /**
     * Returns the child with a name; adds it if there is none. `reserve` must have made room.
     *
     * @param {number} node
     * @param {number} name
     */
    getChild(node, name) {
        const { slots, parent, name: nameOf } = this, mask = slots.length - 1;
        let slot = hashChild(node, name) & mask;
        for (let child = slots[slot]; child !== 0; child = slots[slot = slot + 1 & mask]) {
            if (parent[child] === node && nameOf[child] === name) return child;
        }
        const child = slots[slot] = this.count++;
        parent[child] = node;
        nameOf[child] = name;
        this.previous[child] = this.lastChild[node];
        this.lastChild[node] = child;
        return child;
    }

    /** @param {number} length */
    grow(length) {
        for (const column of /** @type {const} */ (["parent", "name", "lastChild", "previous"])) {
            const grown = new Uint32Array(length);
            grown.set(this[column]);
            this[column] = grown;
        }
        for (const column of /** @type {const} */ (["own", "ownBefore"])) {
            const grown = new Float64Array(length);
            grown.set(this[column]);
            this[column] = grown;
        }
    }

    /**
     * @param {number} target
     * @param {number} node node of the source
     */
    addOwn(target, node) {
        this.own[target] += this.source.own[node];
        if (this.source.ownBefore) this.ownBefore[target] += this.source.ownBefore[node];
    }

    /**
     * @param {number} target
     * @param {number} node node of the source
     */
    addTotal(target, node) {
        this.own[target] += this.source.total[node];
        if (this.source.totalBefore) this.ownBefore[target] += this.source.totalBefore[node];
    }

    /**
     * Returns the tree with its nodes in order, siblings sorted by name.
     *
     * @param {string[]} names
     */
    *build(names) {
        if (this.parent.length === 0) this.grow(1);
        const { count, lastChild, previous, name } = this, tree = newTree(count, Boolean(this.source.ownBefore));
        const ranks = rankNames(names);
        const order = new Uint32Array(count), open = [0];
        /** @type {number[]} The nodes to be placed; -1 ends the callees of the last open node. */
        const pending = [-1];
        /** @type {number[]} */
        const children = [];
        this.pushChildren(0, pending, children, ranks);
        let node = 1;
        for (let old = pending.pop(); old !== undefined; old = pending.pop()) {
            if (old < 0) {
                tree.end[open.pop() ?? 0] = node;
                continue;
            }
            tree.parent[node] = open[open.length - 1];
            tree.name[node] = name[old];
            order[node] = old;
            if (lastChild[old] === 0) {
                tree.end[node] = node + 1;
            } else {
                open.push(node);
                pending.push(-1);
                if (previous[lastChild[old]] === 0) pending.push(lastChild[old]);
                else this.pushChildren(old, pending, children, ranks);
            }
            if (++node % SLICE === 0) yield;
        }
        for (let node = 0; node < count; node++) tree.own[node] = this.own[order[node]];
        if (tree.ownBefore) for (let node = 0; node < count; node++) tree.ownBefore[node] = this.ownBefore[order[node]];
        return sumTotals(tree);
    }

    /**
     * Adds the callees of a node to those to be placed, the first one last.
     *
     * @param {number} node
     * @param {number[]} pending
     * @param {number[]} children used as a buffer
     * @param {Uint32Array} ranks
     */
    pushChildren(node, pending, children, ranks) {
        const { lastChild, previous, name } = this;
        children.length = 0;
        for (let child = lastChild[node]; child !== 0; child = previous[child]) children.push(child);
        children.sort((a, b) => ranks[name[b]] - ranks[name[a]] || b - a);
        for (const child of children) pending.push(child);
    }
}

/** Returns the position of each name in sorted order. */
const rankNames = memoize((/** @type {string[]} */ names) => {
    const order = names.map((_, index) => index), ranks = new Uint32Array(names.length);
    order.sort((a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b));
    for (const [rank, name] of order.entries()) ranks[name] = rank;
    return ranks;
});

/**
 * @param {number} node
 * @param {number} name
 */
function hashChild(node, name) {
    let hash = Math.imul(node, 0x9e3779b1) ^ Math.imul(name, 0x85ebca6b);
    hash = Math.imul(hash ^ hash >>> 15, 0x2c1b3c6d);
    return (hash ^ hash >>> 13) >>> 0;
}
