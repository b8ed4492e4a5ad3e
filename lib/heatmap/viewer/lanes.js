// Draws the samples of each thread or CPU over time, in a lane that fits the width of the page.

// The sizes of a lane, the least width of a cell and the height of the axis, in pixels.
const LANE = 15, LANE_GAP = 2, CELL = 4, AXIS = 18;

// The widths of the labels of lanes in a narrow and in a wide window, and of a character.
const NARROW_LABEL = 96, WIDE_LABEL = 160, CHARACTER = 6.2;

// The number of threads or CPUs with a lane of their own: browsers draw no canvas of any height.
const MAX_LANES = 100;

/** Durations of cells, and distances of ticks, in nanoseconds. */
const DURATIONS = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8].flatMap(unit => [unit, 2 * unit, 5 * unit])
    .concat([1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200].map(seconds => seconds * SECOND));

/** @implements {TimePicture} */
class Lanes {
    /**
     * @param {Samples} samples
     * @param {LaneKind} kind
     */
    constructor(samples, kind) {
        const { names: { length } } = kind;
        this.samples = samples;
        this.kind = kind;
        /** The time that is shown. */
        this.start = this.span = 0;
        this.show(EVERYTHING);
        this.laneCount = Math.min(length, MAX_LANES) + (length > MAX_LANES ? 1 : 0);
        this.width = 100;
        this.labelWidth = NARROW_LABEL;
        this.cellDuration = SECOND;
        /** @type {Float64Array[]} The weights of the cells of each lane. */
        this.lanes = [];
        this.canvas = createHtml("canvas");
        this.marks = createSvg("svg", { class: "marks" });
        /** The times, which stay in place while lanes scroll. */
        this.axis = createSvg("svg", { class: "times", height: AXIS });
        this.scroller = this.element = createHtml("div", { class: "lanes" }, this.canvas, this.marks, this.axis);
    }

    /** Shows a part of the time. @param {TimeSelection} part */
    show({ from, to }) {
        const { times, count } = this.samples, start = this.start = Math.max(from, times[0]);
        this.span = Math.max(Math.min(to, times[count - 1] + 1) - start, 1000);
    }

    get cellCount() {
        return Math.ceil(this.span / this.cellDuration);
    }

    /** The width of a cell in pixels. */
    get cellWidth() {
        return (this.width - this.labelWidth) * this.cellDuration / this.span;
    }

    get height() {
        return this.laneCount * LANE;
    }

    /** Fits the cells into the width. */
    measure() {
        this.width = Math.max(this.element.clientWidth, 2 * NARROW_LABEL);
        this.labelWidth = this.width < 700 ? NARROW_LABEL : WIDE_LABEL;
        const least = CELL * this.span / (this.width - this.labelWidth);
        this.cellDuration = DURATIONS.find(duration => duration >= least) ?? 2 * 3600 * SECOND;
    }

    /** @param {Shown} shown */
    paint(shown) {
        this.measure();
        const { canvas, cellWidth, width, height, cellCount } = this, ratio = window.devicePixelRatio || 1;
        this.lanes = this.sum(shown);
        const largest = this.lanes.flatMap(lane => [...lane]).reduce((most, weight) => Math.max(most, weight), 0);
        [canvas.width, canvas.height] = [width * ratio, height * ratio];
        Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
        const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
        context.scale(ratio, ratio);
        for (const [index, lane] of this.lanes.entries()) {
            context.fillStyle = shown.colours[0];
            context.fillRect(this.labelWidth, index * LANE, width - this.labelWidth, LANE - LANE_GAP);
            for (let cell = 0; cell < cellCount; cell++) {
                if (!(lane[cell] > 0)) continue;
                context.fillStyle = shown.colours[Math.max(1, Math.ceil(lane[cell] / largest * 5))];
                const x = this.labelWidth + cell * cellWidth, right = Math.min(x + cellWidth + 0.3, width);
                context.fillRect(x, index * LANE, right - x, LANE - LANE_GAP);
            }
        }
        return largest;
    }

    /**
     * Sums the samples by lane and cell.
     *
     * @param {Shown} shown
     */
    sum({ thread, stacks: wanted }) {
        const { samples: { count, times, threads, weights, stacks }, start, span, cellDuration, laneCount } = this;
        const { kind: { lanes: laneOf } } = this;
        const lanes = Array.from({ length: laneCount }, () => new Float64Array(this.cellCount + 1));
        for (let index = firstIndexFrom(times, start); index < count && times[index] < start + span; index++) {
            if ((thread !== undefined && threads[index] !== thread)
                || (wanted && wanted[stacks[index]] === 0)) continue;
            const lane = lanes[Math.min(laneOf[index], laneCount - 1)];
            lane[Math.floor((times[index] - start) / cellDuration)] += weights[index];
        }
        return lanes;
    }

    /** @param {number} cell */
    weight(cell) {
        return this.lanes.reduce((sum, lane) => sum + (lane[cell] ?? 0), 0);
    }

    /**
     * Returns the name of the lane at the pointer and its weight in a cell, unless there is only one lane.
     *
     * @param {MouseEvent} event
     * @param {number} cell
     */
    laneAt({ clientY }, cell) {
        const { top } = this.canvas.getBoundingClientRect(), { laneCount, lanes } = this;
        const lane = clamp(Math.floor((clientY - top) / LANE), laneCount);
        return laneCount > 1 ? { name: this.nameOf(lane), weight: lanes[lane][cell] ?? 0 } : undefined;
    }

    /** @param {number} lane */
    nameOf(lane) {
        const { kind: { names, things } } = this;
        return lane < MAX_LANES ? names[lane] : formatThings(names.length - MAX_LANES, `other ${things}`);
    }

    /** @param {Marks} marks */
    mark({ selections, cursor }) {
        const { width, height } = this;
        setAttributes(this.marks, { width, height });
        setAttributes(this.axis, { width });
        const outlines = selections.map((selection, index) => {
            const isSeen = selection && selection.to > this.start && selection.from < this.start + this.span;
            if (!isSeen) return createSvg("g");
            const left = this.place(Math.max(selection.from, this.start));
            const right = this.place(Math.min(selection.to, this.start + this.span));
            const width = Math.max(right - left, 1), name = ["first", "second"][index];
            return createSvg("rect", { class: name, x: left, y: -1, width, height: height + 1 });
        });
        const veils = selections[0] && !selections[1] ? this.createVeils(selections[0]) : [];
        const cell = cursor === undefined ? []
            : [createSvg("rect", { class: "cursor", x: this.labelWidth + cursor * this.cellWidth, y: 0,
            width: this.cellWidth, height: height - LANE_GAP })];
        this.marks.replaceChildren(...this.createLabels(), ...veils, ...outlines, ...cell);
        this.axis.replaceChildren(...this.createTicks());
    }

    /**
     * Returns the position of a time in pixels.
     *
     * @param {number} time
     */
    place(time) {
        const share = Math.max(0, Math.min(1, (time - this.start) / this.span));
        return this.labelWidth + share * (this.width - this.labelWidth);
    }

    /** @param {TimeSelection} selection */
    createVeils({ from, to }) {
        const [left, right] = [this.place(from), this.place(to)], { height } = this;
        return [[this.labelWidth, left], [right, this.width]].map(([x, end]) =>
            createSvg("rect", { class: "veil", x, y: 0, width: Math.max(end - x, 0), height }));
    }

    createLabels() {
        return Array.from({ length: this.laneCount }, (_, index) => {
            const text = this.nameOf(index);
            const shown = shortenThread(text, Math.floor(this.labelWidth / CHARACTER));
            const label = createSvg("text", { x: 0, y: index * LANE + 10.5 }, shown);
            label.append(createSvg("title", {}, text));
            return label;
        });
    }

    createTicks() {
        const { start, span, width, labelWidth, samples: { times: [zero] } } = this, end = start + span - zero;
        const least = (labelWidth === NARROW_LABEL ? 56 : 76) * span / (width - labelWidth);
        const step = DURATIONS.find(duration => duration >= least) ?? 4 * 3600 * SECOND, ticks = [];
        for (let time = Math.ceil((start - zero) / step) * step; time <= end; time += step) {
            const x = this.place(zero + time);
            const anchor = x < labelWidth + 24 ? "start" : x > width - 24 ? "end" : "middle";
            ticks.push(createSvg("path", { class: "tick", d: `M${x},-1v4` }),
                createSvg("text", { x, y: 14, "text-anchor": anchor }, formatDuration(time, step, end)));
        }
        return ticks;
    }

    /**
     * Returns the part of the time that is shown if the scale changes by a factor around the pointer.
     *
     * @param {MouseEvent} event
     * @param {number} factor
     * @returns {TimeSelection}
     */
    zoomAround({ clientX }, factor) {
        const { start, span, width, labelWidth } = this, { left } = this.canvas.getBoundingClientRect();
        const share = Math.max(0, Math.min(1, (clientX - left - labelWidth) / (width - labelWidth)));
        const from = Math.floor(start + share * span * (1 - factor));
        return { ...EVERYTHING, from, to: from + Math.ceil(span * factor) };
    }

    /** @param {MouseEvent} event */
    cellAt({ clientX }) {
        const { left } = this.canvas.getBoundingClientRect();
        return clamp(Math.floor((clientX - left - this.labelWidth) / this.cellWidth), this.cellCount);
    }

    /**
     * @param {number} cell
     * @param {string} key
     */
    step(cell, key) {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
        return step && clamp(cell + step, this.cellCount);
    }

    /** @param {number} cell */
    timesOf(cell) {
        return this.select(cell, cell);
    }

    /**
     * @param {number} a
     * @param {number} b
     * @returns {TimeSelection}
     */
    select(a, b) {
        const { start, cellDuration } = this, from = start + Math.min(a, b) * cellDuration;
        const to = Math.min(start + (Math.max(a, b) + 1) * cellDuration, start + this.span);
        return { from, to, low: 0, high: SECOND };
    }
}

/**
 * Returns a lane for each thread.
 *
 * @param {Samples} samples
 * @returns {LaneKind}
 */
function threadLanes({ threads, names }) {
    return { lanes: threads, names, things: "threads" };
}

/**
 * Returns a lane for each CPU, in the order of their numbers.
 *
 * @param {Uint32Array} cpus
 * @returns {LaneKind}
 */
function cpuLanes(cpus) {
    const numbers = [...new Set(cpus)].sort((a, b) => a - b), lanes = new Map(numbers.map((cpu, lane) => [cpu, lane]));
    const names = numbers.map(cpu => `CPU ${cpu}`);
    return { lanes: cpus.map(cpu => lanes.get(cpu) ?? 0), names, things: "CPUs" };
}

/**
 * Shortens the name of a thread in the middle, so that its ID stays, which alone tells the threads of a pool apart.
 *
 * @param {string} text
 * @param {number} most number of characters
 */
function shortenThread(text, most) {
    const name = text.replace(/ \d+\/(\d+)$/, " $1"), [id] = name.match(/ \d+$/) ?? [""];
    return name.length > most ? `${name.slice(0, most - 1 - id.length)}…${id}` : name;
}

/**
 * Returns the valid index that is nearest to a value.
 *
 * @param {number} value
 * @param {number} count
 */
function clamp(value, count) {
    return Math.max(0, Math.min(count - 1, value));
}
