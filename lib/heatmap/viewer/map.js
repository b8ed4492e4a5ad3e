// Draws the map of cells: seconds from left to right, the time within each second from bottom to top.

// Browsers draw no wider canvas.
const MAX_CANVAS_WIDTH = 32_000;

class HeatMap {
    /**
     * @param {HTMLElement} container
     * @param {Samples} samples
     */
    constructor(container, samples) {
        const { times, count, rows } = samples;
        this.container = container;
        this.samples = samples;
        this.rows = rows;
        this.seconds = Math.floor(times[count - 1] / SECOND) + 1;
        this.cells = new Float64Array();
        this.maxWeight = 0;
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
        this.scale = createSvg("svg", { class: "scale", width: 48 });
        this.area = createHtml("div", { class: "cells" }, this.canvas, this.marks);
        container.append(this.scale, this.area);
    }

    /**
     * Shows the samples of one thread, or of all.
     *
     * @param {number} [thread]
     */
    showThread(thread) {
        this.cells = sumCells(this.samples, this.seconds, thread);
        this.maxWeight = this.cells.reduce((max, weight) => Math.max(max, weight), 0);
        this.paint();
    }

    /** @param {Cell} cell */
    weight({ second, row }) {
        return this.cells[second * this.rows + row];
    }

    /** Fits the map into the available width. */
    resize() {
        const { seconds, rows } = this, available = Math.max(this.container.clientWidth - 60, 100);
        const minWidth = Math.min(4, MAX_CANVAS_WIDTH / seconds);
        this.cellWidth = Math.max(Math.floor(Math.min(available / seconds, 16)), Math.floor(minWidth), 1);
        this.cellHeight = Math.max(1, Math.min(20, Math.round(400 / rows)));
        const width = this.width = seconds * this.cellWidth, height = this.height = rows * this.cellHeight;
        setAttributes(this.marks, { width: width + 40, height: height + 22 });
        setAttributes(this.scale, { height: height + 22 });
        this.area.style.height = `${height + 22}px`;
        this.canvas.style.width = `${width}px`;
        this.canvas.style.height = `${height}px`;
        this.drawTicks();
    }

    /** Paints each cell as one pixel. The style scales the canvas to the size of the map. */
    paint() {
        const { canvas, cells, seconds, rows, maxWeight } = this;
        [canvas.width, canvas.height] = [seconds, rows];
        const image = new ImageData(seconds, rows), pixels = new Uint32Array(image.data.buffer);
        const colours = Uint32Array.from({ length: 256 }, (_, step) => heatColour(step / 255));
        for (let second = 0; second < seconds; second++) {
            for (let row = 0; row < rows; row++) {
                const weight = cells[second * rows + row], step = Math.round(255 * Math.sqrt(weight / maxWeight));
                if (weight > 0) pixels[(rows - 1 - row) * seconds + second] = colours[step];
            }
        }
        canvas.getContext("2d")?.putImageData(image, 0, 0);
    }

    drawTicks() {
        const { seconds, cellWidth, width, height } = this;
        const step = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600].find(step => step * cellWidth >= 60) ?? 7200;
        const ticks = [];
        for (let second = 0; second <= seconds; second += step) {
            const x = second * cellWidth, anchor = second === 0 ? "start" : "middle";
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

    /**
     * Returns the cell at a position in the window, or the nearest.
     *
     * @param {MouseEvent} event
     * @returns {Cell}
     */
    cellAt({ clientX, clientY }) {
        const box = this.canvas.getBoundingClientRect();
        const second = clamp(Math.floor((clientX - box.left) / this.cellWidth), this.seconds);
        return { second, row: clamp(Math.floor((box.bottom - clientY) / this.cellHeight), this.rows) };
    }

    /**
     * Outlines up to two selections and the cell with the cursor.
     *
     * @param {TimeSelection | undefined} first
     * @param {TimeSelection | undefined} second
     * @param {Cell} cell
     */
    drawOutlines(first, second, cell) {
        [first, second, selectBetween(cell, cell, this.rows, true)].forEach((selection, index) => {
            this.outlines[index].setAttribute("d", selection ? this.outline(selection) : "");
        });
    }

    /**
     * Returns the path around a selection: its first second, those between, and its last. The first and the last second
     * can be incomplete.
     *
     * @param {TimeSelection} selection
     */
    outline({ from, to, low, high }) {
        const [start, end] = [Math.max(from, 0), Math.min(to, this.seconds * SECOND)];
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
        return `M${from * cellWidth},${y}h${width}v${height * (high - low) / SECOND}h${-width}z`;
    }
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

/**
 * Returns a colour from pale yellow over red to dark red, as the bytes of a pixel.
 *
 * @param {number} share from 0 to 1
 */
function heatColour(share) {
    const stops = [[255, 243, 178], [254, 178, 76], [240, 59, 32], [128, 0, 38]], position = share * (stops.length - 1);
    const index = Math.min(Math.floor(position), stops.length - 2), rest = position - index;
    const [red, green, blue] = stops[index].map((channel, i) =>
        Math.round(channel + (stops[index + 1][i] - channel) * rest));
    return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
}
