// Puts the samples of each thread in the order of time: a flame chart of the selected time.

// A sample stands for the time since the one before it in its thread. If that is longer ago than this many distances
// between samples of a thread that runs, the thread did not run in between.
const LONGEST_DISTANCE = 2.5;

/** Adds nodes in the order of time. */
class ChartBuilder {
    constructor() {
        /** @type {number[]} */
        this.parent = [0];
        /** @type {number[]} */
        this.name = [0];
        /** @type {number[]} */
        this.start = [0];
        /** @type {number[]} */
        this.lane = [0];
        /** @type {number[]} */
        this.end = [0];
        /** @type {number[]} */
        this.own = [0];
        /** @type {number[]} The nodes of the last stack. */
        this.open = [];
    }

    /**
     * Adds a sample. Frames that it shares with the last one go on.
     *
     * @param {number} lane
     * @param {number[]} names
     * @param {number} start
     * @param {number} duration
     */
    add(lane, names, start, duration) {
        const { open, name } = this;
        let shared = 0;
        while (shared < open.length && name[open[shared]] === names[shared]) shared++;
        this.close(shared);
        for (const frame of names.slice(shared)) {
            const node = name.push(frame) - 1;
            this.parent.push(open.at(-1) ?? 0);
            this.start.push(start);
            this.lane.push(lane);
            this.end.push(0);
            this.own.push(0);
            open.push(node);
        }
        this.own[open.at(-1) ?? 0] += duration;
    }

    /** Ends all frames but the first ones. @param {number} count */
    close(count) {
        while (this.open.length > count) this.end[/** @type {number} */ (this.open.pop())] = this.name.length;
    }

    /**
     * Returns the tree.
     *
     * @param {number} start
     * @param {number} span
     * @param {string[]} laneNames
     * @returns {Tree}
     */
    build(start, span, laneNames) {
        this.close(0);
        this.end[0] = this.name.length;
        this.start[0] = start;
        const { parent, name, end, own, lane } = this;
        return sumTotals({ parent: Uint32Array.from(parent), name: Uint32Array.from(name), end: Uint32Array.from(end),
            own: Float64Array.from(own), total: new Float64Array(own.length),
            time: { start: Float64Array.from(this.start), lane: Uint32Array.from(lane), span, laneNames } });
    }
}

/**
 * Returns the flame chart of a selection. The stacks are filtered as those of the graph are.
 *
 * @param {TimePanel} panel
 * @param {Pick<Changes, "only" | "hide" | "omit" | "recursion">} changes
 * @param {TimeSelection} selection
 * @param {number | undefined} thread index of a thread, or undefined for all
 */
function buildChart({ leaves, samples, settings, profile }, { only, hide, omit, recursion }, selection, thread) {
    const { keys, tree } = profile, [kind, unit] = KNOWN_UNITS[settings.countName] ?? [];
    const filter = { only: splitLines(only).map(name => findNames(keys, name)), hide: findNames(keys, hide),
        omit: findNames(keys, omit), mergesRecursion: Boolean(recursion) };
    /** @param {number} stack */
    const namesOf = stack => {
        const path = findPath(tree, leaves[stack]).slice(1).map(node => tree.name[node]);
        return filterNames(path, filter);
    };
    return orderSamples(samples, selection, thread, namesOf, kind === "time" && unit ? unit * settings.factor : 0);
}

/**
 * Returns a flame chart with a lane for each thread. Times are in nanoseconds since the first sample.
 *
 * @param {Samples} samples
 * @param {TimeSelection} selection
 * @param {number | undefined} thread index of a thread, or undefined for all
 * @param {(stack: number) => number[]} namesOf returns the frames of a stack that are shown
 * @param {number} unit nanoseconds in a weight that is a duration; 0 if weights are none
 * @returns {Work<Tree>}
 */
function* orderSamples(samples, selection, thread, namesOf, unit) {
    const { times, count, stacks, weights, names } = samples, zero = times[0];
    const from = Math.max(selection.from, zero), end = Math.min(selection.to, times[count - 1] + 1);
    const span = Math.max(end - from, 1);
    const builder = new ChartBuilder(), known = /** @type {Map<number, number[]>} */ (new Map());
    const groups = groupByThread(samples, selection, thread), distance = findDistance(groups, times);
    let steps = 0;
    for (const [lane, indices] of groups.entries()) {
        let last = from;
        for (const index of indices) {
            if (steps++ % SLICE === SLICE - 1) yield;
            const time = times[index];
            const longest = unit > 0 ? weights[index] * unit
                : time - last <= LONGEST_DISTANCE * distance ? Infinity : distance;
            const start = Math.max(last, time - longest), stack = stacks[index];
            if (!known.has(stack)) known.set(stack, namesOf(stack));
            const frames = known.get(stack) ?? [];
            if (start > last || frames.length === 0) builder.close(0);
            if (frames.length > 0) builder.add(lane, frames, start - zero, time - start);
            last = time;
        }
        builder.close(0);
    }
    return builder.build(from - zero, span, names);
}

/**
 * Returns the indices of the selected samples of each thread, in the order of time.
 *
 * @param {Samples} samples
 * @param {TimeSelection} selection
 * @param {number | undefined} thread
 */
function groupByThread({ times, count, threads, names }, { from, to, low, high }, thread) {
    /** @type {number[][]} */
    const groups = names.map(() => []);
    for (let index = firstIndexFrom(times, from); index < count && times[index] < to; index++) {
        const offset = times[index] % SECOND;
        const isSelected = thread === undefined || threads[index] === thread;
        if (isSelected && offset >= low && offset < high) groups[threads[index]].push(index);
    }
    return groups;
}

/**
 * Returns the distance between samples of a thread that runs all the time: the lower quartile of all distances,
 * or a millisecond if no thread has two samples.
 *
 * @param {number[][]} groups samples of each thread
 * @param {Float64Array} times
 */
function findDistance(groups, times) {
    const distances = groups.flatMap(indices =>
        indices.slice(1).map((index, position) => times[index] - times[indices[position]]));
    return Float64Array.from(distances).sort()[distances.length >> 2] ?? 1e6;
}

/**
 * Returns the frames of a stack that are shown; none if the whole stack is dropped.
 *
 * @param {number[]} path names of the frames
 * @param {StackFilter} filter
 */
function filterNames(path, { only, hide, omit, mergesRecursion }) {
    const isDropped = path.some(name => hide[name]) || !only.every(wanted => path.some(name => wanted[name]));
    if (isDropped) return [];
    const names = path.filter(name => !omit[name]);
    return mergesRecursion ? [...new Set(names)] : names;
}
