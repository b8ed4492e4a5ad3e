// The table of functions. Only the visible rows are elements.

const ROW = 24, HEAD = 30, SPARE_ROWS = 6;

/** @implements {Part} */
class Table {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.head = createHtml("div", { class: "th", role: "row" });
        this.rows = createHtml("div", { class: "rows" });
        this.body = createHtml("div", { class: "body", role: "rowgroup" }, this.rows);
        this.note = createHtml("p", { class: "empty" });
        this.element = createHtml("div", { class: "table", role: "grid", tabindex: 0, "aria-label": "Functions" },
            this.head, this.body, this.note);
        /** @type {Uint32Array} The functions in the order of the table. */
        this.order = new Uint32Array();
        /** @type {View | undefined} */
        this.view = undefined;
        this.largest = 1;
        this.sort = memoize(sortFunctions);
        /** The visible part of the rows, in pixels. Measuring it anew for each drawing would delay it. */
        this.top = this.height = 0;
        this.element.addEventListener("scroll", () => this.measure(), { passive: true });
        new ResizeObserver(() => this.measure()).observe(this.element);
    }

    /** Measures the visible part and draws its rows. */
    measure() {
        const { scrollTop, clientHeight } = this.element, height = Math.max(clientHeight - HEAD, 0);
        if (scrollTop === this.top && height === this.height) return;
        [this.top, this.height] = [scrollTop, height];
        this.drawRows();
    }

    /** @param {View} view */
    draw(view) {
        this.view = view;
        const { functions, profile, side, match, state, whole, wholeBefore } = view, column = this.column(view);
        this.element.classList.toggle("diff", side === "difference");
        const { descending, compared } = state;
        this.order = this.sort(functions, profile, side, match.names, column, descending, compared, whole, wholeBefore,
            state.changes.charge);
        this.drawHead(column, state.descending);
        this.note.textContent = this.order.length > 0 ? "" : match.names ? noMatch(state.search)
            : "No functions left. Remove a filter.";
        this.largest = this.largestBar(view) || 1;
        this.body.style.height = `${this.order.length * ROW}px`;
        setAttributes(this.element, { "aria-rowcount": this.order.length + 1 });
        this.drawRows();
    }

    /**
     * Returns the column that sorts the table.
     *
     * @param {View} view
     */
    column({ side, state: { column } }) {
        const columns = columnsOf(side);
        return column && columns.includes(column) ? column : side === "difference" ? "points" : "self";
    }

    /**
     * @param {TableColumn} sorted
     * @param {boolean} descending
     */
    drawHead(sorted, descending) {
        const { view } = this;
        if (!view) return;
        const focused = [...this.head.querySelectorAll("button")].findIndex(button => button.matches(":focus"));
        /** @type {Record<TableColumn, string>} */
        const titles = { name: "Function", self: "Self", total: "Total", before: "Before", after: "After",
            points: "Points" };
        this.head.replaceChildren(...columnsOf(view.side).map(column => {
            const isSorted = column === sorted, arrow = isSorted ? descending ? " ▾" : " ▴" : "";
            const button = createButton(titles[column] + arrow, () => this.app.sortTable(column),
                { class: "plain" });
            const order = !isSorted ? "none" : descending ? "descending" : "ascending";
            const head = createHtml("div", { role: "columnheader", class: isSorted ? "on" : "", "aria-sort": order },
                button);
            if (column === "name") head.append(this.createWeightChoice(view));
            return head;
        }));
        this.head.querySelectorAll("button")[focused]?.focus({ preventScroll: true });
    }

    /**
     * Creates the choice of the weights that are compared, or of whether the self weight of the runtime counts for its
     * callers.
     *
     * @param {View} view
     */
    createWeightChoice({ side, state: { compared, changes } }) {
        const { app } = this;
        return side === "difference" ? createChoice("Compare", [["self", "Self"], ["total", "Total"]],
            value => app.update({ compared: value === "self" ? value : "total" }, false), compared)
            : createChoice("Self weight", [["", "All"], ["callers", "No runtime"]], charge => app.change({ charge }),
                changes.charge,
                "No runtime: what std, libc, the kernel and interpreters take counts for their callers");
    }

    drawRows() {
        const { view, height, order } = this;
        if (!view) return;
        const top = Math.max(0, Math.min(this.top, order.length * ROW - height));
        const first = Math.max(0, Math.floor(top / ROW) - SPARE_ROWS);
        const last = Math.min(order.length, Math.ceil((top + height) / ROW) + SPARE_ROWS);
        const rows = [];
        for (let index = first; index < last; index++) rows.push(this.createRow(view, order[index], index));
        this.rows.style.transform = `translateY(${first * ROW}px)`;
        this.rows.replaceChildren(...rows);
        const selected = this.rows.querySelector(".sel");
        if (selected) this.element.setAttribute("aria-activedescendant", selected.id);
        else this.element.removeAttribute("aria-activedescendant");
    }

    /**
     * @param {View} view
     * @param {number} name
     * @param {number} index
     */
    createRow(view, name, index) {
        const { profile, side } = view, isSelected = view.state.selected?.name === name, text = profile.names[name];
        const swatch = createHtml("i");
        swatch.style.background = view.settings.diffusion && side !== "difference"
            ? colourOfShare(weightsOnSide(view).total[name] / view.whole) : colourOfName(profile, name);
        const cell = createHtml("div", { class: "n", role: "gridcell", title: text }, swatch, createNameLabel(text),
            ...(moduleOfName(profile, name) === "waker" ? [createHtml("small", {}, "waker")] : []));
        const cells = side === "difference" ? this.differenceCells(view, name) : this.weightCells(view, name);
        const [before, after] = sharesOf(view, name);
        const hasChanged = before !== after && isSignificant(profile, name, view.state.compared);
        const isNoise = side === "difference" && !hasChanged;
        const kind = `tr${isSelected ? " sel" : ""}${isNoise ? " noise" : ""}`;
        const row = createHtml("div", { class: kind, role: "row", "data-name": name,
            id: `${this.app.id}-row-${index}`, "aria-rowindex": index + 2, "aria-selected": String(isSelected) },
        cell, ...cells);
        return row;
    }

    /**
     * @param {View} view
     * @param {number} name
     */
    weightCells(view, name) {
        const { self, total } = weightsOnSide(view), { whole, settings } = view;
        return [[self[name], this.largest], [total[name], whole]].map(([weight, most]) => {
            const cell = createHtml("div", { class: "c", role: "gridcell", title: formatWeight(weight, settings) },
                formatShare(weight, whole));
            cell.prepend(createBar(weight / most));
            return cell;
        });
    }

    /**
     * @param {View} view
     * @param {number} name
     */
    differenceCells(view, name) {
        const [before, after] = sharesOf(view, name), points = after - before, isGrowth = points > 0;
        const isNoise = !isSignificant(view.profile, name, view.state.compared);
        const texts = points === 0 && before === 0 ? ["–", "–"]
            : [before === 0 ? "new" : formatShare(before, 1), after === 0 ? "gone" : formatShare(after, 1)];
        const bar = createBar(Math.abs(points) / this.largest, isGrowth ? "grew" : "fell");
        const cells = texts.map((text, index) =>
            createHtml("div", { class: `c${index === 0 ? " muted" : ""}`, role: "gridcell" }, text));
        return [...cells,
            createHtml("div", { class: "c d", role: "gridcell", title: isNoise ? "May be noise" : undefined }, bar,
                formatSigned(100 * points, formatPoint))];
    }

    /** Returns the largest number to which a bar is proportional. @param {View} view */
    largestBar(view) {
        const { self } = weightsOnSide(view), isDifference = view.side === "difference";
        let largest = 0;
        for (const name of this.order) {
            const [before, after] = isDifference ? sharesOf(view, name) : [0, self[name]];
            largest = Math.max(largest, Math.abs(after - before));
        }
        return largest;
    }

    /**
     * Selects the row that is some rows away from the selected one.
     *
     * @param {number} step
     */
    move(step) {
        const { order, app } = this, selected = app.state.selected?.name;
        const index = selected === undefined ? -1 : order.indexOf(selected);
        const next = Math.max(0, Math.min(order.length - 1, index + step));
        if (order.length === 0) return;
        app.select({ name: order[next] });
        this.reveal();
    }

    /** Scrolls to the selected function. */
    reveal() {
        const { element, height, order, app: { state: { selected } } } = this;
        const index = selected ? order.indexOf(selected.name) : -1, top = index * ROW;
        if (index < 0) return;
        element.scrollTop = Math.max(Math.min(element.scrollTop, top), top + ROW - height);
        this.measure();
    }

    /** Returns the table as CSV, with all rows. */
    toCsv() {
        const { view, order } = this;
        if (!view) return "";
        const { functions: { self, total, selfBefore, totalBefore }, profile, settings: { factor } } = view;
        const columns = [self, total, ...(selfBefore && totalBefore ? [selfBefore, totalBefore] : [])];
        const head = ["function", "self", "total", ...(selfBefore ? ["self before", "total before"] : [])].join();
        const rows = Array.from(order, name => {
            const cells = columns.map(column => String(Number((column[name] * factor).toFixed(6))));
            return [`"${profile.names[name].replaceAll("\"", "\"\"")}"`, ...cells].join();
        });
        return [head, ...rows, ""].join("\n");
    }
}

/**
 * @param {View["side"]} side
 * @returns {TableColumn[]}
 */
function columnsOf(side) {
    return side === "difference" ? ["name", "before", "after", "points"] : ["name", "self", "total"];
}

/**
 * Returns the self and total weights of functions on the side that is shown.
 *
 * @param {Pick<View, "functions" | "side">} view
 */
function weightsOnSide({ functions: { self, total, selfBefore = self, totalBefore = total }, side }) {
    return side === "before" ? { self: selfBefore, total: totalBefore } : { self, total };
}

/**
 * Returns the shares of a function before and after.
 *
 * @param {View} view
 * @param {number} name
 */
function sharesOf({ functions, state: { compared }, whole, wholeBefore }, name) {
    const [before, after] = comparedWeights(functions, compared);
    return [wholeBefore > 0 ? before[name] / wholeBefore : 0, whole > 0 ? after[name] / whole : 0];
}

/**
 * Returns the weights before and after that the table compares.
 *
 * @param {Functions} functions
 * @param {State["compared"]} compared
 */
function comparedWeights({ self, total, selfBefore = self, totalBefore = total }, compared) {
    return compared === "self" ? [selfBefore, self] : [totalBefore, total];
}

/**
 * Returns the functions that the table shows, in its order.
 *
 * @param {Functions} functions
 * @param {Profile} profile
 * @param {View["side"]} side
 * @param {Uint8Array | null} matches
 * @param {TableColumn} column
 * @param {boolean} descending
 * @param {State["compared"]} compared
 * @param {number} whole
 * @param {number} wholeBefore
 * @param {string} charge not empty to leave out the runtime, whose self weight counts for its callers
 */
function sortFunctions(functions, profile, side, matches, column, descending, compared, whole, wholeBefore, charge) {
    const hidden = charge ? findSupport(profile) : undefined;
    const { self, total, selfBefore = self, totalBefore = total } = functions, { names } = profile, list = [];
    const [own, inclusive] = side === "before" ? [selfBefore, totalBefore] : [self, total];
    const [before, after] = comparedWeights(functions, compared);
    for (let name = 0; name < names.length; name++) {
        const isPresent = inclusive[name] > 0 || (side === "difference" && totalBefore[name] > 0);
        if (hidden?.[name] && !(self[name] > 0 || selfBefore[name] > 0)) continue;
        if (isPresent && names[name] !== DIVIDER && (!matches || matches[name])) list.push(name);
    }
    const order = Uint32Array.from(list), sign = descending ? -1 : 1;
    if (column === "name") {
        const labels = new Map(list.map(name => [name, labelOfName(names[name]).join("").toLowerCase()]));
        /** @param {number} name */
        const labelOf = name => labels.get(name) ?? "";
        return order.sort((a, b) => sign * (labelOf(a) < labelOf(b) ? -1 : Number(labelOf(a) > labelOf(b))) || a - b);
    }
    /** @type {Record<string, (name: number) => number>} */
    const keys = {
        self: name => own[name], total: name => inclusive[name],
        before: name => before[name], after: name => after[name],
        points: name => Math.abs(after[name] / (whole || 1) - before[name] / (wholeBefore || 1)),
    };
    const values = new Float64Array(names.length);
    for (const name of order) values[name] = keys[column](name);
    // What may be noise comes last.
    const noise = Uint8Array.from(names, (_, name) =>
        Number(column === "points" && !isSignificant(profile, name, compared)));
    return order.sort((a, b) => noise[a] - noise[b] || sign * (values[a] - values[b]) || inclusive[b] - inclusive[a]
        || a - b);
}

/** @param {string} search */
function noMatch(search) {
    return `No function matches “${search}”.`;
}

/**
 * @param {number} share from 0 to 1
 * @param {string} [kind]
 */
function createBar(share, kind = "") {
    const bar = createHtml("s", { class: kind });
    bar.style.width = `${(Math.min(share, 1) * 30).toFixed(1)}px`;
    return bar;
}

/**
 * Returns the last two parts of a function's name: its type and itself, with the number of its source line.
 *
 * @param {string} name
 */
function labelOfName(name) {
    const { text } = simplifyName(name), starts = findParts(text);
    const [line] = !name.includes(" ") && name.match(SOURCE_LINE) || [""];
    return [text.slice(starts.at(-2) ?? 0, starts.at(-1)), text.slice(starts.at(-1)) + line];
}

/**
 * Creates the label of a function, with its type muted.
 *
 * @param {string} name
 */
function createNameLabel(name) {
    const [type, own] = labelOfName(name), label = createHtml("span");
    if (type) label.append(createHtml("em", {}, type));
    label.append(createHtml("span", {}, own));
    return label;
}
