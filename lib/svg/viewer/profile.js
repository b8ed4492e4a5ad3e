// The profile that the file carries: a tree of frames in arrays, a caller before what it calls.

const STATE = 1, DARK = 2;

// The bytes of a packed text: base64, then deflate. No step waits for anything but the one before, so that all is done
// before the browser goes on with the rest of the file.
async function unpack(root, kind) {
    const chunks = [...root.querySelectorAll(`:scope > metadata.${kind}`)].map(chunk => bytesOf(atob(chunk.textContent)));
    const packed = new ReadableStream({ pull: stream => (chunks.length > 0 ? stream.enqueue(chunks.shift()) : stream.close()) });
    const reader = packed.pipeThrough(new DecompressionStream("deflate-raw")).getReader(), pieces = [];
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) pieces.push(piece.value);
    const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
        bytes.set(piece, at);
        at += piece.length;
    }
    return bytes;
}

function bytesOf(text) {
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    return bytes;
}

// The profile, with what its whole width stands for and its largest difference. `leaves`, if given, gets the node of each
// stack.
async function readProfile(root, leaves) {
    const [stacks, names] = await Promise.all([unpack(root, "stacks"), unpack(root, "names")]);
    const { whole, largestDelta } = root.dataset, differential = largestDelta !== undefined;
    const tree = readStacks(stacks, Number(root.dataset.frames) + 1, differential, leaves);
    const numbers = { whole: Number(whole), largestDelta: Number(largestDelta) };
    return { tree, differential, ...numbers, elements: takeElements(root), ...readNames(names, Number(root.dataset.names)) };
}

// The elements of the names that have attributes of their own.
function takeElements(root) {
    const given = root.querySelector(":scope > metadata.elements");
    given?.remove();
    return new Map([...given?.children ?? []].map(element => [Number(element.dataset.name), element]));
}

// Four bytes a name for its colour and traits; then the names, a line each.
function readNames(bytes, count) {
    const names = new TextDecoder().decode(bytes.subarray(4 * count)).split("\n");
    names.pop();
    return { names, looks: bytes.subarray(0, 4 * count) };
}

// Reads LEB128, one number after the other.
class Numbers {
    constructor(bytes) {
        Object.assign(this, { bytes, at: 0 });
    }

    next() {
        let value = 0, scale = 1, byte;
        do {
            byte = this.bytes[this.at++];
            value += (byte & 127) * scale;
            scale *= 128;
        } while (byte > 127);
        return value;
    }
}

// The tree of the packed stacks. Node 0 is the root, which stands for everything and has no name.
function readStacks(bytes, count, differential, leaves) {
    const tree = newTree(count, differential), numbers = new Numbers(bytes);
    const path = [0], number = () => numbers.next();
    let node = 1;
    function weight() {
        const fraction = bytes[numbers.at] & 1, value = number();
        return fraction ? (value - 1) / 2e6 : value / 2;
    }
    while (numbers.at < bytes.length) {
        for (let gone = number(); gone > 0; gone--) tree.end[path.pop()] = node;
        for (let come = number(); come > 0; come--) {
            tree.parent[node] = path[path.length - 1];
            tree.name[node] = number();
            path.push(node++);
        }
        const leaf = path[path.length - 1];
        leaves?.push(leaf);
        if (differential) tree.ownBefore[leaf] += weight();
        tree.own[leaf] += weight();
    }
    while (path.length > 0) tree.end[path.pop()] = node;
    return addUp(tree);
}

function newTree(count, differential) {
    const tree = {
        parent: new Uint32Array(count),
        name: new Uint32Array(count),
        // The first node behind all that is called from here.
        end: new Uint32Array(count),
        own: new Float64Array(count),
        total: new Float64Array(count),
    };
    if (differential) {
        tree.ownBefore = new Float64Array(count);
        tree.totalBefore = new Float64Array(count);
    }
    return tree;
}

function addUp(tree) {
    const pairs = tree.ownBefore ? [["own", "total"], ["ownBefore", "totalBefore"]] : [["own", "total"]];
    for (const [own, total] of pairs) {
        tree[total].set(tree[own]);
        for (let node = tree.parent.length - 1; node > 0; node--) tree[total][tree.parent[node]] += tree[total][node];
    }
    return tree;
}
