// Computes where frames go: the node in view over the whole width, its callers, and its callees as far as they are wide
// enough.

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
 * Returns the nodes that are drawn on a node: its callees, or its callers if it is in the lower half of a sandwich.
 *
 * @param {LayoutInput} input
 * @param {number} node
 * @param {number} direction 1 towards callees, -1 towards callers
 */
function findChildren({ tree, weights, byWeight }, node, direction) {
    const { parent, end, lower } = tree, children = [];
    const [first, last] = lower && direction < 0 && node < lower ? [lower, parent.length] : [node + 1, end[node]];
    for (let child = first; child < last; child = end[child]) if (weights[child] > 0) children.push(child);
    if (byWeight) children.sort((a, b) => weights[b] - weights[a]);
    return children;
}

/**
 * Returns all nodes with a weight from left to right, a caller before its callees, and the callers of a sandwich last.
 *
 * @param {LayoutInput} input
 */
function findNodesInOrder(input) {
    const { tree: { parent, lower }, weights, byWeight } = input, nodes = [];
    if (!byWeight) {
        for (let node = 1; node < parent.length; node++) if (weights[node] > 0) nodes.push(node);
        return nodes;
    }
    const pending = lower ? findChildren(input, PIVOT, -1).reverse() : [];
    for (let node = /** @type {number | undefined} */ (0); node !== undefined; node = pending.pop()) {
        if (node > 0) nodes.push(node);
        for (const child of findChildren(input, node, 1).reverse()) pending.push(child);
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
    const boxes = findPath(tree, zoom).slice(first)
        .map((node, step) => ({ node, row: step * direction, x: 0, width, above: node !== zoom }));
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
function layOutChildren(input, { node, row, x }, scale, direction, undrawn) {
    const { tree, weights, own, minWidth } = input, startsAtLeft = direction < 0 && !isCaller(tree, node);
    /** @type {Box[]} */
    const boxes = [];
    let left = startsAtLeft ? x : x + own[node] * scale;
    /** @type {(Box & { folded: number[] }) | null} */
    let folded = null;
    for (const child of findChildren(input, node, direction)) {
        const box = { node: child, row: row + direction, x: left, width: weights[child] * scale };
        left += box.width;
        if (box.width >= minWidth) {
            boxes.push(box);
            folded = null;
            continue;
        }
        undrawn.frames += countFrames(input, child);
        undrawn.weight += weights[child];
        if (folded) {
            folded.width = left - folded.x;
            folded.folded.push(child);
        } else {
            boxes.push(folded = { ...box, folded: [child] });
        }
    }
    return boxes.filter(box => box.width >= minWidth);
}

/**
 * Returns the number of nodes with a weight in the subtree of a node.
 *
 * @param {{ tree: Tree, weights: Float64Array }} input
 * @param {number} node
 */
function countFrames({ tree: { end }, weights }, node) {
    let frames = 0;
    for (let other = node; other < end[node]; other++) if (weights[other] > 0) frames++;
    return frames;
}

/**
 * Returns the neighbour of a box: in its column the widest, in its row the nearest.
 *
 * @param {DrawnBox[]} boxes
 * @param {Tree} tree
 * @param {DrawnBox} box
 * @param {string} direction towards callees is `down`
 */
function findNeighbour(boxes, { parent }, { node, row, x }, direction) {
    const step = direction === "down" ? 1 : direction === "up" ? -1 : 0, otherRow = row + step;
    const candidates = boxes.filter(box => !box.folded && (step !== 0
        ? box.row === otherRow && (parent[box.node] === node || parent[node] === box.node
            || (row === box.row - step && box.node === PIVOT))
        : box.row === row && (direction === "left" ? box.x < x : box.x > x)));
    /** @param {DrawnBox} box */
    const distance = box => (step !== 0 ? -box.width : Math.abs(box.x - x));
    if (candidates.length === 0) return undefined;
    return candidates.reduce((best, box) => (distance(box) < distance(best) ? box : best));
}
