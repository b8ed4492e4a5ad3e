// Other trees made of the profile's: without some frames, with recursion merged, of a function's callers or callees or both.

// Only the stacks through frames of these names, or only those that are not.
function sift(tree, wanted, keep) {
    const count = tree.parent.length, sifted = newTree(count, Boolean(tree.ownBefore));
    Object.assign(sifted, { parent: tree.parent, name: tree.name, end: tree.end });
    for (let node = 0, within = 0; node < count; node++) {
        if (node > 0 && wanted.has(tree.name[node])) within = Math.max(within, tree.end[node]);
        if (node < within !== keep) continue;
        sifted.own[node] = tree.own[node];
        if (tree.ownBefore) sifted.ownBefore[node] = tree.ownBefore[node];
    }
    return addUp(sifted);
}

// A frame that stands on its stack already goes back to where it stood first.
function mergeRecursion(tree, names) {
    const grower = new Grower(Boolean(tree.ownBefore)), places = new Uint32Array(tree.parent.length);
    for (let node = 1; node < places.length; node++) {
        const caller = places[tree.parent[node]], name = tree.name[node];
        let place = caller;
        while (place !== 0 && grower.name[place] !== name) place = grower.parent[place];
        places[node] = place !== 0 ? place : grower.child(caller, name);
    }
    for (let node = 0; node < places.length; node++) grower.add(places[node], tree, "own", node);
    return grower.finish(names);
}

// A function, and on it those who call it. A recursive function counts once. Several names may look the same: they are one.
function callersOf(tree, wanted, names) {
    const grower = new Grower(Boolean(tree.ownBefore)), [itself] = wanted;
    for (let node = 1; node < tree.parent.length; node++) {
        if (!wanted.has(tree.name[node])) continue;
        let place = grower.child(0, itself);
        for (let caller = tree.parent[node]; caller !== 0; caller = tree.parent[caller]) place = grower.child(place, tree.name[caller]);
        grower.add(place, tree, "total", node);
        node = tree.end[node] - 1;
    }
    return grower.finish(names);
}

// A function, wherever it was called from, and on it what it calls. A recursive function counts once.
function calleesOf(tree, wanted, names) {
    const grower = new Grower(Boolean(tree.ownBefore)), places = new Map(), [itself] = wanted;
    for (let node = 1; node < tree.parent.length; node++) {
        if (!wanted.has(tree.name[node])) continue;
        for (const end = tree.end[node], top = node; node < end; node++) {
            const place = node === top ? grower.child(0, itself) : grower.child(places.get(tree.parent[node]), tree.name[node]);
            places.set(node, place);
            grower.add(place, tree, "own", node);
        }
        node--;
    }
    return grower.finish(names);
}

// A function between those who call it and what it calls: the tree of these, and behind it the nodes of the callers, the
// first of which are at `lower`.
function sandwichOf(tree, wanted, names) {
    const callees = calleesOf(tree, wanted, names), callers = callersOf(tree, wanted, names);
    const lower = callees.parent.length;
    if (lower < 2) return callees;
    const both = newTree(lower + callers.parent.length - 2, Boolean(tree.ownBefore));
    for (const kind in both) {
        both[kind].set(callees[kind]);
        both[kind].set(callers[kind].subarray(2), lower);
    }
    // Nodes 0 and 1, the root and the function, are the same in both.
    for (let node = lower; node < both.parent.length; node++) {
        both.end[node] += lower - 2;
        if (both.parent[node] > 1) both.parent[node] += lower - 2;
    }
    return { ...both, lower };
}

// Grows a tree whose nodes come in any order.
class Grower {
    constructor(differential) {
        Object.assign(this, { differential, parent: [0], name: [0], own: [0], ownBefore: [0], children: [new Map()] });
    }

    child(node, name) {
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

    add(place, tree, kind, node) {
        this.own[place] += tree[kind][node];
        if (this.differential) this.ownBefore[place] += tree[`${kind}Before`][node];
    }

    // The tree with its nodes in order, siblings by name.
    finish(names) {
        const tree = newTree(this.parent.length, this.differential);
        const waiting = [[0, 0]], open = [];
        for (let node = 0; waiting.length > 0; node++) {
            const [old, parent] = waiting.pop();
            while (open.length > 0 && open[open.length - 1] !== parent) tree.end[open.pop()] = node;
            open.push(node);
            tree.parent[node] = parent;
            tree.name[node] = this.name[old];
            tree.own[node] = this.own[old];
            if (this.differential) tree.ownBefore[node] = this.ownBefore[old];
            const children = [...this.children[old]].sort(([a], [b]) => (names[a] === names[b] ? b - a : names[a] < names[b] ? 1 : -1));
            for (const [, child] of children) waiting.push([child, node]);
        }
        for (const node of open) tree.end[node] = tree.parent.length;
        return addUp(tree);
    }
}
