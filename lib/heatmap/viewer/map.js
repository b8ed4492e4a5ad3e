// The picture of the cells: seconds from left to right, in each the time within it from the bottom to the top.

// Browsers draw no wider canvas.
const WIDEST = 32_000;

class HeatMap {
    constructor(place, samples) {
        const { times, count, rows } = samples;
        Object.assign(this, { place, samples, rows, seconds: Math.floor(times[count - 1] / SECOND) + 1 });
        this.canvas = html("canvas", {});
        this.marks = element("svg", { class: "marks" });
        this.shapes = ["first", "second", "cursor"].map(name => element("path", { class: name }));
        this.ticks = element("g", {});
        this.marks.append(this.ticks, ...this.shapes);
        this.scale = element("svg", { class: "scale", width: 48 });
        this.sheet = html("div", { class: "sheet-of-cells" }, this.canvas, this.marks);
        place.append(this.scale, this.sheet);
    }

    // Counts, for one thread or all, and draws.
    count(thread) {
        this.cells = cellsOf(this.samples, this.seconds, thread);
        this.most = this.cells.reduce((most, cell) => Math.max(most, cell), 0);
        this.paint();
    }

    cell({ second, row }) {
        return this.cells[second * this.rows + row];
    }

    // Takes the width that there is, and draws everything.
    fit() {
        const { seconds, rows } = this, room = Math.max(this.place.clientWidth - 60, 100);
        const least = Math.min(4, WIDEST / seconds);
        this.cellWidth = Math.max(Math.floor(Math.min(room / seconds, 16)), Math.floor(least), 1);
        this.cellHeight = Math.max(1, Math.min(20, Math.round(400 / rows)));
        const [width, height] = [seconds * this.cellWidth, rows * this.cellHeight];
        Object.assign(this, { width, height });
        for (const [key, value] of Object.entries({ width: width + 40, height: height + 22 })) this.marks.setAttribute(key, value);
        this.scale.setAttribute("height", height + 22);
        this.sheet.style.height = `${height + 22}px`;
        this.canvas.style.width = `${width}px`;
        this.canvas.style.height = `${height}px`;
        this.drawTicks();
    }

    // One pixel a cell; the style makes them as large as they are.
    paint() {
        const { canvas, cells, seconds, rows, most } = this;
        [canvas.width, canvas.height] = [seconds, rows];
        const image = new ImageData(seconds, rows), pixels = new Uint32Array(image.data.buffer);
        const colours = Uint32Array.from({ length: 256 }, (_, step) => heat(step / 255));
        for (let second = 0; second < seconds; second++) {
            for (let row = 0; row < rows; row++) {
                const weight = cells[second * rows + row];
                if (weight > 0) pixels[(rows - 1 - row) * seconds + second] = colours[Math.round(255 * Math.sqrt(weight / most))];
            }
        }
        canvas.getContext("2d").putImageData(image, 0, 0);
    }

    drawTicks() {
        const { seconds, cellWidth, width, height } = this;
        const step = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600].find(step => step * cellWidth >= 60) ?? 7200;
        const ticks = [];
        for (let second = 0; second <= seconds; second += step) {
            const x = second * cellWidth;
            ticks.push(element("path", { class: "tick", d: `M${x},${height}v4` }));
            ticks.push(element("text", { x, y: height + 16, "text-anchor": second === 0 ? "start" : "middle" }, `${second} s`));
        }
        ticks.push(element("path", { class: "tick", d: `M0,${height}h${width}` }));
        this.ticks.replaceChildren(...ticks);
        const labels = [0, 250, 500, 750, 1000].map(ms => {
            const y = height * (1 - ms / 1000);
            return element("text", { x: 44, y: Math.max(y + (ms === 0 ? 0 : 4), 10), "text-anchor": "end" }, `${ms} ms`);
        });
        this.scale.replaceChildren(...labels);
    }

    // The cell at a place in the window; the nearest, if there is none.
    cellAt({ clientX, clientY }) {
        const box = this.canvas.getBoundingClientRect(), within = (value, count) => Math.max(0, Math.min(count - 1, value));
        const second = within(Math.floor((clientX - box.left) / this.cellWidth), this.seconds);
        return { second, row: within(Math.floor((box.bottom - clientY) / this.cellHeight), this.rows) };
    }

    // Marks the selected parts and the cell at which the reader is.
    mark(first, second, cell) {
        const cursor = cell && partBetween(cell, cell, this.rows, true);
        [first, second, cursor].forEach((part, at) => this.shapes[at].setAttribute("d", part ? this.outline(part) : ""));
    }

    // The first second of a part, those between, and the last one: at the ends not all of a second may be in it.
    outline({ from, to, low, high }) {
        const { seconds, cellWidth, height } = this;
        const [start, end] = [Math.max(from, 0), Math.min(to, seconds * SECOND)];
        const [first, last] = [Math.floor(start / SECOND), Math.ceil(end / SECOND) - 1];
        const box = (from, to, low, high) => {
            if (to <= from || high <= low) return "";
            const y = height * (1 - high / SECOND);
            return `M${from * cellWidth},${y}h${(to - from) * cellWidth}v${height * (high - low) / SECOND}h${(from - to) * cellWidth}z`;
        };
        const [bottom, top] = [Math.max(low, start - first * SECOND), Math.min(high, end - last * SECOND)];
        if (first === last) return box(first, last + 1, bottom, top);
        if (bottom === low && top === high) return box(first, last + 1, low, high);
        return box(first, first + 1, bottom, high) + box(first + 1, last, low, high) + box(last, last + 1, low, top);
    }
}

// From pale yellow over red to a dark one, as the bytes of a pixel.
function heat(share) {
    const stops = [[255, 243, 178], [254, 178, 76], [240, 59, 32], [128, 0, 38]], place = share * (stops.length - 1);
    const at = Math.min(Math.floor(place), stops.length - 2), rest = place - at;
    const [red, green, blue] = stops[at].map((channel, i) => Math.round(channel + (stops[at + 1][i] - channel) * rest));
    return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
}
