// The page around the graph: header, toolbar, filters, legend, messages.

// The share of the total from which a process gives its name to the page.
const MAIN_SHARE = 0.9;

/** @implements {Part} */
class Page {
    /** @param {App} app */
    constructor(app) {
        const { settings } = app;
        this.app = app;
        this.title = createHtml("h1");
        this.subtitle = createHtml("span", { class: "cmd mono", title: settings.subtitle }, settings.subtitle);
        this.facts = createHtml("div", { class: "facts" });
        this.badges = createHtml("div", { class: "facts" });
        this.header = createHtml("header", {}, this.title, this.subtitle, this.facts);
        this.input = createHtml("input", { type: "search", placeholder: "Find functions", spellcheck: "false",
            autocomplete: "off", "aria-label": "Find functions by text or regular expression" });
        this.result = createHtml("span", { class: "res", role: "status" });
        /** @type {[string, string][]} */
        const tabs = [["graph", "Flame graph"], ["table", "Functions"], ["between", "Sandwich"]];
        // Only a panel knows times.
        if (app.panel) tabs.push(["chart", "Flame chart"]);
        this.tabs = createChoice("View", tabs, value => this.chooseTab(value));
        this.sides = createChoice("Compare", [["before", "Before"], ["after", "After"], ["", "Difference"]],
            value => app.change({ side: value }));
        this.sides.hidden = !app.profile.differential;
        this.toolbar = createHtml("div", { class: "bar", role: "toolbar", "aria-label": "Tools" },
            this.tabs, this.sides, this.createSearch(), createHtml("span", { class: "sp" }), ...this.createButtons());
        this.chips = createHtml("div", { class: "chips" });
        /** @type {string[]} The filters in the order in which they appeared. */
        this.order = [];
        this.legend = createHtml("div", { class: "lg", id: "legend" });
        this.drawLegend = memoize(this.createLegend.bind(this));
        this.note = createHtml("span", { id: "undrawn" });
        this.footer = createHtml("footer", {}, this.legend, createHtml("span", { class: "sp" }), this.note);
        this.message = createHtml("div", { class: "toast", role: "status" });
        /** @type {ReturnType<typeof setTimeout> | undefined} */
        this.timer = undefined;
    }

    createSearch() {
        const glass = createSvg("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" },
            createSvg("circle", { cx: 6, cy: 6, r: 4.2 }), createSvg("path", { d: "M9.2 9.2 13 13" }));
        this.input.addEventListener("input", () => searchFor(this.app, this.input.value));
        this.input.addEventListener("keydown", event => this.handleSearchKey(event));
        return createHtml("div", { class: "search" }, glass, this.input, this.result);
    }

    createButtons() {
        const { app } = this;
        const more = createButton("More ▾", () => app.menu.openMore(more), { "aria-haspopup": "menu" });
        const icon = createSvg("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" },
            createSvg("circle", { cx: 7, cy: 7, r: 5.4 }),
            createSvg("path", { class: "half", d: "M7 1.6a5.4 5.4 0 0 1 0 10.8z" }));
        const theme = createButton(icon, () => app.switchTheme(),
            { class: "btn ic", "aria-label": "Light or dark", title: "Light or dark" });
        const help = createButton("?", () => app.menu.openHelp(),
            { class: "btn ic wide", "aria-label": "Keys", title: "Keys" });
        return [more, theme, help];
    }

    /** @param {string} value */
    chooseTab(value) {
        const { app } = this;
        if (value === "chart" && !app.profile.buildChart) return this.say("A flame chart is of one time, not of two.");
        const tab = value === "table" ? "table" : "graph", chart = value === "chart" ? "yes" : "";
        if (value !== "between") return app.change({ between: "", ...(tab === "graph" && { chart }) }, { tab });
        const name = app.state.selected?.name ?? app.table.order[0];
        if (name === undefined) return this.say("No function is left to show.");
        isolate(app, "between", { name });
    }

    openSearch() {
        this.input.focus();
        this.input.select();
    }

    /** @param {KeyboardEvent} event */
    handleSearchKey(event) {
        if (isFindKey(event)) return;
        event.stopPropagation();
        if (event.key === "Enter") goToMatch(this.app, event.shiftKey ? -1 : 1);
        if (event.key !== "Escape") return;
        searchFor(this.app, "");
        this.app.graph.focus(this.app.graph.base(this.app.view));
    }

    /**
     * Shows a message for a few seconds.
     *
     * @param {string} text
     */
    say(text) {
        clearTimeout(this.timer);
        this.message.textContent = text;
        this.message.classList.add("shown");
        this.timer = setTimeout(() => this.hideMessage(), 4000);
    }

    hideMessage() {
        this.message.classList.remove("shown");
    }

    /**
     * Says how far long work is.
     *
     * @param {number | undefined} nodes number of frames that were gone through; undefined if the work is done
     */
    setBusy(nodes) {
        const isBusy = nodes !== undefined;
        clearTimeout(this.timer);
        this.app.element.setAttribute("aria-busy", String(isBusy));
        this.message.textContent = isBusy ? `Working: ${formatThings(nodes, "frames")}. Esc stops it.` : "";
        this.message.classList.toggle("shown", isBusy);
    }

    /** @param {View} view */
    draw(view) {
        const { state: { search, changes, tab }, match } = view;
        this.drawHeader(view);
        setChoice(this.tabs, changes.between ? "between" : view.tree.time ? "chart" : tab);
        setChoice(this.sides, view.side === "difference" ? "" : view.side);
        if (this.input.value !== search) this.input.value = search;
        this.result.textContent = describeMatches(view);
        this.input.setAttribute("aria-invalid", String(Boolean(match.error)));
        this.chips.replaceChildren(...this.createChips(view));
    }

    /** @param {View} view */
    drawFunctions(view) {
        this.badges.replaceChildren(...createBadges(view));
        const { functions, base, isWhole } = view.zoomed;
        this.drawLegend(functions, view.side, base, view.drawsBefore, isWhole);
    }

    /**
     * Draws the legend. It depends on nothing else.
     *
     * @param {Functions} _functions
     * @param {View["side"]} _side
     * @param {number} _base
     * @param {boolean} _drawsBefore
     * @param {boolean} _isWhole
     */
    createLegend(_functions, _side, _base, _drawsBefore, _isWhole) {
        const { app } = this;
        this.legend.replaceChildren(...createLegend(app.view, kind => app.graph.highlightKind(kind)));
    }

    /** Draws the number of frames that are not drawn, which the graph knows. @param {View} view */
    drawNote({ tree, weights, whole, state: { zoom } }) {
        const { frames, weight } = this.app.graph.layout.undrawn, base = zoom === 0 ? whole : weights[zoom];
        const share = tree.lower ? "" : ` (${formatShare(weight, base)})`;
        this.note.textContent = frames > 0 ? `${formatThings(frames, "frames")} too narrow to draw${share}` : "";
    }

    /** @param {View} view */
    titleOf({ settings: { title }, profile, profile: { names, tree: { end, name, total: after, totalBefore } } }) {
        const total = after[0] === 0 && totalBefore || after;
        let main = 1;
        while (main < end[0] && total[main] < MAIN_SHARE * total[0]) main = end[main];
        // Without threads, functions are at the root, such as `(anonymous)`.
        const kind = main < end[0] ? classOfName(profile, name[main]) : 0, root = names[name[main]];
        const isProcess = (kind < 0 || kind === THREAD_CLASS) && /^[^([<]/.test(root);
        return title || (isProcess && root) || this.app.panel?.title || "Flame graph";
    }

    /** @param {View} view */
    drawHeader(view) {
        const { settings, whole, wholeBefore, wholeAfter, profile, side } = view;
        const all = side === "before" ? profile.tree.totalBefore?.[0] ?? 0 : view.tree.time ? whole
            : this.app.panel?.total ?? profile.whole;
        this.title.textContent = this.titleOf(view);
        const { time } = view.tree;
        const total = time ? formatWeight(time.span, settings) : side === "difference" && !profile.isScaled
            ? `${formatWeight(wholeBefore, settings)} → ${formatWeight(wholeAfter, settings)}`
            : formatWeight(whole, settings);
        const isPart = side !== "difference" && whole < all * 0.9999995;
        const exact = formatExactWeight(whole, settings);
        const fact = createHtml("span", { class: "stat", title: exact === total ? "" : exact },
            createHtml("b", { id: "total" }, total),
            time ? ` elapsed, ${formatWeight(whole, settings)} in ${formatThings(countLanes(time), "threads")}` : "",
            isPart ? ` of ${formatWeight(all, settings)}` : "",
            describeScale(profile, side));
        this.facts.replaceChildren(fact, this.badges);
    }

    /** @param {View} view */
    createChips({ state, profile, tree }) {
        const { changes, zoom } = state, { app } = this;
        const chips = app.panel?.chips() ?? [];
        /** @type {[ChangeName, string][]} */
        const lists = [["only", "Focus"], ["hide", "Ignore"], ["omit", "Hide"]];
        for (const [name, kind] of lists) {
            for (const value of splitLines(changes[name])) {
                const rest = () => splitLines(changes[name]).filter(other => other !== value).join("\n");
                chips.push([kind, value, () => app.change({ [name]: rest() })]);
            }
        }
        /** @type {[ChangeName, string, string?][]} */
        const single = [["recursion", "Merged", "recursion"], ["callers", "Callers"],
            ["callees", "Callees"], ["between", "Sandwich"], ["charge", "Self", "with the runtime"],
            ["sort", "Sorted", `by ${changes.sort}`]];
        for (const [name, kind, value] of single) {
            if (changes[name]) chips.push([kind, value ?? changes[name], () => app.change({ [name]: "" })]);
        }
        if (tree.isInverted && !changes.callers) chips.push(["Inverted", "stacks", () => invertStacks(app, false)]);
        if (zoom !== 0) chips.push(["Zoom", profile.names[tree.name[zoom]], () => zoomTo(app, 0)]);
        this.sortByTime(chips);
        const elements = chips.map(chip => createChip(...chip));
        const stale = "The link leads to a frame that is not in this graph.";
        const clear = createButton("Clear all", () => clearFilters(app), { class: "plain clear" });
        if (state.isLinkStale) elements.unshift(createHtml("span", { class: "stale" }, stale));
        if (chips.length > 1) elements.push(clear);
        this.removeLast = chips.at(-1)?.[2];
        return elements;
    }

    /**
     * Sorts filters by when they appeared, those of a link by their kind.
     *
     * @param {Chip[]} chips
     */
    sortByTime(chips) {
        /** @param {Chip} chip */
        const nameOf = chip => chip.slice(0, 2).join();
        const names = chips.map(nameOf);
        this.order = [...new Set([...this.order, ...names])].filter(name => names.includes(name));
        chips.sort((a, b) => this.order.indexOf(nameOf(a)) - this.order.indexOf(nameOf(b)));
    }
}

/** Returns the number of threads that run. @param {NodeTimes} time */
function countLanes({ lane }) {
    // The first one is that of the root.
    return new Set(lane.subarray(1)).size;
}

/** The kinds of filters whose values are functions. */
const FUNCTION_FILTERS = new Set(["Focus", "Ignore", "Hide", "Callers", "Callees", "Sandwich", "Zoom"]);

/**
 * @param {string} kind
 * @param {string} value
 * @param {() => void} remove
 */
function createChip(kind, value, remove) {
    const text = FUNCTION_FILTERS.has(kind) ? labelOfName(value).join("") : value;
    const label = createHtml("b", { title: value }, text);
    const button = createButton("×", remove, { class: "plain", "aria-label": `Remove: ${kind} ${value}` });
    return createHtml("span", { class: "chip" }, createHtml("i", {}, kind), label, button);
}

/** Markers that say how far a profile can be trusted. @type {[string, string, string][]} */
const QUALITY = [
    ["[truncated]", "truncated", "Stacks that do not reach their root."],
    ["[lost]", "lost", "Samples that the recording lost."],
];

/** @param {View} view */
function createBadges(view) {
    const { profile: { names }, whole } = view, { total } = weightsOnSide(view);
    return QUALITY.flatMap(([marker, word, title]) => {
        const name = names.indexOf(marker), share = name >= 0 && whole > 0 ? total[name] / whole : 0;
        if (share === 0) return [];
        const kind = share >= 0.01 ? "badge warn" : "badge";
        return [createHtml("span", { class: kind, title }, `${formatShare(share, 1)} ${word}`)];
    });
}

/** @param {KeyboardEvent} event */
function isFindKey(event) {
    return event.key === "F3" || ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f");
}

/**
 * Says what the total is, if weights before are not as they were measured.
 *
 * @param {Profile} profile
 * @param {string} side
 */
function describeScale({ isFlattened, isScaled }, side) {
    if (side === "before") return isFlattened ? " where the difference is significant, else after" : "";
    if (side !== "difference" || !isScaled) return "";
    return ` after${isFlattened ? " = 100 %, significant differences only" : ", before at the same scale"}`;
}
