// What the reader does, and the link that tells it.

// What can be changed, as it stands in the link. `only` and `hide` hold a name a line.
const CHANGES = ["callers", "callees", "between", "only", "hide", "recursion", "sort", "turned"];

class Viewer {
    constructor(root, profile) {
        root.querySelector("#folded")?.remove();
        root.append(element("g", { id: "frames" }));
        // The still frames stand behind the script, and may be still to come.
        const removeStill = () => root.querySelector(":scope > .still")?.remove();
        document.addEventListener("DOMContentLoaded", removeStill);
        removeStill();
        root.classList.add("live");
        this.root = root;
        this.picture = new Picture(root, profile);
        this.order = [...document.querySelectorAll("svg.flame-graph")].indexOf(root);
        this.state = Object.fromEntries(CHANGES.map(name => [name, ""]));
        this.texts = {};
        for (const id of ["title", "subtitle", "details", "unzoom", "search", "matched"]) {
            this.texts[id] = root.querySelector(`#${id}`);
        }
        this.search = new Search(this);
        this.sight = new Sight(this);
        this.addText("menu", "Menu", () => this.toggleSheet());
        this.addText("changes", " ");
        this.addText("undrawn", " ");
        this.makeButton(this.texts.unzoom, () => this.goTo(undefined, 0));
        this.makeButton(this.texts.search, () => (this.search.pattern ? this.search.close() : this.openSearch()));
        this.sheet = element("foreignObject", { class: "hide" });
        this.sight.raise(Object.values(this.texts).filter(text => text && !/title/.test(text.id)));
        root.append(this.search.place, this.sheet);
        listen(this);
        this.sight.measure();
        this.follow();
    }

    addText(id, content, action) {
        const text = element("text", { id }, content);
        this.texts[id] = text;
        if (action) this.makeButton(text, action);
    }

    makeButton(text, action) {
        text.removeAttribute("visibility");
        text.classList.add("button");
        text.setAttribute("role", "button");
        text.setAttribute("tabindex", 0);
        text.addEventListener("click", action);
        text.addEventListener("keydown", event => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            event.stopPropagation();
            action();
        });
    }

    draw() {
        const { picture, root, texts } = this;
        const current = this.current?.node, { described } = this, focused = picture.frames.contains(document.activeElement);
        this.sight.placeLegend();
        picture.draw();
        root.classList.toggle("differential", picture.profile.differential);
        this.sight.place();
        for (const id of ["title", "subtitle"]) texts[id]?.setAttribute("x", picture.width / 2);
        texts.unzoom.classList.toggle("hide", picture.view === 0);
        texts.matched.textContent = this.search.report();
        texts.search.textContent = this.search.pattern ? "Reset Search" : "Search";
        texts.changes.textContent = this.told();
        texts.undrawn.textContent = picture.undrawnNote();
        this.current = picture.drawn.find(box => box.node === current && !box.folded);
        if (focused) this.current?.group.focus({ preventScroll: true });
        this.describe(picture.drawn.find(box => box.node === described && !box.folded));
        this.sight.stick();
    }

    // Opens a drawn box: a frame is zoomed to, folded frames are by zooming to their caller or the widest of them.
    open({ node, folded }) {
        const { tree, view } = this.picture;
        if (folded && tree.parent[node] !== view) node = tree.parent[node];
        else if (folded) node = folded.reduce((best, other) => (tree.total[other] > tree.total[best] ? other : best));
        this.goTo(undefined, node);
    }

    // Gives the focus to a box, or zooms to a node.
    goTo(box, node = box?.node) {
        const { picture } = this;
        if (node === undefined) return;
        if (!box && node !== picture.base) {
            // In a sandwich the function is what everything stands on.
            picture.view = picture.tree.lower && node === 1 ? 0 : node;
            this.search.at = 0;
            this.isStale = false;
            this.draw();
            this.remember(true);
        }
        this.focus(box ? node : picture.base);
        this.sight.reveal(box);
    }

    focus(node) {
        this.boxOf(node)?.group.focus({ preventScroll: true });
    }

    baseBox() {
        return this.boxOf(this.picture.base);
    }

    boxOf(node) {
        return this.picture.drawn.find(box => box.node === node && !box.folded);
    }

    goBack() {
        if (!this.sheet.classList.contains("hide")) this.closeSheet();
        else if (this.search.isOpen) this.search.close();
        else if (this.picture.view !== 0) this.goTo(undefined, 0);
        else this.change(Object.fromEntries(CHANGES.map(name => [name, ""])));
    }

    openSearch() {
        this.search.open();
        this.search.input.focus();
        this.search.input.select();
    }

    // Goes to the next match, or to the one before; where it is too narrow to be seen, by zooming.
    step(by) {
        const { picture, search } = this, node = search.step(by), typing = document.activeElement === search.input;
        if (node === undefined) return;
        const { at } = search, view = picture.viewOf(node);
        if (view !== picture.view) this.goTo(undefined, view);
        search.at = at;
        this.texts.matched.textContent = search.report();
        const box = this.boxOf(node);
        box.group.focus({ preventScroll: true });
        if (typing) search.input.focus({ preventScroll: true });
        this.sight.reveal(box);
        this.current = box;
        for (const other of this.picture.drawn) other.group.classList.toggle("at", other === box);
    }

    nameOf({ node }) {
        return this.picture.name(node);
    }

    stackOf({ node }) {
        const names = this.picture.path(node).slice(1).map(step => this.picture.name(step));
        return (this.standsOnCallee(node) ? names.reverse() : names).join(";");
    }

    // Whether a frame stands on what it calls.
    standsOnCallee(node) {
        return Boolean(this.state.callers) || node >= this.picture.tree.lower;
    }

    copy(text) {
        const told = done => this.texts.details.textContent = done ? "Copied." : `Not allowed to copy: ${text}`;
        (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(() => told(true), () => told(false));
    }

    toggleSheet() {
        if (!this.sheet.classList.contains("hide")) return this.closeSheet();
        this.sheet.replaceChildren(makeSheet(this, this.current));
        this.sheet.classList.remove("hide");
        this.sheet.querySelector("button").focus();
    }

    closeSheet() {
        this.sheet.classList.add("hide");
        this.sheet.replaceChildren();
        this.focus(this.current?.node ?? this.picture.base);
    }

    toggle(name, value) {
        this.change({ [name]: this.state[name] ? "" : value });
    }

    // Shows a function alone: its callers, what it calls, or itself between both.
    lookAt(kind, box) {
        if (box.node === 0) return;
        this.change({ callers: "", callees: "", between: "", [kind]: this.nameOf(box) });
    }

    addTo(name, box) {
        if (box.node !== 0) this.change({ [name]: [...lines(this.state[name]), this.nameOf(box)].join("\n") });
    }

    // Changes what is shown: another tree, order or direction. The zoom stays where that is possible.
    change(changes) {
        const { picture } = this, zoom = picture.view === 0 ? "" : picture.link(picture.view);
        this.isStale = false;
        this.apply(changes, zoom);
        this.draw();
        this.remember(true);
        this.focus(picture.base);
        this.sight.reveal();
    }

    apply(changes, zoom) {
        const { picture, state } = this;
        Object.assign(state, changes);
        picture.tree = this.makeTree();
        picture.byWeight = Boolean(state.sort);
        picture.inverted = Boolean(this.root.dataset.inverted) !== Boolean(state.turned);
        picture.view = zoom ? picture.find(zoom) : 0;
        if (picture.tree.total[picture.view] === 0) picture.view = 0;
        this.current = undefined;
    }

    makeTree() {
        const { profile } = this.picture, { names } = profile, { state } = this;
        const ids = text => {
            const wanted = new Set(lines(text));
            return new Set(names.flatMap((name, id) => (wanted.has(name) ? [id] : [])));
        };
        let { tree } = profile;
        for (const name of lines(state.only)) tree = sift(tree, ids(name), true);
        if (state.hide) tree = sift(tree, ids(state.hide), false);
        if (state.recursion) tree = mergeRecursion(tree, names);
        if (state.callers) tree = callersOf(tree, ids(state.callers), names);
        if (state.callees) tree = calleesOf(tree, ids(state.callees), names);
        if (state.between) tree = sandwichOf(tree, ids(state.between), names);
        return tree;
    }

    // What was changed, in words.
    told() {
        const { callers, callees, between, only, hide, recursion, sort } = this.state;
        const words = this.isStale ? ["The link leads to a frame that is not in this picture"] : [];
        if (only) words.push(`only through ${lines(only).join(" and ")}`);
        if (hide) words.push(`without ${lines(hide).join(", ")}`);
        if (callers) words.push(`callers of ${callers}`);
        if (callees) words.push(`callees of ${callees}`);
        if (between) words.push(`callers and callees of ${between}`);
        if (recursion) words.push("recursion merged");
        if (sort) words.push("by weight");
        const told = words.join(" · "), room = this.picture.width / 2 - 120;
        return this.picture.fits(told, room) ? told || " " : label(told, text => this.picture.fits(text, room));
    }

    describe(box) {
        this.described = box?.node;
        this.texts.details.textContent = box ? this.description(box) : " ";
    }

    // All that there is to say of a frame in one line, its name cut if it does not fit.
    description(box) {
        const { picture, texts, root } = this;
        if (box.folded) return picture.foldedTitle(box);
        const name = picture.name(box.node), numbers = picture.title(box.node).slice(name.length) + this.shares(box.node);
        const room = picture.width - 3 * SIDE - (this.sight.isNarrow ? 0 : texts.matched.getBBox().width);
        const whole = (cut, told) => `${root.dataset.nameType} ${cut}${told}`;
        for (const told of [numbers, numbers.split(" · ")[0]]) {
            const cut = label(name, cut => picture.fits(whole(cut, told), room));
            if (cut) return whole(cut, told);
        }
        return whole(name, numbers);
    }

    shares(node) {
        const { picture } = this, { tree, view } = picture;
        if (node === 0) return "";
        const shares = [`self ${picture.percent(tree.own[node])}`];
        if (tree.parent[node] !== 0) {
            const what = this.standsOnCallee(node) ? "what it calls" : "its caller";
            shares.push(`${picture.percent(tree.total[node], tree.total[tree.parent[node]])} of ${what}`);
        }
        if (view !== 0 && node > view) shares.push(`${picture.percent(tree.total[node], tree.total[view])} of the view`);
        return ` · ${shares.join(" · ")}`;
    }

    // The name of a parameter in the link: the first graph of a page has it to itself.
    parameter(name) {
        return this.order === 0 ? name : `${name}${this.order}`;
    }

    // Writes the state into the address's fragment: each change a step in the history.
    remember(step) {
        const { picture } = this, link = new URLSearchParams(location.hash.slice(1));
        const zoom = picture.view === 0 ? "" : picture.link(picture.view);
        for (const [name, value] of Object.entries({ zoom, search: this.search.pattern, ...this.state })) {
            if (value) link.set(this.parameter(name), value); else link.delete(this.parameter(name));
        }
        if (String(link) === location.hash.slice(1)) return;
        try {
            history[step ? "pushState" : "replaceState"](null, "", `#${link}`);
        } catch {
            // Some embeddings forbid it; the graph works all the same.
        }
    }

    // Shows another profile in the place of the one before: of the same names, in the same tree.
    take(profile) {
        this.picture.profile = profile;
        this.follow();
    }

    // Goes where the address's fragment says.
    follow() {
        const { search } = this, link = new URLSearchParams(location.hash.slice(1));
        const value = name => link.get(this.parameter(name)) ?? "";
        const pattern = value("search");
        if (pattern) search.open();
        search.input.value = pattern;
        search.compile(pattern);
        const { picture } = this, known = new Set(picture.profile.names), zoom = value("zoom");
        // A function that is not there any more cannot be looked at.
        const isKnown = name => !["callers", "callees", "between", "only"].includes(name) || lines(value(name)).every(line => known.has(line));
        this.apply(Object.fromEntries(CHANGES.map(name => [name, isKnown(name) ? value(name) : ""])), zoom);
        this.isStale = !CHANGES.every(isKnown) || Boolean(zoom && picture.view === 0);
        this.draw();
    }
}

function lines(text) {
    return text.split("\n").filter(Boolean);
}
