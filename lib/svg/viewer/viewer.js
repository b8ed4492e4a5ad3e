// The state of a graph on the page, what the reader does with it, and the link that restores it.

/** @type {ChangeName[]} */
const CHANGE_NAMES = ["callers", "callees", "between", "only", "hide", "recursion", "sort", "turned"];

// The changes whose values are names of functions that must exist.
const REQUIRED_NAMES = ["callers", "callees", "between", "only"];

class Viewer {
    /**
     * @param {GraphElement} root
     * @param {Profile} profile
     */
    constructor(root, profile) {
        root.querySelector("#folded")?.remove();
        root.append(createSvg("g", { id: "frames" }));
        // The static frames come after the script and may not be loaded yet.
        const removeStill = () => root.querySelector(":scope > .still")?.remove();
        document.addEventListener("DOMContentLoaded", removeStill);
        removeStill();
        root.classList.add("live");
        this.root = root;
        this.picture = new Picture(root, profile);
        /** The index of the graph on the page. */
        this.order = [...document.querySelectorAll("svg.flame-graph")].indexOf(root);
        this.changes = noChanges();
        /** True if the link leads to something that the profile does not have. */
        this.isLinkStale = false;
        /** @type {DrawnBox | undefined} The box that has the focus or had it last. */
        this.current = undefined;
        /** @type {number | undefined} The node that the details describe. */
        this.described = undefined;
        /** @type {Record<string, SVGTextElement>} */
        this.texts = {};
        for (const id of ["title", "subtitle", "details", "unzoom", "search", "matched"]) {
            const text = /** @type {SVGTextElement | null} */ (root.querySelector(`#${id}`));
            if (text) this.texts[id] = text;
        }
        this.search = new Search(this);
        this.viewport = new Viewport(this);
        for (const [id, content] of [["menu", "Menu"], ["changes", " "], ["undrawn", " "]]) {
            this.texts[id] = createSvg("text", { id }, content);
        }
        makeButton(this.texts.menu, () => this.toggleMenu());
        makeButton(this.texts.unzoom, () => this.zoomTo(0));
        makeButton(this.texts.search, () => (this.search.pattern ? this.search.close() : this.openSearch()));
        this.menu = createSvg("foreignObject", { class: "hide" });
        this.viewport.bringToFront(Object.values(this.texts).filter(text => !/title/.test(text.id)));
        root.append(this.search.container, this.menu);
        listen(this);
        this.viewport.measure();
        this.applyLink();
    }

    draw() {
        const { picture, root, texts, described } = this, current = this.current?.node;
        const hadFocus = picture.frames.contains(document.activeElement);
        this.viewport.placeLegend();
        picture.draw();
        root.classList.toggle("differential", picture.profile.differential);
        this.viewport.updateViewBox();
        for (const id of ["title", "subtitle"]) texts[id]?.setAttribute("x", String(picture.width / 2));
        texts.unzoom.classList.toggle("hide", picture.view === 0);
        texts.matched.textContent = this.search.summary();
        texts.search.textContent = this.search.pattern ? "Reset Search" : "Search";
        texts.changes.textContent = this.describeChanges();
        texts.undrawn.textContent = picture.undrawnNote();
        this.current = picture.findBox(current);
        if (hadFocus) this.current?.group.focus({ preventScroll: true });
        this.describe(picture.findBox(described));
        this.viewport.placeControls();
    }

    /**
     * Zooms to a box; for folded frames to their caller, or, if that is in view already, to the widest of them.
     *
     * @param {Box} box
     */
    zoomToBox({ node, folded }) {
        const { tree, view } = this.picture;
        if (folded && tree.parent[node] !== view) node = tree.parent[node];
        else if (folded) node = folded.reduce((best, other) => (tree.total[other] > tree.total[best] ? other : best));
        this.zoomTo(node);
    }

    /** @param {number} node */
    zoomTo(node) {
        const { picture } = this;
        if (node !== picture.base) {
            // The function of a sandwich is the base without any zoom.
            picture.view = picture.tree.lower && node === 1 ? 0 : node;
            this.search.position = 0;
            this.isLinkStale = false;
            this.draw();
            this.updateLink(true);
        }
        this.focusNode(picture.base);
        this.viewport.reveal();
    }

    /**
     * Moves the focus to a box.
     *
     * @param {DrawnBox | undefined} box
     */
    goTo(box) {
        if (!box) return;
        this.focusNode(box.node);
        this.viewport.reveal(box);
    }

    /** @param {number} node */
    focusNode(node) {
        this.picture.findBox(node)?.group.focus({ preventScroll: true });
    }

    baseBox() {
        return this.picture.findBox(this.picture.base);
    }

    goBack() {
        if (!this.menu.classList.contains("hide")) this.closeMenu();
        else if (this.search.isOpen) this.search.close();
        else if (this.picture.view !== 0) this.zoomTo(0);
        else this.change(noChanges());
    }

    openSearch() {
        this.search.open();
        this.search.input.focus();
        this.search.input.select();
    }

    /**
     * Goes to the next or previous match. Zooms if it is too narrow to be seen.
     *
     * @param {number} step 1 or -1
     */
    goToMatch(step) {
        const { picture, search } = this, node = search.advance(step);
        const isTyping = document.activeElement === search.input;
        if (node === undefined) return;
        const { position } = search, view = picture.findView(node);
        if (view !== picture.view) this.zoomTo(view);
        search.position = position;
        this.texts.matched.textContent = search.summary();
        const box = picture.findBox(node);
        if (!box) return;
        box.group.focus({ preventScroll: true });
        if (isTyping) search.input.focus({ preventScroll: true });
        this.viewport.reveal(box);
        this.current = box;
        for (const other of picture.drawn) other.group.classList.toggle("current", other === box);
    }

    /** @param {Box} box */
    nameOf({ node }) {
        return this.picture.name(node);
    }

    /**
     * Returns the stack of a box in the folded format.
     *
     * @param {Box} box
     */
    stackOf({ node }) {
        const names = this.picture.path(node).slice(1).map(step => this.picture.name(step));
        return (this.isDrawnOnCallee(node) ? names.reverse() : names).join(";");
    }

    /**
     * True if a frame is drawn on its callee instead of its caller.
     *
     * @param {number} node
     */
    isDrawnOnCallee(node) {
        return Boolean(this.changes.callers) || this.picture.isLower(node);
    }

    /** @param {string} text */
    copy(text) {
        /** @param {string} message */
        const report = message => void (this.texts.details.textContent = message);
        const copied = navigator.clipboard?.writeText(text) ?? Promise.reject();
        copied.then(() => report("Copied."), () => report(`The browser does not allow copying: ${text}`));
    }

    toggleMenu() {
        if (!this.menu.classList.contains("hide")) return this.closeMenu();
        this.menu.replaceChildren(createMenu(this, this.current));
        this.menu.classList.remove("hide");
        this.menu.querySelector("button")?.focus();
    }

    closeMenu() {
        this.menu.classList.add("hide");
        this.menu.replaceChildren();
        this.focusNode(this.current?.node ?? this.picture.base);
    }

    /**
     * @param {ChangeName} name
     * @param {string} value
     */
    toggle(name, value) {
        this.change({ [name]: this.changes[name] ? "" : value });
    }

    /**
     * Shows only a function: its callers, its callees, or itself between both.
     *
     * @param {"callers" | "callees" | "between"} kind
     * @param {Box} box
     */
    isolate(kind, box) {
        if (box.node !== 0) this.change({ callers: "", callees: "", between: "", [kind]: this.nameOf(box) });
    }

    /**
     * @param {"only" | "hide"} kind
     * @param {Box} box
     */
    addFilter(kind, box) {
        if (box.node !== 0) this.change({ [kind]: [...splitLines(this.changes[kind]), this.nameOf(box)].join("\n") });
    }

    /**
     * Changes what is shown: the tree, the order or the direction. Keeps the zoom if possible.
     *
     * @param {Partial<Changes>} changes
     */
    change(changes) {
        const { picture } = this, zoom = picture.view === 0 ? "" : picture.formatLink(picture.view);
        this.isLinkStale = false;
        this.applyChanges(changes, zoom);
        this.draw();
        this.updateLink(true);
        this.focusNode(picture.base);
        this.viewport.reveal();
    }

    /**
     * @param {Partial<Changes>} update
     * @param {string} zoom link to the node in view, or empty
     */
    applyChanges(update, zoom) {
        const { picture, changes } = this;
        Object.assign(changes, update);
        picture.tree = this.createTree();
        picture.byWeight = Boolean(changes.sort);
        picture.inverted = Boolean(this.root.dataset.inverted) !== Boolean(changes.turned);
        picture.view = zoom ? picture.findNode(zoom) : 0;
        if (picture.tree.total[picture.view] === 0) picture.view = 0;
        this.current = undefined;
    }

    createTree() {
        const { profile: { names, tree: original } } = this.picture;
        const { only, hide, recursion, callers, callees, between } = this.changes;
        let tree = original;
        for (const name of splitLines(only)) tree = filterStacks(tree, findNames(names, name), true);
        if (hide) tree = filterStacks(tree, findNames(names, hide), false);
        if (recursion) tree = mergeRecursion(tree, names);
        if (callers) tree = buildCallerTree(tree, findNames(names, callers), names);
        if (callees) tree = buildCalleeTree(tree, findNames(names, callees), names);
        if (between) tree = buildSandwich(tree, findNames(names, between), names);
        return tree;
    }

    describeChanges() {
        const { callers, callees, between, only, hide, recursion, sort } = this.changes;
        const words = this.isLinkStale ? ["The link leads to a frame that is not in this graph"] : [];
        if (only) words.push(`only through ${splitLines(only).join(" and ")}`);
        if (hide) words.push(`without ${splitLines(hide).join(", ")}`);
        if (callers) words.push(`callers of ${callers}`);
        if (callees) words.push(`callees of ${callees}`);
        if (between) words.push(`callers and callees of ${between}`);
        if (recursion) words.push("recursion merged");
        if (sort) words.push("by weight");
        const text = words.join(" · "), available = this.picture.width / 2 - 120;
        return fitLabel(text, text => this.picture.fits(text, available)) || (text ? "" : " ");
    }

    /** @param {DrawnBox | undefined} box */
    describe(box) {
        this.described = box?.node;
        this.texts.details.textContent = box ? this.describeBox(box) : " ";
    }

    /**
     * Describes a frame in one line, with its name cut if it does not fit.
     *
     * @param {DrawnBox} box
     */
    describeBox({ node, folded }) {
        const { picture, texts, root: { dataset: { nameType } } } = this;
        if (folded) return picture.foldedTitle(folded);
        const name = picture.name(node), numbers = picture.title(node).slice(name.length) + this.describeShares(node);
        const available = picture.width - 3 * SIDE - (this.viewport.isNarrow ? 0 : texts.matched.getBBox().width);
        for (const suffix of [numbers, numbers.split(" · ")[0]]) {
            const label = fitLabel(name, label => picture.fits(`${nameType} ${label}${suffix}`, available));
            if (label) return `${nameType} ${label}${suffix}`;
        }
        return `${nameType} ${name}${numbers}`;
    }

    /** @param {number} node */
    describeShares(node) {
        const { picture } = this, { tree: { own, total, parent }, view } = picture;
        if (node === 0) return "";
        const shares = [`self ${picture.formatPercent(own[node])}`];
        if (parent[node] !== 0) {
            const whole = this.isDrawnOnCallee(node) ? "what it calls" : "its caller";
            shares.push(`${picture.formatPercent(total[node], total[parent[node]])} of ${whole}`);
        }
        if (view !== 0 && node > view) shares.push(`${picture.formatPercent(total[node], total[view])} of the view`);
        return ` · ${shares.join(" · ")}`;
    }

    /**
     * Returns the name of a parameter in the link. All graphs but the first of a page append their index.
     *
     * @param {string} name
     */
    parameterName(name) {
        return this.order === 0 ? name : `${name}${this.order}`;
    }

    /**
     * Writes the state to the fragment of the address.
     *
     * @param {boolean} isStep true to add an entry to the history, false to replace the current one
     */
    updateLink(isStep) {
        const { picture } = this, link = new URLSearchParams(location.hash.slice(1));
        const zoom = picture.view === 0 ? "" : picture.formatLink(picture.view);
        for (const [key, value] of Object.entries({ zoom, search: this.search.pattern, ...this.changes })) {
            if (value) link.set(this.parameterName(key), value); else link.delete(this.parameterName(key));
        }
        setFragment(link, isStep);
    }

    /**
     * Replaces the profile with another one that has the same names and nodes.
     *
     * @param {Profile} profile
     */
    setProfile(profile) {
        this.picture.profile = profile;
        this.applyLink();
    }

    /** Restores the state in the fragment of the address. */
    applyLink() {
        const { picture, search } = this, link = new URLSearchParams(location.hash.slice(1));
        /** @param {string} name */
        const value = name => link.get(this.parameterName(name)) ?? "";
        const pattern = value("search"), zoom = value("zoom"), known = new Set(picture.profile.names);
        if (pattern) search.open();
        search.input.value = pattern;
        search.compile(pattern);
        const valid = CHANGE_NAMES.filter(name =>
            !REQUIRED_NAMES.includes(name) || splitLines(value(name)).every(line => known.has(line)));
        this.applyChanges({ ...noChanges(), ...Object.fromEntries(valid.map(name => [name, value(name)])) }, zoom);
        this.isLinkStale = valid.length < CHANGE_NAMES.length || Boolean(zoom && picture.view === 0);
        this.draw();
    }
}

/**
 * Makes a text work as a button, by mouse and by key.
 *
 * @param {SVGTextElement} text
 * @param {() => void} action
 */
function makeButton(text, action) {
    text.removeAttribute("visibility");
    text.classList.add("button");
    setAttributes(text, { role: "button", tabindex: 0 });
    text.addEventListener("click", action);
    text.addEventListener("keydown", event => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        action();
    });
}

/** @returns {Changes} */
function noChanges() {
    return { callers: "", callees: "", between: "", only: "", hide: "", recursion: "", sort: "", turned: "" };
}

/**
 * Returns the indexes of all names that are lines of a text.
 *
 * @param {string[]} names
 * @param {string} text
 */
function findNames(names, text) {
    const wanted = new Set(splitLines(text));
    return new Set(names.flatMap((name, index) => (wanted.has(name) ? [index] : [])));
}

/** @param {string} text */
function splitLines(text) {
    return text.split("\n").filter(Boolean);
}

/**
 * Sets the fragment of the address, unless it is the same.
 *
 * @param {URLSearchParams} link
 * @param {boolean} isStep true to add an entry to the history, false to replace the current one
 */
function setFragment(link, isStep) {
    if (String(link) === location.hash.slice(1)) return;
    try {
        history[isStep ? "pushState" : "replaceState"](null, "", `#${link}`);
    } catch {
        // Some embeddings forbid it. The graph works without it.
    }
}
