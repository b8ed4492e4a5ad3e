// Draws the map of cells: seconds from left to right, the time within each second from bottom to top. The seconds are
// those of the recording's clock, on which parts of seconds are selected. The scale has times since the first sample.

// Browsers draw no wider canvas.
const MAX_CANVAS_WIDTH = 32_000;

/** @implements {TimePicture} */
class SecondsMap {
    /** @param {Samples} samples */
    constructor(samples) {
        const { times, count, rows } = samples;
        this.samples = samples;
        this.rows = rows;
        /** The first second that is shown, and the number of seconds. */
        this.first = this.seconds = 0;
        this.show(EVERYTHING);
        this.cellDuration = SECOND / rows;
        /** The cells of the first and of the last sample. */
        this.firstCell = cellOf(times[0], rows);
        this.lastCell = cellOf(times[count - 1], rows);
        this.cells = new Float64Array();
        /** The size of a cell and of the map, in pixels. */
        this.cellWidth = 1;
        this.cellHeight = 1;
        this.width = 0;
        this.height = 0;
        this.canvas = createHtml("canvas");
        this.marks = createSvg("svg", { class: "marks" });
        this.outlines = ["first", "second", "cursor"].map(name => createSvg("path", { class: name }));
        this.ticks = createSvg("g");
        this.marks.append(this.ticks, ...this.outlines);
        this.scale = createSvg("svg", { class: "scale", width: 52 });
        this.scroller = createHtml("div", { class: "cells" }, this.canvas, this.marks);
        this.element = createHtml("div", { class: "seconds" }, this.scale, this.scroller);
    }

    /** Shows the seconds of a part of the time. @param {TimeSelection} part */
    show({ from, to }) {
        const { times, count } = this.samples, end = Math.min(to, times[count - 1] + 1);
        this.first = Math.floor(Math.max(from, 0) / SECOND);
        this.seconds = Math.max(Math.ceil(end / SECOND) - this.first, 1);
    }

    /** @param {number} cell */
    weight(cell) {
        return this.cells[cell];
    }

    /** Fits the map into the available width. */
    measure() {
        const { seconds, rows } = this, available = Math.max(this.element.clientWidth - 60, 100);
        const minWidth = Math.max(1, Math.floor(Math.min(4, MAX_CANVAS_WIDTH / seconds)));
        this.cellWidth = Math.max(available / seconds, minWidth);
        this.cellHeight = Math.max(1, Math.min(20, Math.round(160 / rows)));
        const width = this.width = seconds * this.cellWidth, height = this.height = rows * this.cellHeight;
        setAttributes(this.marks, { width: width + 8, height: height + 22 });
        setAttributes(this.scale, { height: height + 22 });
        this.canvas.style.width = `${width}px`;
        this.canvas.style.height = `${height}px`;
        const { style, offsetHeight, clientHeight } = this.scroller;
        // A bar for scrolling must not cover the times.
        style.height = `${height + 22 + offsetHeight - clientHeight}px`;
        this.drawTicks();
    }

    /**
     * Paints each cell as one pixel. The style scales the canvas to the size of the map.
     *
     * @param {Shown} shown
     */
    paint({ thread, stacks, colours }) {
        this.measure();
        const { canvas, first, seconds, rows } = this, end = first + seconds;
        const cells = this.cells = sumCells(this.samples, end, thread, stacks);
        const largest = cells.subarray(first * rows).reduce((most, weight) => Math.max(most, weight), 0);
        [canvas.width, canvas.height] = [seconds, rows];
        const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
        context.fillStyle = colours[0];
        context.fillRect(0, 0, seconds, rows);
        // Of these times there is no recording.
        context.clearRect(-first, rows - this.firstCell, 1, this.firstCell);
        context.clearRect(Math.floor(this.lastCell / rows) - first, 0, 1, rows - 1 - this.lastCell % rows);
        for (let cell = first * rows; cell < cells.length; cell++) {
            if (!(cells[cell] > 0)) continue;
            context.fillStyle = colours[Math.max(1, Math.ceil(cells[cell] / largest * 5))];
            context.fillRect(Math.floor(cell / rows) - first, rows - 1 - cell % rows, 1, 1);
        }
        return largest;
    }

    drawTicks() {
        const { first, seconds, cellWidth, width, height, samples: { times: [zero] } } = this;
        const step = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600].find(step => step * cellWidth >= 60) ?? 7200;
        const ticks = [], start = first - zero / SECOND;
        for (let second = Math.ceil(start / step) * step; second <= start + seconds; second += step) {
            const x = (second - start) * cellWidth;
            const anchor = x < 12 ? "start" : x > width - 12 ? "end" : "middle";
            if (x > width) break;
            ticks.push(createSvg("path", { class: "tick", d: `M${x},${height}v4` }));
            ticks.push(createSvg("text", { x, y: height + 16, "text-anchor": anchor }, `${second} s`));
        }
        ticks.push(createSvg("path", { class: "tick", d: `M0,${height}h${width}` }));
        this.ticks.replaceChildren(...ticks);
        const labels = [0, 250, 500, 750, 1000].map(ms => {
            const y = Math.max(height * (1 - ms / 1000) + (ms === 0 ? 0 : 4), 10);
            return createSvg("text", { x: 44, y, "text-anchor": "end" }, `${ms} ms`);
        });
        this.scale.replaceChildren(...labels);
    }

    /** @param {MouseEvent} event */
    cellAt({ clientX, clientY }) {
        const box = this.canvas.getBoundingClientRect();
        const second = this.first + clamp(Math.floor((clientX - box.left) / this.cellWidth), this.seconds);
        return second * this.rows + clamp(Math.floor((box.bottom - clientY) / this.cellHeight), this.rows);
    }

    /**
     * @param {number} cell
     * @param {string} key
     */
    step(cell, key) {
        const { first, seconds, rows } = this, { second, row } = this.find(cell);
        /** @type {Record<string, [number, number]>} */
        const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
        const [across, up] = steps[key] ?? [];
        if (across === undefined) return undefined;
        return (first + clamp(second - first + across, seconds)) * rows + clamp(row + up, rows);
    }

    /**
     * Returns the second and the row of a cell.
     *
     * @param {number} cell
     * @returns {Cell}
     */
    find(cell) {
        return { second: Math.floor(cell / this.rows), row: cell % this.rows };
    }

    /**
     * @param {number} a
     * @param {number} b
     * @param {boolean} isRectangle
     */
    select(a, b, isRectangle) {
        // A span without samples before or after it is the same.
        const [from, to] = isRectangle ? [a, b]
            : [a, b].map(cell => Math.max(this.firstCell, Math.min(cell, this.lastCell)));
        return selectBetween(this.find(from), this.find(to), this.rows, isRectangle);
    }

    /** @param {number} cell */
    timesOf(cell) {
        return selectBetween(this.find(cell), this.find(cell), this.rows, false);
    }

    /** @param {Marks} marks */
    mark({ selections: [first, second], cursor }) {
        const cell = cursor === undefined ? undefined : this.select(cursor, cursor, true);
        for (const [index, selection] of [first, second, cell].entries()) {
            this.outlines[index].setAttribute("d", selection ? this.outline(selection) : "");
        }
    }

    /**
     * Returns the path around a selection: its first second, those between, and its last. The first and the last second
     * can be incomplete.
     *
     * @param {TimeSelection} selection
     */
    outline({ from, to, low, high }) {
        const shown = this.first * SECOND, shownEnd = shown + this.seconds * SECOND;
        const [start, end] = [Math.max(from, shown), Math.min(to, shownEnd)];
        if (start >= end) return "";
        const [first, last] = [Math.floor(start / SECOND), Math.ceil(end / SECOND) - 1];
        const [bottom, top] = [Math.max(low, start - first * SECOND), Math.min(high, end - last * SECOND)];
        if (first === last) return this.rectangle(first, last + 1, bottom, top);
        if (bottom === low && top === high) return this.rectangle(first, last + 1, low, high);
        const between = this.rectangle(first + 1, last, low, high);
        return this.rectangle(first, first + 1, bottom, high) + between + this.rectangle(last, last + 1, low, top);
    }

    /**
     * Returns the path of a rectangle.
     *
     * @param {number} from in seconds
     * @param {number} to in seconds
     * @param {number} low in nanoseconds
     * @param {number} high in nanoseconds
     */
    rectangle(from, to, low, high) {
        if (to <= from || high <= low) return "";
        const { cellWidth, height } = this, width = (to - from) * cellWidth, y = height * (1 - high / SECOND);
        return `M${(from - this.first) * cellWidth},${y}h${width}v${height * (high - low) / SECOND}h${-width}z`;
    }
}
