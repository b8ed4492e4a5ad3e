// Derives other trees from the profile's tree: without some frames, with merged recursion, callers or callees of a
// function.

/**
 * Keeps only the stacks through frames of these names, or only the other stacks.
 *
 * @param {Tree} tree
 * @param {Set<number>} wanted indexes of names
 * @param {boolean} keep
 */
function filterStacks(tree, wanted, keep) {
    const { parent, name, end } = tree, count = parent.length;
    const filtered = { ...newTree(count, Boolean(tree.ownBefore)), parent, name, end };
    for (let node = 0, matchEnd = 0; node < count; node++) {
        if (node > 0 && wanted.has(name[node])) matchEnd = Math.max(matchEnd, end[node]);
        if (node < matchEnd !== keep) continue;
        filtered.own[node] = tree.own[node];
        if (filtered.ownBefore && tree.ownBefore) filtered.ownBefore[node] = tree.ownBefore[node];
    }
    return sumTotals(filtered);
}

/**
 * Merges each frame with its first caller of the same name.
 *
 * @param {Tree} tree
 * @param {string[]} names
 */
function mergeRecursion(tree, names) {
    const builder = new TreeBuilder(tree), merged = new Uint32Array(tree.parent.length);
    for (let node = 1; node < merged.length; node++) {
        const caller = merged[tree.parent[node]], name = tree.name[node];
        let target = caller;
        while (target !== 0 && builder.name[target] !== name) target = builder.parent[target];
        merged[node] = target !== 0 ? target : builder.getChild(caller, name);
    }
    for (let node = 0; node < merged.length; node++) builder.addOwn(merged[node], node);
    return builder.build(names);
}

/**
 * Returns a tree of a function with its callers on it. Recursive calls count once. Several names can look the same and
 * then are one function.
 *
 * @param {Tree} tree
 * @param {Set<number>} wanted indexes of the function's names
 * @param {string[]} names
 */
function buildCallerTree(tree, wanted, names) {
    const builder = new TreeBuilder(tree), [itself] = wanted;
    for (let node = 1; node < tree.parent.length; node++) {
        if (!wanted.has(tree.name[node])) continue;
        let target = builder.getChild(0, itself);
        for (let caller = tree.parent[node]; caller !== 0; caller = tree.parent[caller]) {
            target = builder.getChild(target, tree.name[caller]);
        }
        builder.addTotal(target, node);
        node = tree.end[node] - 1;
    }
    return builder.build(names);
}

/**
 * Returns a tree of a function with its callees, merged over all its callers. Recursive calls count once.
 *
 * @param {Tree} tree
 * @param {Set<number>} wanted indexes of the function's names
 * @param {string[]} names
 */
function buildCalleeTree(tree, wanted, names) {
    const builder = new TreeBuilder(tree), targets = new Uint32Array(tree.parent.length), [itself] = wanted;
    for (let node = 1; node < tree.parent.length; node++) {
        if (!wanted.has(tree.name[node])) continue;
        for (const end = tree.end[node], top = node; node < end; node++) {
            const [parent, name] = node === top ? [0, itself] : [targets[tree.parent[node]], tree.name[node]];
            targets[node] = builder.getChild(parent, name);
            builder.addOwn(targets[node], node);
        }
        node--;
    }
    return builder.build(names);
}

/**
 * Returns a sandwich: the tree of a function's callees, followed by the nodes of its callers from `lower` on.
 *
 * @param {Tree} tree
 * @param {Set<number>} wanted indexes of the function's names
 * @param {string[]} names
 */
function buildSandwich(tree, wanted, names) {
    const callees = buildCalleeTree(tree, wanted, names), callers = buildCallerTree(tree, wanted, names);
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
    return { ...both, lower };
}

/** Builds a tree from nodes that are added in any order, with weights of the nodes of another tree. */
class TreeBuilder {
    /** @param {Tree} source */
    constructor(source) {
        this.source = source;
        this.parent = [0];
        this.name = [0];
        this.own = [0];
        this.ownBefore = [0];
        /** @type {Map<number, number>[]} */
        this.children = [new Map()];
    }

    /**
     * Returns the child with a name; adds it if there is none.
     *
     * @param {number} node
     * @param {number} name
     */
    getChild(node, name) {
        let child = this.children[node].get(name);
        if (child === undefined) {
            child = this.parent.length;
            this.children[node].set(name, child);
            this.parent.push(node);
            this.name.push(name);
            this.own.push(0);
            this.ownBefore.push(0);
            this.children.push(new Map());
        }
        return child;
    }

    /**
     * @param {number} target
     * @param {number} node node of the source
     */
    addOwn(target, node) {
        this.own[target] += this.source.own[node];
        this.ownBefore[target] += this.source.ownBefore?.[node] ?? 0;
    }

    /**
     * @param {number} target
     * @param {number} node node of the source
     */
    addTotal(target, node) {
        this.own[target] += this.source.total[node];
        this.ownBefore[target] += this.source.totalBefore?.[node] ?? 0;
    }

    /**
     * Returns the tree with its nodes in order, siblings sorted by name.
     *
     * @param {string[]} names
     */
    build(names) {
        const tree = newTree(this.parent.length, Boolean(this.source.ownBefore));
        const pending = [[0, 0]];
        /** @type {number[]} */
        const open = [];
        for (let node = 0, next = pending.pop(); next; node++, next = pending.pop()) {
            const [old, parent] = next;
            for (; open.length > 0 && open[open.length - 1] !== parent; open.pop()) {
                tree.end[open[open.length - 1]] = node;
            }
            open.push(node);
            tree.parent[node] = parent;
            tree.name[node] = this.name[old];
            tree.own[node] = this.own[old];
            if (tree.ownBefore) tree.ownBefore[node] = this.ownBefore[old];
            const children = [...this.children[old]].sort(([a], [b]) =>
                (names[a] === names[b] ? b - a : names[a] < names[b] ? 1 : -1));
            for (const [, child] of children) pending.push([child, node]);
        }
        for (const node of open) tree.end[node] = tree.parent.length;
        return sumTotals(tree);
    }
}
