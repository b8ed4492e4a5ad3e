// What the reader does, and the link that tells it.

// What can be changed, as it stands in the link. `only` and `hide` hold a name a line.
const CHANGES = ["callers", "callees", "between", "only", "hide", "recursion", "sort", "turned"];

class Viewer {
    constructor(root, profile) {
        root.querySelector("#folded")?.remove();
        root.append(element("g", { id: "frames" }));
        this.legend = root.querySelector("#legend");
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
        this.addText("undrawn", " ");
        this.makeButton(this.texts.unzoom, () => this.goTo(undefined, 0));
        this.makeButton(this.texts.search, () => (this.search.pattern ? this.search.close() : this.openSearch()));
        this.sheet = element("foreignObject", { class: "hide" });
        if (this.legend) this.bars[1].after(this.legend);
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
        const { picture, root } = this, before = picture.width;
        if (root.dataset.fluid) {
            root.setAttribute("width", "100%");
            picture.width = Math.max(root.getBoundingClientRect().width, 200);
        }
        picture.bottom = picture.fontSize * (this.isNarrow ? 3.3 : 2) + 10;
        return picture.width !== before;
    }

    // Whether the page is nothing but the graph.
    get isAlone() {
        return document.documentElement === this.root;
    }

    // Where the page is nothing but the graph, it opens at the base: of a deep graph the top is all but empty.
    showBase() {
        if (this.isAlone) this.reveal();
    }

    // Scrolls as little as it takes to see a box; to the middle of the window where it has others on both sides.
    reveal(box = this.baseBox()) {
        if (!box) return;
        const { top, bottom } = box.group.getBoundingClientRect(), [first, last] = [this.upperHeight, innerHeight - this.picture.bottom];
        if (top >= first - 1 && bottom <= last + 1) return;
        const isBetween = this.picture.tree.lower && box.node === 1;
        window.scrollBy(0, isBetween ? (top + bottom - first - last) / 2 : top < first ? top - first : bottom - last);
        this.stick();
    }

    // Adapts to the window.
    refit() {
        if (this.measure()) return this.draw();
        this.place();
        this.stick();
    }

    // Takes its place on the page. Where a few pixels do not fit into the window, it does without some of its margin.
    place() {
        const { root, picture: { width, height } } = this;
        const over = (size, room, most) => (this.isAlone && size > room && size <= room + most ? size - room : 0);
        // A scroll bar takes room from the other direction.
        root.setAttribute("height", height);
        const x = root.dataset.fluid ? 0 : over(width, height > innerHeight + SIDE ? root.clientWidth : innerWidth, 1.6 * SIDE);
        const y = over(height, width - x > innerWidth ? root.clientHeight : innerHeight, SIDE);
        this.cut = [x, y];
        if (!root.dataset.fluid) root.setAttribute("width", width - x);
        root.setAttribute("height", height - y);
        root.setAttribute("viewBox", `${x / 2} ${y} ${width - x} ${height - y}`);
    }

    draw() {
        const { picture, root, texts } = this;
        const current = this.current?.node, { described } = this, focused = picture.frames.contains(document.activeElement);
        this.placeLegend();
        picture.draw();
        root.classList.toggle("differential", picture.profile.differential);
        this.place();
        for (const id of ["title", "subtitle"]) texts[id]?.setAttribute("x", picture.width / 2);
        texts.unzoom.classList.toggle("hide", picture.view === 0);
        texts.matched.textContent = this.search.report();
        texts.search.textContent = this.search.pattern ? "Reset Search" : "Search";
        texts.changes.textContent = this.told();
        texts.undrawn.textContent = picture.undrawnNote();
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
        this.upperHeight = 2 * fontSize + 10 + (this.legend ? 1.5 * (lines + 1) * fontSize : 0);
    }

    // Keeps the controls and the legend within the part of the graph that is in sight; on paper that is all of it.
    stick() {
        const { picture, texts, upperHeight } = this, { width, height, fontSize, bottom } = picture;
        const place = this.root.getBoundingClientRect(), scale = place.width / (width - this.cut[0]) || 1;
        const top = this.isPrinted ? 0 : Math.min(Math.max(0, -place.top / scale), height - 4 * fontSize);
        const inSight = this.isPrinted ? height : Math.min(height, (innerHeight - place.top) / scale + this.cut[1]);
        const low = Math.max(top + 4 * fontSize, inSight), [upper, lower] = this.bars, line = top + 2 * fontSize;
        // In a narrow window each has a line of its own: what was found, what is left out, what is told of a frame.
        const isNoted = texts.undrawn.textContent !== " ", undrawn = low - fontSize * (this.isNarrow ? 1.8 : 0.45);
        const last = low - (this.isNarrow ? fontSize / 2 : isNoted ? 1.75 * fontSize : bottom / 2);
        const above = this.isNarrow ? undrawn - 1.3 * fontSize : last;
        for (const [bar, y, tall, shown] of [[upper, top, upperHeight, top > 0], [lower, low - bottom, bottom, low < height]]) {
            for (const [key, value] of Object.entries({ y, width, height: tall })) bar.setAttribute(key, value);
            bar.classList.toggle("hide", !shown);
        }
        const below = Math.max(0, line + 1.6 * fontSize - (Number(this.root.dataset.top) - 1.2 * fontSize));
        this.legend?.setAttribute("transform", `translate(0 ${top > 0 ? below : 0})`);
        const left = texts.unzoom.classList.contains("hide") ? SIDE : SIDE + 7 * fontSize;
        const places = { unzoom: [SIDE, line], changes: [left, line], search: [width - SIDE - 4.5 * fontSize, line],
            menu: [width - SIDE, line], details: [SIDE, last], matched: [width - SIDE, above], undrawn: [width - SIDE, undrawn] };
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
            this.isStale = false;
            this.draw();
            this.remember(true);
        }
        this.focus(box ? node : picture.base);
        this.reveal(box);
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
        this.reveal(box);
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
        this.reveal();
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
