// The samples that the file carries, in the order of their times, and sums of those that are selected.

const SECOND = 1e9;

// Times are in nanoseconds from the first sample's second, which is `base` on the recording's clock.
async function readSamples(root) {
    const bytes = await unpack(root, "samples"), numbers = new Numbers(bytes);
    const [base, unit, rows, lost, count, threadCount, isWeighted] = Array.from({ length: 7 }, () => numbers.next());
    const times = new Float64Array(count);
    for (let at = 0, time = 0; at < count; at++) times[at] = time += numbers.next() * unit;
    const column = array => {
        for (let at = 0; at < count; at++) array[at] = numbers.next();
        return array;
    };
    const stacks = column(new Uint32Array(count)), threads = column(new Uint32Array(count));
    const weights = isWeighted ? column(new Float64Array(count)) : new Float64Array(count).fill(1);
    const names = new TextDecoder().decode(bytes.subarray(numbers.at)).split("\n").slice(0, threadCount);
    return { base, rows, lost, count, times, stacks, threads, weights, names };
}

// A part of the time: from `from` up to, but not including, `to`, and of every second from `low` up to `high`.
const EVERYTHING = { from: -Infinity, to: Infinity, low: 0, high: SECOND };

// Where a row begins within the second. No sample falls between this and the row.
function rowStart(row, rows) {
    return Math.ceil(row * SECOND / rows);
}

// What lies between two cells: a span of time, or of the seconds between them a part.
function partBetween(a, b, rows, isRectangle) {
    const [low, high] = [rowStart(Math.min(a.row, b.row), rows), rowStart(Math.max(a.row, b.row) + 1, rows)];
    const [first, last] = [Math.min(a.second, b.second), Math.max(a.second, b.second)];
    if (isRectangle) return { from: first * SECOND, to: (last + 1) * SECOND, low, high };
    const [start, end] = a.second < b.second || (a.second === b.second && a.row <= b.row) ? [a, b] : [b, a];
    const from = start.second * SECOND + rowStart(start.row, rows), to = end.second * SECOND + rowStart(end.row + 1, rows);
    return { from, to, low: 0, high: SECOND };
}

// What each node weighs in the samples of a part; `thread` is the number of one, or undefined for all.
function sumOf(samples, part, thread, leaves, nodeCount) {
    const { count, times, stacks, threads, weights } = samples, { from, to, low, high } = part;
    const own = new Float64Array(nodeCount);
    let selected = 0, weight = 0;
    for (let at = firstAtOrAfter(times, from); at < count && times[at] < to; at++) {
        const offset = times[at] - Math.floor(times[at] / SECOND) * SECOND;
        if (offset < low || offset >= high || (thread !== undefined && threads[at] !== thread)) continue;
        own[leaves[stacks[at]]] += weights[at];
        weight += weights[at];
        selected++;
    }
    return { own, count: selected, weight };
}

function firstAtOrAfter(times, time) {
    let low = 0, high = times.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (times[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
}

// What each cell weighs: second after second, in each from its first row to its last.
function cellsOf({ count, times, threads, weights, rows }, seconds, thread) {
    const cells = new Float64Array(seconds * rows);
    for (let at = 0; at < count; at++) {
        if (thread !== undefined && threads[at] !== thread) continue;
        const second = Math.floor(times[at] / SECOND);
        cells[second * rows + Math.floor((times[at] - second * SECOND) * rows / SECOND)] += weights[at];
    }
    return cells;
}

// Seconds with a fraction, exact.
function secondsText(nanoseconds, base = 0) {
    const whole = Math.floor(nanoseconds / SECOND);
    const fraction = String(nanoseconds - whole * SECOND).padStart(9, "0").replace(/0+$/, "");
    return `${base + whole}${fraction && "."}${fraction}`;
}

function readSeconds(text, base = 0) {
    const [, whole, fraction = ""] = text.match(/^(\d+)(?:\.(\d{1,9}))?$/) ?? [];
    return whole === undefined ? NaN : (Number(whole) - base) * SECOND + Number(fraction.padEnd(9, "0"));
}

// The part that `--time` and `--offset` of fg-collapse select when they are given these; undefined if they are none.
function readPart(time, offset, base) {
    const ends = (text, base) => text.split(",").map(end => readSeconds(end, base));
    if (!time && !offset) return undefined;
    const [from, to] = time ? ends(time, base) : [-Infinity, Infinity], [low, high] = offset ? ends(offset, 0) : [0, SECOND];
    return from < to && low < high ? { from, to, low, high } : undefined;
}

function partTexts({ from, to, low, high }, base) {
    const isSpan = low === 0 && high === SECOND, isAlways = from === -Infinity;
    return {
        time: isAlways ? "" : `${secondsText(from, base)},${secondsText(to, base)}`,
        offset: isSpan ? "" : `${secondsText(low)},${secondsText(high)}`,
    };
}
