// Reads the profile that the file contains into a tree of frames.

// Traits of a name: it is a marker; its colour needs white text; its difference is significant; the rest is one more
// than its class of colours, or 0.
const STATE = 1, DARK = 2, SIGNIFICANT = 128, CLASS_SHIFT = 2;

// The columns of the stacks.
const COLUMNS = ["removed", "added", "frames", "weights"];

// Number of bytes for each name: red, green, blue, traits, and the index of its module.
const LOOKS = 6;

/**
 * Decodes data that is compressed with deflate and written as base64. Each step waits only for the one before it, so
 * that the browser does not continue with the rest of the file in between.
 *
 * @param {Element} root
 * @param {string} kind class of the elements with the data
 */
async function unpack(root, kind) {
    // Base64 of all chunks but the last has no padding.
    const chunks = [...root.querySelectorAll(`:scope > metadata.${kind}`)].map(chunk => chunk.textContent);
    const packed = new ReadableStream({
        start(stream) {
            stream.enqueue(toBytes(chunks.join("")));
            stream.close();
        },
    });
    /** @type {Uint8Array[]} */
    const pieces = [];
    const reader = packed.pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) pieces.push(piece.value);
    const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let offset = 0;
    for (const piece of pieces) {
        bytes.set(piece, offset);
        offset += piece.length;
    }
    return bytes;
}

/** @param {string} base64 */
function toBytes(base64) {
    /** @type {{ fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }} */
    const { fromBase64 } = /** @type {any} */ (Uint8Array);
    if (fromBase64) return fromBase64.call(Uint8Array, base64);
    const text = atob(base64), bytes = new Uint8Array(text.length);
    for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index);
    return bytes;
}

/**
 * Reads the profile.
 *
 * @param {GraphElement} root
 * @param {number[]} [leaves] gets the last node of each stack
 * @returns {Promise<Profile>}
 */
async function readProfile(root, leaves) {
    const [names, ...columns] = await Promise.all(["names", ...COLUMNS].map(kind => unpack(root, kind)));
    const { whole, largestDelta, judged, elided } = root.dataset, differential = largestDelta !== undefined;
    const read = readStacks(columns, Number(root.dataset.frames) + 1, differential, leaves), { own, total } = read;
    // The picture has the weights before for those after.
    const tree = elided ? { ...read, own: own.map(() => 0), total: total.map(() => 0), ownBefore: own,
        totalBefore: total } : read;
    const scale = { whole: elided ? 0 : Number(whole), largestDelta: Number(largestDelta) };
    const elements = removeNameElements(root);
    const named = readNames(names, Number(root.dataset.names)), isFlattened = named.names.includes("[flattened]");
    const isScaled = isFlattened || Math.abs((tree.totalBefore?.[0] ?? 0) / tree.total[0] - 1) < 1e-9;
    return { tree, differential, isScaled, isFlattened, judged: Boolean(judged), ...scale, elements, ...named };
}

/**
 * Removes the elements of names with attributes of their own from the document and returns them.
 *
 * @param {GraphElement} root
 */
function removeNameElements(root) {
    const container = root.querySelector(":scope > metadata.elements");
    container?.remove();
    return new Map([...container?.children ?? []].map(element => [Number(element.getAttribute("data-name")), element]));
}

/**
 * Reads the names: first the bytes with each name's look, then the names, then the names of modules, one per line.
 *
 * @param {Uint8Array} bytes
 * @param {number} count
 */
function readNames(bytes, count) {
    const lines = new TextDecoder().decode(bytes.subarray(LOOKS * count)).split("\n");
    const names = lines.slice(0, count), modules = ["", ...lines.slice(count, -1)];
    const looks = bytes.subarray(0, LOOKS * count);
    const keys = !modules.includes("waker") ? names : names.map((name, index) =>
        (moduleOfName({ looks, modules }, index) === "waker" ? `${name}_[w]` : name));
    return { names, keys, modules, looks };
}

/** Reads consecutive LEB128 numbers. */
class Leb128Reader {
    /** @param {Uint8Array} bytes */
    constructor(bytes) {
        this.bytes = bytes;
        this.offset = 0;
    }

    next() {
        let byte = this.bytes[this.offset++], value = byte & 127;
        for (let scale = 128; byte > 127; scale *= 128) {
            byte = this.bytes[this.offset++];
            value += (byte & 127) * scale;
        }
        return value;
    }

    /** Reads a weight: a whole number shifted left by one bit, or, if the lowest bit is set, millionths. */
    nextWeight() {
        const isFraction = this.bytes[this.offset] & 1, value = this.next();
        return isFraction ? (value - 1) / 2e6 : value / 2;
    }
}

/**
 * Builds the tree of the packed stacks. Node 0 is the root, which has no name. Each column is decoded by a loop of its
 * own, which browsers compile sooner than one with all of them.
 *
 * @param {Uint8Array[]} columns
 * @param {number} count number of nodes
 * @param {boolean} differential
 * @param {number[]} [leaves]
 */
function readStacks([removed, added, frames, weights], count, differential, leaves) {
    const tree = newTree(count, differential), { parent, name, end, own, ownBefore } = tree;
    const stacks = countNumbers(removed), reader = new Leb128Reader(weights);
    const [removals, additions] = [removed, added].map(column => decodeNumbers(column, new Uint32Array(stacks)));
    decodeNumbers(frames, name.subarray(1));
    let node = 1, leaf = 0;
    for (let stack = 0; stack < stacks; stack++) {
        for (let rest = removals[stack]; rest > 0; rest--) {
            end[leaf] = node;
            leaf = parent[leaf];
        }
        for (let rest = additions[stack]; rest > 0; rest--) {
            parent[node] = leaf;
            leaf = node++;
        }
        leaves?.push(leaf);
        if (ownBefore) ownBefore[leaf] += reader.nextWeight();
        own[leaf] += reader.nextWeight();
    }
    for (; leaf > 0; leaf = parent[leaf]) end[leaf] = node;
    end[0] = node;
    return sumTotals(tree);
}

/**
 * Returns how many LEB128 numbers there are: each ends with a byte below 128.
 *
 * @param {Uint8Array} bytes
 */
function countNumbers(bytes) {
    let count = 0;
    for (let offset = 0; offset < bytes.length; offset++) if (bytes[offset] < 128) count++;
    return count;
}

/**
 * Decodes LEB128 numbers into an array, and returns it.
 *
 * @param {Uint8Array} bytes
 * @param {Uint32Array} numbers
 */
function decodeNumbers(bytes, numbers) {
    for (let index = 0, offset = 0; index < numbers.length; index++) {
        let byte = bytes[offset++], value = byte & 127;
        for (let shift = 7; byte > 127; shift += 7) {
            byte = bytes[offset++];
            value |= (byte & 127) << shift;
        }
        numbers[index] = value;
    }
    return numbers;
}

/**
 * Returns a tree without weights.
 *
 * @param {number} count number of nodes
 * @param {boolean} differential
 * @returns {Tree}
 */
function newTree(count, differential) {
    return {
        parent: new Uint32Array(count),
        name: new Uint32Array(count),
        end: new Uint32Array(count),
        own: new Float64Array(count),
        total: new Float64Array(count),
        ...(differential && { ownBefore: new Float64Array(count), totalBefore: new Float64Array(count) }),
    };
}

/**
 * Computes the totals of a tree from the weights of its nodes.
 *
 * @param {Tree} tree
 */
function sumTotals(tree) {
    const { parent, own, total, ownBefore, totalBefore } = tree;
    sumColumn(parent, own, total);
    if (ownBefore && totalBefore) sumColumn(parent, ownBefore, totalBefore);
    return tree;
}

/**
 * @param {Uint32Array} parent
 * @param {Float64Array} own
 * @param {Float64Array} total
 */
function sumColumn(parent, own, total) {
    total.set(own);
    for (let node = parent.length - 1; node > 0; node--) total[parent[node]] += total[node];
}
