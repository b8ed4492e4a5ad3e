// The state of a graph on the page. `update` is the only way to change it, and draws all parts anew.

const GONE = "Gone: the graph shows what was before.";

/** @returns {State} */
function initialState() {
    return { changes: noChanges(), zoom: 0, search: "", unfolded: new Set(), selected: undefined, column: undefined,
        descending: true, compared: "self", tab: "graph", hasTable: true, isLinkStale: false };
}

class App {
    /**
     * @param {GraphElement} root
     * @param {Profile} profile
     * @param {Panel} [panel]
     */
    constructor(root, profile, panel) {
        this.settings = readSettings(root);
        this.profile = profile;
        this.panel = panel;
        /** The index of the graph on the page. */
        this.order = document.querySelectorAll(".fg").length;
        this.id = `fg${this.order}`;
        this.builder = new ViewBuilder(profile, this.settings);
        this.hasher = new PathHasher(profile.names);
        this.link = new Link(this.order);
        this.state = initialState();
        this.view = this.builder.build(this.state);
        /** @type {Box | undefined} The box under the pointer. */
        this.hovered = undefined;
        /** Where the pointer was last, and where it was when the view last changed. */
        this.place = this.oldPlace = "";
        /** @type {Box | undefined} The box that has the focus or had it last. */
        this.focused = undefined;
        /** True from a long press until something else is pressed. */
        this.wasLongPress = false;
        /** The position of the current match among all matches, from 1; 0 if there is none. */
        this.matchPosition = 0;
        this.queue = new WorkQueue(nodes => this.page.setBusy(nodes));
        this.page = new Page(this);
        this.graph = new Graph(this);
        this.table = new Table(this);
        this.details = new Details(this);
        this.menu = new Menu(this);
        const { page } = this;
        this.side = createHtml("aside", { class: "side card" }, this.table.element, this.details.element);
        const above = createHtml("div", { class: "time" }, ...(panel ? [panel.element] : []));
        this.element = createHtml("div", { class: "fg" }, page.header, page.toolbar, above, page.chips,
            createHtml("main", {}, this.graph.element, this.side), page.footer, this.menu.element, this.details.tip,
            page.message);
        this.isPage = mount(root, this.element);
        this.graph.measure();
        this.table.measure();
        this.applyLink();
        listen(this);
    }

    /** Draws what follows from the state. */
    draw() {
        const { state } = this, view = this.view = this.builder.build(state);
        this.element.classList.toggle("no-table", !state.hasTable);
        this.element.classList.toggle("tab-table", state.tab === "table");
        this.page.draw(view);
        this.graph.draw(view);
        this.page.drawNote(view);
        this.table.draw(view);
        this.details.draw(view);
        this.panel?.draw(view);
        if (this.isPage) document.title = this.page.titleOf(view);
    }

    /**
     * Changes the state and draws it.
     *
     * @param {Partial<State>} change
     * @param {boolean} isStep true to add an entry to the history, false to replace the current one
     */
    update(change, isStep = true) {
        this.state = { ...this.state, isLinkStale: false, ...change };
        this.hover(undefined);
        this.page.hideMessage();
        this.oldPlace = this.place;
        this.draw();
        this.writeLink(isStep);
    }

    /**
     * Changes what is shown: the tree, the order or the direction. Keeps the zoom, or that of `others`, if possible.
     *
     * @param {Partial<Changes>} changes
     * @param {Partial<State>} [others]
     * @param {() => void} [next] called when the change is drawn
     */
    change(changes, others = {}, next = () => {}) {
        this.queue.add(() => this.builder.prepare({ ...this.state.changes, ...changes }), () => {
            this.applyChange(changes, others);
            next();
        });
    }

    /**
     * @param {Partial<Changes>} changes
     * @param {Partial<State>} others
     */
    applyChange(changes, others) {
        const { state, view } = this;
        const next = { ...state, unfolded: new Set(), changes: { ...state.changes, ...changes }, ...others };
        const built = this.builder.build({ ...next, zoom: 0 }), zoom = findSamePath(view.tree, next.zoom, built.tree);
        this.matchPosition = 0;
        this.update({ ...next, zoom: built.weights[zoom] > 0 ? zoom : 0,
            selected: findSameChoice(view.tree, next.selected, built.tree) });
        if (built.tree !== view.tree || built.rootAtTop !== view.rootAtTop) this.graph.showBase(this.view);
    }

    /**
     * Returns the node that a link identifies, or the root if there is none with a weight.
     *
     * @param {View} view
     * @param {string} link
     */
    findZoom(view, link) {
        const node = link ? this.hasher.find(view.tree, link) : 0;
        return view.weights[node] > 0 ? node : 0;
    }

    /** Writes the state to the address. @param {boolean} isStep */
    writeLink(isStep) {
        const { state: { zoom, search, changes, unfolded }, view } = this;
        this.link.write({ zoom: zoom === 0 ? "" : this.hasher.format(view.tree, zoom), search, ...changes, turned: "" },
            isStep, unfolded);
    }

    /** Restores the state in the address. */
    applyLink() {
        const read = this.link.read();
        if (this.panel) this.setProfile(this.panel.loadProfile(read));
        const known = new Set(this.profile.keys), changes = noChanges();
        let isLinkStale = false;
        for (const name of CHANGE_NAMES) {
            const isKnown = !REQUIRED_NAMES.includes(name) || splitLines(read(name)).every(line => known.has(line));
            if (isKnown) changes[name] = read(name); else isLinkStale = true;
        }
        // An older link turns the picture upside down.
        if (read("turned")) changes.root = this.settings.inverted ? "bottom" : "";
        const link = read("zoom");
        this.queue.add(() => this.builder.derive(changes), () => {
            const state = { ...this.state, changes, search: read("search"), zoom: 0 }, { tree } = this.view;
            const built = this.builder.build(state), zoom = this.findZoom(built, link);
            this.matchPosition = 0;
            this.state = { ...state, zoom, isLinkStale: isLinkStale || (link !== "" && zoom === 0),
                selected: findSameChoice(tree, state.selected, built.tree) };
            this.state.unfolded = new Set(this.link.readUnfolded());
            this.draw();
            this.graph.showBase(this.view);
        });
    }

    /**
     * Replaces the profile with another one that has the same names and nodes.
     *
     * @param {Profile} profile
     */
    setProfile(profile) {
        this.profile = profile;
        this.page.sides.hidden = !profile.differential;
        this.builder.profile = profile;
    }

    /**
     * Returns the frame that keys act on: the one under the pointer, or else the one with the focus.
     *
     * @returns {Target}
     */
    target() {
        const box = this.hovered ?? (this.graph.frames.contains(document.activeElement) ? this.focused : undefined);
        if (box) return this.targetOf(box);
        const { selected } = this.state;
        return selected ? { ...selected, box: this.graph.findBox(selected.node) } : {};
    }

    /** @param {Box} box @returns {Target} */
    targetOf(box) {
        const { node, folded, chain } = box, name = this.view.tree.name[node];
        const isFunction = node > 0 && !folded && !chain && this.profile.names[name] !== DIVIDER;
        return { node, box, ...(isFunction && { name }) };
    }

    /**
     * Shows the facts about the box to which the pointer moved. Browsers also report a pointer that rests when
     * something else is drawn below it: keys then act on what has the focus, not on what is there by chance.
     *
     * @param {MouseEvent} event
     */
    point(event) {
        // Only some events have fractions of pixels.
        this.place = [event.clientX, event.clientY].map(Math.floor).join();
        if (this.place === this.oldPlace) return;
        this.oldPlace = "";
        this.hover(this.graph.findEventBox(event.target), event);
    }

    /**
     * Shows the facts about the box under the pointer.
     *
     * @param {Box | undefined} box
     * @param {MouseEvent} [event]
     */
    hover(box, event) {
        if (box && this.menu.isOpen) return;
        this.hovered = box;
        this.details.point(box, event);
    }

    /** @param {Chosen | undefined} selected */
    select(selected) {
        this.state = { ...this.state, selected };
        this.view = this.builder.build(this.state);
        this.graph.mark(this.view);
        this.table.draw(this.view);
        this.details.draw(this.view);
    }

    /**
     * Zooms to a box; for folded frames to their caller, or, if that is in view already, to the widest of them.
     *
     * @param {Box} box
     */
    zoomToBox({ node, folded, chain }) {
        const { tree: { parent }, weights } = this.view;
        if (chain) return this.update({ unfolded: new Set([...this.state.unfolded, ...chain]) });
        if (folded && parent[node] !== this.state.zoom) node = parent[node];
        else if (folded) node = folded.reduce((best, other) => (weights[other] > weights[best] ? other : best));
        this.zoomTo(node);
    }

    /** @param {number} node */
    zoomTo(node) {
        const { tree } = this.view, selected = node === 0 ? this.state.selected : { name: tree.name[node], node };
        // The function that a tree is about has the whole width without any zoom.
        const zoom = tree.hasPivot && node === PIVOT ? 0 : node;
        if (zoom === this.state.zoom) this.select(selected); else this.update({ zoom, selected });
        this.matchPosition = 0;
        this.graph.focus(this.graph.base(this.view), true);
    }

    /**
     * Shows only a function: its callers, its callees, or itself between both.
     *
     * @param {"callers" | "callees" | "between"} kind
     * @param {Target} target
     */
    isolate(kind, target) {
        if (target.name === undefined) return;
        const changes = { callers: "", callees: "", between: "", invert: "", [kind]: this.nameOf(target) };
        const side = this.sideOf(target.name);
        this.change({ ...changes, ...side }, { tab: "graph", selected: { name: target.name } }, () => {
            this.graph.focus(this.graph.base(this.view));
            if (side) this.page.say(GONE);
        });
    }

    /**
     * Returns the change that shows a function that is gone, if it is: a difference is as wide as the weights after.
     *
     * @param {number | undefined} name
     * @returns {Partial<Changes> | undefined}
     */
    sideOf(name = 0) {
        const { functions: { total }, side, wholeAfter } = this.view;
        return side === "difference" && total[name] === 0 && wholeAfter > 0 ? { side: "before" } : undefined;
    }

    /**
     * @param {"only" | "hide" | "omit"} kind
     * @param {Target} target
     */
    addFilter(kind, target) {
        const values = new Set([...splitLines(this.state.changes[kind]), this.nameOf(target)]);
        const side = kind === "only" ? this.sideOf(target.name) : undefined;
        this.change({ [kind]: [...values].join("\n"), ...side }, {}, () => side && this.page.say(GONE));
    }

    /**
     * @param {ChangeName} name
     * @param {string} value
     */
    toggle(name, value) {
        this.change({ [name]: this.state.changes[name] ? "" : value });
    }

    cycleSide() {
        const sides = ["before", "after", ""], index = sides.indexOf(this.state.changes.side);
        this.change({ side: sides[(index + 1) % sides.length] });
    }

    /** Removes all filters and the zoom. */
    clear() {
        this.panel?.clear();
        this.change(noChanges(), { zoom: 0 });
    }

    /** Closes the menu, clears the search, or removes the last filter. */
    goBack() {
        const { menu, page, state } = this;
        if (menu.isOpen) menu.close();
        else if (this.queue.cancel()) page.say("Stopped.");
        else if (state.search) this.search("");
        else if (page.removeLast) page.removeLast();
        else if (state.selected) this.select(undefined);
        else page.say("No filter is left to remove.");
    }

    /** @param {string} search */
    search(search) {
        this.matchPosition = 0;
        this.update({ search }, false);
    }

    /**
     * Goes to the next or previous match. Zooms if it is too narrow to be seen.
     *
     * @param {number} step 1 or -1
     */
    goToMatch(step) {
        const { graph, view, state } = this, { tree, match } = view, [[first, end]] = findRanges(view);
        if (!graph.input || !match.names) return;
        const nodes = findNodesInOrder(graph.input, match.names);
        if (nodes.length === 0) {
            return this.page.say(this.table.order.length > 0 ? "Gone: see Before." : noMatch(state.search));
        }
        /** @param {number} node */
        const isInView = node => node >= first && node < end;
        const start = step > 0 ? nodes.findIndex(isInView) : nodes.findLastIndex(isInView);
        const position = this.matchPosition > 0 ? (this.matchPosition - 1 + step + nodes.length) % nodes.length
            : Math.max(0, start);
        const node = nodes[position], isTyping = document.activeElement === this.page.input;
        const box = graph.findBox(node);
        if (!box) this.update({ zoom: this.findWideView(node) });
        else if (box.chain) this.zoomToBox(box);
        this.matchPosition = position + 1;
        this.select({ name: tree.name[node], node });
        graph.focus(node);
        if (isTyping) this.page.input.focus({ preventScroll: true });
        this.page.say(`Match ${formatCount(position + 1)} of ${formatCount(nodes.length)}`);
    }

    /**
     * Returns the outermost node from which another one is easily seen.
     *
     * @param {number} node
     */
    findWideView(node) {
        const { tree, weights, whole } = this.view, scale = this.graph.width * weights[node];
        return findPath(tree, node).find(zoom => scale / (zoom === 0 ? whole : weights[zoom]) >= EASILY_SEEN) ?? node;
    }

    /**
     * @param {Box | undefined} box
     * @param {string} direction
     */
    goToNeighbour(box, direction) {
        const { graph, view } = this, start = box ?? graph.findBox(graph.base(view));
        if (!start) return;
        /** @type {Record<string, string>} */
        const turned = { up: "down", down: "up" };
        const towards = view.rootAtTop ? direction : turned[direction] ?? direction;
        const next = findNeighbour(graph.layout.boxes, view.tree, start, towards);
        this.hovered = undefined;
        graph.focusBox(next ?? start);
        if (next?.group) this.details.point(next, centre(next.group));
        const outwards = isCaller(view.tree, start.node) ? "up" : "down";
        if (!next && towards === outwards) this.sayWhyNothingIsDrawn(start);
    }

    /**
     * Says that frames on a box are too narrow to draw, if there are any.
     *
     * @param {Box} box
     */
    sayWhyNothingIsDrawn({ node, chain, folded }) {
        const { graph: { input }, page } = this;
        if (folded || (input && findChildren(input, chain?.at(-1) ?? node, 1).length > 0)) {
            page.say("The next frames are too narrow to draw. Enter zooms in.");
        }
    }

    /** @param {TableColumn} column */
    sortTable(column) {
        const isSame = column === this.table.column(this.view);
        this.update({ column, descending: isSame ? !this.state.descending : column !== "name" });
    }

    switchTheme() {
        const { classList } = this.element, isChosen = classList.contains("dark") || classList.contains("light");
        const isDark = isChosen ? classList.contains("dark") : matchMedia("(prefers-color-scheme: dark)").matches;
        classList.toggle("dark", !isDark);
        classList.toggle("light", isDark);
        this.draw();
    }

    /** @param {Target} target */
    nameOf({ name, box }) {
        return box?.chain ? chainLabels(box.chain, this.view)[1]
            : name === undefined ? box?.node ? "woken by" : "all" : this.profile.keys[name];
    }

    /** @param {Target} target */
    shareOf({ name, node }) {
        const { view } = this, { total } = weightsOnSide(view);
        return formatShare(node !== undefined ? measureNode(view, node).total : total[name ?? 0], view.whole);
    }

    /**
     * Returns the stack of a node in the folded format.
     *
     * @param {number} node
     */
    stackOf(node) {
        const { tree, state: { changes } } = this.view;
        const names = findPath(tree, node).slice(1).map(step => this.profile.names[tree.name[step]]);
        return (changes.callers || changes.invert || isCaller(tree, node) ? names.reverse() : names).join(";");
    }

    /** @param {string} text */
    copy(text) {
        const copied = navigator.clipboard?.writeText(text) ?? Promise.reject();
        copied.then(() => this.page.say("Copied."), () => this.page.say(`The browser does not allow copying: ${text}`));
    }
}

/** Returns the middle of an element, as events have it. @param {Element} element */
function centre(element) {
    const { left, width, bottom } = element.getBoundingClientRect();
    return { clientX: left + Math.min(width / 2, 60), clientY: bottom - 8 };
}
