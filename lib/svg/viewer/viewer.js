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
        this.bars = [element("rect", { class: "bar hide" }), element("rect", { class: "bar hide" })];
        this.picture.frames.after(...this.bars);
        this.addText("menu", "Menu", () => this.toggleSheet());
        this.addText("changes", " ");
        this.makeButton(this.texts.unzoom, () => this.goTo(undefined, 0));
        this.makeButton(this.texts.search, () => (this.search.pattern ? this.search.close() : this.openSearch()));
        this.sheet = element("foreignObject", { class: "hide" });
        this.bars[1].after(...Object.values(this.texts).filter(text => text && !/title/.test(text.id)));
        root.append(this.search.place, this.sheet);
        listen(this);
        this.measure();
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

    // Takes the width of the window, if it is to. Tells whether that changed.
    measure() {
        const { picture, root } = this;
        if (!root.dataset.fluid) return false;
        root.setAttribute("width", "100%");
        const width = Math.max(root.getBoundingClientRect().width, 200), before = picture.width;
        picture.width = width;
        return width !== before;
    }

    // Where the page is nothing but the graph, it opens at the root: of a deep graph the top is all but empty.
    showRoot() {
        if (document.documentElement !== this.root || this.picture.inverted) return;
        window.scrollTo(0, this.picture.height);
        this.stick();
    }

    // Adapts to the window.
    refit() {
        if (this.measure()) this.draw(); else this.stick();
    }

    draw() {
        const { picture, root, texts } = this;
        const current = this.current?.node, { described } = this, focused = picture.frames.contains(document.activeElement);
        this.placeLegend();
        picture.draw();
        root.classList.toggle("differential", picture.profile.differential);
        root.setAttribute("height", picture.height);
        root.setAttribute("viewBox", `0 0 ${picture.width} ${picture.height}`);
        for (const id of ["title", "subtitle"]) texts[id]?.setAttribute("x", picture.width / 2);
        texts.unzoom.classList.toggle("hide", picture.view === 0);
        texts.matched.textContent = this.search.report();
        texts.search.textContent = this.search.pattern ? "Reset Search" : "Search";
        texts.changes.textContent = this.told();
        this.current = picture.drawn.find(box => box.node === current && !box.folded);
        if (focused) this.current?.group.focus({ preventScroll: true });
        this.describe(picture.drawn.find(box => box.node === described && !box.folded));
        this.stick();
    }

    // Breaks the legend where the window ends, and makes room for its lines.
    placeLegend() {
        const { picture, root } = this, { fontSize } = picture;
        let x = SIDE, lines = 0;
        for (const text of root.querySelectorAll("#legend text")) {
            const width = text.getComputedTextLength() + 1.4 * fontSize;
            if (x > SIDE && x + width > picture.width - SIDE) [x, lines] = [SIDE, lines + 1];
            for (const [part, left] of [[text.previousElementSibling, x], [text, x + 1.4 * fontSize]]) {
                part.setAttribute("x", left);
                part.setAttribute("transform", `translate(0 ${1.5 * lines * fontSize})`);
            }
            x += width + fontSize;
        }
        picture.top = Number(root.dataset.top) + 1.5 * lines * fontSize;
    }

    // Keeps the controls within the part of the graph that is in sight.
    stick() {
        const { picture, texts } = this, { width, height, fontSize, bottom } = picture;
        const place = this.root.getBoundingClientRect(), scale = place.width / width || 1;
        const top = Math.min(Math.max(0, -place.top / scale), height - 4 * fontSize);
        const low = Math.max(top + 4 * fontSize, Math.min(height, (innerHeight - place.top) / scale));
        const [upper, lower] = this.bars, line = top + 2 * fontSize;
        // In a narrow window what was found stands above what is told of a frame.
        const last = low - (this.isNarrow ? fontSize / 2 : bottom / 2), above = this.isNarrow ? last - 1.3 * fontSize : last;
        for (const [bar, y, shown] of [[upper, top, top > 0], [lower, low - bottom, low < height]]) {
            for (const [key, value] of Object.entries({ y, width, height: bottom })) bar.setAttribute(key, value);
            bar.classList.toggle("hide", !shown);
        }
        const left = texts.unzoom.classList.contains("hide") ? SIDE : SIDE + 7 * fontSize;
        const places = { unzoom: [SIDE, line], changes: [left, line], search: [width - SIDE - 4.5 * fontSize, line],
            menu: [width - SIDE, line], details: [SIDE, last], matched: [width - SIDE, above] };
        for (const id in places) {
            texts[id].setAttribute("x", places[id][0]);
            texts[id].setAttribute("y", places[id][1]);
            texts[id].setAttribute("text-anchor", places[id][0] > width / 2 ? "end" : "start");
        }
        this.search.place.setAttribute("x", width - SIDE - 4 * fontSize - 204);
        this.search.place.setAttribute("y", line - 1.3 * fontSize);
        this.sheet.setAttribute("x", Math.max(SIDE, width - 400 - SIDE));
        this.sheet.setAttribute("y", line + fontSize);
        this.sheet.setAttribute("width", Math.min(400, width - 2 * SIDE));
        this.sheet.setAttribute("height", Math.max(low - line - fontSize, 100));
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
            this.draw();
            this.remember(true);
        }
        this.focus(box ? node : picture.base);
    }

    focus(node) {
        this.picture.drawn.find(box => box.node === node && !box.folded)?.group.focus({ preventScroll: true });
    }

    baseBox() {
        return this.picture.drawn.find(box => box.node === this.picture.base);
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

    // Goes to the next match, or to the one before.
    step(by) {
        const box = this.search.step(by), typing = document.activeElement === this.search.input;
        this.texts.matched.textContent = this.search.report();
        if (!box) return;
        box.group.focus({ preventScroll: false });
        if (typing) this.search.input.focus();
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
        this.baseBox()?.group.scrollIntoView({ block: "nearest" });
        this.stick();
    }

    addTo(name, box) {
        if (box.node !== 0) this.change({ [name]: [...lines(this.state[name]), this.nameOf(box)].join("\n") });
    }

    // Changes what is shown: another tree, order or direction. The zoom stays where that is possible.
    change(changes) {
        const { picture } = this, zoom = picture.view === 0 ? "" : picture.link(picture.view);
        this.apply(changes, zoom);
        this.draw();
        this.remember(true);
        this.focus(picture.base);
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
        const words = [];
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
        const room = picture.width - 3 * SIDE - (this.isNarrow ? 0 : texts.matched.getBBox().width);
        const whole = (cut, told) => `${root.dataset.nameType} ${cut}${told}`;
        for (const told of [numbers, numbers.split(" · ")[0]]) {
            const cut = label(name, cut => picture.fits(whole(cut, told), room));
            if (cut) return whole(cut, told);
        }
        return whole(name, numbers);
    }

    get isNarrow() {
        return this.picture.width < 640;
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
        this.apply(Object.fromEntries(CHANGES.map(name => [name, value(name)])), value("zoom"));
        this.draw();
    }
}

function lines(text) {
    return text.split("\n").filter(Boolean);
}
