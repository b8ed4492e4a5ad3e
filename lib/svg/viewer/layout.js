// Computes where frames go: the node in view over the whole width, its callers, and its callees as far as they are wide
// enough.

// The least number of runtime frames that are folded into one.
const SHORTEST_CHAIN = 4;

/** The node of the function that a tree is about, if the tree is about one. */
const PIVOT = 1;

/**
 * True if a node is one of the callers in a sandwich.
 *
 * @param {Tree} tree
 * @param {number} node
 */
function isCaller({ lower }, node) {
    return lower !== undefined && node >= lower;
}

/**
 * True if what is drawn on a node are its callers.
 *
 * @param {Tree} tree
 * @param {number} node
 */
function hasCallersOn(tree, node) {
    return tree.isInverted || isCaller(tree, node);
}

/**
 * Returns the nodes from the root to a node, inclusive.
 *
 * @param {Tree} tree
 * @param {number} node
 */
function findPath({ parent }, node) {
    const path = [node];
    while (node !== 0) path.push(node = parent[node]);
    return path.reverse();
}

/**
 * Returns the node with the same names on its path in another tree, or the root if there is none.
 *
 * @param {Tree} tree
 * @param {number} node
 * @param {Tree} other
 */
function findSamePath(tree, node, other) {
    let found = 0;
    for (const step of findPath(tree, node).slice(1)) {
        const isLower = isCaller(tree, step), { lower = 0, end, name, parent } = other;
        const isTurn = isLower && found === PIVOT;
        let [child, last] = isTurn ? [lower || end[found], parent.length] : [found + 1, end[found]];
        while (child < last && name[child] !== tree.name[step]) child = end[child];
        if (child >= last || isCaller(other, child) !== isLower) return 0;
        found = child;
    }
    return found;
}

/**
 * Returns the choice of a function in another tree: without the place if that does not have it.
 *
 * @param {Tree} tree
 * @param {Chosen | undefined} chosen
 * @param {Tree} other
 */
function findSameChoice(tree, chosen, other) {
    return chosen?.node ? { name: chosen.name, node: findSamePath(tree, chosen.node, other) || undefined } : chosen;
}

/**
 * Returns the nodes that are drawn on a node: its callees, or its callers if it is in the lower half of a sandwich.
 *
 * @param {LayoutInput} input
 * @param {number} node
 * @param {number} direction 1 towards callees, -1 towards callers
 * @param {number} [least] of nodes below this weight, which all share a box, the order does not matter
 */
function findChildren({ tree, weights, byWeight }, node, direction, least = 0) {
    const { parent, end, lower } = tree, children = [];
    const [first, last] = lower && direction < 0 && node < lower ? [lower, parent.length] : [node + 1, end[node]];
    for (let child = first; child < last; child = end[child]) if (weights[child] > 0) children.push(child);
    if (!byWeight) return children;
    // In a difference the order is not that of the weights that are shown.
    if (least === 0 || tree.totalBefore) return sortByWeight(tree, children);
    const wide = children.filter(child => weights[child] >= least);
    return wide.length === 0 ? children
        : [...sortByWeight(tree, wide), ...children.filter(child => weights[child] < least)];
}

/**
 * Sorts nodes by weight. Before and After have the same order.
 *
 * @param {Tree} tree
 * @param {number[]} nodes
 */
function sortByWeight({ total, totalBefore }, nodes) {
    return totalBefore ? nodes.sort((a, b) => total[b] + totalBefore[b] - total[a] - totalBefore[a])
        : nodes.sort((a, b) => total[b] - total[a]);
}

/**
 * Returns a chain of runtime frames from a node on, if it is long enough to be folded: each calls only the next one.
 * Calls that are too narrow to draw do not count.
 *
 * @param {LayoutInput} input
 * @param {number} node
 * @param {number} least the least weight that is drawn
 */
function findChain({ tree: { name, end, total, totalBefore = total, hasPivot }, runtime, unfolded }, node, least) {
    const chain = [];
    if (!runtime || hasPivot || unfolded.has(node)) return undefined;
    /** @param {number} node */
    const weightOf = node => total[node] + totalBefore[node];
    for (let next = node; runtime[name[next]];) {
        if (total[node] - total[next] >= least || totalBefore[node] - totalBefore[next] >= least) break;
        const last = next;
        chain.push(next++);
        for (let child = next; child < end[last]; child = end[child]) {
            if (weightOf(child) > weightOf(next)) next = child;
        }
        if (next >= end[last]) break;
    }
    return chain.length >= SHORTEST_CHAIN ? chain : undefined;
}

/**
 * Returns all nodes with a weight and one of these names from left to right, a caller before its callees, and the
 * callers of a sandwich last.
 *
 * @param {LayoutInput} input
 * @param {Uint8Array} wanted 1 for each of these names
 */
function findNodesInOrder(input, wanted) {
    const { tree: { parent, name, lower }, weights } = input, nodes = [], onPath = new Uint8Array(parent.length);
    for (let node = parent.length - 1; node > 0; node--) {
        if (onPath[node] || wanted[name[node]]) onPath[parent[node]] = 1;
    }
    const pending = lower ? findChildren(input, PIVOT, -1).reverse() : [];
    for (let node = /** @type {number | undefined} */ (0); node !== undefined; node = pending.pop()) {
        if (node > 0 && wanted[name[node]] && weights[node] > 0) nodes.push(node);
        if (onPath[node]) for (const child of findChildren(input, node, 1).reverse()) pending.push(child);
    }
    return nodes;
}

/**
 * Lays out a tree.
 *
 * @param {LayoutInput} input
 * @returns {Layout}
 */
function layOut(input) {
    const { tree, zoom } = input, undrawn = { frames: 0, weight: 0 };
    if (input.isChart && zoom === 0 && !tree.hasPivot) {
        return layOutLanes(layOutHalf(input, 0, 1, 0, undrawn), undrawn);
    }
    if (tree.lower === undefined) {
        const boxes = tree.hasPivot ? layOutHalf(input, zoom || PIVOT, 1, 1, undrawn)
            : layOutHalf(input, zoom, 1, 0, undrawn);
        return { boxes, rows: countRows(boxes), undrawn };
    }
    // Each half of a sandwich has its own zoom.
    const isLower = isCaller(tree, zoom), upperZoom = isLower || zoom === 0 ? PIVOT : zoom;
    const callees = layOutHalf(input, upperZoom, 1, 1, undrawn);
    const callers = layOutHalf(input, isLower ? zoom : PIVOT, -1, 1, undrawn);
    const lowest = callers.reduce((lowest, { row }) => Math.min(lowest, row), 0);
    // Both halves have the function as their first box.
    const boxes = [...callees, ...callers.slice(1)].map(box => ({ ...box, row: box.row - lowest }));
    return { boxes, rows: countRows(boxes), undrawn };
}

/**
 * Moves the boxes of each thread or first frame to a lane of its own, those with the most weight first.
 *
 * @param {Box[]} boxes
 * @param {{ frames: number, weight: number }} undrawn
 * @returns {Layout}
 */
function layOutLanes(boxes, undrawn) {
    /** @type {Map<number, Box[]>} */
    const threads = new Map();
    for (const box of boxes) {
        if (box.thread === undefined) continue;
        const lane = threads.get(box.thread);
        if (lane) lane.push(box); else threads.set(box.thread, [box]);
    }
    /** @param {Box[]} lane */
    const widthOf = lane => lane.reduce((sum, { row, width }) => sum + (row === 1 ? width : 0), 0);
    const sorted = [...threads].sort((a, b) => widthOf(b[1]) - widthOf(a[1])), lanes = [];
    let start = 1;
    for (const [name, lane] of sorted) {
        const rows = countRows(lane) - 1;
        lanes.push({ name, row: start });
        for (const box of lane) {
            box.isSlice = box.row === 1;
            box.row += start - 1;
        }
        start += rows;
    }
    return { boxes, rows: start, undrawn, lanes };
}

/**
 * Returns the weight to the left of a node in a flame chart.
 *
 * @param {Tree} tree
 * @param {number} zoom
 */
function findStart({ end, own, total, time }, zoom) {
    if (time) return time.start[zoom];
    let start = 0;
    for (let node = 0; node !== zoom;) {
        start += own[node++];
        for (; end[node] <= zoom; node = end[node]) start += total[node];
    }
    return start;
}

/** @param {Box[]} boxes */
function countRows(boxes) {
    return boxes.reduce((rows, box) => Math.max(rows, box.row + 1), 0);
}

/**
 * Returns the boxes of a node, of its callers, and of the nodes that are drawn on it.
 *
 * @param {LayoutInput} input
 * @param {number} zoom
 * @param {number} direction 1 towards callees, -1 towards callers
 * @param {number} first index in the path of the first node to draw
 * @param {{ frames: number, weight: number }} undrawn gets what is too narrow
 */
function layOutHalf(input, zoom, direction, first, undrawn) {
    const { tree, weights, whole, width } = input, scale = width / (zoom === 0 ? whole : weights[zoom]);
    /** @type {Box[]} */
    const boxes = [], path = findPath(tree, zoom).slice(first);
    for (let step = 0, row = 0; step < path.length; row += direction) {
        const node = path[step], chained = findChain(input, node, input.minWidth / scale);
        const whole = chained?.filter((other, index) => path[step + index] === other);
        // The zoomed node has a box of its own.
        const chain = whole?.slice(0, path.length - 1 - step), isChain = chain && chain.length >= SHORTEST_CHAIN;
        boxes.push({ node, row, x: 0, width, above: node !== zoom, ...(isChain && { chain }) });
        step += isChain ? chain.length : 1;
    }
    const pending = boxes.slice(-1);
    for (let next = pending.pop(); next; next = pending.pop()) {
        for (const box of layOutChildren(input, next, scale, direction, undrawn)) {
            boxes.push(box);
            if (!box.folded) pending.push(box);
        }
    }
    return boxes;
}

/**
 * Returns the boxes that are drawn on a box. Adjacent ones that are too narrow to draw share a box.
 *
 * @param {LayoutInput} input
 * @param {Box} box
 * @param {number} scale pixels per weight
 * @param {number} direction
 * @param {{ frames: number, weight: number }} undrawn
 */
function layOutChildren(input, { node: start, chain, row, x, thread }, scale, direction, undrawn) {
    const node = chain?.at(-1) ?? start, { tree, tree: { time }, weights, own, minWidth, byWeight } = input;
    // In order of weight, the self weight is at the right, as the lightest frames are.
    const startsAtLeft = byWeight || (direction < 0 && !isCaller(tree, node));
    /** @type {Box[]} */
    const boxes = [];
    let left = startsAtLeft ? x : x + own[node] * scale;
    chain?.forEach((caller, index) => countSideCalls(input, caller, chain[index + 1] ?? caller, undrawn));
    /** @type {(Box & { folded: number[], frames: number }) | null} */
    let folded = null;
    for (const child of findChildren(input, node, direction, minWidth / scale)) {
        const width = weights[child] * scale, isWide = width >= minWidth;
        if (time) {
            const start = x + (time.start[child] - time.start[node]) * scale;
            // What did not run in between is not too narrow to draw.
            if (start > left + minWidth) folded = null;
            left = start;
        }
        if (isWide || !folded) {
            const chain = isWide && direction > 0 ? findChain(input, child, minWidth / scale) : undefined;
            const box = { node: child, row: row + direction, x: left, width, ...(chain && { chain }),
                thread: input.isChart ? thread ?? (time?.lane ?? tree.name)[child] : undefined };
            folded = isWide ? null : { ...box, folded: [], frames: 0 };
            boxes.push(folded ?? box);
        }
        left += width;
        if (!folded) continue;
        const frames = countFrames(input, child);
        undrawn.frames += frames;
        undrawn.weight += weights[child];
        folded.width = left - folded.x;
        folded.folded.push(child);
        folded.frames += frames;
    }
    return boxes.filter(box => box.width >= minWidth);
}

/**
 * Counts the calls beside that of the next frame of a chain, which are too narrow to draw.
 *
 * @param {LayoutInput} input
 * @param {number} node
 * @param {number} next the next frame; the node itself if it is the last one
 * @param {{ frames: number, weight: number }} undrawn
 */
function countSideCalls(input, node, next, undrawn) {
    if (next === node) return;
    for (const child of findChildren(input, node, 1, Infinity)) {
        if (child === next) continue;
        undrawn.frames += countFrames(input, child);
        undrawn.weight += input.weights[child];
    }
}

/**
 * Returns the number of nodes with a weight in the subtree of a node.
 *
 * @param {LayoutInput} input
 * @param {number} node
 */
function countFrames({ tree: { end }, weights, isFull }, node) {
    if (isFull) return end[node] - node;
    let frames = 0;
    for (let other = node; other < end[node]; other++) if (weights[other] > 0) frames++;
    return frames;
}

/**
 * Returns the neighbour of a box: in its column the widest frame, in its row the nearest box.
 *
 * @param {Box[]} boxes
 * @param {Tree} tree
 * @param {Box} start
 * @param {string} direction towards callees is `down`
 */
function findNeighbour(boxes, { parent }, start, direction) {
    const { row, x } = start;
    const step = direction === "down" ? 1 : direction === "up" ? -1 : 0, otherRow = row + step;
    /** @type {(caller: Box, callee: Box) => boolean} */
    const calls = (caller, callee) => parent[callee.node] === (caller.chain?.at(-1) ?? caller.node);
    const candidates = boxes.filter(box => (step !== 0
        ? box.row === otherRow && (calls(start, box) || calls(box, start)
            || (row === box.row - step && box.node === PIVOT))
        : box.row === row && (direction === "left" ? box.x < x : box.x > x)));
    /** @param {Box} box */
    const distance = box => (step === 0 ? Math.abs(box.x - x) : box.folded ? 0 : -box.width);
    if (candidates.length === 0) return undefined;
    return candidates.reduce((best, box) => (distance(box) < distance(best) ? box : best));
}
