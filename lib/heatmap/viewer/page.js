// What the reader does with the map: selects parts of it, whose flame graph then stands beneath.

class Page {
    constructor(root, profile, leaves, samples) {
        Object.assign(this, { root, profile, leaves, samples, parts: [undefined, undefined], cursor: { second: 0, row: 0 } });
        const [place] = document.getElementsByClassName("heatmap");
        this.place = place;
        this.map = new HeatMap(place, samples);
        this.numbers = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
        this.texts = document.getElementById("selections");
        this.hover = document.getElementById("cell");
        this.threads = document.getElementById("thread");
        this.fillThreads();
        this.listen();
        this.map.fit();
        this.map.count();
        this.follow();
        document.body.classList.add("ready");
    }

    fillThreads() {
        const counts = new Uint32Array(this.samples.names.length);
        for (const thread of this.samples.threads) counts[thread]++;
        const option = (value, text) => html("option", { value }, text);
        const options = this.samples.names.map((name, at) => option(name, `${name} (${this.numbers.format(counts[at])})`));
        this.threads.replaceChildren(option("", `all ${options.length} threads`), ...options);
    }

    listen() {
        const { map, place } = this, { sheet } = map;
        sheet.addEventListener("pointerdown", event => {
            if (event.button !== 0) return;
            event.preventDefault();
            place.focus({ preventScroll: true });
            this.begin(map.cellAt(event));
        });
        // A drag may leave the map, and goes on.
        window.addEventListener("pointermove", event => {
            if (this.anchor || sheet.contains(event.target)) this.goTo(map.cellAt(event));
        });
        window.addEventListener("pointerup", event => this.anchor && this.end(event.shiftKey));
        window.addEventListener("pointercancel", () => this.give());
        place.addEventListener("keydown", event => this.key(event));
        this.threads.addEventListener("change", () => {
            this.remember();
            this.follow();
        });
        window.addEventListener("hashchange", () => this.follow());
        window.addEventListener("resize", () => {
            map.fit();
            this.mark();
        });
    }

    get isRectangle() {
        return document.getElementById("rectangle").checked;
    }

    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const { second, row } = this.cursor, { seconds, rows } = this.map;
        const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
        if (step) {
            const within = (value, count) => Math.max(0, Math.min(count - 1, value));
            this.goTo({ second: within(second + step[0], seconds), row: within(row + step[1], rows) });
        } else if (event.key === "Enter" || event.key === " ") {
            if (this.anchor) this.end(event.shiftKey); else this.begin(this.cursor);
        } else if (event.key === "Escape") {
            if (this.anchor) this.give(); else this.select(undefined, undefined);
        } else return;
        event.preventDefault();
    }

    begin(cell) {
        this.anchor = cell;
        this.goTo(cell);
    }

    // Leaves what was begun.
    give() {
        this.anchor = undefined;
        this.mark();
    }

    goTo(cell) {
        this.cursor = cell;
        const { base, rows } = this.samples, { second, row } = cell, weight = this.numbers.format(this.map.cell(cell));
        const [low, high] = [rowStart(row, rows), rowStart(row + 1, rows)].map(time => (time / 1e6).toFixed(rows > 100 ? 1 : 0));
        this.hover.textContent = `second ${second} (${base + second} on the clock), ${low} to ${high} ms: ${weight} ${this.unit}`;
        this.mark();
    }

    // What is being selected; with Shift it is what the first selection is compared with.
    end(isSecond) {
        const part = partBetween(this.anchor, this.cursor, this.samples.rows, this.isRectangle);
        this.anchor = undefined;
        if (isSecond && this.parts[0]) this.select(this.parts[0], part); else this.select(part, undefined);
    }

    select(first, second) {
        this.parts = [first, second];
        this.remember();
        this.show();
    }

    mark() {
        const begun = this.anchor && partBetween(this.anchor, this.cursor, this.samples.rows, this.isRectangle);
        this.map.mark(begun ?? this.parts[0], begun ? undefined : this.parts[1], this.cursor);
    }

    get unit() {
        return this.root.dataset.countName;
    }

    get thread() {
        const number = this.samples.names.indexOf(this.threads.value);
        return number < 0 ? undefined : number;
    }

    sum(part) {
        return sumOf(this.samples, part ?? EVERYTHING, this.thread, this.leaves, this.profile.tree.parent.length);
    }

    // The flame graph of what is selected; of two parts, how the second differs from the first, scaled to its weight.
    show() {
        const [first, second] = this.parts, sums = second ? [this.sum(first), this.sum(second)] : [this.sum(first)];
        const { parent, name, end } = this.profile.tree, after = sums[sums.length - 1];
        const tree = { parent, name, end, own: after.own, total: new Float64Array(parent.length) };
        if (second) {
            const scale = sums[0].weight > 0 ? after.weight / sums[0].weight : 0;
            Object.assign(tree, { ownBefore: sums[0].own.map(weight => weight * scale), totalBefore: new Float64Array(parent.length) });
        }
        addUp(tree);
        const difference = (most, total, node) => Math.max(most, node > 0 ? Math.abs(total - tree.totalBefore[node]) : 0);
        const largestDelta = second ? tree.total.reduce(difference, 0) : 0;
        this.mark();
        this.tell(sums);
        const profile = { ...this.profile, tree, differential: Boolean(second), whole: tree.total[0], largestDelta };
        if (this.viewer) this.viewer.take(profile); else this.viewer = new Viewer(this.root, profile);
    }

    // Says what is selected, and the command that selects it.
    tell(sums) {
        const [first, second] = this.parts, weighs = this.unit === "samples" ? "samples" : "period";
        const heading = second ? "From the first selection to the second: red grew, blue shrank" : first ? "The selection" : "All samples";
        this.root.querySelector("#title").textContent = heading;
        const lines = sums.map(({ count, weight }, at) => {
            const { samples, thread } = this, part = this.parts[at] ?? EVERYTHING;
            const cut = count > 0 ? commandOf(this.place, { samples, part, thread, weighs }) : undefined;
            const told = `${this.numbers.format(count)} samples${this.unit === "samples" ? "" : `, ${this.numbers.format(weight)} ${this.unit}`}`;
            const swatch = html("span", { class: first ? ["first", "second"][at] : "" });
            const shown = cut === undefined ? [told] : [`${told} · `, html("code", {}, cut)];
            return html("p", { "data-count": count, "data-weight": weight }, swatch, ...shown);
        });
        const button = (text, action) => {
            const made = html("button", { type: "button" }, text);
            made.addEventListener("click", action);
            return made;
        };
        if (first) lines[0].append(" ", button("Clear", () => this.select(undefined, undefined)));
        if (second) lines[1].append(" ", button("Swap", () => this.select(second, first)));
        if (this.samples.lost > 0) lines.push(html("p", {}, `${this.numbers.format(this.samples.lost)} samples were lost while recording.`));
        this.texts.replaceChildren(...lines);
    }

    // Writes the selection into the address's fragment, as the options of fg-collapse have it.
    remember() {
        const link = new URLSearchParams(location.hash.slice(1));
        const set = (name, value) => (value ? link.set(name, value) : link.delete(name));
        for (const [at, suffix] of ["", "2"].entries()) {
            const { time, offset } = this.parts[at] ? partTexts(this.parts[at], this.samples.base) : {};
            set(`time${suffix}`, time);
            set(`offset${suffix}`, offset);
        }
        set("thread", this.threads.value);
        if (String(link) === location.hash.slice(1)) return;
        try {
            history.pushState(null, "", `#${link}`);
        } catch {
            // Some embeddings forbid it; the page works all the same.
        }
    }

    // Goes where the address's fragment says.
    follow() {
        const link = new URLSearchParams(location.hash.slice(1)), value = name => link.get(name) ?? "";
        this.parts = ["", "2"].map(suffix => readPart(value(`time${suffix}`), value(`offset${suffix}`), this.samples.base));
        if (!this.parts[0]) this.parts[1] = undefined;
        this.threads.value = this.samples.names.includes(value("thread")) ? value("thread") : "";
        if (this.thread !== this.counted) this.map.count(this.thread);
        this.counted = this.thread;
        this.show();
    }
}
