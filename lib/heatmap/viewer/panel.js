// The panel above the graph: when samples were taken. Selects the samples that the graph shows.

/** @implements {Panel} */
class TimePanel {
    title = "Samples over time";
    element = createHtml("div", { class: "timebox card" });
    kinds = createChoice("Picture", [["lanes", "Threads"], ["cpus", "CPUs"], ["seconds", "Seconds"]],
        value => this.choosePicture(value));
    shapes = createChoice("Select", [["span", "A span"], ["rectangle", "The same part of seconds"]],
        value => this.chooseShape(value));
    threadList = createHtml("select", { id: "thread", class: "btn", "aria-label": "Thread" });
    cell = createHtml("span", { id: "cell", role: "status" });
    key = createHtml("span", { class: "heat", "aria-hidden": "true" });
    summary = createHtml("div", { id: "selections" });
    /** @type {Uint8Array | null} 1 for each name that matches the search; null without a search. */
    matches = null;

    /**
     * @param {GraphElement} root
     * @param {Profile} profile
     * @param {Uint32Array} leaves the last node of each stack
     * @param {Samples} samples
     * @param {HTMLElement} container the element with the options of the input
     */
    constructor(root, profile, leaves, samples, container) {
        this.profile = profile;
        this.leaves = leaves;
        this.samples = samples;
        this.container = container;
        this.unit = root.dataset.countName ?? "";
        /** @type {(TimeSelection | undefined)[]} The selection, and the one that it is compared with. */
        this.selections = [undefined, undefined];
        /** @type {TimeSelection | undefined} The part of the time that lanes show; undefined for all. */
        this.axis = undefined;
        /** @type {number | undefined} The cell with the cursor. */
        this.cursor = undefined;
        /** @type {number | undefined} The cell in which a selection that is not complete started. */
        this.anchor = undefined;
        /** @type {number | undefined} The index of the selected thread. */
        this.thread = undefined;
        /** @type {Sums[]} */
        this.sums = [];
        /** @type {Record<string, TimePicture>} */
        this.pictures = { lanes: new Lanes(samples, threadLanes(samples)), seconds: new SecondsMap(samples),
            ...(samples.cpus && { cpus: new Lanes(samples, cpuLanes(samples.cpus)) }) };
        this.picture = this.pictures.lanes;
        this.isRectangle = false;
        this.fillElements();
        this.load = memoize(this.computeProfile.bind(this));
        this.findStacks = memoize(this.computeStacks.bind(this));
        this.settings = readSettings(root);
        /** @type {App} */
        this.app = new App(root, profile, this);
        this.listen();
        document.body.classList.add("ready");
    }

    fillElements() {
        const { container, samples: { names, threads } } = this, counts = new Uint32Array(names.length);
        for (const thread of threads) counts[thread]++;
        const options = names.map((name, index) => createHtml("option", { value: name },
            `${name} (${formatCount(counts[index])})`));
        this.threadList.append(createHtml("option", { value: "" }, `All ${options.length} threads`), ...options);
        this.threadList.hidden = names.length < 2;
        setAttributes(container, { tabindex: 0, role: "application",
            "aria-label": "Samples over time. Arrows move, Enter starts and ends a selection, Escape clears it. "
                + "Plus shows it alone, minus all." });
        container.replaceChildren(this.picture.element);
        const bar = createHtml("div", { class: "timebar" }, this.kinds, this.shapes, this.threadList, this.cell,
            createHtml("span", { class: "sp" }), this.key);
        this.element.append(bar, container, this.summary);
    }

    listen() {
        const { container, threadList } = this;
        container.addEventListener("pointerdown", event => {
            if (event.button !== 0) return;
            event.preventDefault();
            container.focus(/** @type {FocusOptions} */ ({ preventScroll: true, focusVisible: false }));
            this.startSelection(this.picture.cellAt(event));
        });
        // A drag continues outside of the picture.
        window.addEventListener("pointermove", event => {
            const isInside = event.target instanceof Node && container.contains(event.target);
            if (this.anchor === undefined && !isInside) return;
            this.scrollAtEdge(event);
            this.moveCursor(this.picture.cellAt(event), event);
        });
        window.addEventListener("pointerup", event => this.endSelection(event.shiftKey));
        window.addEventListener("pointercancel", () => this.cancelSelection());
        container.addEventListener("pointerleave", () => {
            if (this.anchor === undefined) this.moveCursor(undefined);
        });
        container.addEventListener("keydown", event => this.handleKey(event));
        container.addEventListener("wheel", event => {
            // Two fingers on a touch pad are a wheel with this key.
            const factor = 1.01 ** Math.max(-40, Math.min(event.deltaY, 40));
            const part = event.ctrlKey && this.picture.zoomAround?.(event, factor);
            if (!part) return;
            event.preventDefault();
            this.zoomTime(part, false);
        }, { passive: false });
        threadList.addEventListener("change", () => {
            this.app.link.write({ thread: threadList.value }, true);
            this.app.applyLink();
        });
        new ResizeObserver(() => this.paint()).observe(this.element);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
    }

    /**
     * Scrolls the picture if a selection reaches the edge of its visible part.
     *
     * @param {PointerEvent} event
     */
    scrollAtEdge({ clientX }) {
        const { scroller } = this.picture, { left, right } = scroller.getBoundingClientRect();
        if (this.anchor === undefined) return;
        if (clientX > right - 24) scroller.scrollLeft += 16;
        if (clientX < left + 24) scroller.scrollLeft -= 16;
    }

    /** @param {KeyboardEvent} event */
    handleKey(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const { cursor = 0, selections: [first, second] } = this, cell = this.picture.step(cursor, event.key);
        if (cell !== undefined) this.moveCursor(cell);
        else if (event.key === "Enter" || event.key === " ") {
            if (this.anchor !== undefined) this.endSelection(event.shiftKey); else this.startSelection(cursor);
        } else if (event.key === "Escape" && this.anchor !== undefined) this.cancelSelection();
        else if (event.key === "+" && first) this.zoomTime(first, true);
        else if (event.key === "-" && this.axis) this.zoomTime(undefined, true);
        else if (event.key === "Escape" && first) this.select(second && first, undefined);
        else return;
        event.preventDefault();
        event.stopPropagation();
    }

    /** @param {number} cell */
    startSelection(cell) {
        this.anchor = cell;
        this.moveCursor(cell);
    }

    cancelSelection() {
        this.anchor = undefined;
        this.mark();
    }

    /**
     * @param {number | undefined} cell
     * @param {MouseEvent} [event] the event of the pointer, if it moved the cursor
     */
    moveCursor(cell, event) {
        this.cursor = cell;
        this.cell.textContent = cell === undefined ? this.hint : this.describeCell(cell, event);
        this.mark();
    }

    /**
     * @param {number} cell
     * @param {MouseEvent} [event]
     */
    describeCell(cell, event) {
        const { picture, settings, samples: { times, count } } = this, zero = times[0];
        const { from, to } = picture.timesOf(cell);
        if (to <= zero) return "Before the first sample";
        if (from > times[count - 1]) return "After the last sample";
        const [start, end] = [from, to].map(time =>
            formatDuration(Math.max(time - zero, 0), picture.cellDuration, to - zero));
        const lane = event && picture.laneAt?.(event, cell);
        const part = lane ? `, ${formatWeight(lane.weight, settings)} in ${lane.name}` : "";
        return `${start} – ${end}: ${formatWeight(picture.weight(cell), settings)}${part}`;
    }

    /** Returns the selection that is not complete yet. */
    currentSelection() {
        const { anchor, cursor } = this;
        return anchor === undefined || cursor === undefined ? undefined
            : this.picture.select(anchor, cursor, this.isRectangle);
    }

    /** @param {boolean} isSecond true to compare the first selection with this one */
    endSelection(isSecond) {
        const selection = this.currentSelection(), [first] = this.selections;
        if (!selection) return;
        this.anchor = undefined;
        if (isSecond && first) this.select(first, selection); else this.select(selection, undefined);
    }

    /**
     * Shows the samples of a selection, or how another one differs from it.
     *
     * @param {TimeSelection | undefined} first
     * @param {TimeSelection | undefined} second
     */
    select(first, second) {
        /** @type {Record<string, string>} */
        const values = {};
        for (const [suffix, selection] of /** @type {const} */ ([["", first], ["2", second]])) {
            const options = selection && formatSelection(selection, this.samples.base);
            values[`time${suffix}`] = options?.time ?? "";
            values[`offset${suffix}`] = options?.offset ?? "";
        }
        this.app.link.write(values, true);
        this.app.applyLink();
    }

    /**
     * Lets the lanes show a part of the time, or all.
     *
     * @param {TimeSelection | undefined} part
     * @param {boolean} isStep true to add an entry to the history
     */
    zoomTime(part, isStep) {
        const { samples: { times, count, base } } = this, isAll = !part || (part.from <= times[0]
            && part.to > times[count - 1]);
        this.cursor = this.anchor = undefined;
        this.app.link.write({ axis: isAll ? "" : formatSelection(part, base).time }, isStep);
        this.app.applyLink();
    }

    /** @param {string} kind */
    choosePicture(kind) {
        this.picture = this.pictures[kind];
        this.isRectangle &&= kind === "seconds";
        this.cursor = this.anchor = undefined;
        this.container.replaceChildren(this.picture.element);
        this.app.draw();
    }

    /** @param {string} shape */
    chooseShape(shape) {
        this.isRectangle = shape === "rectangle";
        this.paint();
    }

    /**
     * Returns the profile of the samples that the link selects.
     *
     * @param {(name: string) => string} read returns a parameter of the link
     */
    loadProfile(read) {
        const { samples: { base, names } } = this, thread = names.indexOf(read("thread"));
        const [first, second] = ["", "2"].map(suffix =>
            parseSelection(read(`time${suffix}`), read(`offset${suffix}`), base));
        const keys = ["time", "offset", "time2", "offset2"].map(read).join();
        this.selections = [first, first && second];
        this.axis = parseSelection(read("axis"), "", base);
        for (const picture of Object.values(this.pictures)) picture.show(this.axis ?? EVERYTHING);
        this.thread = thread < 0 ? undefined : thread;
        this.threadList.value = thread < 0 ? "" : names[thread];
        return this.load(keys, this.thread);
    }

    /**
     * Computes the profile of the selected samples.
     *
     * @param {string} _selections
     * @param {number | undefined} thread
     * @returns {Profile}
     */
    computeProfile(_selections, thread) {
        const { selections: [first, second], profile: { tree: { parent, name, end } } } = this;
        const [before, after = before] = this.sums = (second ? [first, second] : [first]).map(selection =>
            sumSamples(this.samples, selection ?? EVERYTHING, thread, this.leaves, parent.length));
        const compared = second && { ownBefore: before.own, totalBefore: new Float64Array(parent.length) };
        const tree = sumTotals({ parent, name, end, own: after.own, total: new Float64Array(parent.length),
            ...compared });
        return { ...this.profile, tree, differential: Boolean(second), whole: tree.total[0],
            ...(!second && { buildChart: changes => buildChart(this, changes, first ?? EVERYTHING, thread) }) };
    }

    /**
     * Returns 1 for each stack with a function that matches, or null without a search.
     *
     * @param {Uint8Array | null} matches
     */
    computeStacks(matches) {
        const { profile: { tree: { parent, name } }, leaves } = this;
        if (!matches) return null;
        const hits = new Uint8Array(parent.length);
        for (let node = 1; node < hits.length; node++) hits[node] = hits[parent[node]] | matches[name[node]];
        return Uint8Array.from(leaves, leaf => hits[leaf]);
    }

    /** @param {View} view */
    draw(view) {
        this.matches = view.match.names;
        if (this.cursor === undefined) this.cell.textContent = this.hint;
        this.describe();
        this.paint();
    }

    paint() {
        if (!this.element.isConnected) return;
        const { picture, pictures, thread, matches } = this, isLanes = picture !== pictures.seconds;
        for (const button of /** @type {HTMLElement[]} */ ([...this.kinds.children])) {
            button.hidden = !pictures[button.dataset.value ?? ""];
        }
        setChoice(this.kinds, Object.keys(pictures).find(kind => pictures[kind] === picture) ?? "");
        setChoice(this.shapes, this.isRectangle ? "rectangle" : "span");
        this.shapes.hidden = isLanes;
        const swatches = [0, 1, 2, 3, 4, 5].map(step => {
            const swatch = createHtml("i");
            swatch.style.background = `var(--heat${step})`;
            return swatch;
        });
        this.key.replaceChildren(...swatches);
        const colours = swatches.map(swatch => getComputedStyle(swatch).backgroundColor);
        const largest = picture.paint({ thread, stacks: this.findStacks(matches), colours });
        const { cellDuration } = picture, isCount = this.unit === "samples";
        const what = matches ? "Matches" : isCount ? "Samples" : "Weight";
        const per = formatDuration(cellDuration, cellDuration);
        this.key.prepend(`${what} per ${per} `);
        this.key.append(` ${formatWeight(largest, this.settings)}`);
        this.mark();
    }

    mark() {
        const current = this.currentSelection(), [first, second] = this.selections;
        this.picture.mark({ selections: current ? [current] : [first, second], cursor: this.cursor });
    }

    /** The weight of all samples. */
    get total() {
        return this.profile.whole;
    }

    get hint() {
        const [first, second] = this.selections;
        if (!first) return "Drag to select a time";
        return second ? "" : "Shift-drag to compare with another time";
    }

    /**
     * Returns the selections as filters that can be removed.
     *
     * @returns {[kind: string, value: string, remove: () => void][]}
     */
    chips() {
        const [first, second] = this.selections, { names } = this.samples;
        /** @type {[string, string, () => void][]} */
        const chips = [];
        if (this.thread !== undefined) {
            chips.push(["Thread", names[this.thread], () => {
                this.app.link.write({ thread: "" }, true);
                this.app.applyLink();
            }]);
        }
        if (this.axis) chips.push(["Axis", this.describeSelection(this.axis), () => this.zoomTime(undefined, true)]);
        if (first) chips.push([second ? "Before" : "Time", this.describeSelection(first),
            () => this.select(second, undefined)]);
        if (second) chips.push(["After", this.describeSelection(second), () => this.select(first, undefined)]);
        return chips;
    }

    clear() {
        this.app.link.write({ thread: "", axis: "" }, true);
        this.select(undefined, undefined);
    }

    /** @param {TimeSelection} selection */
    describeSelection({ from, to, low, high }) {
        const { samples: { times, count } } = this;
        const step = Math.max(1e3, Math.min(SECOND / 100, (times[count - 1] - times[0]) / 1000));
        const [first, last] = [from, Math.min(to, times[count - 1] + 1)].map(time => Math.max(time - times[0], 0));
        const span = [first, last].map(time => formatDuration(time, step, last)).join(" – ");
        if (high - low === SECOND) return span;
        return `${span}, ${(low / 1e6).toFixed(0)} – ${(high / 1e6).toFixed(0)} ms of each second`;
    }

    /** Describes the selected samples, with the commands that select them. */
    describe() {
        const [first, second] = this.selections, { samples: { lost }, sums } = this;
        const lines = sums.map((sum, index) => this.describeSums(sum, index));
        this.summary.hidden = !first && this.thread === undefined && lost === 0;
        if (first) {
            lines[0].append(" ", createButton("Zoom the axis", () => this.zoomTime(first, true)));
        }
        if (second) lines[1].append(" ", createButton("Swap", () => this.select(second, first)));
        if (lost > 0) lines.push(createHtml("p", {}, `${formatThings(lost, "samples")} lost while recording.`));
        this.summary.replaceChildren(...lines);
    }

    /**
     * @param {Sums} sums
     * @param {number} index index of the selection
     */
    describeSums({ count, weight }, index) {
        const { samples, thread } = this, selection = this.selections[index] ?? EVERYTHING;
        const command = count > 0 ? formatCommand(this.container, { samples, selection, thread }) : undefined;
        const swatch = createHtml("i", { class: this.selections[0] ? ["first", "second"][index] : "" });
        const copy = command === undefined ? []
            : [createHtml("code", { class: "mono" }, command), createButton("Copy", () => this.app.copy(command))];
        return createHtml("p", { "data-count": count, "data-weight": weight }, swatch, formatThings(count, "samples"),
            ...copy);
    }
}
