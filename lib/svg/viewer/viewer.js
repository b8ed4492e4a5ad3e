// What the reader does: pointing, zooming, searching; and the link that tells it.

class Viewer {
    constructor(root, profile) {
        this.root = root;
        this.picture = new Picture(root, profile);
        this.key = [...document.querySelectorAll("svg.flame-graph")].indexOf(root) || "";
        this.pattern = "";
        root.classList.add("live");
        root.querySelector("#folded")?.remove();
        this.texts = {};
        for (const id of ["title", "subtitle", "details", "unzoom", "search", "matched"]) {
            this.texts[id] = root.querySelector(`#${id}`);
        }
        this.makeButton("unzoom", () => this.zoom(0));
        this.makeButton("search", () => this.toggleSearch());
        this.makeInput();
        this.listen();
        this.resize();
        this.follow();
    }

    makeButton(id, action) {
        const text = this.texts[id];
        text.removeAttribute("visibility");
        text.classList.add("button");
        text.setAttribute("role", "button");
        text.setAttribute("tabindex", 0);
        text.addEventListener("click", action);
        text.addEventListener("keydown", event => {
            if (event.key === "Enter" || event.key === " ") {
                event.preventDefault();
                action();
            }
        });
    }

    makeInput() {
        const input = document.createElementNS("http://www.w3.org/1999/xhtml", "input");
        input.type = "text";
        input.placeholder = "regular expression";
        input.setAttribute("aria-label", "Search frames by regular expression");
        this.input = input;
        this.inputPlace = element("foreignObject", { width: 200, height: 2 * this.picture.fontSize, class: "hide" }, input);
        this.root.append(this.inputPlace);
        input.addEventListener("input", () => this.search(input.value));
        input.addEventListener("keydown", event => {
            if (event.key === "Escape") this.closeSearch();
            if (event.key === "Enter") this.focus(this.picture.view);
            if (!this.isFind(event)) event.stopPropagation();
        });
    }

    listen() {
        const { frames } = this.picture;
        const box = event => this.picture.groups.get(event.target.closest?.("g"));
        frames.addEventListener("click", event => box(event) && this.open(box(event)));
        frames.addEventListener("mouseover", event => this.describe(box(event)));
        frames.addEventListener("mouseleave", () => this.describe());
        frames.addEventListener("focusin", event => this.describe(box(event)));
        this.root.addEventListener("keydown", event => {
            if (event.key === "Enter" && box(event)) this.open(box(event));
            if (event.key === "Escape") this.zoom(0);
        });
        window.addEventListener("keydown", event => this.findKey(event));
        window.addEventListener("hashchange", () => this.follow());
        if (this.root.dataset.fluid) new ResizeObserver(() => this.resize()).observe(this.root);
    }

    isFind(event) {
        return event.key === "F3" || ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f");
    }

    // Ctrl-F opens the search of the graph that has the focus, or of the first one; there, the browser's own.
    findKey(event) {
        const focused = document.activeElement?.closest?.("svg.flame-graph");
        if (!this.isFind(event) || (focused ? focused !== this.root : this.key !== "")) return;
        if (document.activeElement === this.input) return;
        event.preventDefault();
        this.openSearch();
    }

    resize() {
        const { picture, root } = this;
        if (root.dataset.fluid) {
            root.setAttribute("width", "100%");
            const width = Math.max(root.getBoundingClientRect().width, 200);
            if (width === picture.width && picture.groups.size > 0) return;
            picture.width = width;
        }
        this.draw();
    }

    draw() {
        const { picture, root, texts } = this;
        picture.draw();
        const { width, height } = picture, low = height - picture.bottom / 2;
        root.setAttribute("height", height);
        root.setAttribute("viewBox", `0 0 ${width} ${height}`);
        texts.title.setAttribute("x", width / 2);
        texts.subtitle?.setAttribute("x", width / 2);
        texts.details.setAttribute("y", low);
        texts.matched.setAttribute("y", low);
        for (const id of ["search", "matched"]) texts[id].setAttribute("x", width - SIDE);
        this.inputPlace.setAttribute("x", width - SIDE - 200);
        this.inputPlace.setAttribute("y", picture.fontSize * 0.7);
        texts.unzoom.classList.toggle("hide", picture.view === 0);
        this.showMatched();
    }

    // Opens a drawn box: a frame is zoomed to, folded frames are by zooming to their caller or the widest of them.
    open({ node, folded }) {
        const { tree, view } = this.picture;
        if (!folded) return this.zoom(node);
        if (tree.parent[node] !== view) return this.zoom(tree.parent[node]);
        this.zoom(folded.reduce((widest, other) => (tree.total[other] > tree.total[widest] ? other : widest)));
    }

    zoom(node, remember = true) {
        if (node !== this.picture.view) {
            this.picture.view = node;
            this.draw();
            if (remember) this.remember(true);
        }
        if (remember) this.focus(node);
    }

    focus(node) {
        const box = this.picture.drawn.find(box => box.node === node && !box.folded);
        box?.group.focus({ preventScroll: true });
    }

    describe(box) {
        const { picture, texts } = this;
        let text = " ";
        if (box?.folded) text = picture.foldedTitle(box);
        else if (box) text = `${this.root.dataset.nameType} ${picture.title(box.node)}${this.shares(box.node)}`;
        texts.details.textContent = text;
    }

    shares(node) {
        const { picture } = this, { tree, view } = picture;
        if (node === 0) return "";
        const shares = [`self ${picture.percent(tree.own[node])}`];
        if (tree.parent[node] !== 0) {
            shares.push(`${picture.percent(tree.total[node], tree.total[tree.parent[node]])} of its caller`);
        }
        if (view !== 0 && node > view) shares.push(`${picture.percent(tree.total[node], tree.total[view])} of the view`);
        return ` · ${shares.join(" · ")}`;
    }

    toggleSearch() {
        if (this.pattern) this.closeSearch(); else this.openSearch();
    }

    openSearch() {
        this.inputPlace.classList.remove("hide");
        this.texts.search.classList.add("hide");
        this.input.focus();
        this.input.select();
    }

    closeSearch() {
        this.inputPlace.classList.add("hide");
        this.texts.search.classList.remove("hide");
        this.input.value = "";
        this.search("");
        this.focus(this.picture.view);
    }

    // Looks for a regular expression in the names. One that is not valid is told, and finds nothing.
    search(pattern, remember = true) {
        const { picture } = this;
        let expression = null, fault = "";
        try {
            if (pattern) expression = new RegExp(pattern, "i");
        } catch (error) {
            fault = error.message;
        }
        this.input.setCustomValidity(fault);
        this.fault = fault;
        this.pattern = pattern;
        picture.matches = expression && Uint8Array.from(picture.profile.names, name => expression.test(name));
        this.draw();
        if (remember) this.remember(false);
    }

    // The share of the view that is in matching frames; what stands on a match is counted with it.
    matchedShare() {
        const { picture } = this, { tree, view, matches } = picture;
        let sum = 0, node = Math.max(view, 1);
        const end = tree.end[view];
        while (node < end) {
            const matching = matches[tree.name[node]];
            if (matching) sum += tree.total[node];
            node = matching ? tree.end[node] : node + 1;
        }
        return picture.percent(sum, picture.weight(view));
    }

    showMatched() {
        const { texts, picture, fault } = this;
        let text = " ";
        if (fault) text = fault.replace(/^Invalid regular expression: /, "Not a pattern: ");
        else if (picture.matches) text = `Matched: ${this.matchedShare()}`;
        texts.matched.textContent = text;
        texts.search.textContent = this.pattern ? "Reset Search" : "Search";
    }

    // Writes the state into the address's fragment: each zoom a step in the history.
    remember(step) {
        const { view } = this.picture, { key } = this;
        const link = new URLSearchParams(location.hash.slice(1));
        const state = { zoom: view === 0 ? "" : this.picture.hash(view), search: this.pattern };
        for (const name in state) {
            if (state[name]) link.set(name + key, state[name]); else link.delete(name + key);
        }
        try {
            history[step ? "pushState" : "replaceState"](null, "", `#${link}`);
        } catch {
            // Some embeddings forbid it; the graph works all the same.
        }
    }

    // Goes where the address's fragment says.
    follow() {
        const { picture, key } = this;
        const link = new URLSearchParams(location.hash.slice(1));
        const pattern = link.get(`search${key}`) ?? "", zoom = link.get(`zoom${key}`);
        if (pattern !== this.pattern) {
            if (pattern) this.openSearch();
            this.input.value = pattern;
            this.search(pattern, false);
        }
        this.zoom(zoom ? picture.find(zoom) : 0, false);
    }
}

const root = document.currentScript.closest("svg.flame-graph");
readProfile(root).then(profile => new Viewer(root, profile)).catch(error => {
    root.querySelector("#details").textContent = `Not interactive: ${error.message}`;
});
