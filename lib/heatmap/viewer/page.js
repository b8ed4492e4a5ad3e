// Selects parts of the map and shows their flame graph below it.

/** The steps of the arrow keys. @type {Record<string, Cell>} */
const ARROW_STEPS = {
    ArrowLeft: { second: -1, row: 0 }, ArrowRight: { second: 1, row: 0 },
    ArrowUp: { second: 0, row: 1 }, ArrowDown: { second: 0, row: -1 },
};

class HeatMapPage {
    /**
     * @param {GraphElement} root
     * @param {Profile} profile
     * @param {Uint32Array} leaves the last node of each stack
     * @param {Samples} samples
     */
    constructor(root, profile, leaves, samples) {
        this.root = root;
        this.profile = profile;
        this.leaves = leaves;
        this.samples = samples;
        /** @type {(TimeSelection | undefined)[]} The selection, and the one that it is compared with. */
        this.selections = [undefined, undefined];
        /** @type {Cell} */
        this.cursor = { second: 0, row: 0 };
        /** @type {Cell | undefined} The cell in which a selection that is not complete started. */
        this.anchor = undefined;
        /** @type {number | undefined} The thread that the map shows. */
        this.shownThread = undefined;
        /** @type {App | undefined} */
        this.viewer = undefined;
        this.container = /** @type {HTMLElement} */ (document.querySelector(".heatmap"));
        this.map = new HeatMap(this.container, samples);
        this.countFormat = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
        this.summary = getElement("selections");
        this.cellText = getElement("cell");
        this.threadList = /** @type {HTMLSelectElement} */ (getElement("thread"));
        this.fillThreadList();
        this.listen();
        this.map.resize();
        this.map.showThread();
        this.applyLink();
        document.body.classList.add("ready");
    }

    fillThreadList() {
        const counts = new Uint32Array(this.samples.names.length);
        for (const thread of this.samples.threads) counts[thread]++;
        const options = this.samples.names.map((name, index) =>
            createHtml("option", { value: name }, `${name} (${this.countFormat.format(counts[index])})`));
        const all = createHtml("option", { value: "" }, `all ${options.length} threads`);
        this.threadList.replaceChildren(all, ...options);
    }

    listen() {
        const { map, container } = this, { area } = map;
        area.addEventListener("pointerdown", event => {
            if (event.button !== 0) return;
            event.preventDefault();
            container.focus({ preventScroll: true });
            this.startSelection(map.cellAt(event));
        });
        // A drag continues outside of the map.
        window.addEventListener("pointermove", event => {
            const isInside = event.target instanceof Node && area.contains(event.target);
            if (this.anchor || isInside) this.moveCursor(map.cellAt(event));
        });
        window.addEventListener("pointerup", event => this.endSelection(event.shiftKey));
        window.addEventListener("pointercancel", () => this.cancelSelection());
        container.addEventListener("keydown", event => this.handleKey(event));
        this.threadList.addEventListener("change", () => {
            this.updateLink();
            this.applyLink();
        });
        window.addEventListener("hashchange", () => this.applyLink());
        window.addEventListener("resize", () => {
            map.resize();
            this.drawOutlines();
        });
    }

    get isRectangle() {
        return /** @type {HTMLInputElement} */ (getElement("rectangle")).checked;
    }

    /** @param {KeyboardEvent} event */
    handleKey(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const { cursor: { second, row }, map: { seconds, rows } } = this, step = ARROW_STEPS[event.key];
        if (step) {
            this.moveCursor({ second: clamp(second + step.second, seconds), row: clamp(row + step.row, rows) });
        } else if (event.key === "Enter" || event.key === " ") {
            if (this.anchor) this.endSelection(event.shiftKey); else this.startSelection(this.cursor);
        } else if (event.key === "Escape") {
            if (this.anchor) this.cancelSelection(); else this.select(undefined, undefined);
        } else return;
        event.preventDefault();
    }

    /** @param {Cell} cell */
    startSelection(cell) {
        this.anchor = cell;
        this.moveCursor(cell);
    }

    cancelSelection() {
        this.anchor = undefined;
        this.drawOutlines();
    }

    /** @param {Cell} cell */
    moveCursor(cell) {
        this.cursor = cell;
        const { base, rows } = this.samples, { second, row } = cell;
        const [low, high] = [row, row + 1].map(row => (rowStart(row, rows) / 1e6).toFixed(rows > 100 ? 1 : 0));
        const time = `second ${second} (${base + second} on the clock), ${low} to ${high} ms`;
        this.cellText.textContent = `${time}: ${this.countFormat.format(this.map.weight(cell))} ${this.unit}`;
        this.drawOutlines();
    }

    /** Returns the selection that is not complete yet. */
    currentSelection() {
        return this.anchor && selectBetween(this.anchor, this.cursor, this.samples.rows, this.isRectangle);
    }

    /** @param {boolean} isSecond true to compare the first selection with this one */
    endSelection(isSecond) {
        const selection = this.currentSelection(), [first] = this.selections;
        if (!selection) return;
        this.anchor = undefined;
        if (isSecond && first) this.select(first, selection); else this.select(selection, undefined);
    }

    /**
     * @param {TimeSelection | undefined} first
     * @param {TimeSelection | undefined} second
     */
    select(first, second) {
        this.selections = [first, second];
        this.updateLink();
        this.show();
    }

    drawOutlines() {
        const current = this.currentSelection(), [first, second] = this.selections;
        this.map.drawOutlines(current ?? first, current ? undefined : second, this.cursor);
    }

    get unit() {
        return this.root.dataset.countName;
    }

    /** The index of the selected thread; undefined for all threads. */
    get thread() {
        const index = this.samples.names.indexOf(this.threadList.value);
        return index < 0 ? undefined : index;
    }

    /**
     * Shows the flame graph of the selection. For two, shows how the second differs from the first. The first is scaled
     * to the weight of the second.
     */
    show() {
        const [first, second] = this.selections, { parent, name, end } = this.profile.tree;
        const [before, after = before] = (second ? [first, second] : [first]).map(selection =>
            sumSamples(this.samples, selection ?? EVERYTHING, this.thread, this.leaves, parent.length));
        /** @type {Tree} */
        const tree = { parent, name, end, own: after.own, total: new Float64Array(parent.length) };
        let largestDelta = 0;
        if (second) {
            const scale = before.weight > 0 ? after.weight / before.weight : 0;
            const totalBefore = new Float64Array(parent.length);
            sumTotals(Object.assign(tree, { ownBefore: before.own.map(weight => weight * scale), totalBefore }));
            const deltas = tree.total.map((total, node) => Math.abs(total - totalBefore[node]));
            largestDelta = deltas.subarray(1).reduce((max, delta) => Math.max(max, delta), 0);
        } else {
            sumTotals(tree);
        }
        this.drawOutlines();
        this.describe(second ? [before, after] : [after]);
        const profile = { ...this.profile, tree, differential: Boolean(second), whole: tree.total[0], largestDelta };
        if (this.viewer) this.viewer.setProfile(profile); else this.viewer = new App(this.root, profile);
    }

    /**
     * Describes the selections, each with the command that selects the same samples.
     *
     * @param {Sums[]} sums
     */
    describe(sums) {
        const [first, second] = this.selections;
        const title = this.root.querySelector("#title");
        if (title) {
            title.textContent = second ? "From the first selection to the second: red grew, blue shrank"
                : first ? "The selection" : "All samples";
        }
        const lines = sums.map((sum, index) => this.describeSums(sum, index));
        if (first) lines[0].append(" ", createButton("Clear", () => this.select(undefined, undefined)));
        if (second) lines[1].append(" ", createButton("Swap", () => this.select(second, first)));
        const { lost } = this.samples, formatted = this.countFormat.format(lost);
        if (lost > 0) lines.push(createHtml("p", {}, `${formatted} samples were lost while recording.`));
        this.summary.replaceChildren(...lines);
    }

    /**
     * @param {Sums} sums
     * @param {number} index index of the selection
     */
    describeSums({ count, weight }, index) {
        const { samples, thread, unit, countFormat } = this, isCount = unit === "samples";
        const selection = this.selections[index] ?? EVERYTHING;
        const shown = { samples, selection, thread, weight: isCount ? "samples" : "period" };
        const command = count > 0 ? formatCommand(this.container, shown) : undefined;
        const sum = isCount ? "" : `, ${countFormat.format(weight)} ${unit}`;
        const numbers = `${countFormat.format(count)} samples${sum}`;
        const swatch = createHtml("span", { class: this.selections[0] ? ["first", "second"][index] : "" });
        const content = command === undefined ? [numbers] : [`${numbers} · `, createHtml("code", {}, command)];
        return createHtml("p", { "data-count": count, "data-weight": weight }, swatch, ...content);
    }

    /** Writes the selections to the fragment of the address, in the form of the options of fg-collapse. */
    updateLink() {
        const link = new URLSearchParams(location.hash.slice(1));
        /** @type {(name: string, value: string) => void} */
        const set = (name, value) => (value ? link.set(name, value) : link.delete(name));
        for (const [index, suffix] of ["", "2"].entries()) {
            const selection = this.selections[index];
            const options = selection && formatSelection(selection, this.samples.base);
            set(`time${suffix}`, options?.time ?? "");
            set(`offset${suffix}`, options?.offset ?? "");
        }
        set("thread", this.threadList.value);
        setFragment(link, true);
    }

    /** Restores the selections in the fragment of the address. */
    applyLink() {
        const link = new URLSearchParams(location.hash.slice(1)), thread = link.get("thread") ?? "";
        this.selections = ["", "2"].map(suffix =>
            parseSelection(link.get(`time${suffix}`) ?? "", link.get(`offset${suffix}`) ?? "", this.samples.base));
        if (!this.selections[0]) this.selections[1] = undefined;
        this.threadList.value = this.samples.names.includes(thread) ? thread : "";
        if (this.thread !== this.shownThread) this.map.showThread(this.thread);
        this.shownThread = this.thread;
        this.show();
    }
}

/** @param {string} id */
function getElement(id) {
    return /** @type {HTMLElement} */ (document.getElementById(id));
}

/**
 * @param {string} text
 * @param {() => void} action
 */
function createButton(text, action) {
    const button = createHtml("button", { type: "button" }, text);
    button.addEventListener("click", action);
    return button;
}
