// Reads the samples that the file contains, and sums those that are selected.

// Nanoseconds.
const SECOND = 1e9;

/** @type {TimeSelection} */
const EVERYTHING = { from: -Infinity, to: Infinity, low: 0, high: SECOND };

/**
 * Reads the samples.
 *
 * @param {GraphElement} root
 * @returns {Promise<Samples>}
 */
async function readSamples(root) {
    const bytes = await unpack(root, "samples"), reader = new Leb128Reader(bytes);
    const [base, unit, rows, lost, count, threadCount, isWeighted, hasCpus] =
        Array.from({ length: 8 }, () => reader.next());
    const times = new Float64Array(count);
    for (let index = 0, time = 0; index < count; index++) times[index] = time += reader.next() * unit;
    const stacks = Uint32Array.from({ length: count }, () => reader.next());
    const threads = Uint32Array.from({ length: count }, () => reader.next());
    const weights = Float64Array.from({ length: count }, () => (isWeighted ? reader.next() : 1));
    const cpus = hasCpus ? Uint32Array.from({ length: count }, () => reader.next()) : undefined;
    const names = new TextDecoder().decode(bytes.subarray(reader.offset)).split("\n").slice(0, threadCount);
    return { base, rows, lost, count, times, stacks, threads, weights, cpus, names };
}

/**
 * Returns the start of a row in its second. No sample lies between the exact start and this.
 *
 * @param {number} row
 * @param {number} rows
 */
function rowStart(row, rows) {
    return Math.ceil(row * SECOND / rows);
}

/**
 * Returns the selection between two cells: the same rows of several seconds, or all the time from one to the other.
 *
 * @param {Cell} a
 * @param {Cell} b
 * @param {number} rows
 * @param {boolean} isRectangle
 * @returns {TimeSelection}
 */
function selectBetween(a, b, rows, isRectangle) {
    const [low, high] = [rowStart(Math.min(a.row, b.row), rows), rowStart(Math.max(a.row, b.row) + 1, rows)];
    const [first, last] = [Math.min(a.second, b.second), Math.max(a.second, b.second)];
    if (isRectangle) return { from: first * SECOND, to: (last + 1) * SECOND, low, high };
    const [start, end] = a.second < b.second || (a.second === b.second && a.row <= b.row) ? [a, b] : [b, a];
    const from = start.second * SECOND + rowStart(start.row, rows);
    const to = end.second * SECOND + rowStart(end.row + 1, rows);
    return { from, to, low: 0, high: SECOND };
}

/**
 * Sums the samples of a selection by node.
 *
 * @param {Samples} samples
 * @param {TimeSelection} selection
 * @param {number | undefined} thread index of a thread, or undefined for all
 * @param {Uint32Array} leaves the last node of each stack
 * @param {number} nodeCount
 * @returns {Sums}
 */
function sumSamples(samples, selection, thread, leaves, nodeCount) {
    const { count, times, stacks, threads, weights } = samples, { from, to, low, high } = selection;
    const own = new Float64Array(nodeCount);
    let selected = 0, weight = 0;
    for (let index = firstIndexFrom(times, from); index < count && times[index] < to; index++) {
        const offset = times[index] - Math.floor(times[index] / SECOND) * SECOND;
        if (offset < low || offset >= high || (thread !== undefined && threads[index] !== thread)) continue;
        own[leaves[stacks[index]]] += weights[index];
        weight += weights[index];
        selected++;
    }
    return { own, count: selected, weight };
}

/**
 * Returns the index of the first sample that was not taken before a time.
 *
 * @param {Float64Array} times
 * @param {number} time
 */
function firstIndexFrom(times, time) {
    let low = 0, high = times.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (times[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
}

/**
 * Returns the number of the cell with a time.
 *
 * @param {number} time
 * @param {number} rows
 */
function cellOf(time, rows) {
    const second = Math.floor(time / SECOND);
    return second * rows + Math.floor((time - second * SECOND) * rows / SECOND);
}

/**
 * Sums the samples by cell: second by second, each from its first row to its last.
 *
 * @param {Samples} samples
 * @param {number} seconds
 * @param {number | undefined} thread index of a thread, or undefined for all
 * @param {Uint8Array | null} wanted 1 for each stack that counts; null for all
 */
function sumCells({ count, times, threads, weights, stacks, rows }, seconds, thread, wanted) {
    const cells = new Float64Array(seconds * rows);
    for (let index = 0; index < count; index++) {
        if ((thread !== undefined && threads[index] !== thread) || (wanted && wanted[stacks[index]] === 0)) continue;
        cells[cellOf(times[index], rows)] += weights[index];
    }
    return cells;
}

/**
 * Formats nanoseconds as seconds, exactly.
 *
 * @param {number} nanoseconds
 * @param {number} [base] seconds to add
 */
function formatSeconds(nanoseconds, base = 0) {
    const whole = Math.floor(nanoseconds / SECOND);
    const fraction = String(nanoseconds - whole * SECOND).padStart(9, "0").replace(/0+$/, "");
    return `${base + whole}${fraction && "."}${fraction}`;
}

/**
 * Parses seconds into nanoseconds. Returns NaN if the text is invalid.
 *
 * @param {string} text
 * @param {number} base seconds to subtract
 */
function parseSeconds(text, base) {
    const [, whole, fraction = ""] = text.match(/^(\d+)(?:\.(\d{1,9}))?$/) ?? [];
    return whole === undefined ? NaN : (Number(whole) - base) * SECOND + Number(fraction.padEnd(9, "0"));
}

/**
 * Parses a selection from the values of fg-collapse's `--time` and `--offset`. Returns undefined if they are invalid or
 * both empty.
 *
 * @param {string} time
 * @param {string} offset
 * @param {number} base
 * @returns {TimeSelection | undefined}
 */
function parseSelection(time, offset, base) {
    if (!time && !offset) return undefined;
    const [from, to] = time ? time.split(",").map(text => parseSeconds(text, base)) : [-Infinity, Infinity];
    const [low, high] = offset ? offset.split(",").map(text => parseSeconds(text, 0)) : [0, SECOND];
    return from < to && low < high ? { from, to, low, high } : undefined;
}

/**
 * Formats a selection as values of fg-collapse's `--time` and `--offset`, empty if they select everything.
 *
 * @param {TimeSelection} selection
 * @param {number} base
 */
function formatSelection({ from, to, low, high }, base) {
    const hasAllOffsets = low === 0 && high === SECOND, hasAllTimes = from === -Infinity;
    return {
        time: hasAllTimes ? "" : `${formatSeconds(from, base)},${formatSeconds(to, base)}`,
        offset: hasAllOffsets ? "" : `${formatSeconds(low)},${formatSeconds(high)}`,
    };
}
