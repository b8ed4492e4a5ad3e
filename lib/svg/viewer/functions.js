// Sums the weights of functions.

// The states of threads that do not run, or of which it is not known what they run.
const STATES = "[off-cpu]\n[runnable]\n[unsampled]";

// Stands for the index of a name where there is none.
const NO_NAME = 0xffffffff;

/**
 * Returns the weights of all functions of a tree. Recursive calls count once. The self weight of the state of a thread
 * and of those that woke it is that of the function that waits.
 *
 * @param {Tree} tree
 * @param {Profile} profile
 * @param {string} charge not empty if the self weight of the runtime counts for its callers
 * @param {number} zoom the node whose stacks count
 * @returns {Work<Functions>}
 */
function* sumFunctions(tree, profile, charge, zoom) {
    const { ownBefore, name } = tree, nameCount = profile.names.length, waiting = findCharged(tree, profile);
    const charged = charge ? chargeCallers(tree, profile, waiting) : waiting;
    const column = () => new Float64Array(nameCount), places = new Uint32Array(nameCount);
    const [self, selfBefore] = [column(), ownBefore && column()];
    /** @type {Functions} */
    const sums = { self, selfBefore, places, total: column(), totalBefore: ownBefore && column(),
        ...(charged === name ? { leaf: self, leafBefore: selfBefore }
            : { leaf: column(), leafBefore: ownBefore && column() }) };
    // The end of the outermost frame of each name that is open.
    const activeEnd = new Uint32Array(nameCount);
    const start = Math.max(zoom, 1), last = tree.end[zoom];
    for (let first = start; first < last; first += SLICE) {
        if (first > start) yield;
        addFunctions(tree, charged, activeEnd, sums, first, Math.min(first + SLICE, last));
    }
    return sums;
}

/**
 * Adds the weights of some nodes to those of their functions.
 *
 * @param {Tree} tree
 * @param {Uint32Array} charged
 * @param {Uint32Array} activeEnd
 * @param {Functions} sums
 * @param {number} first
 * @param {number} last the node after the last one
 */
function addFunctions(tree, charged, activeEnd, sums, first, last) {
    const { name, end, own, total, ownBefore, totalBefore } = tree;
    const { self, leaf, total: sum, places, selfBefore, leafBefore, totalBefore: sumBefore } = sums;
    const waits = charged !== name;
    for (let node = first; node < last; node++) {
        const id = name[node], isOutermost = node >= activeEnd[id];
        if (total[node] > 0 || (totalBefore && totalBefore[node] > 0)) places[id]++;
        self[charged[node]] += own[node];
        if (waits) leaf[id] += own[node];
        if (isOutermost) {
            activeEnd[id] = end[node];
            sum[id] += total[node];
        }
        if (!ownBefore || !totalBefore || !selfBefore || !sumBefore || !leafBefore) continue;
        selfBefore[charged[node]] += ownBefore[node];
        if (waits) leafBefore[id] += ownBefore[node];
        if (isOutermost) sumBefore[id] += totalBefore[node];
    }
}

/**
 * Returns the name to which the self weight of each node counts. That of a thread that waits counts for the innermost
 * function outside of the kernel, because all waits end in the kernel's scheduler. `lib/tally/charging.rs` has the same
 * rule for fg-report and the other programs.
 *
 * @param {Tree} tree
 * @param {Profile} profile
 */
function findCharged({ parent, name }, profile) {
    const { names } = profile, isState = findNames(names, STATES), divider = names.indexOf(DIVIDER);
    if (divider < 0 && !isState.includes(1)) return name;
    const isKernel = Uint8Array.from(names, (_, index) => Number(moduleOfName(profile, index) === "kernel"));
    // The innermost function outside of the kernel that each node is in, if any, and 1 for each node of a waker.
    const charged = name.slice(), outer = name.slice(), isWaker = new Uint8Array(name.length);
    for (let node = 1; node < name.length; node++) {
        const id = name[node], caller = parent[node];
        isWaker[node] = isWaker[caller] | Number(id === divider);
        const waits = isWaker[node] || isState[id];
        if (waits || isKernel[id]) outer[node] = caller > 0 ? outer[caller] : NO_NAME;
        if (waits && caller > 0) charged[node] = outer[node] === NO_NAME ? charged[caller] : outer[node];
    }
    return charged;
}

/**
 * Returns the name to which the self weight of each node counts if that of the runtime counts for the nearest caller
 * outside of it: in optimized programs most time is in inlined functions of the standard library. A node without such a
 * caller keeps its name.
 *
 * @param {Tree} tree
 * @param {Profile} profile
 * @param {Uint32Array} waiting the names to which they count otherwise
 */
function chargeCallers({ parent, name }, profile, waiting) {
    const isRuntime = findSupport(profile), charged = waiting.slice(), caller = name.map(() => NO_NAME);
    for (let node = 1; node < name.length; node++) {
        caller[node] = isRuntime[name[node]] ? caller[parent[node]] : name[node];
        if (caller[node] !== NO_NAME) charged[node] = caller[node];
    }
    return charged;
}

/**
 * Returns 1 for each name of the runtime, the kernel or an interpreter, and for states, threads and wakers, which also
 * do nothing of their own.
 *
 * @param {Profile} profile
 */
function findSupport(profile) {
    const runtime = findRuntime(profile.names, profile.looks, profile.modules);
    return runtime.map((isRuntime, name) => {
        const kind = classOfName(profile, name);
        return isRuntime | Number(profile.names[name] === DIVIDER || kind === KERNEL_CLASS || kind === VM_CLASS
            || kind >= THREAD_CLASS);
    });
}
