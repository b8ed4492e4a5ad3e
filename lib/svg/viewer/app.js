// The state of a graph on the page. `update` is the only way to change it, and draws all parts anew.

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
        /** False until the graph is on the screen. It answers before the weights of functions are summed. */
        this.hasFunctions = false;
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
        afterPaint(() => this.startFunctions());
    }

    /** Draws what follows from the state. */
    draw() {
        const { state } = this, view = this.view = this.builder.build(state);
        this.element.classList.toggle("no-table", !state.hasTable);
        this.element.classList.toggle("tab-table", state.tab === "table");
        this.page.draw(view);
        this.graph.draw(view);
        this.page.drawNote(view);
        this.panel?.draw(view);
        if (this.isPage) document.title = this.page.titleOf(view);
        if (this.hasFunctions) this.drawFunctions(view);
    }

    /** Draws the parts for which the weights of all functions are needed. @param {View} view */
    drawFunctions(view) {
        this.page.drawFunctions(view);
        this.table.draw(view);
        this.details.draw(view);
    }

    /** Draws the functions for the first time, when the graph is on the screen. */
    startFunctions() {
        this.hasFunctions = true;
        this.queue.add(() => this.builder.prepare(this.state.changes), () => {
            this.drawFunctions(this.view);
            // The legend takes some of the graph's height.
            if (!this.view.rootAtTop) this.graph.showBase(this.view);
        });
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

    /** @param {string} text */
    copy(text) {
        const copied = navigator.clipboard?.writeText(text) ?? Promise.reject();
        copied.then(() => this.page.say("Copied."), () => this.page.say(`The browser does not allow copying: ${text}`));
    }
}
