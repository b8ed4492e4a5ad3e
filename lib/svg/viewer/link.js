// Writes the state to the fragment of the address and reads it: links to a view survive a new drawing of the profile.

/** @type {ChangeName[]} */
const CHANGE_NAMES =
    ["only", "hide", "omit", "recursion", "invert", "callers", "callees", "between", "sort", "fold", "root", "side",
        "chart", "charge"];

// The changes whose values are names of functions that must exist.
const REQUIRED_NAMES = ["callers", "callees", "between", "only"];

/** @returns {Changes} */
function noChanges() {
    return /** @type {Changes} */ (Object.fromEntries(CHANGE_NAMES.map(name => [name, ""])));
}

/** @param {string} text */
function splitLines(text) {
    return text.split("\n").filter(Boolean);
}

/**
 * Returns 1 for each name that is a line of a text.
 *
 * @param {string[]} names
 * @param {string} text
 */
function findNames(names, text) {
    const wanted = new Set(splitLines(text));
    return Uint8Array.from(names, name => Number(wanted.has(name)));
}

/** The parameters of one graph in the address. All graphs but the first of a page append their index to the names. */
class Link {
    /** @param {number} order index of the graph on the page */
    constructor(order) {
        this.suffix = order === 0 ? "" : String(order);
        /** The fragment as it was when nothing had been changed; undefined if there was none. */
        this.foreign = /[&=]/.test(location.hash) ? "" : location.hash;
    }

    /** Returns the parameters of this graph in the address. */
    read() {
        const parameters = new URLSearchParams(location.hash.slice(1));
        return (/** @type {string} */ name) => parameters.get(name + this.suffix) ?? "";
    }

    /**
     * Writes parameters. The fragment of a page that has a meaning of its own returns when no parameter is left.
     *
     * @param {Record<string, string>} values
     * @param {boolean} isStep true to add an entry to the history, false to replace the current one
     * @param {Iterable<number>} [unfolded] kept in the history only: another drawing has other nodes
     */
    write(values, isStep, unfolded = this.readUnfolded()) {
        const isForeign = !location.hash.includes("=");
        const parameters = new URLSearchParams(isForeign ? "" : location.hash.slice(1));
        for (const [name, value] of Object.entries(values)) {
            if (value) parameters.set(name + this.suffix, value); else parameters.delete(name + this.suffix);
        }
        const fragment = String(parameters) ? `#${parameters}` : this.foreign;
        const nodes = [...unfolded];
        if (fragment === location.hash && nodes.join() === this.readUnfolded().join()) return;
        const state = { ...history.state, steps: countSteps() + Number(isStep), [`nodes${this.suffix}`]: nodes };
        try {
            history[isStep ? "pushState" : "replaceState"](state, "", fragment || location.pathname + location.search);
        } catch {
            // Some embeddings forbid it. The graph works without it.
        }
    }

    /** Returns the unfolded nodes of the view in the history. @returns {number[]} */
    readUnfolded() {
        return history.state?.[`nodes${this.suffix}`] ?? [];
    }
}

/** Returns the number of steps that lead back to the first view of the page. */
function countSteps() {
    return Number(history.state?.steps ?? 0);
}

/** Goes back to the previous view. Returns false from the first view, which to leave would leave the page. */
function leaveView() {
    const isPossible = countSteps() > 0;
    if (isPossible) history.back();
    return isPossible;
}

/** Identifies nodes by the names on their paths, so that a link leads to the same frame in every drawing. */
class PathHasher {
    /** @param {string[]} names */
    constructor(names) {
        this.names = names;
    }

    /**
     * Returns a text that identifies a node by its path.
     *
     * @param {Tree} tree
     * @param {number} node
     */
    format(tree, node) {
        /** @type {[number, number]} */
        const start = [0, 0];
        return joinHashes(findPath(tree, node).slice(1).reduce((hashes, step) => this.hash(tree, hashes, step), start));
    }

    /**
     * Returns the node that a text identifies, or the root.
     *
     * @param {Tree} tree
     * @param {string} link
     */
    find(tree, link) {
        const { parent, name } = tree, first = new Uint32Array(parent.length), hashes = this.names.map(hashText);
        const [wanted] = link.split(".").map(part => parseInt(part, 36));
        for (let node = 1; node < parent.length; node++) {
            first[node] = mixHash(startHash(tree, node, first[parent[node]]), hashes[name[node]], 0x01000193);
            if (first[node] === wanted && this.format(tree, node) === link) return node;
        }
        return 0;
    }

    /**
     * Returns the hashes of a path from those of its callers.
     *
     * @param {Tree} tree
     * @param {[number, number]} hashes
     * @param {number} node
     * @returns {[number, number]}
     */
    hash(tree, [first, second], node) {
        const hash = hashText(this.names[tree.name[node]]);
        return [mixHash(startHash(tree, node, first), hash, 0x01000193), mixHash(second, hash, 0x85ebca6b)];
    }
}

/**
 * Returns the hash with which a node goes on. Callers in a sandwich differ from callees with the same names.
 *
 * @param {Tree} tree
 * @param {number} node
 * @param {number} hash hash of the node's caller
 */
function startHash(tree, node, hash) {
    // The same stack can occur at several times.
    if (tree.time) hash = mixHash(hash, Math.round(tree.time.start[node] / 1e3), 0x85ebca6b);
    return isCaller(tree, node) && !isCaller(tree, tree.parent[node]) ? ~hash >>> 0 : hash;
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
